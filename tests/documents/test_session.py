"""What is read of a document whose children are lost, stopped or lying."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pdfpool_django import errors
from pdfpool_django.documents import NOT_ATTEMPTED, Session, Stopped
from pdfpool_django.model import DocumentInfo, Event, Page
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox
from tests.sandbox.helpers import (
    LIMIT,
    LIMITS,
    MEMORY,
    SLACK,
    Call,
    codes,
    eventually,
    kill_and_await,
    limits,
    make_sandbox,
    read,
    sandbox_of,
    scripted,
    settle,
    watching,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


def children_used(sandbox: Sandbox, *arguments: Any, **options: Any) -> tuple[Any, int]:
    """Read a document; return the result, and how many children that took."""
    before = sandbox.stats().children_used
    extraction = read(sandbox, *arguments, **options)
    return extraction, sandbox.stats().children_used - before


# What is kept


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_pages_before_and_after_a_lost_one_survive(sandbox: Sandbox, lost: int) -> None:
    extraction = read(sandbox, scripted(5, {lost: "segfaults"}))
    for page in extraction.pages:
        assert page.text == ("" if page.number == lost else f"text of page {page.number}")
        assert page.label == (str(lost) if page.number == lost else f"L{page.number}")
    assert [page.number for page in extraction.pages if page.error] == [lost]
    assert not extraction.complete
    assert extraction.error is None


def test_a_page_that_cannot_be_parsed_costs_no_child(sandbox: Sandbox) -> None:
    extraction, children = children_used(sandbox, scripted(3, {2: "raises_value_error"}))
    assert codes(extraction) == [None, "invalid_pdf", None]
    assert children == 1
    assert not extraction.complete


def test_after_three_lost_pages_the_rest_is_not_attempted(sandbox: Sandbox) -> None:
    at = {2: "segfaults", 4: "exits_with_3", 6: "aborts"}
    extraction = read(sandbox, scripted(8, at))
    lost = ["crashed", None, "crashed", None, "memory_exceeded"]
    assert codes(extraction) == [None, *lost, "not_attempted", "not_attempted"]
    assert extraction.error is not None
    assert extraction.error["code"] == "memory_exceeded"
    assert extraction.pages[-1] == Page(8, "8", "", NOT_ATTEMPTED)


def test_only_selected_pages_are_read(sandbox: Sandbox) -> None:
    at = {1: "segfaults", 3: "segfaults", 6: "segfaults"}
    extraction = read(sandbox, scripted(6, at), pages="2,4-5")
    assert [page.number for page in extraction.pages] == [2, 4, 5]
    assert extraction.complete


def test_a_page_lost_among_selected_ones_is_followed_by_the_next_selected(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(9, {4: "segfaults"}), pages="2,4-5,9")
    assert [page.number for page in extraction.pages] == [2, 4, 5, 9]
    assert codes(extraction) == [None, "crashed", None, None]


def test_an_open_range_ends_with_the_document(sandbox: Sandbox) -> None:
    assert [page.number for page in read(sandbox, scripted(4), pages="3-").pages] == [3, 4]


def test_a_page_beyond_the_end_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(errors.PageOutOfRange, match="Page 5 does not exist"):
        read(sandbox, scripted(4), pages="2-5")


def test_a_document_without_pages_is_complete(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(0))
    assert extraction.pages == ()
    assert extraction.complete


def test_the_document_is_published_first_then_each_page_as_it_is_read(sandbox: Sandbox) -> None:
    events: list[Event] = []
    extraction = read(sandbox, scripted(3), pages="1-2", publish=events.append)
    info, *pages = events
    assert info == DocumentInfo(extraction.sha256, "scripted 1", 3, 2, {})
    assert tuple(pages) == extraction.pages


def test_a_page_is_published_while_the_next_one_is_still_being_read(sandbox: Sandbox) -> None:
    seen = threading.Event()
    sessions: list[Session] = []

    def publish(event: Event) -> None:
        if isinstance(event, Page):
            seen.set()

    call = Call(
        read, sandbox, scripted(2, {2: "hangs"}), publish=publish, on_session=sessions.append
    )
    assert seen.wait(LIMIT)
    sessions[0].stop()
    assert isinstance(call.error(), Stopped)


def test_a_child_that_ends_after_its_last_page_loses_nothing() -> None:
    with sandbox_of("tests.engines.dies_after_its_last_page") as dying:
        extraction = read(dying, scripted(3))
    assert codes(extraction) == [None, None, None]
    assert extraction.complete


def test_pages_beyond_the_end_are_refused_and_none_is_read(sandbox: Sandbox) -> None:
    with pytest.raises(errors.PageOutOfRange, match="Page 9 does not exist"):
        read(sandbox, scripted(3, {1: "segfaults"}), pages="1-2,9")


def test_a_range_without_an_end_goes_to_the_documents(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(4), pages="1,3-")
    assert [page.number for page in extraction.pages] == [1, 3, 4]


# Who is blamed


def test_a_page_is_not_blamed_for_memory_that_others_piled_up(sandbox: Sandbox) -> None:
    at = dict.fromkeys(range(1, 5), "piles_up_memory")
    extraction, children = children_used(sandbox, scripted(4, at))
    assert extraction.complete
    assert [page.text for page in extraction.pages] == [f"text of page {n}" for n in range(1, 5)]
    assert children > 1


def test_a_page_that_dies_alone_is_tried_once(sandbox: Sandbox) -> None:
    extraction, children = children_used(sandbox, scripted(2, {1: "segfaults"}))
    assert codes(extraction) == ["crashed", None]
    assert children == 2


def test_a_page_that_dies_after_others_is_tried_once_more_alone(sandbox: Sandbox) -> None:
    extraction, children = children_used(sandbox, scripted(3, {2: "segfaults"}))
    assert codes(extraction) == [None, "crashed", None]
    assert children == 3


def test_a_page_that_takes_too_long_is_not_tried_again(sandbox: Sandbox) -> None:
    document = scripted(3, {2: "hangs"})
    extraction, children = children_used(sandbox, document, limits(page_deadline=1))
    assert codes(extraction) == [None, "deadline_exceeded", None]
    assert children == 2


# Limits


def test_the_deadline_spans_retries_and_fresh_children(sandbox: Sandbox) -> None:
    document = scripted(9, {2: "segfaults", 3: "hangs", 4: "hangs", 5: "hangs"})
    started = time.monotonic()
    extraction = read(sandbox, document, limits(deadline=2.8, page_deadline=2))
    assert time.monotonic() - started < 2.8 + SLACK
    late = ["deadline_exceeded", "deadline_exceeded"]
    assert codes(extraction) == [None, "crashed", *late, *["not_attempted"] * 5]
    assert "2 seconds" in extraction.pages[2].error["detail"]
    assert "2.8 seconds" in extraction.pages[3].error["detail"]
    assert extraction.error == extraction.pages[3].error


def test_the_page_deadline_bounds_each_page_and_not_their_sum(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(4, {2: "hangs", 4: "hangs"}), limits(page_deadline=1))
    assert codes(extraction) == [None, "deadline_exceeded", None, "deadline_exceeded"]
    assert extraction.error is None
    assert extraction.elapsed >= 2


def test_output_is_limited_over_all_pages(sandbox: Sandbox) -> None:
    at = dict.fromkeys(range(1, 6), "gives_much_text")
    extraction = read(sandbox, scripted(5, at), limits(max_output=2_500_000))
    assert extraction.error is not None
    assert extraction.error["code"] == "output_too_large"
    assert "2500000 bytes" in extraction.error["detail"]
    assert codes(extraction) == [None, None, "output_too_large", *["not_attempted"] * 2]
    assert len(extraction.text) < 2_500_000


def test_output_of_exactly_the_limit_is_kept(sandbox: Sandbox) -> None:
    document = scripted(1, {1: "gives_much_text"})
    assert read(sandbox, document, limits(max_output=1024 * 1024)).complete
    with pytest.raises(errors.OutputTooLarge):
        read(sandbox, document, limits(max_output=1024 * 1024 - 1))


def test_warnings_count_as_output(sandbox: Sandbox) -> None:
    warnings = [{"code": "engine", "detail": "x" * 500}] * 4
    extraction = read(
        sandbox, scripted(3, say={2: {"warnings": warnings}}), limits(max_output=1000)
    )
    assert extraction.error is not None
    assert extraction.error["code"] == "output_too_large"
    assert codes(extraction)[0] is None


def test_warnings_of_a_page_are_bounded(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(2, {1: "logs_ten_thousand_warnings"}))
    warnings = extraction.pages[0].warnings
    assert warnings[0] == {"code": "engine", "detail": "warning 0", "page": 1}
    assert len(warnings) <= 21
    assert warnings[-1]["detail"] == f"{10_000 - (len(warnings) - 1)} more warnings."
    assert extraction.pages[1].warnings == ()
    assert extraction.complete


# When nothing could be read


def test_the_first_failure_is_raised_where_no_page_could_be_read(sandbox: Sandbox) -> None:
    with pytest.raises(errors.InvalidPdf, match="no such operator"):
        read(sandbox, scripted(2, {1: "raises_value_error", 2: "segfaults"}))


def test_what_stopped_the_reading_is_raised_where_no_page_could_be_read(sandbox: Sandbox) -> None:
    with pytest.raises(errors.DeadlineExceeded, match=r"0\.3 seconds"):
        read(sandbox, scripted(3, {1: "hangs"}), limits(deadline=0.3))


def test_one_page_without_an_error_is_enough_for_a_result(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(2, {1: "raises_value_error"}, {2: {"label": ""}}))
    assert codes(extraction) == ["invalid_pdf", None]


# Stopping


@pytest.mark.parametrize("page", [0, 1, 2])
def test_a_session_that_is_stopped_ends_at_once_and_its_child_too(
    sandbox: Sandbox, page: int
) -> None:
    settle_after_first_use(sandbox)
    document, sessions = scripted(3, {page: "hangs"}), []
    call = Call(read, sandbox, document, on_session=sessions.append)
    eventually(lambda: sessions and sessions[0]._child is not None, "a child in use")
    with watching(sessions[0]._child.pid) as watch:
        sessions[0].stop()
        assert isinstance(call.error(SLACK), Stopped)
        watch.await_ends(SLACK)
    assert read(sandbox, scripted(1)).complete


def test_a_session_that_is_stopped_while_it_waits_for_a_child_ends_at_once() -> None:
    with sandbox_of(standbys=1) as sandbox:
        settle_after_first_use(sandbox)
        launcher = sandbox.stats().launcher_pid
        assert launcher is not None
        os.kill(launcher, signal.SIGSTOP)
        taken, sessions = sandbox.child(time.monotonic() + LIMIT), []
        call = Call(read, sandbox, scripted(1), on_session=sessions.append)
        eventually(lambda: sandbox._changed._waiters, "a session that waits for a child")
        sessions[0].stop()
        assert isinstance(call.error(SLACK), Stopped)
        assert not sandbox.stats().failing
        os.kill(launcher, signal.SIGCONT)
        sandbox.release(taken)
        assert read(sandbox, scripted(1)).complete


def settle_after_first_use(sandbox: Sandbox) -> None:
    read(sandbox, scripted(1))
    settle(sandbox)


def test_a_session_stopped_before_it_has_a_child_reads_nothing(sandbox: Sandbox) -> None:
    with pytest.raises(Stopped):
        read(sandbox, scripted(1), on_session=Session.stop)


def test_stopping_and_closing_again_does_nothing(sandbox: Sandbox) -> None:
    with from_bytes(scripted(1)) as document:
        session = Session(sandbox, document, None, LIMITS)
        assert session.open().page_count == 1
        session.close()
        session.stop()
        session.stop()
        session.close()


def test_a_session_that_is_only_opened_leaves_nothing(sandbox: Sandbox) -> None:
    with from_bytes(scripted(1)) as document:
        session = Session(sandbox, document, None, LIMITS)
        session.open()
        with watching(session._child.pid) as watch:
            session.close()
            watch.await_ends()
    settle(sandbox)


# A launcher that is lost


@pytest.mark.parametrize("killed", ["launcher", "standby and launcher"])
def test_a_launcher_killed_in_the_middle_is_replaced_and_nothing_is_lost(killed: str) -> None:
    with sandbox_of() as sandbox:

        def kill_once(event: Event) -> None:
            if isinstance(event, Page) and event.number == 2 and not first:
                first.append(sandbox.stats().launcher_pid)
                if killed != "launcher":
                    for child in list(sandbox._launcher.standbys):
                        kill_and_await(child.pid)
                kill_and_await(first[0])

        first: list[int] = []
        extraction = read(sandbox, scripted(200, {5: "gives_much_text"}), publish=kill_once)
        assert extraction.complete
        assert [page.number for page in extraction.pages] == list(range(1, 201))
        assert sandbox.stats().launcher_pid not in (None, first[0])
        assert sandbox.stats().launchers_started == 2


def test_launchers_lost_again_and_again_are_not_the_documents_fault() -> None:
    with sandbox_of() as sandbox:

        def kill(event: Event) -> None:
            pid = sandbox.stats().launcher_pid
            if isinstance(event, Page) and pid is not None:
                kill_and_await(pid)

        # The text is more than a socket holds, so no page is on its way already.
        extraction = read(
            sandbox, scripted(9, dict.fromkeys(range(1, 10), "gives_much_text")), publish=kill
        )
    assert extraction.error is not None
    assert extraction.error["code"] == "unavailable"
    assert set(codes(extraction)) == {None, "not_attempted"}


# What a child says is checked


SAID_OF_A_PAGE = {
    "a number as text": {"number": "2"},
    "another page's number": {"number": 3},
    "no number": {"number": None},
    "no label": {"label": None},
    "a label of another type": {"label": 2},
    "warnings that are no list": {"warnings": {}},
    "no warnings": {"warnings": None},
    "a warning that is no object": {"warnings": ["careful"]},
    "a warning without text": {"warnings": [{"code": "engine"}]},
    "a warning's code that is a number": {"warnings": [{"code": 1, "detail": "x"}]},
    "an error that is text": {"error": "broken"},
    "an error of no known code": {"error": {"code": "x", "template": "x", "params": {}}},
    "an error that is incomplete": {"error": {"code": "crashed"}},
    "an error whose sentence needs more": {
        "error": {"code": "crashed", "template": "%(a)s", "params": {}, "retry_after": None}
    },
    "an error whose sentence is a number": {
        "error": {"code": "crashed", "template": 7, "params": {}, "retry_after": None}
    },
    "an error whose sentence is a bomb": {
        "error": {
            "code": "crashed",
            "template": "%(a)999999999s",
            "params": {"a": 1},
            "retry_after": None,
        }
    },
    "an error whose parameters nest": {
        "error": {"code": "crashed", "template": "x", "params": {"a": [[]]}, "retry_after": None}
    },
    "an error whose parameters are a list": {
        "error": {"code": "crashed", "template": "x", "params": [], "retry_after": None}
    },
    "NaN": {"label": float("nan")},
}


@pytest.mark.parametrize("said", SAID_OF_A_PAGE.values(), ids=SAID_OF_A_PAGE)
def test_what_makes_no_sense_about_a_page_is_that_pages_error(sandbox: Sandbox, said: Any) -> None:
    extraction = read(sandbox, scripted(3, say={2: said}))
    assert codes(extraction) == [None, "crashed", None]
    assert "made no sense" in extraction.pages[1].error["detail"]


SAID_OF_A_DOCUMENT = {
    "a negative page count": {"page_count": -1},
    "a page count that is true": {"page_count": True},
    "a page count that is text": {"page_count": "3"},
    "a page count that is half": {"page_count": 1.5},
    "no page count": {"page_count": None},
    "more pages than are allowed": {"page_count": LIMITS.max_pages + 1},
    "two thousand million pages": {"page_count": 2**31 - 1},
    "a page count of a hundred digits": {"page_count": 10**100},
    "metadata that is a list": {"metadata": []},
    "no metadata": {"metadata": None},
    "warnings that are text": {"warnings": "careful"},
}


@pytest.mark.parametrize("said", SAID_OF_A_DOCUMENT.values(), ids=SAID_OF_A_DOCUMENT)
def test_what_makes_no_sense_about_a_document_is_its_error(sandbox: Sandbox, said: Any) -> None:
    with pytest.raises(errors.Crashed, match="made no sense"):
        read(sandbox, scripted(3, say={0: said}))


def test_text_is_clean_whatever_a_child_sends(sandbox: Sandbox) -> None:
    page = read(sandbox, scripted(1, {1: "gives_dirty_text"})).pages[0]
    assert page.text == "ab\N{REPLACEMENT CHARACTER}cd\ne\N{GRINNING FACE}f"


def test_text_of_another_type_is_an_error(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(2, {1: "gives_bytes"}))
    assert extraction.pages[0].error is not None
    assert extraction.pages[1].error is None


def test_labels_and_warnings_are_clean_and_cut(sandbox: Sandbox) -> None:
    warning = {"code": "c\x00" * 100, "detail": "d\ud800\n" + "e" * 5000}
    said = {"label": "\x00l\n\ud800" + "m" * 5000, "warnings": [warning] * 100}
    page = read(sandbox, scripted(1, say={1: said})).pages[0]
    assert page.label.startswith("l \N{REPLACEMENT CHARACTER}m")
    assert len(page.label) == 100
    assert len(page.warnings) == 50
    assert len(page.warnings[0]["code"]) == 40
    assert len(page.warnings[0]["detail"]) == 1000
    assert page.warnings[0]["detail"].startswith("d\N{REPLACEMENT CHARACTER} e")


def test_an_errors_sentence_is_clean_and_cut(sandbox: Sandbox) -> None:
    error = {
        "code": "invalid_pdf",
        "template": "It is %(reason)s.",
        "params": {"reason": "b\x00a\ud800d" * 5000},
        "retry_after": None,
    }
    page = read(sandbox, scripted(2, say={1: {"error": error}})).pages[0]
    assert page.error is not None
    assert page.error["detail"].startswith("It is ba\N{REPLACEMENT CHARACTER}d")
    assert len(page.error["detail"]) <= 1000


def test_metadata_are_plain_clean_and_cut(sandbox: Sandbox) -> None:
    metadata = {
        "title": "t\x00\ud800",
        "pages": 3,
        "none": None,
        "nested": {"a": 1},
        "list": [1],
        "long": "x" * 5000,
        "key\x00\n": True,
    }
    extraction = read(sandbox, scripted(1, metadata=metadata))
    assert extraction.metadata == {
        "title": "t\N{REPLACEMENT CHARACTER}",
        "pages": 3,
        "none": None,
        "long": "x" * 2000,
        "key": True,
    }
    assert [warning["code"] for warning in extraction.warnings] == ["metadata_cut"]


def test_metadata_are_bounded_in_number(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(1, metadata={str(number): 1 for number in range(1000)}))
    assert len(extraction.metadata) == 50


def test_a_session_reads_twice_from_one_child(sandbox: Sandbox) -> None:
    before = sandbox.stats().children_used
    with from_bytes(scripted(3)) as document:
        session = Session(sandbox, document, None, limits(memory=MEMORY))
        session.open()
        first = [page.number for page in session.pages([range(2, 4)])]
        second = [page.number for page in session.pages([range(1, 2)])]
        session.close()
    assert (first, second) == ([2, 3], [1])
    assert sandbox.stats().children_used == before + 1
