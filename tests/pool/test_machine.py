"""The pool against a model of it that knows no threads, over sequences that Hypothesis makes up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pdfpool_django.pool import CallerBusy, Pool, PoolBusy, PoolClosed
from tests.pool.helpers import Clock, Gate, assert_idle, finish

WAIT = 8
KEYS = ["k1", "k2", "k3", "k4"]
CALLERS = ["c1", "c2", "c3", "c4", "c5"]

QUEUED, RUNNING, ENDED = "queued", "running", "ended"


@dataclass(eq=False)
class ModelJob:
    key: str
    caller: str
    gate: Gate
    expires: float
    state: str = QUEUED
    error: type[Exception] | None = None
    tickets: list[ModelTicket] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    abandoned: int = 0
    calls: list[int] = field(default_factory=list)


@dataclass(eq=False)
class ModelTicket:
    job: ModelJob
    real: Any
    started: bool
    left: bool = False


class Model:
    """What the pool should be doing."""

    def __init__(self, slots: int, queue: int, clock: Clock) -> None:
        self.slots = slots
        self.places = queue
        self.clock = clock
        self.closed = False
        self.keys: dict[str, ModelJob] = {}
        self.callers: dict[str, ModelJob] = {}
        self.queue: list[ModelJob] = []
        self.running: list[ModelJob] = []

    def expire(self, late: bool = True) -> None:
        """End the queued jobs whose time is up; in its very instant only if `late`."""
        now = self.clock.now
        for job in list(self.queue):
            if job.expires < now or (late and job.expires == now):
                self.drop(job, PoolBusy)

    def refusal(self, key: str, caller: str, fn: object) -> type[Exception] | None:
        """Return what a request gets instead of a ticket."""
        if key in self.keys:
            return None
        if fn is None:
            return TypeError
        if self.closed:
            return PoolClosed
        if caller in self.callers:
            return CallerBusy
        full = len(self.running) >= self.slots and len(self.queue) >= self.places
        return PoolBusy if full else None

    def admit(self, job: ModelJob) -> None:
        self.keys[job.key] = self.callers[job.caller] = job
        if len(self.running) < self.slots:
            self.grant(job)
        else:
            self.queue.append(job)

    def grant(self, job: ModelJob) -> None:
        job.state = RUNNING
        self.running.append(job)

    def end(self, job: ModelJob, error: type[Exception] | None) -> None:
        self.running.remove(job)
        self.settle(job, error)
        self.expire(late=False)
        if self.queue:
            self.grant(self.queue.pop(0))

    def drop(self, job: ModelJob, error: type[Exception]) -> None:
        self.queue.remove(job)
        self.settle(job, error)

    def settle(self, job: ModelJob, error: type[Exception] | None) -> None:
        job.state, job.error = ENDED, error
        self.forget(job)
        del self.callers[job.caller]

    def forget(self, job: ModelJob) -> None:
        if self.keys.get(job.key) is job:
            del self.keys[job.key]

    def leave(self, ticket: ModelTicket) -> None:
        job = ticket.job
        if ticket.left or job.state is ENDED:
            return
        ticket.left = True
        job.tickets.remove(ticket)
        if not job.tickets and job.state is RUNNING:
            job.abandoned += 1
        elif not job.tickets:
            self.drop(job, PoolClosed)


class PoolMachine(RuleBasedStateMachine):
    """Each rule acts on the pool and on the model; what can be seen must be the same."""

    @initialize(slots=st.integers(1, 3), queue=st.integers(0, 3))
    def make(self, slots: int, queue: int) -> None:
        self.clock = Clock()
        self.clock.__enter__()
        self.pool = Pool(slots, queue, WAIT)
        self.model = Model(slots, queue, self.clock)
        self.tickets: list[ModelTicket] = []
        self.jobs: list[ModelJob] = []

    def _pick(self, data: st.DataObject, values: list[Any]) -> Any:
        return data.draw(st.sampled_from(values))

    def _new_job(self, key: str, caller: str) -> ModelJob:
        job = ModelJob(key, caller, Gate(value=object()), self.clock.now + WAIT)
        job.gate.first = lambda real: real.when_abandoned(lambda: job.calls.append(1))
        return job

    @rule(key=st.sampled_from(KEYS), caller=st.sampled_from(CALLERS), join_only=st.booleans())
    def enter(self, key: str, caller: str, join_only: bool) -> None:
        self.model.expire()
        new = self._new_job(key, caller)
        fn = None if join_only else new.gate
        refusal = self.model.refusal(key, caller, fn)
        if refusal is not None:
            with pytest.raises(refusal):
                self.pool.enter(key, caller, fn)
            return
        real = self.pool.enter(key, caller, fn)
        job = self.model.keys.get(key)
        started = job is None
        if job is None:
            self.jobs.append(job := new)
            self.model.admit(job)
        ticket = ModelTicket(job, real, started)
        job.tickets.append(ticket)
        self.tickets.append(ticket)
        assert real.started is started

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), error=st.sampled_from([None, KeyError, ZeroDivisionError]))
    def end(self, data: st.DataObject, error: type[Exception] | None) -> None:
        job = self._pick(data, self.model.running)
        job.gate.error = error and error("as told")
        finish(job.gate)
        self.model.end(job, error)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        ticket = self._pick(data, self.tickets)
        ticket.real.leave()
        self.model.leave(ticket)

    @precondition(lambda self: self.model.running)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        job = self._pick(data, self.model.running)
        assert job.gate.job.give_up() is (not job.tickets)
        if not job.tickets:
            self.model.forget(job)

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), event=st.integers())
    def publish(self, data: st.DataObject, event: int) -> None:
        job = self._pick(data, self.model.running)
        job.gate.job.publish(event)
        job.events.append(event)

    @rule(seconds=st.integers(1, WAIT + 1))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def look(self) -> None:
        self.model.expire()
        model = self.model
        assert (self.pool.running, self.pool.queued) == (len(model.running), len(model.queue))
        for key in KEYS:
            job = model.keys.get(key)
            joined = sum(not ticket.started for ticket in job.tickets) if job else 0
            assert self.pool.waiting(key) == joined
        stats = self.pool.stats()
        assert stats.tickets == sum(len(j.tickets) for j in self.jobs if j.state is not ENDED)
        assert stats.threads <= stats.slots

    @rule()
    def close(self) -> None:
        self.pool.close()
        self.model.closed = True
        for job in list(self.model.queue):
            self.model.drop(job, PoolClosed)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        self.model.expire()
        ticket = self._pick(data, self.tickets)
        self._check(ticket)

    def _check(self, ticket: ModelTicket) -> None:
        job = ticket.job
        expected: type[Exception] | None = job.error
        if ticket.left:
            expected = RuntimeError
        elif job.state is not ENDED:
            expected = TimeoutError
        if expected is None:
            assert ticket.real.result(timeout=0) is job.gate.value
        else:
            with pytest.raises(expected):
                ticket.real.result(timeout=0)
        if ticket.left or job.state is ENDED:
            assert list(ticket.real.events()) == ([] if ticket.left else job.events)

    @invariant()
    def granted_jobs_run_and_no_others(self) -> None:
        for job in getattr(self, "jobs", []):
            if job in self.model.running:
                job.gate.await_start()
            assert job.gate.started.is_set() <= (job.state is not QUEUED)
            assert job.gate.runs <= 1
            assert len(job.calls) == job.abandoned

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        try:
            self._finish()
        finally:
            for job in self.jobs:
                job.gate.release()
            self.clock.__exit__()

    def _finish(self) -> None:
        while self.model.running:
            job = self.model.running[0]
            finish(job.gate.await_start())
            self.model.end(job, job.gate.error and type(job.gate.error))
        self.look()
        for ticket in self.tickets:
            self._check(ticket)
        assert_idle(self.pool)


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
