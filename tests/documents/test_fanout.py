"""The pages of one document read by several children at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pdfpool_django import documents, errors
from pdfpool_django.documents import Budget, Session, Stopped
from pdfpool_django.documents.reading import AHEAD
from pdfpool_django.model import Event, Extraction, Limits, Page, PageSelection
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox
from tests.sandbox.helpers import (
    LIMIT,
    LIMITS,
    Call,
    codes,
    eventually,
    ignore,
    limits,
    processes_under,
    sandbox_of,
    scripted,
    settle,
    watching,
)

WAITS = "waits_for_a_signal"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with sandbox_of(standbys=2) as sandbox:
        yield sandbox


@pytest.fixture(autouse=True)
def nothing_left(sandbox: Sandbox) -> Iterator[None]:
    yield
    settle(sandbox)
    assert [each for each in threading.enumerate() if each.name == "pdfpool-page"] == []


def read_by(
    sandbox: Sandbox,
    data: bytes,
    count: int = 2,
    given: Limits = LIMITS,
    *,
    pages: str | None = None,
    publish: Any = ignore,
    on_sessions: Any = lambda sessions: None,
) -> Extraction:
    """Read a document by so many sessions."""
    budget = Budget(given)
    with from_bytes(data) as document:
        sessions = [Session(sandbox, document, None, given, budget) for _ in range(count)]
        on_sessions(sessions)
        try:
            return documents.read(
                sessions[0],
                PageSelection.parse(pages),
                document.sha256,
                lambda: sandbox.stats().engine or "",
                publish,
                helpers=sessions[1:],
            )
        finally:
            for session in sessions:
                session.close()


def children_in_use(sandbox: Sandbox) -> list[int]:
    launcher = sandbox._launcher  # there is none before the first child is asked for
    return [] if launcher is None else [child.pid for child in list(launcher.in_use.values())]


def children_at_their_page(sandbox: Sandbox, count: int) -> list[int]:
    """Return the children that have their handler installed, once there are so many."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [pid for pid in children_in_use(sandbox) if waits(pid)]
        return len(found) == count

    eventually(look, f"{count} children at their page")
    return list(found)


def waits(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status") as status:
            (caught,) = [line.split()[1] for line in status if line.startswith("SigCgt:")]
    except OSError:
        return False
    return bool(int(caught, 16) >> (signal.SIGUSR1 - 1) & 1)


@pytest.mark.parametrize("count", [2, 3])
def test_the_result_is_that_of_one_session(sandbox: Sandbox, count: int) -> None:
    data = scripted(20)
    alone, together = read_by(sandbox, data, 1), read_by(sandbox, data, count)
    assert together.pages == alone.pages
    assert together.complete
    assert [page.number for page in together.pages] == list(range(1, 21))


def test_two_pages_are_read_at_the_same_time(sandbox: Sandbox) -> None:
    call = Call(lambda: read_by(sandbox, scripted(4, {1: WAITS, 2: WAITS})))
    for pid in children_at_their_page(sandbox, 2):
        os.kill(pid, signal.SIGUSR1)
    assert codes(call.result()) == [None] * 4


def test_a_page_that_takes_long_does_not_keep_the_others_waiting(sandbox: Sandbox) -> None:
    published: list[Event] = []
    call = Call(lambda: read_by(sandbox, scripted(12, {1: WAITS}), publish=published.append))
    (pid,) = children_at_their_page(sandbox, 1)
    eventually(lambda: launcher_idle_but(sandbox, pid), "every other page read")
    assert not any(isinstance(event, Page) for event in published)
    os.kill(pid, signal.SIGUSR1)
    assert [page.number for page in call.result().pages] == list(range(1, 13))
    pages = [event for event in published if isinstance(event, Page)]
    assert [page.number for page in pages] == list(range(1, 13))


def launcher_idle_but(sandbox: Sandbox, waiting: int) -> bool:
    """Whether the other child sleeps, with nothing to read any more."""
    launcher = sandbox._launcher
    assert launcher is not None
    states = processes_under(launcher.pid)
    others = [child.pid for child in list(launcher.in_use.values()) if child.pid != waiting]
    return len(others) == 1 and states.get(others[0]) == "S"


def test_no_session_runs_far_ahead_of_what_is_taken(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    most: list[int] = []
    pages = Session.pages

    def counted(session: Session, ranges: Any) -> Iterator[Page]:
        begun.append(ranges[0].start)
        return pages(session, ranges)

    def look(event: Event) -> None:
        if isinstance(event, Page) and event.number in (1, 100):
            ahead = event.number + 2 * AHEAD
            eventually(lambda: len(begun) == ahead, "as many pages as may be ahead")
            most.append(max(begun))

    monkeypatch.setattr(Session, "pages", counted)
    assert read_by(sandbox, scripted(300), publish=look).complete
    assert most == [1 + 2 * AHEAD, 100 + 2 * AHEAD]
    assert sorted(begun) == list(range(1, 301))


def test_selected_pages_only(sandbox: Sandbox) -> None:
    extraction = read_by(sandbox, scripted(30), 3, pages="2,5-7,29-")
    assert [page.number for page in extraction.pages] == [2, 5, 6, 7, 29, 30]


def test_one_page_needs_one_child(sandbox: Sandbox) -> None:
    before = sandbox.stats().children_used
    assert read_by(sandbox, scripted(9), 3, pages="4").complete
    assert sandbox.stats().children_used == before + 1


def test_a_lost_page_costs_no_other(sandbox: Sandbox) -> None:
    extraction = read_by(sandbox, scripted(8, {3: "segfaults", 6: "eats_memory"}), 2)
    expected: list[str | None] = [None] * 8
    expected[2], expected[5] = "crashed", "memory_exceeded"
    assert codes(extraction) == expected
    assert not extraction.complete


def test_after_three_lost_pages_no_session_reads_on(sandbox: Sandbox) -> None:
    lost = dict.fromkeys(range(1, 60), "segfaults")
    with pytest.raises(errors.Crashed):
        read_by(sandbox, scripted(60, lost), 2)
    mixed = read_by(sandbox, scripted(200, {2: "segfaults", 3: "segfaults", 4: "segfaults"}), 2)
    assert "not_attempted" in codes(mixed)
    assert mixed.error is not None
    assert mixed.error["code"] == "crashed"


def test_the_output_is_limited_over_all_sessions(sandbox: Sandbox) -> None:
    extraction = read_by(sandbox, scripted(20), 2, limits(max_output=60))
    assert extraction.error is not None
    assert extraction.error["code"] == "output_too_large"
    assert sum(len(page.text) for page in extraction.pages) <= 60


def test_the_deadline_spans_all_sessions(sandbox: Sandbox) -> None:
    data = scripted(6, {2: "hangs", 3: "hangs"})
    extraction = read_by(sandbox, data, 2, limits(deadline=1.0, page_deadline=LIMIT))
    assert extraction.error is not None
    assert extraction.error["code"] == "deadline_exceeded"
    assert codes(extraction)[0] is None


def test_stopping_ends_every_child(sandbox: Sandbox) -> None:
    found: list[Session] = []
    data = scripted(4, {1: "hangs", 2: "hangs"})
    call = Call(lambda: read_by(sandbox, data, on_sessions=found.extend))
    eventually(lambda: len(children_in_use(sandbox)) == 2, "two children in use")
    with watching(*children_in_use(sandbox)) as watch:
        for session in found:
            session.stop()
        with pytest.raises(Stopped):
            call.result()
        watch.await_ends()


def test_a_thread_that_cannot_be_started_leaves_nothing(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def refuse_the_second(thread: threading.Thread) -> None:
        if thread.name == "pdfpool-page":
            started.append(thread)
            if len(started) == 2:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_second)
    with pytest.raises(RuntimeError):
        read_by(sandbox, scripted(50))
    assert not started[0].is_alive()
