"""What the four public functions give, refuse and log, for documents as users have them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from typing import Any

import pytest

from pdfpool_django import errors, runtime
from pdfpool_django.extraction import Stream, aextract, astream, extract, stream, submit
from pdfpool_django.model import PageSelection
from scripts.pdf_builder import simple_pdf
from tests.site.asking import WAYS, Ask
from tests.site.helpers import LOCKED, PASSWORD, SAMPLE, TEXTS

LOGGER = "pdfpool_django.extraction"
LINE = re.compile(
    r"extraction key=(?P<key>[0-9a-f]{12}) caller=(?P<caller>\S+) share=(?P<share>\w+) "
    r"pages=(?P<pages>\d+) seconds=(?P<seconds>\d+\.\d{3}) outcome=(?P<outcome>\w+)"
)


def texts(extraction: Any) -> list[str]:
    return [page.text.strip() for page in extraction.pages]


# Results


def test_the_result_is_whole(ask: Ask) -> None:
    extraction = ask(SAMPLE, caller="a")
    assert texts(extraction) == list(TEXTS)
    assert extraction.text.split("\f") == [page.text for page in extraction.pages]
    assert [page.number for page in extraction.pages] == [1, 2, 3]
    assert [page.label for page in extraction.pages] == ["1", "2", "3"]
    assert extraction.engine.startswith("pypdf ")
    assert extraction.page_count == 3
    assert extraction.metadata == {"title": "Three"}
    assert extraction.complete
    assert extraction.error is None
    assert extraction.elapsed > 0


@pytest.mark.parametrize(
    ("pages", "chosen"),
    [
        ("2-", [2, 3]),
        ("3,1", [1, 3]),
        (2, [2]),
        ([3, 1, 3], [1, 3]),
        (range(1, 3), [1, 2]),
        ({2: "b"}.keys(), [2]),
        ("", [1, 2, 3]),
        (None, [1, 2, 3]),
    ],
)
def test_pages_are_chosen_by_text_number_or_iterable(pages: Any, chosen: list[int]) -> None:
    extraction = extract(SAMPLE, caller="a", pages=pages)
    assert [page.number for page in extraction.pages] == chosen
    assert texts(extraction) == [TEXTS[number - 1] for number in chosen]
    assert extraction.page_count == 3
    assert extraction.complete


def test_pages_may_come_from_an_iterator(ask: Ask) -> None:
    assert texts(ask(SAMPLE, caller="a", pages=iter([2]))) == ["Second page"]


def test_every_way_takes_pages_and_a_password(ask: Ask) -> None:
    assert texts(ask(LOCKED, caller="a", pages="2", password=PASSWORD)) == ["Second page"]


def test_the_password_of_a_document_without_one_is_not_needed(ask: Ask) -> None:
    assert texts(ask(SAMPLE, caller="a", password="any")) == list(TEXTS)


# Refusals


@pytest.mark.parametrize(
    ("data", "options", "error"),
    [
        (b"", {}, errors.InvalidRequest),
        (b"Dear Sir or Madam", {}, errors.NotAPdf),
        (b"%PDF-1.7\n", {}, errors.InvalidPdf),
        (LOCKED, {}, errors.PasswordRequired),
        (LOCKED, {"password": "a guess"}, errors.WrongPassword),
        (LOCKED, {"password": ""}, errors.PasswordRequired),
        (SAMPLE, {"pages": "2-9"}, errors.PageOutOfRange),
        (SAMPLE, {"pages": "9-2"}, errors.InvalidRequest),
        (SAMPLE, {"pages": 0}, errors.InvalidRequest),
        (SAMPLE, {"pages": []}, errors.InvalidRequest),
    ],
)
def test_what_cannot_be_read_is_an_error_of_its_own(
    ask: Ask, data: bytes, options: dict[str, Any], error: type[errors.PdfPoolError]
) -> None:
    with pytest.raises(error) as caught:
        ask(data, caller="a", **options)
    assert type(caught.value) is error
    assert texts(extract(SAMPLE, caller="a")) == list(TEXTS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"caller": ""}, "caller must be a string that is not empty"),
        ({"caller": None}, "caller must be a string"),
        ({"caller": 7}, "caller must be a string"),
        ({"caller": "a", "password": b"secret"}, "password must be a string, not bytes"),
    ],
)
def test_a_call_that_is_wrong_is_a_type_error(
    ask: Ask, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence) as caught:
        ask(SAMPLE, **options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_is_a_timeout_and_starts_nothing(ask: Ask, timeout: float) -> None:
    before = runtime.state().details["jobs_started"]
    with pytest.raises(TimeoutError):
        ask(SAMPLE, caller="a", timeout=timeout)
    assert runtime.state().details["jobs_started"] == before


def test_a_timeout_that_is_long_enough_changes_nothing(ask: Ask) -> None:
    assert texts(ask(SAMPLE, caller="a", timeout=60)) == list(TEXTS)


def test_a_stream_refuses_at_once_and_an_async_one_when_it_is_iterated() -> None:
    with pytest.raises(errors.NotAPdf):
        stream(b"no PDF", caller="a")
    pages = astream(b"no PDF", caller="a")
    with pytest.raises(errors.NotAPdf):
        asyncio.run(anext(pages))  # type: ignore[arg-type]


def test_the_result_of_a_stream_is_there_at_its_end_only() -> None:
    with stream(SAMPLE, caller="a") as pages:
        next(pages)
        with pytest.raises(RuntimeError, match="to their end"):
            assert pages.extraction
        assert len(list(pages)) == 2
        assert pages.extraction.page_count == 3


async def test_the_result_of_an_async_stream_is_there_at_its_end_only() -> None:
    async with astream(SAMPLE, caller="a") as pages:
        await anext(pages)
        with pytest.raises(RuntimeError, match="to their end"):
            assert pages.extraction
        assert len([page async for page in pages]) == 2
        assert pages.extraction.page_count == 3


async def test_a_large_document_does_not_hold_the_event_loop() -> None:
    big = simple_pdf(*["line after line\n" * 400] * 300)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    assert (await aextract(big, caller="a", pages=1)).page_count == 300
    ticking.cancel()
    assert ticks > 10


# The log


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What has been logged of extractions, as a list of dicts."""
    caplog.set_level(logging.INFO, LOGGER)

    def matched() -> list[dict[str, str]]:
        messages = [each.getMessage() for each in caplog.records if each.name == LOGGER]
        found = [LINE.fullmatch(message) for message in messages]
        assert all(found), messages
        return [match.groupdict() for match in found if match]

    return matched


def test_an_extraction_is_one_line_in_the_log(ask: Ask, lines: Any) -> None:
    ask(SAMPLE, caller="user:7", pages="1-2")
    (line,) = lines()
    assert line["caller"] == "user:7"
    assert line["share"] == "started"
    assert line["pages"] == "2"
    assert line["outcome"] == "complete"
    assert float(line["seconds"]) < 60


def test_an_error_is_its_code_in_the_log(ask: Ask, lines: Any) -> None:
    with pytest.raises(errors.PasswordRequired):
        ask(LOCKED, caller="a")
    assert [line["outcome"] for line in lines()] == ["password_required"]


def test_the_logged_key_tells_requests_apart_exactly_where_their_answers_differ(
    lines: Any,
) -> None:
    same = [{"pages": "1-3"}, {"pages": "3,1,2"}, {"pages": [1, 2, 3], "caller": "b"}]
    different: list[dict[str, Any]] = [{}, {"pages": 2}, {"password": "x"}, {"password": "y"}]
    for options in (*same, *different):
        extract(SAMPLE, **{"caller": "a", **options})
    keys = [line["key"] for line in lines()]
    assert len(set(keys[:3])) == 1
    assert len(set(keys)) == 1 + len(different)


# Passwords


@pytest.mark.parametrize("password", [PASSWORD, "another secret word"])
def test_no_password_is_logged(ask: Ask, caplog: pytest.LogCaptureFixture, password: str) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "pdfpool_django")
    with contextlib.suppress(errors.WrongPassword):
        ask(LOCKED, caller="a", password=password)
    assert caplog.records
    assert "secret word" not in caplog.text


def test_an_error_does_not_tell_the_password_that_was_wrong(ask: Ask) -> None:
    with pytest.raises(errors.WrongPassword) as caught:
        ask(LOCKED, caller="a", password="a guess")
    assert "guess" not in repr(caught.value) + str(caught.value.as_data())


def test_no_repr_has_a_password() -> None:
    with submit(LOCKED, caller="a", password=PASSWORD) as run:
        values = (run, run.result(), run.__dict__, runtime.backend(), runtime.state())
        assert not [value for value in values if PASSWORD in repr(value)]
    with stream(LOCKED, caller="a", password=PASSWORD) as pages:
        assert isinstance(pages, Stream)
        assert PASSWORD not in repr(vars(pages))


def test_a_selection_may_be_given_again() -> None:
    selection = PageSelection.parse("2")
    with submit(SAMPLE, caller="a", pages=selection) as run:
        assert texts(run.result()) == ["Second page"]


def test_every_public_function_is_tested() -> None:
    assert set(WAYS) == {"extract", "aextract", "stream", "astream"}
