"""From errors to responses: the only place that knows status codes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypeVar

from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext, gettext_noop

from pdfpool_django import conf, errors
from pdfpool_django.errors import ErrorDict, ErrorNote, PdfPoolError
from pdfpool_django.model import DocumentInfo, Extraction, Page, WarningDict

_Said = TypeVar("_Said", bound=DocumentInfo | Page | Extraction)

PROBLEM_TYPE = "urn:pdfpool:error:"
"""What the ``type`` of problem details begins with (RFC 9457, 3.1.1); the code follows."""

_TABLE: dict[type[PdfPoolError], tuple[int, str]] = {
    PdfPoolError: (500, gettext_noop("Internal error")),
    errors.Busy: (503, gettext_noop("Busy")),
    errors.CallerBusy: (429, gettext_noop("One at a time")),
    errors.Unavailable: (503, gettext_noop("Unavailable")),
    errors.NotAuthenticated: (401, gettext_noop("Not logged in")),
    errors.Forbidden: (403, gettext_noop("Forbidden")),
    errors.InvalidRequest: (400, gettext_noop("Invalid request")),
    errors.FileTooLarge: (413, gettext_noop("File too large")),
    errors.NotAPdf: (415, gettext_noop("Not a PDF")),
    errors.InvalidPdf: (422, gettext_noop("Broken PDF")),
    errors.PasswordRequired: (422, gettext_noop("Password required")),
    errors.WrongPassword: (422, gettext_noop("Wrong password")),
    errors.Unsupported: (422, gettext_noop("Unsupported PDF")),
    errors.PageOutOfRange: (422, gettext_noop("No such page")),
    errors.TooManyPages: (422, gettext_noop("Too many pages")),
    errors.OutputTooLarge: (422, gettext_noop("Too much text")),
    errors.MemoryExceeded: (422, gettext_noop("Too much memory needed")),
    errors.Crashed: (422, gettext_noop("Unreadable PDF")),
    errors.DeadlineExceeded: (422, gettext_noop("Too much time needed")),
    errors.Closed: (500, gettext_noop("Document closed")),
    errors.InvalidPattern: (500, gettext_noop("Invalid pattern")),
    errors.InternalError: (500, gettext_noop("Internal error")),
}


def status_of(error: PdfPoolError) -> int:
    """Return the HTTP status of an error."""
    return _TABLE[type(error)][0]


def title_of(error: PdfPoolError) -> str:
    """Return an error's short name, translated."""
    return gettext(_TABLE[type(error)][1])


def detail_of(error: PdfPoolError) -> str:
    """Return an error's sentence, translated."""
    return gettext(error.template) % error.params


def localized(value: _Said) -> _Said:
    """Return a result, or a part of one, with the sentences of its errors and warnings translated.

    Its job may have been shared by people of several languages, so it says
    them in English. What a library has logged stays as it is.
    """
    if isinstance(value, DocumentInfo):
        return value
    changes: dict[str, Any] = {}
    if value.error is not None:
        changes["error"] = _localized_error(value.error)
    if value.warnings:
        changes["warnings"] = tuple(_localized_warning(each) for each in value.warnings)
    if isinstance(value, Extraction):
        changes["pages"] = tuple(localized(page) for page in value.pages)
    return dataclasses.replace(value, **changes) if changes else value


def _localized_error(error: ErrorDict) -> ErrorDict:
    if not isinstance(error, ErrorNote) or error.template is None:
        return error
    return {"code": error["code"], "detail": gettext(error.template) % error.params}


def _localized_warning(warning: WarningDict) -> WarningDict:
    detail = warning["detail"]
    return {**warning, "detail": gettext(detail) if detail else detail}


def retry_after(error: PdfPoolError) -> int | None:
    """Return the whole seconds, at least 1, after which to try again; ``None`` where it is vain."""
    if not error.retryable:
        return None
    return max(1, math.ceil(error.retry_after or 1))


def problem(error: PdfPoolError) -> dict[str, Any]:
    """Return the problem details of an error (RFC 9457)."""
    details = {
        "type": PROBLEM_TYPE + error.code,
        "title": title_of(error),
        "status": status_of(error),
        "detail": detail_of(error),
        "code": error.code,
        "retryable": error.retryable,
    }
    if isinstance(error, errors.InternalError):
        details["reference"] = error.reference
    seconds = retry_after(error)
    return details if seconds is None else details | {"retry_after": seconds}


def problem_response(error: PdfPoolError) -> HttpResponse:
    """Return the response for an error: problem details, with the headers that belong to it.

    For the views of this app, and for those of a site that call `extract`
    themselves.
    """
    response = JsonResponse(
        problem(error), status=status_of(error), content_type="application/problem+json"
    )
    return with_error_headers(response, error)


def with_error_headers(response: HttpResponse, error: PdfPoolError) -> HttpResponse:
    """Add the headers that belong to an error: when to try again, how to log in."""
    seconds = retry_after(error)
    if seconds is not None:
        response["Retry-After"] = str(seconds)
    if isinstance(error, errors.NotAuthenticated):
        response["WWW-Authenticate"] = f'Session realm="pdfpool", login="{conf.login_url()}"'
    response["Cache-Control"] = "no-store"
    return response
