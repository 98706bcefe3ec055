"""Document handles that hold a slot of the pool while they are open."""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref

from pdfpool_django.backends.base import BackendConfig
from pdfpool_django.backends.local_jobs import Jobs
from pdfpool_django.documents import Document, sandboxes
from pdfpool_django.model import OpenRequest
from pdfpool_django.pool import Job, Pool, Ticket
from pdfpool_django.sandbox.descriptors import Descriptor

_END_SECONDS = 1.0


class Handles:
    """The handles that are open, each a job of the pool."""

    def __init__(self, pool: Pool, config: BackendConfig, jobs: Jobs) -> None:
        self._pool = pool
        self._jobs = jobs
        self._config = config
        self._lock = threading.Lock()
        self._closed = False
        # No set: one that is collected while another is added must not disturb that.
        self._open: list[weakref.ref[Document]] = []

    def open(self, request: OpenRequest, document: Descriptor, timeout: float | None) -> Document:
        """Wait for a slot, and open the document.

        Raises:
            PoolBusy: There is no slot, nor a place in the queue.
            CallerBusy: The caller has a job already.
            PdfPoolError: The document cannot be opened.
            TimeoutError: The time is up.
        """
        hold = _Hold(self._config.limits.deadline)
        try:
            self._await_slot(hold, request.caller, timeout)
            handle = Document(
                document,
                sandboxes.for_handles(
                    self._config.limits, self._config.engine, self._config.python
                ),
                limits=self._config.limits,
                source=request.source,
                password=request.password,
                workers=request.workers,
                on_close=hold.end,
                after_close=hold.await_end,
            )
        except BaseException:
            hold.end()
            document.close()
            hold.await_end()
            raise
        hold.keep(handle)
        self._keep(handle)
        return handle

    def _keep(self, handle: Document) -> None:
        with self._lock:
            self._open = [each for each in self._open if _is_open(each())]
            self._open.append(weakref.ref(handle))
            closed = self._closed
        if closed:  # meanwhile, so that `close` has not seen this one
            handle.close(timeout=0)

    def _await_slot(self, hold: _Hold, caller: str, timeout: float | None) -> None:
        def run(job: Job) -> None:
            with self._jobs.one(caller, job.publish):
                hold.run(job)

        ticket = self._pool.enter(hold, caller, run)
        try:
            for _ in ticket.events(timeout):
                hold.ticket = ticket
                return
            ticket.result()
        except BaseException:
            ticket.leave()
            raise

    def close(self) -> None:
        """Close the handles that are open still; their calls raise `Closed`."""
        with self._lock:
            self._closed = True
            handles = [each() for each in self._open]
        for handle in handles:
            if handle is not None:
                handle.close(timeout=0)


def _is_open(handle: Document | None) -> bool:
    return handle is not None and not handle.closed


class _Hold:
    """What keeps a slot: a job that waits until the handle is closed, or its time is up."""

    def __init__(self, seconds: float) -> None:
        self.ticket: Ticket[None] | None = None
        self._seconds = seconds
        self._thread: threading.Thread | None = None
        self._handle: weakref.ref[Document] | None = None
        self._handles_end: socket.socket | None = None
        self._ended = False
        """Whether the slot is not needed any more."""
        self._expired = False
        """Whether the time is up."""

    def keep(self, handle: Document) -> None:
        """Have the handle closed when its time is up."""
        self._handle = weakref.ref(handle)
        if self._expired:  # while it was being opened
            handle.close(timeout=0)

    def run(self, job: Job) -> None:
        """Hold the slot that the job has been given."""
        self._thread = threading.current_thread()
        handles_end, jobs_end = socket.socketpair()
        with jobs_end:
            self._handles_end = handles_end
            if self._ended:  # whoever waited for the slot has gone in this very instant
                handles_end.close()
                return
            jobs_end.settimeout(self._seconds)
            job.publish("granted")
            try:
                jobs_end.recv(1)
            except TimeoutError:
                self._expire()

    def end(self) -> None:
        """Give the slot back; takes no lock, so that a finalizer may do it."""
        if self._ended:
            return
        self._ended = True
        handles_end = self._handles_end
        if handles_end is not None:
            with contextlib.suppress(OSError):
                # A process that was forked meanwhile has it open, too.
                handles_end.shutdown(socket.SHUT_RDWR)
            handles_end.close()

    def await_end(self) -> None:
        """Return when slot and caller are free: who asks again then is not refused."""
        if self.ticket is not None and self._thread is not threading.current_thread():
            with contextlib.suppress(Exception):  # the job's own failure is nobody's any more
                self.ticket.result(_END_SECONDS)

    def _expire(self) -> None:
        self._expired = True
        handle = None if self._handle is None else self._handle()
        if handle is not None:
            handle.close(timeout=0)
