"""Random kills of the site's processes, each remembered with its instant."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.soak.site import Site

CHILD, LAUNCHER, WORKER = "child", "launcher", "worker"
_WEIGHTS = {CHILD: 5, LAUNCHER: 3, WORKER: 2}


@dataclass(frozen=True)
class Kill:
    """A SIGKILL of ours; both instants are of ``time.monotonic``."""

    kind: str
    before: float
    after: float


class Kills:
    """What has been killed, and when."""

    def __init__(self) -> None:
        self._kills: list[Kill] = []

    def add(self, kill: Kill) -> None:
        self._kills.append(kill)

    def within(self, start: float, end: float, *kinds: str) -> bool:
        """Whether one of these kinds was killed at some time from `start` to `end`."""
        # A kill under way is added when it is done: what it has cut may be known before.
        return any(
            kill.kind in kinds and kill.after >= start and kill.before <= end
            for kill in list(self._kills)
        )

    def counts(self) -> Counter[str]:
        return Counter(kill.kind for kill in self._kills)

    def __iter__(self) -> Iterator[Kill]:
        return iter(list(self._kills))


class Chaos(threading.Thread):
    """Kills something every few seconds.

    Args:
        site: Whose processes.
        every: Seconds between two kills, on average.
        workers_until: Instant from which on workers are left alone, so that the last one lives
            long enough for its memory to be judged.
        seed: Says which.
    """

    def __init__(self, site: Site, every: float, workers_until: float, seed: int) -> None:
        super().__init__(name="chaos", daemon=True)
        self.kills = Kills()
        self._site = site
        self._every = every
        self._workers_until = workers_until
        self._dice = random.Random(seed)
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._every * self._dice.uniform(0.5, 1.5)):
            self._strike()

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _strike(self) -> None:
        found = self._site.processes()
        victims = {CHILD: found.children, LAUNCHER: found.launchers, WORKER: found.workers}
        if time.monotonic() > self._workers_until:
            victims.pop(WORKER)
        kinds = [kind for kind, pids in victims.items() if pids]
        if not kinds:
            return  # a worker is only just being replaced
        (kind,) = self._dice.choices(kinds, [_WEIGHTS[kind] for kind in kinds])
        self._kill(kind, self._dice.choice(victims[kind]))

    def _kill(self, kind: str, pid: int) -> None:
        before = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            try:
                # By now the number could be another's.
                if pid in self._site.processes().all:
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                    self.kills.add(Kill(kind, before, time.monotonic()))
            finally:
                os.close(fd)
