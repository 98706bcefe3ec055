"""What pypdf is told to bear: the child around it is what protects the site, not its limits.

Some of it pypdf has no setting for. `REPLACED` has all of its private parts
that are changed; a test fails for each that a later pypdf no longer has.
"""

from __future__ import annotations

import logging
import re
import sys
import zlib
from typing import Any, cast

import pypdf
from pypdf import filters
from pypdf.errors import PdfReadError
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NullObject,
    NumberObject,
    StreamObject,
    _data_structures,
    read_object,
)

from pdfpool_django.engines import pypdf_fonts
from pdfpool_django.sandbox.child import raise_if_out_of_memory

ROOT_SEARCH = 200_000
"""Objects that are looked at for the catalog of a file that does not say where it is."""

_LIMITS = {
    "array_maximum_element_count": 10_000_000,
    "dictionary_maximum_element_count": 1_000_000,
    "maximum_declared_stream_length": sys.maxsize,  # a file gives what it has
    "page_tree_maximum_depth": 10_000,
    "stream_filters_maximum_length": 1000,
    "stream_parsing_work_maximum_count": 5_000_000,
    "xform_maximum_invocations_per_extraction": 10_000,
}
_MAX_NUMBER = 1024 * 1024
_MAX_TOKEN = 4096
_MAX_NAME = 64 * 1024 * 1024

_CONTAINERS = (b"[", b"<", b"(")
"""What has objects within itself: one of those is broken, and would be read again at each level."""

_ENDINGS = (b">", b"obj", b"endobj", b"stream", b"endstream", b"xref", b"trailer", b"startxref")
"""What comes after a dictionary: one in which it is met has no end of its own."""

REGULAR = re.compile(rb"[^\0\t\n\f\r ()<>\[\]{}/%]*")
"""The rest of a token (ISO 32000-2, 7.2.3)."""

NO_OBJECT = ("Invalid Elementary Object", "Could not read Null", "Could not read Boolean")
"""How pypdf's errors begin where something is no object at all."""

logger = logging.getLogger("pypdf.leniency")


def install() -> None:
    """Tell pypdf."""
    pypdf.overwrite_configuration(
        # It would run another program, for images, which text never needs.
        jbig2dec_binary=None,
        disable_legacy_handling=True,
        **cast(dict[str, Any], _LIMITS),
    )
    pypdf_fonts.install_codecs()
    for owner, name, ours in REPLACED:
        if hasattr(owner, name):
            setattr(owner, name, ours)


def _accept(**names: Any) -> None:
    """Take the short names of filters outside inline images, too, as other readers do."""


def _read_stream(*, stream: Any, pdf: Any, data: dict[Any, Any]) -> None:
    """Read the data of a stream; one of no sensible length ends where its end is marked."""
    length = data.get("/Length")
    if isinstance(length, IndirectObject):
        length = _resolved_length(length, stream)
    if "/Length" in data:
        sound = isinstance(length, int) and length <= sys.maxsize
        data[NameObject("/Length")] = length if sound else NumberObject(-1)
    _read_data(stream=stream, pdf=pdf, data=data)


def _resolved_length(length: IndirectObject, stream: Any) -> Any:
    at = stream.tell()
    try:
        return length.get_object()
    except Exception as error:
        raise_if_out_of_memory(error)
        logger.warning("%s", error)
        return None
    finally:
        stream.seek(at)


_read_data = DictionaryObject._read_stream_data


def _decode_stream(stream: Any) -> bytes:
    """Decode the data of a stream, whose filters may be references, null, or change nothing."""
    names = _listed(stream.get("/Filter"))
    parameters = _listed(stream.get("/DecodeParms"))
    parameters += [NullObject()] * (len(names) - len(parameters))
    pairs = zip(names, parameters, strict=False)
    kept = [pair for pair in pairs if not _changes_nothing(*pair)]
    plain = StreamObject()
    plain[NameObject("/Height")] = stream.get("/Height", NumberObject(0))  # of a fax
    plain[NameObject("/Filter")] = ArrayObject(name for name, _ in kept)
    plain[NameObject("/DecodeParms")] = ArrayObject(each for _, each in kept)
    plain._data = stream._data
    return _decode(plain)


def _listed(value: Any) -> list[Any]:
    value = None if value is None else value.get_object()
    if value is None:
        return []
    values = value if isinstance(value, ArrayObject) else [value]
    # One that is missing has been null all along (ISO 32000-2, 7.3.10).
    resolved = (each.get_object() for each in values)
    return [NullObject() if each is None else each for each in resolved]


def _changes_nothing(name: Any, parameters: Any) -> bool:
    if isinstance(name, NullObject):
        return True
    if name != "/Crypt":
        return False
    crypt = parameters.get("/Name") if isinstance(parameters, DictionaryObject) else None
    return crypt in (None, "/Identity")  # ISO 32000-2, Table 14


_decode = filters.decode_stream_data


def _decode_lzw(data: bytes, decode_parms: Any = None, **_: Any) -> bytes:
    """Decode LZW, and undo what was predicted, which pypdf does for deflated data only."""
    decoded = _decode_plain_lzw(data)
    if not isinstance(decode_parms, DictionaryObject) or decode_parms.get("/Predictor", 1) == 1:
        return decoded
    # Nothing of pypdf's undoes it in plain data, so that these are stored as deflated ones.
    return filters.FlateDecode.decode(zlib.compress(decoded, 0), decode_parms)


_decode_plain_lzw = filters.LZWDecode.decode


def _read_value(stream: Any, pdf: Any, *encoding: Any, parsing_budget: Any = None) -> Any:
    """Read an object; in the place of one that is none, like ``1e30`` or ``NaN``, put null.

    pypdf drops all that comes after it in a dictionary, be it the page's
    content. The key of a dictionary, which pypdf can do without, it reads
    without an encoding.
    """
    start = stream.tell()
    try:
        return read_object(stream, pdf, *encoding, parsing_budget=parsing_budget)
    except PdfReadError as error:
        if not encoding or not str(error).startswith(NO_OBJECT):
            raise
        stream.seek(start)
        token = stream.read(_MAX_TOKEN)
        if not token or token.startswith((*_CONTAINERS, *_ENDINGS)):
            raise
        rest = REGULAR.match(token, 1)
        stream.seek(start + (rest.end() if rest else 1))
        logger.warning("%s", error)
        return NullObject()


REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (NumberObject, "_LENGTH_LIMIT", _MAX_NUMBER),
    (NameObject, "_LENGTH_LIMIT", _MAX_NAME),
    (filters, "_deprecate_inline_image_filters", _accept),
    (filters, "decode_stream_data", _decode_stream),
    (filters.LZWDecode, "decode", staticmethod(_decode_lzw)),
    (_data_structures, "read_object", _read_value),
    (DictionaryObject, "_read_stream_data", staticmethod(_read_stream)),
    *pypdf_fonts.REPLACED,
)
"""The private parts of pypdf that are replaced: whose, their name, and by what."""
