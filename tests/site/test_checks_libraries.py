"""What `manage.py check` says of a pypdf with faults that are known."""

from __future__ import annotations

import configparser
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.checks import Warning as CheckWarning
from django.test import override_settings

from pdfpool_django.backends import local_checks
from tests.site.hosts import be_ordinary

ROOT = Path(__file__).resolve().parent.parent.parent
REQUIRED = ["Django>=5.2", "pypdf[crypto]>=7.1", 'pypdf[image]>=7.0; extra == "images"']


@pytest.fixture(autouse=True)
def ordinary_host(monkeypatch: pytest.MonkeyPatch) -> None:
    be_ordinary(monkeypatch)
    monkeypatch.setattr(local_checks.metadata, "requires", lambda name: REQUIRED)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Any:
    def check(version: str, **given: Any) -> list[CheckMessage]:
        monkeypatch.setattr(local_checks.metadata, "version", lambda name: version)
        with override_settings(PDFPOOL=given):
            return [each for each in run_checks(tags=["pdfpool"]) if each.id == "pdfpool.W009"]

    return check


@pytest.mark.parametrize("version", ["7.0", "7.0.9", "6.99", "7", "7.0.1.dev3", "0"])
def test_an_older_one_is_a_warning(version: str, checked: Any) -> None:
    (message,) = checked(version)
    assert isinstance(message, CheckWarning)
    assert message.msg.startswith(f"pypdf {version} is installed, and 7.1 or newer is needed")
    assert message.hint == f"Run: {sys.executable} -m pip install --upgrade pdfpool-django pypdf."


@pytest.mark.parametrize("version", ["7.1", "7.1.0", "7.10", "8", "7.1.2.post1", "10.0"])
def test_a_newer_one_is_none(version: str, checked: Any) -> None:
    assert checked(version) == []


def test_the_bound_is_the_distributions_own(checked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        local_checks.metadata, "requires", lambda name: ["pypdf[crypto]>=9.4.1,<11"]
    )
    (message,) = checked("9.4")
    assert "9.4.1 or newer" in message.msg


@pytest.mark.parametrize("required", [None, [], ["pypdf"], ["pypdfium2>=99", "Django>=99"]])
def test_without_a_bound_there_is_none(
    required: list[str] | None, checked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_checks.metadata, "requires", lambda name: required)
    assert checked("1.0") == []


def test_where_the_app_is_not_installed_there_is_none(
    checked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(local_checks.metadata, "requires", requires)
    assert checked("1.0") == []


def test_another_engine_is_not_judged_by_pypdf(checked: Any) -> None:
    assert checked("1.0", ENGINE="tests.engines.scripted") == []


def test_another_interpreters_libraries_are_not_known(checked: Any) -> None:
    assert checked("1.0", PYTHON="/usr/bin/python3") == []


def test_what_is_installed_here_is_new_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [each.id for each in run_checks(tags=["pdfpool"]) if each.id == "pdfpool.W009"] == []


def test_the_bound_in_our_own_requirements_is_understood() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    required = parser["options"]["install_requires"].split()
    assert [match[1] for each in required if (match := local_checks._BOUND.match(each))]
