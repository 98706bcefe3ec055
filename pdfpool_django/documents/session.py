"""The calls about one open document; a child that is lost is replaced by a fresh one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pdfpool_django.documents import claims
from pdfpool_django.documents.budget import Budget
from pdfpool_django.documents.claims import Garbled, Opened
from pdfpool_django.errors import (
    Crashed,
    DeadlineExceeded,
    MemoryExceeded,
    OutputTooLarge,
    PdfPoolError,
    Unavailable,
    error_note,
)
from pdfpool_django.model import Limits, Page, PageSelection
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.sandbox.host import Child, ChildLost, Sandbox
from pdfpool_django.sandbox.wire import Frame

NOT_ATTEMPTED = error_note(
    "not_attempted",
    "The page was not read, as the reading had been stopped before it; ask for it alone.",
    {},
)


class Stopped(Exception):
    """The session was stopped by `Session.stop`: nobody waits for it any more."""


class Session:
    """The calls about one open document.

    Only `stop` may be called from another thread.

    Args:
        sandbox: Where the children come from.
        document: The document; it stays the caller's to close.
        password: Its password, if there is one.
        limits: What it may cost.
        budget: What the job that it works for may still cost; by default, all
            that the limits allow. Another job may be begun by another budget.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        document: Descriptor,
        password: str | None,
        limits: Limits,
        budget: Budget | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._document = document
        self._password = password
        self._limits = limits
        self.budget = budget or Budget(limits)
        self._swap = threading.Lock()
        self._stopped = False
        self._child: Child | None = None
        self._reading_ahead = False
        self._answered = 0

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

    def pages(self, ranges: Sequence[range], *, actual_text: bool = True) -> Iterator[Page]:
        """Yield the pages of the ranges, in order: each with its text, or with its error.

        A page that costs its child is one with an error, and a fresh child
        goes on with the next. When the reading stops early, the budget's
        `error` says why, and the rest is marked ``not_attempted``.

        Args:
            ranges: The pages' numbers.
            actual_text: Whether a text that the document gives in place of
                what it shows is used (ISO 32000-2, 14.9.4).

        Raises:
            Stopped: The session was stopped.
        """
        remaining = _Remaining(ranges)
        while remaining and self.budget.error is None:
            page = None
            try:
                yield from self._pages_from_one_child(remaining, actual_text)
            except ChildLost as lost:
                alone = not self._answered
                self._drop_child()
                if remaining:  # else it has said all, and only not that this is all
                    page = self._after_loss(lost, remaining.first, alone)
            except PdfPoolError as error:
                self.budget.stop(error)
            if page is not None:
                remaining.advance()
                yield page
        for number in remaining:
            yield not_attempted(number)

    def call(
        self, name: str, arguments: dict[str, Any], seconds: float, fds: Iterable[int] = ()
    ) -> list[Frame]:
        """Return the parts of the answer to a call that is about the document as a whole.

        Args:
            name: The call's name.
            arguments: What goes with it, as JSON has it.
            seconds: How long it may take, where the budget's time is not up before.
            fds: Descriptors to hand over.

        Raises:
            PdfPoolError: The call failed, or cost its child.
            Stopped: The session was stopped.
        """
        descriptors = list(fds)
        while True:
            try:
                return list(self._call(name, arguments, seconds, descriptors))
            except ChildLost as lost:
                alone = not self._answered
                self._drop_child()
                error = self._judge(lost, seconds)
                if error is not None and (alone or not _may_be_piled_up(error)):
                    raise error from lost

    def stop(self) -> None:
        """End the session, whatever it does; its thread gets `Stopped`."""
        with self._swap:
            self._stopped = True
            if self._child is not None:
                self._child.kill()
        self._sandbox.wake()  # in case there is none yet

    def close(self) -> None:
        """End the child, if there is one."""
        self._drop_child()

    def forget(self) -> None:
        """End the child without taking a lock, for a finalizer; nothing else may use it then."""
        child, self._child = self._child, None
        if child is not None:
            child.forget()

    def _open(self, ahead: PageSelection | None = None) -> Opened:
        child = self._new_child()
        arguments = {
            "password": self._password,
            "max_pages": self._limits.max_pages,
            "ahead": ahead and [(part.first, part.last) for part in ahead.ranges],
        }
        child.ask("open", arguments, self.budget.deadline, [self._document.fd])
        frame = child.receive(self.budget.deadline, 0)
        self._reading_ahead = ahead is not None
        if frame is None or not self._at_end_unless_ahead(child):
            raise _garbled()
        try:
            return claims.opened(frame.message, self._limits.max_pages)
        except Garbled as error:
            raise _garbled() from error

    def _at_end_unless_ahead(self, child: Child) -> bool:
        return self._reading_ahead or child.receive(self.budget.deadline, 0) is None

    def _new_child(self) -> Child:
        try:
            child = self._sandbox.child(self.budget.deadline, lambda: self._stopped)
        except Unavailable:
            if self._stopped:
                raise Stopped from None
            raise
        self._answered = 0
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

    def _ready_child(self) -> Child:
        """Return a child that has the document open; one that was lost at rest is replaced."""
        if self._child is not None and not self._reading_ahead and not self._child.alive():
            self._drop_child()
        if self._child is None:
            self._open()
        if self._child is None:
            raise Stopped
        return self._child

    def _pages_from_one_child(self, remaining: _Remaining, actual_text: bool) -> Iterator[Page]:
        child = self._ready_child()
        if not self._reading_ahead:
            arguments = {"ranges": remaining.as_ranges(), "actual_text": actual_text}
            child.ask("pages", arguments, self.budget.deadline)
        self._reading_ahead = False
        while remaining:
            frame = child.receive(self._until(self._limits.page_deadline), self.budget.output_left)
            if frame is None:
                raise _garbled()
            page = self._checked_page(frame, remaining.first)
            remaining.advance()
            self._answered += 1
            yield page
        if child.receive(self.budget.deadline, 0) is not None:
            raise _garbled()

    def _call(
        self, name: str, arguments: dict[str, Any], seconds: float, fds: list[int]
    ) -> Iterator[Frame]:
        child = self._ready_child()
        until = self._until(seconds)
        child.ask(name, arguments, until, fds)
        while (frame := child.receive(until, self.budget.output_left)) is not None:
            self._keep(frame.size)
            yield frame
        self._answered += 1

    def _keep(self, size: int) -> None:
        """Take output in; where that is too much, end the child, which is in its middle."""
        try:
            self.budget.keep(size)
        except OutputTooLarge:
            self._drop_child()
            raise

    def _until(self, seconds: float) -> float:
        return min(self.budget.deadline, time.monotonic() + seconds)

    def _checked_page(self, frame: Frame, number: int) -> Page:
        try:
            page, failure = claims.page(frame.message, frame.body, number)
        except Garbled as error:
            raise _garbled() from error
        self._keep(len(frame.body) + sum(len(warning["detail"]) for warning in page.warnings))
        self.budget.fail(failure)
        return page

    def _after_loss(self, lost: ChildLost, number: int, alone: bool) -> Page | None:
        """Return the page that cost a child, or ``None`` where it is to be tried once more."""
        try:
            error = self._judge(lost, self._limits.page_deadline)
        except Unavailable as unavailable:
            self.budget.stop(unavailable)
            return None
        if error is None or (_may_be_piled_up(error) and not alone):
            return None
        self.budget.lose_page(error)
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
            self.budget.lose_launcher()
            return None
        if isinstance(lost.error, DeadlineExceeded):
            late = self.budget.late
            return DeadlineExceeded(seconds=self._limits.deadline if late else seconds)
        if isinstance(lost.error, OutputTooLarge):
            return OutputTooLarge(limit=self._limits.max_output)
        return lost.error


def not_attempted(number: int) -> Page:
    """Return a page that was not read, as the reading had been stopped."""
    return Page(number, str(number), "", NOT_ATTEMPTED)


def _may_be_piled_up(error: PdfPoolError) -> bool:
    """Whether the pages that a child has read before may be the cause."""
    return isinstance(error, (MemoryExceeded, Crashed))


def _garbled() -> ChildLost:
    return ChildLost(Crashed(reason="its answer made no sense"))


class _Remaining:
    """The pages of some ranges that have not been read yet."""

    def __init__(self, ranges: Sequence[range]) -> None:
        self._ranges = [part for part in ranges if part]

    def __bool__(self) -> bool:
        return bool(self._ranges)

    @property
    def first(self) -> int:
        return self._ranges[0].start

    def advance(self) -> None:
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
