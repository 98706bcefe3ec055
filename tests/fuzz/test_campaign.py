"""A small campaign, as `make fuzz` runs it, and what one does with an input that fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.fuzz import campaign
from scripts.fuzz.judging import Verdict
from scripts.fuzz.seeds import Input, Seeds

ROOT = Path(__file__).resolve().parent.parent.parent
INPUTS = int(os.environ.get("PDFPOOL_FUZZ", "250"))


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.fuzz", *arguments]
    surroundings = {**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings"}
    return subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)


@pytest.mark.timeout(60 + INPUTS)
def test_hundreds_of_damaged_files_have_outcomes_of_the_table_and_leave_nothing(
    tmp_path: Path,
) -> None:
    found = fuzz("--number", str(INPUTS), "--seed", "20261201", "--keep", str(tmp_path))
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Nothing was left behind." in found.stdout
    assert "0 outside the table, 0 crashes of a child." in found.stdout, found.stdout
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+) \|$", found.stdout, re.MULTILINE))
    assert sum(int(count.replace(",", "")) for count in rows.values()) == INPUTS
    assert {"complete", "incomplete", "invalid_pdf"} <= set(rows)


def test_an_input_can_be_written_without_being_read(tmp_path: Path) -> None:
    found = fuzz("--number", "2", "--seed", "7", "--keep", str(tmp_path), "--write-only")
    assert found.returncode == 0
    assert (tmp_path / "7.pdf").read_bytes() == Seeds().input(7).data
    assert (tmp_path / "8.pdf").exists()


@pytest.fixture
def run(settings: Any) -> Any:
    settings.PDFPOOL = {}

    def run(reading: campaign.Read, count: int = 20) -> campaign.Report:
        return campaign.run(Seeds(), range(count), lambda damaged, verdict: None, reading)

    return run


def test_a_failing_input_makes_the_campaign_fail(run: Any) -> None:
    def read(damaged: Input) -> Verdict:
        return Verdict("raised", ("raised KeyError",) if damaged.number == 7 else ())

    report = run(read)
    assert not report.sound
    assert [damaged.number for damaged, _ in report.findings] == [7]
    assert report.outcomes == {"raised": 20}


def test_a_crash_is_kept_and_is_no_failure(run: Any) -> None:
    report = run(lambda damaged: Verdict("crashed", (), ("SIGSEGV",)), 1)
    assert report.sound
    assert len(report.noted) == 1


def test_what_is_left_makes_the_campaign_fail(run: Any) -> None:
    left: list[int] = []

    def read(damaged: Input) -> Verdict:
        left.append(os.open("/dev/zero", os.O_RDONLY))
        return Verdict("complete")

    try:
        report = run(read, 1)
        assert not report.sound
        assert report.leftovers == ["descriptors left: /dev/zero"]
    finally:
        for fd in left:
            os.close(fd)


def test_memory_that_grows_makes_the_campaign_fail(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter([100, 100 + campaign.GROWTH + 1])
    monkeypatch.setattr(campaign, "resident", lambda: next(sizes))
    report = run(lambda damaged: Verdict("complete"))
    assert report.leftovers == [
        f"memory left: 100 bytes early, {101 + campaign.GROWTH:,} at the end"
    ]
