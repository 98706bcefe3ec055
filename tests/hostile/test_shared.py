"""The hostile files and the real ones beside the checkout, each against its right answer.

They are not part of the project: without them, nothing here is tested. The
deadlines are short, so that the files which meet one take less, and of the
real files a third is read. With ``PDFPOOL_TEST_ALL=1`` the deadlines are the
default ones, and all files are read.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from pdfpool_django import errors
from tests.hostile.outcomes import SHARED, Outcome, by_command, by_extract, by_view

LIMITS = {"memory_exceeded", "deadline_exceeded", "output_too_large", "too_many_pages"}
BROKEN = {"invalid_pdf", "not_a_pdf", "invalid_request"}
CODES = {each.code for each in errors.PdfPoolError.__subclasses__()} | {"not_attempted"}
OURS = {"internal_error", "unavailable", "busy", "caller_busy", "crashed"}

ALL = bool(os.environ.get("PDFPOOL_TEST_ALL"))
QUICK = {} if ALL else {"DEADLINE": 12, "PAGE_DEADLINE": 6, "MAX_OUTPUT": 8_000_000}
# By pypdf's own limits, while other engines read them.
REFUSED_BY_LIMITS = ("26fd407cdfe12ec6", "43c1918b7ec76877")
SHORTER_BY = 0.05
"""How much shorter than pypdf's the text may be: it has no control characters."""


def rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


HOSTILE = rows(SHARED / "hostile" / "manifest.csv")
CORPUS = rows(SHARED / "corpus" / "results.csv")


def test_the_files_are_beside_the_checkout() -> None:
    if not HOSTILE or not CORPUS:
        pytest.skip(f"there are no hostile files and no real ones in {SHARED}")


@pytest.fixture(scope="module", autouse=True)
def limits() -> Iterator[None]:
    with override_settings(PDFPOOL=QUICK):
        yield


def has_all(wanted: str, text: str) -> bool:
    return all(part in text for part in wanted.split("|") if part)


def has_none(unwanted: str, text: str) -> bool:
    # NUL, SURR and CTRL stand for what no text may have; `Outcome.unclean` tells of it.
    parts = set(unwanted.split("|")) - {"", "NUL", "SURR", "CTRL"}
    return not any(part in text for part in parts)


def is_right(row: dict[str, str], found: Outcome) -> bool:
    reads = found.complete and has_all(row["must"], found.text)
    answers = {
        "TEXT": reads,
        "TEXT_OR_ERR": reads or bool(found.codes),
        "TEXT_OR_EMPTY": found.complete,
        "EMPTY": found.complete and not found.text.strip(),
        "ERR_LIMIT": bool(found.codes & LIMITS),
        "ERR_INVALID": found.raised in BROKEN,
        "ERR_PASSWORD": found.raised == "password_required",
        "ERR_UNSUPPORTED": found.raised == "unsupported",
    }
    return answers[row["want"]] and has_none(row["mustnot"], found.text)


def check(row: dict[str, str], found: Outcome) -> None:
    assert is_right(row, found), f"{row['want']}: {found.text[:200]!r} {found}"
    assert found.unclean == ()
    assert found.codes <= CODES - OURS


every_file = pytest.mark.parametrize("row", HOSTILE, ids=[row["name"] for row in HOSTILE])


@every_file
def test_a_hostile_file_gets_its_right_answer(row: dict[str, str]) -> None:
    check(row, by_extract(SHARED / "hostile" / f"{row['name']}.pdf"))


@every_file
def test_the_view_gives_it(row: dict[str, str], member: Client) -> None:
    data = (SHARED / "hostile" / f"{row['name']}.pdf").read_bytes()
    check(row, by_view(member, data))


@every_file
def test_the_command_gives_it(row: dict[str, str]) -> None:
    check(row, by_command(SHARED / "hostile" / f"{row['name']}.pdf"))


SAMPLE = CORPUS if ALL else CORPUS[::3]


@pytest.mark.parametrize("row", SAMPLE, ids=[row["file"][:8] for row in SAMPLE])
def test_a_real_file_is_read_as_pypdf_reads_it(row: dict[str, str]) -> None:
    found = by_extract(SHARED / "corpus" / row["file"])
    assert found.codes <= CODES - OURS
    assert found.unclean == ()
    if row["pypdf_outcome"] == "ok":
        assert found.complete, found.codes
        assert found.page_count == int(row["pypdf_pages"])
        if "unmapped_text" not in found.warnings:
            assert len(found.text) >= int(row["pypdf_chars"]) * (1 - SHORTER_BY) - 20


@pytest.mark.parametrize("name", REFUSED_BY_LIMITS if CORPUS else ())
def test_a_file_that_pypdf_refuses_by_its_limits_is_read(name: str) -> None:
    row: dict[str, Any] = next(row for row in CORPUS if row["file"].startswith(name))
    assert "LimitReachedError" in row["pypdf_error"]
    found = by_extract(SHARED / "corpus" / row["file"])
    assert "memory_exceeded" not in found.codes
    assert found.page_count == int(row["pypdfium2_pages"])
    assert len(found.text) >= int(row["pypdfium2_chars"]) / 2
