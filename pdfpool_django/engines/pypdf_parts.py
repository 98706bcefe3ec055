"""What pypdf knows of a document besides its text: pictures, fonts, outline, files, permissions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.constants import UserAccessPermissions
from pypdf.generic import Destination, DictionaryObject

from pdfpool_django.errors import PdfPoolError, Unsupported
from pdfpool_django.sandbox.child import is_out_of_memory

MAX_OUTLINE = 10_000
"""Items of an outline; more are left out, with a warning."""

_MAX_NAME = 500
_MAX_OUTLINE_DEPTH = 100
_FONT_FILES = ("/FontFile", "/FontFile2", "/FontFile3")

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


def warm_images() -> None:
    """Load what decodes pictures, where it is installed: a child can open no file for it."""
    if find_spec("PIL"):
        import_module("PIL.Image").init()
        import_module("pypdf.generic._image_xobject")


def images(page: PageObject, judge: Judge) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the page's pictures; one that cannot be decoded has its error.

    Args:
        page: The page.
        judge: Returns what an exception says of the document.
    """
    found = page.images
    for key in found.keys():  # noqa: SIM118 - it is a sequence, whose iteration would decode
        name = (key if isinstance(key, str) else key[-1])[:_MAX_NAME].lstrip("/")
        try:
            yield _image(found[key])
        except Exception as error:
            if is_out_of_memory(error):
                raise
            yield {"name": name, "error": _reason(error, judge).as_data()}, b""


def _image(found: Any) -> tuple[dict[str, Any], bytes]:
    width, height = found.image.size if found.image else (0, 0)
    ending = found.name.rpartition(".")[2]
    about = {"name": found.name[:_MAX_NAME], "format": ending, "width": width, "height": height}
    return {**about, "error": None}, found.data


def _reason(error: Exception, judge: Judge) -> PdfPoolError:
    if isinstance(error, ImportError):
        return Unsupported(reason="pictures need Pillow: install pdfpool-django[images]")
    return judge(error)


def fonts(page: PageObject) -> Iterator[dict[str, Any]]:
    """Yield the fonts that the page's resources name, and those of its forms."""
    seen: set[int] = set()
    waiting = [page.get("/Resources")]
    while waiting:
        resources = _dictionary(waiting.pop())
        if resources is None or id(resources) in seen:
            continue
        seen.add(id(resources))
        for font in _values(resources, "/Font"):
            about = _dictionary(font)
            if about is not None and id(about) not in seen:
                seen.add(id(about))
                yield _font(about)
        for form in _values(resources, "/XObject"):
            content = _dictionary(form)
            waiting.append(None if content is None else content.get("/Resources"))


def _font(font: DictionaryObject) -> dict[str, Any]:
    descendants = font.get("/DescendantFonts")
    inner = _dictionary(descendants.get_object()[0]) if descendants else None
    descriptor = _dictionary((inner or font).get("/FontDescriptor")) or DictionaryObject()
    name = str(font.get("/BaseFont", font.get("/Name", "")))
    return {
        "name": name.lstrip("/")[:_MAX_NAME],
        "type": str(font.get("/Subtype", "")).lstrip("/")[:_MAX_NAME],
        "embedded": any(key in descriptor for key in _FONT_FILES) or "/CharProcs" in font,
        "maps_to_unicode": "/ToUnicode" in font,
    }


def _values(resources: DictionaryObject, kind: str) -> list[Any]:
    found = _dictionary(resources.get(kind))
    return [] if found is None else list(found.values())


def _dictionary(value: Any) -> DictionaryObject | None:
    found = None if value is None else value.get_object()
    return found if isinstance(found, DictionaryObject) else None


def outline(reader: PdfReader) -> Iterator[dict[str, Any]]:
    """Yield the items of the outline, in the order in which it is shown."""
    # A stack of our own: a hostile outline may be nested deeper than Python's goes.
    waiting: list[Iterator[Any]] = [iter(reader.outline)]
    count = 0
    while waiting:
        item = next(waiting[-1], None)
        if item is None:
            waiting.pop()
        elif isinstance(item, list):
            if len(waiting) <= _MAX_OUTLINE_DEPTH:
                waiting.append(iter(item))
        elif (count := count + 1) > MAX_OUTLINE:
            return
        else:
            yield _outline_item(reader, item, len(waiting) - 1)


def _outline_item(reader: PdfReader, item: Destination, level: int) -> dict[str, Any]:
    number = None
    with contextlib.suppress(Exception):  # an item that leads nowhere is one all the same
        number = reader.get_destination_page_number(item)
    page = None if number is None else number + 1
    return {"title": str(item.title or "")[:_MAX_NAME], "page": page, "level": level}


def attachments(reader: PdfReader, judge: Judge) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the files that the document carries; one that cannot be decoded has its error."""
    for file in reader.attachment_list:
        name = str(file.alternative_name or file.name)[:_MAX_NAME]
        try:
            yield {"name": name, "error": None}, file.content
        except Exception as error:
            if is_out_of_memory(error):
                raise
            yield {"name": name, "error": judge(error).as_data()}, b""


def permissions(reader: PdfReader) -> dict[str, bool]:
    """Return what the document's author allows; all of it where the document is not encrypted."""
    granted = reader.user_access_permissions
    return {name: granted is None or bool(granted & flag) for name, flag in _PERMISSIONS.items()}
