"""What a backend must do: run a request, yield its pages, then give the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pdfpool_django.model import Event, Extraction, Limits, Request
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
    python: str = ""
    """Path of the interpreter that runs the launcher."""
    page_workers: int = 1
    """Processes that read the pages of one document."""


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
    details: dict[str, Any]
    """What else the backend tells; differs from one to the next."""

    def as_dict(self) -> dict[str, Any]:
        """Return the state as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with how the backend would work here."""

    message: str
    hint: str


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
