"""What a page is like: its size, its rotation, its label, its fonts."""

from __future__ import annotations

import pytest

from pdfpool_django.documents import Font
from pdfpool_django.errors import PageOutOfRange
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import FONT, PdfBuilder, simple_pdf
from tests.handle_values.opening import A4, entries, form, opened, page_of

# Sizes and rotations


@pytest.mark.parametrize(
    ("about", "size"),
    [
        (b"/MediaBox [0 0 595 842]", (595, 842)),
        (b"/MediaBox [10 20 110 220]", (100, 200)),
        (b"/MediaBox [595 842 0 0]", (595, 842)),
        (b"/MediaBox [0 0 595.5 842.25]", (595.5, 842.25)),
        (b"/MediaBox [0 0 595 842] /CropBox [10 10 110 210]", (100, 200)),
        (b"/MediaBox [0 0 595 842] /CropBox [-100 -100 100 200]", (100, 200)),
        (b"/MediaBox [0 0 595 842] /CropBox [900 900 999 999]", (595, 842)),
        (b"/MediaBox [0 0 595 842] /CropBox [1 2]", (595, 842)),
        (b"/MediaBox [0 0 595 842] /CropBox [(a) 0 1 1]", (595, 842)),
        (b"/MediaBox [0 0 100 200] /UserUnit 2.5", (250, 500)),
        (b"/MediaBox [0 0 100 200] /UserUnit 0", (100, 200)),
        (b"/MediaBox [0 0 100 200] /Rotate 90", (100, 200)),
        (b"/MediaBox [0 0 0 0]", (612, 792)),
        (b"/MediaBox [0 0 %s 9]" % (b"9" * 400), (612, 792)),
        (b"", (612, 792)),
    ],
)
def test_the_size_is_that_of_the_visible_part_in_points(
    pypdf_sandbox: Sandbox, about: bytes, size: tuple[float, float]
) -> None:
    builder = PdfBuilder()
    data = builder.build([page_of(builder, about=about)])
    with opened(pypdf_sandbox, data) as document:
        assert document.page(1).size == size


@pytest.mark.parametrize(
    ("rotate", "degrees"),
    [
        (b"", 0),
        (b"/Rotate 90", 90),
        (b"/Rotate 90.0", 90),
        (b"/Rotate 270", 270),
        (b"/Rotate -90", 270),
        (b"/Rotate 450", 90),
        (b"/Rotate 360", 0),
        (b"/Rotate 45", 0),
        (b"/Rotate (up)", 0),
        (b"/Rotate null", 0),
    ],
)
def test_the_rotation_is_one_of_four(pypdf_sandbox: Sandbox, rotate: bytes, degrees: int) -> None:
    builder = PdfBuilder()
    data = builder.build([page_of(builder, about=A4 + rotate)])
    with opened(pypdf_sandbox, data) as document:
        assert document.page(1).rotation == degrees


def test_boxes_rotation_and_fonts_are_inherited(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    builder.tree_entries = (
        b"/MediaBox [0 0 300 400] /CropBox [0 0 100 200] /Rotate -180 "
        b"/Resources << /Font << /F1 %s >> >>" % FONT
    )
    own = b"/Contents %d 0 R" % builder.add_stream(b"BT /F1 9 Tf 9 9 Td (text) Tj ET")
    data = builder.build([own, own + b" /CropBox [0 0 50 60] /Rotate 0"])
    with opened(pypdf_sandbox, data) as document:
        first, second = document.page(1), document.page(2)
        assert (first.size, first.rotation) == ((100, 200), 180)
        assert (second.size, second.rotation) == ((50, 60), 0)
        assert [font.name for font in first.fonts()] == ["Helvetica"]
        assert first.text().strip() == "text"


def test_values_may_stand_elsewhere(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    side, turned = builder.add(b"70"), builder.add(b"90")
    box = builder.add(b"[0 0 %d 0 R 80]" % side)
    about = b"/MediaBox %d 0 R /Rotate %d 0 R" % (box, turned)
    with opened(pypdf_sandbox, builder.build([page_of(builder, about=about)])) as document:
        assert document.page(1).size == (70, 80)
        assert document.page(1).rotation == 90


# Labels and numbers

LABELS = b"/PageLabels << /Nums [0 << /S /r >> 2 << /S /D /St 5 /P (A-) >>] >>"


def test_labels_are_what_the_document_calls_its_pages(pypdf_sandbox: Sandbox) -> None:
    data = simple_pdf(*"abcd", catalog=LABELS)
    with opened(pypdf_sandbox, data) as document:
        labels = [document.page(number).label for number in range(1, 5)]
        assert labels == ["i", "ii", "A-5", "A-6"]
        assert [page.label for page in document.map(lambda page: page.read())] == labels


def test_without_labels_it_is_the_number(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, simple_pdf("a", "b")) as document:
        assert document.page(2).label == "2"


@pytest.mark.parametrize("number", [0, -1, 3])
def test_there_is_no_page_beyond_the_document(pypdf_sandbox: Sandbox, number: int) -> None:
    with opened(pypdf_sandbox, simple_pdf("a", "b")) as document:
        with pytest.raises(PageOutOfRange) as caught:
            document.page(number)
        assert caught.value.params == {"page": number, "page_count": 2}


# Fonts

_MAP = b"1 begincmap 1 beginbfchar <41> <0041> endbfchar endcmap"


def _descriptor(builder: PdfBuilder, file: bytes | None) -> int:
    program = b"" if file is None else b"/%s %d 0 R" % (file, builder.add_stream(b"program"))
    return builder.add(b"<< /Type /FontDescriptor %s >>" % program)


def _composite(builder: PdfBuilder, file: bytes | None, to_unicode: bytes = b"") -> bytes:
    descendant = builder.add(
        b"<< /Subtype /CIDFontType2 /BaseFont /Sub+Inner /FontDescriptor %d 0 R >>"
        % _descriptor(builder, file)
    )
    return b"<< /Subtype /Type0 /BaseFont /Sub+Outer /DescendantFonts [%d 0 R] %s >>" % (
        descendant,
        to_unicode,
    )


def test_each_kind_of_font_is_told(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    simple = b"<< /Subtype /%s /BaseFont /%s /FontDescriptor %d 0 R %s >>"
    to_unicode = b"/ToUnicode %d 0 R" % builder.add_stream(_MAP)
    glyphs = b"<< /A %d 0 R >>" % builder.add_stream(b"9 0 0 0 9 9 d1 0 0 9 9 re f")
    fonts: dict[str, bytes | int] = {
        "Plain": FONT,
        "Type1": simple % (b"Type1", b"Own#20Name", _descriptor(builder, b"FontFile"), b""),
        "Compact": simple % (b"Type1", b"C", _descriptor(builder, b"FontFile3"), to_unicode),
        "Bare": simple % (b"TrueType", b"Arial", _descriptor(builder, None), b""),
        "TrueType": simple % (b"TrueType", b"T", _descriptor(builder, b"FontFile2"), b""),
        "Inner": builder.add(_composite(builder, b"FontFile2", to_unicode)),
        "Apart": _composite(builder, None),
        "Drawn": b"<< /Subtype /Type3 /Name /Stamps /CharProcs %s /FontMatrix [1 0 0 1 0 0] "
        b"/FontBBox [0 0 9 9] /FirstChar 65 /LastChar 65 /Widths [9] "
        b"/Encoding << /Differences [65 /A] >> >>" % glyphs,
    }
    with opened(pypdf_sandbox, builder.build([page_of(builder, fonts=fonts)])) as document:
        assert document.page(1).fonts() == (
            Font("Helvetica", "Type1", embedded=False, maps_to_unicode=False),
            Font("Own Name", "Type1", embedded=True, maps_to_unicode=False),
            Font("C", "Type1", embedded=True, maps_to_unicode=True),
            Font("Arial", "TrueType", embedded=False, maps_to_unicode=False),
            Font("T", "TrueType", embedded=True, maps_to_unicode=False),
            Font("Sub+Outer", "Type0", embedded=True, maps_to_unicode=True),
            Font("Sub+Outer", "Type0", embedded=False, maps_to_unicode=False),
            Font("Stamps", "Type3", embedded=True, maps_to_unicode=False),
        )


def test_the_fonts_of_forms_are_told_each_once(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    shared = builder.add(FONT)
    deep = builder.add(FONT.replace(b"Helvetica", b"Courier"))
    inner = form(builder, b"", b"/Font << /F1 %d 0 R /F9 %d 0 R >>" % (shared, deep))
    outer = form(builder, b"", b"/XObject << /X %d 0 R >>" % inner)
    poor = form(builder, b"")
    page = page_of(builder, fonts={"F1": shared}, xobjects={"A": outer, "B": inner, "C": poor})
    with opened(pypdf_sandbox, builder.build([page])) as document:
        assert [font.name for font in document.page(1).fonts()] == ["Helvetica", "Courier"]


@pytest.mark.parametrize(
    "broken",
    [
        b"<< /Subtype /Type0 /BaseFont /Broken /DescendantFonts [] >>",
        b"<< /Subtype /Type0 /BaseFont /Broken /DescendantFonts 7 >>",
        b"<< /Subtype /Type0 /BaseFont /Broken /DescendantFonts [null] >>",
        b"<< /Subtype /Type1 /BaseFont /Broken /FontDescriptor (none) /ToUnicode null >>",
        b"<< /Subtype 1 /BaseFont /Broken /FontDescriptor 999 0 R >>",
    ],
)
def test_a_broken_font_does_not_cost_the_others(pypdf_sandbox: Sandbox, broken: bytes) -> None:
    builder = PdfBuilder()
    fonts: dict[str, bytes | int] = {"F0": broken, "F1": FONT, "F2": b"null", "F3": b"[]"}
    with opened(pypdf_sandbox, builder.build([page_of(builder, fonts=fonts)])) as document:
        found = document.page(1).fonts()
        assert [font.name for font in found] == ["Broken", "Helvetica"]
        assert not found[0].embedded
        assert not found[0].maps_to_unicode


def test_a_loop_of_forms_has_its_fonts_once(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    itself = len(builder._objects) + 1
    names = entries(X=itself)
    loop = form(builder, b"", b"/Font << /F1 %s >> /XObject << %s >>" % (FONT, names))
    assert loop == itself
    with opened(pypdf_sandbox, builder.build([page_of(builder, xobjects={"X": loop})])) as document:
        assert len(document.page(1).fonts()) == 2  # the page's, and the form's
