"""The adapter of pypdf: what it tells of documents, sound or not."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Iterator
from typing import Any

import pypdf
import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.errors import LimitReachedError
from pypdf.generic import DictionaryObject, NameObject

from pdfpool_django import errors
from pdfpool_django.engines import base
from pdfpool_django.engines.pypdf import MAX_METADATA, engine
from scripts.pdf_builder import (
    FONT,
    PdfBuilder,
    encrypted_pdf,
    page_entries,
    simple_pdf,
    text_content,
)

ALGORITHMS = ["RC4-40", "RC4-128", "AES-128", "AES-256-R5", "AES-256"]
QUICK = 2.0


@pytest.fixture(autouse=True)
def configuration() -> Iterator[None]:
    """Reading sets limits of the whole library."""
    with pypdf.apply_configuration(pypdf.get_configuration()):
        yield


class Opened:
    """A session with one document, in this process."""

    def __init__(self, data: bytes, password: str | None = None, max_pages: int = 100) -> None:
        self._session = engine.session()
        arguments = {"password": password, "max_pages": max_pages}
        ((self.part, _),) = self._session.handle("open", arguments, io.BytesIO(data))

    @property
    def metadata(self) -> dict[str, Any]:
        return self.part["metadata"]

    def page(self, number: int = 1) -> dict[str, Any]:
        ((part, body),) = self._session.handle("pages", {"ranges": [[number, number]]}, None)
        return part | {"text": body.decode("utf-8", "surrogatepass").strip()}


def info(entries: bytes) -> bytes:
    """Return a file with these entries in its information dictionary."""
    builder = PdfBuilder()
    builder.info = builder.add(b"<< %s >>" % entries)
    return builder.build([page_entries(builder, text_content("text"))])


def with_xobjects(content: bytes, **streams: tuple[bytes, bytes]) -> bytes:
    """Return a page that has named XObjects, each given as data and entries."""
    builder = PdfBuilder()
    numbers = {name: builder.add_stream(*stream) for name, stream in streams.items()}
    xobjects = b" ".join(b"/%s %d 0 R" % (name.encode(), to) for name, to in numbers.items())
    page = b"/MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /Font << /F1 %s >>" % (
        builder.add_stream(content),
        FONT,
    )
    return builder.build([page + b" /XObject << %s >> >>" % xobjects])


FORM = (
    b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F1 %s >> >>" % FONT
)
IMAGE = (
    b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8"
)
BROKEN_FORM = (b"not deflated", FORM + b" /Filter /NoSuchFilter")


def codes(warnings: list[dict[str, str]]) -> list[str]:
    return [warning["code"] for warning in warnings]


# Pages


def test_text_and_labels_of_each_page() -> None:
    labels = b"/PageLabels << /Nums [0 << /S /r >> 2 << /S /D /P (A-) /St 7 >>] >>"
    opened = Opened(simple_pdf("one", "two", "three", catalog=labels))
    assert opened.part["page_count"] == 3
    pages = [opened.page(number) for number in (1, 2, 3)]
    assert [page["label"] for page in pages] == ["i", "ii", "A-7"]
    assert [page["text"] for page in pages] == ["one", "two", "three"]
    assert all(page["error"] is None and page["warnings"] == [] for page in pages)


def test_pages_without_labels_are_numbered() -> None:
    opened = Opened(simple_pdf("one", "two"))
    assert [opened.page(number)["label"] for number in (1, 2)] == ["1", "2"]


@pytest.mark.parametrize(
    "labels", [b"/PageLabels 7", b"/PageLabels << /Nums [(a) (b)] >>", b"/PageLabels << /Nums 3 >>"]
)
def test_broken_labels_cost_no_page(labels: bytes) -> None:
    page = Opened(simple_pdf("one", catalog=labels)).page()
    assert (page["label"], page["text"], page["error"]) == ("1", "one", None)


def test_a_long_label_is_cut() -> None:
    labels = b"/PageLabels << /Nums [0 << /P (%s) >>] >>" % (b"x" * 500)
    assert len(Opened(simple_pdf("one", catalog=labels)).page()["label"]) <= 100


def test_a_page_that_does_not_exist_is_an_error_of_that_page() -> None:
    page = Opened(simple_pdf("one")).page(2)
    assert page["error"]["code"] == "invalid_pdf"
    assert page["label"] == "2"


def test_a_page_with_pictures_and_no_text_is_said_to_be_a_scan() -> None:
    page = Opened(with_xobjects(b"/X Do", X=(b"\x00", IMAGE))).page()
    assert page["text"] == ""
    assert codes(page["warnings"]) == ["no_text_layer"]
    assert page["error"] is None


def test_a_picture_within_a_form_counts() -> None:
    builder = PdfBuilder()
    image = builder.add_stream(b"\x00", IMAGE)
    entries = (
        b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /I %d 0 R >> >>"
    )
    form = builder.add_stream(b"/I Do", entries % image)
    content = builder.add_stream(b"/F Do")
    page = b"/MediaBox [0 0 9 9] /Contents %d 0 R /Resources << /XObject << /F %d 0 R >> >>"
    data = builder.build([page % (content, form)])
    assert codes(Opened(data).page()["warnings"]) == ["no_text_layer"]


def test_an_inline_picture_counts() -> None:
    data = with_xobjects(b"q BI /W 1 /H 1 /BPC 8 /CS /G ID \x00 EI Q")
    assert codes(Opened(data).page()["warnings"]) == ["no_text_layer"]


@pytest.mark.parametrize("content", [b"", text_content("words") + b" /X Do"], ids=["blank", "text"])
def test_a_page_that_is_no_scan_has_no_such_warning(content: bytes) -> None:
    streams = {"X": (b"\x00", IMAGE)} if content else {}
    assert Opened(with_xobjects(content, **streams)).page()["warnings"] == []


def test_what_pypdf_logs_comes_with_the_page_that_caused_it() -> None:
    builder = PdfBuilder()
    odd = FONT.replace(b"/WinAnsiEncoding", b"/NoSuchEncoding")
    pages = [
        page_entries(builder, text_content("one")),
        page_entries(builder, text_content("two"), odd),
    ]
    opened = Opened(builder.build(pages))
    assert opened.page(1)["warnings"] == []
    (warning,) = opened.page(2)["warnings"]
    assert warning["code"] == "engine"
    assert "NoSuchEncoding" in warning["detail"]
    assert opened.part["warnings"] == []


def test_what_pypdf_logs_while_it_opens_comes_with_the_document() -> None:
    data = simple_pdf("one").replace(b"startxref\n", b"startxref\n9")
    opened = Opened(data)
    assert set(codes(opened.part["warnings"])) == {"engine"}
    assert opened.page()["text"] == "one"


def test_captured_warnings_are_bounded_and_not_repeated() -> None:
    logger = logging.getLogger("pypdf.test")
    with base._Captured(engine) as captured:
        for number in range(1000):
            logger.warning("again")
            logger.warning("number %d %s", number, "x" * 1000)
    warnings = captured.warnings()
    assert len(warnings) == base.MAX_WARNINGS + 1
    assert [warning["detail"] for warning in warnings].count("again") == 1
    assert max(len(warning["detail"]) for warning in warnings) == base.MAX_DETAIL


def test_a_broken_log_call_of_the_library_costs_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a child; else the handlers of the tests' own runner see it.
    monkeypatch.setattr(logging.getLogger("pypdf"), "propagate", False)
    with base._Captured(engine) as captured:
        logging.getLogger("pypdf.test").warning("%d", "no number")
    assert len(captured.warnings()) == 1


def test_memory_that_runs_out_is_never_a_page_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(simple_pdf("one"))

    def fail(*arguments: Any) -> str:
        raise ValueError("wrapped") from MemoryError()

    monkeypatch.setattr(pypdf.PageObject, "extract_text", fail)
    with pytest.raises(ValueError, match="wrapped"):
        opened.page()


# Text that pypdf leaves out


def test_a_form_is_part_of_the_page() -> None:
    page = Opened(with_xobjects(b"/X Do", X=(text_content("of a form"), FORM))).page()
    assert (page["text"], page["error"]) == ("of a form", None)


def test_a_form_that_pypdf_skips_is_the_pages_error() -> None:
    content = text_content("kept") + b" /X Do"
    page = Opened(with_xobjects(content, X=BROKEN_FORM)).page()
    assert page["text"] == "kept"
    assert page["error"]["code"] in ("invalid_pdf", "unsupported")


def test_a_form_larger_than_pypdf_takes_is_the_pages_error() -> None:
    pypdf.overwrite_configuration(zlib_maximum_output_length=1000)
    writer = PdfWriter(
        clone_from=PdfReader(
            io.BytesIO(
                with_xobjects(text_content("kept") + b" /X Do", X=(text_content("x" * 5000), FORM))
            )
        )
    )
    xobjects = writer.pages[0]["/Resources"]["/XObject"]
    xobjects[NameObject("/X")] = writer._add_object(xobjects["/X"].flate_encode())
    out = io.BytesIO()
    writer.write(out)
    page = Opened(out.getvalue()).page()
    assert page["text"] == "kept"
    assert page["error"]["code"] == "memory_exceeded"


def test_more_forms_than_pypdf_follows_are_the_pages_error() -> None:
    pypdf.overwrite_configuration(xform_maximum_invocations_per_extraction=3)
    page = Opened(with_xobjects(b"/X Do " * 5, X=(text_content("form"), FORM))).page()
    assert page["text"].count("form") == 3
    assert page["error"]["code"] == "memory_exceeded"


def test_an_xobject_that_the_file_does_not_have_loses_nothing() -> None:
    content = text_content("all there is") + b" /Missing Do"
    page = Opened(with_xobjects(content, X=(b"\x00", IMAGE))).page()
    assert (page["text"], page["error"]) == ("all there is", None)


def record(message: str, **values: Any) -> logging.LogRecord:
    return logging.LogRecord("pypdf", logging.WARNING, "", 0, message, (values,), None)


LOST = "Impossible to decode XFormObject %(operand)s: %(exception)s"


@pytest.mark.parametrize(
    ("exception", "code"),
    [
        (ValueError("broken"), "invalid_pdf"),
        (RecursionError("too deep"), "invalid_pdf"),
        (LimitReachedError("too long"), "memory_exceeded"),
        ("no exception", "memory_exceeded"),
    ],
)
def test_what_a_lost_form_means(exception: object, code: str) -> None:
    loss = engine.loss(record(LOST, operand="/X", exception=exception))
    assert loss is not None
    assert loss.code == code


def test_a_form_lost_for_want_of_memory_is_no_page_error() -> None:
    with pytest.raises(MemoryError):
        engine.loss(record(LOST, operand="/X", exception=MemoryError()))


def test_other_log_records_mean_no_loss() -> None:
    assert engine.loss(record("Xref table not zero-indexed.")) is None


# Metadata


def test_metadata_are_plain_values() -> None:
    data = info(
        b"/Title (A title) /Author (An author) /Subject (S) /Keywords (k, l) /Creator (C)"
        b" /Producer (P) /CreationDate (D:20250102030405+01'00') /ModDate (D:20250102)"
    )
    assert Opened(data).metadata == {
        "title": "A title",
        "author": "An author",
        "subject": "S",
        "keywords": "k, l",
        "creator": "C",
        "producer": "P",
        "created": "2025-01-02T03:04:05+01:00",
        "modified": "2025-01-02T00:00:00",
    }
    assert all(type(value) is str for value in Opened(data).metadata.values())


def test_a_file_without_metadata_has_none() -> None:
    assert Opened(simple_pdf("one")).metadata == {}


@pytest.mark.parametrize(
    "date", [b"(yesterday)", b"()", b"7", b"/Name", b"(D:99999999999999)", b"[1 2]"]
)
def test_a_date_that_is_none_is_none(date: bytes) -> None:
    opened = Opened(info(b"/Title (T) /CreationDate %s" % date))
    assert opened.metadata == {"title": "T", "created": None}


def test_metadata_of_another_type_are_left_out() -> None:
    assert Opened(info(b"/Title 7 /Author [(a)] /Subject << >> /Producer (P)")).metadata == {
        "producer": "P"
    }


def test_long_metadata_are_cut() -> None:
    data = info(b"/Title (%s)" % (b"x" * 3 * MAX_METADATA))
    assert Opened(data).metadata == {"title": "x" * MAX_METADATA}


def test_metadata_that_cannot_be_read_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(reader: PdfReader) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(PdfReader, "metadata", property(fail))
    opened = Opened(simple_pdf("one"))
    assert opened.metadata == {}
    assert codes(opened.part["warnings"]) == ["metadata"]
    assert opened.page()["text"] == "one"


# Locked files


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_file_with_an_owners_password_only_opens_by_itself(algorithm: str) -> None:
    locked = encrypted_pdf(simple_pdf("secret"), user="", owner="owner", algorithm=algorithm)
    assert b"secret" not in locked
    assert Opened(locked).page()["text"] == "secret"
    assert Opened(locked, "whatever").page()["text"] == "secret"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_file_with_a_users_password_opens_with_either(algorithm: str) -> None:
    locked = encrypted_pdf(simple_pdf("secret"), user="user", owner="owner", algorithm=algorithm)
    for none in (None, ""):
        with pytest.raises(errors.PasswordRequired):
            Opened(locked, none)
    with pytest.raises(errors.WrongPassword):
        Opened(locked, "wrong")
    assert Opened(locked, "user").page()["text"] == "secret"
    assert Opened(locked, "owner").page()["text"] == "secret"


def test_a_password_of_other_letters() -> None:
    locked = encrypted_pdf(simple_pdf("secret"), user="Grüße", owner="o", algorithm="AES-256")
    assert Opened(locked, "Grüße").page()["text"] == "secret"


def changed(data: bytes, change: Any) -> bytes:
    """Return the file after `change` has had its way with the writer."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_an_unknown_security_handler_is_unsupported() -> None:
    locked = encrypted_pdf(simple_pdf("secret"), user="", owner="o", algorithm="RC4-128")
    assert locked.count(b"/Filter /Standard") == 1
    with pytest.raises(errors.Unsupported):
        Opened(locked.replace(b"/Filter /Standard", b"/Filter /Acme.Lock"))


def test_an_unknown_version_of_encryption_is_an_error() -> None:
    locked = encrypted_pdf(simple_pdf("secret"), user="", owner="o", algorithm="RC4-128")
    with pytest.raises(errors.PdfPoolError) as caught:
        Opened(locked.replace(b"/V 2", b"/V 9"))
    assert caught.value.code in ("unsupported", "invalid_pdf")


# Too much


def test_a_file_may_have_exactly_as_many_pages_as_allowed() -> None:
    data = simple_pdf(*"abc")
    assert Opened(data, max_pages=3).part["page_count"] == 3
    with pytest.raises(errors.TooManyPages, match="3 pages, more than the 2 allowed"):
        Opened(data, max_pages=2)


def test_a_count_that_the_file_does_not_keep_is_not_believed() -> None:
    data = simple_pdf("one", "two").replace(b"/Count 2 ", b"/Count 16777216 ")
    started = time.monotonic()
    assert Opened(data).part["page_count"] == 2
    assert time.monotonic() - started < QUICK


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_page_tree_that_unfolds_without_end_is_too_many_pages(encrypted: bool) -> None:
    data = folded_tree(levels=24)
    if encrypted:
        data = lock_as_it_is(data)
    started = time.monotonic()
    with pytest.raises(errors.TooManyPages):
        Opened(data)
    assert time.monotonic() - started < QUICK


def folded_tree(levels: int) -> bytes:
    """Return a file whose every inner node has the one below twice: 2**levels pages."""
    builder = PdfBuilder()
    node = builder.add(b"<< /Type /Page /MediaBox [0 0 9 9] >>")
    for level in range(levels):
        kids = b"/Kids [%d 0 R %d 0 R]" % (node, node)
        node = builder.add(b"<< /Type /Pages %s /Count %d >>" % (kids, 2 ** (level + 1)))
    catalog = builder.add(b"<< /Type /Catalog /Pages %d 0 R >>" % node)
    return builder._write(catalog)


def lock_as_it_is(data: bytes) -> bytes:
    """Return the file with the encryption dictionary of another one; it has no strings to lock."""
    reader = PdfReader(
        io.BytesIO(encrypted_pdf(simple_pdf(), user="", owner="o", algorithm="RC4-128"))
    )
    encryption, ids = reader.trailer["/Encrypt"].get_object(), reader.trailer["/ID"]
    out = io.BytesIO()
    DictionaryObject(encryption).write_to_stream(out)
    entries = b"/Encrypt %s /ID [%s]" % (
        out.getvalue(),
        b" ".join(b"<%s>" % each.original_bytes.hex().encode() for each in ids),
    )
    return data.replace(b"trailer\n<<", b"trailer\n<< " + entries)


def test_a_page_tree_in_a_circle_ends() -> None:
    data = simple_pdf("one")
    kid = data.index(b"/Kids [") + len(b"/Kids [")
    end = data.index(b"]", kid)
    tree = data.rindex(b" 0 obj", 0, kid)
    number = data[data.rindex(b"\n", 0, tree) + 1 : tree]
    started = time.monotonic()
    with contextlib.suppress(errors.InvalidPdf, errors.TooManyPages):
        assert Opened(data[:kid] + number + b" 0 R" + data[end:]).part["page_count"] <= 1
    assert time.monotonic() - started < QUICK


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"not a PDF at all", b"%PDF-1.7\n" * 1000])
def test_what_is_no_document_is_an_error(data: bytes) -> None:
    with pytest.raises(errors.InvalidPdf):
        Opened(data)


def test_every_beginning_of_a_file_is_read_or_an_error() -> None:
    data = simple_pdf("one", "two")
    for size in range(0, len(data), 37):
        try:
            opened = Opened(data[:size])
        except errors.PdfPoolError:
            continue
        for number in range(1, opened.part["page_count"] + 1):
            opened.page(number)
