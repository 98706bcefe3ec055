"""One pool and one launcher in this process: the default."""

from __future__ import annotations

import contextlib
import logging
import math
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from pdfpool_django import documents, errors
from pdfpool_django.backends import local_checks
from pdfpool_django.backends.base import Backend, BackendConfig, BackendState, Problem, Run
from pdfpool_django.backends.local_handles import Handles
from pdfpool_django.backends.local_jobs import Jobs
from pdfpool_django.documents import Budget, Document, Session, Stopped
from pdfpool_django.model import Event, Extraction, OpenRequest, Request
from pdfpool_django.pool import CallerBusy, Job, JobCrashed, Pool, PoolBusy, PoolClosed, Ticket
from pdfpool_django.sandbox import platforms
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.sandbox.host import Sandbox, SandboxConfig

logger = logging.getLogger("pdfpool_django.backends")

MAX_STANDBYS = 2

_REMEMBERED_DURATIONS = 50
_ASSUMED_DURATION = 1.0
_PROBE_SECONDS = 5.0


class LocalRun(Run):
    """A ticket of the pool, whose errors are the application's."""

    def __init__(self, backend: LocalBackend, ticket: Ticket[Extraction]) -> None:
        self.started = ticket.started
        self._backend = backend
        self._ticket = ticket

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        return self._ticket.events(timeout)

    def aevents(self, timeout: float | None = None) -> AsyncIterator[Event]:
        return self._ticket.aevents(timeout)

    def result(self, timeout: float | None = None) -> Extraction:
        with self._backend.translated():
            return self._ticket.result(timeout)

    async def aresult(self, timeout: float | None = None) -> Extraction:  # noqa: ASYNC109
        with self._backend.translated():
            return await self._ticket.aresult(timeout)

    def leave(self) -> None:
        self._ticket.leave()


class LocalBackend(Backend):
    """Runs requests in this process's own pool and children."""

    def __init__(self, config: BackendConfig) -> None:
        super().__init__(config)
        self._pool = Pool(config.slots, config.queue, config.wait)
        self._sandbox = Sandbox(
            SandboxConfig(
                engine=config.engine,
                python=config.python,
                memory=config.limits.memory,
                cpu=config.limits.deadline,
                standbys=min(config.slots, MAX_STANDBYS),
            )
        )
        self._durations: deque[float] = deque(maxlen=_REMEMBERED_DURATIONS)
        self._jobs = Jobs()
        self._handles = Handles(self._pool, config, self._jobs)
        self._closed = False

    def submit(self, request: Request, document: Descriptor) -> LocalRun:
        def work(job: Job) -> Extraction:
            return self._work(job, request, document)

        try:
            with self.translated():
                ticket = self._pool.enter(request.key, request.caller, work)
        except BaseException:
            document.close()
            raise
        if not ticket.started:
            document.close()
        return LocalRun(self, ticket)

    def open_document(
        self, request: OpenRequest, document: Descriptor, timeout: float | None
    ) -> Document:
        with self.translated():
            return self._handles.open(request, document, timeout)

    def state(self) -> BackendState:
        stats = self._pool.stats()
        sandbox = self._sandbox.stats()
        reason = "no child can be started" if sandbox.failing else None
        obstacle = platforms.obstacle()
        if obstacle is not None:
            reason = obstacle.reason
        if self._closed:
            reason = "shutting down"
        return BackendState(
            available=reason is None,
            reason=reason,
            slots=stats.slots,
            queue=stats.queue,
            running=stats.running,
            queued=stats.queued,
            jobs=self._jobs.running(),
            refusals=self._jobs.refusals(),
            details={
                "tickets": stats.tickets,
                "jobs_started": stats.started,
                "joined": stats.joined,
                "engine": sandbox.engine,
                "unfiltered": sandbox.unfiltered,
                "launcher_pid": sandbox.launcher_pid,
                "launchers_started": sandbox.launchers_started,
                "standbys": sandbox.standbys,
                "children_used": sandbox.children_used,
                "children_ended": sandbox.children_ended,
                "endings": sandbox.endings,
            },
        )

    def probe(self) -> BackendState:
        if self._sandbox.stats().failing and not self._closed:
            with contextlib.suppress(errors.Unavailable):
                self._sandbox.release(self._sandbox.child(time.monotonic() + _PROBE_SECONDS))
        return self.state()

    def check(self) -> list[Problem]:
        return local_checks.problems(self.config)

    def close(self, grace: float = 0) -> None:
        self._closed = True
        self._pool.close()
        self._jobs.wait_idle(grace)
        self._handles.close()
        self._sandbox.close()

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the pool's errors into the application's."""
        try:
            yield
        except PoolBusy as error:
            raise self._refused(errors.Busy, self._estimate()) from error
        except CallerBusy as error:
            raise self._refused(errors.CallerBusy, self._estimate()) from error
        except PoolClosed as error:
            raise self._refused(errors.Unavailable, self.config.wait) from error
        except JobCrashed as error:
            raise self._logged(error) from error

    def _refused(self, cls: type[errors.PdfPoolError], seconds: float) -> errors.PdfPoolError:
        self._jobs.refuse(cls.code)
        return cls(retry_after=max(1, math.ceil(seconds)))

    def _logged(self, fault: Exception) -> errors.InternalError:
        error = errors.InternalError()
        logger.error("a job failed, reference %s", error.reference, exc_info=fault)
        return error

    def _estimate(self) -> float:
        """Return the seconds after which a slot is likely free, from how long recent jobs took."""
        durations = list(self._durations) or [_ASSUMED_DURATION]
        stats = self._pool.stats()
        return statistics.median(durations) * (stats.queued + 1) / stats.slots

    def _work(self, job: Job, request: Request, document: Descriptor) -> Extraction:
        started = time.monotonic()
        try:
            with document, self._jobs.one(request.caller, job.publish) as publish:
                return self._read(job, request, document, publish)
        finally:
            self._durations.append(time.monotonic() - started)

    def _read(
        self, job: Job, request: Request, document: Descriptor, publish: Callable[[Event], None]
    ) -> Extraction:
        limits, budget = self.config.limits, Budget(self.config.limits)
        sessions = [
            Session(self._sandbox, document, request.password, limits, budget)
            for _ in range(self.config.page_workers)
        ]

        def stop_if_abandoned() -> None:
            if job.give_up():
                for session in sessions:
                    session.stop()

        job.when_abandoned(stop_if_abandoned)
        try:
            return documents.read(
                sessions[0],
                request.pages,
                request.sha256,
                self._engine,
                publish,
                helpers=sessions[1:],
            )
        except errors.PdfPoolError:
            raise
        except Stopped as error:
            raise errors.Unavailable from error  # which nobody hears
        except OSError as error:
            logger.exception("a document could not be handed to a child")
            raise errors.Unavailable(retry_after=1) from error
        except Exception as error:
            raise self._logged(error) from error
        finally:
            for session in sessions:
                session.close()

    def _engine(self) -> str:
        return self._sandbox.stats().engine or ""

    def __repr__(self) -> str:
        return f"<LocalBackend {self._pool!r}>"
