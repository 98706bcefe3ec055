"""Closing a handle: whom it waits for, whom it ends, and what is there afterwards."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.errors import Closed
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.engine import AUTHENTICATING, DURING_A_CALL
from tests.handle.helpers import (
    SOURCE,
    WAITS,
    await_waiting,
    await_without_reader,
    child_at,
    children,
    go_on,
    handle,
    in_threads,
    opened,
    text_of,
    waiting_pages,
)
from tests.sandbox.helpers import LIMIT, SLACK, Call, scripted, watching

RACES = 60


def test_it_waits_for_the_calls_in_flight(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        closing = Call(document.close)
        await_waiting(document)
        assert not document.closed
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        closing.result()
        assert document.closed


def test_it_waits_no_longer_than_it_may_and_ends_them(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2, 1)) as document:
        reads = [Call(document.page(number).text) for number in (1, 2)]
        with watching(child_at(sandbox, 1), child_at(sandbox, 2)) as watch:
            reads.append(Call(document.page(3).text))
            await_without_reader(document)
            started = time.monotonic()
            document.close(timeout=0.2)
            assert 0.2 <= time.monotonic() - started < 0.2 + SLACK
            watch.await_ends()
        assert [type(read.error()) for read in reads] == [Closed] * 3


CALLS: dict[str, Callable[[Document], Any]] = {
    "images": lambda document: document.page(1).images(),
    "outline": lambda document: document.outline(),
    "search": lambda document: document.search("text"),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_ends_calls_about_the_whole_document_too(sandbox: Sandbox, name: str) -> None:
    with opened(sandbox, scripted(1, during={name: WAITS})) as document:
        call = Call(CALLS[name], document)
        child_at(sandbox, DURING_A_CALL)
        document.close(timeout=0)
        assert isinstance(call.error(), Closed)


def test_it_ends_the_making_of_an_index(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1, 5)) as document:
        calls = [Call(document.prepare_search), Call(document.search, "text")]
        child_at(sandbox, 1)
        document.close(timeout=0)
        assert [type(call.error()) for call in calls] == [Closed] * 2


def test_it_ends_a_map(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2, 9)) as document:
        calls = [
            Call(lambda: list(document.map(lambda page: page.text(), "1,3-"))),
            Call(document.text, "2-"),
        ]
        child_at(sandbox, 1), child_at(sandbox, 2)
        document.close(timeout=0)
        assert [type(call.error()) for call in calls] == [Closed] * 2


def test_it_ends_an_exclusive_call(sandbox: Sandbox) -> None:
    data = scripted(1, password="secret", authenticating=WAITS)
    with opened(sandbox, data) as document:
        authenticating = Call(document.authenticate, "secret")
        with watching(child_at(sandbox, AUTHENTICATING)) as watch:
            closing = Call(document.close, timeout=0)
            assert closing.error(2.0) is None
            watch.await_ends()
        assert isinstance(authenticating.error(), Closed)


def test_an_exclusive_call_that_comes_after_the_time_is_up_does_nothing(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        document._readers.stop()
        with pytest.raises(Closed):
            document.authenticate("secret")
        with pytest.raises(Closed):
            document.page(1).text()


def test_a_time_that_suffices_ends_nothing(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        closing = Call(document.close, timeout=LIMIT)
        await_waiting(document)
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        closing.result()


@pytest.mark.parametrize("timeout", [None, 0, 5.0])
def test_a_second_time_nothing_happens(sandbox: Sandbox, timeout: float | None) -> None:
    document = handle(sandbox, scripted(1))
    ended: list[bool] = []
    document._on_close = lambda: ended.append(True)
    for _ in range(3):
        document.close(timeout)
    assert document.closed
    assert ended == [True]


def test_two_threads_that_close_both_wait_for_the_end(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        ended: list[bool] = []
        document._on_close = lambda: ended.append(True)
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        closing = [Call(document.close), Call(document.close)]
        await_waiting(document, 2)
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        for call in closing:
            call.result()
        assert ended == [True]


def test_one_that_waits_is_helped_by_one_that_does_not(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        patient = Call(document.close)
        await_waiting(document)
        document.close(timeout=0)
        patient.result()
        assert isinstance(reading.error(), Closed)


def test_what_is_known_can_be_told_afterwards(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3)) as document:
        document.prepare_search()
        page, known = document.page(2), document.page(1)
        assert known.size == (101, 200)
    assert document.closed
    assert repr(document) == f"<Document {SOURCE!r}, closed>"
    assert (document.version, document.source, document.page_count) == ("1.7", SOURCE, 3)
    assert document.encrypted is False
    for call in (
        page.text,
        page.read,
        lambda: page.read(errors="keep"),
        page.images,
        page.fonts,
        lambda: page.label,
        lambda: page.size,
        lambda: page.rotation,
        document.text,
        document.metadata,
        document.outline,
        document.attachments,
        document.permissions,
        document.prepare_search,  # although it was prepared
        document.clear_search_index,
        lambda: document.search("text"),
        lambda: document.search("text", pages="9"),
        lambda: document.text("9"),
        lambda: document.map(str),
        lambda: document.map(str, "9", errors="keep"),
        lambda: document.authenticate("secret"),
    ):
        with pytest.raises(Closed, match="open it again"):
            call()


def test_a_locked_one_is_closed_and_no_longer_locked_afterwards(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3, password="secret")) as document:
        pass
    for call in (
        document.text,
        document.metadata,
        document.outline,
        document.prepare_search,
        lambda: document.search("text"),
        lambda: document.map(str),
        lambda: document.authenticate("secret"),
    ):
        with pytest.raises(Closed):
            call()
    assert document.encrypted


def test_pages_of_a_map_that_come_too_late_are_closed(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(40)) as document:
        results = document.map(lambda page: page.text(), errors="keep")
        assert next(results) == text_of(1)
        document.close()
        late = list(results)
        assert len(late) == 39
        for number, result in enumerate(late, 2):
            assert result == text_of(number) or isinstance(result, Closed)
        assert isinstance(late[-1], Closed)


@pytest.mark.parametrize("timeout", [None, 0])
def test_reads_that_race_it_get_their_answer_or_closed(
    sandbox: Sandbox, timeout: float | None
) -> None:
    chance = random.Random()
    fates = set()
    for _ in range(RACES):
        document = handle(sandbox, scripted(3))
        page = document.page(1)
        reads: list[tuple[Callable[[], Any], Any]] = [
            (document.page(2).text, text_of(2)),
            (document.text, text_of(1, 2, 3)),
            (document.outline, ()),
            (lambda page=page: page.size, (101.0, 200.0)),
            (lambda document=document: len(document.search("page")), 3),
            (lambda document=document: document.authenticate("secret"), True),
        ]
        chance.shuffle(reads)
        expected = [answer for _, answer in reads]

        def close(document: Document = document, pause: float = chance.uniform(0, 0.01)) -> None:
            time.sleep(pause)
            document.close(timeout)

        found = in_threads(*(read for read, _ in reads), close)
        assert found.pop() is None
        for answer, given in zip(expected, found, strict=True):
            assert given == answer or type(given) is Closed, (answer, given)
            fates.add(type(given) is Closed)
        assert document.closed
        assert children(sandbox) == []
    assert fates == {True, False}
