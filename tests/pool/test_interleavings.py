"""One step under the mutex, threads that cannot start, and finalizers at the worst of moments."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from pdfpool_django.pool import JobCrashed, Pool
from tests.pool.helpers import (
    LIMIT,
    LONG,
    POINTS,
    Call,
    Gate,
    assert_idle,
    collect_doomed,
    eventually,
    finish,
    hook_lock,
    no_thread_starts,
    occupy,
    soon,
)

# The end of a job is one step, and only then is anybody woken.


def _state(pool: Pool) -> tuple[int, int, bool, bool]:
    return pool._running, len(pool._waiting), "key" in pool._jobs, "key" in pool._callers


def test_the_end_of_a_job_is_one_step():
    pool = Pool(1, 1, LONG)
    lock = hook_lock(pool)
    gate, queued = occupy(pool, "key"), Gate()
    pool.enter("next", "next", queued)
    seen = []
    # The next to want the lock is the thread that ends the job; then it lets go of it.
    lock.arm("having", lambda: seen.append(_state(pool)))
    lock.arm("releasing", lambda: seen.append(_state(pool)))
    gate.release()
    queued.await_start()
    assert seen == [(1, 1, True, True), (1, 0, False, False)]
    finish(queued)


def test_running_is_down_before_the_lock_is_let_go():
    pool = Pool(1, 0, 0)
    lock = hook_lock(pool)
    gate = occupy(pool, "key")
    seen = []
    lock.arm("releasing", lambda: seen.append(_state(pool)))
    finish(gate)
    eventually(lambda: seen)
    assert seen == [(0, 0, False, False)]


def test_all_is_free_when_do_returns(ask):
    pool = Pool(1, 0, 0)
    for n in range(100):
        assert ask(pool, "key", "caller", lambda job, n=n: n) == n
        assert_idle(pool)


async def test_all_is_free_when_a_task_is_woken():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key")

    async def look():
        await gate.ticket.aresult(LIMIT)
        return _state(pool)

    task = asyncio.create_task(look())
    await soon(lambda: gate.job._sleepers)
    gate.release()
    assert await task == (0, 0, False, False)


def test_tasks_are_woken_without_the_lock():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    held = []

    class Sleeper:
        def wake(self):
            held.append((pool._mutex._lock.locked(), pool._mutex.inside(), pool.running))

    gate.job._sleepers.add(Sleeper())
    finish(gate)
    eventually(lambda: held)
    assert held == [(False, False, 0)]


def test_the_slot_is_handed_over_within_one_thread():
    pool = Pool(1, 2, LONG)
    gate = occupy(pool)
    tickets = [pool.enter(n, n, lambda job: threading.get_ident()) for n in range(2)]
    finish(gate)
    assert tickets[0].result() == tickets[1].result()
    assert pool.stats().threads == 1


# Threads that cannot start.


def test_a_job_whose_thread_cannot_start_crashes_and_frees_everything(ask, monkeypatch):
    pool = Pool(1, 0, 0)
    with no_thread_starts(monkeypatch) as failed, pytest.raises(JobCrashed) as caught:
        ask(pool, "key", "caller", Gate())
    assert len(failed) == 1
    assert str(caught.value) == "the job ended with RuntimeError"
    assert str(caught.value.__cause__) == "can't start new thread"
    assert pool.stats().threads == 0
    assert_idle(pool)
    assert ask(pool, "key", "caller", lambda job: "started") == "started"


def _queue_behind_a_thread_that_waits_to_fail(pool, monkeypatch, times, names):
    """Enter jobs while the first one's thread is being started; return their tickets."""
    tickets = []
    start = threading.Thread.start
    attempts = []

    def refuse(thread):
        if not thread.name.startswith("pdfpool-job"):
            return start(thread)
        attempts.append(thread)
        if len(attempts) == 1:
            tickets.extend(pool.enter(name, name, lambda job: job.key) for name in names)
        if len(attempts) > times:
            return start(thread)
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        first = pool.enter("first", "first", Gate())
    return [first, *tickets], len(attempts)


def test_the_next_job_is_tried_when_a_thread_cannot_start_once(monkeypatch):
    pool = Pool(1, 2, LONG)
    tickets, attempts = _queue_behind_a_thread_that_waits_to_fail(pool, monkeypatch, 1, "ab")
    with pytest.raises(JobCrashed):
        tickets[0].result()
    assert [ticket.result() for ticket in tickets[1:]] == ["a", "b"]
    assert attempts == 2
    assert pool.stats().threads == 1
    assert_idle(pool)


@pytest.mark.parametrize("queued", [2, 2000])
def test_every_queued_job_is_tried_when_no_thread_can_start(monkeypatch, queued):
    pool = Pool(1, queued, LONG)
    tickets, attempts = _queue_behind_a_thread_that_waits_to_fail(
        pool, monkeypatch, LONG * LONG, range(queued)
    )
    for ticket in tickets:
        with pytest.raises(JobCrashed):
            ticket.result()
    assert attempts == queued + 1
    assert pool.stats().threads == 0
    assert_idle(pool)


def test_a_failed_start_carries_nothing_of_the_caller_or_of_other_jobs(monkeypatch):
    pool = Pool(1, 2, LONG)
    try:
        raise LookupError("one caller's own")
    except LookupError:
        tickets, _ = _queue_behind_a_thread_that_waits_to_fail(pool, monkeypatch, LONG, "ab")
    for ticket in tickets:
        with pytest.raises(JobCrashed) as caught:
            ticket.result()
        assert caught.value.__cause__.__context__ is None
        assert caught.value.__cause__.__traceback__ is None


def test_joiners_of_a_job_whose_thread_cannot_start_are_told(monkeypatch):
    pool = Pool(1, 0, 0)
    joined = []
    start = threading.Thread.start

    def refuse(thread):
        if not thread.name.startswith("pdfpool-job"):
            return start(thread)
        joined.append(pool.enter("key", "joiner", None))
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        pool.enter("key", "caller", Gate())
    with pytest.raises(JobCrashed):
        joined[0].result()
    assert_idle(pool)


# Finalizers that the collector runs while their thread is about to have the lock, or has it.


@pytest.fixture(autouse=True)
def _clean_garbage():
    gc.collect()


@pytest.mark.parametrize("point", POINTS)
def test_a_finalizer_that_leaves_cannot_deadlock_and_takes_effect(point):
    pool = Pool(1, 1, LONG)
    lock = hook_lock(pool)
    gate, unused = occupy(pool), Gate()
    doomed = pool.enter("key", "caller", unused)
    lock.arm(point, lambda: collect_doomed(doomed.leave))
    Call(lambda: pool.running).result()
    assert lock.fired == [point]
    assert pool.queued == 0
    finish(gate)
    assert unused.runs == 0
    assert_idle(pool)


@pytest.mark.parametrize("point", POINTS)
def test_a_finalizer_that_leaves_calls_back_outside_the_lock(point):
    pool = Pool(1, 0, 0)
    lock = hook_lock(pool)
    called = []
    gate = occupy(pool, first=lambda job: job.when_abandoned(lambda: called.append(pool.running)))
    lock.arm(point, lambda: collect_doomed(gate.ticket.leave))
    Call(lambda: pool.running).result()
    assert (lock.fired, called) == ([point], [1])
    finish(gate)


@pytest.mark.parametrize("point", POINTS)
def test_a_finalizer_may_strike_while_a_job_ends(point):
    pool = Pool(1, 2, LONG)
    lock = hook_lock(pool)
    gate, next_one, last = occupy(pool), Gate(), Gate(value="ran")
    doomed = pool.enter("doomed", "doomed", next_one)
    ticket = pool.enter("last", "last", last)
    lock.arm(point, lambda: collect_doomed(doomed.leave))
    gate.release()
    # The slot has gone to the doomed job in the same step, which goes on without a ticket.
    next_one.await_start()
    assert lock.fired == [point]
    eventually(lambda: pool.stats().tickets == 1)
    finish(next_one, last)
    assert ticket.result() == "ran"
    assert_idle(pool)


@pytest.mark.parametrize("point", POINTS)
def test_a_finalizer_that_closes_a_task_cannot_deadlock(point):
    pool = Pool(1, 1, LONG)
    lock = hook_lock(pool)
    gate, unused = occupy(pool), Gate()
    loop = asyncio.new_event_loop()
    task = loop.create_task(pool.ado("key", "caller", unused))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    task._log_destroy_pending = False
    job = pool._jobs["key"]
    assert len(job._sleepers) == 1
    lock.arm(point, lambda: collect_doomed(task.get_coro().close))
    Call(lambda: pool.running).result()
    assert (pool.queued, job._sleepers) == (0, set())
    finish(gate)


@pytest.mark.parametrize("point", POINTS)
def test_a_finalizer_that_closes_a_wait_leaves_no_sleeper(point):
    pool = Pool(1, 0, 0)
    lock = hook_lock(pool)
    gate = occupy(pool)
    loop = asyncio.new_event_loop()
    task = loop.create_task(gate.ticket.aresult())
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    task._log_destroy_pending = False
    assert len(gate.job._sleepers) == 1
    lock.arm(point, lambda: collect_doomed(task.get_coro().close))
    Call(lambda: pool.running).result()
    assert (pool.stats().tickets, gate.job._sleepers) == (1, set())
    finish(gate)


def test_a_wait_releases_the_lock_for_finalizers_too():
    pool = Pool(1, 1, LONG)
    lock = hook_lock(pool)
    gate = occupy(pool, value="awaited")
    doomed = pool.enter("key", "caller", Gate())
    lock.arm("releasing", lambda: collect_doomed(doomed.leave))
    waiter = Call(gate.ticket.result)
    eventually(lambda: lock.fired)
    eventually(lambda: pool.queued == 0)
    finish(gate)
    assert waiter.result() == "awaited"
