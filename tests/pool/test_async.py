"""What is special about async callers: cancelling, event loops, tasks by the thousand."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from pdfpool_django.pool import Pool, PoolBusy, PoolClosed
from tests.pool.helpers import (
    LIMIT,
    LONG,
    Call,
    Gate,
    assert_idle,
    eventually,
    finish,
    occupy,
    soon,
)


async def _cancelled(task: asyncio.Task) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelling_leaves_a_running_job_which_goes_on():
    pool = Pool(1, 0, 0)
    gate = Gate(value="goes on")
    task = asyncio.create_task(pool.ado("key", "caller", gate))
    await soon(gate.started.is_set)
    await _cancelled(task)
    assert (pool.running, pool.stats().tickets) == (1, 0)
    joined = pool.enter("key", "joiner", None)
    gate.release()
    assert await joined.aresult(LIMIT) == "goes on"


async def test_cancelling_the_last_leaves_a_queued_job_gone():
    pool = Pool(1, 1, LONG)
    gate, unused = occupy(pool), Gate()
    tasks = [asyncio.create_task(pool.ado("key", name, unused)) for name in "ab"]
    await soon(lambda: pool.waiting("key") == 1)
    await _cancelled(tasks[0])
    assert pool.queued == 1
    await _cancelled(tasks[1])
    assert pool.queued == 0
    finish(gate)
    assert unused.runs == 0
    assert_idle(pool)


async def test_cancelling_goes_up_even_when_the_result_is_there():
    pool = Pool(1, 0, 0)
    gate = Gate(value="there")
    task = asyncio.create_task(pool.ado("key", "caller", gate))
    await soon(lambda: gate.started.is_set() and gate.job._sleepers)
    # Nothing is awaited in between, so the task learns of the result and the cancelling at once.
    finish(gate)
    await _cancelled(task)


async def test_cancelling_goes_up_even_when_the_time_is_up(clock):
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    task = asyncio.create_task(gate.ticket.aresult(timeout=LONG))
    await soon(lambda: gate.job._sleepers)
    clock.advance(LONG)
    await _cancelled(task)
    finish(gate)


async def test_an_asyncio_timeout_leaves():
    pool = Pool(1, 0, 0)
    gate = Gate()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await pool.ado("key", "caller", gate)
    assert pool.stats().tickets == 0
    finish(gate.await_start())


async def test_cancelling_aresult_does_not_leave():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, value="still there")
    task = asyncio.create_task(gate.ticket.aresult())
    await soon(lambda: gate.job._sleepers)
    await _cancelled(task)
    assert (pool.stats().tickets, gate.job._sleepers) == (1, set())
    gate.release()
    assert await gate.ticket.aresult(LIMIT) == "still there"


async def test_a_timeout_of_aresult_keeps_the_ticket():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, value="later")
    with pytest.raises(TimeoutError):
        await gate.ticket.aresult(timeout=0.01)
    assert (pool.stats().tickets, gate.job._sleepers) == (1, set())
    gate.release()
    assert await gate.ticket.aresult(timeout=LONG) == "later"


async def test_the_event_loop_goes_on_while_a_job_runs():
    pool = Pool(1, 1, LONG)
    gate, queued = Gate(value="ran"), Gate(value="waited")
    tasks = [asyncio.create_task(pool.ado(n, n, fn)) for n, fn in enumerate((gate, queued))]
    await soon(lambda: gate.started.is_set() and pool.queued == 1)
    gate.release()
    queued.release()
    async with asyncio.timeout(LIMIT):
        assert await asyncio.gather(*tasks) == ["ran", "waited"]


async def test_a_result_wins_over_a_timeout_that_passed_while_the_loop_was_busy(clock):
    gate = occupy(Pool(1, 0, 0), value="in time")
    task = asyncio.create_task(gate.ticket.aresult(timeout=LONG))
    await soon(lambda: gate.job._sleepers)
    finish(gate)
    clock.advance(2 * LONG)
    assert await task == "in time"


async def test_a_result_that_is_there_wins_over_any_timeout():
    gate = occupy(Pool(1, 0, 0), value="there")
    finish(gate)
    assert await gate.ticket.aresult(timeout=0) == await gate.ticket.aresult(timeout=-1) == "there"


async def test_waiters_that_another_one_finds_expired_are_woken(clock):
    pool = Pool(1, 1, 8)
    gate = occupy(pool)
    task = asyncio.create_task(pool.ado("key", "caller", Gate()))
    await soon(lambda: pool.queued == 1)
    clock.advance(8)
    assert pool.queued == 0
    with pytest.raises(PoolBusy):
        async with asyncio.timeout(LIMIT):
            await task
    finish(gate)


async def test_closing_wakes_queued_tasks():
    pool = Pool(1, 1, LONG)
    gate = occupy(pool)
    task = asyncio.create_task(pool.ado("key", "caller", Gate()))
    await soon(lambda: pool.queued == 1)
    pool.close()
    with pytest.raises(PoolClosed):
        async with asyncio.timeout(LIMIT):
            await task
    finish(gate)


async def test_a_task_whose_ticket_leaves_is_told():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    task = asyncio.create_task(gate.ticket.aresult())
    await soon(lambda: gate.job._sleepers)
    gate.ticket.leave()
    with pytest.raises(RuntimeError, match="has left"):
        async with asyncio.timeout(LIMIT):
            await task
    finish(gate)


# Events.


async def test_aevents_replays_and_follows():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, first=lambda job: job.publish("early"))
    async with asyncio.timeout(LIMIT):
        events = pool.enter("busy", "late", None).aevents()
        assert await anext(events) == "early"
        for event in ("first", None):
            following = asyncio.create_task(anext(events))
            await soon(lambda: gate.job._sleepers)
            gate.job.publish(event)
            assert await following == event
        finish(gate)
        assert [event async for event in events] == []
        assert [event async for event in gate.ticket.aevents()] == ["early", "first", None]


async def test_aevents_sleeps_without_a_clock_of_its_own():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    reading = asyncio.create_task(anext(gate.ticket.aevents(), "the end"))
    await soon(lambda: gate.job._sleepers)
    assert not reading.done()
    finish(gate)
    async with asyncio.timeout(LIMIT):
        assert await reading == "the end"


async def test_the_aevents_of_a_ticket_that_leaves_end_at_once():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    for event in range(3):
        gate.job.publish(event)
    events = gate.ticket.aevents()
    assert await anext(events) == 0
    gate.ticket.leave()
    assert [event async for event in events] == []
    finish(gate)


async def test_a_timeout_of_aevents_keeps_the_ticket_and_what_was_published():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, first=lambda job: job.publish("seen"))
    async with asyncio.timeout(LIMIT):
        events = gate.ticket.aevents(timeout=0.01)
        assert await anext(events) == "seen"
        with pytest.raises(TimeoutError, match=r"^the job did not end in the time given$"):
            await anext(events)
        assert pool.stats().tickets == 1
        finish(gate)
        assert [event async for event in gate.ticket.aevents(timeout=0)] == ["seen"]


async def test_reading_events_that_are_there_leaves_no_sleeper_behind():
    gate = occupy(Pool(1, 0, 0), first=lambda job: job.publish("there"))
    assert await anext(gate.ticket.aevents()) == "there"
    assert gate.job._sleepers == set()
    finish(gate)
    assert [event async for event in gate.ticket.aevents()] == ["there"]
    assert gate.job._sleepers == set()


async def test_aevents_of_an_expired_job_end(clock):
    pool = Pool(1, 1, 8)
    gate = occupy(pool)
    ticket = pool.enter("key", "caller", Gate())
    clock.advance(8)
    async with asyncio.timeout(LIMIT):
        assert [event async for event in ticket.aevents()] == []
    finish(gate)


# Event loops and threads.


def test_tasks_of_many_loops_share_a_job_with_threads():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key", value="shared")
    calls = [Call(asyncio.run, pool.ado("key", n, None)) for n in range(4)]
    calls += [Call(pool.do, "key", n, None) for n in range(4)]
    eventually(lambda: pool.waiting("key") == 8)
    finish(gate)
    assert [call.result() for call in calls] == ["shared"] * 8


def test_a_loop_that_was_closed_harms_nobody():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key", value="shared")
    loop = asyncio.new_event_loop()
    waiting = pool.ado("key", "lost", None)
    task = loop.create_task(waiting)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert (pool.waiting("key"), len(gate.job._sleepers)) == (1, 1)
    loop.close()
    others = [Call(asyncio.run, pool.ado("key", "async", None)), Call(pool.do, "key", "sync", None)]
    eventually(lambda: pool.waiting("key") == 3)
    finish(gate)
    assert [call.result() for call in others] == ["shared"] * 2
    assert_idle(pool)
    # The thread that could not wake the lost task is none the worse for it.
    assert pool.do("next", "next", lambda job: "ran", timeout=LIMIT) == "ran"
    # Whoever loses a loop has to clean up after it.
    waiting.close()
    task._log_destroy_pending = False


def test_a_task_destroyed_with_its_loop_leaves():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key")
    loop = asyncio.new_event_loop()
    task = loop.create_task(pool.ado("key", "lost", None))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert pool.waiting("key") == 1
    task._log_destroy_pending = False
    task.get_coro().close()
    assert (pool.waiting("key"), gate.job._sleepers) == (0, set())
    finish(gate)


@pytest.mark.parametrize("queued", [False, True], ids=["running", "queued"])
async def test_a_thousand_cancelled_tasks_leave_nothing(queued):
    pool = Pool(1, 1, LONG)
    gate, unused = occupy(pool), Gate()
    key = "key" if queued else "busy"
    tasks = [asyncio.create_task(pool.ado(key, n, unused)) for n in range(1000)]
    await soon(lambda: pool.stats().tickets == 1001)
    for task in tasks:
        task.cancel()
    async with asyncio.timeout(LIMIT):
        endings = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(ending) for ending in endings} == {asyncio.CancelledError}
    stats = pool.stats()
    assert (stats.running, stats.queued, stats.tickets, stats.threads) == (1, 0, 1, 1)
    assert (len(gate.job._tickets), gate.job._sleepers) == (1, set())
    finish(gate)
    assert unused.runs == 0
    assert_idle(pool)


async def test_a_task_that_gave_up_leaves_no_memory_in_a_job_that_goes_on():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key")
    ticket = pool.enter("key", "caller", None)
    task = asyncio.create_task(ticket.aresult())
    await soon(lambda: gate.job._sleepers)
    traces = [weakref.ref(ticket), weakref.ref(next(iter(gate.job._sleepers)))]
    await _cancelled(task)
    ticket.leave()
    del ticket, task
    # The loop holds the task that woke this one until it runs the next.
    await asyncio.sleep(0)
    gc.collect()
    assert [trace() for trace in traces] == [None, None]
    finish(gate)


async def test_a_timer_rings_no_later_than_it_should(monkeypatch):
    gate = occupy(Pool(1, 0, 0))
    loop, delays = asyncio.get_running_loop(), []
    call_later = loop.call_later

    def record(delay, callback, *args):
        delays.append(delay)
        return call_later(delay, callback, *args)

    monkeypatch.setattr(loop, "call_later", record)
    with pytest.raises(TimeoutError):
        await gate.ticket.aresult(timeout=0.01)
    assert all(0 <= delay <= 0.01 for delay in delays)
    assert delays
    finish(gate)


async def test_a_timer_does_not_outlive_its_wait():
    gate = occupy(Pool(1, 0, 0))
    task = asyncio.create_task(gate.ticket.aresult(timeout=LONG))
    await soon(lambda: gate.job._sleepers)
    finish(gate)
    await task
    live = [t for t in asyncio.get_running_loop()._scheduled if not t.cancelled()]
    assert [t for t in live if t.when() > asyncio.get_running_loop().time() + LIMIT] == []


async def test_an_event_does_not_wake_whoever_awaits_the_result():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    task = asyncio.create_task(gate.ticket.aresult())
    await soon(lambda: gate.job._sleepers)
    (sleeper,) = gate.job._sleepers
    gate.job.publish("event")
    assert gate.job._sleepers == {sleeper}
    finish(gate)
    await task
