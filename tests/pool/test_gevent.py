"""The rules under gevent, and what importing the pool does: each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60

needs_gevent = pytest.mark.skipif(
    importlib.util.find_spec("gevent") is None, reason="gevent is not installed"
)

UNDER_GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent, gevent.event, threading, time
from pdfpool_django.pool import *

LIMIT, LONG = 10, 1000

class Gate:
    def __init__(self, value=None, error=None):
        self.value, self.error, self.runs = value, error, 0
        self.started, self.released = threading.Event(), threading.Event()
    def __call__(self, job):
        self.runs += 1
        self.job = job
        self.started.set()
        assert self.released.wait(LIMIT)
        if self.error: raise self.error
        return self.value

def occupy(pool, name="busy", **options):
    gate = Gate(**options)
    gate.ticket = pool.enter(name, name, gate)
    assert gate.started.wait(LIMIT)
    return gate

def finish(gate):
    gate.released.set()
    with gevent.Timeout(LIMIT):
        while "ended" not in repr(gate.job): gevent.sleep(0)

def raised(call, *args, **options):
    try: call(*args, **options)
    except Exception as error: return type(error)
"""

RULES = {
    "jobs are greenlets": """
        assert type(threading.Lock()).__module__.startswith("gevent")
        pool = Pool(1, 0, 0)
        seen = pool.do("key", "caller", lambda job: gevent.getcurrent())
        assert isinstance(seen, gevent.Greenlet) and seen is not gevent.getcurrent()
    """,
    "sharing": """
        pool = Pool(1, 0, 0)
        gate = occupy(pool, "key", value="shared")
        greenlets = [gevent.spawn(pool.do, "key", n, None) for n in range(100)]
        gevent.sleep(0)
        assert pool.waiting("key") == 100
        finish(gate)
        gevent.joinall(greenlets, timeout=LIMIT)
        assert [g.value for g in greenlets] == ["shared"] * 100
        assert gate.runs == 1 and pool.running == 0
    """,
    "caller": """
        pool = Pool(2, 0, 0)
        gate = occupy(pool)
        assert raised(pool.do, "other", "busy", gate) is CallerBusy
        finish(gate)
    """,
    "queue": """
        pool = Pool(1, 2, LONG)
        gate, order = occupy(pool), []
        greenlets = [gevent.spawn(pool.do, n, n, lambda job: order.append(job.key)) for n in (1, 2)]
        gevent.sleep(0)
        assert (pool.running, pool.queued) == (1, 2)
        assert raised(pool.do, 3, 3, gate) is PoolBusy
        finish(gate)
        gevent.joinall(greenlets, timeout=LIMIT, raise_error=True)
        assert order == [1, 2] and (pool.running, pool.queued) == (0, 0)
    """,
    "wait": """
        pool = Pool(1, 1, 0.02)
        gate = occupy(pool)
        assert raised(pool.do, "key", "caller", Gate()) is PoolBusy
        finish(gate)
    """,
    "timeout": """
        pool = Pool(1, 0, 0)
        gate = occupy(pool, "key")
        assert raised(pool.do, "key", "joiner", None, timeout=0.02) is TimeoutError
        assert raised(pool.do, "key", "joiner", None, timeout=0) is TimeoutError
        assert pool.waiting("key") == 0
        finish(gate)
    """,
    "killing a greenlet leaves": """
        pool = Pool(1, 1, LONG)
        gate, unused = occupy(pool), Gate()
        waiting = gevent.spawn(pool.do, "key", "caller", unused)
        gevent.sleep(0)
        assert pool.queued == 1
        waiting.kill(timeout=LIMIT)
        assert pool.queued == 0
        finish(gate)
        assert unused.runs == 0 and not pool._mutex._inside
    """,
    "a greenlet's own timeout leaves": """
        pool = Pool(1, 0, 0)
        gate = occupy(pool, "key")
        with gevent.Timeout(0.02, False):
            pool.do("key", "joiner", None)
        assert pool.waiting("key") == 0
        finish(gate)
    """,
    "errors": """
        pool = Pool(1, 0, 0)
        assert raised(pool.do, "key", "caller", lambda job: 1 / 0) is ZeroDivisionError
        def crash(job): raise gevent.GreenletExit
        assert raised(pool.do, "key", "caller", crash) is JobCrashed
        assert pool.running == 0
    """,
    "events": """
        pool = Pool(1, 0, 0)
        gate = occupy(pool)
        gate.job.publish("early")
        reading = gevent.spawn(lambda: list(gate.ticket.events()))
        gevent.sleep(0)
        gate.job.publish("late")
        finish(gate)
        assert reading.get(timeout=LIMIT) == ["early", "late"]
    """,
    "abandoning": """
        pool, called = Pool(1, 0, 0), []
        gate = occupy(pool)
        gate.job.when_abandoned(lambda: called.append(gate.job.give_up()))
        gate.ticket.leave()
        assert called == [True]
        finish(gate)
    """,
    "closing": """
        pool = Pool(1, 1, LONG)
        gate = occupy(pool)
        waiting = gevent.spawn(raised, pool.do, "key", "caller", Gate())
        gevent.sleep(0)
        pool.close()
        assert waiting.get(timeout=LIMIT) is PoolClosed
        finish(gate)
    """,
    "idle greenlets end": """
        pool = Pool(2, 0, 0)
        for n in range(10): assert pool.do(n, n, lambda job: job.key) == n
        assert pool.stats().threads == 1
        for thread in threading.enumerate():
            if thread.name.startswith("pdfpool-job"):
                thread.join(LIMIT)
                assert not thread.is_alive()
        assert pool.stats().threads == 0
    """,
    "many greenlets leave nothing": """
        import random
        pool = Pool(2, 4, 0.01)
        def operate(seed):
            dice = random.Random(seed)
            for _ in range(20):
                raised(pool.do, dice.randrange(9), dice.randrange(20),
                       lambda job: gevent.sleep(0), timeout=dice.choice((0.001, LIMIT)))
        gevent.joinall([gevent.spawn(operate, n) for n in range(100)], timeout=50, raise_error=True)
        with gevent.Timeout(LIMIT):
            while pool.running: gevent.sleep(0)
        stats = pool.stats()
        assert (stats.running, stats.queued, stats.tickets) == (0, 0, 0)
        assert stats.started > 0
    """,
}


def _run(script: str) -> None:
    """Run a script in a fresh interpreter that takes every warning for an error."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", script]
    done = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_gevent
@pytest.mark.parametrize("rule", RULES)
def test_the_rules_hold_under_gevent(rule):
    _run(UNDER_GEVENT + textwrap.dedent(RULES[rule]))


IMPORTING = """
import sys, threading
import asyncio, contextlib, contextvars, copy, functools, inspect, logging, math, time

before = threading.active_count()
made = []

def watched(name, make):
    def call(*args, **options):
        made.append(name)
        return make(*args, **options)
    return call

names = ["Lock", "RLock", "Condition", "Event", "Semaphore", "Thread", "local"]
for name in names:
    setattr(threading, name, watched(name, getattr(threading, name)))

import pdfpool_django.pool

assert made == [], made
assert threading.active_count() == before
for module in ("pool", "tickets", "outcomes", "mutex"):
    held = vars(sys.modules[f"pdfpool_django.{module}"])
    assert not set(names) & set(held), set(names) & set(held)
assert "django" not in sys.modules
"""


def test_importing_makes_no_lock_and_starts_no_thread():
    _run(IMPORTING)


def test_a_pool_that_was_made_has_started_no_thread():
    _run(
        "import threading; from pdfpool_django.pool import Pool; Pool(9, 9, 9)\n"
        "assert threading.active_count() == 1"
    )
