"""Samples of the site's processes while it is under load."""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass

from scripts.soak.site import Site, memory_of

EVERY = 1.0
FIRST_MINUTE = 60.0
_SAMPLES = 10


@dataclass(frozen=True)
class Sample:
    """The site at one instant; bytes are of resident memory."""

    at: float
    worker: int
    """The worker's process number; 0 while there is none."""
    of_worker: int
    of_launcher: int
    of_children: int


class Watcher(threading.Thread):
    """Takes a sample every second."""

    def __init__(self, site: Site) -> None:
        super().__init__(name="watcher", daemon=True)
        self.samples: list[Sample] = []
        self._site = site
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(EVERY):
            found = self._site.processes()
            self.samples.append(
                Sample(
                    at=time.monotonic(),
                    worker=found.workers[-1] if found.workers else 0,
                    of_worker=memory_of(found.workers[-1:]),
                    of_launcher=memory_of(found.launchers),
                    of_children=memory_of(found.children),
                )
            )

    def end(self) -> None:
        self._ended.set()
        self.join()


@dataclass(frozen=True)
class Life:
    """The last worker's memory: when it had been under load for a while, and at the end."""

    seconds: float
    early: int
    late: int

    @property
    def growth(self) -> int:
        return self.late - self.early


def last_life(samples: list[Sample]) -> Life | None:
    """Return how the last worker has grown since its first minute; or third, if that is shorter."""
    if not samples:
        return None
    own = [sample for sample in samples if sample.worker == samples[-1].worker]
    born, seconds = own[0].at, own[-1].at - own[0].at
    after = born + min(FIRST_MINUTE, seconds / 3)
    early = [sample.of_worker for sample in own if sample.at >= after][:_SAMPLES]
    late = [sample.of_worker for sample in own][-_SAMPLES:]
    return Life(seconds, int(statistics.median(early)), int(statistics.median(late)))
