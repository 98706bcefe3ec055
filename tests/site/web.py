"""Requests to the site, and what every answer must have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from tests.site.helpers import SAMPLE

BOUNDARY = "boundary"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"

FORM = "multipart"
RAW = "raw"


def url(name: str, query: str = "") -> str:
    return reverse(f"pdfpool:{name}") + (f"?{query}" if query else "")


def post_form(
    client: Client,
    data: bytes = SAMPLE,
    *,
    view: str = "extract",
    name: str = "sample.pdf",
    query: str = "",
    headers: Mapping[str, str] | None = None,
    **fields: Any,
) -> Any:
    """Post a document as a form does."""
    form = {"file": SimpleUploadedFile(name, data), **fields}
    return seen(client.post(url(view, query), form, headers=headers))


def post_raw(
    client: Client,
    data: bytes = SAMPLE,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    **environ: Any,
) -> Any:
    """Post a document as the body."""
    # The client sends an empty body without a type, unless it is told to.
    environ = {"CONTENT_TYPE": "application/pdf", **environ}
    path = url("extract", query)
    return seen(client.generic("POST", path, data, headers=headers, **environ))


def post_parts(client: Client, *parts: bytes, view: str = "extract", **environ: Any) -> Any:
    """Post a form written by hand: each part is its headers, an empty line, and its content."""
    lines = b"".join(b"--%s\r\n%s\r\n" % (BOUNDARY.encode(), part) for part in parts)
    body = lines + b"--%s--\r\n" % BOUNDARY.encode()
    return seen(client.generic("POST", url(view), body, MULTIPART, **environ))


def file_part(data: bytes = SAMPLE, name: bytes = b"sample.pdf", field: bytes = b"file") -> bytes:
    head = b'Content-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n' % (field, name)
    return head + data


def field_part(name: bytes, value: bytes) -> bytes:
    return b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (name, value)


def seen(response: Any) -> Any:
    """Check what holds for every answer."""
    assert response["Cache-Control"] == "no-store"
    return response


def assert_problem(response: HttpResponse, status: int, code: str, words: str = "") -> Any:
    """The answer is problem details of this code; return them."""
    assert response["Content-Type"] == "application/problem+json", response.content
    details = json.loads(response.content)
    assert (response.status_code, details["code"]) == (status, code), details
    assert details["status"] == status
    assert words in details["detail"], details
    assert details["retryable"] == response.has_header("Retry-After")
    return details


def texts(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [page["text"].strip() for page in response.json()["pages"]]
