"""The pool under every order of steps of three threads, with a bounded number of preemptions.

``PDFPOOL_PREEMPTIONS=3`` tries that many where the tests try fewer; it takes its time. With
``-rP`` pytest shows how many orders each scenario has.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pool.scheduling import Loaded, Lock, Run, Scheduler, compiled, schedules

MORE = int(os.environ.get("PDFPOOL_PREEMPTIONS", "0"))
MOST = 10_000_000 if MORE else 500
"""Orders of a scenario that are tried; what is beyond is left to the longer run."""

Told = tuple[tuple[str, Any], ...]


class Stage:
    """A pool, and what the threads of one run were told."""

    def __init__(self, loaded: Loaded, slots: int, queue: int, wait: float) -> None:
        self.scheduler = loaded.scheduler
        self.pool = loaded.pool.Pool(slots, queue, wait)
        self.told: dict[str, Any] = {}
        self.runs: list[str] = []
        self.wrong: list[str] = []
        """What threads have seen that must not be."""
        self.expected_errors = (loaded.pool.PoolError, TimeoutError)
        self.gate = Lock(self.scheduler, guards=False)
        self.gate.held = True

    def work(self, name: str) -> Callable[[Any], str]:
        """Return a job's work that says who brought it."""

        def fn(job: Any) -> str:
            self.runs.append(name)
            return name

        return fn

    def gated(
        self, name: str, first: Callable[[Any], object] | None = None
    ) -> Callable[[Any], str]:
        """Return work that waits until the gate is open, and it stays open."""

        def fn(job: Any) -> str:
            self.runs.append(name)
            if first is not None:
                first(job)
            with self.gate:
                return name

        return fn

    def asks(self, name: str, key: str, caller: str = "", **options: Any) -> Callable[[], None]:
        """Return what a thread does that asks the pool and notes what it is told."""
        fn = options.pop("fn", None) or self.work(name)

        def ask() -> None:
            self.note(name, lambda: self.pool.do(key, caller or name, fn, **options))

        return ask

    def note(self, name: str, ask: Callable[[], Any]) -> None:
        try:
            self.told[name] = ask()
        except self.expected_errors as error:
            self.told[name] = type(error).__name__

    def opens(self) -> None:
        self.gate.release()

    # What always holds

    def check(self) -> None:
        """See that the pool's books agree with each other; nobody is inside."""
        pool = self.pool
        live, waiting = list(pool._callers.values()), list(pool._waiting)
        assert pool._running <= pool._slots
        assert len(waiting) <= pool._queue
        assert not waiting or pool._running == pool._slots, "a slot is free while a job waits"
        assert [job for job in live if job._outcome is not None] == []
        assert all(pool._callers.get(job.caller) is job for job in pool._jobs.values())
        assert pool._running == sum(job._running for job in live)
        assert set(waiting) == {job for job in live if not job._running}
        assert pool._tickets == sum(len(job._tickets) for job in live)
        assert pool._running + len(pool._idle) == pool._threads <= pool._slots

    def check_end(self) -> None:
        """See that nothing is left, the pool's threads included."""
        self.check()
        pool = self.pool
        assert self.wrong == []
        assert (pool._running, pool._threads, pool._tickets) == (0, 0, 0)
        assert (pool._jobs, pool._callers, pool._idle) == ({}, {}, [])
        assert not pool._waiting
        mutex = pool._mutex
        assert (mutex._inside, mutex._later, list(mutex._deferred)) == (set(), [], [])


@dataclass(frozen=True)
class Scenario:
    """Three threads, and all that they may be told."""

    threads: Callable[[Stage], dict[str, Callable[[], object]]]
    told: frozenset[Told] | Callable[[Mapping[str, Any], Stage], bool]
    slots: int = 1
    queue: int = 1
    wait: float = math.inf
    refused_threads: int = 0
    coarse: int = 2
    """Preemptions where steps are locks."""
    fine: int = 1
    """Preemptions where steps are accesses of attributes, too."""


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, told: Any, **options: Any) -> Callable[..., Any]:
    """Register what the decorated function returns for a stage."""

    def register(threads: Callable[[Stage], dict[str, Callable[[], object]]]) -> Any:
        SCENARIOS[name] = Scenario(threads, told, **options)
        return threads

    return register


def ran(*names: str) -> Callable[[Mapping[str, Any], Stage], bool]:
    """Each is told the name of one who asked for the same, and that one's work has run once."""

    def holds(told: Mapping[str, Any], stage: Stage) -> bool:
        runs = Counter(stage.runs)
        return (
            set(told) == set(names)
            and set(told.values()) == set(runs) == {*runs}
            and all(count == 1 for count in runs.values())
        )

    return holds


@scenario("three ask for the same", ran("a", "b", "c"), queue=0)
def _join(stage: Stage) -> dict[str, Callable[[], object]]:
    return {name: stage.asks(name, "key") for name in "abc"}


def one_at_most_is_refused(told: Mapping[str, Any], stage: Stage) -> bool:
    refused = [name for name, value in told.items() if value == "PoolBusy"]
    return len(refused) <= 1 and sorted([*refused, *stage.runs]) == ["a", "b", "c"]


@scenario("three ask for a slot and a place", one_at_most_is_refused)
def _queue(stage: Stage) -> dict[str, Callable[[], object]]:
    return {name: stage.asks(name, name) for name in "abc"}


def nobody_is_refused(told: Mapping[str, Any], stage: Stage) -> bool:
    return sorted(told.values()) == sorted(stage.runs) == ["a", "b", "c"]


@scenario("three ask for a slot and two places", nobody_is_refused, queue=2)
def _places(stage: Stage) -> dict[str, Callable[[], object]]:
    return {name: stage.asks(name, name) for name in "abc"}


def the_leaver_costs_nobody(told: Mapping[str, Any], stage: Stage) -> bool:
    return (
        told["holder"] == "holder"
        and told["joiner"] in ("joiner", "leaver")
        and (stage.runs.count("joiner") + stage.runs.count("leaver") <= 2)
    )


@scenario("one leaves the queue as another joins", the_leaver_costs_nobody, queue=2)
def _leave(stage: Stage) -> dict[str, Callable[[], object]]:
    def leave() -> None:
        stage.pool.enter("key", "leaver", stage.work("leaver")).leave()

    def hold() -> None:
        with stage.pool.enter("held", "holder", stage.gated("holder")) as ticket:
            stage.opens()
            stage.note("holder", ticket.result)

    return {"holder": hold, "leaver": leave, "joiner": stage.asks("joiner", "key")}


def one_may_be_late(told: Mapping[str, Any], stage: Stage) -> bool:
    return told["starter"] in ("starter", "joiner", "TimeoutError") and told["joiner"] in (
        "starter",
        "joiner",
    )


@scenario("time is up as the job ends", one_may_be_late)
def _timeout(stage: Stage) -> dict[str, Callable[[], object]]:
    return {
        "starter": stage.asks("starter", "key", fn=stage.gated("starter"), timeout=1),
        "opener": stage.opens,
        "joiner": stage.asks("joiner", "key", fn=stage.gated("joiner")),
    }


def the_grant_or_the_clock(told: Mapping[str, Any], stage: Stage) -> bool:
    ended = stage.runs.count("waiter") == (told["waiter"] == "waiter")
    return told["holder"] in ("holder", "PoolBusy") and ended and told["looker"] in (0, 1)


@scenario("the queue's clock runs out as a slot comes free", the_grant_or_the_clock, wait=1)
def _expiry(stage: Stage) -> dict[str, Callable[[], object]]:
    def hold() -> None:
        stage.note("holder", lambda: stage.pool.do("held", "holder", stage.work("holder")))

    def look() -> None:
        stage.told["looker"] = stage.pool.queued

    return {"holder": hold, "waiter": stage.asks("waiter", "key"), "looker": look}


def the_closed_never_run(told: Mapping[str, Any], stage: Stage) -> bool:
    return told["closer"] == 0 and all(
        (told[name] == name) == (name in stage.runs) and told[name] in (name, "PoolClosed")
        for name in "ab"
    )


@scenario("the pool closes", the_closed_never_run)
def _close(stage: Stage) -> dict[str, Callable[[], object]]:
    def close() -> None:
        stage.pool.close()
        stage.told["closer"] = stage.pool.queued

    return {"a": stage.asks("a", "a"), "b": stage.asks("b", "b"), "closer": close}


def who_stays_is_served(told: Mapping[str, Any], stage: Stage) -> bool:
    return told["starter"] in ("starter", "joiner", "TimeoutError") and told["joiner"] in (
        "starter",
        "joiner",
    )


@scenario("a job gives up as somebody joins", who_stays_is_served)
def _give_up(stage: Stage) -> dict[str, Callable[[], object]]:
    def fn(name: str) -> Callable[[Any], str]:
        return stage.gated(name, lambda job: job.when_abandoned(lambda: give_up(job)))

    def give_up(job: Any) -> None:
        if job.give_up() and job._tickets:
            stage.wrong.append("it has given up while somebody waits")

    return {
        "starter": stage.asks("starter", "key", fn=fn("starter"), timeout=1),
        "joiner": stage.asks("joiner", "key", fn=fn("joiner")),
        "opener": stage.opens,
    }


def one_job_for_each_caller(told: Mapping[str, Any], stage: Stage) -> bool:
    return (
        told["first"] in ("first", "guest", "CallerBusy")
        and told["second"] in ("second", "CallerBusy")
        and told["guest"] in ("first", "guest")
        and not (told["first"] == told["second"] == "CallerBusy")
    )


@scenario("one caller asks twice", one_job_for_each_caller, slots=2)
def _caller(stage: Stage) -> dict[str, Callable[[], object]]:
    return {
        "first": stage.asks("first", "one", "user"),
        "second": stage.asks("second", "two", "user"),
        "guest": stage.asks("guest", "one"),
    }


def events_come_in_order(told: Mapping[str, Any], stage: Stage) -> bool:
    return (
        told["reader"] == [1, 2]
        and told["leaver"] in ([], [1])
        and told["joiner"] in ("publisher", "joiner")
    )


@scenario("events are read as a ticket leaves", events_come_in_order)
def _events(stage: Stage) -> dict[str, Callable[[], object]]:
    def publish(job: Any) -> str:
        stage.runs.append("publisher")
        job.publish(1)
        with stage.gate:  # until the reader has it, so it must be woken before the end
            job.publish(2)
        return "publisher"

    def read() -> None:
        with stage.pool.enter("key", "reader", publish) as ticket:
            events = ticket.events()
            stage.told["reader"] = [next(events)]
            stage.opens()
            stage.told["reader"] += events

    def leave() -> None:
        with stage.pool.enter("key", "leaver", publish) as ticket:
            stage.told["leaver"] = [next(ticket.events())]

    return {
        "reader": read,
        "leaver": leave,
        "joiner": stage.asks("joiner", "key", fn=publish),
    }


@scenario("a thread idles out as it is needed", ran("a", "b", "c", "d"), slots=2, queue=3)
def _idle(stage: Stage) -> dict[str, Callable[[], object]]:
    asks = {name: stage.asks(name, name) for name in "abcd"}

    def twice() -> None:
        asks["a"]()
        asks["d"]()

    return {"twice": twice, "b": asks["b"], "c": asks["c"]}


def one_crashes(told: Mapping[str, Any], stage: Stage) -> bool:
    crashed = [name for name, value in told.items() if value == "JobCrashed"]
    return len(crashed) == 1 and sorted([*crashed, *stage.runs]) == ["a", "b", "c"]


@scenario("a thread cannot be started", one_crashes, queue=2, refused_threads=1)
def _no_thread(stage: Stage) -> dict[str, Callable[[], object]]:
    return {name: stage.asks(name, name) for name in "abc"}


# Trying them


class Trial:
    """A scenario under a set of modules, sound ones or others."""

    def __init__(self, chosen: Scenario, loaded: Loaded, *, fine: bool) -> None:
        self.chosen = chosen
        self.told: Counter[Told] = Counter()
        self.orders = 0
        self.stage: Stage
        self._loaded = loaded
        self._fine = fine

    def run(self, choices: Mapping[int, int]) -> Run:
        loaded = self._loaded
        scheduler = loaded.scheduler = Scheduler(choices, fine=self._fine)
        loaded.refused_threads = self.chosen.refused_threads
        stage = self.stage = Stage(loaded, self.chosen.slots, self.chosen.queue, self.chosen.wait)
        scheduler.check = stage.check
        threads = self.chosen.threads(stage)
        for name, work in threads.items():
            scheduler.spawn(name, work)
        found = scheduler.go()
        if found.error is None:
            found.error = self._wrong_end(stage)
        return found

    def _wrong_end(self, stage: Stage) -> AssertionError | None:
        try:
            stage.check_end()
            assert self.chosen.told(stage.told, stage), f"{stage.told} after {stage.runs}"
        except AssertionError as error:
            return error
        return None

    def first_error(self, preemptions: int, most: int = MOST) -> BaseException | None:
        """Try the orders; return the first error, with the order that it takes."""
        for found in schedules(self.run, preemptions, most):
            self.orders += 1
            if found.error is not None:
                found.error.add_note(f"in the order {dict(found.choices)}")
                return found.error
            self.told[
                tuple(sorted((name, str(value)) for name, value in self.stage.told.items()))
            ] += 1
        return None


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return Loaded(compiled())


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("fine", [False, True], ids=["locks", "attributes"])
@pytest.mark.timeout(36_000 if MORE else 120)
def test_in_every_order(name: str, fine: bool, loaded: Loaded) -> None:
    chosen = SCENARIOS[name]
    trial = Trial(chosen, loaded, fine=fine)
    error = trial.first_error(MORE or (chosen.fine if fine else chosen.coarse))
    print(f"{name}: {trial.orders:,} orders, {len(trial.told)} ends")
    if error is not None:
        raise error


# The finder finds: each of these faults is one that the pool could have had

FAULTS: dict[str, tuple[str, str, tuple[str, str]]] = {
    "an idle thread ends and stays on the list": (
        "a thread idles out as it is needed",
        "pool",
        ("                    self._pool._idle.remove(self)\n", ""),
    ),
    "looking for the job and starting it are two steps": (
        "three ask for the same",
        "pool",
        (
            "            return self._start(key, caller, fn)",
            "        with self._mutex:\n            return self._start(key, caller, fn)",
        ),
    ),
    "a waiter that is woken does not look again": (
        "time is up as the job ends",
        "tickets",
        (
            "            while not self._settled():\n                self._job._changed",
            "            if not self._settled():\n                self._job._changed",
        ),
    ),
    "a job that ends wakes nobody": (
        "three ask for the same",
        "pool",
        ("        job._wake()\n\n    def _forget_key", "\n    def _forget_key"),
    ),
    "the slot is let go before the next job gets it": (
        "three ask for a slot and a place",
        "pool",
        (
            "                self._job = self._pool._end(job, outcome)\n",
            "                self._pool._running -= 1\n"
            "            with self._pool._mutex:\n"
            "                self._pool._running += 1\n"
            "                self._job = self._pool._end(job, outcome)\n",
        ),
    ),
    "giving up does not look who is there": (
        "a job gives up as somebody joins",
        "tickets",
        ("            if self._tickets:\n                return False\n", ""),
    ),
    "an event wakes no reader": (
        "events are read as a ticket leaves",
        "tickets",
        (
            "self._events.append(event)\n            self._published.notify_all()",
            "self._events.append(event)",
        ),
    ),
    "closing forgets the queue": (
        "the pool closes",
        "pool",
        (
            "            while self._waiting:\n                self._drop(next(",
            "            while self._waiting and not self:\n                self._drop(next(",
        ),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    where, module, change = FAULTS[name]
    planted = Loaded(compiled({module: change}))
    trial = Trial(SCENARIOS[where], planted, fine=False)
    assert trial.first_error(2) is not None, "no order of steps has shown it"


def test_a_race_between_two_accesses_is_found_where_they_are_steps() -> None:
    """A count outside the mutex loses some; orders of locks alone do not show it."""
    uncounted = (
        "        _check_hashable(key, caller)\n",
        "        _check_hashable(key, caller)\n        self._count_started += 1\n",
    )
    planted = Loaded(compiled({"pool": uncounted}))
    assert counts_of_three(planted, fine=False) == {6}
    assert min(counts_of_three(planted, fine=True)) < 6


def counts_of_three(loaded: Loaded, *, fine: bool) -> set[int]:
    """Return how many jobs were counted when three were started, in this order and that."""
    trial = Trial(SCENARIOS["three ask for a slot and two places"], loaded, fine=fine)
    counts = set()
    for found in schedules(trial.run, 1, MOST):
        assert found.error is None
        counts.add(trial.stage.pool._count_started)
    return counts
