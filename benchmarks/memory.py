"""What the launcher and a standby take, beside a bare warm pair."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from benchmarks.bare_pair import BarePair
from pdfpool_django.sandbox.host import Sandbox, SandboxConfig
from scripts.pdf_builder import simple_pdf

KIB = 1024
MIB = 1024 * 1024


def pss(pid: int) -> int:
    """Return a process's proportional set size in bytes (``man 5 proc``, smaps_rollup)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    if found is None:
        raise ValueError("the kernel tells no proportional set size")
    return int(found[1]) * KIB


def tree(pid: int) -> list[int]:
    """Return a process and those below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in tree(int(child)))]


def run(rounds: int) -> str:  # noqa: ARG001 - a size is not timed
    """Measure both, with one child that waits."""
    config = SandboxConfig(
        engine="pdfpool_django.engines.pypdf",
        python=sys.executable,
        memory=384 * MIB,
        cpu=60,
        standbys=1,
    )
    sandbox = Sandbox(config)
    try:
        sandbox.release(sandbox.child(time.monotonic() + 30))
        _settle(sandbox)
        launcher = sandbox.stats().launcher_pid
        with BarePair() as pair:
            pair.read(simple_pdf("A page"))
            pair.refill()
            bare = sum(pss(each) for each in tree(pair.pid))
        ours = sum(pss(each) for each in tree(launcher or 0))
    finally:
        sandbox.close()
    return (
        "Memory at rest, proportional set size\n"
        f"launcher and standby {ours / MIB:6.1f} MiB\n"
        f"a bare warm pair     {bare / MIB:6.1f} MiB\n"
        f"Ours take {ours / bare:.2f} times as much (aim 1.2)."
    )


def _settle(sandbox: Sandbox) -> None:
    until = time.monotonic() + 10
    while sandbox.stats().standbys < 1 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)  # while it rehearses
