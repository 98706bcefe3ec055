"""What the tests of handles share: documents of the scripted engine, opened, awaited, let go on."""

from __future__ import annotations

import gc
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pdfpool_django.documents import Document
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.engine import signal_of
from tests.sandbox.helpers import (
    LIMIT,
    Call,
    eventually,
    limits,
    open_descriptors,
    scripted,
    settle,
)
from tests.sandbox.rest import await_rest

ENGINE = "tests.handle.engine"
WAITS = "waits_here"
SOURCE = "a test's"


def text_of(*numbers: int) -> str:
    return "\f".join(f"text of page {number}" for number in numbers)


def handle(sandbox: Sandbox, data: bytes, *, workers: int = 2, **changes: Any) -> Document:
    """Open a document, to be closed by the test; see `opened`."""
    password = changes.pop("password", None)
    return Document(
        from_bytes(data),
        sandbox,
        source=SOURCE,
        password=password,
        limits=limits(**changes),
        workers=workers,
    )


@contextmanager
def opened(sandbox: Sandbox, data: bytes, **options: Any) -> Iterator[Document]:
    """Open a document; what a test that fails has left running does not keep the next one."""
    document = handle(sandbox, data, **options)
    try:
        yield document
    except BaseException:
        document.close(timeout=0)
        raise
    document.close()


def waiting_pages(count: int, *more: int, **script: Any) -> bytes:
    """Return a document whose first `count` pages wait, and some more do not."""
    return scripted(count + sum(more), dict.fromkeys(range(1, count + 1), WAITS), **script)


def children(sandbox: Sandbox) -> list[int]:
    """Return the processes that have been given out."""
    launcher = sandbox._launcher
    return [] if launcher is None else [child.pid for child in list(launcher.in_use.values())]


def waits_at(pid: int, place: int) -> bool:
    try:
        with open(f"/proc/{pid}/status") as status:
            about = dict(line.split(":", 1) for line in status)
    except OSError:
        return False
    if about["State"].split()[0] in "ZX":  # what it caught is told until it is reaped
        return False
    return bool(int(about["SigCgt"], 16) >> (signal_of(place) - 1) & 1)


def child_at(sandbox: Sandbox, place: int) -> int:
    """Return the child that waits at a page or in a call, as soon as one does."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [pid for pid in children(sandbox) if waits_at(pid, place)]
        return bool(found)

    eventually(look, f"a child at {place}")
    (pid,) = found
    return pid


def go_on(sandbox: Sandbox, *places: int) -> None:
    """Let go on who waits there."""
    for place in places:
        os.kill(child_at(sandbox, place), signal_of(place))


def await_waiting(document: Document, count: int = 1) -> None:
    """Return as soon as so many wait to be let into the document."""
    eventually(lambda: len(document._access._waiters) == count, f"{count} that wait for access")


def await_without_reader(document: Document, count: int = 1) -> None:
    """Return as soon as so many reads wait until a reader is free."""
    waiters = document._readers._changed._waiters  # type: ignore[attr-defined]
    eventually(lambda: len(waiters) == count, f"{count} that wait for a reader")


def reads_on(document: Document, number: int = 1) -> bool:
    """Whether both readers read, each the page that it is asked for."""
    with document._readers._changed:
        free = len(document._readers._free)
    assert free == document._workers
    return document.page(number).text() == text_of(number)


def in_a_fork(function: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked process, as JSON has it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:  # nothing of the test may go on here
        status = 1
        try:
            os.close(reading)
            os.write(writing, json.dumps(function()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    call = Call(_read_to_end, reading)
    try:
        said = call.result()
    except BaseException:
        os.kill(pid, 9)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(reading)
    assert status == 0, "the forked process failed"
    return json.loads(said)


def _read_to_end(fd: int) -> bytes:
    return b"".join(iter(lambda: os.read(fd, 65536), b""))


@contextmanager
def a_forked_process() -> Iterator[int]:
    """Have a process around that was forked from this one and holds what this one held."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        yield pid
    finally:
        os.close(writing)
        os.waitpid(pid, 0)


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Return what each function returned, or the error that it raised; all begin at once."""
    barrier = threading.Barrier(len(functions))

    def run(function: Callable[[], Any]) -> Any:
        barrier.wait(LIMIT)
        try:
            return function()
        except Exception as error:
            return error

    calls = [Call(run, function) for function in functions]
    return [call.result() for call in calls]


@contextmanager
def nothing_left(sandbox: Sandbox) -> Iterator[None]:
    """After the block there is no child, descriptor or thread that was not there before."""
    await_rest()
    settle(sandbox)
    threads, descriptors = _threads(), _descriptors()
    yield
    # Of those that were forgotten their launcher's report takes note.
    eventually(lambda: children(sandbox) == [], "no child in use")
    settle(sandbox)
    eventually(lambda: not _threads() - threads, "no thread that is left")
    assert not _descriptors() - descriptors


def _descriptors() -> Counter[str]:
    gc.collect()
    return Counter(open_descriptors())


def _threads() -> Counter[str]:
    """Count the threads by their names, numbers in them apart."""
    return Counter(re.sub(r"\d+", "N", thread.name) for thread in threading.enumerate())
