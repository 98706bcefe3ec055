"""Requests that meet in the pool: shared, refused, left, and out of time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pdfpool_django import errors, runtime
from pdfpool_django.extraction import aextract, astream, extract, stream
from pdfpool_django.pool import Job
from tests.sandbox.helpers import LIMIT, Call, codes, eventually
from tests.site.asking import Ask
from tests.site.helpers import (
    SCRIPTED,
    assert_reads_on,
    await_children,
    await_idle,
    child_ends,
    children,
    children_used,
    hanging,
    release,
    script,
    waiting,
)

pytestmark = pytest.mark.usefixtures("scripts")

SHORT = 0.7
"""Seconds within which a warmed backend has surely handed a document to a child."""


@pytest.fixture(autouse=True)
def warmed(scripts: None) -> None:
    """Start the launcher, so that no test's time is spent on that."""
    assert_reads_on()


class Since:
    """What the backend has counted since this was made."""

    def __init__(self) -> None:
        self._before = runtime.state().details

    def __getitem__(self, name: str) -> int:
        counted: int = runtime.state().details[name] - self._before[name]
        return counted

    def await_joined(self, count: int) -> None:
        eventually(lambda: self["joined"] == count, f"{count} that joined")


@contextmanager
def busy(*callers: str) -> Iterator[None]:
    """Each of the callers has a document that hangs, for the length of the block."""
    streams = [stream(hanging(f"of {caller}"), caller=caller) for caller in callers]
    await_children(min(len(callers), SCRIPTED["SLOTS"]))
    try:
        yield
    finally:
        for each in streams:
            each.close()
    await_idle()


# Sharing


def test_identical_requests_at_once_share_one_job_and_one_child(ask: Ask) -> None:
    since = Since()
    document = waiting("shared", pages=2)
    calls = [Call(ask, document, caller=caller) for caller in "abcd"]
    since.await_joined(3)
    release(*await_children(1))
    results = [call.result() for call in calls]
    assert all(result == results[0] for result in results)
    assert results[0].complete
    assert (since["children_used"], since["jobs_started"]) == (1, 1)


def test_every_way_of_asking_shares_with_every_other() -> None:
    since = Since()
    document = waiting("shared by all")
    with stream(document, caller="a") as pages:

        async def ask_both() -> Any:
            asking = asyncio.gather(
                aextract(document, caller="b"), aextract(document, caller="c", pages=None)
            )
            await asyncio.to_thread(since.await_joined, 2)
            release(*await_children())
            return await asking

        results = asyncio.run(ask_both())
        assert [page.text for page in pages] == ["text of page 1, after the signal"]
    assert results == [pages.extraction] * 2
    assert since["children_used"] == 1


def test_pages_spelled_differently_are_shared(ask: Ask) -> None:
    since = Since()
    document = waiting("spelled", pages=3)
    calls = [Call(ask, document, caller=c, pages=p) for c, p in [("a", "1-3"), ("b", [3, 2, 1])]]
    since.await_joined(1)
    release(*await_children(1))
    assert calls[0].result() == calls[1].result()


@pytest.mark.parametrize("options", [{"pages": "1"}, {"password": "x"}])
def test_requests_that_differ_are_not_shared(options: dict[str, Any]) -> None:
    since = Since()
    document = waiting("apart")
    calls = [Call(extract, document, caller="a"), Call(extract, document, caller="b", **options)]
    release(*await_children(2))
    assert {call.result().text for call in calls} == {"text of page 1, after the signal"}
    assert since["joined"] == 0
    assert since["children_used"] == 2


def test_one_after_the_other_is_not_shared() -> None:
    since = Since()
    for _ in range(2):
        extract(script("again"), caller="a")
    assert since["children_used"] == 2


def test_who_joins_late_gets_every_page() -> None:
    since = Since()
    document = waiting("late", pages=3, at=3)
    with stream(document, caller="a") as early:
        assert [next(early).number, next(early).number] == [1, 2]
        with stream(document, caller="b") as late:
            since.await_joined(1)
            release(*await_children())
            assert [page.number for page in late] == [1, 2, 3]
        assert [page.number for page in early] == [3]


# Refusing


def test_another_document_of_the_same_caller_is_refused(ask: Ask) -> None:
    with busy("a"):
        since = Since()
        with pytest.raises(errors.CallerBusy) as caught:
            ask(script("other"), caller="a")
        assert caught.value.retry_after > 0
        assert since["children_used"] == 0
        assert ask(script("other"), caller="b").complete


def test_a_full_pool_is_busy(ask: Ask) -> None:
    with busy("a", "b", "c"):
        assert (runtime.state().running, runtime.state().queued) == (2, 1)
        with pytest.raises(errors.Busy) as caught:
            ask(script("one more"), caller="d")
        assert caught.value.retry_after > 0
    assert ask(script("one more"), caller="d").complete


def test_a_full_pool_can_be_joined() -> None:
    since = Since()
    documents = [waiting(f"full {caller}") for caller in "abc"]
    calls = [Call(extract, documents[0], caller="a"), Call(extract, documents[1], caller="b")]
    running = await_children(2)
    calls.append(Call(extract, documents[2], caller="c"))
    eventually(lambda: runtime.state().queued == 1, "one in the queue")
    calls += [Call(extract, each, caller="d") for each in documents]
    since.await_joined(3)
    release(*running)
    eventually(lambda: children() and not set(children()) & set(running), "the third one's child")
    release(*children())
    assert {call.result().text for call in calls} == {"text of page 1, after the signal"}
    assert since["children_used"] == 3


# Time


def test_a_timeout_ends_the_job_that_nobody_else_waits_for(ask: Ask) -> None:
    call = Call(ask, hanging("timeout"), caller="a", timeout=SHORT)
    with child_ends():
        assert isinstance(call.error(), TimeoutError)
    assert_reads_on()


def test_a_timeout_in_the_queue(ask: Ask) -> None:
    with busy("a", "b"):
        since = Since()
        with pytest.raises(TimeoutError):
            ask(script("queued"), caller="c", timeout=0.05)
        assert runtime.state().queued == 0
        assert since["jobs_started"] == 0


def test_a_timeout_leaves_the_job_to_the_others() -> None:
    since = Since()
    document = waiting("in time")
    patient = Call(extract, document, caller="a")
    pids = await_children()
    with pytest.raises(TimeoutError):
        extract(document, caller="b", timeout=0.05)
    assert since["joined"] == 1
    assert children() == pids
    release(*pids)
    assert patient.result().complete


def test_the_callers_time_is_one_for_all_pages() -> None:
    pages = stream(hanging("slow", pages=3, at=3), caller="a", timeout=SHORT)
    with child_ends(), pytest.raises(TimeoutError):
        list(pages)


# Streaming, and leaving


def test_a_page_is_there_before_the_last_one_is_read() -> None:
    with stream(waiting("paged", pages=2, at=2), caller="a") as pages:
        assert next(pages).text == "text of page 1"
        release(*await_children())
        assert next(pages).text == "text of page 2, after the signal"
        assert list(pages) == []


async def test_a_page_is_there_before_the_last_one_is_read_for_async_callers_too() -> None:
    async with astream(waiting("paged", pages=2, at=2), caller="a") as pages:
        assert (await anext(pages)).text == "text of page 1"
        release(*children())
        assert [page.number async for page in pages] == [2]


def test_leaving_a_stream_early_ends_its_child() -> None:
    pages = stream(hanging("left", pages=2, at=2), caller="a")
    assert next(pages).number == 1
    with child_ends(), pages:
        assert children()
    assert_reads_on()


def test_a_stream_may_be_closed_again() -> None:
    pages = stream(hanging("closed", pages=2, at=2), caller="a")
    assert next(pages).number == 1
    with child_ends():
        pages.close()
        pages.close()


def test_who_joins_in_the_instant_of_the_last_ones_leaving_gets_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document, give_up, joined = waiting("rejoined"), Job.give_up, []

    def join_first(job: Job) -> bool:
        joined.append(stream(document, caller="b"))
        return give_up(job)

    first = stream(document, caller="a")
    pids = await_children()
    monkeypatch.setattr(Job, "give_up", join_first)
    first.close()
    monkeypatch.undo()
    release(*pids)
    assert [page.text for page in joined[0]] == ["text of page 1, after the signal"]


async def test_leaving_an_async_stream_early_ends_its_child() -> None:
    async with astream(hanging("left", pages=2, at=2), caller="a") as pages:
        assert (await anext(pages)).number == 1
        ending = child_ends()
        ending.__enter__()
    await asyncio.to_thread(ending.__exit__, None, None, None)


def test_a_stream_that_is_left_leaves_the_job_to_the_others() -> None:
    document = waiting("shared and left", pages=2, at=2)
    with stream(document, caller="a") as first, stream(document, caller="b") as second:
        assert next(first) == next(second)
        pids = await_children()
        first.close()
        release(*pids)
        assert next(second).number == 2


async def test_cancelling_leaves_and_ends_the_child() -> None:
    task = asyncio.create_task(aextract(hanging("cancelled"), caller="a"))
    await asyncio.to_thread(await_children)
    with child_ends():
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await aextract(script("next"), caller="a")).complete


async def test_cancelling_one_leaves_the_job_to_the_others() -> None:
    document, since = waiting("cancelled once"), Since()
    tasks = [asyncio.create_task(aextract(document, caller=caller)) for caller in "ab"]
    await asyncio.to_thread(await_children)
    await asyncio.to_thread(since.await_joined, 1)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    release(*children())
    assert (await asyncio.wait_for(tasks[1], LIMIT)).complete


async def test_an_async_stream_that_nobody_iterates_starts_nothing() -> None:
    before = children_used()
    async with astream(script("never"), caller="a"):
        pass
    assert children_used() == before


# What survives


def test_the_pages_before_and_after_a_lost_one_are_kept(ask: Ask) -> None:
    extraction = ask(script("crash", 5, {3: "segfaults"}), caller="a")
    assert codes(extraction) == [None, None, "crashed", None, None]
    assert not extraction.complete
    assert extraction.error is None


def test_where_no_page_could_be_read_the_first_failure_is_raised(ask: Ask) -> None:
    with pytest.raises(errors.Crashed):
        ask(script("crash", 1, {1: "segfaults"}), caller="a")
