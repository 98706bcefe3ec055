"""Reads of one handle run at the same time, and give what they give one after another."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.documents.readers import Readers
from pdfpool_django.model import Limits
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import simple_pdf
from tests.handle.engine import DURING_A_CALL
from tests.handle.helpers import (
    WAITS,
    await_without_reader,
    child_at,
    children,
    go_on,
    in_threads,
    opened,
    text_of,
    waiting_pages,
)
from tests.sandbox.helpers import LIMIT, Call, eventually, kill_and_await, scripted


def test_two_reads_are_inside_the_engine_at_the_same_time(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2)) as document:
        calls = [Call(document.page(number).text) for number in (1, 2)]
        assert child_at(sandbox, 1) != child_at(sandbox, 2)
        go_on(sandbox, 2, 1)
        assert [call.result() for call in calls] == [text_of(1), text_of(2)]


def test_more_reads_than_workers_wait_for_one(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(5)) as document:
        calls = {1: Call(document.page(1).text), 2: Call(document.page(2).text)}
        child_at(sandbox, 1), child_at(sandbox, 2)
        for place, number in enumerate((3, 4, 5), 1):
            calls[number] = Call(document.page(number).text)
            await_without_reader(document, place)
        assert len(children(sandbox)) == 2
        for number in (2, 3, 4, 1, 5):  # each that ends lets in the next
            go_on(sandbox, number)
            assert calls[number].result() == text_of(number)
        assert len(children(sandbox)) == 2


def test_one_worker_reads_one_page_at_a_time(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2), workers=1) as document:
        first = Call(document.page(1).text)
        child = child_at(sandbox, 1)
        second = Call(document.page(2).text)
        await_without_reader(document)
        go_on(sandbox, 1)
        assert first.result() == text_of(1)
        assert child_at(sandbox, 2) == child
        go_on(sandbox, 2)
        assert second.result() == text_of(2)


CALLS: dict[str, Callable[[Document], Any]] = {
    "images": lambda document: document.page(2).images(),
    "fonts": lambda document: document.page(2).fonts(),
    "page_info": lambda document: document.page(2).label,
    "outline": lambda document: document.outline(),
    "attachments": lambda document: document.attachments(),
    "permissions": lambda document: document.permissions(),
    "search": lambda document: document.search("text", pages=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_other_read_runs_beside_that_of_a_page(sandbox: Sandbox, name: str) -> None:
    with opened(sandbox, scripted(2)) as plain:
        expected = CALLS[name](plain)
    with opened(sandbox, scripted(2, {1: WAITS}, during={name: WAITS})) as document:
        if name == "search":
            prepared = Call(document.prepare_search)
            go_on(sandbox, 1)
            prepared.result()
        page = Call(document.page(1).text)
        call = Call(CALLS[name], document)
        assert child_at(sandbox, 1) != child_at(sandbox, DURING_A_CALL)
        go_on(sandbox, 1, DURING_A_CALL)
        assert page.result() == text_of(1)
        assert call.result() == expected


# Many threads

PAGES = 6

MIXED: dict[str, Callable[[Document], Any]] = {
    "text": lambda document: document.text(),
    "text of some": lambda document: document.text("2-3,5"),
    "shown text": lambda document: document.page(4).text(actual_text=False),
    "read": lambda document: document.page(3).read(),
    "map": lambda document: list(document.map(lambda page: (page.label, page.size))),
    "images": lambda document: document.page(1).images(),
    "fonts": lambda document: document.page(2).fonts(),
    "info": lambda document: (document.page(6).label, document.page(6).rotation),
    "metadata": lambda document: document.metadata(),
    "outline": lambda document: document.outline(),
    "attachments": lambda document: document.attachments(),
    "permissions": lambda document: document.permissions(),
    "search": lambda document: document.search("page"),
    "regex": lambda document: document.search("P.GE", regex=True, ignore_case=True, pages="2-4"),
    "authenticate": lambda document: document.authenticate("whatever"),
    "clear": lambda document: document.clear_search_index(),
    "prepare": lambda document: document.prepare_search(),
}


def test_sixteen_threads_of_mixed_calls_get_what_one_gets(pypdf_sandbox: Sandbox) -> None:
    texts = [f"This is page {number}\nof the whole" for number in range(1, PAGES + 1)]
    data = simple_pdf(*texts, info={"Title": "Six"})
    with opened(pypdf_sandbox, data) as document:
        serial = {name: call(document) for name, call in MIXED.items()}
        assert serial["text"] == "\f".join(text + "\n" for text in texts)
        assert len(serial["search"]) == PAGES

        def mixed(seed: int) -> dict[str, Any]:
            names = list(MIXED)
            random.Random(seed).shuffle(names)
            return {name: MIXED[name](document) for name in names}

        for found in in_threads(*[lambda seed=seed: mixed(seed) for seed in range(16)]):
            assert found == serial


# The readers


def test_a_worn_reader_gets_another_child(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(1), workers=1) as document:
        (first,) = children(sandbox)
        assert document.page(1).text() == text_of(1)
        assert children(sandbox) == [first]
        document._readers._worn = 0.0
        assert document.page(1).text() == text_of(1)
        assert children(sandbox) == []
        document._readers._worn = 1000.0
        assert document.page(1).text() == text_of(1)
        assert document._readers._free[0].busy < 1000
        (second,) = children(sandbox)
        assert document.page(1).text() == text_of(1)
        assert children(sandbox) == [second] != [first]


def test_one_that_is_killed_at_rest_is_replaced_silently(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3), workers=1) as document:
        for number in (1, 2, 3):
            for pid in children(sandbox):
                kill_and_await(pid)
            assert document.page(number).read().warnings == ()
            assert document.page(number).text() == text_of(number)


def test_the_time_of_a_read_begins_when_it_has_a_reader() -> None:
    readers = Readers([FakeSession()], 1000.0)  # type: ignore[list-item]
    given = Limits(deadline=LIMIT)

    def deadline() -> float:
        with readers.one(given) as session:
            return session.budget.started

    with readers.one(given):
        waiting = Call(deadline)
        eventually(lambda: readers._changed._waiters, "one that waits")  # type: ignore[attr-defined]
        released = time.monotonic()
    assert waiting.result() >= released


class FakeSession:
    """A session that nothing is asked of."""

    def close(self) -> None:
        """Do nothing."""
