"""``extract/``: what it takes, and what it answers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from scripts.pdf_builder import simple_pdf
from tests.site.helpers import LOCKED, PASSWORD, SAMPLE, TEXTS
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

WAYS = {FORM: post_form, RAW: post_raw}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def post(request: pytest.FixtureRequest) -> Any:
    """Both ways to send a document."""
    return request.param


# Answers


def test_a_document_gives_json(member: Client, post: Any) -> None:
    response = post(member)
    assert texts(response) == list(TEXTS)
    assert response["Content-Type"] == "application/json"
    assert response["Vary"].startswith("Accept")
    body = response.json()
    assert body["version"] == 1
    assert body["metadata"] == {"title": "Three"}
    assert body["page_count"] == 3
    assert body["complete"] is True
    assert body["error"] is None


def test_a_document_gives_plain_text_where_that_is_preferred(member: Client, post: Any) -> None:
    response = post(member, headers={"Accept": "text/plain"})
    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Pdfpool-Complete"] == "true"
    assert [page.strip() for page in response.content.decode().split("\f")] == list(TEXTS)


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", "application/json"),
        ("application/json, text/plain;q=0.5", "application/json"),
        ("text/plain;q=0.5, application/json;q=0.1", "text/plain; charset=utf-8"),
        ("text/*", "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("application/json; charset=utf-8, text/plain;q=0.5", "application/json"),
        ("application/json; v=1; q=0.1, text/plain; q=0.5", "text/plain; charset=utf-8"),
        ("image/png", "application/json"),
    ],
)
def test_what_is_preferred_is_answered(member: Client, accept: str, given: str) -> None:
    assert post_raw(member, headers={"Accept": accept})["Content-Type"] == given


def test_text_outside_ascii_is_sent_as_it_is(member: Client) -> None:
    response = post_form(member, simple_pdf("Größe"))
    assert texts(response) == ["Größe"]
    assert "Größe".encode() in response.content


# Options


def test_pages_in_the_query(member: Client, post: Any) -> None:
    assert texts(post(member, query="pages=2-")) == list(TEXTS[1:])


def test_pages_as_a_field_which_wins_over_the_query(member: Client) -> None:
    assert texts(post_form(member, pages="2")) == [TEXTS[1]]
    assert texts(post_form(member, pages="2", query="pages=3")) == [TEXTS[1]]
    assert texts(post_form(member, pages="", query="pages=3")) == [TEXTS[2]]


def test_the_password_as_a_header(member: Client, post: Any) -> None:
    assert texts(post(member, LOCKED, headers={"Pdfpool-Password": PASSWORD})) == list(TEXTS)


def test_the_password_as_a_field(member: Client) -> None:
    assert texts(post_form(member, LOCKED, password=PASSWORD)) == list(TEXTS)


def test_a_password_in_the_query_is_refused(member: Client, post: Any) -> None:
    response = post(member, LOCKED, query=f"password={PASSWORD}")
    details = assert_problem(response, 400, "invalid_request", "must not be in the address")
    assert PASSWORD not in str(details)


def test_a_locked_document_needs_its_password(member: Client, post: Any) -> None:
    assert_problem(post(member, LOCKED), 422, "password_required", "send its password")


def test_a_wrong_password_is_told(member: Client, post: Any) -> None:
    response = post(member, LOCKED, headers={"Pdfpool-Password": "a guess"})
    assert "a guess" not in str(assert_problem(response, 422, "wrong_password", "check it"))


@pytest.mark.parametrize("where", ["field", "query"])
@pytest.mark.parametrize(
    ("pages", "status", "code", "words"),
    [
        ("0", 400, "invalid_request", "pages are numbered from 1"),
        ("9-3", 400, "invalid_request", "write the smaller number first"),
        ("x", 400, "invalid_request", "write one like “1-3,7”"),
        ("1-999999999", 422, "page_out_of_range", "the file has 3 pages"),
        ("4", 422, "page_out_of_range", "Page 4 does not exist"),
    ],
)
def test_pages_that_do_not_exist_are_refused(
    member: Client, where: str, pages: str, status: int, code: str, words: str
) -> None:
    options = {"pages": pages} if where == "field" else {"query": f"pages={pages}"}
    assert_problem(post_form(member, **options), status, code, words)


# What is no document


@pytest.mark.parametrize(
    ("data", "status", "code", "words"),
    [
        (b"", 400, "invalid_request", "The file is empty; send one that is not."),
        (b"Dear Sir or Madam", 415, "not_a_pdf", "Send a PDF file."),
        (b"%PDF-1.7\n", 422, "invalid_pdf", "Save it again"),
    ],
    ids=["empty", "a text", "header only"],
)
def test_what_is_no_pdf_is_refused_and_leaves_nothing(
    member: Client, post: Any, uploads: Path, data: bytes, status: int, code: str, words: str
) -> None:
    assert_problem(post(member, data), status, code, words)


def test_no_file_is_refused(member: Client) -> None:
    response = post_parts(member, field_part(b"pages", b"1"))
    assert_problem(response, 400, "invalid_request", "has no file named “file”; choose one")


def test_a_file_of_another_name_is_refused(member: Client, uploads: Path) -> None:
    response = post_parts(member, file_part(field=b"document"))
    assert_problem(response, 400, "invalid_request", "“file” but “document”")


@pytest.mark.parametrize("fields", [(b"file", b"file"), (b"file", b"other"), (b"other", b"file")])
def test_two_files_are_refused(member: Client, uploads: Path, fields: tuple[bytes, bytes]) -> None:
    response = post_parts(member, *(file_part(field=field) for field in fields))
    assert_problem(response, 400, "invalid_request", "more than one file")


def test_an_empty_form_is_refused(member: Client) -> None:
    assert_problem(post_parts(member), 400, "invalid_request", "no file")


@pytest.mark.parametrize("name", ["colour", "Pages", "x" * 500])
def test_an_unknown_option_is_refused(member: Client, name: str) -> None:
    words = f"There is no option “{name[:60]}”"
    assert_problem(post_form(member, **{name: "1"}), 400, "invalid_request", words)
    assert_problem(post_raw(member, query=f"{name}=1"), 400, "invalid_request", words)


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/json", "application/x-www-form-urlencoded"]
)
def test_a_body_of_another_type_is_refused(member: Client, content_type: str) -> None:
    response = seen(member.generic("POST", url("extract"), SAMPLE, content_type))
    assert_problem(response, 400, "invalid_request", "or as the body with the type application/pdf")


def test_another_method_is_refused(member: Client) -> None:
    response = seen(member.get(url("extract")))
    assert response.status_code == 405
    assert "POST" in response["Allow"]


@pytest.mark.parametrize(
    "name",
    [
        b"../../etc/passwd.pdf",
        b"/etc/passwd",
        b"C:\\\\Windows\\\\system.pdf",
        b"a\nSet-Cookie: b.pdf",
        b"a%0D%0AX-Evil: b.pdf",
        b"\xff\xfe.pdf",
        b"a\x00.pdf",
        b"..",
        b"<script>alert(1)</script>.pdf",
    ],
)
@pytest.mark.parametrize("view", ["extract", "upload"])
def test_a_hostile_file_name_does_no_harm(
    member: Client, uploads: Path, name: bytes, view: str
) -> None:
    response = post_parts(member, file_part(name=name), view=view)
    assert response.status_code in (200, 400)
    assert b"script>alert" not in response.content
    assert b"passwd" not in response.content
    assert not {"Set-Cookie", "X-Evil"} & set(response.headers)


# Bodies that are broken


@pytest.fixture
def strict(member: Client) -> Client:
    """A member's browser that has to show its CSRF token, which a form's parsing is part of."""
    client = Client(enforce_csrf_checks=True)
    client.cookies = member.cookies
    client.get(url("upload"))
    client.defaults["HTTP_X_CSRFTOKEN"] = client.cookies["csrftoken"].value
    return client


@pytest.fixture(params=["with the CSRF check", "without it"])
def sender(request: pytest.FixtureRequest, db: None) -> Client:
    """A form is parsed by whoever asks for it first."""
    name = "strict" if request.param.startswith("with ") else "member"
    client: Client = request.getfixturevalue(name)
    return client


@pytest.mark.parametrize("name", [b"n" * 300 + b".pdf", b"n." + b"p" * 300])
def test_a_very_long_file_name_is_no_obstacle(sender: Client, uploads: Path, name: bytes) -> None:
    response = post_parts(sender, file_part(name=name))
    assert response.status_code == 200, response.content
    assert texts(response)


def test_a_name_beyond_what_django_takes_is_refused(sender: Client, uploads: Path) -> None:
    response = post_parts(sender, file_part(name=b"n" * 4096 + b".pdf"))
    assert_problem(response, 400, "invalid_request", "send it again")


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=" + "x" * 300],
    ids=["no boundary", "a boundary too long"],
)
def test_a_form_that_cannot_be_parsed_is_refused(sender: Client, content_type: str) -> None:
    response = seen(sender.generic("POST", url("extract"), b"--x\r\n", content_type))
    assert_problem(response, 400, "invalid_request", "send it again")


def test_a_form_with_too_many_fields_is_refused(sender: Client) -> None:
    parts = [field_part(b"pages", b"1")] * 1001
    assert_problem(post_parts(sender, *parts, file_part()), 400, "invalid_request")


def test_a_form_with_too_large_a_field_is_refused(sender: Client, uploads: Path) -> None:
    field = field_part(b"pages", b"1" * 20_000)
    assert_problem(post_parts(sender, field, file_part()), 400, "invalid_request")


def test_a_large_body_of_another_type_is_refused(sender: Client, uploads: Path) -> None:
    response = seen(
        sender.generic("POST", url("extract"), b"a" * 20_000, "application/x-www-form-urlencoded")
    )
    assert_problem(response, 400, "invalid_request")


def test_a_body_that_stops_early_is_refused(sender: Client) -> None:
    environ = {"wsgi.input": io.BytesIO(SAMPLE), "CONTENT_LENGTH": str(len(SAMPLE) + 1)}
    response = post_raw(sender, b"", **environ)
    assert_problem(response, 400, "invalid_request", "stopped before its end")


class Torn(io.BytesIO):
    """A connection that breaks."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError("connection reset")


@pytest.mark.parametrize("content_type", ["application/pdf", "multipart/form-data; boundary=x"])
def test_a_connection_that_breaks_is_told(sender: Client, content_type: str) -> None:
    response = post_raw(
        sender, b"", CONTENT_TYPE=content_type, CONTENT_LENGTH="1000", **{"wsgi.input": Torn()}
    )
    assert_problem(response, 400, "invalid_request", "send it again")


# Sizes

EXACT = {"MAX_UPLOAD": len(SAMPLE)}


def chunked(client: Client, data: bytes) -> Any:
    """Post a body whose length nobody has told, to a server that knows where it ends."""
    environ = {"wsgi.input": io.BytesIO(data), "wsgi.input_terminated": True}
    return post_raw(client, b"", CONTENT_LENGTH="", **environ)


@override_settings(PDFPOOL=EXACT)
def test_a_body_of_exactly_the_limit_is_taken(member: Client, post: Any, uploads: Path) -> None:
    assert texts(post(member)) == list(TEXTS)
    assert texts(chunked(member, SAMPLE)) == list(TEXTS)


@override_settings(PDFPOOL=EXACT)
def test_a_body_one_byte_over_the_limit_is_refused(
    member: Client, post: Any, uploads: Path
) -> None:
    words = f"larger than the {len(SAMPLE)} bytes allowed"
    assert_problem(post(member, SAMPLE + b"\n"), 413, "file_too_large", words)
    assert_problem(chunked(member, SAMPLE + b"\n"), 413, "file_too_large", words)


@override_settings(PDFPOOL=EXACT)
def test_a_body_that_announces_too_much_is_refused_unread(member: Client) -> None:
    form = {"wsgi.input": Torn(), "CONTENT_LENGTH": str(len(SAMPLE) + 70_000)}
    response = post_parts(member, **form)
    assert_problem(response, 413, "file_too_large")
    raw = {"wsgi.input": Torn(), "CONTENT_LENGTH": str(len(SAMPLE) + 1)}
    assert_problem(post_raw(member, b"", **raw), 413, "file_too_large")


@override_settings(PDFPOOL={"MAX_UPLOAD": 1000})
def test_a_form_file_is_stopped_at_the_limit(strict: Client, uploads: Path) -> None:
    assert_problem(post_form(strict, b"%PDF-" + b"x" * 50_000), 413, "file_too_large")


def test_a_large_raw_body_goes_by_a_temporary_file(member: Client, uploads: Path) -> None:
    assert texts(post_raw(member, SAMPLE + b"\n%" + b"x" * 300_000)) == list(TEXTS)


# Ours


@override_settings(PDFPOOL={"CALLER": "tests.site.callers.refuses"})
def test_a_caller_that_the_site_refuses_is_no_fault_of_ours(member: Client, post: Any) -> None:
    assert_problem(post(member), 403, "forbidden", "You may not have documents read here.")


@override_settings(PDFPOOL={"CALLER": "tests.site.callers.fails"})
def test_a_fault_of_ours_is_shown_without_its_traceback(
    member: Client, post: Any, caplog: pytest.LogCaptureFixture
) -> None:
    details = assert_problem(post(member), 500, "internal_error", "The fault has been logged as")
    assert "directory" not in str(details)
    assert "the directory of users is gone" in caplog.text
    assert len(details["reference"]) == 8
    assert details["reference"] in details["detail"]
    assert details["reference"] in caplog.text
