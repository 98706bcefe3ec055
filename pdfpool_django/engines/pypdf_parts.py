"""What pypdf knows besides text and pictures: boxes, fonts, outline, attached files."""

from __future__ import annotations

import logging
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.constants import UserAccessPermissions
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    EmbeddedFile,
    IndirectObject,
    NameObject,
    StreamObject,
)

from pdfpool_django.engines.pypdf_content import original
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.sandbox.child import describe, raise_if_out_of_memory

MAX_OUTLINE = 10_000
"""Items of an outline; more are left out, with a warning."""
MAX_OUTLINE_DEPTH = 100
"""Levels of an outline; what is deeper is left out, with a warning."""

_MAX_NAME = 500
_MAX_NODES = 100_000
_FONT_FILES = ("/FontFile", "/FontFile2", "/FontFile3")
_NO_BOX = (0.0, 0.0, 612.0, 792.0)
"""The page of a file that does not say how large it is: Letter, as other readers have it."""
_VERSION = re.compile(r"\d\.\d")

_PERMISSIONS = {
    "print": UserAccessPermissions.PRINT,
    "modify": UserAccessPermissions.MODIFY,
    "copy": UserAccessPermissions.EXTRACT,
    "annotate": UserAccessPermissions.ADD_OR_MODIFY,
    "fill_forms": UserAccessPermissions.FILL_FORM_FIELDS,
    "extract_for_accessibility": UserAccessPermissions.EXTRACT_TEXT_AND_GRAPHICS,
    "assemble": UserAccessPermissions.ASSEMBLE_DOC,
    "print_in_high_quality": UserAccessPermissions.PRINT_TO_REPRESENTATION,
}

Judge = Callable[[Exception], PdfPoolError]
_Box = tuple[float, float, float, float]

logger = logging.getLogger("pypdf.parts")


def version(reader: PdfReader) -> str | None:
    """Return the later of the versions that header and catalog name (ISO 32000-2, 7.5.2)."""
    named = reader.pdf_header.removeprefix("%PDF-"), text_of(reader.root_object.get("/Version"))
    found = [each.lstrip("/") for each in named]
    return max((each for each in found if _VERSION.fullmatch(each)), default=None)


def permissions(reader: PdfReader) -> dict[str, bool]:
    """Return what the document's author allows; all of it where the document is not encrypted."""
    granted = reader.user_access_permissions
    return {name: granted is None or bool(granted & flag) for name, flag in _PERMISSIONS.items()}


# Pages


def size(page: PageObject) -> tuple[float, float]:
    """Return width and height of what is visible of the page, in points of 1/72 inch."""
    media = _box(page, "/MediaBox") or _NO_BOX
    crop = _box(page, "/CropBox")
    visible = media if crop is None else _overlap(media, crop) or media
    unit = _number(_resolved(page, "/UserUnit")) or 1.0
    width, height = ((visible[at + 2] - visible[at]) * unit for at in (0, 1))
    return (width, height) if math.isfinite(width + height) else _NO_BOX[2:]


def _box(page: PageObject, key: str) -> _Box | None:
    """Return a box, from its lower left to its upper right; ``None`` where there is no sound one.

    Any two opposite corners may be what the file gives (ISO 32000-2, 7.9.5).
    """
    box = page.get_inherited(key)
    box = None if box is None else box.get_object()
    if not isinstance(box, ArrayObject) or len(box) < 4:
        return None
    sides = [_number(each.get_object()) for each in box[:4]]
    if any(side is None for side in sides):
        return None
    x1, y1, x2, y2 = (side or 0.0 for side in sides)
    found = min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
    return found if found[0] < found[2] and found[1] < found[3] else None


def _overlap(one: _Box, other: _Box) -> _Box | None:
    left, bottom = max(one[0], other[0]), max(one[1], other[1])
    right, top = min(one[2], other[2]), min(one[3], other[3])
    return (left, bottom, right, top) if left < right and bottom < top else None


def rotation(page: PageObject) -> int:
    """Return the degrees by which the page is turned clockwise; nonsense turns nothing."""
    turned = page.get_inherited("/Rotate")
    degrees = _number(None if turned is None else turned.get_object())
    return 0 if degrees is None or degrees % 90 else int(degrees) % 360


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


# Fonts


def fonts(page: PageObject) -> Iterator[dict[str, Any]]:
    """Yield the fonts that the page's resources name, and those of its forms, each once."""
    seen: set[int] = set()
    waiting: deque[Any] = deque([page.get_inherited("/Resources")])
    while waiting:
        resources = _dictionary(waiting.popleft())
        if resources is None or id(resources) in seen:
            continue
        seen.add(id(resources))
        for font in _values(resources, "/Font"):
            if id(font) not in seen:
                seen.add(id(font))
                yield _font(font)
        waiting.extend(form.get("/Resources") for form in _values(resources, "/XObject"))


def _font(font: DictionaryObject) -> dict[str, Any]:
    descendants = _resolved(font, "/DescendantFonts")
    inner = font
    if isinstance(descendants, ArrayObject) and descendants:
        inner = _dictionary(descendants[0]) or font
    descriptor = _dictionary(inner.get("/FontDescriptor")) or DictionaryObject()
    # The font of type 3 need not have a name; its glyphs are in the document (ISO 32000-2, 9.6.4).
    name = text_of(font.get("/BaseFont")) or text_of(font.get("/Name"))
    return {
        "name": name.lstrip("/")[:_MAX_NAME],
        "type": text_of(font.get("/Subtype")).lstrip("/")[:_MAX_NAME],
        "embedded": any(key in descriptor for key in _FONT_FILES) or "/CharProcs" in font,
        "maps_to_unicode": _is_map(_resolved(font, "/ToUnicode")),
    }


def _is_map(value: Any) -> bool:
    return isinstance(value, (StreamObject, NameObject))


def _values(resources: DictionaryObject, kind: str) -> list[DictionaryObject]:
    found = _dictionary(resources.get(kind))
    values = [] if found is None else [_dictionary(each) for each in found.values()]
    return [original(each) for each in values if each is not None]


# Outline


def outline(reader: PdfReader) -> Iterator[dict[str, Any]]:
    """Yield the items of the outline, in the order in which it is shown."""
    root = _dictionary(reader.root_object.get("/Outlines"))
    destinations = _Destinations(reader)
    seen: set[int] = set()
    count = 0
    # What comes next on each level; a hostile outline may be nested deeper than Python's stack is.
    waiting = [None if root is None else root.get("/First")]
    while waiting:
        item = _dictionary(waiting.pop())
        level = len(waiting)
        if item is None:
            continue
        if id(item) in seen:
            logger.warning("The outline leads back into itself; it is read to there.")
            continue
        if count == MAX_OUTLINE:
            logger.warning("The outline has more than %d items; the rest is left out.", MAX_OUTLINE)
            return
        seen.add(id(item))
        count += 1
        title = text_of(item.get("/Title"))[:_MAX_NAME]
        yield {"title": title, "page": destinations.page(item), "level": level}
        waiting.append(item.get("/Next"))
        if "/First" not in item:
            continue
        if level + 1 < MAX_OUTLINE_DEPTH:
            waiting.append(item.get("/First"))
        else:
            logger.warning(
                "The outline is nested more than %d deep; the rest is left out.", MAX_OUTLINE_DEPTH
            )


class _Destinations:
    """To which pages the items of the outline lead."""

    def __init__(self, reader: PdfReader) -> None:
        self._reader = reader

    def page(self, item: DictionaryObject) -> int | None:
        """Return the number of the page; ``None`` where an item leads to none."""
        target = _resolved(item, "/Dest")
        action = _dictionary(item.get("/A"))
        if target is None and action is not None and _resolved(action, "/S") == "/GoTo":
            target = _resolved(action, "/D")
        if isinstance(target, (str, bytes)):
            target = self._named.get(target)
        if isinstance(target, DictionaryObject):
            target = _resolved(target, "/D")
        if not isinstance(target, ArrayObject) or not target:
            return None
        page = target[0]
        if isinstance(page, IndirectObject):
            return self._numbers.get(page.idnum)
        # Some files give the place of the page, from 0, as for other documents they should.
        if isinstance(page, int) and 0 <= page < len(self._numbers):
            return int(page) + 1
        return None

    @cached_property
    def _numbers(self) -> dict[int, int]:
        pages = enumerate(self._reader.pages, 1)
        references = ((number, page.indirect_reference) for number, page in pages)
        return {found.idnum: number for number, found in references if found is not None}

    @cached_property
    def _named(self) -> dict[Any, Any]:
        """The destinations that have names: those of PDF 1.1, and those of the name tree."""
        catalog = self._reader.root_object
        old = _dictionary(catalog.get("/Dests"))
        found: dict[Any, Any] = {}
        if old is not None:
            found |= {name: _resolved(old, name) for name in old}
        return found | {name: value.get_object() for name, value in _tree(catalog, "/Dests")}


def _tree(catalog: DictionaryObject, key: str) -> Iterator[tuple[Any, Any]]:
    """Yield names and values of a name tree (ISO 32000-2, 7.9.6)."""
    names = _dictionary(catalog.get("/Names"))
    waiting = [None if names is None else names.get(key)]
    seen: set[int] = set()
    while waiting:
        node = _dictionary(waiting.pop())
        if node is None or id(node) in seen:
            continue
        if len(seen) == _MAX_NODES:
            logger.warning(
                "A tree of names has more than %d nodes; the rest is left out.", len(seen)
            )
            return
        seen.add(id(node))
        pairs, kids = _resolved(node, "/Names"), _resolved(node, "/Kids")
        if isinstance(pairs, ArrayObject):
            yield from zip(pairs[::2], pairs[1::2], strict=False)
        if isinstance(kids, ArrayObject):
            waiting += reversed(kids)


# Attached files


def attachments(reader: PdfReader, judge: Judge) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the files that the document carries, each once: its own, then those of its pages.

    Args:
        reader: The document.
        judge: Returns what an exception says of the document; one that cannot
            be decoded has its error.
    """
    seen: set[int] = set()
    for name, specification in _files(reader):
        if id(specification) in seen:
            continue
        seen.add(id(specification))
        about: dict[str, Any] = {"name": _name(specification) or text_of(name)[:_MAX_NAME]}
        data = b""
        try:
            data = EmbeddedFile("", specification).content
        except Exception as error:
            raise_if_out_of_memory(error)
            about["error"] = judge(error).as_data()
        yield about, data


def _files(reader: PdfReader) -> Iterator[tuple[Any, DictionaryObject]]:
    for name, value in _tree(reader.root_object, "/EmbeddedFiles"):
        specification = _dictionary(value)
        if specification is not None:
            yield name, specification
    for page in reader.pages:
        annotations = _resolved(page, "/Annots")
        for each in annotations if isinstance(annotations, ArrayObject) else ():
            annotation = _dictionary(each)
            if annotation is None or _resolved(annotation, "/Subtype") != "/FileAttachment":
                continue
            specification = _dictionary(annotation.get("/FS"))
            if specification is not None and "/EF" in specification:
                yield None, specification


def _name(specification: DictionaryObject) -> str:
    return (text_of(specification.get("/UF")) or text_of(specification.get("/F")))[:_MAX_NAME]


# Values


def text_of(value: Any) -> str:
    """Return a text as one, also where it is in no encoding of texts; of a number, nothing."""
    value = _resolve(value)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if isinstance(value, str) else ""


def _resolved(holder: DictionaryObject, key: Any) -> Any:
    return _resolve(holder.get(key))


def _dictionary(value: Any) -> DictionaryObject | None:
    found = _resolve(value)
    return found if isinstance(found, DictionaryObject) else None


def _resolve(value: Any) -> Any:
    """Return the object that is meant; ``None``, with a warning, where it cannot be read."""
    try:
        return None if value is None else value.get_object()
    except Exception as error:
        raise_if_out_of_memory(error)
        logger.warning("%s", describe(error))
        return None
