"""What the jobs of a process are doing, for those who look after it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from pdfpool_django.backends.base import JobState
from pdfpool_django.model import DocumentInfo, Event


class _Progress:
    """How far one job has come; written by its own thread only."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.started = time.monotonic()
        self.pages = 0
        self.selected: int | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentInfo):
            self.selected = event.selected
        else:
            self.pages += 1

    def state(self, now: float) -> JobState:
        return JobState(
            caller=self.caller,
            age=now - self.started,
            pages=self.pages,
            selected=self.selected,
        )


class Jobs:
    """The jobs that run, and the requests that were refused."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: dict[int, _Progress] = {}
        self._refusals: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(
        self, caller: str, publish: Callable[[Event], None]
    ) -> Iterator[Callable[[Event], None]]:
        """Count a job for the length of the block; give what publishes its events."""
        progress = _Progress(caller)

        def observed(event: Event) -> None:
            progress.take(event)
            publish(event)

        with self._changed:
            self._running[id(progress)] = progress
        try:
            yield observed
        finally:
            with self._changed:
                del self._running[id(progress)]
                self._changed.notify_all()

    def refuse(self, code: str) -> None:
        """Count a request that was refused."""
        with self._changed:
            self._refusals[code] += 1

    def wait_idle(self, seconds: float) -> None:
        """Wait until none runs, so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, timeout=max(0, seconds))

    def running(self) -> tuple[JobState, ...]:
        """Return the jobs that run, the oldest first."""
        with self._changed:
            found = list(self._running.values())
        now = time.monotonic()
        return tuple(progress.state(now) for progress in found)

    def refusals(self) -> dict[str, int]:
        """Return how often requests were refused, by code."""
        with self._changed:
            return dict(self._refusals)
