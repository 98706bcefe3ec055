"""What is wrong with the settings and with this host, said when the site starts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.utils.module_loading import import_string

from pdfpool_django import conf
from pdfpool_django.backends.base import Backend, Problem
from pdfpool_django.model import MIB

_COMFORTABLE_MEMORY = 128 * MIB


def check_settings(**_: Any) -> list[CheckMessage]:
    """Return an error for each way in which ``PDFPOOL`` is wrong, and what a host lacks for it."""
    found = conf.problems()
    if found:
        return [Error(each.message, hint=each.hint, id=each.id) for each in found]
    config = conf.load()
    return [
        *_check_caller(config.caller),
        *_check_memory(config),
        *_check_page_deadline(config),
        *_check_backend(config, deployment=False),
    ]


def check_deployment(**_: Any) -> list[CheckMessage]:
    """Return what matters in production only (``manage.py check --deploy``)."""
    if conf.problems():
        return []  # said by the other check
    found = _check_backend(conf.load(), deployment=True)
    return [each for each in found if isinstance(each, CheckWarning)]


def _check_caller(path: str) -> Iterator[CheckMessage]:
    try:
        function = import_string(path)
    except Exception as error:  # noqa: BLE001 - a site's module may raise anything
        yield _cannot_be_imported("CALLER", error, "pdfpool.E018")
        return
    if not callable(function):
        yield Error(
            f"PDFPOOL['CALLER'] names {path}, which cannot be called.",
            hint="Name a function that takes the request and returns its caller's name, or None.",
            id="pdfpool.E024",
        )
    elif inspect.iscoroutinefunction(function):
        yield Error(
            f"PDFPOOL['CALLER'] names {path}, which is async.",
            hint="Name a function that returns the caller's name, and not a coroutine.",
            id="pdfpool.E027",
        )


def _cannot_be_imported(key: str, error: Exception, check_id: str) -> CheckMessage:
    why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
    return Error(
        f"PDFPOOL[{key!r}] cannot be imported: {why}",
        hint="Write the dotted path of something that can.",
        id=check_id,
    )


def _check_memory(config: conf.Config) -> Iterator[CheckMessage]:
    if config.backend_config.limits.memory < _COMFORTABLE_MEMORY:
        yield CheckWarning(
            "PDFPOOL['MEMORY'] is below 128 MiB, which some ordinary files need.",
            hint="Raise it; the default is 384 MiB.",
            id="pdfpool.W001",
        )


def _check_page_deadline(config: conf.Config) -> Iterator[CheckMessage]:
    """Warn of a limit that is never met; a default one is meant for the default `DEADLINE`."""
    limits = config.backend_config.limits
    if conf.is_given("PAGE_DEADLINE") and limits.page_deadline > limits.deadline:
        yield CheckWarning(
            f"PDFPOOL['PAGE_DEADLINE'] is {limits.page_deadline:g} seconds and never met, as the "
            f"whole document has {limits.deadline:g} (DEADLINE).",
            hint="Lower PAGE_DEADLINE, so that one page cannot take the time of all; or leave it "
            "out.",
            id="pdfpool.W004",
        )


def _check_backend(config: conf.Config, *, deployment: bool) -> Iterator[CheckMessage]:
    """Yield what is wrong with the backend, then what it finds wrong itself."""
    try:
        backend_class = import_string(config.backend)
    except Exception as error:  # noqa: BLE001 - a site's module may raise anything
        yield _cannot_be_imported("BACKEND", error, "pdfpool.E019")
        return
    if not (isinstance(backend_class, type) and issubclass(backend_class, Backend)):
        yield Error(
            f"PDFPOOL['BACKEND'] names {config.backend}, which is no backend.",
            hint="Name a subclass of pdfpool_django.backends.base.Backend.",
            id="pdfpool.E025",
        )
        return
    try:
        found: list[Problem] = backend_class(config.backend_config).check()
    except Exception as error:  # noqa: BLE001 - a site's class may raise anything
        yield Error(
            f"PDFPOOL['BACKEND'] names {config.backend}, which cannot be made or cannot check "
            f"itself: {type(error).__name__}: {error}",
            hint="Mend the class, or leave BACKEND out to have the default.",
            id="pdfpool.E026",
        )
        return
    yield from (_message(each) for each in found if each.deployment is deployment)


def _message(problem: Problem) -> CheckMessage:
    is_error = problem.id.rpartition(".")[2].startswith("E")
    return (Error if is_error else CheckWarning)(problem.message, hint=problem.hint, id=problem.id)
