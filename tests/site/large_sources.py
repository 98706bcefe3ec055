"""A program that reads a large document with as little memory as may be, and counts the copies.

Run by `test_large_files`. `large_documents` measures how the process grows; what is copied into
anonymous memory, or loaded by the child, does not show there. Such a copy of 200 MB is in the
memory of the machine, one at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.site.large_documents import (
    CHUNK,
    MIB,
    REQUESTS,
    SIZE,
    SOURCES,
    growth,
    post,
)

IN_MEMORY = 20 * MIB
"""How large an upload is that stays in memory."""

TEXT = "A page with a large picture"
_DATA = b"the picture's data"


def write_pictured(path: Path, size: int) -> None:
    """Write a PDF whose page has a picture of `size` bytes, which its text does not need."""
    from scripts.pdf_builder import FONT, PdfBuilder, text_content

    builder = PdfBuilder()
    picture = builder.add(
        b"<< /Type /XObject /Subtype /Image /Width 1024 /Height %d /BitsPerComponent 8 "
        b"/ColorSpace /DeviceGray /Length %d >>\nstream\n%s\nendstream"
        % (size // 1024, size, _DATA)
    )
    content = builder.add_stream(text_content(TEXT))
    resources = b"<< /Font << /F1 %s >> /XObject << /Im %d 0 R >> >>" % (FONT, picture)
    page = b"/MediaBox [0 0 595 842] /Contents %d 0 R /Resources %s" % (content, resources)
    before, _, after = builder.build([page]).partition(_DATA)
    shift = size - len(_DATA)

    def moved(found: re.Match[bytes]) -> bytes:
        place = int(found[0])
        return b"%0*d" % (len(found[0]), place + shift * (place > len(before)))

    with path.open("wb") as file:
        file.write(before)
        file.seek(size, os.SEEK_CUR)  # zeros, which take no space here
        file.write(re.sub(rb"\d{10}(?= \d{5} n)|\d+(?=\n%%EOF)", moved, after))


# Sources that `large_documents` has not


@contextlib.contextmanager
def a_named_file(path: Path) -> Iterator[Any]:
    from django.core.files import File

    with tempfile.NamedTemporaryFile(dir=path.parent) as named:
        copy(path, named)
        named.seek(13)
        yield File(named)
        assert not named.closed


@contextlib.contextmanager
def a_kept_remote_file(path: Path) -> Iterator[Any]:
    from django.db.models import FileField
    from django.db.models.fields.files import FieldFile

    from tests.site.storages import RemoteFile, RemoteStorage

    class Remote(RemoteFile):
        """A file that comes from elsewhere in chunks, and is never held."""

        def open(self, mode: str | None = None, *args: Any, **kwargs: Any) -> Any:
            self._file = path.open("rb")
            self._is_closed = False
            return self

        def read(self, size: int) -> bytes:
            assert 0 < size <= MIB, "a remote file is read in chunks"
            return self._file.read(min(size, CHUNK))

        def close(self) -> None:
            self._file.close()
            super().close()

    class Storage(RemoteStorage):
        def _open(self, name: str, mode: str = "rb") -> Any:
            return Remote(b"", name).open()

    kept = FieldFile(None, FileField(storage=Storage(b"")), path.name)  # type: ignore[arg-type]
    yield kept
    assert kept.closed


MORE: dict[str, Callable[[Path], AbstractContextManager[Any]]] = {
    "a named file": a_named_file,
    "a kept remote file": a_kept_remote_file,
}
REGULAR = {
    name: (SOURCES | MORE)[name]
    for name in ("a path", "an open file", "an uploaded file", "a kept file", "a named file")
}
"""Where there is a file that a child can be given."""

COPIED = {name: (SOURCES | MORE)[name] for name in ("a spooled file", "a kept remote file")}
"""Where there is none."""

HELD = {"an upload in memory": SOURCES["an upload in memory"]}
"""Where the process has all of it in memory already."""

KEPT = {f"{name}, kept in memory": made for name, made in REQUESTS.items()}
WRITTEN = {f"{name}, one byte too long for memory": made for name, made in REQUESTS.items()}


def copy(path: Path, target: Any) -> None:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            target.write(chunk)


def contents(source: Any) -> Iterator[bytes]:
    """Yield what a source holds, and leave it where it was."""
    if isinstance(source, Path) or source.closed:
        with source.open("rb") as file:
            yield from iter(lambda: file.read(CHUNK), b"")
        return
    position = source.tell()
    source.seek(0)
    yield from iter(lambda: source.read(CHUNK), b"")
    source.seek(position)


def sha256_of(source: Any) -> str:
    digest = hashlib.sha256()
    for chunk in contents(source):
        digest.update(chunk)
    return digest.hexdigest()


def place(source: Any) -> Any:
    """Return where in a source its owner is, as far as there is such a place."""
    if isinstance(source, Path):
        return "not open"
    return "closed" if source.closed else source.tell()


@contextlib.contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Count the bytes of documents that are copied into anonymous memory in the block."""
    from pdfpool_django.sandbox import descriptors

    count = {"copied": 0}

    class Counting(descriptors.Sealed):
        def write(self, data: bytes | bytearray | memoryview) -> None:
            count["copied"] += memoryview(data).nbytes
            super().write(data)

    original = descriptors.Sealed
    descriptors.Sealed = Counting  # type: ignore[misc]
    try:
        yield count
    finally:
        descriptors.Sealed = original  # type: ignore[misc]


def read_source(opened: Callable[[Path], AbstractContextManager[Any]], path: Path) -> Any:
    from pdfpool_django.extraction import extract

    with opened(path) as source:
        before = place(source)
        with counted() as count, growth() as grown:
            extraction = extract(source, caller="a")
        places = [before, place(source)]
        result = {"text": extraction.text, "places": places, "sha256": sha256_of(source)}
    return result | count | grown


def read_request(application: Any, made: Callable[[Path], Any], path: Path) -> Any:
    with counted() as count, growth() as grown:
        answer = post(application, made(path))
    text = answer["pages"][0]["text"] if "pages" in answer else answer
    return {"text": text} | count | grown


def told(reading: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a reading gives, or what became of it: the others are measured all the same."""
    try:
        return reading(*arguments)
    except Exception as error:
        return {"error": repr(error)}


def main(folder: Path) -> None:
    import django
    from django.core.wsgi import get_wsgi_application
    from django.test.utils import override_settings

    django.setup()
    from pdfpool_django.conf import MIN_MEMORY
    from scripts.pdf_builder import simple_pdf

    large, medium, small = (folder / name for name in ("large.pdf", "medium.pdf", "small.pdf"))
    write_pictured(large, SIZE)
    write_pictured(medium, IN_MEMORY)
    small.write_bytes(simple_pdf("warm"))
    application = get_wsgi_application()
    wanted = {
        "MAX_UPLOAD": SIZE * 2,
        "MEMORY": MIN_MEMORY,
        "CALLER": "tests.site.callers.by_token",
    }
    results = {}
    with override_settings(PDFPOOL=wanted, FILE_UPLOAD_TEMP_DIR=str(folder)):
        read_source(SOURCES["a path"], small)
        for made in REQUESTS.values():
            read_request(application, made, small)
        for name, opened in (REGULAR | COPIED).items():
            results[name] = told(read_source, opened, large)
        for name, made in REQUESTS.items():
            results[name] = told(read_request, application, made, large)
        for name, opened in HELD.items():
            results[name] = told(read_source, opened, medium)
        for requests, excess in ((KEPT, 0), (WRITTEN, 1)):
            for name, made in requests.items():
                length = made(medium)[1]
                with override_settings(FILE_UPLOAD_MAX_MEMORY_SIZE=length - excess):
                    results[name] = told(read_request, application, made, medium)
    files = {
        each.stem: {"size": each.stat().st_size, "sha256": sha256_of(each)}
        for each in (large, medium)
    }
    for path in (large, medium, small):
        path.unlink()
    left = sorted(each.name for each in folder.iterdir())
    print(json.dumps({**files, "left": left, "results": results}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
