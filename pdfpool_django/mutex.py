"""A lock whose holder can leave work for the moment after its release."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable


class Mutex:
    """Guards decisions, whose consequences are acted upon outside.

    A finalizer that the garbage collector happens to run inside the critical
    section may want the lock that its own thread holds, or is about to take:
    it asks `inside`, and defers its work to the release.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._later: list[Callable[[], object]] = []
        self._deferred: deque[Callable[[], object]] = deque()
        self._inside: set[int] = set()

    def inside(self) -> bool:
        """Whether this thread holds the lock, or is between wanting and having it."""
        return threading.get_ident() in self._inside

    _is_owned = inside  # the name by which threading.Condition asks

    def later(self, act: Callable[[], object]) -> None:
        """Have `act` called by the holder, once it has released the lock."""
        self._later.append(act)

    def defer(self, act: Callable[[], object]) -> None:
        """Have a finalizer's `act` called once its thread is not inside any more."""
        self._deferred.append(act)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._inside.add(threading.get_ident())
        acquired = False
        try:
            acquired = self._lock.acquire(blocking, timeout)
        finally:
            # Waiting for a lock can be interrupted, by a signal or a greenlet's timeout.
            if not acquired:
                self._inside.discard(threading.get_ident())
                self._do_deferred()
        return acquired

    def release(self) -> None:
        acts, self._later = self._later, []
        self._lock.release()
        # Only now: the collector may run between any two of these lines.
        self._inside.discard(threading.get_ident())
        for act in acts:
            act()
        self._do_deferred()

    def _do_deferred(self) -> None:
        while self._deferred:
            # Another thread may have been quicker.
            with contextlib.suppress(IndexError):
                self._deferred.popleft()()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.release()
