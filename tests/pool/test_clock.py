"""The clock of queued jobs decides by itself, and what happens in one and the same instant."""

from __future__ import annotations

import asyncio
import math

import pytest

from pdfpool_django.pool import Pool, PoolBusy, PoolClosed
from tests.pool.helpers import LONG, Call, Gate, assert_idle, eventually, finish, occupy

WAIT = 8.0
"""Seconds of the clock that tests move."""


def _full_pool(queue: int = 1, **gate_options) -> tuple[Pool, Gate]:
    pool = Pool(1, queue, WAIT)
    return pool, occupy(pool, **gate_options)


def test_a_job_that_waits_too_long_ends_busy_for_every_ticket(clock, ask):
    pool, gate = _full_pool()
    unused = Gate()
    calls = [Call(ask, pool, "key", "starter", unused)]
    eventually(lambda: pool.queued == 1)
    calls.append(Call(ask, pool, "key", "joiner", None))
    eventually(lambda: pool.waiting("key") == 1)
    clock.advance(WAIT)
    assert pool.queued == 0
    errors = [call.error() for call in calls]
    assert [type(error) for error in errors] == [PoolBusy, PoolBusy]
    assert [str(error) for error in errors] == ["no slot came free in time"] * 2
    assert pool.stats().refused_busy == 1
    finish(gate)
    assert unused.runs == 0
    assert_idle(pool)


def test_a_waiter_that_nobody_else_wakes_ends_in_time(ask):
    pool = Pool(1, 1, 0.02)
    gate = occupy(pool)
    with pytest.raises(PoolBusy, match="no slot came free in time"):
        ask(pool, "key", "caller", Gate())
    finish(gate)


def test_a_waiter_whose_own_timeout_is_later_ends_with_the_job(ask):
    pool = Pool(1, 1, 0.02)
    gate = occupy(pool)
    with pytest.raises(PoolBusy):
        ask(pool, "key", "caller", Gate(), timeout=LONG)
    finish(gate)


def test_the_clock_runs_from_the_moment_of_queueing_whoever_joins_later(clock):
    pool, gate = _full_pool()
    pool.enter("key", "starter", Gate())
    clock.advance(WAIT - 1)
    joined = pool.enter("key", "joiner", None)
    assert pool.queued == 1
    clock.advance(1)
    with pytest.raises(PoolBusy):
        joined.result()
    finish(gate)


def test_a_running_job_has_no_clock(clock):
    pool, gate = _full_pool(queue=2, value="late")
    clock.advance(WAIT - 1)
    queued = Gate(value="later")
    ticket = pool.enter("key", "caller", queued)
    finish(gate)
    queued.await_start()
    clock.advance(2 * WAIT)
    assert (pool.running, pool.waiting("key")) == (1, 0)
    finish(queued)
    assert (gate.ticket.result(), ticket.result()) == ("late", "later")


@pytest.mark.parametrize(
    "look",
    [
        lambda pool: pool.queued == 0,
        lambda pool: pool.stats().queued == 0,
        lambda pool: pool.waiting("key") == 0,
        lambda pool: "queued=0" in repr(pool),
    ],
    ids=["queued", "stats", "waiting", "repr"],
)
def test_a_ticket_that_nobody_awaits_expires_for_every_counter(clock, look):
    pool, gate = _full_pool()
    pool.enter("key", "starter", Gate())
    pool.enter("key", "joiner", None)
    assert not look(pool)
    clock.advance(WAIT)
    assert look(pool)
    finish(gate)


def test_a_ticket_that_nobody_awaits_blocks_no_admission(clock):
    pool, gate = _full_pool()
    forgotten = pool.enter("key", "caller", Gate())
    clock.advance(WAIT)
    # The place, the key and the caller are all free again.
    next_one = Gate(value="next")
    ticket = pool.enter("key", "caller", next_one)
    assert ticket.started
    finish(gate, next_one)
    assert ticket.result() == "next"
    with pytest.raises(PoolBusy):
        forgotten.result()


def test_a_ticket_that_nobody_awaits_blocks_no_grant(clock):
    pool, gate = _full_pool(queue=2)
    unused, alive = Gate(), Gate(value="alive")
    forgotten = pool.enter("forgotten", "forgotten", unused)
    clock.advance(1)
    ticket = pool.enter("alive", "alive", alive)
    clock.advance(WAIT - 0.5)
    finish(gate, alive)
    assert (ticket.result(), unused.runs) == ("alive", 0)
    with pytest.raises(PoolBusy):
        forgotten.result()
    assert_idle(pool)


def test_an_expired_ticket_tells_so_without_waiting(clock):
    pool, gate = _full_pool()
    forgotten = pool.enter("key", "caller", Gate())
    clock.advance(WAIT)
    with pytest.raises(PoolBusy):
        forgotten.result(timeout=0)
    with pytest.raises(PoolBusy):
        asyncio.run(forgotten.aresult(timeout=0))
    assert list(forgotten.events()) == []
    finish(gate)


def test_only_those_whose_time_has_come_expire(clock):
    pool, gate = _full_pool(queue=3)
    for name in range(3):
        pool.enter(name, name, Gate())
        clock.advance(1)
    clock.advance(WAIT - 3)
    assert (pool.queued, pool.stats().refused_busy) == (2, 1)
    clock.advance(1)
    assert (pool.queued, pool.stats().refused_busy) == (1, 2)
    pool.close()
    assert pool.stats().refused_busy == 2
    finish(gate)


def test_a_grant_in_the_instant_of_the_timeout_wins(clock):
    pool, gate = _full_pool()
    granted = Gate(value="granted")
    ticket = pool.enter("key", "caller", granted)
    clock.advance(WAIT)
    finish(gate, granted)
    assert ticket.result() == "granted"


def test_a_grant_an_instant_after_the_timeout_is_too_late(clock):
    pool, gate = _full_pool()
    unused = Gate()
    ticket = pool.enter("key", "caller", unused)
    clock.now = math.nextafter(clock.now + WAIT, math.inf)
    finish(gate)
    with pytest.raises(PoolBusy):
        ticket.result()
    assert unused.runs == 0


def test_a_grant_keeps_a_waiter_beyond_its_former_clock(clock, ask):
    pool, gate = _full_pool()
    granted = Gate(value="granted")
    call = Call(ask, pool, "key", "caller", granted)
    eventually(lambda: pool.queued == 1)
    clock.advance(WAIT)
    finish(gate)
    granted.await_start()
    clock.advance(WAIT)
    assert not call.ended()
    finish(granted)
    assert call.result() == "granted"


def test_a_result_in_the_instant_of_the_callers_timeout_wins(clock, ask):
    pool = Pool(1, 0, 0)
    gate = Gate(value="in time")
    call = Call(ask, pool, "key", "caller", gate, timeout=WAIT)
    gate.await_start()
    asleep = gate.job
    eventually(lambda: asleep._changed._waiters or asleep._sleepers)
    clock.advance(WAIT)
    gate.release()
    assert call.result() == "in time"


def test_the_callers_time_is_up_in_the_instant_itself(clock):
    _, gate = _full_pool()
    with pytest.raises(TimeoutError):
        gate.ticket.result(timeout=0)
    with pytest.raises(TimeoutError):
        asyncio.run(gate.ticket.aresult(timeout=0))
    finish(gate)


def test_do_spends_one_timeout_on_entering_and_waiting(clock, monkeypatch, ask):
    pool = Pool(1, 0, 0)
    gate = Gate()
    enter = pool.enter

    def slow_enter(*args):
        ticket = enter(*args)
        gate.await_start()
        clock.advance(WAIT)
        return ticket

    monkeypatch.setattr(pool, "enter", slow_enter)
    with pytest.raises(TimeoutError):
        ask(pool, "key", "caller", gate, timeout=WAIT)
    assert pool.stats().tickets == 0
    finish(gate)


def test_a_wait_without_end_is_possible():
    pool = Pool(1, 1, math.inf)
    gate, queued = occupy(pool), Gate(value="at last")
    call = Call(pool.do, "key", "caller", queued)
    eventually(lambda: pool.queued == 1)
    finish(gate, queued)
    assert call.result() == "at last"


def test_an_astronomic_timeout_is_possible(ask):
    pool = Pool(1, 1, 1e300)
    gate, queued = occupy(pool), Gate(value="at last")
    call = Call(ask, pool, "key", "caller", queued, timeout=1e300)
    eventually(lambda: pool.queued == 1)
    finish(gate, queued)
    assert call.result() == "at last"


def test_a_newcomer_does_not_overtake_in_the_instant_a_slot_comes_free(clock):
    pool, gate = _full_pool()
    waiting = Gate()
    pool.enter("waiting", "waiting", waiting)
    newcomer = Gate()
    finish(gate)
    # Whether or not the thread has taken up the waiting job, the slot is that job's.
    assert (pool.running, pool.queued) == (1, 0)
    ticket = pool.enter("newcomer", "newcomer", newcomer)
    assert (pool.running, pool.queued, newcomer.runs) == (1, 1, 0)
    finish(waiting, newcomer)
    ticket.result()


def test_a_closed_pool_tells_the_queued_so_even_after_their_time(clock):
    pool, gate = _full_pool()
    ticket = pool.enter("key", "caller", Gate())
    pool.close()
    clock.advance(WAIT)
    with pytest.raises(PoolClosed):
        ticket.result()
    finish(gate)
