"""A document that threads share: read in parallel by children, changed by one call at a time."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Self, TypeVar

from pdfpool_django.access import Access
from pdfpool_django.documents import beginning, claims, parallel, sandboxes
from pdfpool_django.documents.claims import Check, Opened
from pdfpool_django.documents.index import SearchIndex
from pdfpool_django.documents.pages import DocumentPage
from pdfpool_django.documents.readers import Readers
from pdfpool_django.documents.session import Session, Stopped
from pdfpool_django.documents.values import (
    Attachment,
    Matches,
    OutlineItem,
    PageInfo,
    Permissions,
)
from pdfpool_django.errors import (
    Closed,
    PageOutOfRange,
    PasswordRequired,
    PdfPoolError,
    WrongPassword,
)
from pdfpool_django.model import EVERY_PAGE, Limits, PageSelection, WarningDict
from pdfpool_django.sandbox import descriptors
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.sandbox.host import Sandbox

T = TypeVar("T")

logger = logging.getLogger("pdfpool_django.documents")

AHEAD = 4
"""Results of `Document.map`, for each worker, that may wait for whoever takes them."""


class Document:
    """An open document, for as many threads as like to share it.

    Reads run in parallel, each in a child of its own, up to `workers` at a
    time. `authenticate`, `clear_search_index` and `close` are exclusive: they
    wait for the reads in flight, and new reads wait for them.

    A handle holds a process for each read at a time, so up to ``workers *
    limits.memory`` bytes. It belongs to the process that opened it.

    Attributes:
        version: The version of PDF, like ``"1.7"``; ``None`` where the file does not say.
        source: The path that it was opened from, or what kind of source it was.
        encrypted: Whether the document is encrypted, with a password or without.
        closed: Whether the handle is closed. These four are there after that, too.
    """

    @classmethod
    def open(
        cls,
        source: bytes | bytearray | memoryview | str | os.PathLike[str] | IO[bytes],
        password: str | None = None,
        *,
        limits: Limits | None = None,
        workers: int = 2,
    ) -> Self:
        """Open a document.

        One that is locked can be opened without its password: its reads raise
        `PasswordRequired` until `authenticate` has opened it.

        Args:
            source: Its bytes, its path, or a binary file, which is read from
                its start, left where it was, and not closed.
            password: Its password, where it has one.
            limits: What each call may cost: `Limits.page_deadline` for one
                about a page, `Limits.deadline` for one about the whole
                document, `Limits.memory` for each process.
            workers: Reads at a time, at least 1.

        Raises:
            PdfPoolError: It cannot be opened.
            OSError: The source cannot be read.
            ValueError: `workers` is less than 1.
        """
        limits = limits or Limits()
        document = descriptors.of(source)
        beginning.check(document)
        return cls(
            document,
            sandboxes.for_handles(limits),
            source=descriptors.name_of(source),
            password=password,
            limits=limits,
            workers=workers,
        )

    def __init__(
        self,
        document: Descriptor,
        sandbox: Sandbox,
        *,
        source: str,
        password: str | None = None,
        limits: Limits,
        workers: int = 2,
        on_close: Callable[[], None] = lambda: None,
        after_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Open a document that is there as a descriptor, which is the handle's from now on.

        For those who open documents their own way; see `open`.

        Args:
            document: The document.
            sandbox: Where the children come from.
            source: What to call the document in the log.
            password: Its password, where it has one.
            limits: What each call may cost.
            workers: Reads at a time.
            on_close: Called once when the handle is closed, or collected; it
                must take no lock.
            after_close: Called at the end of `close`, when nothing is held any
                more; may wait.
        """
        if workers < 1:
            document.close()
            raise ValueError("workers must be at least 1")
        self.source = source
        self.closed = False
        self.version = beginning.version(document)
        self.encrypted = False
        self._pid = os.getpid()
        self._document = document
        self._sandbox = sandbox
        self._password = password
        self._limits = limits
        self._workers = workers
        self._on_close = on_close
        self._after_close = after_close
        self._access = Access()
        self._opened: Opened | None = None
        self._index: SearchIndex | None = None
        self._indexing = threading.Lock()
        self._infos: dict[int, PageInfo] = {}
        self._readers = Readers(self._sessions(workers), sandboxes.CPU_SECONDS / 2)
        try:
            self._open()
        except BaseException:
            self._finish()
            raise

    def _open(self) -> None:
        try:
            with self._readers.one(self._limits) as session:
                self._know(session.open())
        except PasswordRequired:
            self.encrypted = True

    def _know(self, opened: Opened) -> None:
        self._opened = opened
        self.version = opened.version or self.version
        self.encrypted = opened.encrypted
        self._report(opened.warnings, None)

    def _sessions(self, count: int) -> list[Session]:
        """Return so many sessions, which have no child before their first call."""
        given = self._sandbox, self._document, self._password, self._limits
        return [Session(*given) for _ in range(count)]

    # What is known of the document.

    @property
    def page_count(self) -> int:
        """Pages of the document; readable after `close`.

        Raises:
            PasswordRequired: The document is locked.
        """
        return self._unlocked().page_count

    def metadata(self) -> dict[str, Any]:
        """Return title, author and the like, as plain values; dates in ISO 8601.

        Raises:
            PdfPoolError: The document is locked, or the handle closed.
        """
        with self._sharing():
            return dict(self._unlocked().metadata)

    def page(self, number: int) -> DocumentPage:
        """Return a page, to be read by its methods.

        Raises:
            PageOutOfRange: There is no such page.
            PasswordRequired: The document is locked.
        """
        if not 1 <= number <= self.page_count:
            raise PageOutOfRange(page=number, page_count=self.page_count)
        return DocumentPage(self, number)

    # Reads of the whole document.

    def text(self, pages: str | int | Iterable[int] | None = None) -> str:
        """Return the text of all pages, or of those named, joined by form feeds.

        Args:
            pages: As for `extract`: ``"1-3,7"``, a number, or several.

        Raises:
            PdfPoolError: A page cannot be read; the first such in order says why.
        """
        return "\f".join(self.map(lambda page: page.text(), pages))

    def map(
        self,
        function: Callable[[DocumentPage], T],
        pages: str | int | Iterable[int] | None = None,
        *,
        errors: str = "raise",
    ) -> Iterator[T]:
        """Yield what `function` returns for each page, in order, several pages at a time.

        A few results wait at most for who iterates slowly. Who stops early
        begins no further page.

        Args:
            function: Called with each page, in threads of its own.
            pages: Which; ``None`` for all.
            errors: ``"raise"``: the first page in order that cannot be read
                raises its error. ``"keep"``: its `PdfPoolError` takes its
                place among the results, and the others follow.

        Raises:
            PdfPoolError: The document is locked, or the handle closed.
            ValueError: `errors` is something else.
        """
        if errors not in ("raise", "keep"):
            raise ValueError('errors must be "raise" or "keep"')
        self._check()
        chosen = [DocumentPage(self, number) for number in self._numbers(pages)]
        call: Callable[[DocumentPage], Any] = function if errors == "raise" else _keeping(function)
        return parallel.in_order([call] * self._workers, chosen, ahead=AHEAD, name="pdfpool-map")

    def outline(self) -> tuple[OutlineItem, ...]:
        """Return the outline, its bookmarks, in the order in which they are shown."""

        def check(part: dict[str, Any], body: bytes, page: int | None) -> OutlineItem:
            return claims.outline_item(part, body, page, page_count=self.page_count)

        return self._ask("outline", check)

    def attachments(self) -> tuple[Attachment, ...]:
        """Return the files that the document carries."""
        return self._ask("attachments", claims.attachment)

    def permissions(self) -> Permissions:
        """Return what the document's author lets others do with it."""
        return claims.only(self._ask("permissions", claims.permissions))

    # Searching.

    def prepare_search(self) -> None:
        """Read the text of every page for `search`, which else does so at its first call.

        The text is kept outside this process's own memory until
        `clear_search_index` or `close`.

        Raises:
            PdfPoolError: The document is locked, the handle closed, or the
                text larger than `Limits.max_output`.
        """
        self._ready_index()

    def search(
        self,
        needle: str,
        *,
        ignore_case: bool = False,
        whole_word: bool = False,
        regex: bool = False,
        pages: str | int | Iterable[int] | None = None,
        max_results: int | None = None,
    ) -> Matches:
        """Return where a text stands: matches that do not overlap, in the document's order.

        Args:
            needle: What to search for. White space in it stands for any, so
                that a match may go over the end of a line. Not over that of a
                page.
            ignore_case: Whether ``A`` and ``a`` are the same.
            whole_word: Whether a match must neither begin nor end within a word.
            regex: Whether `needle` is a regular expression (Python's ``re``).
            pages: Which to search; ``None`` for all.
            max_results: Matches to return at most, from 0; ``None`` for all.

        Returns:
            The matches; its `unread` names the pages that could not be searched.
            Where a pattern matches nothing (``a*``), that is no match.

        Raises:
            InvalidPattern: The needle is empty, or no regular expression.
            DeadlineExceeded: The search took too long; the handle lives on.
            PdfPoolError: The document is locked, or the handle closed.
            ValueError: `max_results` is negative.
        """
        if max_results is not None and max_results < 0:
            raise ValueError("max_results must not be negative")
        self._check()
        numbers = self._numbers(pages)
        while True:
            index = self._ready_index()
            with self._sharing():
                if index is self._index:  # else it was cleared in between
                    places, unread = index.places(numbers)
                    query = {
                        "pages": places,
                        "needle": needle,
                        "ignore_case": ignore_case,
                        "whole_word": whole_word,
                        "regex": regex,
                        "max_results": max_results,
                    }
                    check = functools.partial(claims.match, pages=frozenset(numbers))
                    found = self._answer("search", query, check, fds=[index.text.fd])
                    return Matches(found, unread)

    def clear_search_index(self) -> None:
        """Give back the memory of the search index; waits for the searches in flight. Exclusive.

        Raises:
            Closed: The handle is closed.
        """
        with self._alone():
            index, self._index = self._index, None
            if index is not None:
                index.close()

    def _ready_index(self) -> SearchIndex:
        self._check()
        with self._indexing:
            index = self._index
            if index is None:
                pages = self.map(lambda page: page.read(errors="keep"))
                index = SearchIndex.of(pages, self._limits.max_output)
                try:
                    with self._sharing():
                        self._index = index
                except Closed:
                    index.close()
                    raise
            return index

    # The exclusive calls.

    def authenticate(self, password: str) -> bool:
        """Open a locked document with its password; return whether it is the right one. Exclusive.

        A wrong one changes nothing.

        Raises:
            PdfPoolError: The handle is closed, or the document cannot be read.
        """
        with self._alone():
            session = Session(self._sandbox, self._document, password, self._limits)
            try:
                with self._readers.joined_by(session):
                    opened = session.open()
            except (WrongPassword, PasswordRequired):
                session.close()
                return False
            except Stopped as error:
                session.close()
                raise Closed from error
            except BaseException:
                session.close()
                raise
            self._password = password
            self._know(opened)
            self._readers.replace([*self._sessions(self._workers - 1), session])
            return True

    def close(self, timeout: float | None = None) -> None:
        """Close the handle, once the calls in flight have ended. Exclusive.

        A read that begins later raises `Closed`. A second time, nothing happens.

        Args:
            timeout: Seconds after which the calls in flight are ended; they
                raise `Closed` then. ``None`` to wait for them.
        """
        if self.closed:
            return
        if self._pid != os.getpid():
            self._forget()  # its children are another process's
            return
        try:
            with self._access.exclusive(timeout):
                self._finish()
        except TimeoutError:
            self._readers.stop()
            with self._access.exclusive():
                self._finish()
        self._after_close()

    def _finish(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._readers.close()
        self._document.close()
        if self._index is not None:
            self._index.close()
        self._on_close()

    def _forget(self) -> None:
        self.closed = True
        self._readers.forget()
        self._document.close()
        if self._index is not None:
            self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "closed", True) or not hasattr(self, "_readers"):
            return
        # No lock may be taken here: the thread that collects may hold it.
        unclosed = f"unclosed {self!r}"
        self._forget()
        if self._pid == os.getpid():
            self._on_close()
            warnings.warn(unclosed, ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<Document {self.source!r}, {state}>"

    # How a call is made.

    def _check(self) -> None:
        if self.closed:
            raise Closed
        if self._pid != os.getpid():
            raise Closed("The document was opened by another process; open it in this one.")

    @contextlib.contextmanager
    def _sharing(self) -> Iterator[None]:
        self._check()  # first, as in a forked process nobody may be left who lets others in
        with self._access.shared():
            self._check()
            yield

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._check()
        with self._access.exclusive():
            self._check()
            yield

    def _unlocked(self) -> Opened:
        if self._opened is None:
            raise PasswordRequired
        return self._opened

    def _numbers(self, pages: str | int | Iterable[int] | None) -> list[int]:
        selection = PageSelection.parse(pages) or EVERY_PAGE
        return [number for part in selection.numbers(self.page_count) for number in part]

    def _read(self, work: Callable[[Session], T]) -> T:
        with self._sharing():
            self._unlocked()
            return self._lent(work)

    def _lent(self, work: Callable[[Session], T]) -> T:
        try:
            with self._readers.one(self._limits) as session:
                return work(session)
        except Stopped as error:
            raise Closed from error

    def _ask(self, call: str, check: Check[T], page: int | None = None) -> tuple[T, ...]:
        arguments = {} if page is None else {"number": page}
        with self._sharing():
            self._unlocked()
            return self._answer(call, arguments, check, page)

    def _answer(
        self,
        call: str,
        arguments: dict[str, Any],
        check: Check[T],
        page: int | None = None,
        fds: Iterable[int] = (),
    ) -> tuple[T, ...]:
        """Return the values of an answer, checked; called with access."""
        seconds = self._limits.deadline if page is None else self._limits.page_deadline

        def work(session: Session) -> tuple[tuple[T, ...], tuple[WarningDict, ...]]:
            return claims.answer(session.call(call, arguments, seconds, fds), check, page)

        values, found = self._lent(work)
        self._report(found, page)
        return values

    def _report(self, found: Iterable[WarningDict], page: int | None) -> None:
        where = "" if page is None else f", page {page}"
        for warning in found:
            logger.info("%s%s: %s", self.source, where, warning["detail"])


def _keeping(function: Callable[[DocumentPage], T]) -> Callable[[DocumentPage], T | PdfPoolError]:
    """Return a function that returns its page's error instead of raising it."""

    def call(page: DocumentPage) -> T | PdfPoolError:
        try:
            return function(page)
        except PdfPoolError as error:
            return error

    return call
