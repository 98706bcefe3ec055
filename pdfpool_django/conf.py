"""The settings: the one place that reads ``settings.PDFPOOL``."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.shortcuts import resolve_url

from pdfpool_django.backends.base import BackendConfig
from pdfpool_django.model import MIB, Limits

MIN_MEMORY = 96 * MIB


@dataclass(frozen=True, slots=True)
class Problem:
    """A way in which the settings are wrong."""

    id: str
    """Of Django's check."""
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Config:
    """The settings, checked and with their defaults."""

    backend: str
    """Dotted path of the backend's class."""
    backend_config: BackendConfig
    caller: str
    """Dotted path of the function that names a request's caller."""
    caller_requests: int
    """Open requests that one caller may have."""
    max_upload: int
    """Bytes of an uploaded file."""


def _whole(minimum: int) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        return None if value >= minimum else f"must be at least {minimum}"

    return check


def _seconds(minimum: float, *, open_end: bool = False) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            return "must be a number of seconds"
        if math.isinf(value):
            return "must be finite"
        too_small = value <= minimum if open_end else value < minimum
        return (
            f"must be {'more than' if open_end else 'at least'} {minimum:g}" if too_small else None
        )

    return check


def _dotted(value: Any) -> str | None:
    if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")):
        return "must be a dotted path, as a string"
    return None


def _path(value: Any) -> str | None:
    if not isinstance(value, (str, os.PathLike)) or not os.path.isabs(value):
        return "must be the absolute path of a Python interpreter"
    return None


# The default, what is wrong with a value, and the id of the check that says so.
_SETTINGS: Mapping[str, tuple[Any, Callable[[Any], str | None], str]] = {
    "SLOTS": (2, _whole(1), "pdfpool.E003"),
    "QUEUE": (4, _whole(0), "pdfpool.E004"),
    "WAIT": (10, _seconds(0), "pdfpool.E005"),
    "DEADLINE": (60, _seconds(0, open_end=True), "pdfpool.E006"),
    "PAGE_DEADLINE": (20, _seconds(0, open_end=True), "pdfpool.E007"),
    "MEMORY": (384 * MIB, _whole(MIN_MEMORY), "pdfpool.E008"),
    "MAX_UPLOAD": (50 * MIB, _whole(1), "pdfpool.E009"),
    "MAX_PAGES": (5000, _whole(1), "pdfpool.E010"),
    "MAX_OUTPUT": (64 * MIB, _whole(1), "pdfpool.E011"),
    "PAGE_WORKERS": (1, _whole(1), "pdfpool.E012"),
    "ENGINE": ("pypdf", _dotted, "pdfpool.E013"),
    "CALLER": ("pdfpool_django.callers.authenticated_user", _dotted, "pdfpool.E014"),
    "CALLER_REQUESTS": (4, _whole(1), "pdfpool.E015"),
    "BACKEND": ("pdfpool_django.backends.local.LocalBackend", _dotted, "pdfpool.E016"),
    "PYTHON": (sys.executable, _path, "pdfpool.E017"),
}


def problems() -> list[Problem]:
    """Return everything that is wrong with the settings."""
    given = getattr(settings, "PDFPOOL", {})
    if not isinstance(given, Mapping):
        message = f"PDFPOOL must be a dict, not {type(given).__name__}."
        return [Problem("pdfpool.E001", message, "Write PDFPOOL = {} to have the defaults.")]
    found = [_unknown(key) for key in given if key not in _SETTINGS]
    for key, (default, check, check_id) in _SETTINGS.items():
        value = given.get(key, default)
        wrong = check(value)
        if wrong is not None:
            message = f"PDFPOOL[{key!r}] {wrong}, but is {value!r}."
            found.append(Problem(check_id, message, _hint(key)))
        elif key == "PYTHON" and not _is_python(value):
            found.append(_not_python(value))
    return found


def _unknown(key: object) -> Problem:
    known = ", ".join(_SETTINGS)
    message = f"PDFPOOL has an unknown key {key!r}."
    return Problem("pdfpool.E002", message, f"The keys are: {known}.")


def _hint(key: str) -> str:
    default, check, _ = _SETTINGS[key]
    if check(default) is not None:  # `sys.executable` where Python is embedded in a server
        return _PYTHON_HINT
    return f"Leave it out to have the default, {default!r}."


_PYTHON_HINT = (
    "Write the path of the interpreter that has the site's packages, such as "
    "'/srv/site/venv/bin/python'. The default is sys.executable, which is the server's own "
    "program under uWSGI and mod_wsgi."
)
_PYTHON_NAME = re.compile(r"\.?(?:python|pypy|graalpy)", re.IGNORECASE)


def _is_python(path: str | os.PathLike[str]) -> bool:
    """Whether a program is called like an interpreter; running it would tell, and take its time."""
    paths = (path, os.path.realpath(path)) if os.path.islink(path) else (path,)
    return any(_PYTHON_NAME.match(os.path.basename(each)) for each in paths)


def _not_python(path: str | os.PathLike[str]) -> Problem:
    message = f"PDFPOOL['PYTHON'] is {os.fspath(path)!r}, which is no Python interpreter."
    return Problem("pdfpool.E023", message, _PYTHON_HINT)


def is_given(key: str) -> bool:
    """Whether the site has set the key itself."""
    return key in getattr(settings, "PDFPOOL", {})


def engine_module(name: str) -> str:
    """Return the module of an engine: one of ours by its short name, another by its path."""
    return name if "." in name else f"pdfpool_django.engines.{name}"


def load() -> Config:
    """Return the settings as they are now.

    Raises:
        ImproperlyConfigured: They are wrong.
    """
    found = problems()
    if found:
        raise ImproperlyConfigured(" ".join(f"{each.message} {each.hint}" for each in found))
    given = getattr(settings, "PDFPOOL", {})
    value = {key: given.get(key, default) for key, (default, *_) in _SETTINGS.items()}
    return Config(
        backend=value["BACKEND"],
        backend_config=BackendConfig(
            slots=value["SLOTS"],
            queue=value["QUEUE"],
            wait=value["WAIT"],
            limits=Limits(
                deadline=value["DEADLINE"],
                page_deadline=value["PAGE_DEADLINE"],
                memory=value["MEMORY"],
                max_pages=value["MAX_PAGES"],
                max_output=value["MAX_OUTPUT"],
            ),
            engine=engine_module(value["ENGINE"]),
            python=os.fspath(value["PYTHON"]),
            page_workers=value["PAGE_WORKERS"],
        ),
        caller=value["CALLER"],
        caller_requests=value["CALLER_REQUESTS"],
        max_upload=value["MAX_UPLOAD"],
    )


def login_url() -> str:
    """Return the path at which people log in."""
    return quote(resolve_url(settings.LOGIN_URL), safe="/:?&=%#")


def upload_memory() -> int:
    """Return how many bytes of an upload stay in memory, at most."""
    return settings.FILE_UPLOAD_MAX_MEMORY_SIZE


def upload_directory() -> str | None:
    """Return the folder of an upload's temporary file; ``None`` for the system's."""
    return settings.FILE_UPLOAD_TEMP_DIR
