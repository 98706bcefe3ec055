"""A job, and the tickets through which its callers wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pdfpool_django.outcomes import Failed, Returned

if TYPE_CHECKING:
    from pdfpool_django.pool import Pool

T = TypeVar("T")

_BATCH = 64
"""Events that a ticket takes at a time: who stops reading holds no long list of them."""

logger = logging.getLogger("pdfpool_django.pool")

current_job: contextvars.ContextVar[Job | None] = contextvars.ContextVar(
    "pdfpoolcurrent_job", default=None
)


class Job:
    """One run of the work for a key; what `fn` is called with."""

    def __init__(
        self, pool: Pool, key: Hashable, caller: Hashable, fn: Callable[[Job], Any]
    ) -> None:
        self.key = key
        self.caller = caller
        self._pool = pool
        # An ended job may be held for long, by a ticket; what its work closes over is let go.
        self._work = [(fn, contextvars.copy_context())]
        self._running = False
        self._expires = math.inf
        self._outcome: Returned | Failed | None = None
        self._tickets: set[Ticket[Any]] = set()
        self._events: list[Any] = []
        self._on_abandoned: list[Callable[[], object]] = []
        # Who waits for the result is not woken by events: a document may have thousands.
        self._changed = threading.Condition(pool._mutex)  # type: ignore[arg-type]
        self._published = threading.Condition(pool._mutex)  # type: ignore[arg-type]
        self._sleepers: set[_Sleeper] = set()

    def publish(self, event: Any) -> None:
        """Hand `event` to every ticket, present and to come. Never blocks.

        Raises:
            RuntimeError: The job has ended.
        """
        with self._pool._mutex:
            if self._outcome is not None:
                raise RuntimeError("the job has ended; nothing can be published any more")
            self._events.append(event)
            self._published.notify_all()
            self._wake_sleepers({each for each in self._sleepers if each.wants_events})

    def when_abandoned(self, callback: Callable[[], object]) -> None:
        """Have `callback` called each time the last ticket of the running job leaves.

        It is called in the leaver's thread, outside the mutex; at once, in
        this thread, where no ticket is left already. It need not do anything:
        the job goes on and can still be joined.
        """
        with self._pool._mutex:
            self._on_abandoned.append(callback)
            if not self._tickets and self._outcome is None:
                self._pool._mutex.later(functools.partial(_call_quietly, callback))

    def give_up(self) -> bool:
        """Return whether no ticket is left, and if so forget the key in the same step.

        After true, nobody can join this job, and a request for its key starts
        another. Slot and caller stay held until `fn` returns. After false,
        nothing has changed.
        """
        with self._pool._mutex:
            if self._tickets:
                return False
            self._pool._forget_key(self)
            return True

    def __repr__(self) -> str:
        state = "ended" if self._outcome else "running" if self._running else "queued"
        return f"<Job {self.key!r} {state}>"

    def _call(self) -> Returned | Failed:
        """Run `fn` in the starter's context, and return how it ended."""
        fn, context = self._work.pop()
        context.run(current_job.set, self)
        try:
            return Returned(context.run(fn, self))
        except BaseException as error:  # noqa: BLE001 - it reaches every ticket
            return Failed.of(error)

    def _wake(self) -> None:
        """Wake every waiter; called under the mutex, like all that follows."""
        self._changed.notify_all()
        self._published.notify_all()
        self._wake_sleepers(self._sleepers)

    def _wake_sleepers(self, sleepers: set[_Sleeper]) -> None:
        self._sleepers = self._sleepers - sleepers
        for sleeper in sleepers:
            self._pool._mutex.later(sleeper.wake)

    def _abandoned(self) -> None:
        for callback in self._on_abandoned:
            self._pool._mutex.later(functools.partial(_call_quietly, callback))


def _call_quietly(callback: Callable[[], object]) -> None:
    """Call back into the job's owner; the one who happens to leave must not pay for its faults."""
    try:
        callback()
    except Exception:
        logger.exception("a callback for an abandoned job failed")


class _Sleeper:
    """A task that waits for a job to change."""

    def __init__(self, wants_events: bool) -> None:
        self.wants_events = wants_events
        """Whether an event is a change; else the job's end only."""
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def wake(self) -> None:
        # A loop that has been closed has nobody left to wake.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def sleep(self, seconds: float | None) -> None:
        """Return when woken, or after `seconds`."""
        timer = None if seconds is None else self._loop.call_later(max(0, seconds), self._set)
        try:
            await self._future
        finally:
            if timer is not None:
                timer.cancel()


class Ticket(Generic[T]):
    """One caller's share in a job.

    Used as a context manager, it leaves at the end. Every method may be called
    from any thread, and as often as wanted.
    """

    def __init__(self, pool: Pool, job: Job, started: bool) -> None:
        self.started = started
        """Whether this ticket started the job; else it joined."""
        self._pool = pool
        self._job = job
        self._left = False

    @property
    def key(self) -> Hashable:
        """The job's key."""
        return self._job.key

    def result(self, timeout: float | None = None) -> T:
        """Wait for the job's end and return what `fn` returned.

        Args:
            timeout: Seconds to wait at most. A result that is there wins over
                a timeout that has passed.

        Raises:
            TimeoutError: The time is up. The ticket stays valid.
            PoolBusy: The job waited in the queue for longer than the pool's `wait`.
            PoolClosed: The pool was closed while the job was queued.
            JobCrashed: `fn` ended with something other than an `Exception`.
            RuntimeError: The ticket has left.
            Exception: What `fn` raised.
        """
        deadline = deadline_after(timeout)
        with self._pool._mutex:
            while not self._settled():
                self._job._changed.wait(self._seconds_to_sleep(deadline))
        return self._take_outcome()

    async def aresult(self, timeout: float | None = None) -> T:  # noqa: ASYNC109 - as `result`
        """Like `result`, for async callers. Cancelling it does not leave."""
        deadline = deadline_after(timeout)
        while True:
            with self._pool._mutex:
                if self._settled():
                    break
                sleeper, seconds = self._sleeper(deadline, wants_events=False)
            await self._sleep(sleeper, seconds)
        return self._take_outcome()

    def events(self, timeout: float | None = None) -> Iterator[Any]:
        """Yield the job's events from its first on, and end with the job.

        `result` tells how it ended. The events of a ticket that leaves end at once.

        Args:
            timeout: Seconds to wait at most, from the first event asked for to the last.

        Raises:
            TimeoutError: The time is up, and no event is at hand. The ticket stays valid.
        """
        deadline = deadline_after(timeout)
        seen = 0
        while True:
            with self._pool._mutex:
                while not (settled := self._settled()) and len(self._job._events) == seen:
                    self._job._published.wait(self._seconds_to_sleep(deadline))
                batch = self._job._events[seen : seen + _BATCH]
                last = settled and seen + len(batch) == len(self._job._events)
            for event in batch:
                if self._left:
                    return
                yield event
            seen += len(batch)
            if last:
                return

    async def aevents(self, timeout: float | None = None) -> AsyncIterator[Any]:  # noqa: ASYNC109 - as `events`
        """Like `events`, for async callers."""
        deadline = deadline_after(timeout)
        seen = 0
        while True:
            with self._pool._mutex:
                settled = self._settled()
                batch = self._job._events[seen : seen + _BATCH]
                last = settled and seen + len(batch) == len(self._job._events)
                if not (batch or last):
                    sleeper, seconds = self._sleeper(deadline, wants_events=True)
            if not (batch or last):
                await self._sleep(sleeper, seconds)
            for event in batch:
                if self._left:
                    return
                yield event
            seen += len(batch)
            if last:
                return

    def leave(self) -> None:
        """Give the share back; whoever waits on this ticket gets a `RuntimeError`.

        A queued job that loses its last ticket is gone, with its place, key
        and caller. A running one goes on. After the job's end, or a second
        time, nothing happens.
        """
        mutex = self._pool._mutex
        if mutex.inside():
            mutex.defer(self.leave)
            return
        with mutex:
            if self._left or self._job._outcome is not None:
                return
            self._left = True
            self._pool._leave(self)
            self._job._wake()

    def __enter__(self) -> Ticket[T]:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.leave()

    def __repr__(self) -> str:
        share = "left" if self._left else "started" if self.started else "joined"
        return f"<Ticket {share} {self._job!r}>"

    def _settled(self) -> bool:
        self._pool._expire(time.monotonic())
        return self._left or self._job._outcome is not None

    def _seconds_to_sleep(self, deadline: float) -> float | None:
        """Return how long the job may be left alone, or raise if the caller's time is up."""
        now = time.monotonic()
        if now >= deadline:
            raise TimeoutError("the job did not end in the time given")
        # A running job's clock is `inf`; a queued one's may end before the caller's.
        until = min(deadline, self._job._expires)
        return None if until == math.inf else min(until - now, threading.TIMEOUT_MAX)

    def _sleeper(self, deadline: float, *, wants_events: bool) -> tuple[_Sleeper, float | None]:
        seconds = self._seconds_to_sleep(deadline)
        sleeper = _Sleeper(wants_events)
        self._job._sleepers.add(sleeper)
        return sleeper, seconds

    async def _sleep(self, sleeper: _Sleeper, seconds: float | None) -> None:
        try:
            await sleeper.sleep(seconds)
        finally:
            self._forget(sleeper)

    def _forget(self, sleeper: _Sleeper) -> None:
        mutex = self._pool._mutex
        if mutex.inside():
            mutex.defer(lambda: self._forget(sleeper))
            return
        with mutex:
            self._job._sleepers.discard(sleeper)

    def _take_outcome(self) -> T:
        outcome = self._job._outcome
        if self._left or outcome is None:
            raise RuntimeError("the ticket has left its job")
        if isinstance(outcome, Failed):
            outcome.throw()
        value: T = outcome.value
        return value


def deadline_after(timeout: float | None) -> float:
    """Return the instant at which `timeout` seconds from now are up; ``None`` is never."""
    return math.inf if timeout is None else time.monotonic() + timeout
