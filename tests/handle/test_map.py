"""`Document.map`: its order, how far it runs ahead, and what it leaves when it is left."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import pytest

from pdfpool_django.documents import Document, DocumentPage
from pdfpool_django.documents.handle import AHEAD
from pdfpool_django.errors import InvalidRequest
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.helpers import (
    child_at,
    go_on,
    opened,
    reads_on,
    text_of,
    waiting_pages,
)
from tests.sandbox.helpers import Call, eventually, scripted


def mapping_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("pdfpool-map")]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_pages(sandbox: Sandbox, workers: int) -> None:
    with opened(sandbox, scripted(40), workers=workers) as document:
        results = list(document.map(lambda page: (page.number, page.text())))
        assert results == [(number, text_of(number)) for number in range(1, 41)]
        assert document.text() == text_of(*range(1, 41))


def test_a_page_that_takes_long_does_not_change_the_order(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1, 7)) as document:
        done: list[int] = []

        def read(page: DocumentPage) -> str:
            text = page.text()
            done.append(page.number)
            return text

        mapping = Call(lambda: list(document.map(read)))
        child_at(sandbox, 1)
        eventually(lambda: done == [2, 3, 4, 5, 6, 7, 8], "every other page read")
        go_on(sandbox, 1)
        assert mapping.result() == [text_of(number) for number in range(1, 9)]


def test_several_pages_are_read_at_a_time(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(3, 1), workers=3) as document:
        mapping = Call(lambda: list(document.map(lambda page: page.text())))
        assert len({child_at(sandbox, number) for number in (1, 2, 3)}) == 3
        go_on(sandbox, 3, 2, 1)
        assert len(mapping.result()) == 4


def test_pages_may_be_selected(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(9)) as document:
        assert list(document.map(lambda page: page.number, "7-,2,3")) == [2, 3, 7, 8, 9]
        assert list(document.map(lambda page: page.number, 4)) == [4]
        assert list(document.map(lambda page: page.number, [5, 1, 5])) == [1, 5]
        assert document.text("2,4-5") == text_of(2, 4, 5)
        with pytest.raises(InvalidRequest):
            document.map(str, "x")


@pytest.mark.parametrize("pages", [0, 1])
def test_few_pages_are_no_exception(sandbox: Sandbox, pages: int) -> None:
    with opened(sandbox, scripted(pages)) as document:
        assert list(document.map(lambda page: page.number)) == list(range(1, pages + 1))
        assert document.text() == text_of(*range(1, pages + 1))


@pytest.mark.parametrize("errors", ["ignore", "", None, "Raise"])
def test_another_policy_is_refused_at_once(sandbox: Sandbox, errors: Any) -> None:
    with opened(sandbox, scripted(1)) as document, pytest.raises(ValueError, match="raise"):
        document.map(str, errors=errors)


# How far it runs ahead


class Counted:
    """A function that counts the pages that it was begun with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begun: list[int] = []
        self.ended = 0

    def __call__(self, page: DocumentPage) -> str:
        with self._lock:
            self.begun.append(page.number)
        try:
            return page.text()
        finally:
            with self._lock:
                self.ended += 1


@pytest.mark.parametrize("workers", [1, 2])
def test_few_pages_are_read_ahead_of_who_takes_them(sandbox: Sandbox, workers: int) -> None:
    counted = Counted()
    ahead = AHEAD * workers
    with opened(sandbox, scripted(100), workers=workers) as document:
        results = document.map(counted)
        assert counted.begun == []
        for taken in range(1, 20):
            assert next(results) == text_of(taken)
            expected = taken + ahead
            eventually(lambda expected=expected: counted.ended == expected, "those ahead read")
            assert max(counted.begun) == expected
        results.close()


def test_nothing_is_begun_once_the_loop_is_left(sandbox: Sandbox) -> None:
    counted = Counted()
    with opened(sandbox, waiting_pages(2, 90)) as document:
        mapping = document.map(counted)
        taking = Call(lambda: next(mapping))
        child_at(sandbox, 1), child_at(sandbox, 2)
        go_on(sandbox, 1)
        assert taking.result() == text_of(1)
        mapping.close()
        begun = len(counted.begun)  # the second still waits, the other worker may begin one more
        go_on(sandbox, 2)
        eventually(lambda: not mapping_threads(), "no thread that maps")
        assert len(counted.begun) <= begun + 1
        assert counted.ended == len(counted.begun)
        assert reads_on(document, 3)


def test_leaving_the_loop_leaves_no_thread(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(50)) as document:
        for number, text in enumerate(document.map(lambda page: page.text()), 1):
            assert text == text_of(number)
            if number == 3:
                break
        eventually(lambda: not mapping_threads(), "no thread that maps")
        with pytest.raises(ZeroDivisionError):
            [1 // 0 for _ in document.map(lambda page: page.text())]
        eventually(lambda: not mapping_threads(), "no thread that maps")


def test_one_that_is_never_begun_needs_no_thread(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(5)) as document:
        results = document.map(lambda page: page.text())
        assert not mapping_threads()
        del results


# What is called


def test_the_function_may_make_other_calls_of_the_handle(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(8)) as document:

        def every_call(page: DocumentPage) -> Any:
            found = document.search("text", pages=page.number)
            document.clear_search_index()
            assert document.authenticate("whatever")
            texts = list(document.map(lambda each: each.text(), f"1-{page.number}"))
            return len(found), document.outline(), page.fonts(), page.size, texts[-1]

        results = Call(lambda: list(document.map(every_call))).result()
        assert results == [(1, (), (), (100 + n, 200), text_of(n)) for n in range(1, 9)]


def test_the_function_may_close_the_handle(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(1)) as document:
        (number,) = document.map(lambda page: document.close() or page.number)
        assert number == 1
        assert document.closed


VALUE: contextvars.ContextVar[str] = contextvars.ContextVar("value", default="none")


def test_context_variables_travel_and_do_not_come_back(sandbox: Sandbox) -> None:
    def use(page: DocumentPage) -> str:
        value = VALUE.get()
        VALUE.set(f"page {page.number}")
        return value

    def in_context(document: Document) -> list[str]:
        VALUE.set("the caller's")
        found = list(document.map(use))
        assert VALUE.get() == "the caller's"
        return found

    with opened(sandbox, scripted(9)) as document:
        found = contextvars.copy_context().run(in_context, document)
        assert found == ["the caller's"] * 9
        assert VALUE.get() == "none"


@pytest.mark.parametrize("errors", ["raise", "keep"])
def test_a_bug_of_the_function_is_raised_whatever_the_policy(sandbox: Sandbox, errors: str) -> None:
    def divide(page: DocumentPage) -> float:
        return 1 / (page.number - 3)

    with opened(sandbox, scripted(9)) as document:
        results = document.map(divide, errors=errors)
        assert [next(results), next(results)] == [-0.5, -1.0]
        with pytest.raises(ZeroDivisionError):
            next(results)
        assert list(results) == []
        eventually(lambda: not mapping_threads(), "no thread that maps")
        assert reads_on(document)


def test_two_maps_of_one_handle_share_its_readers(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1, 30)) as document:
        others = [
            Call(lambda: list(document.map(lambda page: page.text(), pages="2-"))) for _ in range(2)
        ]
        first = Call(lambda: list(document.map(lambda page: page.text(), pages="1-2")))
        child_at(sandbox, 1)
        for other in others:  # by the reader that is left
            assert other.result() == [text_of(number) for number in range(2, 32)]
        go_on(sandbox, 1)
        assert first.result() == [text_of(1), text_of(2)]
