"""What a document handle gives: plain frozen values, which outlive the handle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from pdfpool_django.errors import ErrorDict


class PageSize(NamedTuple):
    """A page's visible part, in points of 1/72 inch, before it is rotated."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What a page is like."""

    label: str
    """What the document calls the page, like ``iv`` (ISO 32000-2, 12.4.2)."""
    size: PageSize
    rotation: int
    """Degrees by which the page is turned clockwise to be shown: 0, 90, 180 or 270."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture on a page."""

    page: int
    name: str
    """What the page's resources call it, with the ending of its format."""
    format: str | None
    """The format of `data`, like ``png``; ``None`` where there is none."""
    width: int
    """Pixels; 0 where unknown."""
    height: int
    data: bytes = field(repr=False)
    """The picture as a file; empty where it cannot be decoded."""
    error: ErrorDict | None = None
    """Why it could not be decoded, or ``None``."""


@dataclass(frozen=True, slots=True)
class Font:
    """A font that a page uses."""

    name: str
    """The font's PostScript name, as the document gives it."""
    type: str
    """Like ``TrueType`` or ``Type0`` (ISO 32000-2, 9.5)."""
    embedded: bool
    """Whether the document has the font's program in it."""
    maps_to_unicode: bool
    """Whether the document says which characters its codes stand for (``ToUnicode``)."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that the document carries (ISO 32000-2, 7.11.4)."""

    name: str
    """What the document calls it, on one line: no path to write to, as it may hold any."""
    data: bytes = field(repr=False)
    """Its bytes; empty where it cannot be decoded."""
    error: ErrorDict | None = None
    """Why it could not be decoded, or ``None``."""


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """An entry of the document's outline, its bookmarks (ISO 32000-2, 12.3.3)."""

    title: str
    page: int | None
    """The page that it leads to, from 1; ``None`` where it leads elsewhere."""
    level: int
    """How deep it stands, from 0."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the document's author lets others do with it (ISO 32000-2, table 22)."""

    print: bool = True
    modify: bool = True
    copy: bool = True
    annotate: bool = True
    fill_forms: bool = True
    extract_for_accessibility: bool = True
    assemble: bool = True
    print_in_high_quality: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """A place where what was searched for stands."""

    page: int
    start: int
    """Where it begins in the page's text, in characters from 0."""
    end: int
    """Where it ends: the place after its last character."""
    context: str
    """It and the words around it, on one line."""


class Matches(tuple[Match, ...]):  # noqa: SLOT001 - a tuple can have none
    """What a search has found, in the document's order."""

    def __new__(cls, found: Iterable[Match], unread: tuple[int, ...] = ()) -> Self:
        made = super().__new__(cls, found)
        made.unread = unread
        return made

    unread: tuple[int, ...]
    """Pages that were not searched, or not wholly, as they could not be read."""
