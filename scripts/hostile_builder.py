"""Small files that are broken, tricky or costly in one way each, and what is to become of each.

A kind is a way in which real files, and those of attackers, go wrong. Its
files are generated here, so that the tests keep the kind and no file.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.pdf_builder import (
    FONT,
    PdfBuilder,
    encrypted_pdf,
    page_entries,
    simple_pdf,
    text_content,
)

SENTENCE = "Invoice 4711 total 99 EUR"
SAID = text_content(SENTENCE)

LIMITS = frozenset({"memory_exceeded", "deadline_exceeded", "output_too_large", "too_many_pages"})
BROKEN = frozenset({"invalid_pdf", "not_a_pdf", "invalid_request"})

MIB = 1024 * 1024


@dataclass(frozen=True)
class Kind:
    """One kind of hostile file."""

    name: str
    build: Callable[[], bytes]
    text: tuple[str, ...] = (SENTENCE,)
    """What the text must have."""
    without: tuple[str, ...] = ()
    """What it must not have."""
    errors: frozenset[str] = frozenset()
    """The codes of which one must be there: raised, or on a page beside the text."""
    warnings: frozenset[str] = frozenset()
    """The codes of warnings that must be there."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Settings under which it is tried."""


KINDS: list[Kind] = []
_Build = Callable[[], bytes]


def kind(name: str, **wanted: Any) -> Callable[[_Build], _Build]:
    """Register what the decorated function builds."""

    def register(build: _Build) -> _Build:
        KINDS.append(Kind(name, build, **wanted))
        return build

    return register


def kinds_of(name: str, variants: Mapping[str, Any], **wanted: Any) -> Callable[..., Any]:
    """Register what the decorated function builds of each variant."""

    def register(build: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        for variant, value in variants.items():
            KINDS.append(Kind(f"{name} {variant}", lambda value=value: build(value), **wanted))
        return build

    return register


# Parts of files


class Page:
    """A page under construction; what it names is added to the builder."""

    def __init__(self, builder: PdfBuilder) -> None:
        self.builder = builder
        self.fonts = {"F1": FONT}
        self.xobjects: dict[str, int] = {}
        self.properties: dict[str, bytes] = {}
        self.entries = b"/MediaBox [0 0 595 842]"
        self.contents = b""

    def show(self, content: bytes, entries: bytes = b"") -> Page:
        """Give the page its content, as one stream."""
        self.contents = b"%d 0 R" % self.builder.add_stream(content, entries)
        return self

    def dictionary(self) -> bytes:
        fonts = _entries(self.fonts)
        xobjects = _entries({name: b"%d 0 R" % number for name, number in self.xobjects.items()})
        resources = b"/Font << %s >> /XObject << %s >> /Properties << %s >>" % (
            fonts,
            xobjects,
            _entries(self.properties),
        )
        return b"%s /Resources << %s >> /Contents %s" % (self.entries, resources, self.contents)


def _entries(values: Mapping[str, bytes]) -> bytes:
    return b" ".join(b"/%s %s" % (name.encode(), value) for name, value in values.items())


def one_page(content: bytes, entries: bytes = b"", of_page: bytes = b"") -> bytes:
    """Return a file of one page, its stream and dictionary with these entries."""
    builder = PdfBuilder()
    page = Page(builder).show(content, entries)
    page.entries += of_page
    return builder.build([page.dictionary()])


def with_second(content: bytes, entries: bytes = b"") -> bytes:
    """Return a file of two pages, the first of which has the sentence."""
    builder = PdfBuilder()
    pages = [Page(builder).show(SAID), Page(builder).show(content, entries)]
    return builder.build([page.dictionary() for page in pages])


def flate(data: bytes, times: int = 1) -> tuple[bytes, bytes]:
    """Return the data deflated so often, and the stream's entries."""
    for _ in range(times):
        data = zlib.compress(data, 9)
    return data, b"/Filter [%s]" % (b" /FlateDecode" * times)


def deflated_zeros(size: int, unit: bytes = b" ") -> bytes:
    """Return so many bytes of the unit deflated, without having them in memory at once."""
    deflater = zlib.compressobj(9)
    chunk = unit * (MIB // len(unit))
    parts = [deflater.compress(chunk) for _ in range(size // MIB)]
    return b"".join([*parts, deflater.flush()])


def replaced(data: bytes, pattern: bytes, by: bytes) -> bytes:
    """Return the file with something else in it, which must be there once."""
    changed, count = re.subn(pattern, by, data, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{pattern!r} is there {count} times")
    return changed


# Bombs: little to send, much to read


@kind("bomb: 180 MB of blanks", errors=LIMITS)
def _flate() -> bytes:
    return with_second(deflated_zeros(180 * MIB), b"/Filter /FlateDecode")


@kind("bomb: deflated twice", errors=LIMITS)
def _flate_twice() -> bytes:
    entries = b"/Filter [/FlateDecode /FlateDecode]"
    return with_second(zlib.compress(deflated_zeros(512 * MIB), 9), entries)


@kind("bomb: run lengths", errors=LIMITS)
def _run_lengths() -> bytes:
    runs = zlib.compress(b"\x81 " * (700 * 1024) + b"\x80", 9)
    return with_second(runs, b"/Filter [/FlateDecode /RunLengthDecode]")


@kind("bomb: one stream a thousand times", errors=LIMITS)
def _contents_array() -> bytes:
    builder = PdfBuilder()
    bomb = builder.add_stream(deflated_zeros(5 * MIB), b"/Filter /FlateDecode")
    pages = [Page(builder).show(SAID), Page(builder)]
    pages[1].contents = b"[%s]" % (b"%d 0 R " % bomb * 1000)
    return builder.build([page.dictionary() for page in pages])


@kinds_of(
    "bomb: nothing but",
    {
        "states saved": b"q " * 6_000_000,
        "lines drawn": b"12.34 56.78 m 90.12 34.56 l S\n" * 900_000,
        "lines that end in CR": b"1 0 0 RG\r" * 2_000_000,
    },
    errors=LIMITS,
)
def _operators(content: bytes) -> bytes:
    return with_second(*flate(content))


@kind("bomb: a million words", errors=LIMITS, limits={"PAGE_DEADLINE": 2})
def _words() -> bytes:
    return with_second(*flate(b"BT /F1 1 Tf 1 0 0 1 5 5 Tm (a) Tj ET\n" * 1_000_000))


@kind("bomb: forms within forms", errors=LIMITS | BROKEN)
def _forms() -> bytes:
    builder = PdfBuilder()
    inner = builder.add_stream(b"BT /F1 1 Tf (boom) Tj ET", _form())
    for _ in range(10):
        inner = builder.add_stream(b"/X Do " * 8, _form(b"/XObject << /X %d 0 R >>" % inner))
    page = Page(builder)
    page.xobjects["X"] = inner
    return builder.build([page.show(SAID + b" /X Do").dictionary()])


def _form(resources: bytes = b"") -> bytes:
    return (
        b"/Type /XObject /Subtype /Form /BBox [0 0 595 842]"
        b" /Resources << /Font << /F1 %s >> %s >>" % (FONT, resources)
    )


MAP = b"""/CIDInit /ProcSet findresource begin begincmap
1 begincodespacerange <0000> <FFFF> endcodespacerange
%s
endcmap end"""


def composite(builder: PdfBuilder, entries: bytes, descendant: bytes = b"") -> bytes:
    """Return a font of two bytes for a code (ISO 32000-2, 9.7), not embedded."""
    number = builder.add(
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Sample /DW 1000 /CIDSystemInfo"
        b" << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> %s >>" % descendant
    )
    return b"<< /Type /Font /Subtype /Type0 /BaseFont /Sample /DescendantFonts [%d 0 R] %s >>" % (
        number,
        entries,
    )


def in_font(make: Callable[[PdfBuilder], bytes], shown: bytes) -> bytes:
    """Return a page with the sentence, and something in a font of its own."""
    builder = PdfBuilder()
    page = Page(builder)
    page.fonts["F2"] = make(builder)
    content = SAID + b"\nBT /F2 12 Tf 72 500 Td %s Tj ET" % shown
    return builder.build([page.show(content).dictionary()])


def mapped(targets: bytes, shown: bytes) -> bytes:
    """Return a page with the sentence, and something in a font with this ``ToUnicode``."""

    def font(builder: PdfBuilder) -> bytes:
        cmap = builder.add_stream(MAP % targets)
        return composite(builder, b"/Encoding /Identity-H /ToUnicode %d 0 R" % cmap)

    return in_font(font, shown)


@kinds_of(
    "bomb: a font that maps",
    {
        "four thousand million codes": b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange",
        "its codes again and again": b"1 beginbfrange <0000> <FFFF> <0041> endbfrange\n" * 50,
        "a code to 100 KB": b"1 beginbfchar <0001> <%s> endbfchar" % (b"0041" * 50_000),
    },
    errors=LIMITS,
)
def _to_unicode(targets: bytes) -> bytes:
    return mapped(targets, b"<0001>")


@kind("bomb: widths of four thousand million glyphs")
def _widths() -> bytes:
    def font(builder: PdfBuilder) -> bytes:
        return composite(builder, b"/Encoding /UniGB-UCS2-H", b"/W [0 4294967295 500]")

    return in_font(font, b"<0041>")


@kind("bomb: a predictor of a million columns", errors=LIMITS | BROKEN)
def _predictor() -> bytes:
    entries = b" /DecodeParms << /Predictor 12 /Columns 1000000000 >>"
    return with_second(zlib.compress(b"\x02" * 1000), b"/Filter /FlateDecode" + entries)


@kind("bomb: a huge picture beside the text")
def _picture() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    entries = b"/Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 8 /ColorSpace"
    page.xobjects["I"] = builder.add_stream(
        deflated_zeros(100 * MIB), entries + b" /DeviceGray /Filter /FlateDecode"
    )
    return builder.build([page.show(SAID + b" /I Do").dictionary()])


@kind("bomb: 200 filters in a chain")
def _filters() -> bytes:
    data = zlib.compress(SAID)
    return one_page(data, b"/Filter [%s /FlateDecode]" % (b"/Crypt " * 200))


# The sum of what is cheap


@kind("sum: a costly font on every page", errors=LIMITS)
def _costly_font() -> bytes:
    builder = PdfBuilder()
    cmap = builder.add_stream(MAP % (b"1 beginbfrange <0000> <FFFF> <0041> endbfrange\n" * 50))
    font = composite(builder, b"/Encoding /Identity-H /ToUnicode %d 0 R" % cmap)
    number = builder.add(font)
    pages = []
    for _ in range(100):
        page = Page(builder)
        page.fonts["F2"] = b"%d 0 R" % number
        pages.append(page.show(SAID + b" BT /F2 9 Tf <0001> Tj ET").dictionary())
    return builder.build(pages)


@kind("sum: pages of much text", errors=LIMITS, text=("lorem",), limits={"MAX_OUTPUT": 2 * MIB})
def _much_text() -> bytes:
    builder = PdfBuilder()
    stream = builder.add_stream(*flate(b"BT /F1 1 Tf (%s) Tj ET" % (b"lorem ipsum " * 20_000)))
    page = Page(builder)
    page.contents = b"%d 0 R" % stream
    return builder.build([page.dictionary()] * 50)


@kind("sum: a page in ten thousand streams")
def _many_streams() -> bytes:
    builder = PdfBuilder()
    numbers = [builder.add_stream(b"q Q") for _ in range(10_000)]
    said = builder.add_stream(SAID)
    page = Page(builder)
    page.contents = b"[%s %d 0 R]" % (b" ".join(b"%d 0 R" % number for number in numbers), said)
    return builder.build([page.dictionary()])


@kind("sum: costly pages, one after the other", errors=LIMITS, text=("a",), limits={"DEADLINE": 3})
def _costly_pages() -> bytes:
    builder = PdfBuilder()
    stream = builder.add_stream(*flate(b"BT /F1 1 Tf 1 0 0 1 5 5 Tm (a) Tj ET\n" * 20_000))
    page = Page(builder)
    page.contents = b"%d 0 R" % stream
    return builder.build([page.dictionary()] * 200)


@kind("log: a hundred thousand warnings")
def _warnings() -> bytes:
    again = b" ".join(b"/K%d 1 /K%d 2" % (number, number) for number in range(20_000))
    return one_page(SAID, of_page=b" /Extra << %s >>" % again)


# Trees and loops


@kinds_of("tree: a count of", {"2^24": b"16777216", "-5": b"-5", "1.5": b"1.5", "(a)": b"(a)"})
def _count(count: bytes) -> bytes:
    return simple_pdf(SENTENCE).replace(b"/Count 1 ", b"/Count %s " % count)


def tree(kids: bytes, count: int, levels: int) -> bytes:
    """Return a file with inner nodes above one page, each with these kids: ``%d`` is the next."""
    builder = PdfBuilder()
    below = builder.add(b"<< /Type /Page %s >>" % Page(builder).show(SAID).dictionary())
    for _ in range(levels):
        below = builder.add(
            b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, kids.replace(b"%d", b"%d" % below))
        )
    data = builder.build([])
    return re.sub(rb"/Catalog /Pages \d+ 0 R", b"/Catalog /Pages %d 0 R" % below, data)


@kind("tree: 2^24 pages that are one", errors=frozenset({"too_many_pages"}), text=())
def _shared_kids() -> bytes:
    return tree(b"%d 0 R %d 0 R", 2**24, 24)


@kind("tree: 1,500 levels")
def _deep_tree() -> bytes:
    return tree(b"%d 0 R", 1, 1500)


@kind("tree: no pages", text=())
def _no_pages() -> bytes:
    return PdfBuilder().build([])


@kind("loop: a tree within itself", errors=BROKEN, text=())
def _tree_loop() -> bytes:
    return replaced(
        simple_pdf(SENTENCE), rb"/Kids \[(\d+) 0 R\]", rb"/Kids [\1 0 R 4 0 R]"
    ).replace(b"/Type /Page /Parent", b"/Type /Pages /Kids [3 0 R] /Parent")


@kind("loop: a form within itself")
def _form_loop() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    page.xobjects["X"] = builder.add_stream(SAID + b" /X Do", _form(b"/XObject << /X 1 0 R >>"))
    return builder.build([page.show(b"/X Do").dictionary()])


@kind("loop: two forms within each other")
def _two_forms() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    builder.add_stream(SAID + b" /X Do", _form(b"/XObject << /X 2 0 R >>"))
    page.xobjects["X"] = builder.add_stream(b"/X Do", _form(b"/XObject << /X 1 0 R >>"))
    return builder.build([page.show(b"/X Do").dictionary()])


@kind("loop: a content that is a list of itself", text=())
def _contents_loop() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    page.contents = b"%d 0 R" % builder.add(b"[1 0 R]")
    return builder.build([page.dictionary()])


@kind("loop: parents, and no resources among them", errors=BROKEN, text=())
def _parent_loop() -> bytes:
    data = replaced(simple_pdf(SENTENCE), rb"/Resources <<.*?>> >>", b"")
    return replaced(data, rb"(/Type /Pages)", rb"\1 /Parent 2 0 R")


@kind("loop: a length that is its own stream")
def _length_loop() -> bytes:
    return replaced(simple_pdf(SENTENCE), rb"/Length \d+", b"/Length 1 0 R")


@kind("loop: a catalog that is two references", errors=BROKEN, text=())
def _root_loop() -> bytes:
    builder = PdfBuilder()
    first = builder.add(b"2 0 R")
    builder.add(b"1 0 R")
    data = builder.build([Page(builder).show(SAID).dictionary()])
    return re.sub(rb"/Root \d+ 0 R", b"/Root %d 0 R" % first, data)


@kind("loop: an outline within itself")
def _outline_loop() -> bytes:
    return simple_pdf(SENTENCE, catalog=b"/Outlines << /First 1 0 R /Last 1 0 R /Next 1 0 R >>")


# Broken files


@kinds_of(
    "broken: no",
    {
        "%%EOF": (rb"%%EOF\n", b""),
        "%%EOF, and a line after": (rb"%%EOF\n", b"\n\n"),
        "startxref": (rb"startxref.*", b""),
        "table": (rb"xref\n0 .*(?=trailer)", b""),
        "table and no trailer": (rb"xref\n0 .*", b""),
        "header": (rb"%PDF-1.7\n", b""),
        "hyphen in the header": (rb"%PDF-1.7", b"%PDF.1.4"),
        "sound offset": (rb"startxref\n\d+", b"startxref\n999999"),
        "length": (rb"/Length \d+", b""),
    },
)
def _missing(change: tuple[bytes, bytes]) -> bytes:
    return replaced(simple_pdf(SENTENCE), *change)


@kinds_of(
    "broken: a length of",
    {
        "0": b"0",
        "-9": b"-9",
        "10^11": b"99999999999",
        "2^64": b"18446744073709551616",
        "null": b"null",
    },
)
def _length(length: bytes) -> bytes:
    return replaced(simple_pdf(SENTENCE), rb"/Length \d+", b"/Length " + length)


@kind("broken: a length of 10^11 in a file of 2 MB")
def _length_in_a_large_file() -> bytes:
    builder = PdfBuilder()
    page = page_entries(builder, text_content(SENTENCE))
    builder.add_stream(bytes(2_000_000))
    return re.sub(rb"/Length \d+", b"/Length 99999999999", builder.build([page]), count=1)


@kinds_of(
    "broken: a media box",
    {
        "of exponents": b"[0 0 1e30 -1e30]",
        "of no numbers": b"[NaN inf -inf nan]",
        "of names": b"[/a /b /c /d]",
        "of strings": b"[(0) (0) (9) (9)]",
        "of lists": b"[[0] [0] [9] [9]]",
        "of nothing": b"[]",
        "without an area": b"[0 0 0 0]",
        "of too many": b"[0 0 9 9 9 9]",
        "that is a number": b"7",
        "that is missing": b"99 0 R",
        "with commas": b"[0,0,595,842]",
        "that is a word": b"letter",
    },
)
def _media_box(box: bytes) -> bytes:
    data = simple_pdf(SENTENCE)
    return data.replace(b"/MediaBox [0 0 595 842]", b"/MediaBox " + box)


@kind("broken: a media box of the tree")
def _media_box_of_the_tree() -> bytes:
    return simple_pdf(SENTENCE).replace(b"/Type /Pages", b"/Type /Pages /MediaBox [0 0 1e9 1e9]")


@kinds_of(
    "broken: no PDF but",
    {
        "a page of the web": b"<html><p>Not a PDF</p></html>",
        "a byte": b"%",
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(999),
        "a header": b"%PDF-1.7\n",
        "a header and words": b"%PDF-1.4 hi",
    },
    errors=BROKEN,
    text=(),
)
def _no_pdf(data: bytes) -> bytes:
    return data


@kind("broken: cut off before the catalog", errors=BROKEN, text=())
def _cut_off() -> bytes:
    return simple_pdf(SENTENCE).partition(b"/Type /Pages")[0]


@kind("broken: cut off within page 2", errors=BROKEN, text=())
def _cut_off_late() -> bytes:
    builder = PdfBuilder()
    builder.add(b"<< /Type /Catalog /Pages 2 0 R >>")
    builder.add(b"<< /Type /Pages /Count 2 /Kids [3 0 R 4 0 R] >>")
    resources = b"/MediaBox [0 0 9 9] /Resources << /Font << /F1 %s >> >>" % FONT
    builder.add(b"<< /Type /Page /Parent 2 0 R %s /Contents 5 0 R >>" % resources)
    builder.add(b"<< /Type /Page /Parent 2 0 R %s /Contents 6 0 R >>" % resources)
    builder.add_stream(SAID)
    builder.add_stream(text_content("lost"))
    return builder.build([]).partition(b"(lost)")[0]


@kinds_of(
    "broken: content with",
    {
        "a word that is none": (b"\x07\x93 ", b""),
        "a bracket too much": (b") ] ) } ", b""),
        "a string that does not end": (b"", b" (and so on"),
        "lists without an end": (b"", b" [" * 50_000),
        "a picture that does not end": (b"", b" BI /W 9 /H 9 ID abc"),
        "a picture that is none": (b"", b" BI ID"),
        "an unknown filter beside": (b"", b" /X Do"),
    },
    errors=BROKEN | {"unsupported"},
)
def _content(around: tuple[bytes, bytes]) -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    page.xobjects["X"] = builder.add_stream(b"?", _form() + b" /Filter /NoSuchFilter")
    return builder.build([page.show(around[0] + SAID + around[1]).dictionary()])


@kinds_of(
    "broken: short filter names",
    {
        "A85": (b"/A85", lambda data: base64.a85encode(data) + b"~>"),
        "AHx": (b"/AHx", lambda data: data.hex().encode() + b">"),
        "Fl": (b"/Fl", zlib.compress),
    },
)
def _short_names(codec: tuple[bytes, Callable[[bytes], bytes]]) -> bytes:
    return one_page(codec[1](SAID), b"/Filter " + codec[0])


@kind("broken: a font whose map cannot be decoded", errors=frozenset({"unsupported"}))
def _undecodable_map() -> bytes:
    def font(builder: PdfBuilder) -> bytes:
        cmap = builder.add_stream(b"?", b"/Filter /NoSuchFilter")
        return composite(builder, b"/Encoding /Identity-H /ToUnicode %d 0 R" % cmap)

    return in_font(font, b"<0001>")


@kinds_of(
    "filtered: by",
    {
        "null": b"/Filter null",
        "a list of null": b"/Filter [null] /DecodeParms [<< /Columns 4 >>]",
        "the standard lock, which changes nothing": b"/Filter /Crypt",
        "the lock of that name": b"/Filter [/Crypt] /DecodeParms [<< /Name /Identity >>]",
        "nothing, with parameters": b"/DecodeParms << /Columns 4 >>",
    },
)
def _unfiltered(entries: bytes) -> bytes:
    return one_page(SAID, entries)


@kinds_of(
    "filtered: by a reference", {"alone": b"/Filter %d 0 R", "in a list": b"/Filter [%d 0 R]"}
)
def _filtered_by_reference(entries: bytes) -> bytes:
    builder = PdfBuilder()
    name = builder.add(b"/FlateDecode")
    return builder.build([Page(builder).show(zlib.compress(SAID), entries % name).dictionary()])


@kinds_of(
    "filtered: predicted, by",
    {"deflation": (b"/FlateDecode", zlib.compress), "LZW": (b"/LZWDecode", lambda data: lzw(data))},
)
def _predicted(codec: tuple[bytes, Callable[[bytes], bytes]]) -> bytes:
    rows = [SAID[at : at + 8].ljust(8) for at in range(0, len(SAID), 8)]
    above = [bytes(8), *rows]
    predicted = [
        b"\2" + bytes((byte - before) % 256 for byte, before in zip(row, rest, strict=True))
        for row, rest in zip(rows, above, strict=False)
    ]
    parameters = b" /DecodeParms << /Predictor 12 /Columns 8 >>"
    return one_page(codec[1](b"".join(predicted)), b"/Filter " + codec[0] + parameters)


def lzw(data: bytes) -> bytes:
    """Return the data as codes of nine bits, cleared before they grow (ISO 32000-2, 7.4.4.2)."""
    codes = [256]
    for at, byte in enumerate(data, 1):
        codes += [byte, 256] if at % 200 == 0 else [byte]
    bits = "".join(f"{code:09b}" for code in (*codes, 257))
    padded = bits.ljust(-(-len(bits) // 8) * 8, "0")
    return int(padded, 2).to_bytes(len(padded) // 8, "big")


@kind("broken: resources of null, and better ones in the tree")
def _resources_of_the_tree() -> bytes:
    builder = PdfBuilder()
    page = Page(builder).show(SAID).dictionary()
    resources = re.search(rb"/Resources (<< .* >>) /Contents", page)
    assert resources
    data = builder.build([page.replace(resources[1], b"null")])
    return data.replace(b"/Type /Pages", b"/Type /Pages /Resources " + resources[1])


@kind("broken: a number of a hundred digits", text=("first", "second"))
def _long_number() -> bytes:
    digits = b"9" * 100
    return one_page(text_content("first") + b" " + digits + b" " + text_content("second"))


@kind("broken: a list of 240,000", text=("aaaa",))
def _long_list() -> bytes:
    return one_page(*flate(b"BT /F1 1 Tf [%s] TJ ET" % (b"(a) 0 " * 120_000)))


# Locked files


@kinds_of(
    "locked: with a password,",
    {each: each for each in ("RC4-128", "AES-128", "AES-256")},
    errors=frozenset({"password_required"}),
    text=(),
)
def _locked(algorithm: str) -> bytes:
    return encrypted_pdf(simple_pdf(SENTENCE), user="u", owner="o", algorithm=algorithm)


@kinds_of("locked: for its owner only,", {each: each for each in ("RC4-40", "AES-128", "AES-256")})
def _owned(algorithm: str) -> bytes:
    return encrypted_pdf(simple_pdf(SENTENCE), user="", owner="o", algorithm=algorithm)


@kind("locked: in a way of its own", errors=frozenset({"unsupported"}), text=())
def _own_lock() -> bytes:
    locked = encrypted_pdf(simple_pdf(SENTENCE), user="", owner="o", algorithm="RC4-128")
    return locked.replace(b"/Filter /Standard", b"/Filter /Acme.Lock")


# Text


CJK = {
    "GB-EUC-H": ("GB1", "中文", "gb2312"),
    "GBpc-EUC-V": ("GB1", "中文", "gb2312"),
    "GBK-EUC-H": ("GB1", "中文鎔", "gbk"),
    "GBKp-EUC-V": ("GB1", "中文鎔", "gbk"),
    "GBK2K-H": ("GB1", "中文㐀", "gb18030"),
    "UniGB-UCS2-H": ("GB1", "中文", "utf-16-be"),
    "UniGB-UTF16-V": ("GB1", "中文\N{CJK UNIFIED IDEOGRAPH-20000}", "utf-16-be"),
    "B5pc-H": ("CNS1", "中文", "big5"),
    "ETen-B5-H": ("CNS1", "中文", "big5"),
    "ETenms-B5-V": ("CNS1", "中文", "big5"),
    "HKscs-B5-H": ("CNS1", "中文", "big5hkscs"),
    "UniCNS-UCS2-H": ("CNS1", "中文", "utf-16-be"),
    "UniCNS-UTF16-H": ("CNS1", "中文", "utf-16-be"),
    "83pv-RKSJ-H": ("Japan1", "日本語", "shift_jis"),
    "90ms-RKSJ-H": ("Japan1", "日本語", "cp932"),
    "90msp-RKSJ-V": ("Japan1", "日本語", "cp932"),
    "90pv-RKSJ-H": ("Japan1", "日本語", "cp932"),
    "Add-RKSJ-H": ("Japan1", "日本語", "shift_jis"),
    "Ext-RKSJ-V": ("Japan1", "日本語", "shift_jis"),
    "EUC-H": ("Japan1", "日本語", "euc_jp"),
    "EUC-V": ("Japan1", "日本語", "euc_jp"),
    "H": ("Japan1", "日本語", "jis"),
    "V": ("Japan1", "日本語", "jis"),
    "UniJIS-UCS2-H": ("Japan1", "日本語", "utf-16-be"),
    "UniJIS-UCS2-HW-H": ("Japan1", "日本語", "utf-16-be"),
    "UniJIS-UTF16-H": ("Japan1", "日本語", "utf-16-be"),
    "UniJIS-UTF8-H": ("Japan1", "日本語", "utf-8"),
    "UniJIS2004-UTF32-H": ("Japan1", "日本語", "utf-32-be"),
    "KSC-EUC-H": ("Korea1", "한국어", "euc_kr"),
    "KSCms-UHC-H": ("Korea1", "한국어똠", "cp949"),
    "KSCms-UHC-HW-V": ("Korea1", "한국어똠", "cp949"),
    "KSCpc-EUC-H": ("Korea1", "한국어", "euc_kr"),
    "UniKS-UCS2-H": ("Korea1", "한국어", "utf-16-be"),
    "UniKS-UTF16-V": ("Korea1", "한국어", "utf-16-be"),
}


def _codes(text: str, codec: str) -> bytes:
    if codec == "jis":
        return bytes(byte & 0x7F for byte in text.encode("euc_jp"))
    return text.encode(codec)


def _cjk(cmap: str) -> Iterator[Kind]:
    ordering, text, codec = CJK[cmap]

    def font(builder: PdfBuilder) -> bytes:
        system = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (%s) /Supplement 0 >>"
        return composite(builder, b"/Encoding /" + cmap.encode(), system % ordering.encode())

    def build() -> bytes:
        return in_font(font, b"<%s>" % _codes(text, codec).hex().encode())

    yield Kind(f"CJK: {cmap}", build, (SENTENCE, text))


KINDS += [each for cmap in CJK for each in _cjk(cmap)]


@kind("CJK: a CMap of its own, of two bytes", text=(SENTENCE, "中文"))
def _own_cmap() -> bytes:
    def font(builder: PdfBuilder) -> bytes:
        ranges = b"1 begincidrange <0000> <FFFF> 0 endcidrange"
        encoding = builder.add_stream(MAP % ranges, b"/Type /CMap /CMapName /Own")
        targets = b"2 beginbfchar <0001> <4E2D> <0002> <6587> endbfchar"
        cmap = builder.add_stream(MAP % targets)
        return composite(builder, b"/Encoding %d 0 R /ToUnicode %d 0 R" % (encoding, cmap))

    return in_font(font, b"<00010002>")


@kind("CJK: a CMap of its own that adds to another", text=(SENTENCE, "日本"))
def _added_cmap() -> bytes:
    def font(builder: PdfBuilder) -> bytes:
        encoding = builder.add_stream(b"", b"/Type /CMap /CMapName /Own /UseCMap /90ms-RKSJ-H")
        return composite(builder, b"/Encoding %d 0 R" % encoding)

    return in_font(font, b"<%s>" % "日本".encode("cp932").hex().encode())


def _type3(builder: PdfBuilder) -> bytes:
    glyph = builder.add_stream(b"100 0 d0 0 0 50 50 re f")
    return (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 100 100] /FontMatrix [.01 0 0 .01 0 0]"
        b" /FirstChar 65 /LastChar 66 /Widths [100 100] /CharProcs << /g1 %d 0 R /g2 %d 0 R >>"
        b" /Encoding << /Differences [65 /g1 /g2] >> >>" % (glyph, glyph)
    )


def _empty_map(builder: PdfBuilder) -> bytes:
    cmap = builder.add_stream(MAP % b"")
    return composite(builder, b"/Encoding /Identity-H /ToUnicode %d 0 R" % cmap)


@kinds_of(
    "unmapped: glyphs without characters,",
    {
        "by their numbers": lambda builder: composite(builder, b"/Encoding /Identity-H"),
        "by an unknown CMap": lambda builder: composite(builder, b"/Encoding /CNS-EUC-H"),
        "by an empty map": _empty_map,
        "drawn": _type3,
    },
    warnings=frozenset({"unmapped_text"}),
)
def _unmapped(font: Callable[[PdfBuilder], bytes]) -> bytes:
    return in_font(font, b"(AB)")


@kinds_of(
    "clean:",
    {
        "NUL": b"<0000>",
        "a lone surrogate": b"<D83D>",
        "control characters": b"<00010002001F007F0085>",
        "a form feed": b"<000C>",
        "noncharacters": b"<FFFEFFFF>",
    },
    without=("\x00", "\x01", "\x02", "\x0c", "\x1f", "\x7f", "\x85", "\ud83d", "\ufffe", "\uffff"),
)
def _dirty(target: bytes) -> bytes:
    return mapped(b"1 beginbfchar <0001> %s endbfchar" % target, b"<0001>")


@kind("clean: halves of a surrogate pair", text=(SENTENCE, "\N{GRINNING FACE}"))
def _halves() -> bytes:
    return mapped(b"2 beginbfchar <0001> <D83D> <0002> <DE00> endbfchar", b"<00010002>")


@kind("clean: a title of 150 KB", warnings=frozenset({"metadata_cut"}))
def _long_title() -> bytes:
    return simple_pdf(SENTENCE, info={"Title": "x" * 150_000})


def marked(content: bytes, properties: Mapping[str, bytes] | None = None) -> bytes:
    """Return a page of marked content, with these property lists."""
    builder = PdfBuilder()
    page = Page(builder)
    page.properties = dict(properties or {})
    return builder.build([page.show(content).dictionary()])


def _utf16(text: str) -> bytes:
    return b"<%s>" % ("\ufeff" + text).encode("utf-16-be").hex().encode()


def _span(text: bytes) -> bytes:
    return b"/Span << /ActualText %s >> BDC " % text


_SHOWN = b"BT /F1 12 Tf 72 700 Td (#!%) Tj ET "


@kinds_of(
    "replaced: by /ActualText",
    {
        "inline": (_span(_utf16("hyphenated")) + _SHOWN + b"EMC", {}),
        "in PDFDocEncoding": (_span(b"(hyphenated)") + _SHOWN + b"EMC", {}),
        "in a property list": (
            b"/Span /P BDC " + _SHOWN + b"EMC",
            {"P": b"<< /ActualText %s >>" % _utf16("hyphenated")},
        ),
        "around other marked content": (
            _span(b"(hyphenated)")
            + b"/P BMC "
            + _SHOWN
            + b"EMC "
            + _span(b"(#!%)")
            + _SHOWN
            + b"EMC EMC",
            {},
        ),
        "of pieces": (
            _span(b"(hyphenated)")
            + b"BT /F1 9 Tf 72 700 Td [(#) -50 (!)] TJ (%) ' 1 1 (%) \" ET EMC",
            {},
        ),
        "of nothing that is shown": (_span(b"(hyphenated)") + b"0 0 9 9 re f EMC", {}),
    },
    text=(SENTENCE, "hyphenated", "after"),
    without=("#", "!", "%"),
)
def _replaced(parts: tuple[bytes, Mapping[str, bytes]]) -> bytes:
    return marked(SAID + b"\n" + parts[0] + b"\n" + text_content("after"), parts[1])


@kind("replaced: by /ActualText of a structure element", text=(SENTENCE, "word"), without=("#",))
def _structure() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    page.entries += b" /StructParents 0"
    content = b"/S << /MCID %d >> BDC BT /F1 12 Tf 72 %d Td (%s) Tj ET EMC\n"
    shown = [(0, b"#1"), (1, b"#2"), (2, SENTENCE.encode())]
    page.show(b"".join(content % (mcid, 700 - 20 * mcid, text) for mcid, text in shown))
    element = builder.add(b"<< /Type /StructElem /S /Span /ActualText (word) >>")
    plain = builder.add(b"<< /Type /StructElem /S /P >>")
    elements = b"%d 0 R %d 0 R %d 0 R" % (element, element, plain)
    nums = builder.add(b"<< /Nums [0 [%s]] >>" % elements)
    tree_root = builder.add(b"<< /Type /StructTreeRoot /ParentTree << /Kids [%d 0 R] >> >>" % nums)
    builder.catalog_entries = b"/StructTreeRoot %d 0 R" % tree_root
    return builder.build([page.dictionary()])


@kinds_of(
    "written on top: the value",
    {
        "of a text field": b"/FT /Tx /V (Alice Example)",
        "in UTF-16": b"/FT /Tx /V " + _utf16("Alice Example"),
        "of a choice": b"/FT /Ch /V (a) /Opt [[(a) (Alice Example)] (b)]",
        "of two choices": b"/FT /Ch /V [(b) (a)] /Opt [[(a) (Alice Example)] (b)]",
        "of a field around": b"/Parent << /FT /Tx /V (Alice Example) >>",
    },
    text=(SENTENCE, "Alice Example"),
)
def _field(entries: bytes) -> bytes:
    return annotated(b"/Subtype /Widget " + entries)


@kinds_of(
    "not written on top: the value",
    {
        "of a password": b"/FT /Tx /Ff 8192 /V (secret)",
        "of a hidden field": b"/FT /Tx /F 2 /V (secret)",
        "of a button": b"/FT /Btn /V /secret",
    },
    without=("secret",),
)
def _hidden_field(entries: bytes) -> bytes:
    return annotated(b"/Subtype /Widget " + entries)


@kind("written on top: a comment in free text", text=(SENTENCE, "reviewer remark"))
def _free_text() -> bytes:
    return annotated(b"/Subtype /FreeText /Contents (reviewer remark)")


@kind("not written on top: a note behind an icon", without=("behind",))
def _note() -> bytes:
    return annotated(b"/Subtype /Text /Contents (behind)")


@kind("not written on top: a list of annotations that is broken")
def _broken_annotations() -> bytes:
    return annotated(b"/Subtype 7", b"7 null 99 0 R [1] (a)")


@kind("not written on top: a list of annotations that is itself")
def _annotations_loop() -> bytes:
    data = one_page(SAID, of_page=b" /Annots 77777 0 R")
    data = re.sub(rb"trailer", b"77777 0 obj\n77777 0 R\nendobj\ntrailer", data, count=1)
    return replaced(data, rb"startxref\n\d+", b"startxref\n999999")


@kind("written on top: a long value, which is a stream", text=(SENTENCE, "Alice Example"))
def _long_value() -> bytes:
    builder = PdfBuilder()
    value = builder.add_stream(b"Alice Example")
    return annotated(b"/Subtype /Widget /FT /Tx /V %d 0 R" % value, builder=builder)


@kind("not written on top: a field that is within itself")
def _field_within_itself() -> bytes:
    builder = PdfBuilder()
    field = builder.add(b"<< /Parent 1 0 R >>")
    return annotated(b"/Subtype /Widget /Parent %d 0 R" % field, builder=builder)


def annotated(entries: bytes, others: bytes = b"", builder: PdfBuilder | None = None) -> bytes:
    """Return a page with the sentence and an annotation."""
    builder = builder or PdfBuilder()
    page = Page(builder)
    annotation = b"<< /Type /Annot /Rect [0 0 9 9] %s >>" % entries
    page.entries += b" /Annots [%s %s]" % (others, annotation)
    return builder.build([page.show(SAID).dictionary()])


@kind("layout: Hebrew from left to right", text=(SENTENCE, "שלום"))
def _hebrew() -> bytes:
    visual = "שלום"[::-1]
    pairs = b" ".join(
        b"<%04X> <%04X>" % (number, ord(letter)) for number, letter in enumerate(visual, 1)
    )
    codes = b"<%s>" % b"".join(b"%04X" % number for number in range(1, 5))
    return mapped(b"4 beginbfchar %s endbfchar" % pairs, codes)


@kind("layout: a layer that is hidden", text=(SENTENCE, "of a layer"))
def _layer() -> bytes:
    builder = PdfBuilder()
    group = builder.add(b"<< /Type /OCG /Name (hidden) >>")
    builder.catalog_entries = b"/OCProperties << /OCGs [%d 0 R] /D << /OFF [%d 0 R] >> >>" % (
        group,
        group,
    )
    page = Page(builder)
    page.properties["L"] = b"%d 0 R" % group
    content = SAID + b" /OC /L BDC " + text_content("of a layer") + b" EMC"
    return builder.build([page.show(content).dictionary()])


@kind("layout: text outside the crop box", text=(SENTENCE, "beyond"))
def _cropped() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    page.entries += b" /CropBox [0 700 595 842]"
    content = SAID + b" BT /F1 12 Tf 72 100 Td (beyond) Tj ET"
    return builder.build([page.show(content).dictionary()])


@kind("layout: a form that takes the page's fonts")
def _poor_form() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    entries = b"/Type /XObject /Subtype /Form /BBox [0 0 595 842]"
    page.xobjects["X"] = builder.add_stream(SAID, entries)
    return builder.build([page.show(b"/X Do").dictionary()])


@kind("layout: a scan", text=(), warnings=frozenset({"no_text_layer"}))
def _scan() -> bytes:
    builder = PdfBuilder()
    page = Page(builder)
    entries = b"/Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8"
    page.xobjects["I"] = builder.add_stream(b"\x00", entries)
    return builder.build([page.show(b"/I Do").dictionary()])


@kind("layout: XFA", warnings=frozenset({"xfa_form"}))
def _xfa() -> bytes:
    return simple_pdf(SENTENCE, catalog=b"/AcroForm << /XFA (<xdp/>) /Fields [] >>")


# Files whose third page of five goes wrong


def third_of_five(content: bytes, entries: bytes = b"", in_parts: Sequence[bytes] = ()) -> bytes:
    """Return five pages; the third has this content, the others say which they are.

    Given `in_parts`, deflated, they are its content, each less than pypdf's limit.
    """
    builder = PdfBuilder()
    pages = [Page(builder).show(text_content(f"page {number}")) for number in range(1, 6)]
    pages[2].show(content, entries)
    if in_parts:
        numbers = [builder.add_stream(part, b"/Filter /FlateDecode") for part in in_parts]
        pages[2].contents = b"[%s]" % b" ".join(b"%d 0 R" % number for number in numbers)
    return builder.build([page.dictionary() for page in pages])


THIRD: dict[str, tuple[Callable[[], bytes], str]] = {
    "hangs": (
        lambda: third_of_five(*flate(b"BT /F1 1 Tf 1 0 0 1 5 5 Tm (a) Tj ET\n" * 300_000)),
        "deadline_exceeded",
    ),
    "eats memory": (
        lambda: third_of_five(b"", in_parts=[deflated_zeros(35 * MIB)] * 2),
        "memory_exceeded",
    ),
    "is a bomb": (
        lambda: third_of_five(deflated_zeros(128 * MIB), b"/Filter /FlateDecode"),
        "memory_exceeded",
    ),
    "cannot be decoded": (
        lambda: third_of_five(b"?", b"/Filter /NoSuchFilter"),
        "unsupported",
    ),
    "cannot be parsed": (
        lambda: third_of_five(b"BT /F1 9 Tf %s(a)] TJ" % (b"[" * 100_000)),
        "invalid_pdf",
    ),
}
"""How the third page goes wrong, and the code that says so."""
