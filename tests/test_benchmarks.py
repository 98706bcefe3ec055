"""Every benchmark runs; what it measures is for people to read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.__main__ import NAMES
from tests.docs_code import ROOT


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_says_what_it_has_measured(name: str) -> None:
    done = bench(name, "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert "times" in done.stdout or "The first request takes" in done.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["--rounds", "1"]])
def test_what_makes_no_sense_is_refused(arguments: list[str]) -> None:
    done = bench(*arguments)
    assert done.returncode == 2
    assert "the names are one_page" in done.stderr
