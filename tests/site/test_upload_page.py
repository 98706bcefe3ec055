"""The page for people: a form, and a page of text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from pdfpool_django import runtime
from scripts.pdf_builder import simple_pdf
from tests.site.helpers import LOCKED, PASSWORD, SAMPLE, TEXTS, script, scripted
from tests.site.web import field_part, file_part, post_form, post_parts, seen, url

SCRIPT = "<script>alert('x')</script>"


def upload(client: Client, data: bytes = SAMPLE, **options: Any) -> Any:
    return post_form(client, data, view="upload", **options)


def html_of(response: Any) -> str:
    assert response["Content-Type"] == "text/html; charset=utf-8"
    return str(response.content.decode())


# Coming in


def test_a_stranger_is_sent_to_log_in_and_back(client: Client) -> None:
    response = seen(client.get(url("upload", "pages=2")))
    assert response.status_code == 302
    assert response["Location"] == "/accounts/login/?next=/pdf/%3Fpages%3D2"


def test_a_stranger_who_posts_is_sent_to_log_in(client: Client) -> None:
    response = upload(client)
    assert response.status_code == 302
    assert response["Location"] == "/accounts/login/?next=/pdf/"


def test_a_member_gets_a_form(member: Client) -> None:
    response = seen(member.get(url("upload")))
    html = html_of(response)
    assert response.status_code == 200
    assert re.search(r'<form method="post" enctype="multipart/form-data" action="/pdf/"', html)
    for name, kind in [("file", "file"), ("pages", "text"), ("password", "password")]:
        assert re.search(rf'<input type="{kind}" name="{name}"', html)
        assert f'<label for="id_{name}">' in html
    assert "<h3" not in html
    assert 'role="alert"' not in html


def test_every_field_is_described_by_its_help(member: Client) -> None:
    html = html_of(member.get(url("upload")))
    described = re.findall(r'aria-describedby="([^"]+)"', html)
    assert described
    assert all(f'id="{name}"' in html for name in described)


def test_the_page_may_be_asked_for_by_head(member: Client) -> None:
    response = seen(member.head(url("upload")))
    assert (response.status_code, response.content) == (200, b"")


# Texts


def test_a_document_gives_a_page_of_text(member: Client) -> None:
    response = upload(member)
    html = html_of(response)
    assert response.status_code == 200
    assert '<h2 id="result">Three</h2>' in html
    assert "3 pages of 3, read in " in html
    assert [text.strip() for text in re.findall(r"<pre>([^<]*)</pre>", html)] == list(TEXTS)
    assert "<form" in html, "ready for the next document"


def test_pages_and_password_are_heeded(member: Client) -> None:
    html = html_of(upload(member, LOCKED, pages="2", password=PASSWORD))
    assert "1 page of 3" in html
    assert TEXTS[1] in html
    assert TEXTS[0] not in html
    assert PASSWORD not in html


def test_the_fields_of_the_form_as_a_browser_sends_them(member: Client) -> None:
    html = html_of(upload(member, pages="", password=""))
    assert all(text in html for text in TEXTS)


def test_hostile_text_and_titles_are_shown_as_text(member: Client) -> None:
    response = upload(member, simple_pdf(SCRIPT, info={"Title": SCRIPT.replace("'", '"')}))
    html = html_of(response)
    assert response.status_code == 200
    assert html.count("<script") == 1  # the page's own
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in html
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in html


def test_a_hostile_page_label_is_shown_as_text(member: Client) -> None:
    labels = b"/PageLabels << /Nums [0 << /P (<b>x</b>) >>] >>"
    html = html_of(upload(member, simple_pdf("text", catalog=labels)))
    assert "&lt;b&gt;x&lt;/b&gt;" in html


def test_an_incomplete_result_says_so(member: Client) -> None:
    with scripted():
        response = upload(member, script("crash", 3, {2: "segfaults"}))
    html = html_of(response)
    assert response.status_code == 200
    assert "Not every page could be read." in html
    assert "SIGSEGV" in html
    assert "text of page 1" in html
    assert "text of page 3" in html


# Errors


@pytest.mark.parametrize(
    ("data", "options", "status", "title", "words"),
    [
        (b"", {}, 400, "Invalid request", "The file is empty"),
        (b"Dear Sir", {}, 415, "Not a PDF", "Send a PDF file."),
        (b"%PDF-1.7\n", {}, 422, "Broken PDF", "Save it again"),
        (LOCKED, {}, 422, "Password required", "send its password along"),
        (LOCKED, {"password": "a guess"}, 422, "Wrong password", "check it"),
        (SAMPLE, {"pages": "4"}, 422, "No such page", "Page 4 does not exist"),
        (SAMPLE, {"pages": SCRIPT}, 400, "Invalid request", "&lt;script&gt;"),
    ],
)
def test_an_error_is_a_page_with_its_status_and_the_form(
    member: Client,
    uploads: Path,
    data: bytes,
    options: dict[str, str],
    status: int,
    title: str,
    words: str,
) -> None:
    response = upload(member, data, **options)
    html = html_of(response)
    assert response.status_code == status
    assert f"<h2>{title}</h2>" in html
    assert words in html
    assert "<form" in html
    assert "a guess" not in html
    assert html.count("<script") == 1  # the page's own


def test_a_form_without_a_file_is_told(member: Client) -> None:
    response = post_parts(member, field_part(b"pages", b""), view="upload")
    assert response.status_code == 400
    assert "choose one and send it again" in html_of(response)


def test_an_error_that_passes_says_when_to_come_back(member: Client) -> None:
    runtime.close()
    response = upload(member)
    assert response.status_code == 503
    assert int(response["Retry-After"]) >= 1


@override_settings(PDFPOOL={"MAX_UPLOAD": 100})
def test_a_file_that_is_too_large_is_told(member: Client, uploads: Path) -> None:
    response = upload(member)
    assert response.status_code == 413
    assert "larger than the 100 bytes allowed" in html_of(response)


@override_settings(PDFPOOL={"CALLER": "tests.site.callers.fails"})
def test_a_fault_of_ours_is_a_page_without_its_traceback(member: Client) -> None:
    response = upload(member)
    assert response.status_code == 500
    assert "directory" not in html_of(response)


# CSRF


@pytest.fixture
def browser(db: None) -> Client:
    """A member's browser, whose forms are checked."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("member"))
    return client


def test_the_forms_own_token_lets_in(browser: Client) -> None:
    html = html_of(browser.get(url("upload")))
    match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', html)
    assert match
    token = field_part(b"csrfmiddlewaretoken", match[1].encode())
    response = post_parts(browser, token, field_part(b"pages", b""), file_part(), view="upload")
    assert response.status_code == 200
    assert TEXTS[2] in html_of(response)


def test_without_a_token_the_form_is_shown_again_with_a_new_one(browser: Client) -> None:
    response = upload(browser)
    html = html_of(response)
    assert response.status_code == 403
    assert "load the page again" in html
    assert 'name="csrfmiddlewaretoken"' in html
