"""What a backend must do: run a request, yield its pages, then give the result."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pdfpool_django.documents import Document
from pdfpool_django.errors import Unsupported
from pdfpool_django.model import Event, Extraction, Limits, OpenRequest, Request
from pdfpool_django.sandbox.descriptors import Descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendConfig:
    """The settings that a backend works by."""

    slots: int = 2
    """Jobs that run at once."""
    queue: int = 4
    """Jobs that wait at most."""
    wait: float = 10
    """Seconds that a job waits at most."""
    limits: Limits = field(default_factory=Limits)
    """What one document may cost."""
    engine: str = "pdfpool_django.engines.pypdf"
    """Dotted name of the engine's module."""
    python: str = sys.executable
    """Path of the interpreter that runs the launcher."""
    page_workers: int = 1
    """Processes that read the pages of one document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A job that runs."""

    caller: str
    """Who has started it."""
    age: float
    """Seconds that it has run for."""
    pages: int
    """Pages that have been read."""
    selected: int | None
    """Pages that are to be read; ``None`` while the document is not open yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendState:
    """A backend at one instant."""

    available: bool
    """Whether a request could be run now, or would wait for its turn only."""
    reason: str | None
    """Why not."""
    slots: int
    queue: int
    running: int
    queued: int
    jobs: tuple[JobState, ...] = ()
    """The jobs that run."""
    refusals: dict[str, int] = field(default_factory=dict)
    """How often requests were refused, by code."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else the backend tells; differs from one to the next."""

    def as_dict(self) -> dict[str, Any]:
        """Return the state as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with how the backend would work here."""

    message: str
    hint: str
    id: str = "pdfpool.W008"
    """Of Django's check: an error's ends in E and a number, a warning's in W and a number."""
    deployment: bool = False
    """Whether it matters to a site in production only."""


class Run(ABC):
    """One caller's share in the run of a request. Leaves at the end of a ``with`` block."""

    started: bool
    """Whether this request started the job; else it joined one."""

    @abstractmethod
    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """Yield the `DocumentInfo`, then the pages, each as it is read; end with the job."""

    @abstractmethod
    def aevents(self, timeout: float | None = None) -> AsyncIterator[Event]:
        """Like `events`, for async callers."""

    @abstractmethod
    def result(self, timeout: float | None = None) -> Extraction:
        """Wait for the result.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            PdfPoolError: The document could not be read, or the request was refused.
            TimeoutError: The time is up.
        """

    @abstractmethod
    async def aresult(self, timeout: float | None = None) -> Extraction:  # noqa: ASYNC109
        """Like `result`, for async callers."""

    @abstractmethod
    def leave(self) -> None:
        """Give the share back; a run that nobody waits for is ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.leave()


class Backend(ABC):
    """Runs requests. Making one starts nothing; the first request does."""

    def __init__(self, config: BackendConfig) -> None:
        self.config = config

    @abstractmethod
    def submit(self, request: Request, document: Descriptor) -> Run:
        """Run a request, or join the run of an identical one. Does not wait.

        The document is the backend's from now on, to close it as soon as it
        is not needed; also where the request is refused.

        Raises:
            PdfPoolError: The request is refused.
        """

    def open_document(
        self,
        request: OpenRequest,  # noqa: ARG002
        document: Descriptor,
        timeout: float | None,  # noqa: ARG002
    ) -> Document:
        """Open a document for as long as a job may take; the handle is one, until it is closed.

        The descriptor is the backend's from now on, also where this fails.

        Raises:
            PdfPoolError: The request is refused, or the document cannot be opened.
            TimeoutError: The time is up before there is a slot.
        """
        document.close()
        raise Unsupported(reason="this backend opens no documents")

    @abstractmethod
    def state(self) -> BackendState:
        """Return the state at this instant. Starts nothing."""

    def probe(self) -> BackendState:
        """Return the state; where documents could not be read of late, find out whether they can.

        For health checks: a service that no request reaches, because it was
        said to be unavailable, must find out by itself that it is not any more.
        """
        return self.state()

    def check(self) -> list[Problem]:
        """Return what is wrong with the backend's configuration on this host."""
        return []

    @abstractmethod
    def close(self, grace: float = 0) -> None:
        """Refuse new requests, give running ones `grace` seconds, then end them.

        Whoever waits for one that is ended gets `Unavailable`.
        """
