"""What a PDF library must offer, and the calls that a child answers with it."""

from __future__ import annotations

import io
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pdfpool_django.engines.searching import search
from pdfpool_django.errors import InvalidPdf, MemoryExceeded, PdfPoolError, Unsupported
from pdfpool_django.sandbox.child import Answer, describe, raise_if_out_of_memory

MAX_WARNINGS = 20
"""Warnings kept of one call; the rest is counted."""

MAX_DETAIL = 300
"""Characters kept of one warning or reason."""


Remark = tuple[str, str]
"""The code of a warning, and its sentence."""


class TextLost(Exception):
    """Some of a page's text could not be read.

    Args:
        text: What could be read.
        reason: What the rest was lost to.
    """

    def __init__(self, text: str, reason: Exception) -> None:
        super().__init__("some of the text could not be read")
        self.text = text
        self.reason = reason


class OpenDocument(ABC):
    """A document that the engine has opened."""

    @property
    @abstractmethod
    def page_count(self) -> int:
        """Pages of the document."""

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Return title, author and the like, as plain values."""

    @abstractmethod
    def label(self, number: int) -> str:
        """Return what the document calls the page."""

    @abstractmethod
    def text(self, number: int) -> str:
        """Return the page's text, as the library gives it."""

    def shown_text(self, number: int) -> str:
        """Return the text that the page shows, whatever the document gives in its place."""
        return self.text(number)

    @property
    def version(self) -> str | None:
        """The version of PDF that the document says it has, like ``1.7``."""
        return None

    @property
    def encrypted(self) -> bool:
        """Whether the document is encrypted, with a password or without."""
        return False

    def size(self, number: int) -> tuple[float, float]:  # noqa: ARG002
        """Return width and height of the page's visible part, in points."""
        raise _not_offered("the size of a page")

    def rotation(self, number: int) -> int:  # noqa: ARG002
        """Return the degrees by which the page is turned clockwise."""
        return 0

    def images(self, number: int) -> Iterator[tuple[dict[str, Any], bytes]]:  # noqa: ARG002
        """Yield each picture: ``name``, ``format``, ``width``, ``height``, ``error``; its data."""
        raise _not_offered("the pictures of a page")

    def fonts(self, number: int) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        """Yield each font: its ``name``, ``type``, ``embedded``, ``maps_to_unicode``."""
        raise _not_offered("the fonts of a page")

    def outline(self) -> Iterator[dict[str, Any]]:
        """Yield the outline's items, each its ``title``, ``page`` and ``level``."""
        raise _not_offered("the outline")

    def attachments(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield each attached file: its ``name``, perhaps an ``error``; and its data."""
        raise _not_offered("attachments")

    def permissions(self) -> dict[str, bool]:
        """Return what the document's author allows, by the names of `Permissions`."""
        raise _not_offered("permissions")

    def remarks(self) -> Iterator[Remark]:
        """Yield what is to be said of the document as a whole."""
        return iter(())

    def page_remarks(self, number: int, text: str) -> Iterator[Remark]:  # noqa: ARG002
        """Yield what is to be said of a page that has just been read, with this text."""
        return iter(())


class Engine(ABC):
    """An adapter of one PDF library. Its module has an instance named ``engine``."""

    identity: str
    """Name and version of the library."""

    loggers: tuple[str, ...] = ()
    """Names of the loggers through which the library warns."""

    def warm(self) -> None:
        """Load, before the first fork, whatever a document may need."""

    def warm_images(self) -> None:
        """Load what decodes pictures, too, where it is installed."""

    def rehearse(self) -> None:
        """In a child, before its document comes: touch what will be touched."""

    @abstractmethod
    def open(self, file: io.BufferedIOBase, password: str | None, max_pages: int) -> OpenDocument:
        """Open a document.

        Raises:
            PdfPoolError: It cannot be opened, and why.
            Exception: Anything else, which `error` then judges.
        """

    def error(self, error: Exception) -> PdfPoolError:
        """Return what an exception of the library says of the document."""
        if isinstance(error, PdfPoolError):
            return error
        return InvalidPdf(reason=describe(error)[:MAX_DETAIL])

    def loss(self, record: logging.LogRecord) -> PdfPoolError | None:  # noqa: ARG002
        """Return the error, if a log record says that text was left out."""
        return None

    def session(self) -> Session:
        """Return a new session, for one document."""
        return Session(self)


class Session:
    """The calls about one open document, on the child's side."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._document: OpenDocument | None = None
        self._calls: dict[str, Callable[..., Answer]] = {
            "open": self._open_and_read,
            "pages": self._pages,
            "page_info": self._page_info,
            "images": self._images,
            "fonts": self._fonts,
            "outline": self._outline,
            "attachments": self._attachments,
            "permissions": self._permissions,
            "search": self._search,
        }

    def handle(
        self, call: str, arguments: dict[str, Any], file: io.BufferedIOBase | None
    ) -> Answer:
        """Yield the parts of the answer to `call`, each with its body."""
        return self._calls[call](file=file, **arguments)

    def _open_and_read(self, ahead: list[list[int | None]] | None = None, **opening: Any) -> Answer:
        """Open the document; go on with the pages that the web process will ask for anyway.

        A range without an end goes to the document's. Where one is beyond it,
        no page is read: the web process, which is told the count, will say so.
        """
        yield from self._open(**opening)
        if ahead:
            count = self._opened.page_count
            ranges = [[first or 1, last or count] for first, last in ahead]
            if all(bounds[1] <= count for bounds in ranges):
                yield from self._pages(file=None, ranges=ranges)

    def _open(self, file: io.BufferedIOBase | None, password: str | None, max_pages: int) -> Answer:
        if file is None:
            raise InvalidPdf(reason="there is no file")
        with _Captured(self._engine) as captured:
            try:
                self._document = self._engine.open(file, password, max_pages)
                page_count = self._document.page_count
            except Exception as error:
                raise self._judged(error) from error
            metadata = self._metadata(captured)
            captured.remark(self._opened.remarks)
            about = {"version": self._opened.version, "encrypted": self._opened.encrypted}
        opened = {"page_count": page_count, "metadata": metadata, **about}
        yield {**opened, "warnings": captured.warnings()}, b""

    def _metadata(self, captured: _Captured) -> dict[str, Any]:
        """Return the metadata; a file without sound ones is still one with text."""
        try:
            return self._opened.metadata()
        except Exception as error:
            raise_if_out_of_memory(error)
            captured.add("metadata", f"The metadata cannot be read ({describe(error)}).")
            return {}

    @property
    def _opened(self) -> OpenDocument:
        if self._document is None:
            raise InvalidPdf(reason="it has not been opened")
        return self._document

    def _pages(
        self,
        file: io.BufferedIOBase | None,  # noqa: ARG002
        ranges: list[list[int]],
        actual_text: bool = True,
    ) -> Answer:
        for first, last in ranges:
            for number in range(first, last + 1):
                yield self._page(number, actual_text)

    # The calls of a handle: each answers in parts, the last of which has the call's warnings.

    def _page_info(self, number: int, **_: Any) -> Answer:
        def produce(document: OpenDocument) -> Answer:
            info = {"size": document.size(number), "rotation": document.rotation(number)}
            yield {**info, "label": self._label(number)}, b""

        return self._answered(produce)

    def _images(self, number: int, **_: Any) -> Answer:
        return self._answered(lambda document: document.images(number))

    def _fonts(self, number: int, **_: Any) -> Answer:
        return self._answered(lambda document: ((font, b"") for font in document.fonts(number)))

    def _outline(self, **_: Any) -> Answer:
        return self._answered(lambda document: ((item, b"") for item in document.outline()))

    def _attachments(self, **_: Any) -> Answer:
        return self._answered(lambda document: document.attachments())

    def _permissions(self, **_: Any) -> Answer:
        return self._answered(lambda document: iter([(document.permissions(), b"")]))

    def _search(self, file: io.BufferedIOBase, **query: Any) -> Answer:
        return self._answered(lambda _: search(file, **query))

    def _answered(self, produce: Callable[[OpenDocument], Answer]) -> Answer:
        with _Captured(self._engine) as captured:
            try:
                for part, body in produce(self._opened):
                    yield {"value": part}, body
            except Exception as error:
                raise self._judged(error) from error
        yield {"warnings": captured.warnings()}, b""

    def _page(self, number: int, actual_text: bool = True) -> tuple[dict[str, Any], bytes]:
        text, error = "", None
        with _Captured(self._engine) as captured:
            try:
                read = self._opened.text if actual_text else self._opened.shown_text
                text = read(number)
            except TextLost as lost:
                text, error = lost.text, self._judged(lost.reason)
            except Exception as caught:
                error = self._judged(caught)
            label = self._label(number)
            if error is None:
                captured.remark(lambda: self._opened.page_remarks(number, text))
        error = error or captured.loss
        answer = {
            "number": number,
            "label": label,
            "error": None if error is None else error.as_data(),
            "warnings": captured.warnings(),
        }
        return answer, text.encode("utf-8", "surrogatepass")

    def _label(self, number: int) -> str:
        try:
            return self._opened.label(number)
        except Exception as error:
            raise_if_out_of_memory(error)
            return str(number)

    def _judged(self, error: Exception) -> PdfPoolError:
        """Return what the exception means, or raise it where it is about memory."""
        raise_if_out_of_memory(error)
        return self._engine.error(error)


class _Captured(logging.Handler):
    """Collects what an engine logs during one call: bounded, and without repetitions."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(logging.WARNING)
        self._engine = engine
        self._warnings: dict[tuple[str, str], None] = {}
        self._dropped = 0
        self.loss: PdfPoolError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        loss = self._engine.loss(record)
        if loss is not None:
            self.loss = self.loss or loss
            return
        if len(self._warnings) >= MAX_WARNINGS:
            # Formatting may cost more than reading; past the bound it is only counted.
            self._dropped += 1
            return
        try:
            text = record.getMessage()
        except MemoryError:
            raise
        except Exception as error:  # its broken log call is no broken page
            text = describe(error)
        self.add("engine", text)

    def add(self, code: str, detail: str) -> None:
        self._warnings[code, detail[:MAX_DETAIL]] = None

    def remark(self, remarks: Callable[[], Iterable[Remark]]) -> None:
        """Add what is to be said, if the library can say it: it is no part of the text."""
        try:
            for code, detail in remarks():
                self.add(code, detail)
        except Exception as error:
            raise_if_out_of_memory(error)

    def warnings(self) -> list[dict[str, str]]:
        found = [{"code": code, "detail": detail} for code, detail in self._warnings]
        if self._dropped:
            found.append({"code": "engine", "detail": f"{self._dropped} more warnings."})
        return found

    def __enter__(self) -> _Captured:
        for logger in self._loggers():
            logger.addHandler(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for logger in self._loggers():
            logger.removeHandler(self)

    def _loggers(self) -> Iterator[logging.Logger]:
        return (logging.getLogger(name) for name in self._engine.loggers)


def _not_offered(what: str) -> Unsupported:
    return Unsupported(reason=f"the engine does not give {what}")


def limit_reached(reason: str) -> MemoryExceeded:
    """Return the error for a limit of the library's own."""
    return MemoryExceeded(
        "Reading would take more than the library allows (%(reason)s). Save the file again "
        "in a simpler form, or leave out the page that needs it.",
        reason=reason[:MAX_DETAIL],
    )
