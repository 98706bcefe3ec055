"""What is wrong with the settings, said when the site starts."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.utils.module_loading import import_string

from pdfpool_django import conf
from pdfpool_django.model import MIB

_COMFORTABLE_MEMORY = 128 * MIB

_IDS = {
    "PDFPOOL": "E001",
    "SLOTS": "E003",
    "QUEUE": "E004",
    "WAIT": "E005",
    "DEADLINE": "E006",
    "PAGE_DEADLINE": "E007",
    "MEMORY": "E008",
    "MAX_UPLOAD": "E009",
    "MAX_PAGES": "E010",
    "MAX_OUTPUT": "E011",
    "PAGE_WORKERS": "E012",
    "ENGINE": "E013",
    "CALLER": "E014",
    "CALLER_REQUESTS": "E015",
    "BACKEND": "E016",
    "PYTHON": "E017",
}
_UNKNOWN_KEY = "E002"
_CANNOT_BE_IMPORTED = {"CALLER": "E018", "BACKEND": "E019"}


def check_settings(**_: Any) -> list[CheckMessage]:
    """Return an error for each way in which ``PDFPOOL`` is wrong."""
    found = conf.problems()
    if found:
        return [
            Error(each.message, hint=each.hint, id=f"pdfpool.{_IDS.get(each.key, _UNKNOWN_KEY)}")
            for each in found
        ]
    config = conf.load()
    return [
        *_check_import("CALLER", config.caller),
        *_check_import("BACKEND", config.backend),
        *_check_memory(config),
        *_check_backend(config),
    ]


def _check_import(key: str, path: str) -> list[CheckMessage]:
    try:
        import_string(path)
    except ImportError as error:
        return [
            Error(
                f"PDFPOOL[{key!r}] cannot be imported: {error}",
                hint="Write the dotted path of something that can.",
                id=f"pdfpool.{_CANNOT_BE_IMPORTED[key]}",
            )
        ]
    return []


def _check_backend(config: conf.Config) -> list[CheckMessage]:
    """Return what the backend finds wrong; a host that lacks something is still one that works."""
    try:
        backend = import_string(config.backend)(config.backend_config)
    except ImportError:
        return []  # said already
    return [
        CheckWarning(each.message, hint=each.hint, id="pdfpool.W002") for each in backend.check()
    ]


def _check_memory(config: conf.Config) -> list[CheckMessage]:
    if config.backend_config.limits.memory >= _COMFORTABLE_MEMORY:
        return []
    return [
        CheckWarning(
            "PDFPOOL['MEMORY'] is below 128 MiB, which some ordinary files need.",
            hint="Raise it; the default is 384 MiB.",
            id="pdfpool.W001",
        )
    ]
