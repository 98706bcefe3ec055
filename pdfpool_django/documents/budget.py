"""What one job may still cost, over all the sessions that work for it."""

from __future__ import annotations

import threading
import time

from pdfpool_django.errors import OutputTooLarge, PdfPoolError, Unavailable
from pdfpool_django.model import Limits

MAX_LOST_PAGES = 3
"""Pages that may cost a child each before the rest is not attempted."""

_MAX_LOST_LAUNCHERS = 2


class Budget:
    """The time, the output and the losses that a job has left. The time runs from now on.

    Its sessions may each be in a thread of their own.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.monotonic()
        self.deadline = self.started + limits.deadline
        self.error: PdfPoolError | None = None
        """What stopped the reading of pages before their end."""
        self.first_failure: PdfPoolError | None = None
        """Why the first page that failed did so."""
        self._lock = threading.Lock()
        self._kept = 0
        self._lost_pages = 0
        self._lost_launchers = 0

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    @property
    def output_left(self) -> int:
        """Bytes of output that may still be kept."""
        return self.limits.max_output - self._kept

    def keep(self, size: int) -> None:
        """Take so many bytes of output in.

        Raises:
            OutputTooLarge: That is more than is left.
        """
        with self._lock:
            self._kept += size
            if self._kept > self.limits.max_output:
                raise OutputTooLarge(limit=self.limits.max_output)

    def stop(self, error: PdfPoolError) -> None:
        """Have no further page read."""
        with self._lock:
            self.error = self.error or error

    def fail(self, error: PdfPoolError | None) -> None:
        """Take note of a page's failure, if it is one."""
        with self._lock:
            self.first_failure = self.first_failure or error

    def lose_page(self, error: PdfPoolError) -> None:
        """Take note of a page that has cost its child."""
        self.fail(error)
        with self._lock:
            self._lost_pages += 1
            final = isinstance(error, OutputTooLarge) or self.late
            if final or self._lost_pages >= MAX_LOST_PAGES:
                self.error = self.error or error

    def lose_launcher(self) -> None:
        """Take note of a child that was lost without the document's doing.

        Raises:
            Unavailable: That happens again and again.
        """
        with self._lock:
            self._lost_launchers += 1
            if self._lost_launchers > _MAX_LOST_LAUNCHERS:
                raise Unavailable
