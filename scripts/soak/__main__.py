"""Put the example site under load while its processes are killed: ``python -m scripts.soak``.

It prints what was asked and told, what was killed, how long answers took and
the memory of all that; and draws it. Whatever is not as it must be makes the
exit status 1.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import django

from scripts.soak import site
from scripts.soak.watching import Life, Watcher, last_life
from tests.server.site import wait_until_gone, watched

if TYPE_CHECKING:
    from scripts.soak.asking import Asker

GROWTH = 32 * 1024 * 1024
"""Bytes of resident memory that the last worker may gain after its first minute."""

WORKERS_SHARE = 0.5
"""Of the time, after which no worker is killed any more."""

SETTLE_SECONDS = 20.0
_STANDBYS = 2
_SHOWN = 20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long")
    parser.add_argument("--clients", type=int, default=32, help="how many at once")
    parser.add_argument("--every", type=float, default=3, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=1, help="says what is asked and killed")
    parser.add_argument("--plot", type=Path, default=Path("build/soak.svg"), help="where to draw")
    parser.add_argument("--log", type=Path, help="where to keep the site's log")
    return parser.parse_args()


def main() -> int:
    """Serve, ask, kill, and look at what is left."""
    options = arguments()
    os.environ["DJANGO_SETTINGS_MODULE"] = site.SETTINGS
    django.setup()
    from scripts.soak import report

    with site.served() as served:
        soak = Soak(served, options)
        soak.run()
        life = last_life(soak.watcher.samples)
        complaints = [*soak.complaints(), *_of_memory(life), *what_is_left(soak)]
        log = served.log.read_text(errors="replace")
    if options.log:
        options.log.write_text(log)
    print(report.tables(soak.told, soak.kills, life))
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    options.plot.write_text(report.plot(soak.watcher.samples, soak.kills), encoding="utf-8")
    for fault in site.faults_in(log):
        print(f"in the log: {fault}")
    for complaint in complaints[:_SHOWN]:
        print(f"FAILED {complaint}")
    print(f"{len(soak.told):,} requests, {len(complaints)} complaints; drawn in {options.plot}")
    return 1 if complaints else 0


class Soak:
    """A site under load."""

    def __init__(self, served: site.Site, options: argparse.Namespace) -> None:
        from scripts.soak.asking import Asker, Questions, Told
        from scripts.soak.chaos import Chaos

        self.site = served
        self.told: list[Told] = []
        self._options = options
        site.await_workers(served)
        self._questions = Questions(options.seed)
        sessions = {user: served.client(user) for user in site.USERS}
        self._warm_up()
        self.before = self._descriptors()
        until = time.monotonic() + options.seconds
        workers_until = until - options.seconds * (1 - WORKERS_SHARE)
        self._chaos = Chaos(served, options.every, workers_until, options.seed)
        self.kills = self._chaos.kills
        self.watcher = Watcher(served)
        self._askers = [
            Asker(sessions[site.USERS[number % len(site.USERS)]], self.kills)
            for number in range(options.clients)
        ]
        self._until = until

    def _warm_up(self) -> None:
        if not reads_its_sample(self.site):
            raise RuntimeError(f"the site does not read its sample: {self.site.state()}")
        settled(self.site)

    def _descriptors(self) -> Counter[str]:
        (worker,) = self.site.processes().workers
        return site.descriptors(worker)

    def run(self) -> None:
        """Have every client ask until the time is up, and be answered."""
        threads = [
            threading.Thread(target=self._ask, args=(asker, number), name=f"client {number}")
            for number, asker in enumerate(self._askers)
        ]
        for thread in (self.watcher, self._chaos, *threads):
            thread.start()
        time.sleep(max(0, self._until - time.monotonic()))
        self._chaos.end()
        for thread in threads:
            thread.join()
        self.watcher.end()

    def _ask(self, asker: Asker, number: int) -> None:
        dice = random.Random(self._options.seed * 1000 + number)
        while time.monotonic() < self._until:
            self.told.append(asker.ask(self._questions.any(dice)))
            if dice.random() < 0.2:
                time.sleep(dice.uniform(0, 0.2))

    def complaints(self) -> list[str]:
        """Return what was told and not in the table."""
        return [f"{each.kind}: {each.complaint}" for each in self.told if each.complaint]


def reads_its_sample(served: site.Site) -> bool:
    """Ask until the site reads its sample; one whose launcher was killed starts none unasked."""
    client = served.client(site.USERS[0])
    sample = Path("example_project/samples/invoice.pdf").read_bytes()
    return _becomes_true(lambda: client.extract(sample).status == 200)


def settled(served: site.Site) -> bool:
    """Wait until nothing runs any more, and the standbys are back."""

    def at_rest() -> bool:
        state, found = served.state(), served.processes()
        busy = state["running"] or state["queued"]
        return not busy and len(found.children) == _STANDBYS and len(found.launchers) == 1

    return _becomes_true(at_rest)


def _becomes_true(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + SETTLE_SECONDS
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def _of_memory(life: Life | None) -> Iterator[str]:
    if life is not None and life.growth > GROWTH:
        yield f"the last worker has grown from {life.early:,} to {life.late:,} bytes"


def what_is_left(soak: Soak) -> Iterator[str]:
    """Yield what is not as it was before; at last, end the site and see all of it gone."""
    served = soak.site
    if not reads_its_sample(served):
        yield f"nothing can be read any more: {served.state()}"
    if not settled(served):
        yield f"never at rest: {served.state()}, {served.processes()}"
    found = served.processes()
    if any(site.is_zombie(pid) for pid in found.all):
        yield f"a zombie among {found}"
    (worker,) = found.workers[:1] or (0,)
    if not _becomes_true(lambda: not site.descriptors(worker) - soak.before):
        yield f"descriptors left: {site.descriptors(worker) - soak.before}"
    if files := sorted(os.listdir(served.temporary)):
        yield f"temporary files left: {files}"
    with watched([served.process.pid, *found.all]) as fds:
        served.process.send_signal(signal.SIGTERM)
        if count := wait_until_gone(fds, SETTLE_SECONDS):
            yield f"{count} processes outlive the site"
    if files := sorted(os.listdir(served.temporary)):
        yield f"temporary files left after the end: {files}"


if __name__ == "__main__":
    sys.exit(main())
