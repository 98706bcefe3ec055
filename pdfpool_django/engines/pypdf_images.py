"""The pictures of a page, its forms and its content: found, then decoded one by one.

pypdf finds them, too, but decodes those in the content all at once, so that a
broken one costs the rest, and does not look into the content of forms.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pypdf import PageObject
from pypdf.generic import (
    ArrayObject,
    ContentStream,
    DictionaryObject,
    EncodedStreamObject,
    NameObject,
    NumberObject,
    StreamObject,
)

from pdfpool_django.engines.pypdf_content import original
from pdfpool_django.errors import PdfPoolError, Unsupported
from pdfpool_django.sandbox.child import raise_if_out_of_memory

Judge = Callable[[Exception], PdfPoolError]

_DECODER = "pypdf.generic._image_xobject"
_OF_SAMPLES = ("/ASCIIHexDecode", "/ASCII85Decode", "/LZWDecode")
"""The filters after which there are samples, and no file of another format."""
_MAX_NAME = 500
_MAX_SIDE = 2**31
_INLINE = re.compile(rb"(?<![^\0\t\n\f\r ])BI(?=[\0\t\n\f\r /])")

# What may be short within content (ISO 32000-2, tables 91 to 93).
_KEYS = {
    "/BPC": "/BitsPerComponent",
    "/CS": "/ColorSpace",
    "/D": "/Decode",
    "/DP": "/DecodeParms",
    "/F": "/Filter",
    "/H": "/Height",
    "/IM": "/ImageMask",
    "/W": "/Width",
}
_SPACES = {"/G": "/DeviceGray", "/RGB": "/DeviceRGB", "/CMYK": "/DeviceCMYK", "/I": "/Indexed"}
_FILTERS = {
    "/AHx": "/ASCIIHexDecode",
    "/A85": "/ASCII85Decode",
    "/LZW": "/LZWDecode",
    "/Fl": "/FlateDecode",
    "/RL": "/RunLengthDecode",
    "/CCF": "/CCITTFaxDecode",
    "/DCT": "/DCTDecode",
}


def warm() -> None:
    """Load what decodes pictures, where it is installed: a child can open no file for it."""
    if find_spec("PIL"):
        import_module("PIL.Image").init()
        import_module(_DECODER)


def images(page: PageObject, judge: Judge) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the page's pictures, each once; one that cannot be decoded has its error.

    Args:
        page: The page.
        judge: Returns what an exception says of the document.
    """
    for name, picture in _pictures(page):
        about: dict[str, Any] = {"name": name[:_MAX_NAME]}
        data = b""
        try:
            if isinstance(picture, Exception):
                raise picture
            about |= {"width": _side(picture, "/Width"), "height": _side(picture, "/Height")}
            found, data = _decoded(picture)
            about |= found | {"name": f"{name[:_MAX_NAME]}.{found['format']}"}
        except Exception as error:
            raise_if_out_of_memory(error)
            about["error"] = _reason(error, judge).as_data()
        if isinstance(picture, EncodedStreamObject):
            picture.decoded_self = None  # else the samples of every picture read pile up
        yield about, data


def _decoded(picture: StreamObject) -> tuple[dict[str, Any], bytes]:
    decoder = import_module(_DECODER)
    ending, data, decoded = decoder._xobj_to_image(_with_palette_applied(picture))
    width, height = decoded.size if decoded else (0, 0)
    return {"format": (ending or ".").lstrip("."), "width": width, "height": height}, data


def _with_palette_applied(picture: StreamObject) -> StreamObject:
    """Return a picture such as pypdf can decode; it applies a palette to none but deflated ones."""
    space, filters = (_resolve(picture.get(key)) for key in ("/ColorSpace", "/Filter"))
    last = filters[-1] if isinstance(filters, ArrayObject) and filters else filters
    indexed = isinstance(space, ArrayObject) and space and _resolve(space[0]) == "/Indexed"
    if not indexed or (isinstance(last, str) and last not in _OF_SAMPLES):
        return picture
    entries = {key: value for key, value in dict.items(picture) if key != "/DecodeParms"}
    data = zlib.compress(picture.get_data())
    deflated: StreamObject = StreamObject.initialize_from_dictionary(
        entries
        | {"__streamdata__": data, NameObject("/Filter"): NameObject("/FlateDecode")}
        | {"/Length": NumberObject(len(data))}
    )
    return deflated


def _reason(error: Exception, judge: Judge) -> PdfPoolError:
    # A child that has not loaded Pillow may not open its files either.
    if isinstance(error, (ImportError, PermissionError)):
        return Unsupported(reason="pictures need Pillow: install pdfpool-django[images]")
    return judge(error)


def _side(picture: StreamObject, key: str) -> int:
    value = _resolve(picture.get(key))
    return int(value) if isinstance(value, int) and 0 <= value < _MAX_SIDE else 0


def _pictures(page: PageObject) -> Iterator[tuple[str, StreamObject | Exception]]:
    """Yield each picture with its name; an exception in the place of those in a broken content."""
    seen: set[int] = set()
    resources = _dictionary(page.get_inherited("/Resources"))
    waiting: deque[tuple[Any, DictionaryObject | None]] = deque([(page, resources)])
    inline = 0
    while waiting:
        holder, resources = waiting.popleft()
        for name, xobject in _xobjects(resources, seen):
            if id(xobject) in seen:
                continue
            seen.add(id(xobject))
            if xobject.get("/Subtype") == "/Image":
                yield name.lstrip("/"), xobject
            else:  # a form without resources uses those around it (ISO 32000-1, 7.8.3)
                waiting.append((xobject, _dictionary(xobject.get("/Resources")) or resources))
        for picture in _in_content(holder, resources):
            inline += 1
            yield f"inline{inline}", picture


def _xobjects(
    resources: DictionaryObject | None, seen: set[int]
) -> Iterator[tuple[str, StreamObject]]:
    found = None if resources is None else _dictionary(resources.get("/XObject"))
    if found is None or id(found) in seen:
        return
    seen.add(id(found))
    for name, value in list(found.items()):
        xobject = original(value.get_object())
        if isinstance(xobject, StreamObject):
            yield str(name), xobject


def _in_content(
    holder: Any, resources: DictionaryObject | None
) -> Iterator[StreamObject | Exception]:
    """Yield the pictures that stand in the content of a page or form itself."""
    try:
        content = holder.get_contents() if isinstance(holder, PageObject) else holder
        data = b"" if content is None else content.get_data()
        if _INLINE.search(data) is None:
            return
        stream = ContentStream(None, None, "bytes")
        stream.set_data(data)
        operations = stream.operations
    except Exception as error:
        raise_if_out_of_memory(error)
        yield error
        return
    for operands, operator in operations:
        if operator == b"INLINE IMAGE":
            try:
                yield _written_out(operands, resources)
            except Exception as error:
                yield error


def _written_out(operands: Any, resources: DictionaryObject | None) -> StreamObject:
    """Return a picture of a content as one of the resources would be."""
    entries: dict[Any, Any] = {"__streamdata__": operands["data"]}
    for key, value in operands["settings"].items():
        name = _KEYS.get(key, key)
        short = {"/ColorSpace": _SPACES, "/Filter": _FILTERS}.get(name, {})
        entries[NameObject(name)] = _long(value, short)
    entries["/Length"] = NumberObject(len(operands["data"]))
    spaces = None if resources is None else _dictionary(resources.get("/ColorSpace"))
    space = entries.get("/ColorSpace")
    if spaces is not None and isinstance(space, str) and space in spaces:
        entries[NameObject("/ColorSpace")] = spaces[space]
    picture: StreamObject = StreamObject.initialize_from_dictionary(entries)
    return picture


def _long(value: Any, short: dict[str, str]) -> Any:
    if isinstance(value, ArrayObject):
        return ArrayObject(_long(each, short) for each in value)
    return NameObject(short[value]) if isinstance(value, str) and value in short else value


def _dictionary(value: Any) -> DictionaryObject | None:
    found = _resolve(value)
    return found if isinstance(found, DictionaryObject) else None


def _resolve(value: Any) -> Any:
    return None if value is None else value.get_object()
