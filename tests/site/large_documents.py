"""A program that reads one large document from every kind of source, and tells what that cost it.

Run by `test_large_files`, in a process of its own: memory that tests have used before would hide
what is measured.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

MIB = 1024 * 1024
SIZE = 200 * MIB
CHUNK = 64 * 1024
BOUNDARY = b"boundary"


def write_large(path: Path) -> None:
    """Write a PDF of `SIZE` bytes: most are white space between its objects and their table."""
    from scripts.pdf_builder import simple_pdf

    small = simple_pdf("A page of a large file")
    found = re.search(rb"startxref\s+(\d+)", small)
    assert found
    table = int(found[1])
    with path.open("wb") as file:
        file.write(small[:table])
        file.seek(SIZE)  # zeros, which are white space (ISO 32000-2, 7.2.3), and take no space here
        file.write(small[table : found.start(1)] + b"%d\n%%%%EOF\n" % SIZE)


class Joined(io.RawIOBase):
    """Several files, one after another, forwards only."""

    def __init__(self, *files: IO[bytes]) -> None:
        self._files = list(files)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        assert 0 < size <= MIB, "a large body is read in chunks"
        while self._files:
            if data := self._files[0].read(size):
                return data
            del self._files[0]
        return b""

    def readline(self, size: int | None = -1) -> bytes:
        raise AssertionError("nobody needs lines")


# Sources: each gives what `extract` takes, and after the block looks whether it is as it was.


@contextlib.contextmanager
def a_path(path: Path) -> Iterator[Any]:
    yield path


@contextlib.contextmanager
def an_open_file(path: Path) -> Iterator[Any]:
    with path.open("r+b") as file:
        file.seek(7)
        yield file
        assert file.tell() == 7


@contextlib.contextmanager
def a_django_file(path: Path) -> Iterator[Any]:
    from django.core.files import File

    with path.open("rb") as file:
        yield File(file)
        assert not file.closed


@contextlib.contextmanager
def an_uploaded_file(path: Path) -> Iterator[Any]:
    from django.core.files.uploadedfile import TemporaryUploadedFile

    with TemporaryUploadedFile("a.pdf", "application/pdf", SIZE, None) as uploaded:
        with path.open("rb") as file:
            shutil.copyfileobj(file, uploaded.file, CHUNK)
        uploaded.seek(9)
        yield uploaded
        assert uploaded.tell() == 9


@contextlib.contextmanager
def a_kept_file(path: Path) -> Iterator[Any]:
    from django.core.files.storage import FileSystemStorage
    from django.db.models import FileField
    from django.db.models.fields.files import FieldFile

    field = FileField(storage=FileSystemStorage(location=path.parent))
    kept = FieldFile(None, field, path.name)  # type: ignore[arg-type]
    yield kept
    assert kept.closed


@contextlib.contextmanager
def a_remote_file(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        yield Joined(file)


@contextlib.contextmanager
def a_spooled_file(path: Path) -> Iterator[Any]:
    with tempfile.SpooledTemporaryFile(MIB) as spooled:
        with path.open("rb") as file:
            shutil.copyfileobj(file, spooled, CHUNK)
        spooled.seek(11)
        yield spooled
        assert spooled.tell() == 11


@contextlib.contextmanager
def a_pipe(path: Path) -> Iterator[Any]:
    reading, writing = os.pipe()

    def write() -> None:
        with path.open("rb") as file, open(writing, "wb", CHUNK) as end:
            shutil.copyfileobj(file, end, CHUNK)

    thread = threading.Thread(target=write)
    thread.start()
    with open(reading, "rb") as end:
        yield end
    thread.join()


@contextlib.contextmanager
def an_upload_in_memory(path: Path) -> Iterator[Any]:
    from django.core.files.uploadedfile import InMemoryUploadedFile

    held = io.BytesIO(path.read_bytes())  # once: what is measured is whether it is so again
    yield InMemoryUploadedFile(held, "file", "a.pdf", "application/pdf", SIZE, None)
    held.close()


SOURCES: dict[str, Callable[[Path], contextlib.AbstractContextManager[Any]]] = {
    "a path": a_path,
    "an open file": an_open_file,
    "a Django file": a_django_file,
    "an uploaded file": an_uploaded_file,
    "a kept file": a_kept_file,
    "a remote file": a_remote_file,
    "a spooled file": a_spooled_file,
    "a pipe": a_pipe,
    "an upload in memory": an_upload_in_memory,
}


# Requests


def raw(path: Path) -> tuple[IO[bytes], int, str]:
    return path.open("rb"), path.stat().st_size, "application/pdf"


def form(path: Path) -> tuple[Any, int, str]:
    head = (
        b'--%s\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n'
        b"Content-Type: application/pdf\r\n\r\n" % BOUNDARY
    )
    tail = b"\r\n--%s--\r\n" % BOUNDARY
    body = Joined(io.BytesIO(head), path.open("rb"), io.BytesIO(tail))
    length = len(head) + path.stat().st_size + len(tail)
    return body, length, f"multipart/form-data; boundary={BOUNDARY.decode()}"


REQUESTS = {"a raw request": raw, "a form": form}


def post(application: Any, made: tuple[Any, int, str]) -> Any:
    """Send a request to the site, and return the JSON that it answers with."""
    body, length, content_type = made
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/pdf/extract/",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "HTTP_HOST": "localhost",
        "HTTP_AUTHORIZATION": "Bearer somebody",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(length),
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
    }
    response = application(environ, lambda status, headers: None)
    answer = json.loads(b"".join(response))
    response.close()
    body.close()
    return answer


# Measuring


def resident(field: str) -> int:
    """Return ``VmRSS``, or its peak ``VmHWM``, in bytes (``man 5 proc``)."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


@contextlib.contextmanager
def growth() -> Iterator[dict[str, int]]:
    """Measure by how much resident memory grows in the block, at its peak."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = resident("VmRSS")
    measured: dict[str, int] = {}
    yield measured
    measured["growth"] = resident("VmHWM") - before


def main(folder: Path) -> None:
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.test.utils import override_settings

    django.setup()
    settings.MEDIA_ROOT = str(folder)
    from pdfpool_django.extraction import extract
    from scripts.pdf_builder import simple_pdf

    path = folder / "large.pdf"
    write_large(path)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    application = get_wsgi_application()
    wanted = {"MAX_UPLOAD": SIZE * 2, "CALLER": "tests.site.callers.by_token"}
    results = {}
    with override_settings(PDFPOOL=wanted, FILE_UPLOAD_TEMP_DIR=str(folder)):
        extract(simple_pdf("warm"), caller="a")
        for name, opened in SOURCES.items():
            with opened(path) as source, growth() as measured:
                extraction = extract(source, caller="a")
            results[name] = {**measured, "text": extraction.text, "sha256": extraction.sha256}
        for name, made in REQUESTS.items():
            with growth() as measured:
                answer = post(application, made(path))
            text = answer["pages"][0]["text"] if "pages" in answer else answer
            results[name] = {**measured, "text": text, "sha256": answer.get("sha256")}
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == sha256
    left = sorted(each.name for each in folder.iterdir())
    print(json.dumps({"sha256": sha256, "left": left, "results": results}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
