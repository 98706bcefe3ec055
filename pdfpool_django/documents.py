"""Reading one document by way of children, and going on with a fresh one when one is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pdfpool_django.errors import (
    Crashed,
    DeadlineExceeded,
    ErrorDict,
    MemoryExceeded,
    OutputTooLarge,
    PdfPoolError,
    Unavailable,
    from_data,
)
from pdfpool_django.model import (
    EVERY_PAGE,
    DocumentInfo,
    Event,
    Extraction,
    Limits,
    Page,
    PageSelection,
    WarningDict,
)
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.sandbox.host import Child, ChildLost, Sandbox
from pdfpool_django.text import clean, clean_line

MAX_LOST_PAGES = 3
"""Pages that may cost a child each before the rest is not attempted."""

_MAX_LOST_LAUNCHERS = 2
_MAX_DETAIL = 1000
_MAX_LABEL = 100
_MAX_VALUE = 2000
_MAX_WARNINGS = 50
_MAX_METADATA = 50

NOT_ATTEMPTED: ErrorDict = {
    "code": "not_attempted",
    "detail": "The page was not read, as the reading had been stopped before it.",
}


class Stopped(Exception):
    """The session was stopped by `Session.stop`: nobody waits for it any more."""


class _Garbled(Exception):
    """A child said what no child of ours says."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a child says of a document that it has opened."""

    page_count: int
    metadata: dict[str, Any]
    warnings: tuple[WarningDict, ...]


class Session:
    """The calls about one open document; a child that is lost is replaced.

    Only `stop` may be called from another thread.

    Args:
        sandbox: Where the children come from.
        document: The document; it stays the caller's to close.
        password: Its password, if there is one.
        limits: What it may cost; the time runs from now on.
    """

    def __init__(
        self, sandbox: Sandbox, document: Descriptor, password: str | None, limits: Limits
    ) -> None:
        self._sandbox = sandbox
        self._document = document
        self._password = password
        self._limits = limits
        self.started = time.monotonic()
        self._deadline = self.started + limits.deadline
        self._swap = threading.Lock()
        self._stopped = False
        self._child: Child | None = None
        self._reading_ahead = False
        self._kept = 0
        self._lost_pages = 0
        self._lost_launchers = 0
        self.error: PdfPoolError | None = None
        """What stopped the reading of pages before their end."""
        self.first_failure: PdfPoolError | None = None
        """Why the first page that failed did so."""

    def open(self, ahead: PageSelection | None = None) -> Opened:
        """Open the document, in a child that stays at hand for the next call.

        Args:
            ahead: Pages that `pages` will be asked for next: the child goes on
                with them at once, which saves a round trip.

        Raises:
            PdfPoolError: It cannot be opened.
            Stopped: The session was stopped.
        """
        tried = 0
        while True:
            tried += 1
            try:
                return self._open(ahead)
            except ChildLost as lost:
                self._drop_child()
                error = self._judge(lost, self._limits.deadline)
                # A standby may be killed in the very moment in which it is given out.
                if error is not None and not (lost.killed and tried == 1):
                    raise error from lost

    def pages(self, ranges: Sequence[range]) -> Iterator[Page]:
        """Yield the pages of the ranges, in order: each with its text, or with its error.

        A page that costs its child is one with an error, and a fresh child
        goes on with the next. When the reading stops early, `error` says why,
        and the rest is marked ``not_attempted``.

        Raises:
            Stopped: The session was stopped.
        """
        remaining = _Remaining(ranges)
        while remaining and self.error is None:
            read_before = remaining.done
            page = None
            try:
                yield from self._pages_from_one_child(remaining)
            except ChildLost as lost:
                self._drop_child()
                if remaining:  # else it has said all, and only not that this is all
                    alone = remaining.done == read_before
                    page = self._after_loss(lost, remaining.first, alone)
            except PdfPoolError as error:
                self.error = error
            if page is not None:
                remaining.advance()
                yield page
        for number in remaining:
            yield Page(number, str(number), "", NOT_ATTEMPTED)

    def stop(self) -> None:
        """End the session, whatever it does; its thread gets `Stopped`."""
        with self._swap:
            self._stopped = True
            if self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """End the child, if there is one."""
        self._drop_child()

    def _open(self, ahead: PageSelection | None = None) -> Opened:
        child = self._new_child()
        arguments = {
            "password": self._password,
            "max_pages": self._limits.max_pages,
            "ahead": ahead and [(part.first, part.last) for part in ahead.ranges],
        }
        child.ask("open", arguments, self._deadline, [self._document.fd])
        frame = child.receive(self._deadline, 0)
        self._reading_ahead = ahead is not None
        if frame is None or not (self._reading_ahead or child.receive(self._deadline, 0) is None):
            raise self._garbled()
        try:
            return _opened(frame.message, self._limits.max_pages)
        except _Garbled as error:
            raise self._garbled() from error

    def _new_child(self) -> Child:
        child = self._sandbox.child(self._deadline)
        with self._swap:
            self._child = child
            if self._stopped:
                child.kill()
        return child

    def _drop_child(self) -> None:
        with self._swap:
            child, self._child = self._child, None
        if child is not None:
            self._sandbox.release(child)

    def _pages_from_one_child(self, remaining: _Remaining) -> Iterator[Page]:
        if self._child is None:
            self._open()
        child = self._child
        if child is None:
            raise Stopped
        if not self._reading_ahead:
            child.ask("pages", {"ranges": remaining.as_ranges()}, self._deadline)
        self._reading_ahead = False
        while remaining:
            deadline = min(self._deadline, time.monotonic() + self._limits.page_deadline)
            frame = child.receive(deadline, self._limits.max_output - self._kept)
            if frame is None:
                raise self._garbled()
            page = self._checked_page(frame.message, frame.body, remaining.first)
            remaining.advance()
            yield page
        if child.receive(self._deadline, 0) is not None:
            raise self._garbled()

    def _checked_page(self, part: dict[str, Any], body: bytes, number: int) -> Page:
        try:
            page, failure = _page(part, body, number)
        except _Garbled as error:
            raise self._garbled() from error
        self._kept += len(body) + sum(len(warning["detail"]) for warning in page.warnings)
        if self._kept > self._limits.max_output:
            raise OutputTooLarge(limit=self._limits.max_output)
        self.first_failure = self.first_failure or failure
        return page

    def _garbled(self) -> ChildLost:
        return ChildLost(Crashed(reason="its answer made no sense"))

    def _after_loss(self, lost: ChildLost, number: int, alone: bool) -> Page | None:
        """Return the page that cost a child, or ``None`` where it is to be tried once more."""
        try:
            error = self._judge(lost, self._limits.page_deadline)
        except Unavailable as unavailable:
            self.error = unavailable
            return None
        if error is None:
            return None
        if isinstance(error, (MemoryExceeded, Crashed)) and not alone:
            # The pages before it may have piled up what it is blamed for.
            return None
        self.first_failure = self.first_failure or error
        self._lost_pages += 1
        final = isinstance(error, OutputTooLarge) or time.monotonic() >= self._deadline
        if final or self._lost_pages >= MAX_LOST_PAGES:
            self.error = error
        return Page(number, str(number), "", error.as_error())

    def _judge(self, lost: ChildLost, seconds: float) -> PdfPoolError | None:
        """Return what a loss says of the document; ``None`` where it says nothing.

        Raises:
            Stopped: The loss was ours.
            Unavailable: Children are lost again and again without the document's doing.
        """
        if self._stopped:
            raise Stopped
        if lost.error is None:
            self._lost_launchers += 1
            if self._lost_launchers > _MAX_LOST_LAUNCHERS:
                raise Unavailable
            return None
        if isinstance(lost.error, DeadlineExceeded):
            late = time.monotonic() >= self._deadline
            return DeadlineExceeded(seconds=self._limits.deadline if late else seconds)
        if isinstance(lost.error, OutputTooLarge):
            return OutputTooLarge(limit=self._limits.max_output)
        return lost.error


class _Remaining:
    """The pages of some ranges that have not been read yet."""

    def __init__(self, ranges: Sequence[range]) -> None:
        self._ranges = [part for part in ranges if part]
        self.done = 0

    def __bool__(self) -> bool:
        return bool(self._ranges)

    @property
    def first(self) -> int:
        return self._ranges[0].start

    def advance(self) -> None:
        self.done += 1
        rest = self._ranges[0][1:]
        if rest:
            self._ranges[0] = rest
        else:
            del self._ranges[0]

    def as_ranges(self) -> list[tuple[int, int]]:
        return [(part.start, part.stop - 1) for part in self._ranges]

    def __iter__(self) -> Iterator[int]:
        for part in self._ranges:
            yield from part


def read(
    session: Session,
    selection: PageSelection | None,
    sha256: str,
    engine: Callable[[], str],
    publish: Callable[[Event], None],
) -> Extraction:
    """Read the selected pages of a document, and publish each as it comes.

    Args:
        session: The session, not yet opened.
        selection: Which pages; ``None`` for all.
        sha256: The document's SHA-256, for the result.
        engine: Tells the engine's name and version, once a child has been used.
        publish: Takes the `DocumentInfo` first, then each `Page`.

    Raises:
        PdfPoolError: No page could be read; the first failure says why.
        Stopped: The session was stopped.
    """
    selection = selection or EVERY_PAGE
    opened = session.open(ahead=selection)
    ranges = selection.numbers(opened.page_count)
    selected = sum(len(part) for part in ranges)
    info = DocumentInfo(sha256, engine(), opened.page_count, selected, opened.metadata)
    publish(info)
    pages = []
    for page in session.pages(ranges):
        publish(page)
        pages.append(page)
    failure = session.error or session.first_failure
    if failure is not None and not any(page.error is None or page.text for page in pages):
        raise failure
    return Extraction(
        sha256=sha256,
        engine=info.engine,
        page_count=opened.page_count,
        pages=tuple(pages),
        metadata=opened.metadata,
        warnings=opened.warnings,
        complete=session.error is None and all(page.error is None for page in pages),
        error=None if session.error is None else session.error.as_error(),
        elapsed=time.monotonic() - session.started,
    )


# What a child says is checked here, before it is believed.


def _opened(part: dict[str, Any], max_pages: int) -> Opened:
    count, metadata = part.get("page_count"), part.get("metadata")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= max_pages:
        raise _Garbled
    if not isinstance(metadata, dict):
        raise _Garbled
    warnings = _warnings(part.get("warnings"), None)
    return Opened(count, _metadata(metadata, warnings), tuple(warnings))


def _metadata(values: dict[str, Any], warnings: list[WarningDict]) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for name, value in list(values.items())[:_MAX_METADATA]:
        if isinstance(value, str) and len(value) >= _MAX_VALUE:
            detail = f"The metadata's “{clean_line(name, 100)}” was cut at {_MAX_VALUE} characters."
            warnings.append({"code": "metadata_cut", "detail": detail, "page": None})
        plain = value is None or isinstance(value, (bool, int, float))
        if isinstance(value, str):
            checked[clean_line(name, 100)] = clean(value[:_MAX_VALUE])
        elif plain:
            checked[clean_line(name, 100)] = value
    return checked


def _page(part: dict[str, Any], body: bytes, number: int) -> tuple[Page, PdfPoolError | None]:
    label = part.get("label")
    if part.get("number") != number or not isinstance(label, str):
        raise _Garbled
    try:
        text = clean(body.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise _Garbled from error
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
        detail = clean_line(str(error), _MAX_DETAIL)
    except (KeyError, TypeError, ValueError) as cause:
        raise _Garbled from cause
    return type(error)("%(detail)s", detail=detail)


def _warnings(found: object, page: int | None) -> list[WarningDict]:
    if not isinstance(found, list):
        raise _Garbled
    checked: list[WarningDict] = []
    for each in found[:_MAX_WARNINGS]:
        if not isinstance(each, dict):
            raise _Garbled
        code, detail = each.get("code"), each.get("detail")
        if not isinstance(code, str) or not isinstance(detail, str):
            raise _Garbled
        checked.append(
            {"code": clean_line(code, 40), "detail": clean_line(detail, _MAX_DETAIL), "page": page}
        )
    return checked
