"""The form of the upload page, and a field for forms of a site's own."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from pdfpool_django import conf, http
from pdfpool_django.documents import beginning
from pdfpool_django.errors import FileTooLarge, NotAPdf, PdfPoolError


class PdfField(forms.FileField):
    """An uploaded PDF: no larger than ``MAX_UPLOAD``, and a PDF by its beginning.

    It reads the beginning only, so that a form is answered at once: what else
    is wrong with a document, `extract` says. A `ValidationError` has the code
    of the error in the table of codes.
    """

    widget = forms.FileInput(attrs={"accept": "application/pdf,.pdf"})

    def clean(self, data: Any, initial: Any = None) -> Any:
        file = super().clean(data, initial)
        if isinstance(file, UploadedFile) and file is not initial:
            try:
                _check(file)
            except PdfPoolError as error:
                raise ValidationError(http.detail_of(error), code=error.code) from error
        return file


def _check(file: UploadedFile[bytes]) -> None:
    limit = conf.load().max_upload
    if file.size is not None and file.size > limit:
        raise FileTooLarge(limit=limit)
    file.seek(0)
    head = file.read(beginning.WITHIN)
    file.seek(0)
    if not beginning.is_of_a_pdf(head):
        raise NotAPdf


class UploadForm(forms.Form):
    """What the page for people asks; what it sends is checked by `uploads`."""

    file = PdfField(label=_("PDF file"))
    pages = forms.CharField(
        label=_("Pages"),
        required=False,
        help_text=_("Like 1-3,7; leave it empty for all."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    password = forms.CharField(
        label=_("Password"),
        required=False,
        help_text=_("Only if the file is locked."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
