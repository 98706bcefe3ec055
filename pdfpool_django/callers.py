"""Who asks: the name of a request's caller, and how many requests each has open."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator

from django.http import HttpRequest
from django.utils.module_loading import import_string

from pdfpool_django import conf
from pdfpool_django.errors import CallerBusy, NotAuthenticated
from pdfpool_django.sandbox.platforms import after_fork


def authenticated_user(request: HttpRequest) -> str | None:
    """Return ``user:<pk>`` for a user who is logged in, else ``None``.

    A user without a primary key is nobody, as all of them would be one caller.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or user.pk is None:
        return None
    return f"user:{user.pk}"


def caller_function() -> Callable[[HttpRequest], str | None]:
    """Return the function that the setting ``CALLER`` names."""
    function: Callable[[HttpRequest], str | None] = import_string(conf.load().caller)
    return function


def caller_of(request: HttpRequest) -> str:
    """Return the name of the request's caller.

    Raises:
        NotAuthenticated: It has none.
        TypeError: The function gave what is no name: an object's ``str`` could
            be the same for two people.
    """
    caller = caller_function()(request)
    if not caller:
        raise NotAuthenticated
    if not isinstance(caller, str):
        raise TypeError(f"the CALLER function returned {type(caller).__name__}, not a string")
    return caller


def authenticates_by_header() -> bool:
    """Whether callers are named by something that no other site can make a browser send."""
    return bool(getattr(caller_function(), "csrf_exempt", False))


class OpenRequests:
    """Counts the requests that each caller has open, those that wait included."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, caller: str, limit: int) -> Iterator[None]:
        """Count one request for the length of the block.

        Raises:
            CallerBusy: The caller has `limit` open already; nothing is counted.
        """
        with self._lock:
            if self._open[caller] >= limit:
                raise CallerBusy(
                    "You have %(limit)d requests open already; wait for one to end, "
                    "then try again.",
                    limit=limit,
                )
            self._open[caller] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[caller] -= 1
                if not self._open[caller]:
                    del self._open[caller]


_open_requests: dict[int, OpenRequests] = {}


def open_requests() -> OpenRequests:
    """Return this process's count."""
    pid = os.getpid()
    return _open_requests.get(pid) or _open_requests.setdefault(pid, OpenRequests())


after_fork(_open_requests.clear)
