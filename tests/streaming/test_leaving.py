"""Readers that come late, stop reading, and go away."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from pdfpool_django import callers, runtime
from pdfpool_django.model import DocumentInfo
from tests.sandbox.helpers import Call, eventually, watching
from tests.site.helpers import (
    assert_reads_on,
    await_children,
    child_ends,
    hanging,
    release,
    script,
    waiting,
)
from tests.streaming.conftest import assert_nothing_is_open
from tests.streaming.ways import AsyncWay, Reader, Way


def open_requests() -> dict[str, int]:
    return dict(callers.open_requests()._open)


def begun(reader: Reader) -> Reader:
    assert [reader.line()["type"] for _ in range(2)] == ["document", "page"]
    return reader


# Joining


def test_who_joins_late_gets_the_earlier_pages_first_and_then_the_same(way: Way) -> None:
    data = waiting("joined", 4, 3)
    early = way.read(data, "a")
    assert [early.line().get("number") for _ in range(3)] == [None, 1, 2]
    late = way.read(data, "b")
    assert [late.line().get("number") for _ in range(3)] == [None, 1, 2]
    assert runtime.state().running == 1
    release(*await_children())
    assert early.lines() == late.lines()


def test_who_joins_a_stream_for_json_gets_the_whole(way: Way) -> None:
    data = waiting("joined for JSON", 3, 3)
    reader = begun(way.read(data, "a"))
    call = Call(way.ask, data, "b", None)
    eventually(lambda: runtime.state().details["tickets"] == 2, "two tickets")
    release(*await_children())
    assert [page["number"] for page in call.result().json()["pages"]] == [1, 2, 3]
    assert reader.lines()[-1]["type"] == "end"


# Leaving


ENDS: dict[str, Callable[[Reader], object]] = {
    "never iterated": lambda reader: None,
    "after a line": lambda reader: reader.line(),
    "in the middle": begun,
}


@pytest.mark.parametrize("until", ENDS.values(), ids=ENDS)
def test_a_reader_that_goes_away_ends_the_job_that_nobody_else_waits_for(
    way: Way, until: Callable[[Reader], None]
) -> None:
    reader = way.read(hanging("left", 3, 2))
    until(reader)
    assert open_requests() == {"a": 1}
    with child_ends():
        reader.close()
        assert open_requests() == {}
    assert_reads_on()
    reader.close()


def test_a_response_that_is_dropped_leaves_as_well(way: Way) -> None:
    """As when a middleware of the site fails after the view, and Django answers for it."""
    if isinstance(way, AsyncWay):
        pytest.skip("what is left of it belongs to an event loop, which ends it in its own time")
    reader = way.read(hanging("dropped", 3, 2))
    with child_ends():
        del reader
        gc.collect()
    assert open_requests() == {}


@pytest.mark.parametrize("until", ENDS.values(), ids=ENDS)
def test_the_others_of_a_job_still_get_theirs(way: Way, until: Callable[[Reader], None]) -> None:
    data = waiting("shared", 3, 2)
    first, second, third = (way.read(data, caller) for caller in "abc")
    until(first)
    (child,) = await_children()
    first.close()
    assert open_requests() == {"b": 1, "c": 1}
    begun(second).close()
    assert await_children() == [child]
    release(child)
    assert [line.get("number") for line in third.lines()] == [None, 1, 2, 3, None]


def test_a_reader_that_leaves_a_queue_gives_its_place_back(way: Way) -> None:
    running = [way.read(hanging(f"of {caller}", 2, 2), caller) for caller in "ab"]
    call = Call(way.ask, script("queued"), "c")
    eventually(lambda: runtime.state().queued == 1, "one in the queue")
    running[0].close()
    response = call.result()
    assert response.status_code == 200
    response.close()
    running[1].close()


def test_a_stream_that_has_been_read_to_its_end_is_closed_though_nobody_closes_it(
    way: Way,
) -> None:
    reader = way.read(script("read to its end", 2))
    assert reader.lines()[-1]["type"] == "end"
    assert open_requests() == {}


def test_a_stream_counts_as_open_for_its_caller_until_its_end(way: Way) -> None:
    data = waiting("counted", 2, 2)
    readers = [begun(way.read(data, "a")) for _ in range(3)]
    assert open_requests() == {"a": 3}
    readers.pop().close()
    assert open_requests() == {"a": 2}
    release(*await_children())
    for reader in readers:
        assert reader.lines()[-1]["type"] == "end"
    assert open_requests() == {}


def test_a_response_that_cannot_be_made_leaves(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view has the run already when it fails."""

    def fault(*args: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("pdfpool_django.views.streaming.response", fault)
    assert way.ask(hanging("no response", 2, 2)).status_code == 500
    assert_nothing_is_open()


# One event in flight


def test_an_event_is_made_a_line_when_it_is_asked_for_and_not_before(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    as_event = DocumentInfo.as_event

    def counted(info: DocumentInfo) -> dict[str, Any]:
        made.append(info.page_count)
        return as_event(info)

    monkeypatch.setattr(DocumentInfo, "as_event", counted)
    reader = way.read(script("lazy", 3))
    assert made == []
    reader.line()
    assert made == [3]
    reader.close()


def test_a_reader_that_stops_reading_holds_up_nobody(way: Way) -> None:
    data = waiting("stalled", 3, 2)
    stalled, brisk = begun(way.read(data, "a")), begun(way.read(data, "b"))
    (child,) = await_children()
    with watching(child) as watch:
        release(child)
        assert [line.get("number") for line in brisk.lines()] == [2, 3, None]
        watch.await_ends()
    assert runtime.state().running == 0
    assert open_requests() == {"a": 1}
    assert [line.get("number") for line in stalled.lines()] == [2, 3, None]
