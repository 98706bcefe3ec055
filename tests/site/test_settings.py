"""The settings: defaults, and what is said of those that are wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, Error, run_checks
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from pdfpool_django import conf
from pdfpool_django.model import MIB, Limits
from tests.site.hosts import be_ordinary

IDS = {
    "SLOTS": "pdfpool.E003",
    "QUEUE": "pdfpool.E004",
    "WAIT": "pdfpool.E005",
    "DEADLINE": "pdfpool.E006",
    "PAGE_DEADLINE": "pdfpool.E007",
    "MEMORY": "pdfpool.E008",
    "MAX_UPLOAD": "pdfpool.E009",
    "MAX_PAGES": "pdfpool.E010",
    "MAX_OUTPUT": "pdfpool.E011",
    "PAGE_WORKERS": "pdfpool.E012",
    "ENGINE": "pdfpool.E013",
    "CALLER": "pdfpool.E014",
    "CALLER_REQUESTS": "pdfpool.E015",
    "BACKEND": "pdfpool.E016",
    "PYTHON": "pdfpool.E017",
}
LEAST = {
    "SLOTS": 1,
    "QUEUE": 0,
    "MEMORY": 96 * MIB,
    "MAX_UPLOAD": 1,
    "MAX_PAGES": 1,
    "MAX_OUTPUT": 1,
    "PAGE_WORKERS": 1,
    "CALLER_REQUESTS": 1,
}
WHOLE = tuple(LEAST)
SECONDS = ("WAIT", "DEADLINE", "PAGE_DEADLINE")
DOTTED = ("ENGINE", "CALLER", "BACKEND")


@pytest.fixture(autouse=True)
def ordinary_host(monkeypatch: pytest.MonkeyPatch) -> None:
    be_ordinary(monkeypatch)


def checked(given: Any) -> list[CheckMessage]:
    with override_settings(PDFPOOL=given):
        return run_checks(tags=["pdfpool"])


def only(given: Any) -> CheckMessage:
    (message,) = checked(given)
    return message


# Sound settings


def test_nothing_needs_to_be_set() -> None:
    assert checked({}) == []


def test_the_defaults_are_those_that_are_documented() -> None:
    with override_settings(PDFPOOL={}):
        config = conf.load()
    backend = config.backend_config
    assert (backend.slots, backend.queue, backend.wait, backend.page_workers) == (2, 4, 10, 1)
    assert backend.limits == Limits(60, 20, 384 * MIB, 5000, 64 * MIB)
    assert backend.engine == "pdfpool_django.engines.pypdf"
    assert backend.python == sys.executable
    assert config.caller == "pdfpool_django.callers.authenticated_user"
    assert config.caller_requests == 4
    assert config.max_upload == 50 * MIB
    assert config.backend == "pdfpool_django.backends.local.LocalBackend"


def test_the_setting_itself_may_be_missing() -> None:
    with override_settings():
        del settings.PDFPOOL
        assert run_checks(tags=["pdfpool"]) == []
        assert conf.load().caller_requests == 4


@pytest.mark.parametrize(("key", "least"), [*LEAST.items(), ("WAIT", 0)])
def test_the_least_value_is_allowed(key: str, least: int) -> None:
    assert [message for message in checked({key: least}) if isinstance(message, Error)] == []


@pytest.mark.parametrize(
    "given",
    [
        {"WAIT": 0.5, "DEADLINE": 1e9, "PAGE_DEADLINE": 0.1},
        {"ENGINE": "tests.engines.scripted"},
        {"PYTHON": Path(sys.executable)},
        {"CALLER": "tests.site.callers.by_header"},
        {"MEMORY": 128 * MIB},
    ],
)
def test_sound_values_are_not_criticised(given: dict[str, Any]) -> None:
    assert checked(given) == []


def test_every_key_has_a_check() -> None:
    assert set(conf._SETTINGS) == set(IDS)


# Wrong ones

WRONG = [
    *((key, value) for key in WHOLE for value in ("2", 2.0, None, True, [], LEAST[key] - 1)),
    *((key, value) for key in SECONDS for value in ("2", None, True, -1, float("nan"))),
    *((key, float("inf")) for key in SECONDS),
    ("DEADLINE", 0),
    ("PAGE_DEADLINE", 0),
    *((key, value) for key in DOTTED for value in (7, None, "", "a b", "a..b", ".a", "a-b.c", len)),
    *(("PYTHON", value) for value in (7, None, "", "python", "./python", b"/bin/python")),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_wrong_value_is_an_error_that_names_the_key_and_the_cure(key: str, value: Any) -> None:
    message = only({key: value})
    assert isinstance(message, Error)
    assert message.id == IDS[key]
    assert message.msg.startswith(f"PDFPOOL['{key}'] must ")
    assert message.msg.endswith(f", but is {value!r}.")
    assert message.hint == f"Leave it out to have the default, {conf._SETTINGS[key][0]!r}."


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_wrong_value_is_never_used(key: str, value: Any) -> None:
    with override_settings(PDFPOOL={key: value}), pytest.raises(ImproperlyConfigured, match=key):
        conf.load()


@pytest.mark.parametrize("key", ["SLOT", "slots", "", 7])
def test_an_unknown_key_is_an_error_that_lists_the_known_ones(key: Any) -> None:
    message = only({key: 1})
    assert isinstance(message, Error)
    assert message.id == "pdfpool.E002"
    assert message.msg == f"PDFPOOL has an unknown key {key!r}."
    assert message.hint == f"The keys are: {', '.join(conf._SETTINGS)}."


@pytest.mark.parametrize("given", [None, [], "SLOTS=2", 7, [("SLOTS", 2)]])
def test_settings_that_are_no_dict_are_an_error(given: Any) -> None:
    message = only(given)
    assert isinstance(message, Error)
    assert message.id == "pdfpool.E001"
    assert message.msg == f"PDFPOOL must be a dict, not {type(given).__name__}."
    assert message.hint == "Write PDFPOOL = {} to have the defaults."


def test_every_mistake_is_told_at_once() -> None:
    messages = checked({"SLOTS": 0, "QUEUE": -1, "COLOUR": "red"})
    assert {message.id for message in messages} == {
        "pdfpool.E002",
        "pdfpool.E003",
        "pdfpool.E004",
    }


@pytest.mark.parametrize("path", ["no.such.module", "nowhere", "pdfpool_django.callers.nobody"])
@pytest.mark.parametrize(("key", "code"), [("CALLER", "E018"), ("BACKEND", "E019")])
def test_what_cannot_be_imported_is_an_error(key: str, code: str, path: str) -> None:
    message = only({key: path})
    assert isinstance(message, Error)
    assert message.id == f"pdfpool.{code}"
    assert message.msg.startswith(f"PDFPOOL['{key}'] cannot be imported: ")
    assert message.hint == "Write the dotted path of something that can."


@pytest.mark.parametrize("memory", [96 * MIB, 128 * MIB - 1])
def test_little_memory_is_a_warning(memory: int) -> None:
    message = only({"MEMORY": memory})
    assert isinstance(message, CheckWarning)
    assert message.id == "pdfpool.W001"
    assert "below 128 MiB" in message.msg
    assert message.hint == "Raise it; the default is 384 MiB."
