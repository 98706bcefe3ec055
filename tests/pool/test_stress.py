"""Many callers at once, and what is left of them afterwards."""

from __future__ import annotations

import gc
import random
import threading
import weakref

import pytest

from pdfpool_django import pool as pool_module
from pdfpool_django.pool import CallerBusy, JobCrashed, Pool, PoolBusy
from tests.pool.helpers import (
    LIMIT,
    LONG,
    Call,
    Gate,
    assert_idle,
    eventually,
    finish,
    occupy,
    pool_threads,
)

THREADS = 32
OPERATIONS = 100_000
STRESS_LIMIT = 90


class _Expected(Exception):
    pass


def _succeed(job):
    job.publish(job.key)
    return job.key


def _fail(job):
    raise _Expected


def _crash(job):
    raise SystemExit


def _give_up(job):
    job.when_abandoned(job.give_up)
    return job.key


WORK = [_succeed, _succeed, _succeed, _give_up, _fail, _crash]


def _operate(pool: Pool, dice: random.Random, me: int) -> str:
    """Do one thing of many, and return how it went."""
    key, caller, fn = dice.randrange(12), dice.choice((me, dice.randrange(8))), dice.choice(WORK)
    try:
        match dice.randrange(6):
            case 0 | 1:
                assert pool.do(key, caller, fn) == key
            case 2:
                assert pool.do(key, caller, fn, timeout=dice.choice((1e-6, 1e-4, LIMIT))) == key
            case 3:
                pool.enter(key, caller, fn).leave()
            case 4:
                with pool.enter(key, caller, fn) as ticket:
                    assert set(ticket.events()) <= {key}
            case 5:
                assert pool.running <= 3
                assert pool.queued <= 4
                assert 0 <= pool.waiting(key) <= THREADS
    except (CallerBusy, PoolBusy, JobCrashed, TimeoutError, _Expected) as error:
        return type(error).__name__
    return "fine"


def _operate_often(pool: Pool, seed: int, barrier: threading.Barrier) -> set[str]:
    dice = random.Random(seed)
    barrier.wait(LIMIT)
    return {_operate(pool, dice, seed) for _ in range(OPERATIONS // THREADS)}


@pytest.mark.timeout(STRESS_LIMIT + LIMIT)
def test_a_hundred_thousand_operations_leave_nothing():
    pool = Pool(3, 4, 0.001)
    before = set(threading.enumerate())
    barrier = threading.Barrier(THREADS)
    calls = [Call(_operate_often, pool, seed, barrier) for seed in range(THREADS)]
    for call in calls:
        call._thread.join(STRESS_LIMIT)
    endings = set().union(*(call.result() for call in calls))
    kinds = {"fine", "CallerBusy", "PoolBusy", "JobCrashed", "TimeoutError", "_Expected"}
    assert endings == kinds
    # What was left running by those who did not stay for its end.
    eventually(lambda: pool.running == 0)
    assert_idle(pool)
    assert pool.stats().threads <= 3
    _await_end_of_pool_threads()
    assert set(threading.enumerate()) <= before
    assert pool.stats().threads == 0


def _await_end_of_pool_threads() -> None:
    for thread in pool_threads():
        thread.join(LIMIT)
        assert not thread.is_alive()


# Threads.


def test_no_thread_is_started_before_the_first_job():
    _await_end_of_pool_threads()
    pool = Pool(4, 4, LONG)
    assert (pool.running, pool.queued, pool_threads()) == (0, 0, [])


def test_threads_are_daemons_and_end_a_second_after_the_last_job():
    _await_end_of_pool_threads()
    pool = Pool(3, 0, 0)
    gates = [occupy(pool, name) for name in "abc"]
    threads = pool_threads()
    assert [thread.daemon for thread in threads] == [True] * 3
    finish(*gates)
    assert pool.stats().threads == 3
    _await_end_of_pool_threads()
    assert pool.stats().threads == 0
    assert not pool._idle
    assert pool.do("key", "caller", lambda job: "again") == "again"


def test_an_idle_thread_waits_a_second_and_no_longer(monkeypatch):
    waits = []
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    condition_wait = threading.Condition.wait

    def wait(condition, timeout=None):
        if condition._lock is pool._mutex:
            waits.append(timeout)
        return condition_wait(condition, timeout)

    monkeypatch.setattr(threading.Condition, "wait", wait)
    finish(gate)
    _await_end_of_pool_threads()
    assert 0.5 < waits[0] <= pool_module.IDLE_SECONDS == 1.0
    # A wait may end a little early; it is not one of many.
    assert len(waits) <= 3


def test_an_idle_thread_takes_the_next_job():
    pool = Pool(2, 0, 0)
    idents = {pool.do(n, n, lambda job: threading.get_ident()) for n in range(50)}
    assert len(idents) == 1
    assert pool.stats().threads == 1


def test_a_thread_that_was_handed_a_job_as_it_fell_idle_runs_it():
    pool = Pool(1, 0, 0)
    for n in range(500):
        assert pool.do(n, "caller", lambda job: job.key) == n
    assert pool.stats().threads == 1


def test_waiting_is_not_polling(monkeypatch):
    waits = []
    pool = Pool(1, 1, LONG)
    condition_wait = threading.Condition.wait

    def wait(condition, timeout=None):
        if condition._lock is pool._mutex:
            waits.append(timeout)
        return condition_wait(condition, timeout)

    gate, queued = occupy(pool, value="ran"), Gate(value="waited")
    monkeypatch.setattr(threading.Condition, "wait", wait)
    running = Call(gate.ticket.result)
    eventually(lambda: waits == [None])
    ticket = pool.enter("queued", "queued", queued)
    waiting = Call(ticket.result)
    eventually(lambda: len(waits) == 2)
    assert LONG - LIMIT < waits[1] <= LONG
    monkeypatch.undo()
    finish(gate, queued)
    assert (running.result(), waiting.result()) == ("ran", "waited")


# Callers that give up.


@pytest.mark.parametrize("key", ["busy", "queued"])
def test_a_thousand_callers_that_give_up_leave_nothing(key):
    pool = Pool(1, 1, LONG)
    gate, unused = occupy(pool), Gate()
    before = threading.active_count()
    for n in range(1000):
        with pytest.raises(TimeoutError):
            pool.do(key, n, unused, timeout=1e-9)
    stats = pool.stats()
    assert (stats.running, stats.queued, stats.tickets, stats.threads) == (1, 0, 1, 1)
    assert threading.active_count() <= before
    assert not gate.job._changed._waiters
    assert len(gate.job._tickets) == 1
    assert (len(pool._jobs), len(pool._callers)) == (1, 1)
    finish(gate)
    assert unused.runs == 0
    assert_idle(pool)


def test_a_thousand_callers_that_give_up_at_once_leave_nothing():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    tickets = [pool.enter("busy", n, None) for n in range(1000)]
    calls = [Call(ticket.result) for ticket in tickets[:50]]
    eventually(lambda: len(gate.job._changed._waiters) == 50)
    for ticket in tickets:
        ticket.leave()
    assert {type(call.error()) for call in calls} == {RuntimeError}
    assert pool.stats().tickets == 1
    finish(gate)


class _Thing:
    """Something that can be traced."""


def test_a_caller_that_gave_up_leaves_no_memory_in_a_job_that_goes_on():
    pool = Pool(1, 1, LONG)
    gate = occupy(pool)
    joined, thing = pool.enter("busy", "joiner", None), _Thing()
    queued = pool.enter("queued", "queued", lambda job, thing=thing: None)
    traces = [weakref.ref(value) for value in (joined, thing, queued, queued._job)]
    joined.leave()
    queued.leave()
    del joined, queued, thing
    gc.collect()
    assert [trace() for trace in traces] == [None] * 4
    finish(gate)


def test_an_ended_job_leaves_no_memory_in_an_idle_pool():
    pool = Pool(1, 0, 0)
    thing = _Thing()
    gate = Gate(value=thing, first=lambda job: job.when_abandoned(lambda: None))
    ticket = pool.enter("key", "caller", gate)
    finish(gate.await_start())
    assert ticket.result() is thing
    # The thread that ran it lives on, and must not hold on to it.
    eventually(lambda: pool._idle)
    traces = [weakref.ref(value) for value in (thing, ticket, ticket._job, gate)]
    del thing, ticket, gate
    gc.collect()
    eventually(lambda: [trace() for trace in traces] == [None] * 4)
    assert pool.stats().threads == 1


def test_a_kept_ticket_keeps_the_result_and_not_the_work():
    pool = Pool(1, 0, 0)
    thing = _Thing()
    trace = weakref.ref(thing)
    ticket = pool.enter("key", "caller", lambda job, thing=thing: "result")
    assert ticket.result() == "result"
    del thing
    eventually(lambda: trace() is None)
    assert ticket.result() == "result"


def test_a_kept_ticket_of_a_job_that_never_ran_keeps_no_work():
    pool = Pool(1, 1, LONG)
    gate, thing = occupy(pool), _Thing()
    trace = weakref.ref(thing)
    ticket = pool.enter("key", "caller", lambda job, thing=thing: None)
    del thing
    assert trace() is not None
    pool.close()
    assert trace() is None
    assert ticket.key == "key"
    finish(gate)


def test_a_pool_that_nobody_holds_is_gone_with_its_threads():
    pool = Pool(1, 0, 0)
    pool.do("key", "caller", lambda job: None)
    trace = weakref.ref(pool)
    del pool
    _await_end_of_pool_threads()
    gc.collect()
    assert trace() is None
