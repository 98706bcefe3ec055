"""What a site's receivers are told, and when."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from pdfpool_django import errors
from pdfpool_django.extraction import aextract, extract, stream
from pdfpool_django.model import Extraction
from pdfpool_django.signals import extraction_finished, extraction_refused
from tests.site.asking import Ask
from tests.site.helpers import (
    LOCKED,
    SAMPLE,
    TEXTS,
    await_children,
    await_idle,
    hanging,
    release,
    script,
    scripted,
    waiting,
)
from tests.site.web import assert_problem, post_form, post_raw

Told = list[dict[str, Any]]


def receiver_of(told: Told) -> Any:
    def receive(**values: Any) -> None:
        told.append({**values, "thread": threading.current_thread()})

    return receive


@pytest.fixture
def finished() -> Iterator[Told]:
    told: Told = []
    receive = receiver_of(told)
    extraction_finished.connect(receive)
    yield told
    extraction_finished.disconnect(receive)


@pytest.fixture
def refused() -> Iterator[Told]:
    told: Told = []
    receive = receiver_of(told)
    extraction_refused.connect(receive)
    yield told
    extraction_refused.disconnect(receive)


def test_a_result_is_told_once_with_all_that_belongs_to_it(
    ask: Ask, finished: Told, refused: Told
) -> None:
    extraction = ask(SAMPLE, caller="a")
    (told,) = finished
    assert told["sender"] is Extraction
    assert told["caller"] == "a"
    assert told["sha256"] == hashlib.sha256(SAMPLE).hexdigest()
    assert told["started"] is True
    assert told["extraction"] is extraction
    assert told["error"] is None
    assert told["elapsed"] >= extraction.elapsed
    assert refused == []


def test_a_sync_caller_is_told_of_in_its_own_thread(finished: Told) -> None:
    extract(SAMPLE, caller="a")
    assert finished[0]["thread"] is threading.current_thread()


def test_a_document_that_cannot_be_read_is_told(ask: Ask, finished: Told, refused: Told) -> None:
    with pytest.raises(errors.PasswordRequired) as caught:
        ask(LOCKED, caller="a")
    (told,) = finished
    assert told["extraction"] is None
    assert told["error"] is caught.value
    assert refused == []


@pytest.mark.parametrize(
    ("document", "options", "code"),
    [
        (b"no document", {}, "not_a_pdf"),
        (b"", {}, "invalid_request"),
        (SAMPLE, {"pages": "3-1"}, "invalid_request"),
    ],
)
def test_what_is_refused_unread_is_told(
    ask: Ask,
    finished: Told,
    refused: Told,
    document: bytes,
    options: dict[str, Any],
    code: str,
) -> None:
    with pytest.raises(errors.PdfPoolError):
        ask(document, caller="a", **options)
    (told,) = refused
    assert (told["caller"], told["error"].code) == ("a", code)
    assert told["sender"] is Extraction
    assert finished == []


def test_who_is_refused_by_the_pool_is_told_of(ask: Ask, finished: Told, refused: Told) -> None:
    with scripted(), stream(hanging("first"), caller="a"):
        with pytest.raises(errors.CallerBusy):
            ask(script("second"), caller="a")
        assert [told["error"].code for told in refused] == ["caller_busy"]
        assert finished == []


def test_who_waited_in_vain_was_refused(finished: Told, refused: Told) -> None:
    with (
        scripted(SLOTS=1, WAIT=0.05),
        stream(hanging("first"), caller="a"),
        pytest.raises(errors.Busy),
    ):
        extract(script("second"), caller="b")
    assert [(told["caller"], told["error"].code) for told in refused] == [("b", "busy")]
    assert finished == []


def test_each_caller_of_a_shared_job_is_told_of(finished: Told) -> None:
    with scripted():
        document = waiting("shared")
        with stream(document, caller="a") as first, stream(document, caller="b") as second:
            release(*await_children())
            assert len(list(first)) == len(list(second)) == 1
    assert [(told["caller"], told["started"]) for told in finished] == [("a", True), ("b", False)]


def test_who_leaves_is_told_of_by_neither(finished: Told, refused: Told) -> None:
    with scripted():
        with pytest.raises(TimeoutError):
            extract(hanging("long"), caller="a", timeout=0.2)
        await_idle()
    assert finished == refused == []


def test_a_receiver_that_fails_changes_nothing_for_the_caller(
    ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**values: Any) -> None:
        raise RuntimeError("the receiver is broken")

    extraction_finished.connect(fail)
    try:
        assert ask(SAMPLE, caller="a").complete
    finally:
        extraction_finished.disconnect(fail)
    assert "the receiver is broken" in caplog.text


def test_an_async_receiver_is_awaited() -> None:
    told: Told = []

    async def receive(**values: Any) -> None:
        await asyncio.sleep(0)
        told.append(values)

    extraction_finished.connect(receive)
    try:
        asyncio.run(aextract(SAMPLE, caller="a"))
        assert [each["caller"] for each in told] == ["a"]
        extract(SAMPLE, caller="b")
        assert [each["caller"] for each in told] == ["a", "b"]
    finally:
        extraction_finished.disconnect(receive)


@pytest.mark.django_db
def test_what_the_view_refuses_is_told(client: Client, member: Client, refused: Told) -> None:
    assert_problem(post_raw(Client()), 401, "not_authenticated")
    assert_problem(post_form(member, unknown="option"), 400, "invalid_request")
    with override_settings(PDFPOOL={"MAX_UPLOAD": 10}):
        assert_problem(post_raw(member), 413, "file_too_large")
    codes = [(told["caller"] is None, told["error"].code) for told in refused]
    assert codes == [
        (True, "not_authenticated"),
        (False, "invalid_request"),
        (False, "file_too_large"),
    ]


def test_what_the_view_reads_is_told_once(member: Client, finished: Told, refused: Told) -> None:
    assert post_form(member).json()["pages"][0]["text"].strip() == TEXTS[0]
    assert len(finished) == 1
    assert_problem(post_form(member, b"no document"), 415, "not_a_pdf")
    assert [told["error"].code for told in refused] == ["not_a_pdf"]
