"""Each kind of hostile file gets its right answer, whichever way it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from pdfpool_django.extraction import extract
from scripts.hostile_builder import KINDS, LIMITS, MIB, THIRD, Kind
from scripts.hostile_report import watched
from tests.hostile.outcomes import ROOT, Outcome, by_command, by_extract, by_view

SMALL = 256 * MIB
FLAT = 8 * MIB
"""By how much the web process may grow, the text apart that it keeps."""
WARM = (ROOT / "example_project" / "samples" / "invoice.pdf").read_bytes()


def complaints(wanted: Kind, found: Outcome) -> list[str]:
    """Return in what the outcome is not what is wanted."""
    missing = [text for text in wanted.text if text not in found.text]
    surplus = [text for text in wanted.without if text in found.text]
    said = [f"lacks {text!r}" for text in missing] + [f"has {text!r}" for text in surplus]
    if wanted.errors and not wanted.errors & found.codes:
        said.append(f"{set(found.codes) or 'no error'} is none of {set(wanted.errors)}")
    if not wanted.errors and not found.complete:
        said.append(f"not complete: {set(found.codes)}")
    if not wanted.warnings <= found.warnings:
        said.append(f"does not warn of {set(wanted.warnings - found.warnings)}")
    return said + [f"unclean: {text!r}" for text in found.unclean]


@pytest.fixture
def limits(settings: Any) -> Callable[..., None]:
    def limit(**changes: object) -> None:
        settings.PDFPOOL = changes

    return limit


every_kind = pytest.mark.parametrize("wanted", KINDS, ids=[each.name for each in KINDS])


@every_kind
def test_a_kind_gets_its_right_answer(wanted: Kind, limits: Callable[..., None]) -> None:
    limits(**wanted.limits)
    found = by_extract(wanted.build())
    assert complaints(wanted, found) == [], f"{found.text[:200]!r} {found}"


@every_kind
def test_the_view_gives_it(wanted: Kind, limits: Callable[..., None], member: Client) -> None:
    limits(**wanted.limits)
    found = by_view(member, wanted.build())
    assert complaints(wanted, found) == [], f"{found.text[:200]!r} {found}"


@every_kind
def test_the_command_gives_it(wanted: Kind, limits: Callable[..., None], tmp_path: Path) -> None:
    limits(**wanted.limits)
    path = tmp_path / "file.pdf"
    path.write_bytes(wanted.build())
    found = by_command(path)
    assert complaints(wanted, found) == [], f"{found.text[:200]!r} {found}"


COSTLY = [each for each in KINDS if each.errors & LIMITS]


@pytest.mark.parametrize("wanted", COSTLY, ids=[each.name for each in COSTLY])
def test_a_costly_kind_costs_its_child_only(wanted: Kind, limits: Callable[..., None]) -> None:
    limits(MEMORY=SMALL, **wanted.limits)
    data = wanted.build()
    by_extract(WARM)  # starts the launcher
    with watched() as peaks:
        found = by_extract(data)
    assert complaints(wanted, found) == []
    assert peaks.child <= SMALL + 16 * MIB
    assert peaks.own - peaks.before < FLAT + 8 * len(found.text)


@pytest.mark.parametrize("how", THIRD)
def test_the_pages_around_one_that_goes_wrong_are_read(
    how: str, limits: Callable[..., None]
) -> None:
    build, code = THIRD[how]
    limits(PAGE_DEADLINE=2, MEMORY=128 * MIB)
    extraction = extract(build(), caller="test")
    texts = [page.text.strip() for page in extraction.pages]
    assert texts[:2] + texts[3:] == ["page 1", "page 2", "page 4", "page 5"]
    assert [page.error and page.error["code"] for page in extraction.pages] == [
        *(None, None, code, None, None)
    ]
    assert not extraction.complete
    assert extraction.error is None
