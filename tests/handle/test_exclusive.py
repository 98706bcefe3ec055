"""The exclusive calls: what they wait for, what waits for them, and what an interruption leaves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.errors import Closed, InvalidPdf, PasswordRequired
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
    opened,
    reads_on,
    text_of,
    waiting_pages,
)
from tests.sandbox.helpers import LIMIT, Call, eventually, scripted

EXCLUSIVE: dict[str, Callable[[Document], Any]] = {
    "authenticate": lambda document: document.authenticate("secret"),
    "clear_search_index": lambda document: document.clear_search_index(),
    "close": lambda document: document.close(),
}


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_it_waits_for_the_reads_in_flight(sandbox: Sandbox, name: str) -> None:
    with opened(sandbox, waiting_pages(2)) as document:
        reads = [Call(document.page(number).text) for number in (1, 2)]
        child_at(sandbox, 1), child_at(sandbox, 2)
        alone = Call(EXCLUSIVE[name], document)
        await_waiting(document)
        go_on(sandbox, 1)
        assert reads[0].result() == text_of(1)
        assert repr(document._access) == "<Access shared by 1, 1 waiting>"
        go_on(sandbox, 2)
        assert reads[1].result() == text_of(2)
        alone.result()


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_new_reads_do_not_overtake_it(sandbox: Sandbox, name: str) -> None:
    with opened(sandbox, waiting_pages(1, 2)) as document:
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        alone = Call(EXCLUSIVE[name], document)
        await_waiting(document)
        late = Call(document.page(2).text)  # a reader is free, and still it waits
        await_waiting(document, 2)
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        alone.result()
        if name == "close":
            assert isinstance(late.error(), Closed)
        else:
            assert late.result() == text_of(2)


def test_reads_wait_while_it_lasts(sandbox: Sandbox) -> None:
    data = scripted(2, authenticating=WAITS, password="secret")
    with opened(sandbox, data) as document:
        with pytest.raises(PasswordRequired):
            document.text()
        alone = Call(document.authenticate, "secret")
        child_at(sandbox, AUTHENTICATING)
        metadata, clearing = Call(document.metadata), Call(document.clear_search_index)
        await_waiting(document, 2)
        assert (document.source, document.encrypted) == (SOURCE, True)  # which need no access
        assert document.version is None
        go_on(sandbox, AUTHENTICATING)
        assert alone.result() is True
        assert metadata.result() == {}
        assert document.version == "1.7"
        clearing.result()
        assert document.page_count == 2


def test_authenticating_replaces_the_readers_by_ones_with_the_password(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2, password="secret")) as document:
        assert document.authenticate("another") is False
        assert document.authenticate("secret") is True
        assert len(children(sandbox)) == 1
        reads = [Call(document.page(number).text) for number in (1, 2)]
        assert child_at(sandbox, 1) != child_at(sandbox, 2)
        go_on(sandbox, 1, 2)
        assert [read.result() for read in reads] == [text_of(1), text_of(2)]


def test_authenticating_what_cannot_be_opened_changes_nothing(sandbox: Sandbox) -> None:
    data = scripted(1, password="secret", authenticating="raises_value_error")
    with opened(sandbox, data) as document:
        with pytest.raises(InvalidPdf):
            document.authenticate("secret")
        assert document._access._exclusive is False
        with pytest.raises(PasswordRequired):
            document.text()


def test_clearing_waits_for_a_search_in_flight(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(2, during={"search": WAITS})) as document:
        document.prepare_search()
        searching = Call(document.search, "text")
        child_at(sandbox, DURING_A_CALL)
        index = document._index
        assert index is not None
        clearing = Call(document.clear_search_index)
        await_waiting(document)
        assert index.text.fd >= 0
        go_on(sandbox, DURING_A_CALL)
        assert [match.page for match in searching.result()] == [1, 2]
        clearing.result()
        assert index.text.fd < 0


def test_a_search_that_finds_the_index_cleared_makes_it_anew(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        preparing = Call(document.prepare_search)
        go_on(sandbox, 1)
        preparing.result()
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        clearing = Call(document.clear_search_index)
        await_waiting(document)
        searching = Call(document.search, "text")
        await_waiting(document, 2)
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        clearing.result()
        go_on(sandbox, 1)  # whose text is read once more
        assert len(searching.result()) == 1


def test_two_searches_make_one_index(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1)) as document:
        first = Call(document.search, "text")
        child = child_at(sandbox, 1)
        second = Call(document.search, "page")
        assert children(sandbox) == [child]
        go_on(sandbox, 1)
        assert len(first.result()) == len(second.result()) == 1


# Interruptions


class Interrupted(KeyboardInterrupt):
    """What the handler of a signal raises in the middle of whatever the main thread does."""


@contextmanager
def interrupted_when(condition: Callable[[], object], what: str) -> Iterator[None]:
    """Interrupt the main thread, which runs the block, as soon as the condition holds."""

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    def watch() -> None:
        eventually(condition, what)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, interrupt)
    try:
        watching = Call(watch)
        with pytest.raises(Interrupted):
            yield
        watching.result()
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_an_interruption_while_it_waits_for_access_leaves_no_trace(sandbox: Sandbox) -> None:
    data = scripted(2, authenticating=WAITS)
    with opened(sandbox, data) as document:
        alone = Call(document.authenticate, "secret")
        child_at(sandbox, AUTHENTICATING)
        with interrupted_when(lambda: document._access._waiters, "one that waits"):
            document.page(1).text()
        assert repr(document._access) == "<Access exclusive, 0 waiting>"
        go_on(sandbox, AUTHENTICATING)
        assert alone.result() is True
        assert reads_on(document, 2)


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_an_interrupted_exclusive_call_lets_in_those_behind_it(sandbox: Sandbox, name: str) -> None:
    with opened(sandbox, waiting_pages(1, 1)) as document:
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        behind: list[Call] = []

        def one_is_behind() -> bool:
            if document._access._waiters and not behind:
                behind.append(Call(document.page(2).text))
            return len(document._access._waiters) == 2

        with interrupted_when(one_is_behind, "one behind it"):
            EXCLUSIVE[name](document)
        assert behind[0].result() == text_of(2)  # while the first still reads
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        assert not document.closed
        assert repr(document._access) == "<Access shared by 0, 0 waiting>"
        assert reads_on(document, 2)


def test_an_interruption_while_it_waits_for_a_reader_leaves_no_trace(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2, 1)) as document:
        reads = [Call(document.page(number).text) for number in (1, 2)]
        child_at(sandbox, 1), child_at(sandbox, 2)
        waiters = document._readers._changed._waiters  # type: ignore[attr-defined]
        with interrupted_when(lambda: waiters, "one that waits for a reader"):
            document.page(3).text()
        go_on(sandbox, 1, 2)
        assert [read.result() for read in reads] == [text_of(1), text_of(2)]
        assert reads_on(document, 3)


def test_one_interrupted_when_its_reader_comes_leaves_that_to_the_next(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1, 2), workers=1) as document:
        readers = document._readers
        readers._changed = interruptible = InterruptibleCondition()
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        first = Call(document.page(2).text)
        await_without_reader(document, 1)
        interruptible.victims.append(interruptible.waiting[0])
        second = Call(document.page(3).text)
        await_without_reader(document, 2)
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        assert isinstance(first.error(), Interrupted)
        assert second.result() == text_of(3)
        assert reads_on(document, 2)


class InterruptibleCondition(threading.Condition):
    """A condition whose victims are interrupted in the instant in which they are woken."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[int] = []
        self.victims: list[int] = []

    def wait(self, timeout: float | None = None) -> bool:
        thread = threading.get_ident()
        self.waiting.append(thread)
        woken = super().wait(timeout)
        if thread in self.victims:
            raise Interrupted
        return woken


def test_after_an_interruption_in_its_middle_no_read_gets_a_stale_answer(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1, 2), workers=1) as document:
        with interrupted_when(lambda: page_is_awaited(sandbox, 1), "a child at its page"):
            document.page(1).text()
        assert document.page(2).text() == text_of(2)
        assert document.page(3).text() == text_of(3)
        again = Call(document.page(1).text)
        go_on(sandbox, 1)
        assert again.result() == text_of(1)


def page_is_awaited(sandbox: Sandbox, number: int) -> bool:
    child_at(sandbox, number)
    return True


def test_after_an_interruption_between_two_parts_no_call_gets_a_stale_one(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pdfpool_django.sandbox.host import Child

    fonts = [
        {"name": f"F{n}", "type": "T", "embedded": n > 1, "maps_to_unicode": False}
        for n in range(3)
    ]
    with opened(sandbox, scripted(2, answers={"fonts": fonts}), workers=1) as document:
        expected = document.page(1).fonts()
        assert len(expected) == 3
        receive, parts = Child.receive, iter([True, False])

        def interrupt_the_second(child: Child, *arguments: Any) -> Any:
            if next(parts, True):
                return receive(child, *arguments)
            raise Interrupted

        with monkeypatch.context() as patch:
            patch.setattr(Child, "receive", interrupt_the_second)
            with pytest.raises(Interrupted):
                document.page(1).fonts()
        assert document.page(2).text() == text_of(2)
        assert document.page(1).fonts() == expected


def test_a_map_that_is_interrupted_leaves_no_trace(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2, 5)) as document:
        with interrupted_when(lambda: page_is_awaited(sandbox, 2), "two children at their pages"):
            list(document.map(lambda page: page.text()))
        go_on(sandbox, 1, 2)
        eventually(lambda: len(document._readers._free) == 2, "both readers free", LIMIT)
        assert reads_on(document, 3)
