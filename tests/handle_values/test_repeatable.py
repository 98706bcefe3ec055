"""Reads are repeatable: first, repeated, alone or at the same time as others, the answer is one."""

from __future__ import annotations

import pkgutil
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdfpool_django import engines
from pdfpool_django.documents import Document
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.sandbox.host import Sandbox
from scripts.hostile_builder import composite, in_font, mapped
from scripts.pdf_builder import FONT, PdfBuilder, add_picture
from tests.handle_values.opening import PYPDF_MEMORY, form, opened, page_of
from tests.sandbox.helpers import LIMIT, sandbox_of

_ENGINE = "pdfpool_django.engines."

ENGINES = [
    _ENGINE + each.name
    for each in pkgutil.iter_modules(engines.__path__)
    if "\nengine = " in Path(engines.__path__[0], f"{each.name}.py").read_text("utf-8")
]


def test_every_engine_is_tried() -> None:
    assert _ENGINE + "pypdf" in ENGINES
    assert all(find_spec(name) for name in ENGINES)


# Competing replacement text

COMPETING = (
    b"BT /F1 12 Tf 72 700 Td "
    b"/Span << /ActualText (outer) /MCID 0 >> BDC (#1) Tj "
    b"/Span << /ActualText (inner) >> BDC (#2) Tj EMC EMC 0 -20 Td "
    b"/P << /MCID 1 >> BDC (#3) Tj EMC 0 -20 Td "
    b"/P << /MCID 1 >> BDC (#4) Tj EMC 0 -20 Td "
    b"/Span /Listed BDC (#5) Tj EMC 0 -20 Td (plain) Tj ET"
)
LISTED = b"/Properties << /Listed << /ActualText (listed) /MCID 0 >> >>"


def add_structure(builder: PdfBuilder) -> None:
    """Add elements that compete with what content says, and with those around them."""
    root = builder.add(b"<< /S /Document /ActualText (around) >>")
    direct = builder.add(b"<< /S /Span /ActualText (element) >>")
    nested = builder.add(b"<< /S /Span /ActualText (within) /P %d 0 R >>" % root)
    lists = b"0 [%d 0 R %d 0 R] 0 [%d 0 R %d 0 R]" % (direct, nested, direct, nested)
    builder.catalog_entries += b"/StructTreeRoot << /ParentTree << /Nums [%s] >> >>" % lists


def competing_pdf(pages: int = 1) -> bytes:
    builder = PdfBuilder()
    add_structure(builder)
    about = b"/MediaBox [0 0 595 842] /StructParents 0"
    return builder.build(
        [page_of(builder, COMPETING, about=about, more=LISTED) for _ in range(pages)]
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_competing_texts_have_one_answer_in_a_thousand_reads(engine: str) -> None:
    with (
        sandbox_of(engine, memory=PYPDF_MEMORY, cpu=3600.0) as sandbox,
        opened(sandbox, competing_pdf(pages=2)) as document,
        ThreadPoolExecutor(8) as threads,
    ):

        def read(number: int) -> tuple[bool, str]:
            replaced = number % 5 > 0
            page = document.page(number % 2 + 1)
            return replaced, page.text(actual_text=replaced).strip()

        answers = Counter(threads.map(read, range(1000), timeout=LIMIT))
        whole = {document.text().strip() for _ in range(3)}
    replaced = "outer\naround\n\nlisted\nplain"
    assert {text for is_replaced, text in answers if not is_replaced} == {"#1#2\n#3\n#4\n#5\nplain"}
    (given_text,) = {text for is_replaced, text in answers if is_replaced}
    assert given_text.split() == replaced.split()
    assert sum(answers.values()) == 1000
    assert whole == {f"{given_text}\f{given_text}"}


# Random orders of all reads

INLINE = b"q BI /W 2 /H 1 /BPC 8 /CS /G ID ab EI Q\n"
SHOW = b"BT /%s 12 Tf 72 %d Td (%s) Tj ET\n"


def featured_pdf() -> bytes:
    """Return pages that share fonts, forms and structure, and differ in what those mean."""
    builder = PdfBuilder()
    add_structure(builder)
    swapped = FONT.replace(b"/WinAnsiEncoding", b"<< /Differences [65 /B /A] >>")
    kanji = composite(builder, b"/Encoding /90ms-RKSJ-H")
    picture = add_picture(
        builder,
        1,
        1,
        zlib.compress(b"\x07"),
        b"/ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode",
    )
    broken = add_picture(builder, 1, 1, b"x", b"/ColorSpace /DeviceGray /Filter /DCTDecode")
    # Without resources: its font and its picture are those of whoever uses it.
    poor = form(builder, SHOW % (b"F1", 500, b"AB") + INLINE)
    own = form(
        builder,
        SHOW % (b"F1", 480, b"own") + b"/Poor Do /Pic Do",
        b"/Font << /F1 %s >> /XObject << /Poor %d 0 R /Pic %d 0 R >>" % (FONT, poor, picture),
    )
    lost = builder.add_stream(b"no deflated data", b"/Subtype /Form /Filter /NoSuchFilter")
    shared = builder.add(b"<< /Poor %d 0 R /Own %d 0 R /Pic %d 0 R >>" % (poor, own, picture))
    about = b"/MediaBox [0 0 595 842] /StructParents 0 /Rotate %d"
    pages = []
    for number, font in enumerate((FONT, swapped), 1):
        content = COMPETING + SHOW % (b"F1", 520, b"A") + b"/Poor Do /Own Do /Pic Do\n" + INLINE
        resources = b"/Font << /F1 %s /F2 %s >> /XObject %d 0 R %s" % (
            font,
            kanji,
            shared,
            LISTED,
        )
        stream = builder.add_stream(content + b"BT /F2 9 Tf 72 400 Td <93FA967B> Tj ET")
        page = b"%s /Contents %d 0 R /Resources << %s >>"
        pages.append(page % (about % (90 * number), stream, resources))
    field = b"<< /Subtype /Widget /Rect [0 0 9 9] /FT /Tx /V (a value) >>"
    pages.append(
        page_of(
            builder,
            SHOW % (b"F1", 700, b"before") + b"/Poor Do /Lost Do /Broken Do (no end",
            about=about % 0 + b" /Annots [%s]" % field,
            xobjects={"Poor": poor, "Lost": lost, "Broken": broken},
        )
    )
    file = builder.add_stream(b"attached")
    builder.catalog_entries += (
        b"/Names << /EmbeddedFiles << /Names [(a) << /UF (a) /EF << /F %d 0 R >> >>] >> >> "
        b"/Outlines << /First << /Title (t) /Dest [1 /Fit] >> >> "
        b"/PageLabels << /Nums [0 << /S /r >>] >>" % file
    )
    return builder.build(pages)


FILES = {
    "features": featured_pdf,
    "competing text": lambda: competing_pdf(3),
    "own map": lambda: mapped(b"<0041> <0058>", b"<0041>"),
    "in a composite font": lambda: in_font(
        lambda builder: composite(builder, b"/Encoding /UniGB-UCS2-H"), b"<4E2D6587>"
    ),
}

Read = Callable[[Document], Any]

_OF_A_PAGE: dict[str, Callable[[Any], Any]] = {
    "text": lambda page: page.text(),
    "shown": lambda page: page.text(actual_text=False),
    "read": lambda page: replace(page.read(errors="keep"), warnings=()),
    "images": lambda page: page.images(),
    "fonts": lambda page: page.fonts(),
    "is like": lambda page: (page.label, page.size, page.rotation),
}
_OF_ALL: dict[str, Read] = {
    "text of all": lambda document: document.text("1"),
    "outline": lambda document: document.outline(),
    "attachments": lambda document: document.attachments(),
    "permissions": lambda document: document.permissions(),
    "metadata": lambda document: document.metadata(),
    "search": lambda document: (found := document.search("a"), found.unread),
    "cleared": lambda document: document.clear_search_index(),
}


def reads_of(pages: int) -> dict[str, Read]:
    def of_page(number: int, read: Callable[[Any], Any]) -> Read:
        return lambda document: read(document.page(number))

    each = {
        f"{name} {number}": of_page(number, read)
        for name, read in _OF_A_PAGE.items()
        for number in range(1, pages + 1)
    }
    return each | _OF_ALL


def answer(document: Document, read: Read) -> Any:
    try:
        return read(document)
    except PdfPoolError as error:
        return type(error), str(error)


class Known:
    """A document, and the answer to each read of it, given alone by a handle of its own."""

    def __init__(self, sandbox: Sandbox, data: bytes) -> None:
        self.sandbox = sandbox
        self.data = data
        with opened(sandbox, data) as document:
            self.reads = reads_of(document.page_count)
        self.answers = {name: self.alone(read) for name, read in self.reads.items()}

    def alone(self, read: Read) -> Any:
        with opened(self.sandbox, self.data, workers=1) as document:
            return answer(document, read)


@pytest.fixture(scope="module", params=ENGINES)
def engine_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with sandbox_of(request.param, images=True, memory=PYPDF_MEMORY, cpu=3600.0) as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=FILES)
def known(request: pytest.FixtureRequest, engine_sandbox: Sandbox) -> Known:
    return Known(engine_sandbox, FILES[request.param]())


def test_the_file_with_features_has_them(engine_sandbox: Sandbox) -> None:
    answers = Known(engine_sandbox, featured_pdf()).answers
    assert answers["text 1"].count("AB") == 2  # what the form shows is in the fonts around it
    assert answers["text 2"].count("AB") == answers["text 2"].count("BA") == 1
    assert "日本" in answers["text 2"]
    assert answers["read 3"].error is not None
    assert "before" in answers["read 3"].text
    assert "a value" in answers["read 3"].text
    assert len(answers["images 1"]) == 3
    # The last stands for those in the form that cannot be read.
    assert [image.error is None for image in answers["images 3"]] == [False, True, False]
    assert len(answers["fonts 1"]) == 3
    assert answers["search"][1] == (3,)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chosen=st.data())
def test_the_order_of_reads_changes_no_answer(known: Known, chosen: st.DataObject) -> None:
    names = chosen.draw(st.lists(st.sampled_from(sorted(known.reads)), min_size=2, max_size=15))
    with opened(known.sandbox, known.data, workers=1) as document:
        for name in names:
            assert answer(document, known.reads[name]) == known.answers[name], name


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chosen=st.data())
def test_reads_at_the_same_time_change_no_answer(known: Known, chosen: st.DataObject) -> None:
    lists = st.lists(st.sampled_from(sorted(known.reads)), min_size=1, max_size=8)
    parts = chosen.draw(st.lists(lists, min_size=2, max_size=4))
    together = threading.Barrier(len(parts), timeout=LIMIT)

    def read_all(names: list[str]) -> list[tuple[str, Any]]:
        together.wait()
        return [(name, answer(document, known.reads[name])) for name in names]

    with (
        opened(known.sandbox, known.data) as document,
        ThreadPoolExecutor(len(parts)) as threads,
    ):
        for answers in threads.map(read_all, parts, timeout=LIMIT):
            for name, found in answers:
                assert found == known.answers[name], name


def test_the_whole_in_two_orders_is_the_same(known: Known) -> None:
    for names in (list(known.reads), list(reversed(known.reads))):
        with opened(known.sandbox, known.data, workers=1) as document:
            for name in names * 2:
                assert answer(document, known.reads[name]) == known.answers[name], name
