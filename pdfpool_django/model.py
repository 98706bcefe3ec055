"""The frozen values that everything else speaks: requests, limits, pages, results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pdfpool_django.errors import ErrorDict, InvalidRequest, PageOutOfRange

SHAPE_VERSION = 1
"""Version of the shape that `Page.as_dict` and `Extraction.as_dict` give."""

MIB = 1024 * 1024

_MAX_PAGE_NUMBER = 2**31 - 1
_MAX_PAGES_TEXT = 10_000
_PAGES_ITEM = re.compile(r"\s*([0-9]{1,10})\s*(?:(-)\s*([0-9]{1,10})?\s*)?", re.ASCII)


class WarningDict(TypedDict):
    """Something that was noticed and did not stop the reading."""

    code: str
    detail: str
    page: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may cost. Times in seconds, sizes in bytes."""

    deadline: float = 60
    """The whole job: opening, every page, and fresh children after a loss."""
    page_deadline: float = 20
    """One page."""
    memory: int = 384 * MIB
    """Address space of one child."""
    max_pages: int = 5000
    """Pages that a document may have."""
    max_output: int = 64 * MIB
    """All text that is kept, in bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class PageRange:
    """Pages `first` to `last`, both included; ``last=None`` means to the end."""

    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Which pages to read, before the document's page count is known."""

    ranges: tuple[PageRange, ...]

    @classmethod
    def parse(cls, pages: str | int | Iterable[int] | PageSelection | None) -> PageSelection | None:
        """Return the selection that `pages` asks for; ``None`` means every page.

        Args:
            pages: ``"1-3,7"``, ``"5-"`` (to the end), a number, or an iterable
                of numbers. An empty string is every page, as an empty form
                field is.

        Raises:
            InvalidRequest: It is none of these, or names page 0 or a range
                that runs backwards.
        """
        if pages is None or isinstance(pages, PageSelection):
            return pages
        if isinstance(pages, str):
            return cls._parse_text(pages)
        if isinstance(pages, int) and not isinstance(pages, bool):
            pages = [pages]
        try:
            numbers = [cls._number(page) for page in pages]  # type: ignore[union-attr]
        except TypeError:
            raise InvalidRequest(
                "Pages must be given as text like “1-3,7”, a number, or several numbers."
            ) from None
        if not numbers:
            raise InvalidRequest("No page was asked for; name at least one.")
        return cls(_merged((number, number) for number in numbers))

    @classmethod
    def _parse_text(cls, text: str) -> PageSelection | None:
        if not text.strip():
            return None
        if len(text) > _MAX_PAGES_TEXT:
            raise InvalidRequest(
                "The page range is longer than %(limit)d characters; shorten it.",
                limit=_MAX_PAGES_TEXT,
            )
        return cls(_merged(cls._parse_item(item) for item in text.split(",")))

    @classmethod
    def _parse_item(cls, item: str) -> tuple[int, int | None]:
        match = _PAGES_ITEM.fullmatch(item)
        if match is None:
            raise InvalidRequest(
                "“%(item)s” is not a page range; write one like “1-3,7” or “5-”.",
                item=item.strip()[:40],
            )
        first = cls._number(int(match[1]))
        if match[2] is None:
            return first, first
        last = None if match[3] is None else cls._number(int(match[3]))
        if last is not None and last < first:
            raise InvalidRequest(
                "The page range %(first)d-%(last)d runs backwards; write the smaller number first.",
                first=first,
                last=last,
            )
        return first, last

    @staticmethod
    def _number(page: object) -> int:
        if isinstance(page, bool) or not isinstance(page, int):
            raise TypeError
        if not 1 <= page <= _MAX_PAGE_NUMBER:
            raise InvalidRequest(
                "There is no page %(page)s; pages are numbered from 1.", page=str(page)[:20]
            )
        return page

    def numbers(self, page_count: int) -> Sequence[range]:
        """Return the selected pages of a document with `page_count` pages, as ranges.

        Raises:
            PageOutOfRange: A page beyond the end is asked for.
        """
        chosen = []
        for part in self.ranges:
            last = page_count if part.last is None else part.last
            beyond = max(part.first, last)
            if beyond > page_count and part != PageRange(1, None):  # a document may have none
                raise PageOutOfRange(page=beyond, page_count=page_count)
            chosen.append(range(part.first, last + 1))
        return chosen

    def as_text(self) -> str:
        """Return the selection in its one canonical spelling: sorted, without overlaps."""
        return ",".join(_range_text(part) for part in self.ranges)


EVERY_PAGE = PageSelection((PageRange(1, None),))


def _range_text(part: PageRange) -> str:
    if part.last is None:
        return f"{part.first}-"
    return str(part.first) if part.first == part.last else f"{part.first}-{part.last}"


def _merged(parts: Iterable[tuple[int, int | None]]) -> tuple[PageRange, ...]:
    """Return the ranges in order, joined where they touch: two spellings of one wish are one."""
    merged: list[PageRange] = []
    for first, last in sorted(parts, key=lambda part: part[0]):
        before = merged[-1] if merged else None
        if before is None or (before.last is not None and first > before.last + 1):
            merged.append(PageRange(first, last))
        elif before.last is not None:
            merged[-1] = PageRange(before.first, None if last is None else max(before.last, last))
    return tuple(merged)


@dataclass(frozen=True, slots=True)
class Request:
    """What to read, for whom, as data that can travel; the document's bytes go beside it."""

    key: str
    """What identical requests have in common."""
    caller: str
    """Who asks."""
    sha256: str
    """The document's SHA-256, as 64 hexadecimal digits."""
    pages: PageSelection | None = None
    """Which pages; ``None`` for all."""
    password: str | None = field(default=None, repr=False)
    """The document's password."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What to open, for whom; the document's bytes go beside it."""

    caller: str
    """Who asks."""
    source: str
    """What to call the document in the log."""
    password: str | None = field(default=None, repr=False)
    """The document's password."""
    workers: int = 2
    """Reads at a time."""


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What is known of a document once it is open: the first event of a run."""

    sha256: str
    engine: str
    """Name and version of the library that reads it, like ``pypdf 7.1.1``."""
    page_count: int
    """Pages of the whole document."""
    selected: int
    """Pages that this request asks for."""
    metadata: dict[str, Any]

    def as_event(self) -> dict[str, Any]:
        """Return the event as a line of JSON has it."""
        return {
            "type": "document",
            "sha256": self.sha256,
            "engine": self.engine,
            "page_count": self.page_count,
            "selected": self.selected,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class Page:
    """One page's text, or why there is none."""

    number: int
    """The page's place in the document, from 1."""
    label: str
    """What the document calls the page, like ``iv`` (ISO 32000-2, 12.4.2)."""
    text: str
    error: ErrorDict | None = None
    """``None``, or the code and the sentence that say why the page could not be read."""
    warnings: tuple[WarningDict, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the page as JSON has it."""
        return {
            "number": self.number,
            "label": self.label,
            "text": self.text,
            "error": self.error,
            "warnings": list(self.warnings),
        }

    def as_event(self) -> dict[str, Any]:
        """Return the event as a line of JSON has it."""
        return {"type": "page", **self.as_dict()}


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of reading one document."""

    sha256: str
    """The document's SHA-256, as 64 hexadecimal digits."""
    engine: str
    """Name and version of the library that read it."""
    page_count: int
    """Pages of the whole document, read or not."""
    pages: tuple[Page, ...]
    """The pages asked for, in the document's order."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Title, author and the like, as plain values; dates in ISO 8601."""
    warnings: tuple[WarningDict, ...] = ()
    """Warnings about the document as a whole; a page's own are on the page."""
    complete: bool = True
    """Whether every page asked for was read without an error."""
    error: ErrorDict | None = None
    """What stopped the reading before its end, or ``None``."""
    elapsed: float = 0.0
    """Seconds from the start of the job to its end, without the wait for a slot."""

    @property
    def text(self) -> str:
        """The text of all pages, joined by form feeds."""
        return "\f".join(page.text for page in self.pages)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON has it; its ``version`` changes when the shape does."""
        return {
            "version": SHAPE_VERSION,
            "sha256": self.sha256,
            "engine": self.engine,
            "page_count": self.page_count,
            "pages": [page.as_dict() for page in self.pages],
            "metadata": dict(self.metadata),
            "warnings": list(self.warnings),
            "complete": self.complete,
            "error": self.error,
            "elapsed": self.elapsed,
        }

    def as_event(self) -> dict[str, Any]:
        """Return the end of a run as a line of JSON has it; its pages came before."""
        end = self.as_dict()
        del end["pages"]
        return {"type": "end", **end}


Event = DocumentInfo | Page
"""What a run publishes while it goes on."""
