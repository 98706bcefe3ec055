"""What a handle gives: frozen, clean, to be pickled, and there after the handle's end."""

from __future__ import annotations

import dataclasses
import functools
import json
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pdfpool_django.documents import Document, Matches, Permissions, claims
from pdfpool_django.errors import Closed, Crashed
from pdfpool_django.sandbox.host import Sandbox
from pdfpool_django.sandbox.wire import Frame
from scripts.pdf_builder import FONT, PdfBuilder, add_picture
from tests.handle_values.opening import opened, page_of

DIRTY = b"\\000\\007\\033a"
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def full_pdf() -> bytes:
    """Return a document that has a value of every kind, each with dirty text in it."""
    builder = PdfBuilder()
    named = b"(x%s)" % DIRTY
    stream = builder.add_stream(b"bytes")
    file = builder.add(b"<< /UF %s /EF << /F %d 0 R >> >>" % (named, stream))
    item = builder.add(b"<< /Title %s /Dest [0 /Fit] >>" % named)
    builder.catalog_entries = (
        b"/Names << /EmbeddedFiles << /Names [%s %d 0 R] >> >> /Outlines << /First %d 0 R >> "
        b"/PageLabels << /Nums [0 << /S /D /P %s >>] >>" % (named, file, item, named)
    )
    builder.info = builder.add(b"<< /Title %s >>" % named)
    font = FONT.replace(b"/Helvetica", b"/Helv#00#07etica")
    good = add_picture(builder, 1, 1, b"\x07", b"/ColorSpace /DeviceGray /BitsPerComponent 8")
    bad = add_picture(builder, 1, 1, b"\x07", b"/Filter /DCTDecode /ColorSpace /DeviceGray")
    content = b"BT /F1 9 Tf 9 9 Td (needle %s) Tj ET" % DIRTY
    pictures: dict[str, bytes | int] = {"Good#00": good, "Bad#1B": bad}
    return builder.build([page_of(builder, content, fonts={"F1": font}, xobjects=pictures)])


def values_of(document: Document) -> dict[str, Any]:
    """Return what every read gives, by its name."""
    page = document.page(1)
    return {
        "text": page.text(),
        "read": page.read(),
        "label": page.label,
        "size": page.size,
        "rotation": page.rotation,
        "images": page.images(),
        "fonts": page.fonts(),
        "metadata": document.metadata(),
        "outline": document.outline(),
        "attachments": document.attachments(),
        "permissions": document.permissions(),
        "search": document.search("needle"),
    }


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from texts_in(getattr(value, each.name))
    elif isinstance(value, dict):
        yield from texts_in([*value, *value.values()])
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts_in(each)


@pytest.fixture(scope="module")
def values(pypdf_sandbox: Sandbox) -> dict[str, Any]:
    with opened(pypdf_sandbox, full_pdf()) as document:
        return values_of(document)


def test_there_is_one_of_each(values: dict[str, Any]) -> None:
    for name in ("images", "fonts", "outline", "attachments", "search", "metadata", "text"):
        assert values[name], name
    assert [image.error is None for image in values["images"]] == [True, False]


def test_their_text_is_clean(values: dict[str, Any]) -> None:
    texts = list(texts_in(values))
    assert len(texts) > 20
    assert [text for text in texts if _UNCLEAN.search(text)] == []


def test_they_can_be_pickled_and_are_equal_then(values: dict[str, Any]) -> None:
    again = pickle.loads(pickle.dumps(values))
    assert again == values
    assert [type(value) for value in again.values()] == [type(each) for each in values.values()]
    assert again["search"].unread == values["search"].unread


def test_they_are_frozen(values: dict[str, Any]) -> None:
    frozen = [
        *(values[name][0] for name in ("images", "fonts", "outline", "attachments", "search")),
        values["permissions"],
        values["read"],
    ]
    for value in frozen:
        for each in dataclasses.fields(value):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, each.name, None)
        with pytest.raises((AttributeError, TypeError)):
            value.something_else = 1


def test_their_representations_leave_data_out(values: dict[str, Any]) -> None:
    for value in (values["images"][0], values["attachments"][0]):
        assert "data=" not in repr(value)


def test_matches_say_what_was_not_read() -> None:
    matches = pickle.loads(pickle.dumps(Matches([], (3, 4))))
    assert matches == ()
    assert matches.unread == (3, 4)


# What is there after the end


def test_after_close_what_is_known_is_told_and_nothing_else(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, full_pdf()) as document:
        page = document.page(1)
        size = page.size
    assert document.closed
    assert (document.version, document.source, document.encrypted) == ("1.7", "a test's", False)
    assert document.page_count == 1
    assert page.number == 1
    assert page.size == size
    closed = [
        page.text,
        page.read,
        page.images,
        page.fonts,
        document.text,
        document.metadata,
        document.outline,
        document.attachments,
        document.permissions,
        document.prepare_search,
        document.clear_search_index,
        lambda: document.search("needle"),
        lambda: document.map(lambda page: page.text()),
        lambda: document.authenticate("o"),
    ]
    for call in closed:
        with pytest.raises(Closed):
            call()
    document.close()


# What a child says is not believed

OUTLINE_ITEM = functools.partial(claims.outline_item, page_count=3)
MATCH = functools.partial(claims.match, pages=[1, 3])
PERMISSIONS = dataclasses.asdict(Permissions())

SAID: list[tuple[Any, dict[str, Any]]] = [
    (claims.page_info, {"label": "1", "size": [1, 2], "rotation": 45}),
    (claims.page_info, {"label": "1", "size": [1, 2], "rotation": -90}),
    (claims.page_info, {"label": "1", "size": [1, float("nan")], "rotation": 0}),
    (claims.page_info, {"label": "1", "size": [1, float("inf")], "rotation": 0}),
    (claims.page_info, {"label": "1", "size": [1, 10**400], "rotation": 0}),
    (claims.page_info, {"label": "1", "size": [1, True], "rotation": 0}),
    (claims.page_info, {"label": "1", "size": [1], "rotation": 0}),
    (claims.page_info, {"label": 1, "size": [1, 2], "rotation": 0}),
    (claims.image, {"name": "x", "width": -1}),
    (claims.image, {"name": "x", "error": "broken"}),
    (claims.image, {"name": "x", "error": {"code": "no such code"}}),
    (claims.font, {"name": "x", "type": "y", "embedded": 1, "maps_to_unicode": True}),
    (claims.attachment, {"name": None}),
    (OUTLINE_ITEM, {"title": "x", "page": "1", "level": 0}),
    (OUTLINE_ITEM, {"title": "x", "page": 1, "level": -1}),
    (OUTLINE_ITEM, {"title": "x", "page": 0, "level": 0}),
    (OUTLINE_ITEM, {"title": "x", "page": 4, "level": 0}),
    (claims.permissions, {}),
    (claims.permissions, {**PERMISSIONS, "print": 1}),
    (claims.permissions, {**PERMISSIONS, "fly": True}),
    (MATCH, {"page": 1, "start": 0, "end": True, "context": ""}),
    (MATCH, {"page": 1, "start": 0, "context": ""}),
    (MATCH, {"page": 2, "start": 0, "end": 1, "context": ""}),
    (MATCH, {"page": 1, "start": 1, "end": 1, "context": ""}),
]


@pytest.mark.parametrize(("check", "part"), SAID)
def test_an_answer_without_sense_is_a_crash(check: Any, part: dict[str, Any]) -> None:
    frame = Frame({"value": json.loads(json.dumps(part))}, b"", 0)
    with pytest.raises(Crashed):
        claims.answer([frame], check, 1)


def test_what_a_child_says_is_cleaned_and_cut() -> None:
    said = {"name": "a\0\n" + "x" * 5000, "type": "\ud800", "embedded": True}
    frame = Frame({"value": {**said, "maps_to_unicode": False}}, b"", 0)
    ((font,), warnings) = claims.answer([frame], claims.font, 1)
    assert (font.name, font.type) == ("a " + "x" * 498, "\ufffd")
    assert warnings == ()
