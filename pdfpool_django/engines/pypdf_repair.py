"""Files that pypdf cannot open as they are: their end is written anew, as other readers do."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from pdfpool_django.errors import InvalidPdf, PdfPoolError
from pdfpool_django.sandbox.child import raise_if_out_of_memory

MAX_SIZE = 64 * 1024 * 1024
"""Bytes of a file that is worth the memory of a second look."""

_TAIL = 2048
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_OBJECT = re.compile(rb"(?<![0-9])([0-9]{1,10})\s+([0-9]{1,5})\s+obj\b")
_ROOT = re.compile(rb"/Root\s+([0-9]+\s+[0-9]+)\s+R\b")
_PAGE = re.compile(rb"/Type\s*/Page\b")


class Countable(Protocol):
    """A document that tells its pages."""

    @property
    def page_count(self) -> int: ...

    @property
    def claimed_page_count(self) -> int: ...


Document = TypeVar("Document", bound=Countable)


def opened(file: io.BufferedIOBase, open_file: Callable[[io.BufferedIOBase], Document]) -> Document:
    """Return the document in the file; if need be, in the file with a sound end.

    One that was mended is taken only if no page is missing: the end of an
    upload that was cut off takes pages with it.

    Args:
        file: The file.
        open_file: Opens a file, and finds its pages.

    Raises:
        Exception: What `open_file` has raised at the file as it is.
    """
    document = None
    failure: Exception = InvalidPdf(reason="it has no pages")
    try:
        document = open_file(file)
        if document.page_count:
            return document
    except PdfPoolError:
        raise
    except Exception as error:
        raise_if_out_of_memory(error)
        failure = error
    mended = _mended(file, open_file, is_empty=document is not None)
    if mended is not None:
        return mended
    if document is not None:
        return document
    raise failure


def _mended(
    file: io.BufferedIOBase, open_file: Callable[[io.BufferedIOBase], Document], *, is_empty: bool
) -> Document | None:
    file.seek(0)
    data = file.read(MAX_SIZE + 1)
    if len(data) > MAX_SIZE or (is_empty and _PAGE.search(data) is None):
        return None
    for end in _ends(data):
        document = _tried(io.BytesIO(data + end), open_file)
        if document is not None and 0 < document.page_count >= document.claimed_page_count:
            return document
    return None


def _tried(
    file: io.BufferedIOBase, open_file: Callable[[io.BufferedIOBase], Document]
) -> Document | None:
    try:
        return open_file(file)
    except Exception as error:
        raise_if_out_of_memory(error)
        return None


def _ends(data: bytes) -> Iterator[bytes]:
    """Yield what may be missing at the end of the file, the likeliest first.

    A trailer is added only for a catalog that no other trailer disowns.
    """
    tail = data[-_TAIL:]
    if tail.rfind(b"startxref") > tail.rfind(b"%%EOF"):
        yield b"\n%%EOF\n"
    # An offset of 0 makes pypdf search the file for objects and trailers.
    search = b"\nstartxref\n0\n%%EOF\n"
    yield search
    catalog = _last_catalog(data)
    root = list(_ROOT.finditer(data))
    if b"/Encrypt" not in data and catalog and (not root or root[-1][1].split() == catalog.split()):
        size = max(int(match[1]) for match in _OBJECT.finditer(data)) + 1
        yield b"\ntrailer\n<< /Size %d /Root %s R >>" % (size, catalog) + search


def _last_catalog(data: bytes) -> bytes | None:
    """Return the number and generation of the last catalog, where one can be seen."""
    matches = list(_CATALOG.finditer(data))
    if not matches:
        return None
    objects = list(_OBJECT.finditer(data, max(0, matches[-1].start() - _TAIL), matches[-1].start()))
    return b"%s %s" % (objects[-1][1], objects[-1][2]) if objects else None
