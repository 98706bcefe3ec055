"""What is written on top of a page: the values of form fields, and comments in free text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pypdf import PageObject
from pypdf.generic import ArrayObject, DictionaryObject

from pdfpool_django.sandbox.child import raise_if_out_of_memory

# ISO 32000-2, Tables 167, 228, and 231.
_HIDDEN = 1 << 1
_NO_VIEW = 1 << 5
_PASSWORD = 1 << 13
_MAX_ANNOTATIONS = 20_000
_MAX_PARENTS = 32


def values(page: PageObject) -> Iterator[str]:
    """Yield what the annotations write on the page, in their order.

    Those that are hidden and passwords are left out, and so is one that is broken.
    """
    try:
        annotations = page.get("/Annots")
        annotations = None if annotations is None else annotations.get_object()
    except Exception as error:
        raise_if_out_of_memory(error)
        return
    if not isinstance(annotations, ArrayObject):
        return
    for reference in annotations[:_MAX_ANNOTATIONS]:
        try:
            annotation = reference.get_object()
            if isinstance(annotation, DictionaryObject):
                yield from filter(None, _written(annotation))
        except Exception as error:
            raise_if_out_of_memory(error)


def _written(annotation: DictionaryObject) -> list[str]:
    flags = annotation.get("/F", 0)
    if isinstance(flags, int) and flags & (_HIDDEN | _NO_VIEW):
        return []
    kind = annotation.get("/Subtype")
    if kind == "/FreeText":
        return _texts(annotation.get("/Contents"))
    if kind != "/Widget":
        return []
    field = _inherited(annotation, "/FT")
    field_flags = _inherited(annotation, "/Ff")
    if field == "/Tx" and not (isinstance(field_flags, int) and field_flags & _PASSWORD):
        return _texts(_inherited(annotation, "/V"))
    if field == "/Ch":
        return _choices(_texts(_inherited(annotation, "/V")), _inherited(annotation, "/Opt"))
    return []


def _inherited(field: DictionaryObject, key: str) -> Any:
    """Return an entry of a field or of the nearest field around it (ISO 32000-2, 12.7.4)."""
    for _ in range(_MAX_PARENTS):
        if key in field:
            return field[key]
        parent = field.get("/Parent")
        parent = None if parent is None else parent.get_object()
        if not isinstance(parent, DictionaryObject):
            return None
        field = parent
    return None


def _texts(value: Any) -> list[str]:
    """Return the strings that a value is; a long one may be a stream."""
    value = None if value is None else value.get_object()
    if isinstance(value, ArrayObject):
        return [text for each in value for text in _texts(each)]
    if hasattr(value, "get_data"):
        value = value.get_data()
    if isinstance(value, bytes):
        return [value.decode("utf-8", "replace").strip()]
    is_text = isinstance(value, str) and not value.startswith("/")
    return [str(value).strip()] if is_text else []


def _choices(chosen: list[str], options: Any) -> list[str]:
    """Return what the reader sees of the chosen options, which may be stored under short names."""
    shown = {}
    if isinstance(options, ArrayObject):
        for option in options:
            pair = option.get_object()
            if isinstance(pair, ArrayObject) and len(pair) == 2:
                shown[str(pair[0])] = str(pair[1])
    return [shown.get(each, each) for each in chosen]
