"""Who may send a document, and how far a request gets that may not."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client, override_settings

from pdfpool_django import callers, errors
from pdfpool_django.callers import OpenRequests
from tests.site import handlers
from tests.site.helpers import SAMPLE, TEXTS
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

BY_HEADER = {"CALLER": "tests.site.callers.by_header"}
BY_TOKEN = {"CALLER": "tests.site.callers.by_token"}
TOKEN = {"Authorization": "Bearer somebody"}

LOGIN_REQUIRED = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
]
RECORDING = [
    "tests.site.handlers.Recording",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
]


@pytest.fixture(params=[post_form, post_raw], ids=[FORM, RAW])
def post(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def parsed() -> Iterator[list[str]]:
    """The files of forms that get parsed."""
    handlers.parsed.clear()
    with override_settings(FILE_UPLOAD_HANDLERS=RECORDING):
        yield handlers.parsed


@pytest.fixture
def strict(db: None) -> Client:
    """A member's browser that is checked for its CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("member"))
    return client


def token_of(client: Client) -> str:
    seen(client.get(url("upload")))
    return client.cookies["csrftoken"].value


# Nobody


def test_a_stranger_gets_problem_details_that_say_how_to_log_in(client: Client, post: Any) -> None:
    response = post(client)
    assert_problem(response, 401, "not_authenticated", "Log in first")
    assert response["WWW-Authenticate"] == 'Session realm="pdfpool", login="/accounts/login/"'


def test_a_strangers_form_is_not_parsed(client: Client, parsed: list[str], uploads: Path) -> None:
    assert_problem(post_form(client), 401, "not_authenticated")
    assert parsed == []


class Untouchable(io.BytesIO):
    """A body that nobody may read."""

    def read(self, size: int | None = -1) -> bytes:
        pytest.fail("the body was read")


@pytest.mark.parametrize("content_type", ["application/pdf", "multipart/form-data; boundary=x"])
def test_a_strangers_body_is_not_read(client: Client, content_type: str) -> None:
    environ = {"wsgi.input": Untouchable(), "CONTENT_LENGTH": "1000"}
    response = post_raw(client, b"", CONTENT_TYPE=content_type, **environ)
    assert_problem(response, 401, "not_authenticated")


def test_a_members_form_is_parsed(member: Client, parsed: list[str]) -> None:
    assert texts(post_form(member, name="parsed.pdf")) == list(TEXTS)
    assert parsed == ["parsed.pdf"]


@override_settings(PDFPOOL=BY_HEADER)
@pytest.mark.parametrize("headers", [{}, {"X-Caller": ""}])
def test_a_caller_function_may_name_nobody(client: Client, headers: dict[str, str]) -> None:
    assert_problem(post_raw(client, headers=headers), 401, "not_authenticated")


@override_settings(PDFPOOL=BY_HEADER)
def test_a_caller_function_may_name_somebody(client: Client, post: Any) -> None:
    assert texts(post(client, headers={"X-Caller": "somebody"})) == list(TEXTS)


def test_a_users_caller_is_named_by_its_primary_key(rf: Any) -> None:
    request = rf.get("/")
    assert callers.authenticated_user(request) is None
    request.user = User(pk=7, username="seven")
    assert callers.authenticated_user(request) == "user:7"


def test_users_without_a_primary_key_are_nobody_and_not_all_the_same(rf: Any) -> None:
    request = rf.get("/")
    request.user = User(username="not saved")
    assert callers.authenticated_user(request) is None


@override_settings(PDFPOOL={"CALLER": "tests.site.callers.a_number"})
def test_a_caller_function_that_gives_no_name_is_a_fault_of_the_site(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert_problem(post_raw(client), 500, "internal_error")
    assert "returned int, not a string" in caplog.text


# CSRF


def test_without_a_token_a_member_is_refused(strict: Client, post: Any, uploads: Path) -> None:
    assert_problem(post(strict), 403, "forbidden", "CSRF token is missing or wrong")


def test_a_wrong_token_is_refused(strict: Client, post: Any) -> None:
    token_of(strict)
    response = post(strict, headers={"X-CSRFToken": "x" * 64})
    assert_problem(response, 403, "forbidden", "load the page again")


def test_a_token_as_a_header_lets_in(strict: Client, post: Any) -> None:
    assert texts(post(strict, headers={"X-CSRFToken": token_of(strict)})) == list(TEXTS)


def test_a_token_as_a_field_lets_in(strict: Client) -> None:
    assert texts(post_form(strict, csrfmiddlewaretoken=token_of(strict))) == list(TEXTS)


@override_settings(PDFPOOL={"MAX_UPLOAD": 1000})
def test_a_token_after_a_file_that_is_too_large_is_not_called_missing(
    strict: Client, uploads: Path
) -> None:
    token = field_part(b"csrfmiddlewaretoken", token_of(strict).encode())
    response = post_parts(strict, file_part(b"%PDF-" + b"x" * 60_000), token)
    assert_problem(response, 413, "file_too_large")


def test_another_sites_request_is_refused_unread(strict: Client) -> None:
    headers = {"Origin": "https://evil.example", "X-CSRFToken": token_of(strict)}
    environ = {"wsgi.input": Untouchable(), "CONTENT_LENGTH": "1000"}
    response = post_raw(
        strict, b"", headers=headers, CONTENT_TYPE="multipart/form-data; boundary=x", **environ
    )
    assert_problem(response, 403, "forbidden")


@override_settings(PDFPOOL=BY_TOKEN)
def test_who_is_named_by_a_token_of_their_own_needs_no_other(post: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    assert texts(post(client, headers=TOKEN)) == list(TEXTS)
    assert_problem(post(client), 401, "not_authenticated")


@override_settings(PDFPOOL=BY_HEADER)
def test_a_caller_function_that_is_not_marked_leaves_the_check_on(post: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    assert_problem(post(client, headers={"X-Caller": "somebody"}), 403, "forbidden")


# Many requests at once


def test_a_caller_has_so_many_requests_open_and_no_more() -> None:
    counted = OpenRequests()
    with counted.one("a", 2), counted.one("a", 2):
        with pytest.raises(errors.CallerBusy, match="You have 2 requests open already"):
            counted.one("a", 2).__enter__()
        with counted.one("b", 2):
            pass
    with counted.one("a", 1):
        pass
    assert not counted._open


def test_a_request_that_fails_is_counted_no_longer() -> None:
    counted = OpenRequests()
    with pytest.raises(RuntimeError), counted.one("a", 1):
        raise RuntimeError
    assert not counted._open


def test_a_request_too_many_is_refused_unread(member: Client, parsed: list[str]) -> None:
    user = User.objects.get(username="member")
    with (
        callers.open_requests().one(f"user:{user.pk}", 4),
        override_settings(PDFPOOL={"CALLER_REQUESTS": 1}),
    ):
        response = post_form(member)
    assert_problem(response, 429, "caller_busy", "1 requests open already")
    assert int(response["Retry-After"]) >= 1
    assert parsed == []
    assert texts(post_form(member)) == list(TEXTS)


# Sites with rules of their own


@override_settings(MIDDLEWARE=LOGIN_REQUIRED)
def test_where_every_view_needs_a_login_programs_get_problem_details(
    client: Client, post: Any
) -> None:
    assert_problem(post(client), 401, "not_authenticated")
    assert_problem(seen(client.get(url("status"))), 401, "not_authenticated")
    assert seen(client.get(url("health"))).status_code == 200
    assert seen(client.get(url("upload"))).status_code == 302


@override_settings(MIDDLEWARE=LOGIN_REQUIRED, PDFPOOL=BY_TOKEN)
def test_where_every_view_needs_a_login_another_kind_of_caller_needs_none(
    client: Client, post: Any
) -> None:
    assert texts(post(client, headers=TOKEN)) == list(TEXTS)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("view", ["extract", "upload"])
@override_settings(PDFPOOL={"CALLER": "tests.site.callers.outside_transactions"})
def test_no_transaction_is_held_where_requests_have_one(
    client: Client, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    response = post_form(client, view=view)
    assert response.status_code == 200
    assert TEXTS[0].encode() in response.content


def test_the_document_is_the_one_that_was_sent(member: Client, post: Any) -> None:
    assert post(member).json()["sha256"] == hashlib.sha256(SAMPLE).hexdigest()
