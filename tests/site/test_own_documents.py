"""Views of documents that the site has: subclasses of `ExtractView`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied
from django.core.files.base import ContentFile
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.test import Client, override_settings
from django.urls import path

from example_project.urls import urlpatterns as example_urlpatterns
from pdfpool_django.errors import Forbidden
from pdfpool_django.views import ExtractView
from tests.shelf.models import Report
from tests.site.helpers import LOCKED, PASSWORD, SAMPLE, TEXTS
from tests.site.web import assert_problem, seen, texts


class ReportTextView(ExtractView):
    """The text of a report, for those who may view reports."""

    http_method_names = ("get", "post", "options")

    def get_source(self, request: HttpRequest, pk: int) -> Any:
        report = get_object_or_404(Report, pk=pk)
        if not request.user.has_perm("shelf.view_report"):
            raise PermissionDenied
        return report.file


class SecretView(ExtractView):
    """A document that nobody may read."""

    def get_source(self, request: HttpRequest) -> Any:
        raise Forbidden("This document is sealed.")


urlpatterns = [
    *example_urlpatterns,
    path("reports/<int:pk>/text/", ReportTextView.as_view(), name="report-text"),
    path("secret/", SecretView.as_view(), name="secret"),
]

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


@pytest.fixture(autouse=True)
def media(tmp_path: Path) -> Iterator[None]:
    with override_settings(MEDIA_ROOT=str(tmp_path)):
        yield


@pytest.fixture
def reader(db: None) -> Client:
    """A member who may view reports, and whose browser is checked for its CSRF token."""
    user = User.objects.create_user("reader")
    user.user_permissions.add(Permission.objects.get(codename="view_report"))
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    return client


def kept(data: bytes = SAMPLE) -> str:
    """Keep a report; return the address of its text."""
    report = Report.objects.create(file=ContentFile(data, "report.pdf"))
    return f"/reports/{report.pk}/text/"


def with_token(client: Client) -> dict[str, str]:
    client.get("/pdf/")
    return {"X-CSRFToken": client.cookies["csrftoken"].value}


def test_a_kept_document_is_read(reader: Client) -> None:
    assert texts(seen(reader.get(kept()))) == list(TEXTS)


def test_options_may_be_in_the_query_or_the_form(reader: Client) -> None:
    assert texts(seen(reader.get(kept() + "?pages=2"))) == [TEXTS[1]]
    form = {"pages": "3", "password": PASSWORD}
    answer = reader.post(kept(LOCKED), form, headers=with_token(reader))
    assert texts(seen(answer)) == [TEXTS[2]]


def test_plain_text_may_be_preferred_here_too(reader: Client) -> None:
    response = seen(reader.get(kept(), headers={"Accept": "text/plain"}))
    assert TEXTS[0] in response.content.decode()


def test_a_post_needs_its_token(reader: Client) -> None:
    assert_problem(seen(reader.post(kept())), 403, "forbidden", "CSRF")


def test_a_stranger_is_told_to_log_in_and_nothing_is_looked_up(
    client: Client, django_assert_num_queries: Any
) -> None:
    address = kept()
    with django_assert_num_queries(0):
        assert_problem(seen(client.get(address)), 401, "not_authenticated")


def test_who_may_not_read_it_is_told_so(member: Client) -> None:
    assert_problem(seen(member.get(kept())), 403, "forbidden", "You may not read this document.")
    assert_problem(seen(member.post("/secret/")), 403, "forbidden", "This document is sealed.")


def test_what_does_not_exist_is_not_found(reader: Client) -> None:
    assert reader.get("/reports/99/text/").status_code == 404


def test_a_method_that_the_view_does_not_name_is_refused(reader: Client) -> None:
    assert reader.get("/secret/").status_code == 405


def test_an_unknown_option_is_refused(reader: Client) -> None:
    assert_problem(seen(reader.get(kept() + "?page=2")), 400, "invalid_request", "“page”")


def test_a_file_has_no_place_in_such_a_request(reader: Client) -> None:
    form = {"file": ContentFile(SAMPLE, "other.pdf")}
    answer = seen(reader.post(kept(), form, headers=with_token(reader)))
    assert_problem(answer, 400, "invalid_request", "takes no file")


def test_a_document_whose_file_is_gone_is_a_fault(
    reader: Client, caplog: pytest.LogCaptureFixture
) -> None:
    address = kept()
    Path(Report.objects.get().file.path).unlink()
    details = assert_problem(seen(reader.get(address)), 500, "internal_error")
    assert details["reference"] in caplog.text
