"""Every benchmark runs; what it measures is for people to read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import NAMES
from tests.docs_code import ROOT

pytestmark = pytest.mark.timeout(600)  # a machine may have other things to do


def bench(*arguments: str, tmp: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({} if tmp is None else {"TMPDIR": str(tmp)})
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
    )


def test_they_run_and_say_what_they_have_measured(tmp_path: Path) -> None:
    # It ends only when nobody holds its output any more: a process left behind would.
    done = bench("--rounds", "2", tmp=tmp_path)
    assert done.returncode == 0, done.stderr
    _, *parts = done.stdout.split("\n# ")
    assert [part.split("\n")[0] for part in parts] == list(NAMES)
    for part in parts:
        measured = "ratio\n" in part and (" times as " in part or "(aim " in part)
        assert measured or "not to be had here" in part, part
    assert list(tmp_path.iterdir()) == []


def test_one_alone_can_be_had() -> None:
    done = bench("system_calls", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("#")] == ["# system_calls"]


def test_a_name_that_is_unknown_is_refused_with_those_that_are() -> None:
    done = bench("memory", "nonsense")
    assert done.returncode == 2
    assert f"no benchmark 'nonsense'; the names are {', '.join(NAMES)}" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("rounds", ["1", "0", "-3"])
def test_too_few_rounds_are_refused(rounds: str) -> None:
    done = bench(f"--rounds={rounds}")
    assert done.returncode == 2
    assert "at least 2 rounds" in done.stderr
