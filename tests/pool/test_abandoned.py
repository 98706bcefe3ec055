"""Jobs whose tickets leave: place, key and caller; callbacks; giving up, or being joined."""

from __future__ import annotations

import logging
import threading

import pytest

from pdfpool_django.pool import CallerBusy, Pool
from tests.pool.helpers import LIMIT, LONG, Call, Gate, assert_idle, finish, hook_lock, occupy


def _abandonable(pool: Pool, *callbacks, **gate_options) -> Gate:
    """Run a job that registers callbacks before it tells that it has started."""

    def register(job):
        for callback in callbacks:
            job.when_abandoned(callback)

    return occupy(pool, "key", first=register, **gate_options)


# Queued jobs.


def test_a_queued_job_keeps_its_place_while_any_ticket_remains():
    pool = Pool(1, 1, LONG)
    gate, queued = occupy(pool), Gate(value="for the joiner")
    starter = pool.enter("key", "starter", queued)
    joiner = pool.enter("key", "joiner", None)
    starter.leave()
    assert (pool.queued, pool.waiting("key")) == (1, 1)
    finish(gate, queued)
    assert joiner.result() == "for the joiner"
    assert_idle(pool)


def test_the_departed_starter_of_a_queued_job_stays_busy_while_the_job_lives():
    pool = Pool(1, 2, LONG)
    gate = occupy(pool)
    starter = pool.enter("key", "starter", Gate())
    joiner = pool.enter("key", "joiner", None)
    starter.leave()
    with pytest.raises(CallerBusy):
        pool.enter("other", "starter", Gate())
    joiner.leave()
    pool.enter("other", "starter", Gate()).leave()
    finish(gate)
    assert_idle(pool)


@pytest.mark.parametrize("starter_first", [True, False])
def test_the_last_to_leave_a_queued_job_frees_place_key_and_caller(starter_first):
    pool = Pool(1, 1, LONG)
    gate, unused = occupy(pool), Gate()
    tickets = [pool.enter("key", "starter", unused), pool.enter("key", "joiner", None)]
    for ticket in tickets if starter_first else reversed(tickets):
        assert pool.queued == 1
        ticket.leave()
    assert (pool.queued, pool.waiting("key"), pool.stats().refused_busy) == (0, 0, 0)
    again = Gate()
    assert pool.enter("key", "starter", again).started
    finish(gate, again)
    assert unused.runs == 0
    assert_idle(pool)


def test_no_callback_is_called_for_a_job_that_was_granted_in_time():
    pool = Pool(1, 1, LONG)
    gate, called = occupy(pool), []
    queued = Gate(first=lambda job: job.when_abandoned(lambda: called.append("abandoned")))
    ticket = pool.enter("key", "caller", queued)
    finish(gate, queued)
    ticket.leave()
    assert called == []


# Running jobs.


def test_a_starter_that_leaves_keeps_its_job_running_joinable_and_itself_busy():
    pool = Pool(2, 0, 0)
    gate = occupy(pool, "key", value="goes on")
    gate.ticket.leave()
    assert (pool.running, pool.stats().tickets) == (1, 0)
    with pytest.raises(CallerBusy):
        pool.enter("other", "key", Gate())
    joined = pool.enter("key", "joiner", None)
    finish(gate)
    assert joined.result() == "goes on"
    assert pool.do("other", "key", lambda job: "free") == "free"


def test_the_callback_is_called_in_the_leavers_thread_outside_the_mutex():
    pool = Pool(1, 0, 0)
    seen: list[tuple[int, int]] = []
    gate = _abandonable(pool, lambda: seen.append((threading.get_ident(), pool.running)))
    gate.ticket.leave()
    assert seen == [(threading.get_ident(), 1)]
    finish(gate)


def test_every_callback_is_called_each_time_the_last_ticket_leaves():
    pool = Pool(1, 0, 0)
    called: list[str] = []
    gate = _abandonable(pool, lambda: called.append("a"), lambda: called.append("b"))
    joined = pool.enter("key", "joiner", None)
    gate.ticket.leave()
    assert called == []
    joined.leave()
    assert called == ["a", "b"]
    pool.enter("key", "another", None).leave()
    assert called == ["a", "b"] * 2
    finish(gate)


def test_a_callback_is_called_at_once_where_no_ticket_is_left():
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    gate.ticket.leave()
    called: list[int] = []
    gate.job.when_abandoned(lambda: called.append(pool.running))
    assert called == [1]
    gate.job.when_abandoned(lambda: called.append(7))
    assert called == [1, 7]
    finish(gate)


def test_a_callback_waits_while_a_ticket_is_left():
    pool = Pool(1, 0, 0)
    called: list[str] = []
    gate = _abandonable(pool, lambda: called.append("abandoned"))
    assert called == []
    finish(gate)
    assert called == []


def test_no_callback_is_called_after_the_end():
    gate = _abandonable(Pool(1, 0, 0), called := [])
    finish(gate)
    gate.job.when_abandoned(lambda: called.append("too late"))
    gate.ticket.leave()
    assert called == []


def test_a_callback_that_fails_is_logged_and_spares_the_leaver(caplog):
    pool = Pool(1, 0, 0)
    called: list[str] = []

    def fail():
        raise KeyError("a callback's fault")

    gate = _abandonable(pool, fail, lambda: called.append("the next"))
    with caplog.at_level(logging.ERROR, logger="pdfpool_django.pool"):
        gate.ticket.leave()
    assert called == ["the next"]
    assert [record.exc_info[0] for record in caplog.records] == [KeyError]
    assert caplog.messages == ["a callback for an abandoned job failed"]
    assert caplog.records[0].name == "pdfpool_django.pool"
    finish(gate)


def test_a_callback_that_fails_at_once_spares_the_job(caplog):
    pool = Pool(1, 0, 0)
    gate = occupy(pool)
    gate.ticket.leave()

    def fail():
        raise KeyError("a callback's fault")

    gate.job.when_abandoned(fail)
    assert caplog.messages == ["a callback for an abandoned job failed"]
    finish(gate)


def test_an_abandoned_job_may_go_on_and_be_joined():
    pool = Pool(1, 0, 0)
    gate = _abandonable(pool, lambda: None, value="went on")
    gate.ticket.leave()
    joined = pool.enter("key", "joiner", None)
    finish(gate)
    assert joined.result() == "went on"


# Giving up.


def test_nobody_gives_up_while_a_ticket_is_left():
    pool = Pool(1, 0, 0)
    gate = occupy(pool, "key", value="stays")
    joined = pool.enter("key", "joiner", None)
    assert gate.job.give_up() is False
    gate.ticket.leave()
    assert gate.job.give_up() is False
    assert pool.waiting("key") == 1
    finish(gate)
    assert joined.result() == "stays"


def test_giving_up_forgets_the_key_and_holds_slot_and_caller():
    pool = Pool(2, 0, 0)
    gate = occupy(pool, "key")
    gate.ticket.leave()
    assert gate.job.give_up() is True
    assert pool.running == 1
    with pytest.raises(TypeError, match="no job"):
        pool.enter("key", "joiner", None)
    with pytest.raises(CallerBusy):
        pool.enter("key", "key", Gate())
    finish(gate)
    assert_idle(pool)


def test_a_request_for_a_given_up_key_starts_another_job():
    pool = Pool(2, 0, 0)
    gate = occupy(pool, "key")
    gate.ticket.leave()
    gate.job.give_up()
    second = Gate(value="another")
    ticket = pool.enter("key", "another caller", second)
    second.await_start()
    assert (ticket.started, pool.running) == (True, 2)
    assert gate.job.give_up() is True
    # The end of the first must not take the key of the second with it.
    finish(gate)
    joined = pool.enter("key", "joiner", None)
    finish(second)
    assert joined.result() == "another"
    assert_idle(pool)


def test_a_callback_can_give_up():
    pool = Pool(1, 0, 0)
    answers: list[bool] = []
    gate = occupy(pool, "key", first=lambda job: job.when_abandoned(lambda: give_up()))

    def give_up():
        answers.append(gate.job.give_up())
        gate.release()

    gate.ticket.leave()
    finish(gate)
    assert answers == [True]
    assert_idle(pool)


def test_a_join_before_the_give_up_wins():
    pool = Pool(1, 0, 0)
    joined, answers = [], []

    def join_then_give_up():
        joined.append(pool.enter("key", "joiner", None))
        answers.append(gate.job.give_up())

    gate = _abandonable(pool, join_then_give_up, value="for the joiner")
    gate.ticket.leave()
    finish(gate)
    assert answers == [False]
    assert joined[0].result() == "for the joiner"


def test_a_give_up_before_the_join_wins():
    pool = Pool(2, 0, 0)
    gate = _abandonable(pool, lambda: gate.job.give_up())
    gate.ticket.leave()
    fresh = Gate(value="fresh")
    ticket = pool.enter("key", "joiner", fresh)
    assert ticket.started
    finish(gate, fresh)
    assert ticket.result() == "fresh"


def test_a_join_that_comes_while_a_give_up_wants_the_lock_wins():
    pool = Pool(2, 0, 0)
    lock = hook_lock(pool)
    gate, joined = occupy(pool, "key", value="for the joiner"), []
    gate.ticket.leave()
    lock.arm("wanting", lambda: joined.append(Call(pool.enter, "key", "joiner", None).result()))
    assert gate.job.give_up() is False
    finish(gate)
    assert joined[0].result() == "for the joiner"


def test_a_join_that_waits_for_a_give_up_starts_another_job():
    pool = Pool(2, 0, 0)
    lock = hook_lock(pool)
    gate, fresh, calls = occupy(pool, "key"), Gate(value="fresh"), []
    gate.ticket.leave()
    there = threading.Event()

    def have_somebody_wait():
        lock.arm("wanting", there.set)
        calls.append(Call(pool.enter, "key", "joiner", fresh))
        assert there.wait(LIMIT)

    lock.arm("having", have_somebody_wait)
    assert gate.job.give_up() is True
    ticket = calls[0].result()
    assert ticket.started
    finish(gate)
    finish(fresh.await_start())
    assert ticket.result() == "fresh"
    assert_idle(pool)
