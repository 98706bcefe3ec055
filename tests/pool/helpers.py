"""What the pool's tests share: gated jobs, calls in threads, a clock and locks under control."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pdfpool_django import pool as pool_module
from pdfpool_django import tickets as tickets_module
from pdfpool_django.pool import Job, Pool

LIMIT = 10
"""Seconds after which a test fails instead of waiting on."""

POINTS = ["wanting", "having", "releasing", "released"]
"""The moments at which a `HookedLock` can call."""

LONG = 1000.0
"""Seconds that no test waits for."""


class Gate:
    """A job's work that tells when it has started, and ends when it is released."""

    def __init__(
        self,
        value: Any = None,
        error: BaseException | None = None,
        first: Callable[[Job], object] | None = None,
    ) -> None:
        self.value = value
        self.error = error
        self.first = first
        self.runs = 0
        self.job: Job | None = None
        self.started = threading.Event()
        self.released = threading.Event()

    def __call__(self, job: Job) -> Any:
        self.runs += 1
        self.job = job
        if self.first is not None:
            self.first(job)
        self.started.set()
        assert self.released.wait(LIMIT), "nobody released the job"
        if self.error is not None:
            raise self.error
        return self.value

    def await_start(self) -> Gate:
        assert self.started.wait(LIMIT), "the job did not start"
        return self

    def release(self) -> None:
        self.released.set()


class Call:
    """A call in a thread of its own."""

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self._value: Any = None
        self._error: BaseException | None = None
        self._function = function
        self._thread = threading.Thread(target=self._run, args=(args, kwargs), daemon=True)
        self._thread.start()

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            self._value = self._function(*args, **kwargs)
        except BaseException as error:
            self._error = error

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        error = self.error()
        if error is not None:
            raise error
        return self._value

    def error(self) -> BaseException | None:
        self._thread.join(LIMIT)
        assert self.ended(), "the call did not come back"
        return self._error


class Clock:
    """Stands in for the module `time` while in use, and moves only when told to."""

    def __init__(self) -> None:
        # Whole seconds, so that sums are exact.
        self.now = float(math.ceil(time.monotonic()))

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def __enter__(self) -> Clock:
        self._before = set(pool_threads())
        pool_module.time = tickets_module.time = self  # type: ignore[assignment]
        return self

    def __exit__(self, *exc_info: object) -> None:
        # A thread that idles until some instant of this clock would wait for it on the real one.
        try:
            for thread in set(pool_threads()) - self._before:
                eventually(lambda thread=thread: self._ended_when_idle(thread), "a thread's end")
        finally:
            pool_module.time = tickets_module.time = time  # type: ignore[assignment]

    def _ended_when_idle(self, thread: threading.Thread) -> bool:
        self.advance(2 * pool_module.IDLE_SECONDS)
        target = getattr(thread, "_target", None)
        if target is not None:
            worker = target.__self__
            with worker._pool._mutex:
                worker._handed.notify()
        return not thread.is_alive()


class HookedLock:
    """A lock that calls a hook once, at one point of its next acquiring or releasing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hooks: dict[str, Callable[[], object]] = {}
        self.fired: list[str] = []

    def arm(self, point: str, hook: Callable[[], object]) -> None:
        self._hooks[point] = hook

    def acquire(self, *args: Any) -> bool:
        self._fire("wanting")
        acquired = self._lock.acquire(*args)
        self._fire("having")
        return acquired

    def release(self) -> None:
        self._fire("releasing")
        self._lock.release()
        self._fire("released")

    def _fire(self, point: str) -> None:
        hook = self._hooks.pop(point, None)
        if hook is not None:
            self.fired.append(point)
            hook()


class Doomed:
    """Garbage that only the collector finds, and that calls back when it does."""

    def __init__(self, last_words: Callable[[], object]) -> None:
        self._last_words = last_words
        self._cycle = self

    def __del__(self) -> None:
        self._last_words()


def collect_doomed(last_words: Callable[[], object]) -> None:
    """Have the collector run a finalizer that calls `last_words`, here and now."""
    Doomed(last_words)
    gc.collect()


def hook_lock(pool: Pool) -> HookedLock:
    """Put a hooked lock under the pool; nothing may be in flight."""
    pool._mutex._lock = lock = HookedLock()
    return lock


def eventually(condition: Callable[[], object], what: str = "the condition") -> None:
    """Return as soon as `condition` holds."""
    until = time.monotonic() + LIMIT
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until, f"{what} did not come true"
        pause.wait(0.0005)


async def soon(condition: Callable[[], object], what: str = "the condition") -> None:
    """Like `eventually`, while the event loop goes on."""
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110 - nothing tells when another thread is there
            await asyncio.sleep(0.0005)


def occupy(pool: Pool, name: str = "busy", **gate_options: Any) -> Gate:
    """Run a gated job under `name` as key and caller."""
    gate = Gate(**gate_options)
    gate.ticket = pool.enter(name, name, gate)  # type: ignore[attr-defined]
    return gate.await_start()


def finish(*gates: Gate) -> None:
    """Release jobs that run or are about to, and return when they have ended."""
    for gate in gates:
        gate.release()
    for gate in gates:
        job = gate.await_start().job
        eventually(lambda job=job: "ended" in repr(job), "the job's end")


def pool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("pdfpool-job")]


def assert_idle(pool: Pool) -> None:
    """Nothing is in flight, and nothing is held."""
    stats = pool.stats()
    assert (stats.running, stats.queued, stats.tickets) == (0, 0, 0)
    assert (pool.running, pool.queued) == (0, 0)
    assert not pool._jobs
    assert not pool._callers


@contextmanager
def no_thread_starts(monkeypatch: Any, times: float = math.inf) -> Iterator[list[str]]:
    """Let the next `times` threads of pools fail to start; yield the names of those."""
    failed: list[str] = []
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("pdfpool-job") and len(failed) < times:
            failed.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        yield failed
