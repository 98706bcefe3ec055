"""What the filter of system calls costs a child, which is paid while it waits, and reading."""

from __future__ import annotations

import os
import sys
import time

from benchmarks.one_page import PAUSE, document
from benchmarks.timing import in_turn, table, timing
from pdfpool_django import documents
from pdfpool_django.model import Limits
from pdfpool_django.sandbox import limits, seccomp
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox, SandboxConfig


def run(rounds: int) -> str:
    """Time the installing, and reading with the filter and without."""
    reason = seccomp.why_unavailable()
    if reason is not None:
        return f"The filter of system calls: not to be had here, {reason}."
    data = document()
    sandboxes = {
        "without the filter": _sandbox(filtered=False),
        "with the filter": _sandbox(filtered=True),
    }
    try:
        ways = {
            name: lambda sandbox=sandbox: _read(sandbox, data)
            for name, sandbox in sandboxes.items()
        }
        timings = in_turn(ways, rounds, between=lambda: time.sleep(PAUSE))
    finally:
        for sandbox in sandboxes.values():
            sandbox.close()
    installing = timing("installing it", [_install() for _ in range(max(2, rounds // 3))])
    without, with_filter = (each.median for each in timings)
    return (
        f"{table(f'The filter of system calls, {rounds} rounds in turn, milliseconds', timings)}\n"
        f"Reading takes {with_filter / without:.2f} times as long with it; installing takes "
        f"{installing.median:.2f} ms, while the child waits."
    )


def _sandbox(*, filtered: bool) -> Sandbox:
    allowed = Limits()
    return Sandbox(
        SandboxConfig(
            engine="pdfpool_django.engines.pypdf",
            python=sys.executable,
            memory=allowed.memory,
            cpu=allowed.deadline,
            standbys=1,
            filtered=filtered,
        )
    )


def _read(sandbox: Sandbox, data: bytes) -> str:
    with from_bytes(data) as document_:
        session = documents.Session(sandbox, document_, None, Limits())
        try:
            engine = sandbox.stats().engine or ""
            return documents.read(
                session, None, document_.sha256, lambda: engine, lambda _: None
            ).text
        finally:
            session.close()


def _install() -> float:
    """Return the milliseconds that installing takes in a forked process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        limits._prctl(limits.PR_SET_NO_NEW_PRIVS, 1)
        start = time.perf_counter()
        seccomp.install()
        os.write(writing, str((time.perf_counter() - start) * 1000).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        taken = float(file.read())
    os.waitpid(pid, 0)
    return taken
