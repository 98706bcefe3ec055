"""A small writer of PDF files, for the samples that the project bundles and for its tests.

It writes what it is told, sound or not (ISO 32000-2, 7.5: header, body,
cross-reference table, trailer).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping

from pypdf import PdfReader, PdfWriter
from pypdf.constants import UserAccessPermissions

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


class PdfBuilder:
    """Collects objects, then writes them."""

    def __init__(self, header: bytes = b"%PDF-1.7\n") -> None:
        self._header = header
        self._objects: list[bytes] = []
        self.catalog_entries = b""
        self.tree_entries = b""
        """Of the page tree's root, from which pages inherit."""
        self.info: int | None = None

    def add(self, body: bytes) -> int:
        """Add an object; return its number."""
        self._objects.append(body)
        return len(self._objects)

    def add_stream(self, data: bytes, entries: bytes = b"") -> int:
        """Add a stream; return its number."""
        return self.add(b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data))

    def build(self, pages: Iterable[bytes]) -> bytes:
        """Return the file whose pages have these dictionaries, each without its ``/Parent``."""
        kids = list(pages)
        tree = len(self._objects) + len(kids) + 1
        numbers = [self.add(b"<< /Type /Page /Parent %d 0 R %s >>" % (tree, kid)) for kid in kids]
        references = b" ".join(b"%d 0 R" % number for number in numbers)
        about = (references, len(numbers), self.tree_entries)
        self.add(b"<< /Type /Pages /Kids [%s] /Count %d %s >>" % about)
        catalog = self.add(b"<< /Type /Catalog /Pages %d 0 R %s >>" % (tree, self.catalog_entries))
        return self._write(catalog)

    def _write(self, catalog: int) -> bytes:
        out = io.BytesIO()
        out.write(self._header)
        offsets = []
        for number, body in enumerate(self._objects, 1):
            offsets.append(out.tell())
            out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        start = out.tell()
        out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1))
        out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
        info = b"" if self.info is None else b" /Info %d 0 R" % self.info
        out.write(
            b"trailer\n<< /Size %d /Root %d 0 R%s >>\nstartxref\n%d\n%%%%EOF\n"
            % (len(offsets) + 1, catalog, info, start)
        )
        return out.getvalue()


def add_picture(
    builder: PdfBuilder, width: int, height: int, data: bytes, entries: bytes = b""
) -> int:
    """Add a picture, an image of the resources (ISO 32000-2, 8.9.5); return its number.

    Args:
        builder: Where to add it.
        width: Pixels.
        height: Pixels.
        data: Its samples, or its file, as the filter among the entries wants it.
        entries: ``/ColorSpace``, ``/BitsPerComponent``, ``/Filter`` and the like.
    """
    size = b"/Width %d /Height %d" % (width, height)
    return builder.add_stream(data, b"/Type /XObject /Subtype /Image %s %s" % (size, entries))


def text_content(text: str, size: int = 12) -> bytes:
    """Return a content stream that shows the lines of `text` (ISO 32000-2, 9.4)."""
    lines = []
    for line in text.split("\n"):
        escaped = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        lines.append(b"(%s) Tj T*" % escaped.encode("cp1252"))
    return b"BT /F1 %d Tf %d TL 72 760 Td\n%s\nET" % (size, size + 4, b"\n".join(lines))


def page_entries(builder: PdfBuilder, content: bytes, font: bytes = FONT) -> bytes:
    """Return the dictionary entries of a page with this content."""
    stream = builder.add_stream(content)
    return b"/MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /Font << /F1 %s >> >>" % (
        stream,
        font,
    )


def simple_pdf(*texts: str, info: Mapping[str, str] | None = None, catalog: bytes = b"") -> bytes:
    """Return a file with a page for each text."""
    builder = PdfBuilder()
    builder.catalog_entries = catalog
    if info:
        entries = b" ".join(
            b"/%s (%s)" % (key.encode(), value.encode("latin-1")) for key, value in info.items()
        )
        builder.info = builder.add(b"<< %s >>" % entries)
    return builder.build([page_entries(builder, text_content(text)) for text in texts])


def encrypted_pdf(
    data: bytes,
    *,
    user: str,
    owner: str,
    algorithm: str,
    permissions: UserAccessPermissions | None = None,
) -> bytes:
    """Return the file locked with these passwords, by an algorithm that pypdf names.

    Args:
        data: The file.
        user: The password to open it with.
        owner: The password to change it with.
        algorithm: Like ``AES-256``.
        permissions: What others may do with it; ``None`` for everything.
    """
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    allowed = UserAccessPermissions.all() if permissions is None else permissions
    writer.encrypt(user, owner, algorithm=algorithm, permissions_flag=allowed)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
