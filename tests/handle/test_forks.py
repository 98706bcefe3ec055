"""A handle in a process that was forked from the one that opened it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.errors import Closed
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.engine import AUTHENTICATING
from tests.handle.helpers import (
    SOURCE,
    WAITS,
    child_at,
    children,
    go_on,
    in_a_fork,
    opened,
    reads_on,
    text_of,
    waiting_pages,
)
from tests.sandbox.helpers import Call, scripted

ANOTHERS = "The document was opened by another process; open it in this one."

CALLS: dict[str, Callable[[Document], Any]] = {
    "text of a page": lambda document: document.page(1).text(),
    "images": lambda document: document.page(1).images(),
    "label": lambda document: document.page(1).label,
    "text": lambda document: document.text(),
    "metadata": lambda document: document.metadata(),
    "map": lambda document: document.map(str),
    "outline": lambda document: document.outline(),
    "permissions": lambda document: document.permissions(),
    "prepare_search": lambda document: document.prepare_search(),
    "search": lambda document: document.search("text"),
    "clear_search_index": lambda document: document.clear_search_index(),
    "authenticate": lambda document: document.authenticate("secret"),
}


def what_they_raise(document: Document) -> dict[str, str]:
    """Return what each call says in this process."""
    said = {}
    for name, call in CALLS.items():
        try:
            call(document)
        except Closed as error:
            said[name] = str(error)
        except Exception as error:
            said[name] = repr(error)
    return said


REFUSED = dict.fromkeys(CALLS, ANOTHERS)


@pytest.mark.parametrize("prepared", [False, True])
def test_every_call_says_whose_it_is_and_the_parent_reads_on(
    sandbox: Sandbox, prepared: bool
) -> None:
    with opened(sandbox, scripted(2)) as document:
        if prepared:
            document.prepare_search()
        before = children(sandbox)
        assert in_a_fork(lambda: what_they_raise(document)) == REFUSED
        assert children(sandbox) == before
        assert reads_on(document)
        assert len(document.search("text")) == 2


def test_what_is_known_can_be_told_there(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(2)) as document:
        known = in_a_fork(lambda: [document.source, document.version, document.page_count])
        assert known == [SOURCE, "1.7", 2]


def test_closing_it_there_ends_nothing_here(sandbox: Sandbox) -> None:
    def close() -> list[bool]:
        document.close()
        document.close(timeout=0)
        return [document.closed]

    with opened(sandbox, waiting_pages(1, 1)) as document:
        ended: list[bool] = []
        document._on_close = lambda: ended.append(True)
        document.page(2).text()
        reading = Call(document.page(1).text)
        child = child_at(sandbox, 1)
        assert in_a_fork(close) == [True]
        assert (document.closed, ended) == (False, [])
        assert child_at(sandbox, 1) == child
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        assert reads_on(document, 2)


def test_collecting_it_there_ends_nothing_here_and_says_nothing(sandbox: Sandbox) -> None:
    def forget() -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.pop().__del__()
            gc.collect()
        return [str(each.message) for each in caught]

    with opened(sandbox, scripted(1)) as document:
        found = [document]
        ended: list[bool] = []
        document._on_close = lambda: ended.append(True)
        assert in_a_fork(forget) == []
        assert ended == []
        assert reads_on(document)


def test_whoever_held_it_at_the_fork_keeps_nobody_waiting_there(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(2, authenticating=WAITS)) as document:
        alone = Call(document.authenticate, "secret")
        child_at(sandbox, AUTHENTICATING)
        with document._indexing, document._access._lock, document._readers._changed:
            assert in_a_fork(lambda: [what_they_raise(document), document.close()]) == [
                REFUSED,
                None,
            ]
        go_on(sandbox, AUTHENTICATING)
        assert alone.result() is True
        assert reads_on(document)
