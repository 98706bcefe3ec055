"""For the tests of sites: a backend that answers as it is told, and reads no document.

Either a test says what it needs::

    with canned(text=["page one", "page two"]) as backend:
        ...
    with canned(error=errors.Busy(retry_after=3)):
        ...

or the settings of all tests name the backend, which then answers every request
with one page of text::

    PDFPOOL = {"BACKEND": "pdfpool_django.testing.CannedBackend"}

No process and no thread is started, and nothing waits.
"""

from __future__ import annotations

import contextlib
import copy
import enum
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from django.test.utils import TestContextDecorator

from pdfpool_django import conf, errors, runtime
from pdfpool_django.backends.base import Backend, BackendConfig, BackendState, Problem, Run
from pdfpool_django.documents import Document
from pdfpool_django.documents.session import not_attempted
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.model import (
    EVERY_PAGE,
    DocumentInfo,
    Event,
    Extraction,
    OpenRequest,
    Page,
    Request,
    WarningDict,
)
from pdfpool_django.sandbox.descriptors import Descriptor

__all__ = ["HANGS", "CannedBackend", "RecordedRequest", "canned", "extraction"]


class _Hangs(enum.Enum):
    HANGS = enum.auto()


HANGS: Final = _Hangs.HANGS
"""The answer about a document whose reading never ends.

Who gives a timeout gets `TimeoutError`, and who gives none `DeadlineExceeded`, both at once.
"""

ErrorOrClass: TypeAlias = PdfPoolError | type[PdfPoolError]
"""An error, or its class: what its sentence names is then made up."""

Text: TypeAlias = str | Sequence[str | ErrorOrClass | Page]
"""The text of one page, or of several; an error stands for a page that could not be read."""

Answer: TypeAlias = Text | Extraction | ErrorOrClass | _Hangs
"""What becomes of a request."""

DEFAULT_TEXT = "Text of page 1."

# What is said before a document is opened, so by `stream` itself and not by its pages.
_REFUSALS = (
    errors.Busy,
    errors.CallerBusy,
    errors.Unavailable,
    errors.NotAuthenticated,
    errors.Forbidden,
    errors.InvalidRequest,
    errors.FileTooLarge,
    errors.NotAPdf,
)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """What a backend was asked for."""

    caller: str
    sha256: str
    """The document's SHA-256, as 64 hexadecimal digits."""
    size: int
    """The document's bytes."""
    pages: str | None = None
    """Like ``1-3,7``: sorted, without overlaps; ``None`` for all."""
    password: str | None = field(default=None, repr=False)


Answers: TypeAlias = Answer | Mapping[str, Answer] | Callable[[RecordedRequest], Answer]
"""One answer for every document, one for each by its SHA-256, or a function that gives it."""


def extraction(
    text: Text = DEFAULT_TEXT,
    *,
    page_count: int | None = None,
    error: ErrorOrClass | None = None,
    metadata: Mapping[str, Any] | None = None,
    warnings: Iterable[WarningDict] = (),
    sha256: str = "0" * 64,
    engine: str = "canned 1",
    elapsed: float = 0.01,
) -> Extraction:
    """Return a result as the app would give it.

    Args:
        text: The text of one page, or a sequence with an item for each: its
            text, an error for one that could not be read, or a `Page`.
        page_count: Pages of the document, where they are more than those
            given; the others were not attempted.
        error: What stopped the reading before its end.
        metadata: Title, author and the like.
        warnings: Those about the document as a whole.
        sha256: The document's; a `CannedBackend` puts the real one in its place.
        engine: Name and version of what read the document.
        elapsed: Seconds.
    """
    items = [text] if isinstance(text, str) else text
    pages = [_page(number, item) for number, item in enumerate(items, 1)]
    count = len(pages) if page_count is None else page_count
    pages += [not_attempted(number) for number in range(len(pages) + 1, count + 1)]
    return Extraction(
        sha256=sha256,
        engine=engine,
        page_count=count,
        pages=tuple(pages),
        metadata=dict(metadata or {}),
        warnings=tuple(warnings),
        complete=error is None and _all_read(pages),
        error=None if error is None else _instance(error).as_error(),
        elapsed=elapsed,
    )


def _page(number: int, item: str | ErrorOrClass | Page) -> Page:
    if isinstance(item, Page):
        return item
    if isinstance(item, str):
        return Page(number, str(number), item)
    return Page(number, str(number), "", _instance(item).as_error())


def _all_read(pages: Iterable[Page]) -> bool:
    return all(page.error is None for page in pages)


def _instance(error: ErrorOrClass) -> PdfPoolError:
    if isinstance(error, PdfPoolError):
        return error
    return error(retry_after=1 if error.retryable else None)


def _settled(answer: Answer, request: Request) -> Extraction | PdfPoolError | _Hangs:
    """Return what an answer means for a request."""
    if isinstance(answer, (PdfPoolError, type)):
        return _instance(answer)
    if isinstance(answer, _Hangs):
        return answer
    whole = answer if isinstance(answer, Extraction) else extraction(answer)
    try:
        ranges = (request.pages or EVERY_PAGE).numbers(whole.page_count)
    except errors.PageOutOfRange as error:
        return error
    chosen = [page for page in whole.pages if any(page.number in each for each in ranges)]
    return _failure(whole, chosen) or replace(
        whole,
        sha256=request.sha256,
        pages=tuple(chosen),
        complete=whole.error is None and _all_read(chosen),
    )


def _failure(whole: Extraction, chosen: Sequence[Page]) -> PdfPoolError | None:
    """Return what is raised where not one of the pages asked for could be read."""
    told = [whole.error, *(page.error for page in chosen)]
    first = next((error for error in told if error is not None), None)
    if first is None or any(page.error is None or page.text for page in chosen):
        return None
    cls = errors.ERROR_CLASSES.get(first["code"], errors.InternalError)
    return cls(first["detail"].replace("%", "%%"))


class CannedRun(Run):
    """A run whose end is known at its start."""

    def __init__(
        self,
        backend: CannedBackend,
        key: str,
        answer: Extraction | PdfPoolError | _Hangs,
        started: bool,
    ) -> None:
        self.key = key
        self.started = started
        self._backend = backend
        self._answer = answer
        self._left = False

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        if self._left:
            return
        answer = self._end(timeout)
        if isinstance(answer, Extraction):
            selected = len(answer.pages)
            yield DocumentInfo(
                answer.sha256, answer.engine, answer.page_count, selected, answer.metadata
            )
            yield from answer.pages

    async def aevents(self, timeout: float | None = None) -> AsyncIterator[Event]:  # noqa: ASYNC109
        for event in self.events(timeout):
            yield event

    def result(self, timeout: float | None = None) -> Extraction:
        if self._left:
            raise RuntimeError("the run has been left")
        answer = self._end(timeout)
        if isinstance(answer, PdfPoolError):
            raise copy.copy(answer)  # each who waits has one of his own
        return answer

    async def aresult(self, timeout: float | None = None) -> Extraction:  # noqa: ASYNC109
        return self.result(timeout)

    def leave(self) -> None:
        if self._backend.forget(self):
            self._left = True

    def end(self, error: PdfPoolError) -> None:
        """End a run that hangs."""
        self._backend.forget(self)
        self._answer = error

    def _end(self, timeout: float | None) -> Extraction | PdfPoolError:
        if not isinstance(self._answer, _Hangs):
            return self._answer
        if timeout is not None:
            raise TimeoutError("the job did not end in the time given")
        error = errors.DeadlineExceeded(seconds=self._backend.config.limits.deadline)
        self.end(error)
        return error


class CannedBackend(Backend):
    """Answers every request as it is told. It refuses nobody, unless that is the answer.

    Attributes:
        answer: What becomes of the requests from now on: see `canned`.
        requests: What it was asked for, the first one first.
    """

    def __init__(self, config: BackendConfig, answer: Answers = DEFAULT_TEXT) -> None:
        super().__init__(config)
        self.answer = answer
        self.requests: list[RecordedRequest] = []
        self._hanging: list[CannedRun] = []
        self._closed = False

    def submit(self, request: Request, document: Descriptor) -> CannedRun:
        with document:
            size = document.size
        pages = None if request.pages is None else request.pages.as_text()
        recorded = RecordedRequest(request.caller, request.sha256, size, pages, request.password)
        answer = _settled(self._take(recorded), request)
        if isinstance(answer, _REFUSALS):
            raise copy.copy(answer)
        joins = any(run.key == request.key for run in self._hanging)
        run = CannedRun(self, request.key, answer, started=not joins)
        if answer is HANGS:
            self._hanging.append(run)
        return run

    def open_document(
        self, request: OpenRequest, document: Descriptor, timeout: float | None
    ) -> Document:
        """Raise the error that is the answer; else `Unsupported`, as there is nothing to open."""
        with document:
            recorded = RecordedRequest(
                request.caller, document.sha256, document.size, password=request.password
            )
            answer = self._take(recorded)
            if isinstance(answer, (PdfPoolError, type)):
                raise copy.copy(_instance(answer))
            return super().open_document(request, document, timeout)

    def _take(self, request: RecordedRequest) -> Answer:
        """Note a request, and return its answer."""
        if self._closed:
            raise errors.Unavailable(retry_after=self.config.wait or 1)
        self.requests.append(request)
        if isinstance(self.answer, Mapping):
            if request.sha256 not in self.answer:
                raise LookupError(f"there is no answer for the document {request.sha256}")
            return self.answer[request.sha256]
        if callable(self.answer) and not isinstance(self.answer, type):
            return self.answer(request)
        return self.answer

    def state(self) -> BackendState:
        return BackendState(
            available=not self._closed,
            reason="shutting down" if self._closed else None,
            slots=self.config.slots,
            queue=self.config.queue,
            running=len({run.key for run in self._hanging}),
            queued=0,
            details={"requests": len(self.requests)},
        )

    def check(self) -> list[Problem]:
        message = "PDFPOOL['BACKEND'] is the one for tests: no document is read."
        return [Problem(message, "Leave BACKEND out to have the default.", deployment=True)]

    def close(self, grace: float = 0) -> None:  # noqa: ARG002 - what hangs does not end by itself
        self._closed = True
        for run in list(self._hanging):
            run.end(errors.Unavailable())

    def forget(self, run: CannedRun) -> bool:
        """Take a run out of those that hang, and return whether it was one."""
        with contextlib.suppress(ValueError):
            self._hanging.remove(run)
            return True
        return False


class canned(TestContextDecorator):  # noqa: N801 - used like a function, as `override_settings` is
    """Answer every request of this process as told, in a block, a test, or a class of tests.

    As a context manager it gives the `CannedBackend`; it decorates functions,
    async ones too, and subclasses of `unittest.TestCase`. Settings that
    change meanwhile, ``PDFPOOL`` included, do not end it.

    Args:
        text: What every document reads like: see `extraction`.
        error: What every request ends with. One that comes before a document
            is opened, like `Busy`, is raised at once, another by the result.
        answer: An `Extraction`, `HANGS`, or one of the above; a mapping of
            such by the document's SHA-256; or a function that takes the
            `RecordedRequest` and returns such.

    Raises:
        TypeError: More than one of them is given.
    """

    def __init__(
        self,
        *,
        text: Text | None = None,
        error: ErrorOrClass | None = None,
        answer: Answers | None = None,
    ) -> None:
        super().__init__()
        given: list[Answers] = [each for each in (text, error, answer) if each is not None]
        if len(given) > 1:
            raise TypeError("give one of text, error and answer")
        self._answer = given[0] if given else DEFAULT_TEXT
        self._entered: list[contextlib.ExitStack] = []

    def enable(self) -> CannedBackend:
        backend = CannedBackend(conf.load().backend_config, self._answer)
        stack = contextlib.ExitStack()
        stack.enter_context(runtime.using(backend))
        self._entered.append(stack)
        return backend

    def disable(self) -> None:
        self._entered.pop().close()

    def __enter__(self) -> CannedBackend:  # type: ignore[override] # its stubs know Django's own
        return self.enable()
