"""What sites test with: a backend that answers as it is told, in every way that documents come."""

from __future__ import annotations

import hashlib
import json
import threading
import unittest
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client, override_settings
from django.urls import reverse

from pdfpool_django import errors, http, runtime
from pdfpool_django.checks import check_deployment, check_settings
from pdfpool_django.extraction import aextract, extract, stream
from pdfpool_django.model import DocumentInfo, Page
from pdfpool_django.testing import (
    HANGS,
    CannedBackend,
    ErrorOrClass,
    RecordedRequest,
    canned,
    extraction,
)
from tests.sandbox.helpers import open_descriptors
from tests.sandbox.rest import await_rest
from tests.site.asking import Ask
from tests.site.backend_conformance import child_processes

DOCUMENT = b"%PDF-1.7 one that no library could read"
SHA256 = hashlib.sha256(DOCUMENT).hexdigest()
TEXTS = ["page one", "page two", "page three"]
NAMED = "pdfpool_django.testing.CannedBackend"


def backend() -> CannedBackend:
    found = runtime.backend()
    assert isinstance(found, CannedBackend)
    return found


# Texts


def test_every_document_reads_as_told(ask: Ask) -> None:
    with canned(text=TEXTS):
        result = ask(DOCUMENT, caller="a")
    assert result.text.split("\f") == TEXTS
    assert (result.page_count, result.sha256, result.complete) == (3, SHA256, True)


def test_one_text_is_one_page() -> None:
    with canned(text="all of it"):
        assert [page.text for page in extract(DOCUMENT, caller="a").pages] == ["all of it"]


def test_nothing_told_is_a_page_of_text() -> None:
    with canned():
        assert extract(DOCUMENT, caller="a").text == "Text of page 1."


def test_the_pages_asked_for_are_given(ask: Ask) -> None:
    with canned(text=TEXTS):
        assert ask(DOCUMENT, caller="a", pages="2").text == "page two"
        with pytest.raises(errors.PageOutOfRange, match="Page 4 does not exist"):
            ask(DOCUMENT, caller="a", pages="2-4")


def test_neither_a_process_nor_a_thread_is_started_and_nothing_stays_open(ask: Ask) -> None:
    def now() -> Any:
        return child_processes(), open_descriptors()

    with canned(text=TEXTS):
        await_rest()
        ask(DOCUMENT, caller="a")
        before, threads = now(), set(threading.enumerate())
        ask(DOCUMENT, caller="a")
        assert now() == before
        assert set(threading.enumerate()) <= threads  # those of other tests may end meanwhile


def test_events_come_in_order() -> None:
    with canned(text=TEXTS) as fake, stream(DOCUMENT, caller="a", pages="2-") as pages:
        assert [page.number for page in pages] == [2, 3]
        info, *_ = pages._run.events()
    assert info == DocumentInfo(SHA256, "canned 1", 3, 2, {})
    assert fake.requests[0].pages == "2-"


# Errors


@pytest.mark.parametrize("error", errors.ERROR_CLASSES.values(), ids=errors.ERROR_CLASSES)
def test_every_error_comes_on_demand(ask: Ask, error: type[errors.PdfPoolError]) -> None:
    with canned(error=error), pytest.raises(error) as caught:
        ask(DOCUMENT, caller="a")
    assert type(caught.value) is error
    assert "%(" not in str(caught.value)
    assert bool(caught.value.retry_after) == error.retryable


def test_an_error_is_as_it_was_given_and_each_has_one_of_his_own(ask: Ask) -> None:
    given = errors.Busy(retry_after=3)
    with canned(error=given), pytest.raises(errors.Busy) as caught:
        ask(DOCUMENT, caller="a")
    assert caught.value is not given
    assert caught.value.as_data() == given.as_data()
    assert given.__traceback__ is None


@pytest.mark.parametrize("error", [errors.Busy, errors.NotAPdf, errors.Forbidden])
def test_what_is_refused_is_so_before_the_first_page(error: ErrorOrClass) -> None:
    with canned(error=error), pytest.raises(errors.PdfPoolError):
        stream(DOCUMENT, caller="a")


def test_what_ends_a_reading_is_raised_by_its_pages() -> None:
    with canned(error=errors.PasswordRequired):
        pages = stream(DOCUMENT, caller="a")
        with pytest.raises(errors.PasswordRequired):
            next(pages)


def test_a_reading_that_hangs_takes_no_time(ask: Ask) -> None:
    with canned(answer=HANGS):
        with pytest.raises(TimeoutError):
            ask(DOCUMENT, caller="a", timeout=1000)
        with pytest.raises(errors.DeadlineExceeded, match="60 seconds"):
            ask(DOCUMENT, caller="a")
        assert runtime.state().running == 0


# Answers


def test_each_document_has_an_answer_of_its_own() -> None:
    answers = {SHA256: "the first", hashlib.sha256(DOCUMENT * 2).hexdigest(): errors.InvalidPdf}
    with canned(answer=answers):
        assert extract(DOCUMENT, caller="a").text == "the first"
        with pytest.raises(errors.InvalidPdf):
            extract(DOCUMENT * 2, caller="a")
        with pytest.raises(LookupError, match="there is no answer for the document"):
            extract(DOCUMENT * 3, caller="a")


def test_a_function_answers_each_request() -> None:
    def answer(request: RecordedRequest) -> Any:
        return "open" if request.password == "sesame" else errors.PasswordRequired

    with canned(answer=answer):
        assert extract(DOCUMENT, caller="a", password="sesame").text == "open"
        with pytest.raises(errors.PasswordRequired):
            extract(DOCUMENT, caller="a")


def test_the_answer_may_change_meanwhile() -> None:
    with canned(error=errors.Busy) as fake:
        with pytest.raises(errors.Busy):
            extract(DOCUMENT, caller="a")
        fake.answer = "now"
        assert extract(DOCUMENT, caller="a").text == "now"


def test_a_result_may_be_incomplete(ask: Ask) -> None:
    whole = extraction(["one", errors.MemoryExceeded, "three"], metadata={"title": "Three"})
    with canned(answer=whole):
        result = ask(DOCUMENT, caller="a")
        assert ask(DOCUMENT, caller="a", pages="1,3").complete
    assert not result.complete
    assert result.pages == whole.pages
    assert result.metadata == {"title": "Three"}
    assert result.pages[1].error == errors.MemoryExceeded().as_error()


def test_an_error_among_the_pages_is_raised_where_no_other_page_was_asked_for(ask: Ask) -> None:
    lost = errors.Crashed(reason="100 % of it")
    with canned(text=["one", lost]), pytest.raises(errors.Crashed, match="100 % of it"):
        ask(DOCUMENT, caller="a", pages=2)


def test_only_one_answer_is_taken() -> None:
    with pytest.raises(TypeError, match="one of text, error and answer"):
        canned(text="one", error=errors.Busy)


# What was asked for


def test_requests_are_kept_in_order(ask: Ask) -> None:
    with canned(text=TEXTS) as fake:
        ask(DOCUMENT, caller="a", pages="3,1-2", password="secret")
        ask(DOCUMENT, caller="b")
    size = len(DOCUMENT)
    assert fake.requests == [
        RecordedRequest("a", SHA256, size, "1-3", "secret"),
        RecordedRequest("b", SHA256, size),
    ]
    assert "secret" not in repr(fake.requests)


def test_a_refused_request_is_kept_too() -> None:
    with canned(error=errors.Busy) as fake, pytest.raises(errors.Busy):
        extract(DOCUMENT, caller="a")
    assert [request.caller for request in fake.requests] == ["a"]


# A result on its own


def test_a_result_has_plausible_parts() -> None:
    result = extraction("text")
    assert result.pages == (Page(1, "1", "text"),)
    assert (result.page_count, result.complete, result.error) == (1, True, None)
    assert result.elapsed > 0
    assert json.loads(json.dumps(result.as_dict()))["engine"] == "canned 1"


def test_a_result_that_was_stopped_has_pages_that_were_not_attempted() -> None:
    result = extraction(["one"], page_count=3, error=errors.DeadlineExceeded(seconds=60))
    found = [page.error and page.error["code"] for page in result.pages]
    assert found == [None, "not_attempted", "not_attempted"]
    assert [page.number for page in result.pages] == [1, 2, 3]
    assert result.error == errors.DeadlineExceeded(seconds=60).as_error()
    assert not result.complete


def test_a_page_may_be_given_whole() -> None:
    page = Page(1, "iv", "text", warnings=({"code": "x", "detail": "y", "page": 1},))
    assert extraction([page]).pages == (page,)


# Where it answers


def post(client: Client, **options: Any) -> Any:
    path = reverse("pdfpool:extract")
    return client.post(path, DOCUMENT, content_type="application/pdf", headers=options)


def test_the_view_answers(member: Client) -> None:
    with canned(text=TEXTS) as fake:
        response = post(member)
    assert [page["text"] for page in response.json()["pages"]] == TEXTS
    assert fake.requests[0].caller == f"user:{member.session['_auth_user_id']}"


def test_the_view_streams(member: Client) -> None:
    with canned(text=TEXTS):
        response = post(member, accept="application/x-ndjson")
        lines = [json.loads(line) for line in response.getvalue().splitlines()]
    assert [line["type"] for line in lines] == ["document", "page", "page", "page", "end"]


@pytest.mark.parametrize("error", errors.ERROR_CLASSES.values(), ids=errors.ERROR_CLASSES)
def test_the_view_answers_with_every_error(
    member: Client, error: type[errors.PdfPoolError]
) -> None:
    with canned(error=error):
        response = post(member)
    assert response.status_code == http.status_of(error())
    assert response.json()["code"] == error.code


def test_the_command_answers(tmp_path: Path) -> None:
    path, out = tmp_path / "a.pdf", StringIO()
    path.write_bytes(DOCUMENT)
    with canned(text=TEXTS):
        call_command("extract_pdf", str(path), pages="1-2", stdout=out)
    assert out.getvalue() == "page one\fpage two\n"
    with canned(error=errors.Busy), pytest.raises(CommandError):
        call_command("extract_pdf", str(path), stdout=out, stderr=StringIO())


def test_a_handle_is_refused_as_told_or_as_unsupported() -> None:
    await_rest()
    before = open_descriptors()
    with canned(error=errors.CallerBusy) as fake, pytest.raises(errors.CallerBusy):
        runtime.document(DOCUMENT, caller="a", password="secret")
    assert fake.requests == [RecordedRequest("a", SHA256, len(DOCUMENT), None, "secret")]
    with canned(text="text"), pytest.raises(errors.Unsupported):
        runtime.document(DOCUMENT, caller="a")
    assert open_descriptors() == before


# How it is put in place


def test_afterwards_the_sites_backend_is_there_as_it_was() -> None:
    before = runtime.backend()
    with canned():
        assert runtime.backend() is not before
    assert runtime.backend() is before
    assert before.state().available


def test_the_innermost_counts() -> None:
    with canned(text="outer"):
        with canned(text="inner"):
            assert extract(DOCUMENT, caller="a").text == "inner"
        assert extract(DOCUMENT, caller="a").text == "outer"


def test_changed_settings_do_not_end_it() -> None:
    with canned(text="told"), override_settings(PDFPOOL={"MAX_UPLOAD": 10}):
        assert extract(DOCUMENT, caller="a").text == "told"


def test_the_settings_may_name_it() -> None:
    with override_settings(PDFPOOL={"BACKEND": NAMED, "SLOTS": 3}):
        assert extract(DOCUMENT, caller="a").text == "Text of page 1."
        assert backend().state().slots == 3
        with canned(text="told"):
            assert extract(DOCUMENT, caller="a").text == "told"


@override_settings(PDFPOOL={"BACKEND": NAMED})
def test_a_site_in_production_is_warned_of_it() -> None:
    assert check_settings() == []
    (warning,) = check_deployment()
    assert warning.msg == "PDFPOOL['BACKEND'] is the one for tests: no document is read."


@canned(text="decorated")
def test_it_decorates_a_function() -> None:
    assert extract(DOCUMENT, caller="a").text == "decorated"
    assert len(backend().requests) == 1


@canned(text="decorated")
async def test_it_decorates_an_async_function() -> None:
    assert (await aextract(DOCUMENT, caller="a")).text == "decorated"


@canned(text="decorated")
class TestItDecoratesAClass(unittest.TestCase):
    def test_first(self) -> None:
        self._assert_is_alone()

    def test_second(self) -> None:
        self._assert_is_alone()

    def _assert_is_alone(self) -> None:
        assert extract(DOCUMENT, caller="a").text == "decorated"
        assert len(backend().requests) == 1
