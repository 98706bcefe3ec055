"""docs/settings.md tells of every setting and every check, as they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from django.core.checks import registry

import pdfpool_django
from pdfpool_django import conf
from pdfpool_django.checks import check_deployment, check_settings

PACKAGE = Path(pdfpool_django.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "settings.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n\n(.+?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
ROWS = re.findall(r"^\| `pdfpool\.([EW]\d{3})`( †)? \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
IDS = [row[0] for row in ROWS]
ID = re.compile(r"pdfpool\.([EW]\d{3})")


def emitted() -> set[str]:
    sources = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    return {found for source in sources for found in ID.findall(source)}


def test_every_setting_has_a_heading_and_no_other() -> None:
    assert set(SECTIONS) == set(conf._SETTINGS)
    assert len(re.findall(r"^### ", PAGE, re.MULTILINE)) == len(SECTIONS)


@pytest.mark.parametrize("key", conf._SETTINGS)
def test_its_default_is_the_real_one(key: str) -> None:
    (written,) = re.findall(r"^Default: `(.+)`$", SECTIONS[key], re.MULTILINE)
    assert eval(written, {"sys": sys}) == conf._SETTINGS[key][0]


@pytest.mark.parametrize("key", conf._SETTINGS)
def test_it_is_described(key: str) -> None:
    assert len(SECTIONS[key].splitlines()) >= 3


def test_every_id_is_in_the_table_once_and_no_other() -> None:
    assert set(IDS) == emitted()
    assert len(set(IDS)) == len(IDS)
    assert sorted(IDS) == IDS


def test_the_ids_elsewhere_on_the_page_exist() -> None:
    assert set(ID.findall(PAGE)) <= set(IDS)


@pytest.mark.parametrize("key", conf._SETTINGS)
def test_the_table_names_the_key_that_an_id_is_about(key: str) -> None:
    check_id = conf._SETTINGS[key][2].removeprefix("pdfpool.")
    (wrong,) = [row[2] for row in ROWS if row[0] == check_id]
    assert wrong.startswith(f"`{key}` ")


def test_what_is_for_deployments_only_is_marked() -> None:
    assert [row[0] for row in ROWS if row[1]] == ["W006", "W007"]
    assert check_settings in registry.registry.registered_checks
    assert check_deployment in registry.registry.deployment_checks
