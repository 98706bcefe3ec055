"""The parts of a PDF, found as a repairing reader finds them, so that changed files stay files."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

_OBJECT = re.compile(rb"(?<!\d)(\d{1,7}) (\d{1,5}) obj\b(.*?)\bendobj", re.DOTALL)
_STREAM = re.compile(rb"(.*?>>\s*stream\r?\n)(.*?)(\r?\nendstream.*)", re.DOTALL)
_LENGTH = re.compile(rb"/Length \d+(?! \d+ R)")
_ROOT = re.compile(rb"/Root \d+ \d+ R")
_TRAILER = re.compile(rb"trailer\s*<<(.*?)>>\s*startxref", re.DOTALL)
_SIZE = re.compile(rb"/Size \d+")

MAX_INFLATED = 1024 * 1024


@dataclass(frozen=True)
class Part:
    """An object of a file, and where it is."""

    number: int
    generation: int
    body: bytes
    """What is between ``obj`` and ``endobj``."""
    start: int
    end: int
    """Of the body."""

    def written(self, number: int, body: bytes) -> bytes:
        return b"%d %d obj%sendobj" % (number, self.generation, body)


@dataclass(frozen=True)
class Stream:
    """The stream in an object's body."""

    before: bytes
    """Its dictionary, and what leads to the data."""
    data: bytes
    after: bytes

    @property
    def deflated(self) -> bool:
        return b"FlateDecode" in self.before or b"/Fl" in self.before

    def inflated(self) -> bytes:
        """Return the data as a reader has it, as far as one filter goes."""
        if not self.deflated:
            return self.data
        try:
            return zlib.decompressobj().decompress(self.data, MAX_INFLATED)
        except zlib.error:
            return b""

    def with_data(self, data: bytes) -> bytes:
        """Return the object's body with other data, encoded as before and of the right length."""
        packed = zlib.compress(data) if self.deflated else data
        before = _LENGTH.sub(b"/Length %d" % len(packed), self.before, count=1)
        return before + packed + self.after


def parts(data: bytes) -> list[Part]:
    """Return the objects that stand in the open, in the file's order."""
    return [
        Part(int(found[1]), int(found[2]), found[3], found.start(3), found.end(3))
        for found in _OBJECT.finditer(data)
    ]


def stream(body: bytes) -> Stream | None:
    """Return the stream that an object's body has, if it has one."""
    found = _STREAM.fullmatch(body)
    return None if found is None else Stream(found[1], found[2], found[3])


def replaced(data: bytes, part: Part, body: bytes) -> bytes:
    """Return the file with another body for one object."""
    return data[: part.start] + body + data[part.end :]


def each_stream(data: bytes, change: Callable[[Stream], bytes]) -> bytes:
    """Return the file with each object that has a stream changed."""
    for part in reversed(parts(data)):
        found = stream(part.body)
        if found is not None:
            data = replaced(data, part, change(found))
    return data


def deflated(data: bytes) -> bytes:
    """Return the file with its plain streams deflated, as most files have them."""

    def deflate(found: Stream) -> bytes:
        if b"/Filter" in found.before:
            return found.before + found.data + found.after
        before = found.before.replace(b"/Length", b"/Filter /FlateDecode /Length", 1)
        return Stream(before, b"", found.after).with_data(found.data)

    return with_table(each_stream(data, deflate))


def with_table(data: bytes) -> bytes:
    """Return the file with a cross-reference table that fits it again.

    Else every change that moves an object would be read by way of the
    reader's repairs only. A file without a root is left as it is.
    """
    entries = _trailer_entries(data)
    if entries is None:
        return data
    body = data[: _end_of_body(data)]
    offsets = {found.number: found for found in parts(body)}
    out = [body, b"xref\n0 1\n0000000000 65535 f \n"]
    for number, found in sorted(offsets.items()):
        start = body.rindex(b"%d %d obj" % (number, found.generation), 0, found.start)
        out.append(b"%d 1\n%010d %05d n \n" % (number, start, found.generation))
    size = max(offsets, default=0) + 1
    out.append(b"trailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, entries, len(body)))
    return b"".join(out)


def _trailer_entries(data: bytes) -> bytes | None:
    trailers = _TRAILER.findall(data)
    if trailers:
        return _SIZE.sub(b"", trailers[-1]).strip()
    roots = _ROOT.findall(data)
    return roots[-1] if roots else None


def _end_of_body(data: bytes) -> int:
    end = data.rfind(b"endobj")
    return len(data) if end < 0 else end + len(b"endobj\n")


def packed(data: bytes) -> bytes:
    """Return the file with its objects in an object stream, and a cross-reference stream.

    Those of a modern file (ISO 32000-2, 7.5.7 and 7.5.8): no table, and most objects in no open.
    """
    entries = _trailer_entries(data) or b""
    inner = [part for part in parts(data) if stream(part.body) is None]
    outer = [part for part in parts(data) if stream(part.body) is not None]
    out = bytearray(b"%PDF-1.7\n")
    offsets: dict[int, tuple[int, int, int]] = {0: (0, 0, 65535)}
    for part in outer:
        offsets[part.number] = (1, len(out), 0)
        out += part.written(part.number, part.body) + b"\n"
    container = max(part.number for part in parts(data)) + 1
    offsets[container] = (1, len(out), 0)
    out += b"%d 0 obj\n%s\nendobj\n" % (container, _object_stream(inner))
    offsets |= {part.number: (2, container, at) for at, part in enumerate(inner)}
    start, offsets[container + 1] = len(out), (1, len(out), 0)
    out += b"%d 0 obj\n%s\nendobj\n" % (container + 1, _table_stream(offsets, entries))
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _object_stream(inner: list[Part]) -> bytes:
    head, bodies = [], b""
    for part in inner:
        head.append(b"%d %d" % (part.number, len(bodies)))
        bodies += part.body.strip() + b"\n"
    first = b" ".join(head) + b"\n"
    data = zlib.compress(first + bodies)
    return b"<< /Type /ObjStm /N %d /First %d /Filter /FlateDecode /Length %d >>\nstream\n%s%s" % (
        *(len(inner), len(first), len(data), data),
        b"\nendstream",
    )


def _table_stream(offsets: dict[int, tuple[int, int, int]], entries: bytes) -> bytes:
    size = max(offsets) + 1
    rows = (offsets.get(number, (0, 0, 65535)) for number in range(size))
    data = zlib.compress(
        b"".join(
            kind.to_bytes(1) + field.to_bytes(4) + last.to_bytes(2) for kind, field, last in rows
        )
    )
    return (
        b"<< /Type /XRef /Size %d /W [1 4 2] %s /Filter /FlateDecode /Length %d >>\nstream\n"
        b"%s\nendstream" % (size, entries, len(data), data)
    )
