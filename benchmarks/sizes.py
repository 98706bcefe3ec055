"""What an upload's size costs: a document of one page, and a stream that nobody needs."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from django.contrib.auth.models import User
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.http import HttpRequest
from django.test import RequestFactory
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from benchmarks.one_page import PAUSE
from benchmarks.timing import Timing, in_turn, table
from pdfpool_django import sources
from pdfpool_django.extraction import extract, submit
from pdfpool_django.sandbox.descriptors import from_path
from pdfpool_django.views import ExtractView
from scripts.pdf_builder import simple_pdf

SIZES = {"5 KB": 5_000, "5 MB": 5_000_000, "50 MB": 50_000_000}

_CHUNK = 1_000_000
_PDF = "application/pdf"


@dataclass(frozen=True)
class Upload:
    """A document as a view has it that has received it."""

    file: TemporaryUploadedFile
    path: Path
    sha256: str


def run(rounds: int) -> str:
    """Time documents that differ in size only: received already, and by way of the view."""
    with _uploads() as uploads:
        mechanism = _timed(uploads, _read, rounds)
        paths = _timed(
            uploads, lambda upload: extract(upload.path, caller="benchmark"), rounds // 2
        )
        hashing = _timed(uploads, _hash, rounds // 5)
        views = _posts(uploads, rounds // 5)
    small, _, large = (each.median for each in mechanism)
    title = f"Received and hashed: handing over and reading, {rounds} rounds in turn, milliseconds"
    apart = "The hashing alone, which is done while an upload comes, milliseconds"
    return (
        f"{table(title, mechanism)}\n"
        f"50 MB take {large / small:.2f} times as long as 5 KB (aim: flat).\n\n"
        f"{table(apart, hashing)}\n\n"
        f"{table('extract(path), which hashes, too, milliseconds', paths)}\n\n"
        f"{table('A form posted to the view, its parsing included, milliseconds', views)}\n"
        f"For 50 MB, the view takes {views[-1].median / views[0].median:.2f} times as long as "
        "Django takes to parse the form."
    )


@contextmanager
def _uploads() -> Iterator[dict[str, Upload]]:
    """Give a file of each size, as Django keeps one that is too large for memory."""
    with tempfile.TemporaryDirectory() as folder:
        uploads: dict[str, Upload] = {}
        try:
            for name, size in SIZES.items():
                path = Path(folder, f"{size}.pdf")
                write(path, size)
                uploads[name] = _received(path)
            yield uploads
        finally:
            for upload in uploads.values():
                upload.file.close()


def write(path: Path, size: int) -> None:
    """Write a page's document of so many bytes: a stream stands before its table of objects."""
    small = simple_pdf("A page")
    found = re.search(rb"startxref\s+(\d+)", small)
    if found is None:
        raise ValueError("the document has no table")
    table_at, number_at = int(found[1]), found.start(1)
    padding = size - len(small) - 100
    with path.open("wb") as file:
        file.write(small[:table_at])
        file.write(b"99 0 obj\n<< /Length %d >>\nstream\n" % padding)
        for start in range(0, padding, _CHUNK):
            file.write(bytes(min(_CHUNK, padding - start)))
        file.write(b"\nendstream\nendobj\n")
        moved = file.tell()
        file.write(small[table_at:number_at] + b"%d\n%%%%EOF\n" % moved)


def _received(path: Path) -> Upload:
    size = path.stat().st_size
    file = TemporaryUploadedFile(path.name, _PDF, size, None)
    with path.open("rb") as written:
        while chunk := written.read(_CHUNK):
            file.write(chunk)
    file.seek(0)
    with from_path(path) as document:
        return Upload(file, path, document.sha256)


def _timed(
    uploads: dict[str, Upload], way: Callable[[Upload], object], rounds: int
) -> list[Timing]:
    ways = {name: partial(way, upload) for name, upload in uploads.items()}
    return in_turn(ways, max(2, rounds), warmups=1, between=lambda: time.sleep(PAUSE))


def _read(upload: Upload) -> str:
    """Read as the view does: a file of Django's, hashed while it came."""
    document = sources.from_file(upload.file, upload.sha256)
    with submit(document, caller="benchmark") as reading:
        return reading.result().text


def _hash(upload: Upload) -> str:
    with from_path(upload.path) as document:
        return document.sha256


def _posts(uploads: dict[str, Upload], rounds: int) -> list[Timing]:
    bodies = {name: _form(upload.path) for name, upload in uploads.items()}
    ways = {"50 MB, parsed by Django and not read": partial(_parse, bodies["50 MB"])}
    ways |= {f"{name}, by the view": partial(_post, body) for name, body in bodies.items()}
    return in_turn(ways, max(2, rounds), warmups=1, between=lambda: time.sleep(PAUSE))


def _form(path: Path) -> bytes:
    with path.open("rb") as file:
        return encode_multipart(BOUNDARY, {"file": file})


def _request(body: bytes) -> HttpRequest:
    request = RequestFactory().generic("POST", "/", body, content_type=MULTIPART_CONTENT)
    request.user = User(pk=1)
    # As Django's own test client has it: a token would be no part of what a size costs.
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
    return request


def _parse(body: bytes) -> None:
    request = _request(body)
    if "file" not in request.FILES:
        raise SystemExit("the form has lost its file")
    request.close()


def _post(body: bytes) -> None:
    request = _request(body)
    response = ExtractView.as_view()(request)
    request.close()
    if response.status_code != 200:
        raise SystemExit(f"the view answered {response.status_code}: {response.content!r}")
