"""A short soak, as `make soak` runs a long one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = int(os.environ.get("PDFPOOL_SOAK", "20"))


@pytest.mark.timeout(SECONDS + 200)
def test_under_load_and_kills_every_request_is_answered_and_nothing_is_left(tmp_path: Path) -> None:
    options = ["--seconds", str(SECONDS), "--clients", "12", "--every", "1", "--seed", "3"]
    plot = tmp_path / "soak.svg"
    found = subprocess.run(
        [sys.executable, "-m", "scripts.soak", *options, "--plot", str(plot)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    kills = dict(
        re.findall(r"^\| (child|launcher|worker) \| (\d+) \|$", found.stdout, re.MULTILINE)
    )
    assert sum(map(int, kills.values())) >= SECONDS / 3
    outcomes = set(re.findall(r"^\| `(\w+)` \|", found.stdout, re.MULTILINE))
    assert {"complete", "vanished", "file_too_large", "not_authenticated"} <= outcomes
    assert plot.read_text(encoding="utf-8").startswith("<svg")
