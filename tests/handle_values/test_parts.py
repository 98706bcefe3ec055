"""Outline, attached files, permissions, metadata and version of a document."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator

import pytest
from pypdf.constants import UserAccessPermissions

from pdfpool_django.documents import Document, OutlineItem, Permissions
from pdfpool_django.engines.pypdf_parts import MAX_OUTLINE, MAX_OUTLINE_DEPTH
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import PdfBuilder, encrypted_pdf, page_entries, simple_pdf, text_content
from tests.handle_values.opening import opened, page_of

# The outline

Tree = list[tuple[bytes, "Tree"]]
"""Entries of an item besides the links to others, and the items below it."""


def _add_items(builder: PdfBuilder, items: Tree) -> int | None:
    """Add items, the last first, as each names the next; return the number of the first."""
    following = None
    for about, below in reversed(items):
        first = _add_items(builder, below)
        links = b"" if following is None else b"/Next %d 0 R " % following
        links += b"" if first is None else b"/First %d 0 R " % first
        following = builder.add(b"<< %s %s >>" % (about, links))
    return following


def with_outline(items: Tree, pages: int = 3, catalog: bytes = b"") -> bytes:
    """Return a document with this outline; its pages are the objects from 1 on."""
    builder = PdfBuilder()
    # Pages come last; so numbers are known here only to those that look for them: see `page`.
    first = _add_items(builder, items)
    root = b"<< >>" if first is None else b"<< /First %d 0 R >>" % first
    builder.catalog_entries = b"/Outlines %s %s" % (root, catalog)
    return _resolved(builder, pages)


def page(number: int) -> bytes:
    """Return a reference to a page, which `_resolved` writes out."""
    return b"@%04d" % number


def _resolved(builder: PdfBuilder, pages: int) -> bytes:
    contents = [page_entries(builder, text_content(f"page {number}")) for number in range(pages)]
    first = len(builder._objects) + 1
    for place, body in enumerate(builder._objects):
        for number in range(1, pages + 1):
            body = body.replace(page(number), b"%d 0 R" % (first + number - 1))
        builder._objects[place] = body
    catalog = builder.catalog_entries
    for number in range(1, pages + 1):
        catalog = catalog.replace(page(number), b"%d 0 R" % (first + number - 1))
    builder.catalog_entries = catalog
    return builder.build(contents)


def titled(title: bytes, destination: bytes = b"") -> bytes:
    return b"/Title (%s) %s" % (title, destination)


def to(number: int) -> bytes:
    return b"/Dest [%s /Fit]" % page(number)


def outline_of(sandbox: Sandbox, data: bytes) -> tuple[OutlineItem, ...]:
    with opened(sandbox, data) as document:
        return document.outline()


def test_the_outline_is_told_in_the_order_shown(pypdf_sandbox: Sandbox) -> None:
    items: Tree = [
        (titled(b"One", to(1)), [(titled(b"One.One", to(2)), []), (titled(b"One.Two"), [])]),
        (titled(b"Two", to(3)), []),
    ]
    assert outline_of(pypdf_sandbox, with_outline(items)) == (
        OutlineItem("One", 1, 0),
        OutlineItem("One.One", 2, 1),
        OutlineItem("One.Two", None, 1),
        OutlineItem("Two", 3, 0),
    )


@pytest.mark.parametrize(
    ("destination", "leads_to"),
    [
        (to(2), 2),
        (b"/Dest << /D [%s /Fit] >>" % page(2), 2),
        (b"/A << /S /GoTo /D [%s /XYZ 0 0 1] >>" % page(2), 2),
        (b"/Dest (named)", 3),
        (b"/Dest (deep)", 1),
        (b"/Dest /old", 2),
        (b"/A << /S /GoTo /D (named) >>", 3),
        (b"/Dest [1 /Fit]", 2),
        (b"/Dest (no such name)", None),
        (b"/Dest [99 /Fit]", None),
        (b"/Dest [-1 /Fit]", None),
        (b"/Dest [null /Fit]", None),
        (b"/Dest []", None),
        (b"/Dest 7", None),
        (b"/Dest [999 0 R /Fit]", None),
        (b"/A << /S /URI /URI (https://example.org) >>", None),
        (b"/A << /S /GoToR /F (other.pdf) /D [0 /Fit] >>", None),
        (b"/A 7", None),
        (b"", None),
    ],
)
def test_where_an_item_leads(
    pypdf_sandbox: Sandbox, destination: bytes, leads_to: int | None
) -> None:
    names = b"<< /Kids [<< /Names [(deep) [%s /Fit]] >>] /Names [(named) << /D [%s /Fit] >>] >>"
    catalog = b"/Dests << /old [%s /Fit] >> /Names << /Dests %s >>" % (
        page(2),
        names % (page(1), page(3)),
    )
    data = with_outline([(titled(b"x", destination), [])], catalog=catalog)
    assert outline_of(pypdf_sandbox, data) == (OutlineItem("x", leads_to, 0),)


def test_titles_are_text_on_one_line(pypdf_sandbox: Sandbox) -> None:
    utf16 = "\ufeffÄ\n\x07 \U0001f600".encode("utf-16-be").hex().encode()
    items: Tree = [(b"/Title <%s>" % utf16, []), (b"", []), (b"/Title 7", [])]
    titles = [item.title for item in outline_of(pypdf_sandbox, with_outline(items))]
    assert titles == ["Ä \U0001f600", "", ""]


@pytest.mark.parametrize(
    "catalog", [b"", b"/Outlines null", b"/Outlines 7", b"/Outlines << /First 7 >>"]
)
def test_a_document_may_have_no_outline(pypdf_sandbox: Sandbox, catalog: bytes) -> None:
    assert outline_of(pypdf_sandbox, simple_pdf("text", catalog=catalog)) == ()


class Logged(logging.Handler):
    """What is logged of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    handler = Logged()
    logger = logging.getLogger("pdfpool_django.documents")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_outline_that_loops_is_told_once_with_a_warning(
    pypdf_sandbox: Sandbox, logged: list[str]
) -> None:
    builder = PdfBuilder()
    builder.add(b"<< /Title (a) /First 2 0 R /Next 3 0 R >>")
    builder.add(b"<< /Title (b) /First 1 0 R /Next 2 0 R >>")
    builder.add(b"<< /Title (c) /Next 1 0 R >>")
    builder.catalog_entries = b"/Outlines << /First 1 0 R >>"
    found = outline_of(pypdf_sandbox, builder.build([page_of(builder)]))
    assert [(item.title, item.level) for item in found] == [("a", 0), ("b", 1), ("c", 0)]
    assert [line for line in logged if "leads back into itself" in line]


def test_an_outline_of_too_many_items_is_cut_with_a_warning(
    pypdf_sandbox: Sandbox, logged: list[str]
) -> None:
    items: Tree = [(titled(b"%d" % number), []) for number in range(MAX_OUTLINE + 5)]
    found = outline_of(pypdf_sandbox, with_outline(items, pages=1))
    assert len(found) == MAX_OUTLINE
    assert found[-1].title == str(MAX_OUTLINE - 1)
    (line,) = logged
    assert line.startswith("a test's: The outline has more than 10000 items")


def test_an_outline_of_as_many_items_as_allowed_has_no_warning(
    pypdf_sandbox: Sandbox, logged: list[str]
) -> None:
    items: Tree = [(titled(b"x"), [])] * MAX_OUTLINE
    assert len(outline_of(pypdf_sandbox, with_outline(items, pages=1))) == MAX_OUTLINE
    assert not logged


def test_an_outline_that_is_too_deep_is_cut_with_a_warning(
    pypdf_sandbox: Sandbox, logged: list[str]
) -> None:
    items: Tree = []
    for level in reversed(range(MAX_OUTLINE_DEPTH + 20)):
        items = [(titled(b"%d" % level), items)]
    items.append((titled(b"after"), []))
    found = outline_of(pypdf_sandbox, with_outline(items))
    assert [item.level for item in found[:-1]] == list(range(MAX_OUTLINE_DEPTH))
    assert found[-1] == OutlineItem("after", None, 0)
    (line,) = logged
    assert "nested more than 100 deep" in line


# Attached files


def file(builder: PdfBuilder, data: bytes, name: bytes | None, entries: bytes = b"") -> int:
    """Add a file; return the number of its specification."""
    stream = builder.add_stream(data, b"/Type /EmbeddedFile " + entries)
    named = b"" if name is None else b"/UF " + name
    return builder.add(b"<< /Type /Filespec %s /EF << /F %d 0 R >> >>" % (named, stream))


def test_attached_files_are_given_whole(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    packed = file(builder, zlib.compress(b"\0\xffdata"), b"(a.bin)", b"/Filter /FlateDecode")
    plain = file(builder, b"text", None)
    deep = file(builder, b"", b"(empty)")
    kid = b"<< /Kids [<< /Names [(d) %d 0 R] >>] >>" % deep
    builder.catalog_entries = (
        b"/Names << /EmbeddedFiles << /Kids [%s] /Names [(p) %d 0 R (q.txt) %d 0 R] >> >>"
        % (kid, packed, plain)
    )
    with opened(pypdf_sandbox, builder.build([page_of(builder)])) as document:
        found = document.attachments()
    assert [(each.name, each.data, each.error) for each in found] == [
        ("a.bin", b"\0\xffdata", None),
        ("q.txt", b"text", None),
        ("empty", b"", None),
    ]


def test_files_pinned_to_a_page_are_attached_too_each_once(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    both, pinned = file(builder, b"both", b"(both)"), file(builder, b"pinned", b"(pinned)")
    pin = b"<< /Subtype /FileAttachment /FS %d 0 R >>"
    elsewhere = b"<< /Subtype /FileAttachment /FS << /F (elsewhere.txt) >> >>"
    about = b"/MediaBox [0 0 9 9] /Annots [7 %s %s %s %s]" % (
        b"<< /Subtype /Link >>",
        pin % both,
        pin % pinned,
        elsewhere,
    )
    builder.catalog_entries = b"/Names << /EmbeddedFiles << /Names [(b) %d 0 R] >> >>" % both
    with opened(pypdf_sandbox, builder.build([page_of(builder, about=about)])) as document:
        assert [each.data for each in document.attachments()] == [b"both", b"pinned"]


def test_names_are_the_documents_words_on_one_line(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    names = [
        (b"(../../etc/passwd)", "../../etc/passwd"),
        (b"(C:\\\\temp\\\\x.exe)", "C:\\temp\\x.exe"),
        (b"(a\\000b\\007c\\nd)", "abc d"),
        (b"<%s>" % "\ufeffÄ\u202e.txt".encode("utf-16-be").hex().encode(), "Ä\u202e.txt"),
        (b"()", "key"),
        (b"(%s)" % (b"x" * 2000), "x" * 500),
    ]
    pairs = b" ".join(b"(key) %d 0 R" % file(builder, b"1", name) for name, _ in names)
    builder.catalog_entries = b"/Names << /EmbeddedFiles << /Names [%s] >> >>" % pairs
    with opened(pypdf_sandbox, builder.build([page_of(builder)])) as document:
        assert [each.name for each in document.attachments()] == [name for _, name in names]


def test_a_broken_file_is_reported_and_the_others_follow(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    good = file(builder, b"good", b"(same)")
    broken = file(builder, b"no deflated data", b"(same)", b"/Filter /NoSuchFilter")
    empty = builder.add(b"<< /UF (no data) /EF << >> >>")
    nothing = builder.add(b"<< /UF (nothing) >>")
    wrong = builder.add(b"<< /UF (wrong) /EF << /F 7 >> >>")
    pairs = b"(a) %d 0 R (b) %d 0 R (c) %d 0 R (d) %d 0 R (e) %d 0 R (f) 7 (g) null (h) %d 0 R"
    last = file(builder, b"last", b"(same)")
    builder.catalog_entries = b"/Names << /EmbeddedFiles << /Names [%s] >> >>" % (
        pairs % (good, broken, empty, nothing, wrong, last)
    )
    with opened(pypdf_sandbox, builder.build([page_of(builder)])) as document:
        found = document.attachments()
    names = ["same", "same", "no data", "nothing", "wrong", "same"]
    assert [each.name for each in found] == names
    assert [each.data for each in found] == [b"good", b"", b"", b"", b"", b"last"]
    codes = [each.error and each.error["code"] for each in found]
    assert codes[0] is codes[-1] is None
    assert set(codes[1:-1]) <= {"invalid_pdf", "unsupported"}


@pytest.mark.parametrize(
    "names", [b"", b"7", b"<< /EmbeddedFiles 7 >>", b"<< /EmbeddedFiles << /Kids 1 /Names 2 >> >>"]
)
def test_a_document_may_carry_no_file(pypdf_sandbox: Sandbox, names: bytes) -> None:
    catalog = b"/Names " + names if names else b""
    with opened(pypdf_sandbox, simple_pdf("text", catalog=catalog)) as document:
        assert document.attachments() == ()


def test_a_tree_of_files_that_loops_gives_each_once(pypdf_sandbox: Sandbox) -> None:
    builder = PdfBuilder()
    number = file(builder, b"once", b"(once)")
    itself = len(builder._objects) + 1
    builder.add(b"<< /Kids [%d 0 R] /Names [(a) %d 0 R] >>" % (itself, number))
    builder.catalog_entries = b"/Names << /EmbeddedFiles %d 0 R >>" % itself
    with opened(pypdf_sandbox, builder.build([page_of(builder)])) as document:
        assert [each.data for each in document.attachments()] == [b"once"]


# Permissions


def test_an_unencrypted_document_permits_everything(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, simple_pdf("text")) as document:
        assert document.permissions() == Permissions()
        assert not document.encrypted


_FLAGS = {
    "print": UserAccessPermissions.PRINT,
    "modify": UserAccessPermissions.MODIFY,
    "copy": UserAccessPermissions.EXTRACT,
    "annotate": UserAccessPermissions.ADD_OR_MODIFY,
    "fill_forms": UserAccessPermissions.FILL_FORM_FIELDS,
    "extract_for_accessibility": UserAccessPermissions.EXTRACT_TEXT_AND_GRAPHICS,
    "assemble": UserAccessPermissions.ASSEMBLE_DOC,
    "print_in_high_quality": UserAccessPermissions.PRINT_TO_REPRESENTATION,
}


@pytest.mark.parametrize("forbidden", sorted(_FLAGS))
def test_what_an_encrypted_document_forbids(pypdf_sandbox: Sandbox, forbidden: str) -> None:
    granted = UserAccessPermissions.all() & ~_FLAGS[forbidden]
    data = encrypted_pdf(
        simple_pdf("text"), user="", owner="o", algorithm="AES-256", permissions=granted
    )
    with opened(pypdf_sandbox, data) as document:
        assert document.permissions() == Permissions(**{forbidden: False})
        assert document.encrypted


# Metadata and version


def test_metadata_are_plain_values_and_a_copy_each_time(pypdf_sandbox: Sandbox) -> None:
    info = {"Title": "A title", "Author": "Ann", "CreationDate": "D:20240203040506Z"}
    with opened(pypdf_sandbox, simple_pdf("text", info=info)) as document:
        metadata = document.metadata()
        wanted = {"title": "A title", "author": "Ann", "created": "2024-02-03T04:05:06+00:00"}
        assert metadata == wanted
        metadata.clear()
        assert document.metadata() == wanted


def version_of(document: Document) -> str | None:
    assert document.page(1).text() is not None
    return document.version


@pytest.mark.parametrize(
    ("header", "catalog", "version"),
    [
        (b"%PDF-1.4\n", b"", "1.4"),
        (b"%PDF-1.4\n", b"/Version /1.7", "1.7"),
        (b"%PDF-1.7\n", b"/Version /1.4", "1.7"),
        (b"%PDF-1.4\n", b"/Version /2.0", "2.0"),
        (b"%PDF-1.4\n", b"/Version 7", "1.4"),
        (b"%PDF-1.4\n", b"/Version /tomorrow", "1.4"),
        (b"junk\n%PDF-1.5\n", b"", "1.5"),
        (b"\n", b"", None),
        (b"%PDF.1.4\n", b"", None),
    ],
)
def test_the_version_is_the_later_of_the_two(
    pypdf_sandbox: Sandbox, header: bytes, catalog: bytes, version: str | None
) -> None:
    builder = PdfBuilder(header)
    builder.catalog_entries = catalog
    data = builder.build([page_of(builder, text_content("text"))])
    with opened(pypdf_sandbox, data) as document:
        assert version_of(document) == version
    assert document.version == version
