"""A page of an open document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdfpool_django.documents import claims
from pdfpool_django.documents.session import Session
from pdfpool_django.documents.values import Font, Image, PageInfo, PageSize
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.model import Page

if TYPE_CHECKING:
    from pdfpool_django.documents.handle import Document


class DocumentPage:
    """A page of an open document. Its methods are shared reads; `number` is from 1."""

    __slots__ = ("_document", "number")

    def __init__(self, document: Document, number: int) -> None:
        self._document = document
        self.number = number

    def text(self, *, actual_text: bool = True) -> str:
        """Return the page's text.

        Args:
            actual_text: Whether a text that the document gives in place of
                what it shows is used (ISO 32000-2, 14.9.4).

        Raises:
            PdfPoolError: The page cannot be read, the document is locked, or
                the handle closed.
        """
        return self.read(actual_text=actual_text).text

    def read(self, *, actual_text: bool = True, errors: str = "raise") -> Page:
        """Return the page's text with its label, and the warnings of this very call.

        Args:
            actual_text: As for `text`.
            errors: ``"keep"`` to return a page that cannot be read as one with
                an error, instead of raising that.
        """
        ranges = [range(self.number, self.number + 1)]

        def work(session: Session) -> tuple[Page, PdfPoolError | None]:
            (page,) = session.pages(ranges, actual_text=actual_text)
            return page, session.budget.error or session.budget.first_failure

        page, failure = self._document._read(work)
        self._document._report(page.warnings, self.number)
        if failure is not None and errors == "raise":
            raise failure
        return page

    def images(self) -> tuple[Image, ...]:
        """Return the pictures on the page; one that cannot be decoded has an `error`.

        Most need Pillow: ``pip install pdfpool-django[images]``.
        """
        return self._document._ask("images", claims.image, self.number)

    def fonts(self) -> tuple[Font, ...]:
        """Return the fonts that the page uses."""
        return self._document._ask("fonts", claims.font, self.number)

    @property
    def label(self) -> str:
        """What the document calls the page, like ``iv`` (ISO 32000-2, 12.4.2)."""
        return self._info.label

    @property
    def size(self) -> PageSize:
        """Width and height of its visible part, in points of 1/72 inch, before it is rotated."""
        return self._info.size

    @property
    def rotation(self) -> int:
        """Degrees by which it is turned clockwise to be shown: 0, 90, 180 or 270."""
        return self._info.rotation

    @property
    def _info(self) -> PageInfo:
        known = self._document._infos
        if self.number not in known:
            found = self._document._ask("page_info", claims.page_info, self.number)
            known[self.number] = claims.only(found)
        return known[self.number]

    def __repr__(self) -> str:
        return f"<DocumentPage {self.number} of {self._document.source!r}>"
