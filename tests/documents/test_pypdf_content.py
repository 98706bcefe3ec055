"""The text of content streams: replaced text, broken content, fonts, and what pypdf is told."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator
from typing import Any

import pypdf
import pytest
from pypdf import PdfReader
from pypdf.generic import _data_structures

from pdfpool_django.engines import pypdf_content, pypdf_fonts, pypdf_leniency
from pdfpool_django.engines.pypdf import engine
from pdfpool_django.errors import PdfPoolError
from scripts.hostile_builder import (
    CJK,
    FONT,
    Page,
    composite,
    in_font,
    mapped,
    marked,
    one_page,
)
from scripts.pdf_builder import PdfBuilder, simple_pdf, text_content


@pytest.fixture(autouse=True)
def told() -> Iterator[None]:
    """Tell pypdf what a child does, and take it back."""
    with pypdf.apply_configuration(pypdf.get_configuration()):
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in pypdf_leniency.REPLACED]
        pypdf_leniency.install()
        yield
        for owner, name, theirs in before:
            setattr(owner, name, theirs)


def pages_of(data: bytes) -> list[dict[str, Any]]:
    session = engine.session()
    arguments = {"password": None, "max_pages": 100}
    ((opened, _),) = session.handle("open", arguments, io.BytesIO(data))
    answers = session.handle("pages", {"ranges": [[1, opened["page_count"]]]}, None)
    return [part | {"text": body.decode("utf-8", "surrogatepass")} for part, body in answers]


def text_of(data: bytes) -> str:
    (page,) = pages_of(data)
    assert page["error"] is None
    return str(page["text"]).strip()


def plain_text(data: bytes) -> str:
    return PdfReader(io.BytesIO(data)).pages[0].extract_text().strip()


# What pypdf is told


@pytest.mark.parametrize(
    ("owner", "name"), [each[:2] for each in pypdf_leniency.REPLACED], ids=lambda each: str(each)
)
def test_pypdf_still_has_the_parts_that_are_replaced(owner: Any, name: str) -> None:
    assert name in vars(owner)


def test_every_limit_is_one_of_pypdfs_and_none_is_lowered() -> None:
    theirs = pypdf.Configuration()
    for name, limit in pypdf_leniency._LIMITS.items():
        assert limit > getattr(theirs, name)


def test_a_dictionary_without_an_end_is_read_as_far_as_pypdf_does_by_itself() -> None:
    data = simple_pdf("text").replace(b"/Count 1 >>", b"/Count 1 /Bad 1P /More [ 0\nendobj\n")
    assert text_of(data) == "text"


# Tokens


CONTENTS = {
    "numbers": b"BT /F1 12. Tf +1 0 -.0 1.5 72 700 Tm 5. 0 Td -0.25 Tc (a) Tj .5 Tw (b) Tj ET",
    "strings": rb"BT /F1 9 Tf (a\(b\)c\101\n) Tj (nested (one) two) Tj ET",
    "hex strings": b"BT /F1 9 Tf <41 42> Tj <4> Tj <414> Tj <4142> Tj ET",
    "lists": b"BT /F1 9 Tf [(a)-500(b) 20(c)<64>/Name] TJ [] TJ ET",
    "no blanks": b"BT/F1 9 Tf(a)Tj[(b)]TJ(c)'1 2(d)\"ET",
    "comments": b"BT % (no) Tj\n/F1 9 Tf (yes) Tj ET % end",
    "line ends": b"BT\r/F1 9 Tf\r\n(a)\x00Tj\x0cET\r",
    "strings over lines": b"BT /F1 9 Tf (a\r\nb\\\nc) Tj ET",
    "names in another spelling": b"BT /F#31 9 Tf (a) Tj ET",
    "dictionaries": b"/P << /MCID 0 /A [1 2] >> BDC BT /F1 9 Tf (a) Tj ET EMC",
    "an inline picture": b"q BI /W 1 /H 1 /BPC 8 /CS /G ID \x00 EI Q BT /F1 9 Tf (a) Tj ET",
    "long numbers": b"BT /F1 9 Tf 0.1234567890123456789012345 0 Td (a) Tj ET",
    "an operator without operands": b"BT /F1 9 Tf Tj Td Tm (a) Tj ET",
    "states": b"BT /F1 9 Tf q /F2 9 Tf (a) Tj Q (b) Tj ET",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_content_is_read_as_pypdf_reads_it(content: bytes) -> None:
    data = one_page(content)
    assert text_of(data) == plain_text(data) != ""


def test_a_long_content_takes_no_memory_for_its_operations() -> None:
    content = pypdf_content.TextContent(
        [], None, pypdf_content.Reading(None), _data_structures.DictionaryObject()
    )
    content.set_data(b"1 0 0 1 5 5 cm " * 1000)
    operations = content.operations
    assert next(operations) == ([1, 0, 0, 1, 5, 5], b"cm")
    assert not isinstance(operations, list)


def test_a_broken_content_keeps_what_is_before_and_after_the_break() -> None:
    (page,) = pages_of(one_page(text_content("before") + b" ) " + text_content("after")))
    assert page["text"].split() == ["before", "after"]
    assert page["error"]["code"] == "invalid_pdf"


def test_what_is_unreadable_again_and_again_is_given_up() -> None:
    started = time.monotonic()
    (page,) = pages_of(one_page(text_content("before") + b" (" * 500_000))
    assert page["error"]["code"] == "invalid_pdf"
    assert "before" in page["text"]
    assert time.monotonic() - started < 10


def test_one_broken_part_of_a_content_costs_only_itself() -> None:
    builder = PdfBuilder()
    parts = [
        builder.add_stream(text_content("one")),
        builder.add_stream(b"?", b"/Filter /NoSuchFilter"),
        builder.add_stream(text_content("three")),
    ]
    page = Page(builder)
    page.contents = b"[%s]" % b" ".join(b"%d 0 R" % part for part in parts)
    (read,) = pages_of(builder.build([page.dictionary()]))
    assert read["text"].split() == ["one", "three"]
    assert read["error"]["code"] == "unsupported"


def test_a_form_that_is_broken_is_an_error_of_every_page_that_has_it() -> None:
    builder = PdfBuilder()
    form = builder.add_stream(text_content("kept") + b" (", b"/Subtype /Form /BBox [0 0 9 9]")
    pages = []
    for _ in range(2):
        page = Page(builder)
        page.xobjects["X"] = form
        pages.append(page.show(text_content("page") + b" /X Do").dictionary())
    read = pages_of(builder.build(pages))
    assert [each["error"] and each["error"]["code"] for each in read] == ["invalid_pdf"] * 2


def test_a_page_without_text_is_held_to_the_limit_of_tokens_too() -> None:
    pypdf.overwrite_configuration(stream_parsing_work_maximum_count=1000)
    (page,) = pages_of(one_page(b"0 0 m 9 9 l S\n" * 200))
    assert page["error"]["code"] == "memory_exceeded"
    assert pages_of(one_page(b"0 0 m 9 9 l S\n" * 100))[0]["error"] is None
    assert pages_of(one_page(b" " * 5000))[0]["error"] is None


# Replaced text


def span(text: bytes, content: bytes) -> bytes:
    return b"/Span << /ActualText (%s) >> BDC %s EMC " % (text, content)


def test_replaced_text_is_as_wide_as_what_it_replaces() -> None:
    # Helvetica's widths: A 667, v 500, W 944; else a blank would come before “tion”.
    content = (
        b"BT /F1 10 Tf 72 700 Td (Av) Tj 11.67 0 Td "
        + span(b"ia", b"[(W) 0 (W)] TJ")
        + b"18.88 0 Td (tion) Tj ET"
    )
    assert text_of(one_page(content)) == "Aviation"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (span(b"", b"(#) Tj"), "ab"),
        (span(b"x", b"(#) Tj (#) Tj [(#) -900 (#)] TJ"), "axb"),
        (span(b"x", span(b"y", b"(#) Tj")), "axb"),
        (b"/P BMC " + span(b"x", b"(#) Tj") + b"EMC ", "axb"),
        (span(b"x", b"/P BMC (#) Tj EMC (#) Tj"), "axb"),
        (span(b"x", b""), "axb"),
        (b"EMC EMC " + span(b"x", b"(#) Tj"), "axb"),
        (b"/Span << /ActualText 7 >> BDC (#) Tj EMC ", "a#b"),
        (b"/Span << /Lang (en) >> BDC (#) Tj EMC ", "a#b"),
        (b"/Span /Missing BDC (#) Tj EMC ", "a#b"),
        (b"/Span BDC (#) Tj EMC ", "a#b"),
        (b"/Span << /ActualText <FEFF05D0> >> BDC (#) Tj EMC ", "a\u05d0b"),
        (b"/Span << /ActualText <EFBBBFC3A9> >> BDC (#) Tj EMC ", "aéb"),
    ],
)
def test_replaced_text(content: bytes, text: str) -> None:
    assert text_of(one_page(b"BT /F1 9 Tf (a) Tj " + content + b"(b) Tj ET")) == text


def test_a_form_within_replaced_text_is_not_read() -> None:
    builder = PdfBuilder()
    page = Page(builder)
    page.xobjects["X"] = builder.add_stream(
        text_content("glyphs"), b"/Subtype /Form /BBox [0 0 9 9]"
    )
    data = builder.build([page.show(span(b"word", b"/X Do")).dictionary()])
    assert text_of(data) == "word"


def test_marked_content_that_does_not_end_replaces_to_the_contents_end() -> None:
    content = b"BT /F1 9 Tf (a) Tj /Span << /ActualText (x) >> BDC (#) Tj (#) Tj ET"
    assert text_of(marked(content)) == "ax"


# Fonts


def test_a_font_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    build = pypdf_fonts._build
    monkeypatch.setattr(pypdf_fonts, "_build", lambda font: built.append(font) or build(font))
    builder = PdfBuilder()
    font = b"%d 0 R" % builder.add(FONT)
    pages = []
    for number in range(3):
        page = Page(builder)
        page.fonts["F1"] = font
        pages.append(page.show(text_content(f"page {number}")).dictionary())
    assert len(pages_of(builder.build(pages))) == 3
    assert len(built) == 1


def test_a_font_that_cannot_be_read_costs_only_its_text() -> None:
    def font(builder: PdfBuilder) -> bytes:
        return composite(builder, b"/Encoding /Identity-H /ToUnicode 99 0 R /DescendantFonts 7")

    (page,) = pages_of(in_font(font, b"<0041>"))
    assert "Invoice" in page["text"]


def test_a_font_with_a_map_is_not_said_to_have_none() -> None:
    (page,) = pages_of(mapped(b"1 beginbfchar <0001> <0041> endbfchar", b"<0001>"))
    assert page["warnings"] == []


def test_an_unmapped_font_in_which_nothing_is_shown_is_not_spoken_of() -> None:
    builder = PdfBuilder()
    page = Page(builder)
    page.fonts["F2"] = composite(builder, b"/Encoding /Identity-H")
    (read,) = pages_of(builder.build([page.show(text_content("text")).dictionary()]))
    assert read["warnings"] == []


@pytest.mark.parametrize("cmap", CJK)
def test_every_predefined_cmap_is_known(cmap: str) -> None:
    assert f"/{cmap}" in pypdf_fonts.PREDEFINED


def test_lists_without_an_end_are_not_read_again_for_each_level() -> None:
    lists = b"/W " + b"[ 1 2 3 " * 40
    data = simple_pdf("text").replace(b"/Type /Font", b"/Type /Font " + lists)
    started = time.monotonic()
    with contextlib.suppress(PdfPoolError):
        pages_of(data)
    assert time.monotonic() - started < 2
