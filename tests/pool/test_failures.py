"""How failures reach tickets: each as its own, and none with another's frames."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from pdfpool_django.pool import JobCrashed, Pool
from tests.pool.helpers import Gate, assert_idle, finish, occupy


class WithDetail(Exception):
    def __init__(self, message="", detail=None):
        super().__init__(message)
        self.detail = detail


class NeedsTwo(Exception):
    """Copying it raises: its arguments are not those of its `__init__`."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class ChangesType(Exception):
    def __copy__(self):
        return WithDetail("somebody else")


class CopiesToItself(Exception):
    def __copy__(self):
        return self


class LosesArguments(Exception):
    def __copy__(self):
        return LosesArguments()


class RaisesWhenCopied(Exception):
    def __copy__(self):
        raise LookupError("not to be copied")


def fail(error: BaseException, cause: BaseException | None = None):
    """Be a frame to be found in tracebacks."""
    raise error from cause


def _failed_tickets(error: BaseException, count: int = 2, cause: BaseException | None = None):
    """Return the tickets of a job that failed."""
    pool = Pool(1, 0, 0)
    gate = Gate()

    def fn(job):
        gate(job)
        fail(error, cause)

    tickets = [pool.enter("key", n, fn) for n in range(count)]
    gate.await_start()
    finish(gate)
    return tickets


def _caught(take) -> BaseException:
    try:
        take()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def _results(tickets) -> list[BaseException]:
    return [_caught(ticket.result) for ticket in tickets]


def _frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_each_ticket_raises_a_copy_of_its_own():
    original = WithDetail("broken", detail={"page": 7})
    errors = _results(_failed_tickets(original, count=3))
    assert len({id(error) for error in (original, *errors)}) == 4
    for error in errors:
        assert type(error) is WithDetail
        assert (error.args, error.detail) == (("broken",), {"page": 7})


def test_async_tickets_raise_copies_too():
    tickets = _failed_tickets(original := KeyError("lost"))
    errors = [_caught(lambda t=t: asyncio.run(t.aresult())) for t in tickets]
    assert [error.args for error in errors] == [("lost",)] * 2
    assert len({id(error) for error in (original, *errors)}) == 3


def test_every_taking_of_a_result_raises_another_copy():
    (ticket,) = _failed_tickets(ValueError("again"), count=1)
    assert _caught(ticket.result) is not _caught(ticket.result)


@pytest.mark.parametrize(
    "error",
    [
        NeedsTwo("this", "that"),
        ChangesType("as it was"),
        CopiesToItself("as it was"),
        RaisesWhenCopied("as it was"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_cannot_be_copied_is_raised_itself(error):
    assert _results(_failed_tickets(error)) == [error, error]


def test_a_copy_says_what_the_original_said():
    errors = _results(_failed_tickets(LosesArguments("kept", 7)))
    assert [error.args for error in errors] == [("kept", 7)] * 2


def test_errors_of_the_system_keep_their_attributes():
    error, _ = _results(_failed_tickets(OSError(2, "no such file", "name")))
    assert type(error) is FileNotFoundError
    assert (error.errno, error.strerror, error.filename) == (2, "no such file", "name")


def test_a_group_reaches_every_ticket_as_a_group():
    for error in _results(_failed_tickets(ExceptionGroup("both", [KeyError(), ValueError()]))):
        assert [type(inner) for inner in error.exceptions] == [KeyError, ValueError]


def test_the_cause_is_kept():
    cause = LookupError("the reason")
    for error in _results(_failed_tickets(ValueError("broken"), cause=cause)):
        assert error.__cause__ is cause
        assert error.__suppress_context__ is True


def test_without_a_cause_there_is_none():
    for error in _results(_failed_tickets(ValueError("broken"))):
        assert error.__cause__ is None


def test_a_suppressed_context_stays_suppressed():
    original = ValueError("broken")
    original.__suppress_context__ = True
    for take_from in (original, WithDetail("not suppressed")):
        error, _ = _results(_failed_tickets(take_from))
        # `raise ... from None` suppresses by itself.
        assert (error.__cause__, error.__suppress_context__) == (None, True)


def test_an_unsuppressed_context_stays_unsuppressed():
    error = _caught(lambda: Pool(1, 0, 0).do("key", "caller", lambda job: 1 / 0))
    assert error.__suppress_context__ is False


def test_notes_are_copied_not_shared():
    original = ValueError("broken")
    original.add_note("the job's")
    first, second = _results(_failed_tickets(original))
    first.add_note("one waiter's")
    assert second.__notes__ == original.__notes__ == ["the job's"]
    assert first.__notes__ == ["the job's", "one waiter's"]


def test_without_notes_none_are_made_up():
    error, _ = _results(_failed_tickets(ValueError("broken")))
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("kind", [ValueError, CopiesToItself], ids=["copied", "itself"])
def test_the_context_is_empty_though_the_caller_handles_another_error(kind):
    tickets = _failed_tickets(kind("broken"))
    try:
        raise LookupError("the caller's own")
    except LookupError:
        errors = _results(tickets)
    assert [error.__context__ for error in errors] == [None, None]


def test_the_context_of_the_job_stays_with_the_job():
    def fn(job):
        try:
            raise LookupError("within the job")
        except LookupError:
            fail(ValueError("broken"))

    assert _caught(lambda: Pool(1, 0, 0).do("key", "caller", fn)).__context__ is None


def test_the_context_is_empty_for_async_callers_who_handle_another_error():
    async def handle(ticket):
        try:
            raise LookupError("the caller's own")
        except LookupError:
            await ticket.aresult()

    tickets = _failed_tickets(ValueError("broken"))
    errors = [_caught(lambda t=t: asyncio.run(handle(t))) for t in tickets]
    assert [error.__context__ for error in errors] == [None, None]


def test_do_leaves_no_context_either():
    pool = Pool(1, 0, 0)
    try:
        raise LookupError("the caller's own")
    except LookupError:
        error = _caught(lambda: pool.do("key", "caller", lambda job: 1 / 0))
    assert error.__context__ is None


def test_the_traceback_is_the_jobs_and_ends_where_it_failed():
    error, _ = _results(_failed_tickets(ValueError("broken")))
    assert _frames(error)[-2:] == ["fn", "fail"]
    # The pool's own frame in the job's thread tells nobody anything.
    assert "_call" not in _frames(error)


@pytest.mark.parametrize("kind", [ValueError, CopiesToItself], ids=["copied", "itself"])
def test_the_traceback_does_not_grow_with_the_tickets(kind):
    tickets = _failed_tickets(kind("broken"), count=100)
    lengths = [len(_frames(error)) for error in map(_caught, [t.result for t in tickets])]
    assert lengths == [lengths[0]] * 100


def test_the_traceback_of_a_crash_does_not_grow_with_the_tickets():
    original = SystemExit(1)
    for error in _results(_failed_tickets(original, count=100)):
        assert error.__cause__ is original
    assert _frames(original) == ["fn", "fail"]


def test_one_callers_frames_are_not_anothers():
    def one_caller():
        return tickets[0].result()

    def another_caller():
        return tickets[1].result()

    tickets = _failed_tickets(ValueError("broken"))
    first, second = _caught(one_caller), _caught(another_caller)
    assert "another_caller" not in _frames(first)
    assert "one_caller" not in _frames(second)


def test_an_error_without_a_traceback_is_raised_all_the_same():
    # What cannot be called fails before there is any frame of its own.
    error = _caught(lambda: Pool(1, 0, 0).do("key", "caller", int.from_bytes))
    assert type(error) is TypeError


@pytest.mark.parametrize(
    "error",
    [
        StopIteration("value"),
        StopAsyncIteration(),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        asyncio.CancelledError(),
        BaseException("bare"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_would_change_its_meaning_arrives_as_a_crash(error):
    pool = Pool(1, 0, 0)
    caught = [
        _caught(lambda: pool.do("key", "caller", lambda job: fail(error))),
        _caught(lambda: asyncio.run(pool.ado("key", "caller", lambda job: fail(error)))),
    ]
    for crash in caught:
        assert type(crash) is JobCrashed
        assert crash.__cause__ is error
        assert str(crash) == f"the job ended with {type(error).__name__}"
    assert caught[0] is not caught[1]
    assert_idle(pool)


def test_a_timeout_error_of_the_job_is_the_jobs(ask):
    pool = Pool(1, 0, 0)
    error = _caught(lambda: ask(pool, "k", "c", lambda job: fail(TimeoutError("the job's")), 5))
    assert str(error) == "the job's"


def test_a_crash_is_its_own_for_each_ticket():
    errors = _results(_failed_tickets(KeyboardInterrupt()))
    assert errors[0] is not errors[1]
    assert errors[0].__cause__ is errors[1].__cause__


def test_a_failed_job_hands_its_slot_on():
    pool = Pool(1, 1, 1000)
    gate = occupy(pool, error=GeneratorExit())
    ticket = pool.enter("next", "next", lambda job: "ran")
    finish(gate)
    assert ticket.result() == "ran"
