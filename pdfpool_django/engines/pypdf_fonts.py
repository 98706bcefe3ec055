"""What fonts say of their characters: CMaps that pypdf does not know, fonts that say nothing."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pypdf import _cmap
from pypdf._codecs import adobe_glyphs
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject
from pypdf.generic._font import Font

from pdfpool_django.sandbox.child import raise_if_out_of_memory

JIS = "pdfpool-jis"
"""The codec of the CMaps ``H`` and ``V``: JIS X 0208 in two bytes of seven bits."""

# ISO 32000-2, Table 116, and the newer ones of Adobe's for Unicode: the encoding of their codes.
_ENCODINGS = {
    "gbk": ("GB-EUC", "GBpc-EUC", "GBK-EUC", "GBKp-EUC"),
    "gb18030": ("GBK2K",),
    "big5hkscs": ("HKscs-B5", "HKdla-B5", "HKdlb-B5", "HKgccs-B5", "HKm314-B5", "HKm471-B5"),
    "cp950": ("B5", "B5pc", "ETen-B5", "ETenms-B5", "ETHK-B5"),
    "cp932": (
        *("83pv-RKSJ", "90ms-RKSJ", "90msp-RKSJ", "90pv-RKSJ", "Add-RKSJ", "Ext-RKSJ", "RKSJ"),
        *("78-RKSJ", "78ms-RKSJ"),
    ),
    "euc_jp": ("EUC", "78-EUC"),
    JIS: ("", "Ext", "Add", "78", "NWP"),
    "cp949": ("KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW", "KSCpc-EUC"),
    "johab": ("KSC-Johab",),
    "utf-8": tuple(f"Uni{name}-UTF8" for name in ("GB", "CNS", "JIS", "JIS2004", "KS")),
    "utf-16-be": (
        *(f"Uni{name}-UCS2" for name in ("GB", "CNS", "JIS", "KS")),
        *("UniJIS-UCS2-HW", "UniHojo-UCS2", "UniHojo-UTF16", "UniAKR-UTF16"),
        *(f"Uni{name}-UTF16" for name in ("GB", "CNS", "JIS", "JIS2004", "JISX0213", "KS")),
    ),
    "utf-32-be": (
        *(f"Uni{name}-UTF32" for name in ("GB", "CNS", "JIS", "JIS2004", "JISX0213", "KS")),
        *("UniJISX02132004-UTF32", "UniHojo-UTF32", "UniAKR-UTF32", "UniJISPro-UTF32"),
    ),
}
PREDEFINED = {
    f"/{name}-{mode}".replace("/-", "/"): encoding
    for encoding, names in _ENCODINGS.items()
    for name in names
    for mode in "HV"
}
"""The predefined CMaps of which the codes can be read, each with a codec of Python's."""

_IDENTITY = ("/Identity-H", "/Identity-V")
_UNICODE_ORDERINGS = ("UCS", "UCS2", "Unicode")
_TWO_BYTES = re.compile(rb"begincodespacerange\s*<\s*[0-9A-Fa-f]{4}\s*>")


def install_codecs() -> None:
    """Give Python the codec that it lacks, and load those that the CMaps need."""
    codecs.register(_find_codec)
    for encoding in _ENCODINGS:
        codecs.lookup(encoding)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != JIS:
        return None
    return codecs.CodecInfo(_encode_jis, _decode_jis, name=JIS)


def _encode_jis(text: str, errors: str = "strict") -> tuple[bytes, int]:  # noqa: ARG001
    raise UnicodeEncodeError(JIS, text, 0, len(text), "this codec only decodes")


def _decode_jis(data: Any, errors: str = "strict") -> tuple[str, int]:
    """Decode as EUC-JP does, of which each byte has the eighth bit besides."""
    raised = bytes(byte | 0x80 for byte in bytes(data))
    return codecs.decode(raised, "euc_jp", errors), len(data)


@dataclass(frozen=True, slots=True)
class Judged:
    """What is to be known of a font in which text is shown."""

    unmapped: bool = False
    """Whether it does not say which characters its glyphs are."""
    codec: str = "latin-1"
    """By what pypdf reads its codes, by which it measures them."""
    failure: Exception | None = None
    """Why its text cannot be read, if it cannot."""


_MISSING = Judged()


class Fonts:
    """The fonts of one document; what has been found out about one is kept."""

    def __init__(self) -> None:
        # Each with the font itself, so that no other object takes its id.
        self._judged: dict[int, tuple[DictionaryObject, Judged]] = {}
        self._own_maps: dict[int, DictionaryObject] = {}

    def adapt(self, resources: DictionaryObject) -> None:
        """Make the fonts among the resources such as pypdf can read.

        pypdf takes the codes of a font with a CMap of its own for single
        bytes. Where they are two, or the CMap adds to a predefined one, the
        font is changed to say so.
        """
        for font in _fonts(resources).values():
            font = font.get_object()
            if not isinstance(font, DictionaryObject) or font.get("/Subtype") != "/Type0":
                continue
            encoding = _resolved(font, "/Encoding")
            if isinstance(encoding, StreamObject) and (name := _name_for(encoding)) is not None:
                font[NameObject("/Encoding")] = NameObject(name)
                self._own_maps[id(font)] = font

    def judged(self, resources: DictionaryObject, name: Any) -> Judged:
        """Return what is to be known of a font among the resources."""
        font = _resolved(_fonts(resources), name)
        if not isinstance(font, DictionaryObject):
            return _MISSING
        if id(font) not in self._judged:
            self._judged[id(font)] = font, self._judge(font)
        return self._judged[id(font)][1]

    def _judge(self, font: DictionaryObject) -> Judged:
        failure = getattr(font, _FAILURE, None)
        if font.get("/Subtype") != "/Type0":
            return Judged(not _has_map(font) and _is_unmapped_simple(font), failure=failure)
        encoding = _resolved(font, "/Encoding")
        # The codes of a CMap of its own are not even the numbers of glyphs.
        unmapped = id(font) in self._own_maps or _is_unmapped_composite(font)
        codec = PREDEFINED.get(encoding if isinstance(encoding, str) else "", "utf-16-be")
        return Judged(not _has_map(font) and unmapped, codec, failure)


def _built_once(resource: DictionaryObject) -> Font:
    """Return pypdf's font for a resource, which is built once and not for every page and form.

    Where that fails, pypdf has no text of the whole page. So what the font
    says of its widths is left out, which costs some blanks at most, and then
    what it says of its characters, which costs its text: `Judged.failure`.
    """
    built: Font | None = getattr(resource, _BUILT, None)
    if built is None:
        built = _built(resource)
        setattr(resource, _BUILT, built)
    return built


def _built(resource: DictionaryObject) -> Font:
    try:
        return _build(resource)
    except Exception as error:
        raise_if_out_of_memory(error)
        failure = error
    with contextlib.suppress(Exception):
        return _build(_without(resource, _WIDTHS))
    setattr(resource, _FAILURE, failure)
    return _build(_without(resource, (*_WIDTHS, *_CHARACTERS)))


def _without(resource: DictionaryObject, keys: Iterable[str]) -> DictionaryObject:
    copy = DictionaryObject()
    copy.update((key, value) for key, value in dict.items(resource) if key not in keys)
    return copy


_build = Font.from_font_resource
_BUILT, _FAILURE = "_pdfpool_built", "_pdfpool_failure"
_WIDTHS = ("/Widths", "/DescendantFonts", "/FontDescriptor")
_CHARACTERS = ("/ToUnicode", "/Encoding", "/Subtype", "/BaseFont")

REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (_cmap, "_predefined_cmap", {**_cmap._predefined_cmap, **PREDEFINED}),
    (Font, "from_font_resource", staticmethod(_built_once)),
)
"""The private parts of pypdf that are replaced: whose, their name, and by what."""


def _name_for(cmap: StreamObject) -> str | None:
    base = cmap.get("/UseCMap")
    if isinstance(base, NameObject) and base in PREDEFINED:
        return base
    return "/Identity-H" if _TWO_BYTES.search(cmap.get_data()) else None


def _resolved(holder: DictionaryObject, key: Any) -> Any:
    value = holder.get(key)
    return None if value is None else value.get_object()


def _fonts(resources: DictionaryObject) -> DictionaryObject:
    fonts = _resolved(resources, "/Font")
    return fonts if isinstance(fonts, DictionaryObject) else DictionaryObject()


def _has_map(font: DictionaryObject) -> bool:
    found = _resolved(font, "/ToUnicode")
    if isinstance(found, StreamObject):
        try:
            return b"beginbf" in found.get_data()
        except Exception as error:
            raise_if_out_of_memory(error)
            return False
    return isinstance(found, NameObject)


def _is_unmapped_composite(font: DictionaryObject) -> bool:
    encoding = _resolved(font, "/Encoding")
    if not isinstance(encoding, NameObject):
        return True
    if encoding not in _IDENTITY:
        return encoding not in PREDEFINED
    return _ordering(font) not in _UNICODE_ORDERINGS


def _ordering(font: DictionaryObject) -> Any:
    """Return the name of the character collection that the font's glyphs are numbered in."""
    value: Any = font
    for key in ("/DescendantFonts", 0, "/CIDSystemInfo", "/Ordering"):
        try:
            value = value[key].get_object()
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _is_unmapped_simple(font: DictionaryObject) -> bool:
    """Whether all glyphs have names like ``/g12``, which are no characters' names."""
    encoding = _resolved(font, "/Encoding")
    if not isinstance(encoding, DictionaryObject):
        return False
    differences = _resolved(encoding, "/Differences")
    if not isinstance(differences, ArrayObject):
        return False
    names = {name for name in differences if isinstance(name, str)} - {"/.notdef"}
    return bool(names) and not any(map(_names_a_character, names))


_CHARACTER_NAME = re.compile(r"/(uni([0-9A-F]{4})+|u[0-9A-F]{4,6}|[A-Za-z])(\..*)?")


def _names_a_character(name: str) -> bool:
    return name in adobe_glyphs or _CHARACTER_NAME.fullmatch(name) is not None
