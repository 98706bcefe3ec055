"""The rules of admission: join, caller, slot, queue and arguments."""

from __future__ import annotations

import contextvars
import functools
import math
import threading

import pytest

from pdfpool_django.pool import CallerBusy, Pool, PoolBusy, PoolClosed, PoolError
from tests.pool.helpers import LONG, Call, Gate, assert_idle, eventually, finish, occupy


def test_fn_runs_and_its_result_is_returned(ask):
    pool = Pool(1, 0, 0)
    assert ask(pool, "key", "caller", lambda job: (job.key, job.caller)) == ("key", "caller")
    assert_idle(pool)


@pytest.mark.parametrize("value", [None, False, 0, "", (), {}])
def test_falsy_results_are_results(ask, value):
    assert ask(Pool(1, 0, 0), "key", "caller", lambda job: value) == value


# Rule 1: join.


def test_identical_requests_share_one_job(ask):
    pool = Pool(1, 0, 0)
    gate = Gate(value="shared")
    first = Call(ask, pool, "key", "a", gate)
    gate.await_start()
    others = [Call(ask, pool, "key", name, gate) for name in "bcd"]
    eventually(lambda: pool.waiting("key") == 3)
    gate.release()
    assert [call.result() for call in (first, *others)] == ["shared"] * 4
    assert gate.runs == 1
    assert_idle(pool)


def test_joining_takes_no_slot_and_no_queue_place():
    pool = Pool(1, 1, LONG)
    running, queued = occupy(pool, "running"), Gate()
    pool.enter("queued", "queued", queued)
    for name in ("b", "c"):
        pool.enter("running", name, None)
        pool.enter("queued", name, None)
    assert (pool.running, pool.queued) == (1, 1)
    assert (pool.waiting("running"), pool.waiting("queued")) == (2, 2)
    finish(running, queued)


def test_a_busy_caller_may_join(ask):
    pool = Pool(2, 0, 0)
    own, other = occupy(pool, "own"), occupy(pool, "other", value="other's")
    joined = Call(ask, pool, "other", "own", None)
    eventually(lambda: pool.waiting("other") == 1)
    finish(other)
    assert joined.result() == "other's"
    finish(own)


def test_joining_does_not_make_the_joiner_busy():
    pool = Pool(2, 0, 0)
    shared = occupy(pool, "shared")
    pool.enter("shared", "joiner", None)
    own = occupy(pool, "joiner")
    assert pool.running == 2
    finish(shared, own)


def test_the_starter_joins_its_own_job():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key", value="once")
    again = pool.enter("key", "key", Gate())
    assert (again.started, gate.ticket.started) == (False, True)
    finish(gate)
    assert again.result() == gate.ticket.result() == "once"


def test_the_callable_of_a_joiner_never_runs():
    pool = Pool(1, 0, 0)
    gate, unused = occupy(pool, "key"), Gate()
    ticket = pool.enter("key", "other", unused)
    finish(gate)
    ticket.result()
    assert unused.runs == 0


# Rule 2: caller.


def test_a_caller_with_a_running_job_is_refused_at_once(ask):
    pool = Pool(2, 2, LONG)
    gate = occupy(pool, "caller")
    for refusals in (1, 2):
        with pytest.raises(CallerBusy, match=r"^this caller already has a job in flight$"):
            ask(pool, "second key", "caller", Gate())
        assert pool.stats().refused_caller == refusals
    finish(gate)
    assert_idle(pool)


def test_a_caller_with_a_queued_job_is_refused_at_once(ask):
    pool = Pool(1, 2, LONG)
    gate, queued = occupy(pool), Gate()
    pool.enter("key", "caller", queued)
    with pytest.raises(CallerBusy):
        ask(pool, "second key", "caller", Gate())
    finish(gate, queued)


def test_the_caller_is_looked_at_before_the_queue(ask):
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "caller")
    with pytest.raises(CallerBusy):
        ask(pool, "second key", "caller", Gate())
    finish(gate)


def test_a_caller_is_free_again_after_its_job(ask):
    pool = Pool(1, 0, 0)
    for key in range(3):
        assert ask(pool, key, "caller", lambda job: job.key) == key


def test_a_caller_is_free_again_after_a_failed_job(ask):
    pool = Pool(1, 0, 0)
    with pytest.raises(ZeroDivisionError):
        ask(pool, "key", "caller", lambda job: 1 / 0)
    assert ask(pool, "other key", "caller", lambda job: "fine") == "fine"


# Rule 3: slot and queue.


def test_jobs_run_at_once_up_to_the_slots():
    pool = Pool(2, 1, LONG)
    gates = [occupy(pool, name) for name in "ab"]
    third = Gate()
    pool.enter("c", "c", third)
    assert (pool.running, pool.queued, third.runs) == (2, 1, 0)
    finish(gates[0])
    third.await_start()
    assert (pool.running, pool.queued) == (2, 0)
    finish(gates[1], third)


def test_a_full_queue_refuses_at_once(ask):
    pool = Pool(1, 1, LONG)
    gates = [occupy(pool), Gate()]
    pool.enter("queued", "queued", gates[1])
    for refusals in (1, 2):
        with pytest.raises(PoolBusy, match=r"^all slots are taken, and the queue is full$"):
            ask(pool, "third", "third", Gate())
        assert (pool.running, pool.queued, pool.waiting("third")) == (1, 1, 0)
        assert pool.stats().refused_busy == refusals
    finish(*gates)


def test_a_refused_caller_is_not_held(ask):
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    with pytest.raises(PoolBusy):
        ask(pool, "key", "caller", Gate())
    finish(gate)
    assert ask(pool, "other key", "caller", lambda job: "fine") == "fine"


@pytest.mark.parametrize(("queue", "wait"), [(0, LONG), (4, 0), (0, 0)])
def test_without_queue_or_wait_a_full_pool_refuses_at_once(ask, queue, wait):
    pool = Pool(1, queue, wait)
    gate = occupy(pool, "key", value="joined")
    with pytest.raises(PoolBusy, match="queue is full"):
        ask(pool, "other", "other", Gate())
    joined = pool.enter("key", "other", None)
    finish(gate)
    assert joined.result() == "joined"


def test_first_come_first_served():
    pool = Pool(1, 4, LONG)
    order: list[int] = []
    gate = occupy(pool)
    tickets = [pool.enter(n, n, lambda job: order.append(job.key)) for n in range(4)]
    finish(gate)
    for ticket in tickets:
        ticket.result()
    assert order == [0, 1, 2, 3]


@pytest.mark.parametrize("leaver", [0, 1, 2, 3])
def test_first_come_first_served_after_somebody_has_left(leaver):
    pool = Pool(1, 4, LONG)
    order: list[int] = []
    gate = occupy(pool)
    tickets = [pool.enter(n, n, lambda job: order.append(job.key)) for n in range(4)]
    tickets.pop(leaver).leave()
    assert pool.queued == 3
    tickets.append(pool.enter(4, 4, lambda job: order.append(job.key)))
    finish(gate)
    for ticket in tickets:
        ticket.result()
    assert order == [n for n in range(5) if n != leaver]


# Rule 5: results are not cached.


def test_results_are_not_cached(ask):
    pool = Pool(1, 0, 0)
    assert [ask(pool, "key", "caller", lambda job, n=n: n) for n in range(3)] == [0, 1, 2]


def test_errors_are_not_cached(ask):
    pool = Pool(1, 0, 0)
    with pytest.raises(ZeroDivisionError):
        ask(pool, "key", "caller", lambda job: 1 / 0)
    assert ask(pool, "key", "caller", lambda job: "fine") == "fine"


# The job's context.


def test_fn_runs_in_a_copy_of_the_starters_context():
    variable = contextvars.ContextVar("variable")
    variable.set("starter's")

    def fn(job):
        seen = variable.get()
        variable.set("job's")
        return seen, variable.get()

    assert Pool(1, 0, 0).do("key", "caller", fn) == ("starter's", "job's")
    assert variable.get() == "starter's"


def test_a_queued_job_has_the_context_of_its_entry():
    pool = Pool(1, 1, LONG)
    variable = contextvars.ContextVar("variable")
    gate = occupy(pool)
    variable.set("at entry")
    ticket = pool.enter("key", "caller", lambda job: variable.get())
    variable.set("later")
    finish(gate)
    assert ticket.result() == "at entry"


def test_fn_runs_in_another_thread(ask):
    assert ask(Pool(1, 0, 0), "k", "c", lambda job: threading.get_ident()) != threading.get_ident()


# Arguments.


def test_joining_nothing_is_a_type_error(ask):
    pool = Pool(1, 0, 0)
    with pytest.raises(TypeError, match="fn is None"):
        ask(pool, "key", "caller", None)
    assert_idle(pool)


async def _coroutine_function(job):
    return job


class _AsyncCallable:
    async def __call__(self, job):
        return job


@pytest.mark.parametrize(
    "fn",
    [_coroutine_function, functools.partial(_coroutine_function), _AsyncCallable(), 7, "name"],
    ids=["coroutine function", "partial", "async callable", "number", "string"],
)
def test_what_a_thread_cannot_call_is_a_type_error(ask, fn):
    pool = Pool(1, 0, 0)
    with pytest.raises(TypeError, match="fn must be"):
        ask(pool, "key", "caller", fn)
    assert_idle(pool)


@pytest.mark.parametrize(("key", "caller"), [([], "caller"), ("key", []), ({}, {})])
def test_an_unhashable_key_or_caller_is_a_type_error(ask, key, caller):
    pool = Pool(1, 0, 0)
    with pytest.raises(TypeError, match="unhashable"):
        ask(pool, key, caller, Gate())
    assert_idle(pool)


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (7, "fn must be callable, not int"),
        (
            _coroutine_function,
            "fn must be a plain function: a job runs in a thread, not in an event loop",
        ),
    ],
)
def test_the_error_says_what_is_wrong_with_fn(fn, said):
    with pytest.raises(TypeError, match=f"^{said}$"):
        Pool(1, 0, 0).enter("key", "caller", fn)


def test_an_unhashable_caller_cannot_join_either():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key")
    with pytest.raises(TypeError, match="unhashable"):
        pool.enter("key", [], None)
    assert pool.waiting("key") == 0
    finish(gate)


def test_what_a_key_or_caller_has_to_say_against_it_is_heard_outside_the_mutex():
    pool, inside = Pool(1, 0, 0), []

    class Unhashable:
        def __hash__(self):
            inside.append(pool._mutex.inside())
            raise TypeError("unhashable")

    for key, caller in (("key", Unhashable()), (Unhashable(), "caller")):
        with pytest.raises(TypeError, match="unhashable"):
            pool.enter(key, caller, Gate())
    assert inside == [False, False]


@pytest.mark.parametrize(
    ("slots", "queue", "wait", "named"),
    [
        (0, 1, 1, "slots must be at least 1, not 0"),
        (-1, 1, 1, "slots must be at least 1, not -1"),
        (1, -1, 1, "queue must not be negative, but is -1"),
        (1, 1, -0.5, "wait must not be negative, but is -0.5"),
        (1, 1, math.nan, "wait must not be negative, but is nan"),
    ],
)
def test_senseless_numbers_are_refused(slots, queue, wait, named):
    with pytest.raises(ValueError, match=f"^{named}$"):
        Pool(slots, queue, wait)


# A job that calls the pool.


def test_a_job_cannot_wait_for_itself(ask):
    pool = Pool(1, 1, LONG)
    with pytest.raises(RuntimeError, match="'key' would wait for itself"):
        ask(pool, "key", "caller", lambda job: ask(pool, "key", "caller", None))
    with pytest.raises(RuntimeError, match="wait for itself"):
        ask(pool, "key", "caller", lambda job: pool.enter("key", "another", Gate()))
    assert_idle(pool)


def test_a_job_cannot_start_another_for_its_caller(ask):
    pool = Pool(2, 1, LONG)
    with pytest.raises(CallerBusy):
        ask(pool, "key", "caller", lambda job: ask(pool, "other key", "caller", Gate()))
    assert_idle(pool)


def test_a_job_may_ask_for_another_under_another_caller(ask):
    pool = Pool(2, 0, 0)

    def fn(job):
        return ask(pool, "inner", "inner", lambda job: "inner's")

    assert ask(pool, "outer", "outer", fn) == "inner's"


# Closing.


def test_a_closed_pool_takes_no_new_jobs(ask):
    pool = Pool(1, 1, LONG)
    pool.close()
    with pytest.raises(PoolClosed, match=r"^the pool has been closed$"):
        ask(pool, "key", "caller", Gate())
    assert pool.stats().closed
    assert_idle(pool)


def test_closing_ends_queued_jobs_and_lets_running_ones_go_on(ask):
    pool = Pool(1, 2, LONG)
    gate = occupy(pool, "running", value="goes on")
    unused = Gate()
    waiters = [Call(ask, pool, name, name, unused) for name in "ab"]
    eventually(lambda: pool.queued == 2)
    pool.close()
    assert [repr(call.error()) for call in waiters] == [
        "PoolClosed('the pool has been closed')"
    ] * 2
    assert (pool.running, pool.queued, unused.runs) == (1, 0, 0)
    joined = pool.enter("running", "late", None)
    pool.close()
    finish(gate)
    assert gate.ticket.result() == joined.result() == "goes on"
    assert_idle(pool)


def test_every_refusal_is_a_pool_error():
    assert all(issubclass(kind, PoolError) for kind in (PoolBusy, CallerBusy, PoolClosed))
