"""Errors before the first line are ordinary responses; later ones are the last line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import modify_settings, override_settings
from django.utils import translation

from pdfpool_django import runtime, signals
from pdfpool_django.backends.local import LocalBackend, LocalRun
from pdfpool_django.extraction import stream
from pdfpool_django.pool import Job
from tests.sandbox.helpers import Call, eventually, watching
from tests.site.helpers import LOCKED, SCRIPTED, await_children, hanging, release, script, waiting
from tests.site.web import assert_problem
from tests.streaming.conftest import OPTIONS
from tests.streaming.ways import Way

REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"caller": None}, 401, "not_authenticated"),
    ({"data": b""}, 400, "invalid_request"),
    ({"data": b"Dear Sir or Madam"}, 415, "not_a_pdf"),
    ({"query": "pages=x"}, 400, "invalid_request"),
    ({"query": "pages=0"}, 400, "invalid_request"),
    ({"query": "pages=7"}, 422, "page_out_of_range"),
    ({"query": "colour=red"}, 400, "invalid_request"),
    ({"content_type": "text/plain"}, 400, "invalid_request"),
    ({"data": script("broken", 1, {0: "segfaults"})}, 422, "crashed"),
]


@contextmanager
def holding(*callers: str) -> Iterator[None]:
    """Each of the callers has a document that is being read."""
    streams = [stream(hanging(f"of {caller}"), caller=caller) for caller in callers]
    await_children(min(len(callers), SCRIPTED["SLOTS"]))
    try:
        yield
    finally:
        for each in streams:
            each.close()


def assert_is_no_stream(response: Any, status: int, code: str) -> Any:
    assert not response.streaming
    assert response["Cache-Control"] == "no-store"
    return assert_problem(response, status, code)


def fault(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("a secret of ours")


def end_the_job() -> None:
    with watching(*await_children()) as watch:
        runtime.close()
        watch.await_ends()


# Before the first line


@pytest.mark.parametrize(("request_", "status", "code"), REFUSED, ids=[c for _, _, c in REFUSED])
def test_what_is_refused_is_told_by_an_ordinary_response(
    way: Way, request_: dict[str, Any], status: int, code: str
) -> None:
    response = way.ask(**{"data": script("refused", 3), **request_})
    assert_is_no_stream(response, status, code)


def test_a_document_that_is_locked_is_told_by_an_ordinary_response(way: Way) -> None:
    with override_settings(PDFPOOL={**OPTIONS}):
        assert_is_no_stream(way.ask(LOCKED), 422, "password_required")
        response = way.ask(LOCKED, Pdfpool_Password="a guess")
        assert_is_no_stream(response, 422, "wrong_password")
        runtime.reset()


def test_a_document_that_is_too_large_is_told_by_an_ordinary_response(way: Way) -> None:
    with override_settings(PDFPOOL={**SCRIPTED, **OPTIONS, "MAX_UPLOAD": 100}):
        data = script("too large") + b" " * 100
        assert_is_no_stream(way.ask(data), 413, "file_too_large")


def test_a_caller_with_a_job_is_told_by_an_ordinary_response(way: Way) -> None:
    with holding("a"):
        assert_is_no_stream(way.ask(script("another")), 429, "caller_busy")


def test_a_full_pool_is_told_by_an_ordinary_response(way: Way) -> None:
    with holding("x", "y", "z"):
        assert_is_no_stream(way.ask(script("one more")), 503, "busy")


def test_a_wait_that_runs_out_is_told_by_an_ordinary_response(way: Way) -> None:
    with (
        override_settings(PDFPOOL={**SCRIPTED, **OPTIONS, "WAIT": 0.2}),
        holding("x", "y"),
    ):
        assert_is_no_stream(way.ask(script("waits in vain")), 503, "busy")


def test_a_site_that_shuts_down_is_told_by_an_ordinary_response(way: Way) -> None:
    runtime.close()
    assert_is_no_stream(way.ask(script("too late")), 503, "unavailable")


def test_a_job_that_is_ended_while_it_opens_is_told_by_an_ordinary_response(way: Way) -> None:
    call = Call(way.ask, script("opens for ever", 1, {0: "hangs"}))
    await_children()
    runtime.close()
    assert_is_no_stream(call.result(), 503, "unavailable")


def test_a_fault_before_the_first_line_is_told_by_an_ordinary_response(
    way: Way, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(LocalBackend, "submit", fault)
    details = assert_is_no_stream(way.ask(script("a fault")), 500, "internal_error")
    assert "secret" not in str(details)
    assert details["reference"] in caplog.text
    assert "a secret of ours" in caplog.text


# Afterwards


def assert_error(line: dict[str, Any], status: int, code: str) -> dict[str, Any]:
    """The line is problem details of this code; return them."""
    assert line.keys() == {"type", "error"}
    assert line["type"] == "error"
    details: dict[str, Any] = line["error"]
    assert (details["status"], details["code"]) == (status, code)
    assert details["type"] == f"urn:pdfpool:error:{code}"
    assert details["title"]
    assert details["detail"]
    assert details["retryable"] == ("retry_after" in details)
    return details


def test_a_job_that_is_ended_before_a_page_says_so_in_its_last_line(way: Way) -> None:
    reader = way.read(hanging("ended", 3, 1))
    assert reader.line()["type"] == "document"
    end_the_job()
    *pages, last = reader.lines()
    assert {page["error"]["code"] for page in pages} <= {"not_attempted"}
    assert assert_error(last, 503, "unavailable")["retryable"]


def test_a_job_that_is_ended_keeps_the_pages_it_has_read(way: Way) -> None:
    reader = way.read(hanging("ended", 3, 2))
    assert [reader.line()["type"] for _ in range(2)] == ["document", "page"]
    end_the_job()
    *pages, end = reader.lines()
    assert [page["error"]["code"] for page in pages] == ["not_attempted"] * 2
    assert (end["type"], end["complete"], end["error"]["code"]) == ("end", False, "unavailable")


def test_a_fault_of_the_stream_itself_is_its_last_line(
    way: Way, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader = way.read(waiting("a fault of the stream", 2, 2))
    assert [reader.line()["type"] for _ in range(2)] == ["document", "page"]
    monkeypatch.setattr(LocalRun, "result", fault)
    monkeypatch.setattr(LocalRun, "aresult", fault)
    release(*await_children())
    assert reader.line()["number"] == 2
    details = assert_error(reader.line(), 500, "internal_error")
    assert details["reference"] in caplog.text
    assert "a secret of ours" in caplog.text
    assert reader.chunk() is None


@pytest.mark.parametrize("raised", [ZeroDivisionError, SystemExit])
def test_a_fault_in_the_job_is_the_last_line_of_each_of_its_readers(
    way: Way,
    raised: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail_after_the_second_page(job: Job, event: Any) -> None:
        publish(job, event)
        if getattr(event, "number", 0) == 2:
            raise raised("a secret of ours")

    publish = Job.publish
    monkeypatch.setattr(Job, "publish", fail_after_the_second_page)
    data = waiting("a fault", 3, 2)
    readers = [way.read(data, caller) for caller in "ab"]
    release(*await_children())
    for reader in readers:
        *lines, last = reader.lines()
        assert [line.get("number") for line in lines] == [None, 1, 2]
        details = assert_error(last, 500, "internal_error")
        assert "secret" not in str(details)
        assert details["reference"] in caplog.text
    assert "a secret of ours" in caplog.text


def test_pages_that_are_lost_do_not_end_the_stream(way: Way) -> None:
    document, *pages, end = way.read(script("lost", 3, {2: "segfaults"})).lines()
    assert document["type"] == "document"
    assert [page["error"] and page["error"]["code"] for page in pages] == [None, "crashed", None]
    assert (end["type"], end["complete"]) == ("end", False)


def test_a_document_none_of_whose_pages_can_be_read_is_an_error_after_its_page(way: Way) -> None:
    document, page, last = way.read(script("none", 1, {1: "segfaults"})).lines()
    assert (document["type"], page["error"]["code"]) == ("document", "crashed")
    assert_error(last, 422, "crashed")


@modify_settings(MIDDLEWARE={"prepend": "django.middleware.locale.LocaleMiddleware"})
def test_an_error_in_a_line_is_in_the_readers_language(way: Way) -> None:
    data = script("in German", 1, {1: "segfaults"})
    titles = {
        language: way.read(data, Accept_Language=language).lines()[-1]["error"]["title"]
        for language in ("en", "de")
    }
    translation.deactivate()
    with translation.override("de"):
        assert titles == {"en": "Unreadable PDF", "de": translation.gettext("Unreadable PDF")}
    assert titles["de"] != titles["en"]


# What the site is told


def test_receivers_hear_of_a_stream_once(way: Way) -> None:
    heard: list[tuple[str, str | None]] = []

    def hear(caller: str, error: Any, **values: Any) -> None:
        heard.append((caller, error and error.code))

    finished, refused = signals.extraction_finished, signals.extraction_refused
    finished.connect(hear)
    refused.connect(hear)
    try:
        assert way.read(script("heard"), "a").lines()[-1]["type"] == "end"
        assert way.read(script("lost", 1, {1: "segfaults"}), "b").lines()[-1]["type"] == "error"
        assert way.ask(b"no PDF", "c").status_code == 415
        way.read(hanging("left", 2, 2), "d").close()
    finally:
        finished.disconnect(hear)
        refused.disconnect(hear)
    assert heard == [("a", None), ("b", "crashed"), ("c", "not_a_pdf")]


def test_a_reader_that_leaves_is_logged_once(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pdfpool_django.extraction")
    reader = way.read(hanging("logged", 2, 2))
    reader.line()
    reader.close()
    reader.close()
    eventually(lambda: not runtime.state().running, "no job")
    assert [record.message.split()[-1] for record in caplog.records] == ["outcome=left"]
