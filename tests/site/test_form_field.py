"""A site's own form with a field for a PDF."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings

from pdfpool_django.forms import PdfField
from tests.site.helpers import SAMPLE


class ReportForm(forms.Form):
    file = PdfField()
    cover = PdfField(required=False)


def form(data: bytes, initial: Any = None) -> ReportForm:
    files = {"file": SimpleUploadedFile("report.pdf", data)}
    return ReportForm({}, files, initial=initial)


def code_of(given: ReportForm) -> str:
    assert not given.is_valid()
    (error,) = given.errors.as_data()["file"]
    return str(error.code)


def test_a_pdf_is_taken_and_can_be_read_from_its_start() -> None:
    given = form(SAMPLE)
    assert given.is_valid(), given.errors
    assert given.cleaned_data["file"].read() == SAMPLE
    assert given.cleaned_data["cover"] is None


def test_another_file_is_refused_with_the_sentence_of_its_code() -> None:
    given = form(b"hello")
    assert code_of(given) == "not_a_pdf"
    assert "Send a PDF file." in given.errors["file"][0]


@override_settings(PDFPOOL={"MAX_UPLOAD": len(SAMPLE) - 1})
def test_a_file_larger_than_an_upload_may_be_is_refused() -> None:
    given = form(SAMPLE)
    assert code_of(given) == "file_too_large"
    assert str(len(SAMPLE) - 1) in given.errors["file"][0]


@override_settings(PDFPOOL={"MAX_UPLOAD": len(SAMPLE)})
def test_a_file_of_exactly_the_limit_is_taken() -> None:
    assert form(SAMPLE).is_valid()


def test_no_file_and_an_empty_one_are_refused_as_by_any_file_field() -> None:
    assert code_of(ReportForm({}, {})) == "required"
    assert code_of(form(b"")) == "empty"


def test_what_is_kept_already_is_not_looked_at_again() -> None:
    kept = object()
    given = ReportForm({}, {}, initial={"file": kept})
    assert given.is_valid(), given.errors
    assert given.cleaned_data["file"] is kept


def test_a_browser_is_told_to_offer_pdf_files() -> None:
    assert 'accept="application/pdf,.pdf"' in str(ReportForm()["file"])
