"""A few slots, a short queue, identical requests sharing one job, one job per caller.

It is generic: what a job does is its caller's business. Every decision is made
under one mutex, and everything that could block or call foreign code is done
after it is released.
"""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from pdfpool_django.mutex import Mutex
from pdfpool_django.outcomes import (
    CallerBusy,
    Failed,
    JobCrashed,
    PoolBusy,
    PoolClosed,
    PoolError,
    Returned,
)
from pdfpool_django.tickets import Job, Ticket, current_job, deadline_after

__all__ = [
    "CallerBusy",
    "Job",
    "JobCrashed",
    "Pool",
    "PoolBusy",
    "PoolClosed",
    "PoolError",
    "PoolStats",
    "Ticket",
]

T = TypeVar("T")

IDLE_SECONDS = 1.0
"""How long a job's thread waits for the next job before it ends."""


@dataclass(frozen=True, slots=True)
class PoolStats:
    """A pool at one instant, and what it has done since it was made."""

    slots: int
    queue: int
    wait: float
    """Seconds."""
    running: int
    queued: int
    tickets: int
    """Tickets of live jobs, those that started them included."""
    threads: int
    """Threads that run a job or wait for the next."""
    closed: bool
    started: int
    """Jobs that got a slot."""
    joined: int
    """Tickets that joined a job."""
    refused_busy: int
    """Requests refused because the queue was full, and jobs whose `wait` ran out."""
    refused_caller: int


class _Worker:
    """A thread that runs one job after another."""

    def __init__(self, pool: Pool, job: Job) -> None:
        self._pool = pool
        self._job: Job | None = job
        self._handed = threading.Condition(pool._mutex)  # type: ignore[arg-type]
        self.thread = threading.Thread(
            target=self._work, name=f"pdfpool-job-{id(self):x}", daemon=True
        )

    def start(self) -> Exception | None:
        """Start the thread, or return why there is none to be had."""
        try:
            self.thread.start()
        except Exception as error:  # noqa: BLE001 - whatever it is, the job cannot run
            # It reaches everybody who waits: nothing of the one who happens to be here may stick.
            error.__context__ = None
            return error.with_traceback(None)
        return None

    def hand(self, job: Job) -> None:
        """Give the idle worker a job; called under the mutex."""
        self._job = job
        self._handed.notify()

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            outcome = job._call()
            with self._pool._mutex:
                self._job = self._pool._end(job, outcome)
                if self._job is None:
                    self._pool._idle.append(self)
            del job, outcome

    def _next_job(self) -> Job | None:
        """Return the job at hand, or wait a while for one."""
        until = time.monotonic() + IDLE_SECONDS
        with self._pool._mutex:
            while self._job is None:
                seconds = until - time.monotonic()
                if seconds <= 0:
                    self._pool._idle.remove(self)
                    self._pool._threads -= 1
                    return None
                self._handed.wait(seconds)
            job, self._job = self._job, None
            return job


class Pool:
    """Runs jobs in a few slots, with a short queue.

    A request joins the job that is in flight for its key. Otherwise it starts
    one, unless its caller has one in flight already, or no slot and no place
    in the queue is left.

    Args:
        slots: Jobs that run at once, at least 1.
        queue: Jobs that wait for a slot at most.
        wait: Seconds that a job waits for a slot at most.

    Raises:
        ValueError: `slots` is below 1, or another number is negative.
    """

    def __init__(self, slots: int, queue: int, wait: float) -> None:
        if slots < 1:
            raise ValueError(f"slots must be at least 1, not {slots}")
        if queue < 0:
            raise ValueError(f"queue must not be negative, but is {queue}")
        if not wait >= 0:
            raise ValueError(f"wait must not be negative, but is {wait}")
        self._slots = slots
        self._queue = queue
        self._wait = wait
        self._mutex = Mutex()
        self._closed = False
        self._running = 0
        self._jobs: dict[Hashable, Job] = {}
        self._callers: dict[Hashable, Job] = {}
        self._waiting: OrderedDict[Job, None] = OrderedDict()
        self._tickets = 0
        self._idle: list[_Worker] = []
        self._threads = 0
        self._count_started = 0
        self._count_joined = 0
        self._count_refused_busy = 0
        self._count_refused_caller = 0

    def do(
        self,
        key: Hashable,
        caller: Hashable,
        fn: Callable[[Job], T] | None,
        *,
        timeout: float | None = None,
    ) -> T:
        """Join the job for `key`, or start `fn(job)` as one, and return its result.

        Args:
            key: What identical requests have in common.
            caller: Who asks.
            fn: The work; ``None`` to join only.
            timeout: Seconds to wait at most, in the queue and for the result.

        Raises:
            TimeoutError: The time is up; a job that runs goes on.
            PoolBusy, CallerBusy, PoolClosed: The job was refused.
            JobCrashed: `fn` ended with something other than an `Exception`.
            TypeError: `fn` cannot be called, or is a coroutine function, or
                there is no job to join; `key` or `caller` cannot be hashed.
            RuntimeError: The job asks for its own key.
            Exception: What `fn` raised.
        """
        deadline = _entry_deadline(timeout)
        with self.enter(key, caller, fn) as ticket:
            return ticket.result(_remaining(deadline))

    async def ado(
        self,
        key: Hashable,
        caller: Hashable,
        fn: Callable[[Job], T] | None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as `do`
    ) -> T:
        """Like `do`, for async callers; `fn` runs in a thread. Cancelling it leaves the job."""
        deadline = _entry_deadline(timeout)
        with self.enter(key, caller, fn) as ticket:
            return await ticket.aresult(_remaining(deadline))

    def enter(self, key: Hashable, caller: Hashable, fn: Callable[[Job], T] | None) -> Ticket[T]:
        """Join the job for `key`, or start `fn(job)` as one. Does not wait.

        Raises:
            The same as `do`, but for what comes of waiting and of `fn`.
            Nothing is reserved then.
        """
        _check_callable(fn)
        _check_hashable(key, caller)
        with self._mutex:
            self._expire(time.monotonic())
            job = self._jobs.get(key)
            if job is not None:
                return self._join(job)
            return self._start(key, caller, fn)

    def close(self) -> None:
        """Take no new jobs: they, and the queued ones, get `PoolClosed`. Running ones go on."""
        with self._mutex:
            self._closed = True
            while self._waiting:
                self._drop(next(iter(self._waiting)), PoolClosed("the pool has been closed"))

    @property
    def running(self) -> int:
        """Jobs that hold a slot."""
        with self._mutex:
            return self._running

    @property
    def queued(self) -> int:
        """Jobs that wait for a slot."""
        with self._mutex:
            self._expire(time.monotonic())
            return len(self._waiting)

    def waiting(self, key: Hashable) -> int:
        """Return how many tickets have joined the job for `key`; its starter is not counted."""
        with self._mutex:
            self._expire(time.monotonic())
            job = self._jobs.get(key)
            return 0 if job is None else sum(not ticket.started for ticket in job._tickets)

    def stats(self) -> PoolStats:
        """Return the pool's state at this instant."""
        with self._mutex:
            self._expire(time.monotonic())
            return PoolStats(
                slots=self._slots,
                queue=self._queue,
                wait=self._wait,
                running=self._running,
                queued=len(self._waiting),
                tickets=self._tickets,
                threads=self._threads,
                closed=self._closed,
                started=self._count_started,
                joined=self._count_joined,
                refused_busy=self._count_refused_busy,
                refused_caller=self._count_refused_caller,
            )

    def __repr__(self) -> str:
        stats = self.stats()
        return (
            f"<Pool running={stats.running}/{stats.slots} queued={stats.queued}/{stats.queue}"
            f"{' closed' if stats.closed else ''}>"
        )

    # What follows is called under the mutex.

    def _join(self, job: Job) -> Ticket[Any]:
        if current_job.get() is job:
            raise RuntimeError(f"the job for {job.key!r} would wait for itself")
        self._count_joined += 1
        return self._ticket(job, started=False)

    def _start(self, key: Hashable, caller: Hashable, fn: Callable[[Job], T] | None) -> Ticket[T]:
        if fn is None:
            raise TypeError(f"there is no job for {key!r} to join, and fn is None")
        if self._closed:
            raise PoolClosed("the pool has been closed")
        if caller in self._callers:
            self._count_refused_caller += 1
            raise CallerBusy("this caller already has a job in flight")
        # A free slot is never left while a job waits, so a newcomer overtakes nobody.
        free = self._running < self._slots
        if not free and (len(self._waiting) >= self._queue or self._wait == 0):
            self._count_refused_busy += 1
            raise PoolBusy("all slots are taken, and the queue is full")
        job = Job(self, key, caller, fn)
        self._jobs[key] = self._callers[caller] = job
        ticket: Ticket[T] = self._ticket(job, started=True)
        if free:
            self._running += 1
            self._grant(job)
            self._assign(job)
        else:
            job._expires = time.monotonic() + self._wait
            self._waiting[job] = None
        return ticket

    def _ticket(self, job: Job, started: bool) -> Ticket[Any]:
        ticket: Ticket[Any] = Ticket(self, job, started)
        job._tickets.add(ticket)
        self._tickets += 1
        return ticket

    def _grant(self, job: Job) -> None:
        job._running = True
        job._expires = math.inf
        self._count_started += 1

    def _assign(self, job: Job) -> None:
        """Give a granted job a thread: an idle one, else a new one."""
        if self._idle:
            self._idle.pop().hand(job)
            return
        worker = self._new_worker(job)
        self._mutex.later(lambda: self._start_worker(worker, job))

    def _new_worker(self, job: Job) -> _Worker:
        self._threads += 1
        return _Worker(self, job)

    def _start_worker(self, worker: _Worker, job: Job) -> None:
        """Start a thread, outside the mutex; if there is none to be had, try for the next job."""
        while (error := worker.start()) is not None:
            with self._mutex:
                self._threads -= 1
                successor = self._end(job, Failed(error, crashed=True))
                if successor is None:
                    return
                # No thread is ever idle while a job waits, so it takes a new one, too.
                worker, job = self._new_worker(successor), successor

    def _end(self, job: Job, outcome: Returned | Failed) -> Job | None:
        """End a running job in one step; return the one that gets its slot."""
        self._settle(job, outcome)
        now = time.monotonic()
        # At the very instant of its timeout, a job still gets the slot.
        self._expire(math.nextafter(now, -math.inf))
        if not self._waiting:
            self._running -= 1
            return None
        successor, _ = self._waiting.popitem(last=False)
        self._grant(successor)
        return successor

    def _settle(self, job: Job, outcome: Returned | Failed) -> None:
        self._forget_key(job)
        del self._callers[job.caller]
        self._tickets -= len(job._tickets)
        job._outcome = outcome
        job._work.clear()
        job._tickets.clear()
        job._on_abandoned.clear()
        job._wake()

    def _forget_key(self, job: Job) -> None:
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]

    def _expire(self, now: float) -> None:
        """End the queued jobs whose clock has run out; all wait equally long, in order."""
        while self._waiting:
            job = next(iter(self._waiting))
            if job._expires > now:
                return
            self._count_refused_busy += 1
            self._drop(job, PoolBusy("no slot came free in time"))

    def _drop(self, job: Job, error: PoolError) -> None:
        del self._waiting[job]
        self._settle(job, Failed(error))

    def _leave(self, ticket: Ticket[Any]) -> None:
        job = ticket._job
        job._tickets.discard(ticket)
        self._tickets -= 1
        if job._tickets:
            return
        if job._running:
            job._abandoned()
        else:
            self._drop(job, PoolClosed("nobody waits for this job any more"))


def _check_callable(fn: object) -> None:
    if fn is None:
        return
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    call = getattr(fn, "__call__", None)  # noqa: B004
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(call):
        raise TypeError("fn must be a plain function: a job runs in a thread, not in an event loop")


def _check_hashable(*values: object) -> None:
    for value in values:
        hash(value)


def _entry_deadline(timeout: float | None) -> float:
    if timeout is not None and timeout <= 0:
        raise TimeoutError("the time was up before the job was entered")
    return deadline_after(timeout)


def _remaining(deadline: float) -> float | None:
    return None if deadline == math.inf else deadline - time.monotonic()
