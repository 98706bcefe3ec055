"""What the launcher and a standby take, beside a bare warm pair."""

from __future__ import annotations

import re
import time
from pathlib import Path

from benchmarks.bare_pair import BarePair
from benchmarks.one_page import document
from benchmarks.sandboxes import START_SECONDS, sandbox, use_one
from benchmarks.timing import table, timing
from pdfpool_django.sandbox.host import Sandbox

AIM = 1.2
KIB = 1024
MIB = 1024 * 1024

_STARTS = 3
_REHEARSAL_SECONDS = 0.3


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


def run(rounds: int) -> str:
    """Measure both, each with one child that waits, over a few starts."""
    starts = [_measured() for _ in range(min(rounds, _STARTS))]
    sizes = [
        timing(name, [start[name] / MIB for start in starts])
        for name in ("a bare warm pair", "launcher and standby")
    ]
    bare, ours = (each.median for each in sizes)
    title = f"Memory at rest, {len(starts)} starts, MiB of proportional set size"
    return f"{table(title, sizes)}\nOurs take {ours / bare:.2f} times as much (aim {AIM})."


def _measured() -> dict[str, int]:
    """Return the bytes of each, both alive: what all interpreters share is then parted alike."""
    ours = sandbox()
    try:
        use_one(ours)
        with BarePair() as pair:
            pair.read(document())
            pair.refill()
            launcher = _settled(ours)
            return {
                "a bare warm pair": sum(map(pss, tree(pair.pid))),
                "launcher and standby": sum(map(pss, tree(launcher))),
            }
    finally:
        ours.close()


def _settled(ours: Sandbox) -> int:
    """Wait until a standby has rehearsed; return the launcher's process id."""
    until = time.monotonic() + START_SECONDS
    while (stats := ours.stats()).standbys < 1 or stats.launcher_pid is None:
        if time.monotonic() > until:
            raise TimeoutError("the launcher has forked no standby")
        time.sleep(0.01)
    time.sleep(_REHEARSAL_SECONDS)
    return stats.launcher_pid
