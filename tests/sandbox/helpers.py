"""What the tests of children share: sandboxes, scripted documents, and watches on processes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pdfpool_django import documents
from pdfpool_django.documents import Session
from pdfpool_django.errors import Unavailable
from pdfpool_django.model import Event, Extraction, Limits, PageSelection
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Child, Sandbox, SandboxConfig

ROOT = Path(__file__).resolve().parent.parent.parent

LIMIT = 20.0
"""Seconds after which a test fails instead of waiting on."""

SLACK = 0.5
"""Seconds past a deadline within which its error must be there."""

MEMORY = 128 * 1024 * 1024
LIMITS = Limits(deadline=LIMIT, page_deadline=LIMIT, memory=MEMORY, max_pages=5000)
SCRIPTED = "tests.engines.scripted"


made: weakref.WeakSet[Sandbox] = weakref.WeakSet()
"""The sandboxes of this process's tests."""


def make_sandbox(engine: str = SCRIPTED, **changes: Any) -> Sandbox:
    options = {"python": sys.executable, "memory": MEMORY, "cpu": LIMIT, "standbys": 1}
    sandbox = Sandbox(SandboxConfig(engine=engine, **(options | changes)))
    made.add(sandbox)
    return sandbox


@contextmanager
def sandbox_of(engine: str = SCRIPTED, **changes: Any) -> Iterator[Sandbox]:
    sandbox = make_sandbox(engine, **changes)
    try:
        yield sandbox
    finally:
        sandbox.close()


def scripted(
    pages: Any = 1, at: Mapping[int, str] | None = None, say: Any = None, **script: Any
) -> bytes:
    """Return a document of the scripted engine."""
    return json.dumps({"pages": pages, "at": at or {}, "say": say or {}, **script}).encode()


def limits(**changes: Any) -> Limits:
    return replace(LIMITS, **changes)


def ignore(event: Event) -> None:
    """Take an event, and do nothing with it."""


def read(
    sandbox: Sandbox,
    data: bytes,
    limits: Limits = LIMITS,
    *,
    pages: str | None = None,
    publish: Callable[[Event], None] = ignore,
    on_session: Callable[[Session], None] | None = None,
) -> Extraction:
    """Read a document as a backend does."""
    with from_bytes(data) as document:
        session = Session(sandbox, document, None, limits)
        if on_session is not None:
            on_session(session)
        try:
            return documents.read(
                session,
                PageSelection.parse(pages),
                document.sha256,
                lambda: sandbox.stats().engine or "",
                publish,
            )
        finally:
            session.close()


def codes(extraction: Extraction) -> list[str | None]:
    """Return the error code of each page."""
    return [None if page.error is None else page.error["code"] for page in extraction.pages]


def eventually(condition: Callable[[], object], what: str, seconds: float = LIMIT) -> None:
    """Return as soon as `condition` holds."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until, f"not so within {seconds:g} s: {what}"
        pause.wait(0.001)


class Watch:
    """Processes whose ends are awaited; their numbers cannot be confused with later ones."""

    def __init__(self) -> None:
        self._fds: dict[int, int] = {}

    def add(self, *pids: int) -> None:
        for pid in pids:
            self._fds[os.pidfd_open(pid)] = pid

    def kill(self) -> None:
        for fd in self._fds:
            signal.pidfd_send_signal(fd, signal.SIGKILL)

    def await_ends(self, seconds: float = 1.0) -> None:
        """Return when all have ended, or fail."""
        until = time.monotonic() + seconds
        for fd, pid in self._fds.items():
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            ended = poll.poll(max(0, until - time.monotonic()) * 1000)
            assert ended, f"process {pid} is there {seconds:g} s later"

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for fd in self._fds:
            os.close(fd)


@contextmanager
def watching(*pids: int) -> Iterator[Watch]:
    with Watch() as watch:
        watch.add(*pids)
        yield watch


def kill_and_await(pid: int) -> None:
    with watching(pid) as watch:
        watch.kill()
        watch.await_ends()


def processes_under(pid: int) -> dict[int, str]:
    """Return the state of each process below this one, by its number (``man 5 proc``, stat)."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry)] = int(fields[1]), fields[0]
    found: dict[int, str] = {}
    below = {pid}
    while below:
        below = {child for child, (parent, _) in parents.items() if parent in below}
        found |= {child: parents[child][1] for child in below}
    return found


def open_descriptors() -> list[str]:
    """Return what this process has open, without what the listing itself opens."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
        found.append(target.split(":")[0])  # a socket's number differs from one to the next
    return sorted(found)


def standbys(sandbox: Sandbox) -> list[Child]:
    launcher = sandbox._launcher
    return [] if launcher is None else list(launcher.standbys)


def settle(sandbox: Sandbox) -> None:
    """Wait until the sandbox is as it was before its last document: standbys, and nothing else."""
    wanted = sandbox._config.standbys
    launcher = sandbox._launcher
    assert launcher is not None

    def settled() -> bool:
        with sandbox._changed:
            numbers = {child.pid for child in launcher.standbys}
        return len(numbers) == wanted and set(processes_under(launcher.pid)) == numbers

    eventually(settled, f"{wanted} standbys and no other process")
    assert not launcher.in_use


def refusals(sandbox: Sandbox, until: float) -> int:
    """Ask for children until that instant; return how often that was refused."""
    count = 0
    while time.monotonic() < until:
        assert not reads_again(sandbox)
        count += 1
        threading.Event().wait(0.01)
    return count


def reads_again(sandbox: Sandbox) -> bool:
    try:
        return read(sandbox, scripted(1)).complete
    except Unavailable:
        return False


class Call:
    """A call in a thread of its own."""

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(function, args, kwargs))
        self._thread.daemon = True
        self._thread.start()

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        try:
            self._value = function(*args, **kwargs)
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        error = self.error()
        if error is not None:
            raise error
        return self._value

    def error(self, seconds: float = LIMIT) -> BaseException | None:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"the call did not come back within {seconds:g} s"
        return self._error


def start_program(source: str, *arguments: str, python: str = sys.executable) -> subprocess.Popen:
    """Start a program that may import the package and these helpers, as a site would."""
    options = ["-X", "dev", "-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{source}"
    return subprocess.Popen(
        [python, *options, "-c", source, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def run_program(
    source: str, *arguments: str, python: str = sys.executable, seconds: float = LIMIT
) -> str:
    """Run a program to its end, and return what it printed. It may complain of nothing."""
    with start_program(source, *arguments, python=python) as program:
        try:
            out, complaints = program.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    assert program.returncode == 0, complaints
    # An unclosed file is one, and an exception that only a thread has seen is another.
    assert "Warning" not in complaints
    assert "Traceback" not in complaints
    return out
