"""Every code of the design's table, provoked for real, wherever somebody can be told of it."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from pdfpool_django import http, runtime
from pdfpool_django.errors import ERROR_CLASSES, PdfPoolError
from pdfpool_django.extraction import aextract, extract, stream
from pdfpool_django.model import MIB, Extraction
from scripts.pdf_builder import (
    FONT,
    PdfBuilder,
    encrypted_pdf,
    page_entries,
    simple_pdf,
    text_content,
)
from tests.site.commands import Answer, run, write
from tests.site.helpers import (
    LOCKED,
    PASSWORD,
    SAMPLE,
    await_children,
    hanging,
    script,
)
from tests.site.web import assert_problem, post_form

CALLER = "somebody"
OF_A_HANDLE_ONLY = {"closed", "invalid_pattern"}
HINT = re.compile(
    r"\b(?:ask|check|choose|leave out|load|log in|name|save|send|split|try|wait|write)\b",
    re.IGNORECASE,
)
"""What one is told to do."""

# Where somebody can be told
EXTRACT_VIEW, UPLOAD_PAGE, EXTRACT, AEXTRACT, COMMAND = FACES = (
    "extract/",
    "the upload page",
    "extract",
    "aextract",
    "extract_pdf",
)
WEB = {EXTRACT_VIEW, UPLOAD_PAGE}
PYTHON = {EXTRACT, AEXTRACT}

NO_REQUEST = "there is no request, and so nobody to be known or unknown, and no form"
NO_UPLOAD = "the caller's own file is not taken in, so nothing bounds its size"

ABSENT: Mapping[tuple[str, str], str] = {
    ("not_authenticated", UPLOAD_PAGE): "people are sent to log in instead",
    **{("not_authenticated", face): NO_REQUEST for face in {*PYTHON, COMMAND}},
    **{("forbidden", face): NO_REQUEST for face in {*PYTHON, COMMAND}},
    **{("file_too_large", face): NO_UPLOAD for face in {*PYTHON, COMMAND}},
    ("caller_busy", COMMAND): "each file of a command is its own caller",
}
"""Why a code cannot occur there."""


# States of the pool in which a request comes


@contextmanager
def taken(by: str, count: int = 1) -> Iterator[None]:
    """The first `count` jobs that the pool takes are somebody's, and go on."""
    streams = [stream(hanging(f"{by} {number}"), caller=by) for number in range(count)]
    try:
        await_children()
        yield
    finally:
        for each in streams:
            each.close()


def taken_by_another() -> AbstractContextManager[None]:
    return taken("another")


def taken_by_the_caller() -> AbstractContextManager[None]:
    return taken(CALLER)


@contextmanager
def shut_down() -> Iterator[None]:
    runtime.close()
    yield


# Documents


def with_filter(name: bytes) -> bytes:
    """Return a document whose second page is packed in a way that nobody knows."""
    builder = PdfBuilder()
    first = page_entries(builder, text_content("first"))
    packed = builder.add_stream(b"packed", b"/Filter /%s" % name)
    entries = b"/MediaBox [0 0 9 9] /Contents %d 0 R /Resources << /Font << /F1 %s >> >>"
    return builder.build([first, entries % (packed, FONT)])


RC4 = encrypted_pdf(SAMPLE, user="", owner="owner", algorithm="RC4-128")
FOREIGN_LOCK = RC4.replace(b"/Filter /Standard", b"/Filter /Acme.Lock")
ENGINE = "tests.engines"
SCRIPTED = {"ENGINE": f"{ENGINE}.scripted", "MEMORY": 128 * MIB, "SLOTS": 1, "QUEUE": 0}
BY_TOKEN = {"CALLER": "tests.site.callers.by_token"}


@dataclass(frozen=True)
class Row:
    """A way to provoke a code."""

    code: str
    status: int
    how: str
    document: bytes = SAMPLE
    settings: Mapping[str, Any] = field(default_factory=dict)
    pages: str | None = None
    password: str | None = None
    state: Callable[[], AbstractContextManager[None]] = nullcontext
    caller: str | None = CALLER
    faces: frozenset[str] | set[str] = frozenset(FACES)
    own_words: bool = False
    """Whether it says more exactly what failed than the sentence of its class."""

    @property
    def retryable(self) -> bool:
        return self.status in (429, 503)

    @property
    def options(self) -> dict[str, str]:
        given = {"pages": self.pages, "password": self.password}
        return {name: value for name, value in given.items() if value is not None}


TABLE = [
    Row(
        code="busy",
        status=503,
        how="every slot is taken",
        document=script("one more"),
        settings=SCRIPTED,
        state=taken_by_another,
    ),
    Row(
        code="busy",
        status=503,
        how="the wait runs out",
        document=script("one more"),
        settings={**SCRIPTED, "QUEUE": 1, "WAIT": 0.1},
        state=taken_by_another,
    ),
    Row(
        code="caller_busy",
        status=429,
        how="the caller has another document read",
        document=script("second"),
        settings={**SCRIPTED, "SLOTS": 2},
        state=taken_by_the_caller,
        faces={*WEB, *PYTHON},
    ),
    Row(
        code="unavailable",
        status=503,
        how="no child can be started",
        settings={"ENGINE": f"{ENGINE}.cannot_be_imported"},
    ),
    Row(code="unavailable", status=503, how="shutting down", state=shut_down),
    Row(
        code="not_authenticated",
        status=401,
        how="nobody asks",
        caller=None,
        faces={EXTRACT_VIEW},
    ),
    Row(
        code="forbidden",
        status=403,
        how="no token",
        settings={"CALLER": "tests.site.callers.by_header"},
        faces=WEB,
    ),
    Row(code="invalid_request", status=400, how="an empty file", document=b"", own_words=True),
    Row(
        code="invalid_request",
        status=400,
        how="no page range",
        pages="9-3",
        faces={*WEB, *PYTHON},  # which is wrong usage of a command: its status is 2
        own_words=True,
    ),
    Row(
        code="file_too_large",
        status=413,
        how="more than MAX_UPLOAD",
        settings={"MAX_UPLOAD": 100},
        faces=WEB,
    ),
    Row(code="not_a_pdf", status=415, how="a letter", document=b"Dear Sir or Madam,"),
    Row(code="invalid_pdf", status=422, how="the header only", document=b"%PDF-1.7\n"),
    Row(
        code="invalid_pdf",
        status=422,
        how="every page is broken",
        document=script("broken", 1, {1: "raises_value_error"}),
        settings=SCRIPTED,
    ),
    Row(code="password_required", status=422, how="locked", document=LOCKED),
    Row(code="wrong_password", status=422, how="a guess", document=LOCKED, password="a guess"),
    Row(code="unsupported", status=422, how="a lock of another make", document=FOREIGN_LOCK),
    Row(
        code="unsupported",
        status=422,
        how="the one page is packed in an unknown way",
        document=with_filter(b"NoSuchFilter"),
        pages="2",
    ),
    Row(code="page_out_of_range", status=422, how="page 4 of 3", pages="2-4"),
    Row(code="too_many_pages", status=422, how="3 pages of 2", settings={"MAX_PAGES": 2}),
    Row(
        code="output_too_large",
        status=422,
        how="more text than MAX_OUTPUT",
        document=simple_pdf("a long sentence " * 5),
        settings={"MAX_OUTPUT": 40},
    ),
    Row(
        code="memory_exceeded",
        status=422,
        how="more than MEMORY",
        document=script("large", 1, {1: "eats_memory"}),
        settings=SCRIPTED,
    ),
    Row(
        code="memory_exceeded",
        status=422,
        how="killed by the kernel",
        document=script("killed", 1, {1: "is_killed"}),
        settings=SCRIPTED,
    ),
    Row(
        code="crashed",
        status=422,
        how="a segmentation fault",
        document=script("crash", 1, {1: "segfaults"}),
        settings=SCRIPTED,
    ),
    Row(
        code="crashed",
        status=422,
        how="no frame for an answer",
        document=script("garbage", 1, {1: "answers_garbage"}),
        settings=SCRIPTED,
    ),
    Row(
        code="deadline_exceeded",
        status=422,
        how="longer than DEADLINE",
        document=hanging("slow"),
        settings={**SCRIPTED, "DEADLINE": 0.5},
    ),
    Row(
        code="internal_error",
        status=500,
        how="a fault in the job",
        settings={"BACKEND": "tests.site.faulty.FaultyBackend"},
    ),
    Row(
        code="internal_error",
        status=500,
        how="a fault in the site's CALLER",
        settings={"CALLER": "tests.site.callers.fails"},
        faces=WEB,
    ),
]


def crossed(*faces: str) -> Any:
    """Give the test each row that can be provoked at one of these faces."""
    cases = [(row, face) for face in faces for row in TABLE if face in row.faces]
    ids = [f"{face}-{row.code}: {row.how}" for row, face in cases]
    if len(faces) == 1:
        return pytest.mark.parametrize("row", [row for row, _ in cases], ids=ids)
    return pytest.mark.parametrize(("row", "face"), cases, ids=ids)


@contextmanager
def provoked(row: Row) -> Iterator[None]:
    """A site with the settings of a row, whose pool is in its state."""
    with override_settings(PDFPOOL={**BY_TOKEN, **row.settings}), row.state():
        yield


def asked_over_http(row: Row, view: str) -> Any:
    names = {"Authorization": f"Bearer {row.caller}", "X-Caller": row.caller}
    headers = names if row.caller else {}
    client = Client(enforce_csrf_checks=True)
    with provoked(row):
        return post_form(client, row.document, view=view, headers=headers, **row.options)


def asked_in_python(row: Row, face: str) -> Extraction:
    assert row.caller
    with provoked(row):
        if face == EXTRACT:
            return extract(row.document, caller=row.caller, **row.options)
        return asyncio.run(aextract(row.document, caller=row.caller, **row.options))


def commanded(row: Row, path: Path, *options: str) -> Answer:
    arguments = [*options, "--pages", row.pages] if row.pages else [*options]
    if row.password is not None:
        arguments += ["--password-file", str(write(path.parent, "secret", row.password.encode()))]
    with provoked(row):
        return run(path, *arguments)


def assert_sentence(detail: str, code: str, own_words: bool = False) -> None:
    """The sentence is the class's own, filled in, and says what to do."""
    if not own_words:
        template = re.escape(ERROR_CLASSES[code].default_template.replace("%%", "%"))
        pattern = re.sub(r"%\\\(\w+\\\)[sdg]", ".+", template)
        assert re.fullmatch(pattern, detail), detail
    assert detail.endswith(".")
    assert HINT.search(detail), f"what is one to do? {detail}"


# The table itself


@pytest.mark.parametrize("face", FACES)
def test_every_code_has_a_row_or_a_reason_why_not(face: str) -> None:
    provoked = {row.code for row in TABLE if face in row.faces}
    absent = {code for code, where in ABSENT if where == face}
    assert provoked | absent == set(ERROR_CLASSES) - OF_A_HANDLE_ONLY
    assert not provoked & absent
    assert all(ABSENT.values())


# Over HTTP


@crossed(EXTRACT_VIEW)
def test_a_program_gets_problem_details(row: Row) -> None:
    response = asked_over_http(row, "extract")
    details = assert_problem(response, row.status, row.code)
    assert details["type"] == f"urn:pdfpool:error:{row.code}"
    assert details["retryable"] is row.retryable
    assert_sentence(details["detail"], row.code, row.own_words)
    if row.retryable:
        assert response["Retry-After"] == str(details["retry_after"])
        assert details["retry_after"] >= 1
    assert response.has_header("WWW-Authenticate") == (row.code == "not_authenticated")


@crossed(UPLOAD_PAGE)
def test_people_get_a_page_that_says_so_and_the_form_again(row: Row) -> None:
    response = asked_over_http(row, "upload")
    page = response.content.decode()
    assert response.status_code == row.status, page
    assert response["Content-Type"] == "text/html; charset=utf-8"
    title, detail = re.findall(r"<h2>(.*)</h2>\s*<p>(.*)</p>", page)[0]
    assert title == http.title_of(ERROR_CLASSES[row.code]())
    assert_sentence(html.unescape(detail), row.code, row.own_words)
    assert "<form" in page
    assert response.has_header("Retry-After") == row.retryable


@override_settings(PDFPOOL=BY_TOKEN)
def test_people_who_have_not_logged_in_are_sent_to_do_so() -> None:
    response = post_form(Client(), view="upload")
    assert (response.status_code, response["Location"]) == (302, "/accounts/login/?next=/pdf/")


@pytest.mark.parametrize("row", [row for row in TABLE if row.code == "internal_error"])
def test_a_fault_is_logged_under_the_reference_that_is_shown(
    row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    details = assert_problem(asked_over_http(row, "extract"), 500, "internal_error")
    (record,) = [each for each in caplog.records if details["reference"] in each.getMessage()]
    assert record.exc_info
    assert "is gone" not in json.dumps(details)
    assert "is gone" in caplog.text


# In Python


@crossed(EXTRACT, AEXTRACT)
def test_in_python_it_is_raised(row: Row, face: str) -> None:
    with pytest.raises(PdfPoolError) as caught:
        asked_in_python(row, face)
    error = caught.value
    assert type(error) is ERROR_CLASSES[row.code]
    assert error.retryable is row.retryable
    assert_sentence(str(error), row.code, row.own_words)
    assert PASSWORD not in str(error)


@crossed(EXTRACT)
def test_what_is_raised_in_python_makes_the_same_response(row: Row) -> None:
    with pytest.raises(PdfPoolError) as caught:
        asked_in_python(row, EXTRACT)
    details = assert_problem(http.problem_response(caught.value), row.status, row.code)
    assert details["detail"] == str(caught.value)


# In the command


@crossed(COMMAND)
def test_the_command_names_the_file_what_failed_and_what_to_do(row: Row, folder: Path) -> None:
    path = write(folder, "a.pdf", row.document)
    answer = commanded(row, path)
    assert (answer.status, answer.out) == (1, "")
    (line,) = answer.err.splitlines()
    assert line.startswith(f"{path}: ")
    assert_sentence(line.removeprefix(f"{path}: "), row.code, row.own_words)
    assert answer.message == "1 of 1 files could not be read completely."


@crossed(COMMAND)
def test_the_command_has_the_error_as_an_object(row: Row, folder: Path) -> None:
    path = write(folder, "a.pdf", row.document)
    answer = commanded(row, path, "--format", "json")
    assert answer.status == 1
    (result,) = json.loads(answer.out)
    assert set(result) == {"path", "error"}
    assert (result["path"], result["error"]["code"]) == (str(path), row.code)
    assert_sentence(result["error"]["detail"], row.code, row.own_words)
    assert answer.err == f"{path}: {result['error']['detail']}\n"


@crossed(COMMAND)
def test_the_command_has_the_error_as_an_event(row: Row, folder: Path) -> None:
    path = write(folder, "a.pdf", row.document)
    answer = commanded(row, path, "--format", "ndjson")
    last = json.loads(answer.out.splitlines()[-1])
    assert (last["path"], last["type"], last["error"]["code"]) == (str(path), "error", row.code)


# Pages that fail in a document of which others are read


@dataclass(frozen=True)
class PageRow:
    """A way in which the second page fails."""

    code: str
    how: str
    document: bytes
    settings: Mapping[str, Any] = field(default_factory=lambda: SCRIPTED)
    stops: bool = False
    """Whether nothing is read after it."""


def second(act: str) -> bytes:
    return script(act, 3, {2: act})


LOSSES = script("three losses", 6, {2: "segfaults", 3: "segfaults", 4: "segfaults"})

PAGES = [
    PageRow("crashed", "a segmentation fault", second("segfaults")),
    PageRow("crashed", "no frame for an answer", second("answers_garbage")),
    PageRow("memory_exceeded", "more than MEMORY", second("eats_memory")),
    PageRow("memory_exceeded", "killed by the kernel", second("is_killed")),
    PageRow("invalid_pdf", "the library cannot parse it", second("raises_value_error")),
    PageRow(
        "deadline_exceeded",
        "longer than PAGE_DEADLINE",
        second("hangs"),
        {**SCRIPTED, "PAGE_DEADLINE": 1},
    ),
    PageRow(
        "output_too_large",
        "more text than MAX_OUTPUT",
        second("gives_much_text"),
        {**SCRIPTED, "MAX_OUTPUT": 1000},
        stops=True,
    ),
    PageRow("unsupported", "packed in an unknown way", with_filter(b"NoSuchFilter"), {}),
]
OF_THE_WHOLE_DOCUMENT = {
    *("password_required", "wrong_password", "not_a_pdf", "invalid_request"),
    *("page_out_of_range", "too_many_pages", "file_too_large", "forbidden", "not_authenticated"),
    *("busy", "caller_busy", "unavailable", "internal_error"),
}
every_page_row = pytest.mark.parametrize("row", PAGES, ids=lambda row: f"{row.code}: {row.how}")


@contextmanager
def read_by(settings: Mapping[str, Any]) -> Iterator[Client]:
    with override_settings(PDFPOOL={**BY_TOKEN, **settings}):
        yield Client(headers={"Authorization": f"Bearer {CALLER}"})


def error_of(pages: list[dict[str, Any]], number: int) -> tuple[str, str]:
    error = pages[number - 1]["error"]
    return error["code"], error["detail"]


def test_every_code_has_a_page_or_is_of_the_whole_document() -> None:
    assert {row.code for row in PAGES} | OF_THE_WHOLE_DOCUMENT | OF_A_HANDLE_ONLY == set(
        ERROR_CLASSES
    )


@every_page_row
def test_over_http_the_page_has_the_error_and_the_result_is_incomplete(row: PageRow) -> None:
    with read_by(row.settings) as client:
        response = post_form(client, row.document)
    assert response.status_code == 200
    body = response.json()
    assert body["complete"] is False
    assert body["pages"][0]["error"] is None
    code, detail = error_of(body["pages"], 2)
    if row.stops:  # it is told once, by what has been stopped
        assert body["error"]["code"] == row.code
        detail = body["error"]["detail"]
    else:
        assert code == row.code
        assert body["error"] is None
    assert_sentence(detail, row.code)


@every_page_row
def test_the_upload_page_shows_the_error_with_the_pages(row: PageRow) -> None:
    with read_by(row.settings) as client:
        response = post_form(client, row.document, view="upload")
        result = extract(row.document, caller="another")
    page = html.unescape(response.content.decode())
    assert response.status_code == 200
    assert "Not every page could be read." in page
    error = result.error if row.stops else result.pages[1].error
    assert error is not None
    assert error["detail"] in page


@every_page_row
def test_in_python_the_page_has_the_error(row: PageRow) -> None:
    with read_by(row.settings):
        result = extract(row.document, caller=CALLER)
    assert not result.complete
    assert result.pages[0].error is None
    error = result.error if row.stops else result.pages[1].error
    assert error is not None
    assert error["code"] == row.code
    assert_sentence(error["detail"], row.code)


@every_page_row
def test_the_command_names_the_page_and_writes_the_others(row: PageRow, folder: Path) -> None:
    path = write(folder, "a.pdf", row.document)
    with read_by(row.settings):
        answer = run(path)
    assert answer.status == 1
    assert answer.pages[0]
    where = f"{path}: stopped early. " if row.stops else f"{path}, page 2: "
    line = answer.err.splitlines()[-1]
    assert line.startswith(where)
    assert_sentence(line.removeprefix(where), row.code)


@pytest.fixture
def losses() -> Iterator[Client]:
    with read_by(SCRIPTED) as client:
        yield client


def assert_not_attempted(pages: list[dict[str, Any]]) -> None:
    for number in (5, 6):
        code, detail = error_of(pages, number)
        assert code == "not_attempted"
        assert "not read" in detail


def test_what_is_not_attempted_says_what_to_do(losses: Client) -> None:
    _, detail = error_of(post_form(losses, LOSSES).json()["pages"], 5)
    assert HINT.search(detail), f"what is one to do? {detail}"


def test_what_is_not_attempted_is_told_over_http(losses: Client) -> None:
    body = post_form(losses, LOSSES).json()
    assert_not_attempted(body["pages"])
    assert body["error"]["code"] == "crashed"
    assert_sentence(body["error"]["detail"], "crashed")


def test_what_is_not_attempted_is_told_on_the_upload_page(losses: Client) -> None:
    page = post_form(losses, LOSSES, view="upload").content.decode()
    result = extract(LOSSES, caller="another")
    error = result.pages[5].error
    assert error is not None
    assert page.count(html.escape(error["detail"])) == 2


def test_what_is_not_attempted_is_told_in_python(losses: Client) -> None:
    result = extract(LOSSES, caller=CALLER)
    assert_not_attempted(result.as_dict()["pages"])


def test_what_is_not_attempted_is_told_by_the_command(losses: Client, folder: Path) -> None:
    path = write(folder, "a.pdf", LOSSES)
    answer = run(path, "--format", "json")
    assert answer.status == 1
    assert_not_attempted(json.loads(answer.out)[0]["pages"])
    assert answer.err.splitlines()[-1].startswith(f"{path}: stopped early. ")
