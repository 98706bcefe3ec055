"""A handle that its owner forgets is ended when it is collected, whoever holds which lock."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.helpers import (
    ENGINE,
    SOURCE,
    child_at,
    children,
    go_on,
    handle,
    nothing_left,
    opened,
    text_of,
    waiting_pages,
)
from tests.sandbox.helpers import Call, eventually, kill_and_await, sandbox_of, scripted, watching

UNCLOSED = f"unclosed <Document {SOURCE!r}, open>"

pytestmark = pytest.mark.filterwarnings("always::ResourceWarning")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """One for each test, so that what one leaves in it is no other's."""
    with sandbox_of(ENGINE, cpu=3600.0) as own:
        handle(own, scripted(1)).close()
        with nothing_left(own):
            yield own


def used(sandbox: Sandbox, **options: Any) -> Document:
    """Return a handle that has used all it has: its readers, and an index."""
    document = handle(sandbox, waiting_pages(2), **options)
    preparing = Call(document.prepare_search)
    child_at(sandbox, 1), child_at(sandbox, 2)
    go_on(sandbox, 1, 2)
    preparing.result()
    assert len(children(sandbox)) == 2
    return document


def collected(found: list[Document]) -> list[str]:
    """Forget the handle, which is this very thread's to collect; return what was said of it."""
    with said() as messages:
        found.clear()
        gc.collect()
    return messages()


@contextmanager
def said() -> Iterator[Callable[[], list[str]]]:
    """In the block, what it yields tells the warnings of resources until then."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(each.message) for each in caught if each.category is ResourceWarning]


def test_it_is_ended_as_soon_as_nobody_knows_it(sandbox: Sandbox) -> None:
    found = [used(sandbox)]
    gc.disable()
    try:
        with watching(*children(sandbox)) as watch, said() as messages:
            found.clear()
            watch.await_ends()
        assert messages() == [UNCLOSED]
    finally:
        gc.enable()


def test_it_is_ended_and_says_so(sandbox: Sandbox) -> None:
    found = [used(sandbox)]
    with watching(*children(sandbox)) as watch:
        assert collected(found) == [UNCLOSED]
        watch.await_ends()
    eventually(lambda: children(sandbox) == [], "no child in use")


def test_in_a_cycle_it_is_ended_too(sandbox: Sandbox) -> None:
    found = [used(sandbox)]
    found[0].itself = found[0]  # type: ignore[attr-defined]
    with watching(*children(sandbox)) as watch:
        assert len(collected(found)) == 1
        watch.await_ends()


def test_one_that_was_closed_says_nothing(sandbox: Sandbox) -> None:
    found = [used(sandbox)]
    found[0].close()
    assert collected(found) == []


def test_one_that_could_not_be_opened_says_nothing(sandbox: Sandbox) -> None:
    with said() as messages:
        for options in ({"workers": 0}, {"password": "wrong"}):
            with pytest.raises(Exception, match=r"workers|password"):
                handle(sandbox, scripted(1, password="secret"), **options)
        gc.collect()
    assert messages() == []


def test_no_lock_is_taken(sandbox: Sandbox) -> None:
    """Each lock that anything of the handle has is held by the very thread that collects it."""
    found = [used(sandbox)]
    ended: list[bool] = []
    found[0]._on_close = lambda: ended.append(True)
    locks = locks_of(found[0], sandbox)
    assert len(locks) == 10

    def collect_with_all_locks() -> list[str]:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            return collected(found)

    with watching(*children(sandbox)) as watch:
        assert len(Call(collect_with_all_locks).result()) == 1
        watch.await_ends()
    assert ended == [True]


def locks_of(document: Document, sandbox: Sandbox) -> list[Any]:
    readers, launcher = document._readers, sandbox._launcher
    assert launcher is not None
    locks: list[Any] = [
        document._access._lock,
        document._indexing,
        readers._changed,
        sandbox._changed,
    ]
    for reader in readers._free:
        child = reader.session._child
        assert child is not None
        locks += [reader.session._swap, reader.session.budget._lock, child._closing]
    return locks


def test_a_child_that_had_ended_before_is_not_counted_for_ever() -> None:
    with sandbox_of(ENGINE, cpu=3600.0) as own:
        found = [used(own)]
        for pid in children(own):
            kill_and_await(pid)
        launcher = own._launcher
        assert launcher is not None
        eventually(lambda: all(each.report for each in launcher.in_use.values()), "their reports")
        assert len(collected(found)) == 1
        assert children(own) == []


def test_a_page_keeps_its_handle(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(1)) as document:
        page = document.page(1)
        found = [document]
        del document
        found.clear()
        gc.collect()
        assert page.text() == text_of(1)
        page._document.close()


def test_a_map_that_goes_on_keeps_its_handle(sandbox: Sandbox) -> None:
    found = [handle(sandbox, waiting_pages(1, 30))]
    mapping = Call(lambda document: list(document.map(lambda page: page.text())), found[0])
    child_at(sandbox, 1)
    found.clear()
    gc.collect()
    with said() as messages:
        go_on(sandbox, 1)
        assert mapping.result() == [text_of(number) for number in range(1, 32)]
        eventually(lambda: gc.collect() >= 0 and messages() == [UNCLOSED], "it is ended")


def test_the_last_who_knows_it_may_be_a_thread_that_still_reads(sandbox: Sandbox) -> None:
    found = [handle(sandbox, waiting_pages(1, 30))]
    results = [found[0].map(lambda page: page.text(), pages="2-")]
    assert next(results[0]) == text_of(2)
    reading = Call(found[0].page(1).text)
    with watching(child_at(sandbox, 1)) as watch:
        results.pop().close()
        found.clear()
        with said() as messages:
            go_on(sandbox, 1)
            assert reading.result() == text_of(1)
            eventually(
                lambda: gc.collect() >= 0 and messages() == [UNCLOSED], "the handle collected"
            )
        watch.await_ends()


def test_a_hundred_that_are_forgotten_leave_nothing() -> None:
    def use_and_forget() -> None:
        for _ in range(100):
            handle(own, scripted(1)).page(1).text()
        gc.collect()

    with sandbox_of(ENGINE, cpu=3600.0) as own:
        handle(own, scripted(1)).close()
        with nothing_left(own), pytest.warns(ResourceWarning, match="unclosed"):
            use_and_forget()
