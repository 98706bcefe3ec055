"""What a child says of a document, checked and bounded before it is believed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pdfpool_django.documents.values import (
    Attachment,
    Font,
    Image,
    Match,
    OutlineItem,
    PageInfo,
    PageSize,
    Permissions,
)
from pdfpool_django.errors import Crashed, ErrorDict, PdfPoolError, from_data
from pdfpool_django.model import Page, WarningDict
from pdfpool_django.sandbox.wire import Frame
from pdfpool_django.text import clean, clean_line

T = TypeVar("T")

Check = Callable[[dict[str, Any], bytes, "int | None"], T]
"""Makes a value of a part of an answer, its body, and the page that was asked about."""

_MAX_DETAIL = 1000
_MAX_LABEL = 100
_MAX_VALUE = 2000
_MAX_WARNINGS = 50
_MAX_METADATA = 50
_MAX_VERSION = 10
_MAX_NAME = 500
_MAX_CONTEXT = 1000


class Garbled(Exception):
    """A child said what no child of ours says."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a child says of a document that it has opened."""

    page_count: int
    version: str | None
    encrypted: bool
    metadata: dict[str, Any]
    warnings: tuple[WarningDict, ...]


def opened(part: dict[str, Any], max_pages: int) -> Opened:
    """Return what a child says of the document that it has opened.

    Raises:
        Garbled: That makes no sense.
    """
    count, metadata = part.get("page_count"), part.get("metadata")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= max_pages:
        raise Garbled
    if not isinstance(metadata, dict):
        raise Garbled
    warnings = _warnings(part.get("warnings"), None)
    return Opened(
        count,
        _optional_line(part.get("version"), _MAX_VERSION),
        part.get("encrypted") is True,
        _metadata(metadata, warnings),
        tuple(warnings),
    )


def _metadata(values: dict[str, Any], warnings: list[WarningDict]) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for name, value in list(values.items())[:_MAX_METADATA]:
        if isinstance(value, str) and len(value) > _MAX_VALUE:
            detail = f"The metadata's “{clean_line(name, 100)}” was cut at {_MAX_VALUE} characters."
            warnings.append({"code": "metadata_cut", "detail": detail, "page": None})
        plain = value is None or isinstance(value, (bool, int, float))
        if isinstance(value, str):
            checked[clean_line(name, 100)] = clean(value[:_MAX_VALUE])
        elif plain:
            checked[clean_line(name, 100)] = value
    return checked


def page(part: dict[str, Any], body: bytes, number: int) -> tuple[Page, PdfPoolError | None]:
    """Return a page as a child says it, and the error that it has.

    Raises:
        Garbled: That makes no sense, or is another page.
    """
    label = part.get("label")
    if part.get("number") != number or not isinstance(label, str):
        raise Garbled
    try:
        text = clean(body.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise Garbled from error
    failure = _failure(part.get("error"))
    return (
        Page(
            number=number,
            label=clean_line(label, _MAX_LABEL),
            text=text,
            error=None if failure is None else failure.as_error(),
            warnings=tuple(_warnings(part.get("warnings"), number)),
        ),
        failure,
    )


def _failure(data: object) -> PdfPoolError | None:
    if data is None:
        return None
    try:
        error = from_data(data)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as cause:
        raise Garbled from cause
    said = str(error)
    detail = clean_line(said, _MAX_DETAIL)
    return error if detail == said else type(error)("%(detail)s", detail=detail)


def _warnings(found: object, page: int | None) -> list[WarningDict]:
    if not isinstance(found, list):
        raise Garbled
    checked: list[WarningDict] = []
    for each in found[:_MAX_WARNINGS]:
        if not isinstance(each, dict):
            raise Garbled
        code, detail = each.get("code"), each.get("detail")
        if not isinstance(code, str) or not isinstance(detail, str):
            raise Garbled
        checked.append(
            {"code": clean_line(code, 40), "detail": clean_line(detail, _MAX_DETAIL), "page": page}
        )
    return checked


# The values of a handle.


def answer(
    frames: Iterable[Frame], check: Check[T], page: int | None
) -> tuple[tuple[T, ...], tuple[WarningDict, ...]]:
    """Return the values of an answer, and its warnings.

    Raises:
        Crashed: The answer makes no sense.
    """
    values: list[T] = []
    found: list[WarningDict] = []
    try:
        for frame in frames:
            if "warnings" in frame.message:
                found += _warnings(frame.message["warnings"], page)
            else:
                values.append(check(_object(frame.message.get("value")), frame.body, page))
    except (Garbled, KeyError, OverflowError, TypeError, ValueError) as error:
        raise Crashed(reason="its answer made no sense") from error
    return tuple(values), tuple(found)


def only(values: Sequence[T]) -> T:
    """Return the value of an answer that has one.

    Raises:
        Crashed: It has another number of them.
    """
    if len(values) != 1:
        raise Crashed(reason="its answer made no sense")
    return values[0]


def page_info(part: dict[str, Any], _: bytes, __: int | None) -> PageInfo:
    width, height = part["size"]
    size = PageSize(_number(width), _number(height))
    rotation = _whole(part["rotation"])
    if rotation not in (0, 90, 180, 270):
        raise Garbled
    return PageInfo(_line(part["label"], _MAX_LABEL), size, rotation)


def image(part: dict[str, Any], body: bytes, page: int | None) -> Image:
    return Image(
        page=page or 0,
        name=_line(part["name"], _MAX_NAME),
        format=_optional_line(part.get("format"), _MAX_NAME),
        width=_whole(part.get("width", 0)),
        height=_whole(part.get("height", 0)),
        data=body,
        error=_error(part.get("error")),
    )


def font(part: dict[str, Any], _: bytes, __: int | None) -> Font:
    return Font(
        name=_line(part["name"], _MAX_NAME),
        type=_line(part["type"], _MAX_NAME),
        embedded=_flag(part["embedded"]),
        maps_to_unicode=_flag(part["maps_to_unicode"]),
    )


def attachment(part: dict[str, Any], body: bytes, _: int | None) -> Attachment:
    return Attachment(_line(part["name"], _MAX_NAME), body, _error(part.get("error")))


def outline_item(part: dict[str, Any], _: bytes, __: int | None, *, page_count: int) -> OutlineItem:
    number = None if part["page"] is None else _whole(part["page"])
    if number is not None and not 1 <= number <= page_count:
        raise Garbled
    return OutlineItem(_line(part["title"], _MAX_NAME), number, _whole(part["level"]))


def permissions(part: dict[str, Any], _: bytes, __: int | None) -> Permissions:
    if part.keys() != {field.name for field in dataclasses.fields(Permissions)}:
        raise Garbled
    return Permissions(**{name: _flag(granted) for name, granted in part.items()})


def match(part: dict[str, Any], _: bytes, __: int | None, *, pages: Collection[int]) -> Match:
    number, start, end = _whole(part["page"]), _whole(part["start"]), _whole(part["end"])
    if number not in pages or start >= end:
        raise Garbled
    return Match(number, start, end, _line(part["context"], _MAX_CONTEXT))


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Garbled
    return value


def _line(value: object, limit: int) -> str:
    if not isinstance(value, str):
        raise Garbled
    return clean_line(value, limit)


def _optional_line(value: object, limit: int) -> str | None:
    return None if value is None else _line(value, limit)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Garbled
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Garbled
    if not math.isfinite(value):
        raise Garbled
    return float(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Garbled
    return value


def _error(data: object) -> ErrorDict | None:
    failure = _failure(data)
    return None if failure is None else failure.as_error()
