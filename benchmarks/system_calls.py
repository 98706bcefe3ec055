"""What the filter of system calls costs a child, which is paid while it waits, and reading.

Run as a module with a number, it installs the filter in so many children, and prints how many
milliseconds each took.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import NoReturn

from benchmarks.one_page import PAUSE, document
from benchmarks.sandboxes import sandbox
from benchmarks.timing import in_turn, table, timing
from pdfpool_django import documents
from pdfpool_django.model import Limits
from pdfpool_django.sandbox import limits, seccomp
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox

AIM = 0.2
_MUCH = 2**40


def run(rounds: int) -> str:
    """Time the installing, and reading with the filter and without."""
    reason = seccomp.why_unavailable()
    if reason is not None:
        return f"The filter of system calls: not to be had here, {reason}."
    data = document()
    sandboxes = {
        "without the filter": sandbox(filtered=False),
        "with the filter": sandbox(filtered=True),
    }
    try:
        ways = {name: lambda one=one: _read(one, data) for name, one in sandboxes.items()}
        timings = in_turn(ways, rounds, between=lambda: time.sleep(PAUSE))
    finally:
        for one in sandboxes.values():
            one.close()
    installing = timing("installing it", _installs(max(2, rounds // 3)))
    without, with_filter = (each.median for each in timings)
    title = f"The filter of system calls, {rounds} rounds in turn, milliseconds"
    return (
        f"{table(title, timings)}\n"
        f"Reading takes {with_filter / without:.2f} times as long with it (aim: as long).\n"
        f"Installing takes {installing.median:.2f} ms (aim {AIM}), paid while the child waits."
    )


def _read(one: Sandbox, data: bytes) -> str:
    with from_bytes(data) as document_:
        session = documents.Session(one, document_, None, Limits())
        try:
            engine = one.stats().engine or ""
            return documents.read(
                session, None, document_.sha256, lambda: engine, lambda _: None
            ).text
        finally:
            session.close()


def _installs(count: int) -> list[float]:
    """Return the milliseconds that each took: in an interpreter without threads, which can fork."""
    command = [sys.executable, "-m", "benchmarks.system_calls", str(count)]
    out = subprocess.run(command, capture_output=True, check=True).stdout
    return [float(number) for number in out.split()]


def _install() -> float:
    """Return the milliseconds that installing takes in a forked process."""
    reading, writing = os.pipe()
    own_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        _install_and_tell(writing, own_pid)
    os.close(writing)
    with open(reading, "rb") as file:
        told = file.read()
    os.waitpid(pid, 0)
    return float(told)


def _install_and_tell(fd: int, parent: int) -> NoReturn:
    try:
        # The kernel takes a filter only from one who has given up new privileges.
        limits.confine(limits.ChildLimits(_MUCH, _MUCH, filtered=True), parent)
        start = time.perf_counter()
        seccomp.install()
        os.write(fd, str((time.perf_counter() - start) * 1000).encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    print(*(_install() for _ in range(int(sys.argv[1]))))
