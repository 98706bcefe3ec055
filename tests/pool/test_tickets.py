"""What a ticket is good for: results, timeouts, events, leaving; and how pools show themselves."""

from __future__ import annotations

import pytest

from pdfpool_django.pool import CallerBusy, JobCrashed, Pool, PoolStats
from tests.pool.helpers import LONG, Call, Gate, assert_idle, eventually, finish, occupy


@pytest.mark.parametrize("timeout", [0, -1, 0.0])
def test_a_timeout_spent_on_entry_starts_nothing(ask, timeout):
    pool = Pool(1, 0, 0)
    unused = Gate()
    with pytest.raises(TimeoutError, match=r"^the time was up before the job was entered$"):
        ask(pool, "key", "caller", unused, timeout=timeout)
    assert pool.stats().started == unused.runs == 0
    assert_idle(pool)


def test_a_timeout_spent_on_entry_joins_nothing(ask):
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key")
    with pytest.raises(TimeoutError):
        ask(pool, "key", "joiner", None, timeout=0)
    assert pool.stats().joined == 0
    finish(gate)


def test_a_timeout_while_the_job_runs_leaves_it_running(ask):
    pool = Pool(1, 0, 0)
    gate = Gate(value="for the joiner")
    with pytest.raises(TimeoutError):
        ask(pool, "key", "caller", gate, timeout=0.02)
    gate.await_start()
    assert (pool.running, pool.stats().tickets) == (1, 0)
    with pytest.raises(CallerBusy):
        ask(pool, "other key", "caller", Gate())
    joiner = pool.enter("key", "joiner", None)
    finish(gate)
    assert joiner.result() == "for the joiner"
    assert_idle(pool)


def test_a_timeout_while_the_job_is_queued_gives_up_its_place(ask):
    pool = Pool(1, 1, LONG)
    gate, unused = occupy(pool), Gate()
    with pytest.raises(TimeoutError):
        ask(pool, "key", "caller", unused, timeout=0.02)
    assert (pool.queued, pool.waiting("key")) == (0, 0)
    own = Gate()
    pool.enter("other key", "caller", own)
    finish(gate, own)
    assert unused.runs == 0


def test_a_result_in_time_is_returned_despite_a_timeout(ask):
    assert ask(Pool(1, 0, 0), "key", "caller", lambda job: "fast", timeout=LONG) == "fast"


def test_a_timeout_of_result_keeps_the_ticket():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, value="later")
    with pytest.raises(TimeoutError, match="did not end in the time given"):
        gate.ticket.result(timeout=0.01)
    assert pool.stats().tickets == 1
    finish(gate)
    assert gate.ticket.result() == "later"


def test_a_result_that_is_there_wins_over_a_timeout_that_has_passed():
    gate = occupy(Pool(1, 0, 0), value="there")
    finish(gate)
    assert gate.ticket.result(timeout=0) == gate.ticket.result(timeout=-1) == "there"


def test_a_result_may_be_taken_often_and_by_many():
    gate = occupy(Pool(1, 0, 0), value="same")
    takers = [Call(gate.ticket.result) for _ in range(4)]
    finish(gate)
    assert [call.result() for call in takers] == ["same"] * 4


# Counters.


def test_waiting_counts_the_joined_never_the_starter():
    pool = Pool(1, 0, 0)
    assert pool.waiting("key") == 0
    gate = occupy(pool, "key")
    assert pool.waiting("key") == 0
    joined = [pool.enter("key", name, None) for name in "ab"]
    assert pool.waiting("key") == 2
    gate.ticket.leave()
    assert pool.waiting("key") == 2
    joined[0].leave()
    assert (pool.waiting("key"), pool.waiting("other")) == (1, 0)
    finish(gate)
    assert pool.waiting("key") == 0


def test_queued_counts_jobs_not_tickets():
    pool = Pool(1, 2, LONG)
    gate, queued = occupy(pool), Gate()
    for name in "abc":
        pool.enter("key", name, queued)
    assert (pool.queued, pool.waiting("key")) == (1, 2)
    finish(gate, queued)


def test_stats_tell_the_state_and_the_history():
    pool = Pool(1, 1, LONG)
    gate, queued = occupy(pool), Gate()
    pool.enter("queued", "queued", queued)
    for _ in range(2):
        pool.enter("queued", "joiner", None)
    with pytest.raises(CallerBusy):
        pool.enter("other", "queued", Gate())
    expected = {"slots": 1, "queue": 1, "wait": LONG, "running": 1, "queued": 1, "tickets": 4}
    expected |= {"threads": 1, "closed": False, "started": 1, "joined": 2}
    assert pool.stats() == PoolStats(**expected, refused_busy=0, refused_caller=1)
    finish(gate, queued)
    assert (pool.stats().started, pool.stats().tickets) == (2, 0)


def test_a_pool_shows_its_state():
    pool = Pool(2, 3, LONG)
    gate = occupy(pool)
    assert repr(pool) == "<Pool running=1/2 queued=0/3>"
    finish(gate)
    pool.close()
    assert repr(pool) == "<Pool running=0/2 queued=0/3 closed>"


def test_tickets_and_jobs_show_their_state():
    pool = Pool(1, 1, LONG)
    gate = occupy(pool, "key")
    joined = pool.enter("key", "joiner", None)
    queued = pool.enter("next", "next", Gate())
    assert repr(gate.ticket) == "<Ticket started <Job 'key' running>>"
    assert repr(joined) == "<Ticket joined <Job 'key' running>>"
    assert repr(queued) == "<Ticket started <Job 'next' queued>>"
    joined.leave()
    queued.leave()
    finish(gate)
    assert repr(joined) == "<Ticket left <Job 'key' ended>>"
    assert joined.key == "key"


# Leaving.


def test_a_with_block_leaves_at_its_end():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    with pool.enter("busy", "joiner", None) as ticket:
        assert pool.stats().tickets == 2
    assert pool.stats().tickets == 1
    with pytest.raises(RuntimeError, match="has left"):
        ticket.result()
    finish(gate)


def test_a_with_block_leaves_on_an_error_and_lets_it_pass():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    with pytest.raises(KeyError), pool.enter("busy", "joiner", None):
        raise KeyError
    assert pool.stats().tickets == 1
    finish(gate)


def test_leaving_twice_is_leaving_once():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    joined = pool.enter("busy", "joiner", None)
    for _ in range(3):
        joined.leave()
    assert pool.stats().tickets == 1
    finish(gate)
    assert_idle(pool)


def test_a_ticket_that_left_has_no_result_even_after_the_end():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, value="not for those who left")
    gate.ticket.leave()
    finish(gate)
    with pytest.raises(RuntimeError, match=r"^the ticket has left its job$"):
        gate.ticket.result()


def test_leaving_after_the_end_keeps_the_result():
    gate = occupy(Pool(1, 0, 0), value="kept")
    finish(gate)
    gate.ticket.leave()
    assert gate.ticket.result() == "kept"


def test_whoever_waits_on_a_ticket_that_leaves_is_told():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    asleep = [Call(gate.ticket.result), Call(lambda: list(gate.ticket.events()))]
    eventually(lambda: gate.job._changed._waiters and gate.job._published._waiters)
    gate.ticket.leave()
    assert isinstance(asleep[0].error(), RuntimeError)
    assert asleep[1].result() == []
    finish(gate)


# Events.


def test_events_reach_every_ticket_in_order():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    joined = pool.enter("busy", "joiner", None)
    readers = [Call(lambda t=t: list(t.events())) for t in (gate.ticket, joined)]
    for event in range(3):
        gate.job.publish(event)
    finish(gate)
    assert [reader.result() for reader in readers] == [[0, 1, 2]] * 2


def test_an_event_is_there_as_soon_as_it_is_published():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    events = gate.ticket.events()
    for event in ("first", None, "last"):
        reader = Call(next, events)
        eventually(lambda: gate.job._published._waiters)
        gate.job.publish(event)
        assert reader.result() == event
    finish(gate)
    assert list(events) == []


def test_a_late_ticket_gets_the_earlier_events_first():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    gate.job.publish("early")
    events = pool.enter("busy", "late", None).events()
    assert next(events) == "early"
    gate.job.publish("late")
    assert next(events) == "late"
    finish(gate)
    assert next(events, "the end") == "the end"


def test_events_can_be_read_again_after_the_end():
    gate = occupy(Pool(1, 0, 0), first=lambda job: job.publish("kept"))
    finish(gate)
    assert list(gate.ticket.events()) == list(gate.ticket.events()) == ["kept"]


def test_events_end_with_a_failed_job_and_result_tells_how():
    gate = occupy(Pool(1, 0, 0), error=KeyError("lost"), first=lambda job: job.publish("seen"))
    finish(gate)
    assert list(gate.ticket.events()) == ["seen"]
    with pytest.raises(KeyError):
        gate.ticket.result()


def test_the_events_of_a_ticket_that_leaves_end_at_once():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    for event in range(3):
        gate.job.publish(event)
    events = gate.ticket.events()
    assert next(events) == 0
    gate.ticket.leave()
    assert list(events) == []
    finish(gate)


def test_an_ended_job_cannot_publish():
    gate = occupy(Pool(1, 0, 0))
    finish(gate)
    with pytest.raises(
        RuntimeError, match=r"^the job has ended; nothing can be published any more$"
    ):
        gate.job.publish("too late")
    assert list(gate.ticket.events()) == []


def test_a_timeout_of_events_keeps_the_ticket_and_what_was_published():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, first=lambda job: job.publish("seen"))
    events = gate.ticket.events(timeout=0.01)
    assert next(events) == "seen"
    with pytest.raises(TimeoutError, match=r"^the job did not end in the time given$"):
        next(events)
    assert pool.stats().tickets == 1
    finish(gate)
    assert list(gate.ticket.events(timeout=0)) == ["seen"]


def test_events_in_time_are_not_lost_to_a_timeout(clock):
    gate = occupy(Pool(1, 0, 0))
    events = gate.ticket.events(timeout=LONG)
    gate.job.publish("early")
    assert next(events) == "early"
    gate.job.publish("in time")
    clock.advance(LONG)
    assert next(events) == "in time"
    with pytest.raises(TimeoutError):
        next(events)
    finish(gate)


def test_nobody_waits_for_the_events_of_an_abandoned_job():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    gate.ticket.leave()
    gate.job.publish("unheard")
    late = pool.enter("busy", "late", None)
    finish(gate)
    assert list(late.events()) == ["unheard"]


# Errors of every ticket.


def test_a_crash_reaches_every_ticket_and_frees_everything(ask):
    pool = Pool(1, 0, 0)
    gate = Gate(error=SystemExit(3))
    calls = [Call(ask, pool, "key", "starter", gate)]
    gate.await_start()
    calls.append(Call(ask, pool, "key", "joiner", None))
    eventually(lambda: pool.waiting("key") == 1)
    gate.release()
    errors = [call.error() for call in calls]
    assert [type(error) for error in errors] == [JobCrashed, JobCrashed]
    assert errors[0] is not errors[1]
    assert_idle(pool)


def test_an_event_does_not_wake_whoever_waits_for_the_result():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    waiter = Call(gate.ticket.result)
    eventually(lambda: gate.job._changed._waiters)
    gate.job.publish("event")
    assert len(gate.job._changed._waiters) == 1
    finish(gate)
    waiter.result()
