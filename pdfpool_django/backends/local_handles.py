"""Document handles that hold a slot of the pool while they are open."""

from __future__ import annotations

import socket
import weakref

from pdfpool_django.backends.base import BackendConfig
from pdfpool_django.backends.local_jobs import Jobs
from pdfpool_django.documents import Document, sandboxes
from pdfpool_django.model import OpenRequest
from pdfpool_django.pool import Job, Pool
from pdfpool_django.sandbox.descriptors import Descriptor


class Handles:
    """The handles that are open, each a job of the pool."""

    def __init__(self, pool: Pool, config: BackendConfig, jobs: Jobs) -> None:
        self._pool = pool
        self._jobs = jobs
        self._config = config
        self._open: weakref.WeakSet[Document] = weakref.WeakSet()

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
            )
        except BaseException:
            hold.end()
            document.close()
            raise
        hold.expires(handle)
        self._open.add(handle)
        return handle

    def _await_slot(self, hold: _Hold, caller: str, timeout: float | None) -> None:
        def run(job: Job) -> None:
            with self._jobs.one(caller, job.publish):
                hold.run(job)

        with self._pool.enter(hold, caller, run) as ticket:
            for _ in ticket.events(timeout):
                return
            ticket.result()

    def close(self) -> None:
        """Close the handles that are open still; their calls raise `Closed`."""
        for handle in list(self._open):
            handle.close(timeout=0)


class _Hold:
    """What keeps a slot: a job that waits until the handle is closed, or its time is up."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Closing a socket takes no lock, so that a finalizer may do it.
        self._handles_end, self._jobs_end = socket.socketpair()
        self._handle: weakref.ref[Document] | None = None

    def expires(self, handle: Document) -> None:
        """Have the handle closed when its time is up."""
        self._handle = weakref.ref(handle)

    def run(self, job: Job) -> None:
        """Hold the slot that the job has been given."""
        with self._jobs_end:
            self._jobs_end.settimeout(self._seconds)
            job.publish("granted")
            try:
                self._jobs_end.recv(1)
            except TimeoutError:
                self._expire()

    def end(self) -> None:
        """Give the slot back."""
        self._handles_end.close()

    def _expire(self) -> None:
        handle = None if self._handle is None else self._handle()
        if handle is not None:
            handle.close(timeout=0)
