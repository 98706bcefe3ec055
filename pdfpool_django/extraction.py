"""The public functions: text and metadata of a document, from whatever holds its bytes."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Self

from django.dispatch import Signal

from pdfpool_django import runtime, sources
from pdfpool_django.backends.base import Run
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.model import EVERY_PAGE, Event, Extraction, Page, PageSelection, Request
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.signals import extraction_finished, extraction_refused
from pdfpool_django.sources import Source
from pdfpool_django.text import clean_line

logger = logging.getLogger("pdfpool_django.extraction")

_SMALL = 1024 * 1024
_LOGGED_KEY = 12
_LOGGED_CALLER = 200


def extract(
    source: Source,
    *,
    caller: str,
    pages: str | int | Iterable[int] | None = None,
    password: str | None = None,
    timeout: float | None = None,
) -> Extraction:
    """Read a document's text and metadata.

    Identical requests that run at the same time share one job.

    Args:
        source: The document: its bytes, its path, a binary file, or a Django
            file (`File`, `UploadedFile`, `FieldFile`). A file is read from its
            start, left where it was, and not closed.
        caller: Who asks. One caller has one document read at a time.
        pages: ``"1-3,7"``, ``"5-"``, a number, or an iterable of numbers;
            ``None`` for every page.
        password: The document's password, where it has one.
        timeout: Seconds to wait at most, in the queue and for the result.

    Returns:
        The pages asked for, in the document's order. Where at least one of
        them could be read it is a result, if an incomplete one:
        `Extraction.complete` and `Extraction.error` tell.

    Raises:
        PdfPoolError: The request was refused, or no page could be read; the
            class and its `code` say why.
        TimeoutError: The time is up. Where nobody else waits for it, the job
            is ended.
        OSError: The source cannot be read.
    """
    deadline = _deadline(timeout)
    with submit(source, caller=caller, pages=pages, password=password) as run:
        return run.result(_remaining(deadline))


async def aextract(
    source: Source,
    *,
    caller: str,
    pages: str | int | Iterable[int] | None = None,
    password: str | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - as `extract`
) -> Extraction:
    """Like `extract`, for async callers. Cancelling it leaves the job."""
    deadline = _deadline(timeout)
    with await _asubmit(source, caller=caller, pages=pages, password=password) as run:
        return await run.aresult(_remaining(deadline))


def stream(
    source: Source,
    *,
    caller: str,
    pages: str | int | Iterable[int] | None = None,
    password: str | None = None,
    timeout: float | None = None,
) -> Stream:
    """Like `extract`, but return an iterator of the pages, each as soon as it is read.

    What is refused at once is raised here; what goes wrong later, by the
    iterator. After its end, its `extraction` is the whole result.
    """
    deadline = _deadline(timeout)
    return Stream(submit(source, caller=caller, pages=pages, password=password), deadline)


def astream(
    source: Source,
    *,
    caller: str,
    pages: str | int | Iterable[int] | None = None,
    password: str | None = None,
    timeout: float | None = None,
) -> AsyncStream:
    """Like `stream`, for async callers; every error is raised by the iterator."""

    async def start() -> Run:
        return await _asubmit(source, caller=caller, pages=pages, password=password)

    return AsyncStream(start, timeout)


class _ToBeRead:
    """Has a result once its pages have been read."""

    _extraction: Extraction | None = None

    @property
    def extraction(self) -> Extraction:
        """The whole result.

        Raises:
            RuntimeError: The pages have not been read to their end.
        """
        if self._extraction is None:
            raise RuntimeError("read the pages to their end first")
        return self._extraction


class Stream(_ToBeRead):
    """The pages of a document, as they are read. Closing it early ends the reading."""

    def __init__(self, run: Run, deadline: float | None) -> None:
        self._run = run
        self._deadline = deadline
        self._pages = self._read()

    def __iter__(self) -> Iterator[Page]:
        return self

    def __next__(self) -> Page:
        return next(self._pages)

    def _read(self) -> Iterator[Page]:
        with self._run as run:
            for event in run.events(_remaining(self._deadline)):
                if isinstance(event, Page):
                    yield event
            self._extraction = run.result(_remaining(self._deadline))

    def close(self) -> None:
        """Leave; where nobody else waits for the document, its reading ends."""
        self._run.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class AsyncStream(_ToBeRead):
    """The pages of a document, as they are read, for async callers."""

    def __init__(self, start: Callable[[], Any], timeout: float | None) -> None:
        self._start = start
        self._deadline = _deadline(timeout)
        self._run: Run | None = None
        self._pages = self._read()

    def __aiter__(self) -> AsyncIterator[Page]:
        return self

    async def __anext__(self) -> Page:
        return await anext(self._pages)

    async def _read(self) -> AsyncIterator[Page]:
        with await self._start() as run:
            self._run = run
            async for event in run.aevents(_remaining(self._deadline)):
                if isinstance(event, Page):
                    yield event
            self._extraction = await run.aresult(_remaining(self._deadline))

    async def aclose(self) -> None:
        """Leave; where nobody else waits for the document, its reading ends."""
        if self._run is not None:
            self._run.leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


def submit(
    source: Source | Descriptor,
    *,
    caller: str,
    pages: str | int | Iterable[int] | PageSelection | None = None,
    password: str | None = None,
) -> Run:
    """Have a document read, and return this caller's share in it, to be left when done.

    What `extract` and `stream` are made of, for those who need the events. A
    `Descriptor` is the backend's from now on.

    Raises:
        PdfPoolError: The request was refused.
        OSError: The source cannot be read.
    """
    _check(caller, password)
    try:
        selection = PageSelection.parse(pages)
        document = sources.describe(source)
        return _submit_document(document, caller, selection, password)
    except PdfPoolError as error:
        extraction_refused.send_robust(Extraction, caller=caller, error=error)
        raise


async def _asubmit(
    source: Source,
    *,
    caller: str,
    pages: str | int | Iterable[int] | None,
    password: str | None,
) -> Run:
    _check(caller, password)
    try:
        selection = PageSelection.parse(pages)
        # What takes long, a large file or a slow one, does so in a thread.
        if isinstance(source, bytes) and len(source) <= _SMALL:
            document = sources.describe(source)
        else:
            document = await asyncio.to_thread(sources.describe, source)
        return _submit_document(document, caller, selection, password)
    except PdfPoolError as error:
        await extraction_refused.asend_robust(Extraction, caller=caller, error=error)
        raise


def _check(caller: str, password: str | None) -> None:
    if not isinstance(caller, str) or not caller:
        raise TypeError(f"caller must be a string that is not empty, not {caller!r}")
    if password is not None and not isinstance(password, str):
        raise TypeError(f"password must be a string, not {type(password).__name__}")


def _submit_document(
    document: Descriptor, caller: str, selection: PageSelection | None, password: str | None
) -> Run:
    since = time.monotonic()
    try:
        request = Request(
            key=_key(document.sha256, selection, password),
            caller=caller,
            sha256=document.sha256,
            pages=selection,
            password=password,
        )
        backend = runtime.backend()
    except BaseException:
        document.close()
        raise
    try:
        run = backend.submit(request, document)
    except PdfPoolError as error:
        _log(request, "refused", error.code, 0.0, 0)
        raise
    return _ReportedRun(run, request, since)


_SECRET = secrets.token_bytes(32)


def _key(sha256: str, selection: PageSelection | None, password: str | None) -> str:
    """Return what identical requests have in common.

    It is keyed with a secret of this process: its beginning is logged, and
    who reads logs could otherwise try passwords against it.
    """
    options = json.dumps([sha256, (selection or EVERY_PAGE).as_text(), password])
    return hmac.new(_SECRET, options.encode(), hashlib.sha256).hexdigest()


class _ReportedRun(Run):
    """A run whose outcome is logged and sent to the site's receivers, once."""

    def __init__(self, run: Run, request: Request, since: float) -> None:
        self.started = run.started
        self._run = run
        self._request = request
        self._since = since
        self._reported = False

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        return self._run.events(timeout)

    def aevents(self, timeout: float | None = None) -> AsyncIterator[Event]:
        return self._run.aevents(timeout)

    def result(self, timeout: float | None = None) -> Extraction:
        try:
            extraction = self._run.result(timeout)
        except PdfPoolError as error:
            self._tell(None, error)
            raise
        self._tell(extraction, None)
        return extraction

    async def aresult(self, timeout: float | None = None) -> Extraction:  # noqa: ASYNC109
        try:
            extraction = await self._run.aresult(timeout)
        except PdfPoolError as error:
            await self._atell(None, error)
            raise
        await self._atell(extraction, None)
        return extraction

    def leave(self) -> None:
        self._run.leave()
        self._log_once("left", 0)

    def _tell(self, extraction: Extraction | None, error: PdfPoolError | None) -> None:
        if self._log_once(_outcome(extraction, error), len(extraction.pages) if extraction else 0):
            signal, values = self._told(extraction, error)
            signal.send_robust(Extraction, **values)

    async def _atell(self, extraction: Extraction | None, error: PdfPoolError | None) -> None:
        if self._log_once(_outcome(extraction, error), len(extraction.pages) if extraction else 0):
            signal, values = self._told(extraction, error)
            await signal.asend_robust(Extraction, **values)

    def _told(
        self, extraction: Extraction | None, error: PdfPoolError | None
    ) -> tuple[Signal, dict[str, Any]]:
        if error is not None and error.retryable:  # so the document was not even looked at
            return extraction_refused, {"caller": self._request.caller, "error": error}
        return extraction_finished, {
            "caller": self._request.caller,
            "sha256": self._request.sha256,
            "started": self.started,
            "extraction": extraction,
            "error": error,
            "elapsed": time.monotonic() - self._since,
        }

    def _log_once(self, outcome: str, pages: int) -> bool:
        if self._reported:
            return False
        self._reported = True
        share = "started" if self.started else "joined"
        _log(self._request, share, outcome, time.monotonic() - self._since, pages)
        return True


def _outcome(extraction: Extraction | None, error: PdfPoolError | None) -> str:
    if error is not None:
        return error.code
    return "complete" if extraction is not None and extraction.complete else "incomplete"


def _log(request: Request, share: str, outcome: str, seconds: float, pages: int) -> None:
    logger.info(
        "extraction key=%s caller=%s share=%s pages=%d seconds=%.3f outcome=%s",
        request.key[:_LOGGED_KEY],
        clean_line(request.caller, _LOGGED_CALLER),
        share,
        pages,
        seconds,
        outcome,
    )


def _deadline(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if timeout <= 0:
        raise TimeoutError("the time was up before the document was looked at")
    return time.monotonic() + timeout


def _remaining(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()
