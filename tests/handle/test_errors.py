"""What a page or a call costs that its child does not survive, and what goes on meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from pdfpool_django.documents import Document, Image
from pdfpool_django.errors import (
    Crashed,
    DeadlineExceeded,
    InvalidPdf,
    MemoryExceeded,
    PageOutOfRange,
    PdfPoolError,
    Unsupported,
)
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.helpers import (
    ENGINE,
    WAITS,
    child_at,
    children,
    go_on,
    handle,
    nothing_left,
    opened,
    reads_on,
    text_of,
)
from tests.sandbox.helpers import (
    LIMIT,
    SLACK,
    Call,
    kill_and_await,
    sandbox_of,
    scripted,
    watching,
)

FATES: dict[str, type[PdfPoolError]] = {
    "is_killed": MemoryExceeded,
    "eats_memory": MemoryExceeded,
    "eats_native_memory": MemoryExceeded,
    "segfaults": Crashed,
    "exits_silently": Crashed,
    "aborts": MemoryExceeded,
    "answers_garbage": Crashed,
    "closes_its_socket": Crashed,
    "hangs": DeadlineExceeded,
    "spins": DeadlineExceeded,
    "raises_value_error": InvalidPdf,
}


@pytest.mark.parametrize("fate", FATES)
def test_a_page_that_is_lost_costs_no_other(sandbox: Sandbox, fate: str) -> None:
    data = scripted(4, {1: fate, 2: WAITS})
    seconds = 0.5 if needs_time(fate) else LIMIT
    with opened(sandbox, data, page_deadline=seconds) as document:
        waiting = None if needs_time(fate) else Call(document.page(2).text)
        with pytest.raises(FATES[fate]):
            document.page(1).text()
        assert document.page(3).text() == text_of(3)
        kept = document.page(1).read(errors="keep")
        assert kept.error is not None
        assert (kept.text, kept.error["code"]) == ("", FATES[fate].code)
        if waiting is not None:  # all the while
            go_on(sandbox, 2)
            assert waiting.result() == text_of(2)
        assert reads_on(document, 4)


def needs_time(fate: str) -> bool:
    return FATES[fate] is DeadlineExceeded


def test_a_page_that_hangs_takes_no_longer_than_it_may(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3, {1: "hangs", 2: WAITS}), page_deadline=1.0) as document:
        started = time.monotonic()
        hanging = Call(document.page(1).text)
        other = Call(document.page(2).text)
        go_on(sandbox, 2)
        assert other.result() == text_of(2)
        assert isinstance(hanging.error(), DeadlineExceeded)
        assert time.monotonic() - started < 1.0 + SLACK
        assert "1 seconds" in str(hanging.error())


CALLS: dict[str, Callable[[Document], Any]] = {
    "images": lambda document: document.page(1).images(),
    "fonts": lambda document: document.page(1).fonts(),
    "page_info": lambda document: document.page(1).label,
    "outline": lambda document: document.outline(),
    "attachments": lambda document: document.attachments(),
    "permissions": lambda document: document.permissions(),
    "search": lambda document: document.search("text"),
}
OF_A_PAGE = {"images", "fonts", "page_info"}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_has_its_deadline(sandbox: Sandbox, name: str) -> None:
    times = {"page_deadline": 0.3, "deadline": LIMIT}
    if name not in OF_A_PAGE:
        times = {"page_deadline": LIMIT, "deadline": 0.3}
    with opened(sandbox, scripted(1, during={name: "hangs"}), **times) as document:
        if name == "search":
            document.prepare_search()
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"0\.3 seconds"):
            CALLS[name](document)
        assert time.monotonic() - started < 0.3 + SLACK
        assert reads_on(document)


@pytest.mark.parametrize("fate", ["segfaults", "eats_memory", "is_killed", "answers_garbage"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_costs_its_child_leaves_the_handle_alive(
    sandbox: Sandbox, name: str, fate: str
) -> None:
    with opened(sandbox, scripted(1, during={name: fate})) as document:
        with pytest.raises(FATES[fate]):
            CALLS[name](document)
        assert reads_on(document)


def test_what_an_engine_does_not_offer_is_said_to_be_unsupported() -> None:
    with sandbox_of() as plain, handle(plain, scripted(1)) as document:
        for name in ("images", "fonts", "page_info", "outline", "attachments", "permissions"):
            with pytest.raises(Unsupported):
                CALLS[name](document)
        assert reads_on(document)


# Children that somebody kills


def test_readers_that_are_killed_at_rest_are_replaced_silently(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3, {1: WAITS, 2: WAITS})) as document:
        reads = [Call(document.page(number).text) for number in (1, 2)]
        assert child_at(sandbox, 1) != child_at(sandbox, 2)
        go_on(sandbox, 1, 2)
        assert [read.result() for read in reads] == [text_of(1), text_of(2)]
        for pid in children(sandbox):
            kill_and_await(pid)
        reads = [Call(document.page(number).text) for number in (1, 2)]
        assert child_at(sandbox, 1) != child_at(sandbox, 2)
        go_on(sandbox, 1, 2)
        assert [read.result() for read in reads] == [text_of(1), text_of(2)]


def test_a_reader_that_is_killed_in_the_middle_costs_its_page(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3, {1: WAITS})) as document:
        reading = Call(document.page(1).text)
        kill_and_await(child_at(sandbox, 1))
        assert isinstance(reading.error(), MemoryExceeded)
        assert reads_on(document, 2)


def test_a_reader_that_had_read_before_is_given_a_second_try(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(2, {1: WAITS})) as document:
        assert document.page(2).text() == text_of(2)
        reading = Call(document.page(1).text)
        kill_and_await(child_at(sandbox, 1))
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)


def test_a_launcher_that_is_killed_is_replaced_silently() -> None:
    with sandbox_of(ENGINE, cpu=3600.0) as own:
        with handle(own, scripted(3, {1: WAITS})) as document:
            first = own.stats().launcher_pid
            assert first is not None
            reading = Call(document.page(1).text)
            child = child_at(own, 1)
            with watching(child) as watch:
                kill_and_await(first)  # and with it all of its children
                watch.await_ends()
            go_on(own, 1)  # a child of the next one
            assert reading.result() == text_of(1)
            assert own.stats().launcher_pid not in (None, first)
            assert reads_on(document, 2)
        with nothing_left(own), handle(own, scripted(1)) as document:
            assert document.text() == text_of(1)


# During a map


MAPPED = {2: "segfaults", 4: "eats_memory", 5: "is_killed", 7: "raises_value_error"}
LOST = {number: FATES[fate] for number, fate in MAPPED.items()}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_lost_page_of_a_map_has_its_error_and_the_others_their_text(
    sandbox: Sandbox, workers: int
) -> None:
    with opened(sandbox, scripted(9, MAPPED), workers=workers) as document:
        results = list(document.map(lambda page: page.text(), errors="keep"))
        for number, result in enumerate(results, 1):
            if number in LOST:
                assert type(result) is LOST[number]
            else:
                assert result == text_of(number)
        assert len(results) == 9


def test_the_first_lost_page_in_order_is_raised_after_those_before_it(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(9, MAPPED | {2: WAITS, 3: WAITS}), workers=3) as document:
        results = document.map(lambda page: page.text())
        found: list[Any] = []
        mapping = Call(found.extend, results)
        go_on(sandbox, 2, 3)  # others are lost before them
        assert isinstance(mapping.error(), MemoryExceeded)
        assert found == [text_of(number) for number in (1, 2, 3)]
        assert list(results) == []


def test_a_page_beyond_the_end_is_refused_before_any_is_read(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3, {1: "segfaults"})) as document:
        with pytest.raises(PageOutOfRange):
            document.map(str, "1-4")
        with pytest.raises(PageOutOfRange):
            document.page(0)


# Children that answer garbage

FONT = {"name": "F", "type": "Type0", "embedded": True, "maps_to_unicode": False}
INFO = {"label": "i", "size": [1, 2], "rotation": 0}
IMAGE = {"name": "I", "format": "png", "width": 1, "height": 1}
ITEM = {"title": "t", "page": 1, "level": 0}
MATCH = {"page": 1, "start": 0, "end": 1, "context": "c"}
DONE = {"warnings": []}

GARBAGE: dict[str, list[Any]] = {
    "images": [IMAGE | {"width": "1"}, IMAGE | {"name": None}, {}],
    "fonts": [FONT | {"embedded": 1}, FONT | {"type": []}, {"name": "F"}],
    "page_info": [INFO | {"size": [1]}, INFO | {"rotation": "0"}, INFO | {"label": 1}, {}],
    "outline": [ITEM | {"page": "1"}, ITEM | {"level": None}, {"title": "t"}],
    "attachments": [{"name": 1}, {"name": "a", "error": "broken"}, {}],
    "permissions": [{"print": 1}, {"fly": True}],
    "search": [MATCH | {"start": -1}, MATCH | {"context": 1}, {"page": 1}],
}
FRAMES = [
    (name, [{"value": value}, DONE])
    for name, values in GARBAGE.items()
    for value in [*values, None, [], "text", 1]
]
FRAMES += [(name, [{"warnings": "careful"}]) for name in GARBAGE]
FRAMES += [(name, [{"something": "else"}, DONE]) for name in GARBAGE]
FRAMES += [("page_info", []), ("page_info", [{"value": INFO}, {"value": INFO}, DONE])]
FRAMES += [("permissions", [DONE]), ("permissions", [{"value": {}}, {"value": {}}, DONE])]


@pytest.mark.parametrize(("name", "frames"), FRAMES)
def test_garbage_is_a_crash_and_the_handle_lives_on(
    sandbox: Sandbox, name: str, frames: list[Any]
) -> None:
    with opened(sandbox, scripted(2, frames={name: frames}), workers=1) as document:
        with pytest.raises(Crashed, match="made no sense"):
            CALLS[name](document)
        assert reads_on(document, 2)


def test_what_makes_sense_is_believed(sandbox: Sandbox) -> None:
    frames = {"images": [{"value": IMAGE}, DONE], "search": [{"value": MATCH}, DONE]}
    with opened(sandbox, scripted(1, frames=frames)) as document:
        assert document.page(1).images() == (Image(1, "I", "png", 1, 1, b""),)
        assert [match.context for match in document.search("text")] == ["c"]


def test_a_page_that_makes_no_sense_is_a_crash_and_the_handle_lives_on(sandbox: Sandbox) -> None:
    with opened(sandbox, scripted(3, say={1: {"number": 2}, 2: {"label": None}})) as document:
        for number in (1, 2):
            with pytest.raises(Crashed, match="made no sense"):
                document.page(number).text()
        assert reads_on(document, 3)


def test_a_document_that_makes_no_sense_cannot_be_opened(sandbox: Sandbox) -> None:
    with pytest.raises(Crashed, match="made no sense"):
        handle(sandbox, scripted(1, say={0: {"page_count": -1}}))


@pytest.mark.parametrize("fate", ["segfaults", "eats_memory", "is_killed", "hangs"])
def test_one_that_cannot_be_opened_leaves_nothing(sandbox: Sandbox, fate: str) -> None:
    with pytest.raises(FATES[fate]):
        handle(sandbox, scripted(1, {0: fate}), deadline=0.5 if needs_time(fate) else LIMIT)


def test_no_worker_is_too_few(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="workers"):
        handle(sandbox, scripted(1), workers=0)
