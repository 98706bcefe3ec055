"""Handles of documents that tests have made, and parts of which those consist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pdfpool_django.documents import Document
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import FONT, PdfBuilder
from tests.sandbox.helpers import limits

PYPDF_MEMORY = 256 * 1024 * 1024
A4 = b"/MediaBox [0 0 595 842]"


@contextmanager
def opened(
    sandbox: Sandbox,
    data: bytes,
    password: str | None = None,
    *,
    workers: int = 2,
    **changes: Any,
) -> Iterator[Document]:
    """Open a document; `changes` are those of the limits."""
    document = Document(
        from_bytes(data),
        sandbox,
        source="a test's",
        password=password,
        limits=limits(**changes),
        workers=workers,
    )
    try:
        yield document
    finally:
        document.close()


def entries(**named: bytes | int) -> bytes:
    """Return names with what they stand for; a number is that of an object."""
    return b" ".join(
        b"/%s %s" % (name.encode(), b"%d 0 R" % value if isinstance(value, int) else value)
        for name, value in named.items()
    )


def page_of(
    builder: PdfBuilder,
    content: bytes = b"",
    *,
    about: bytes = A4,
    fonts: dict[str, bytes | int] | None = None,
    xobjects: dict[str, bytes | int] | None = None,
    more: bytes = b"",
) -> bytes:
    """Return the entries of a page with this content and these resources."""
    return b"%s /Contents %d 0 R /Resources << /Font << %s >> /XObject << %s >> %s >>" % (
        about,
        builder.add_stream(content),
        entries(**(fonts or {"F1": FONT})),
        entries(**(xobjects or {})),
        more,
    )


def form(builder: PdfBuilder, content: bytes, resources: bytes | None = None) -> int:
    """Add a form; ``None`` for one without resources of its own."""
    own = b"" if resources is None else b"/Resources << %s >>" % resources
    return builder.add_stream(content, b"/Subtype /Form /BBox [0 0 99 99] " + own)
