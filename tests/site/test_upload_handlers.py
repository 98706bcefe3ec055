"""Uploads to sites that have more to do with a request: handlers, middlewares, a proxy."""

from __future__ import annotations

import hashlib
import io
import logging
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import Client, override_settings
from django.urls import path

from example_project.urls import urlpatterns as example_urlpatterns
from pdfpool_django.views import ExtractView
from scripts.pdf_builder import simple_pdf
from tests.sandbox.helpers import Call
from tests.site import middlewares
from tests.site.helpers import (
    SAMPLE,
    SCRIPTED,
    TEXTS,
    await_children,
    await_joined,
    children_used,
    release,
    script,
    waiting,
)
from tests.site.upload_handlers import ENVELOPE, QUOTA, SEPARATOR, STORE
from tests.site.web import (
    FORM,
    RAW,
    assert_problem,
    field_part,
    file_part,
    post_form,
    post_parts,
    post_raw,
    seen,
    texts,
    url,
)

BY_TOKEN = {"CALLER": "tests.site.callers.by_token"}
MEMORY = "django.core.files.uploadhandler.MemoryFileUploadHandler"
TEMPORARY = "django.core.files.uploadhandler.TemporaryFileUploadHandler"


class SampleView(ExtractView):
    """A document that the site has."""

    def get_source(self, request: HttpRequest) -> bytes:
        return SAMPLE


urlpatterns = [*example_urlpatterns, path("sample/", SampleView.as_view(), name="sample")]

pytestmark = pytest.mark.urls(__name__)


def handlers(*names: str) -> Any:
    """Have these upload handlers: ours by name, others by path."""
    ours = "tests.site.upload_handlers."
    paths = [name if "." in name else ours + name for name in names]
    return override_settings(FILE_UPLOAD_HANDLERS=paths)


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    """Nothing of an upload is left in the site's store."""
    STORE.clear()
    yield
    assert STORE == {}


@pytest.fixture
def program() -> Iterator[Client]:
    """A program that shows a token of its own, so that the view itself has the form parsed."""
    with override_settings(PDFPOOL=BY_TOKEN):
        yield Client(headers={"Authorization": "Bearer program"})


@pytest.fixture
def browser(db: None) -> Client:
    """A member's browser, whose form is parsed by the CSRF check."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("member"))
    client.get(url("upload"))
    return client


def with_database(name: str) -> Any:
    """Ask for one here: pytest-django makes none for a fixture that is found later."""
    return pytest.param(name, marks=pytest.mark.django_db)


@pytest.fixture(
    params=["program", with_database("browser"), with_database("browser, token last")], ids=str
)
def send(request: pytest.FixtureRequest) -> Any:
    """Send a file as one of these does."""
    client: Client = request.getfixturevalue(request.param.split(",")[0])

    def post(data: bytes = SAMPLE, name: bytes = b"sample.pdf", **environ: Any) -> Any:
        parts = [file_part(data, name)]
        if "browser" in request.param:
            token = field_part(b"csrfmiddlewaretoken", client.cookies["csrftoken"].value.encode())
            parts.insert(len(parts) if "last" in request.param else 0, token)
        return post_parts(client, *parts, **environ)

    return post


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Django's own handlers, alone


LARGE = SAMPLE + b"\n%" + b"x" * 200_000


@pytest.mark.parametrize("names", [(TEMPORARY,), (MEMORY,), (MEMORY, TEMPORARY)])
def test_a_file_is_read_wherever_it_is_kept(send: Any, names: tuple[str, ...]) -> None:
    with handlers(*names):
        response = send()
    assert texts(response) == list(TEXTS)
    assert response.json()["sha256"] == digest(SAMPLE)


def test_a_large_file_is_read_from_a_temporary_one(send: Any, uploads: Path) -> None:
    with handlers(TEMPORARY):
        response = send(LARGE)
    assert texts(response) == list(TEXTS)
    assert response.json()["sha256"] == digest(LARGE)


def test_a_file_that_no_handler_keeps_is_told(send: Any, uploads: Path) -> None:
    with handlers(MEMORY):  # which keeps no large ones
        assert_problem(send(LARGE), 400, "invalid_request", "or a smaller one")


@pytest.mark.parametrize("names", [(TEMPORARY,), (MEMORY,)])
@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 400, "invalid_request"),
        (b"Dear Sir", 415, "not_a_pdf"),
        (b"%PDF-", 422, "invalid_pdf"),
    ],
)
def test_what_is_refused_leaves_nothing(
    send: Any, tmp_path: Path, names: tuple[str, ...], data: bytes, status: int, code: str
) -> None:
    with handlers(*names), override_settings(FILE_UPLOAD_TEMP_DIR=str(tmp_path)):
        assert_problem(send(data), status, code)
    assert list(tmp_path.iterdir()) == []


# Handlers that change what is sent


ENVELOPES = [b"e" * ENVELOPE, b"f" * ENVELOPE]


@pytest.mark.parametrize("keeper", [MEMORY, TEMPORARY])
def test_the_hash_is_of_what_the_handlers_have_left(send: Any, keeper: str) -> None:
    with handlers("Unwrapping", keeper):
        found = [send(envelope + SAMPLE) for envelope in ENVELOPES]
    assert [texts(each) for each in found] == [list(TEXTS)] * 2
    assert {each.json()["sha256"] for each in found} == {digest(SAMPLE)}


def by_token(caller: str, data: bytes, **headers: str) -> Any:
    return post_form(Client(), data, headers={"Authorization": f"Bearer {caller}", **headers})


@override_settings(PDFPOOL={**SCRIPTED, **BY_TOKEN})
def test_the_same_document_in_other_envelopes_is_one_job() -> None:
    document = waiting("enveloped")
    with handlers("Unwrapping", TEMPORARY):
        by_token("a", ENVELOPES[0] + script("first"))
        before = children_used()
        calls = [Call(by_token, "a", ENVELOPES[0] + document)]
        pids = await_children()
        calls.append(Call(by_token, "b", ENVELOPES[1] + document))
        await_joined(1)
        release(*pids)
        assert [texts(call.result()) for call in calls] == [
            ["text of page 1, after the signal"]
        ] * 2
    assert children_used() == before + 1


@override_settings(PDFPOOL={**SCRIPTED, **BY_TOKEN})
def test_the_same_bytes_of_which_handlers_leave_something_else_are_two_jobs() -> None:
    both = waiting("one") + SEPARATOR + script("two", 2)
    with handlers("Picking", MEMORY):
        first = Call(by_token, "a", both, **{"X-Part": "0"})
        pids = await_children()
        assert texts(by_token("b", both, **{"X-Part": "1"})) == ["text of page 1", "text of page 2"]
        release(*pids)
        assert texts(first.result()) == ["text of page 1, after the signal"]


def test_what_a_handler_makes_larger_than_the_limit_is_refused(uploads: Path) -> None:
    limited = {**BY_TOKEN, "MAX_UPLOAD": 100_000}
    with handlers("Inflating"), override_settings(PDFPOOL=limited):
        assert texts(by_token("a", zlib.compress(SAMPLE))) == list(TEXTS)
        assert_problem(by_token("a", zlib.compress(LARGE)), 413, "file_too_large", "100000 bytes")


def test_a_handler_may_have_a_parser_of_its_own(program: Client) -> None:
    with handlers("ParsingItself"):
        response = post_parts(program, file_part())
    assert texts(response) == [TEXTS[1]]
    assert response.json()["sha256"] == digest(SAMPLE)


# A file that is kept elsewhere


@pytest.mark.parametrize("data", [SAMPLE, LARGE], ids=["small", "large"])
def test_a_file_kept_elsewhere_is_read_and_given_up(send: Any, data: bytes) -> None:
    with handlers("KeepingElsewhere"):
        response = send(data)
    assert texts(response) == list(TEXTS)
    assert response.json()["sha256"] == digest(data)


def test_a_file_kept_elsewhere_is_given_up_where_it_is_refused(send: Any) -> None:
    with handlers("KeepingElsewhere"):
        assert_problem(send(b""), 400, "invalid_request", "is empty")
        assert_problem(send(b"Dear Sir"), 415, "not_a_pdf")
        assert_problem(send(SAMPLE, QUERY_STRING="pages=9-3"), 400, "invalid_request")
        assert_problem(send(SAMPLE, QUERY_STRING="colour=red"), 400, "invalid_request")


def test_a_file_kept_elsewhere_is_given_up_where_it_grows_too_large() -> None:
    with handlers("KeepingElsewhere"), override_settings(PDFPOOL={**BY_TOKEN, "MAX_UPLOAD": 1000}):
        assert_problem(by_token("a", LARGE[:60_000]), 413, "file_too_large")


# Handlers that turn a file away


@pytest.mark.parametrize("after_it", [False, True], ids=["before it is kept", "afterwards"])
@pytest.mark.parametrize("handler", ["SkippingLate", "Stopping", "StoppingAtOnce"])
def test_a_file_that_a_handler_drops_is_told(
    send: Any, uploads: Path, handler: str, after_it: bool
) -> None:
    names = [handler, TEMPORARY]
    with handlers(*(reversed(names) if after_it else names)):
        response = send(LARGE)
    if after_it:  # it never comes so far: the file has been kept before
        assert texts(response) == list(TEXTS)
    else:
        assert_problem(response, 400, "invalid_request", "this site keeps no such file")


def test_a_file_that_is_skipped_for_its_name_is_told(send: Any, uploads: Path) -> None:
    with handlers("Skipping", TEMPORARY):
        assert_problem(send(name=b"a.exe"), 400, "invalid_request", "this site keeps no such file")
        assert texts(send(name=b"a.pdf")) == list(TEXTS)


def test_a_form_that_ends_within_its_file_is_told(program: Client, uploads: Path) -> None:
    body = b"--boundary\r\n" + file_part(SAMPLE)[:-10]
    environ = {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body) + 100)}
    response = post_parts(program, **environ)
    assert_problem(response, 400, "invalid_request", "did not arrive whole")


class Breaking(io.BytesIO):
    """A connection that breaks after what has come so far."""

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if not found:
            raise OSError("connection reset")
        return found


@pytest.mark.parametrize("names", [(TEMPORARY,), ("KeepingElsewhere",)])
def test_a_connection_that_breaks_within_the_file_leaves_nothing(
    program: Client, uploads: Path, names: tuple[str, ...]
) -> None:
    body = b"--boundary\r\n" + file_part(LARGE)
    environ = {"wsgi.input": Breaking(body), "CONTENT_LENGTH": str(len(body) + 100)}
    with handlers(*names):
        response = post_parts(program, **environ)
    assert_problem(response, 400, "invalid_request", "send it again")
    assert list(uploads.iterdir()) == []


@pytest.mark.parametrize(
    ("handler", "status", "code", "words"),
    [
        ("Refusing", 413, "file_too_large", f"larger than the {QUOTA} bytes allowed"),
        ("RefusingNames", 400, "invalid_request", "No files on Mondays"),
    ],
)
def test_a_handler_may_refuse_in_words_of_its_own(
    send: Any, uploads: Path, handler: str, status: int, code: str, words: str
) -> None:
    with handlers(handler, TEMPORARY):
        assert_problem(send(), status, code, words)


def test_a_handler_with_a_fault_is_a_fault_of_ours(
    send: Any, uploads: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with handlers("Failing", TEMPORARY):
        details = assert_problem(send(), 500, "internal_error")
    assert "viruses" not in str(details)
    assert "the scanner for viruses is gone" in caplog.text


# Middlewares that look into the request first


WAYS = {FORM: post_form, RAW: post_raw}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def post(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["reads_post", "reads_files", "reads_body"])
def looked_into(request: pytest.FixtureRequest, settings: Any) -> Iterator[str]:
    """A middleware has looked into each request."""
    middlewares.seen.clear()
    settings.MIDDLEWARE = [f"tests.site.middlewares.{request.param}", *settings.MIDDLEWARE]
    yield request.param
    assert middlewares.seen


@pytest.mark.usefixtures("looked_into")
def test_a_request_that_has_been_looked_into_is_answered(
    program: Client, post: Any, uploads: Path
) -> None:
    response = post(program, query="pages=2")
    assert texts(response) == [TEXTS[1]]
    assert response.json()["sha256"] == digest(SAMPLE)


@pytest.mark.usefixtures("looked_into")
def test_a_browsers_form_that_has_been_looked_into_is_answered(
    browser: Client, uploads: Path
) -> None:
    token = browser.cookies["csrftoken"].value
    response = post_form(browser, view="upload", csrfmiddlewaretoken=token, pages="2")
    assert response.status_code == 200
    assert TEXTS[1].encode() in response.content
    assert_problem(post_form(browser), 403, "forbidden")


@pytest.mark.usefixtures("looked_into")
@pytest.mark.parametrize(
    ("data", "options", "status", "code"),
    [
        (b"", {}, 400, "invalid_request"),
        (b"Dear Sir", {}, 415, "not_a_pdf"),
        (b"%PDF-1.7\n", {}, 422, "invalid_pdf"),
        (SAMPLE, {"query": "pages=9"}, 422, "page_out_of_range"),
        (SAMPLE, {"query": "colour=red"}, 400, "invalid_request"),
    ],
)
def test_a_request_that_has_been_looked_into_is_refused(
    program: Client,
    post: Any,
    uploads: Path,
    data: bytes,
    options: dict[str, str],
    status: int,
    code: str,
) -> None:
    assert_problem(post(program, data, **options), status, code)


@pytest.mark.usefixtures("looked_into")
def test_a_file_that_has_been_looked_into_keeps_to_the_limit(post: Any, uploads: Path) -> None:
    with override_settings(PDFPOOL={**BY_TOKEN, "MAX_UPLOAD": len(SAMPLE)}):
        client = Client(headers={"Authorization": "Bearer program"})
        assert texts(post(client)) == list(TEXTS)
        assert_problem(post(client, SAMPLE + b"\n"), 413, "file_too_large")


@pytest.mark.usefixtures("looked_into")
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "no file named"),
        ([field_part(b"pages", b"1")], "no file named"),
        ([file_part(), file_part()], "more than one file"),
        ([file_part(), file_part(field=b"other")], "“file” but “other”"),
        ([file_part(field=b"other")], "“file” but “other”"),
    ],
)
def test_a_form_that_has_been_looked_into_has_one_file(
    program: Client, uploads: Path, looked_into: str, parts: list[bytes], words: str
) -> None:
    if looked_into == "reads_body" and len(parts) == 2:
        words = "more than one file"  # found while the form is parsed, which has yet to be done
    assert_problem(post_parts(program, *parts), 400, "invalid_request", words)


@pytest.mark.usefixtures("looked_into")
def test_a_strangers_request_that_has_been_looked_into_is_refused(
    program: Client, post: Any, uploads: Path
) -> None:
    assert_problem(post(Client()), 401, "not_authenticated")


@pytest.mark.usefixtures("looked_into")
def test_a_body_in_chunks_that_has_been_looked_into_is_answered(program: Client) -> None:
    environ = {"wsgi.input": io.BytesIO(SAMPLE), "wsgi.input_terminated": True}
    assert texts(post_raw(program, b"", CONTENT_LENGTH="", **environ)) == list(TEXTS)


@pytest.mark.usefixtures("looked_into")
def test_where_no_file_is_asked_for_none_is_taken(program: Client, uploads: Path) -> None:
    assert texts(seen(program.post("/sample/", {"pages": "2"}))) == [TEXTS[1]]
    response = seen(program.post("/sample/", {"pages": "2", "file": io.BytesIO(SAMPLE)}))
    assert_problem(response, 400, "invalid_request", "takes no file")


# A proxy in front


PUBLIC = "https://pdf.example"
BEHIND_A_PROXY = {"SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https")}


def post_from(client: Client, **headers: str) -> Any:
    token = client.cookies["csrftoken"].value
    return post_form(client, headers={"Host": "testserver", "X-CSRFToken": token, **headers})


def assert_foreign(response: Any) -> None:
    assert_problem(response, 403, "forbidden", "does not come from a page of this site")


def test_an_origin_that_the_site_trusts_lets_in(browser: Client) -> None:
    with override_settings(CSRF_TRUSTED_ORIGINS=[PUBLIC]):
        assert texts(post_from(browser, Origin=PUBLIC)) == list(TEXTS)
        assert_foreign(post_from(browser, Origin="http://pdf.example"))
    assert_foreign(post_from(browser, Origin=PUBLIC))


def test_an_origin_under_https_is_the_sites_own_where_its_proxy_says_so(browser: Client) -> None:
    forwarded = {"Origin": "https://testserver", "X-Forwarded-Proto": "https"}
    assert_foreign(post_from(browser, **forwarded))
    with override_settings(**BEHIND_A_PROXY):
        assert texts(post_from(browser, **forwarded)) == list(TEXTS)
        assert_foreign(post_from(browser, Origin="https://testserver"))


@override_settings(**BEHIND_A_PROXY)
def test_under_https_a_request_without_origin_needs_its_referer(browser: Client) -> None:
    secure = {"X-Forwarded-Proto": "https"}
    assert_foreign(post_from(browser, **secure))
    assert_foreign(post_from(browser, **secure, Referer="https://evil.example/"))
    assert texts(post_from(browser, **secure, Referer="https://testserver/pdf/")) == list(TEXTS)


@override_settings(
    **BEHIND_A_PROXY, USE_X_FORWARDED_HOST=True, ALLOWED_HOSTS=["pdf.example", "testserver"]
)
def test_the_host_that_the_proxy_forwards_is_the_sites_own(browser: Client) -> None:
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pdf.example"}
    assert texts(post_from(browser, **headers, Origin=PUBLIC)) == list(TEXTS)
    assert_foreign(post_from(browser, **headers, Origin="https://testserver"))


def test_a_token_is_asked_for_from_the_right_origin_too(browser: Client) -> None:
    response = post_form(browser, headers={"Origin": "http://testserver"})
    assert_problem(response, 403, "forbidden", "CSRF token is missing or wrong")


def test_who_runs_the_site_finds_the_reason_in_its_log(
    browser: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "django.security.csrf"):
        post_from(browser, Origin=PUBLIC)
    (record,) = [each for each in caplog.records if each.name == "django.security.csrf"]
    assert re.search(rf"Origin checking failed - {PUBLIC} .*: /pdf/extract/", record.getMessage())
    assert record.status_code == 403


def test_a_document_in_a_form_is_the_one_that_was_sent(send: Any) -> None:
    assert texts(send(simple_pdf("mine"))) == ["mine"]
