"""The mutex by itself: who is inside, and what is done after the release."""

from __future__ import annotations

import contextlib
from collections import deque

import pytest

from pdfpool_django.mutex import Mutex
from tests.pool.helpers import POINTS, Call, HookedLock


def _mutex() -> tuple[Mutex, HookedLock]:
    mutex = Mutex()
    mutex._lock = lock = HookedLock()
    return mutex, lock


def test_inside_is_known_from_wanting_to_having_let_go():
    mutex, lock = _mutex()
    seen = []
    for point in POINTS:
        lock.arm(point, lambda point=point: seen.append((point, mutex.inside())))
    assert not mutex.inside()
    with mutex:
        assert mutex.inside()
        assert Call(mutex.inside).result() is False
    assert not mutex.inside()
    assert seen == [(point, True) for point in POINTS]


def test_later_is_after_the_release_and_in_order():
    mutex = Mutex()
    acts = []
    with mutex:
        for n in range(3):
            mutex.later(lambda n=n: acts.append((n, mutex._lock.locked(), mutex.inside())))
        assert acts == []
    assert acts == [(n, False, False) for n in range(3)]
    with mutex:
        pass
    assert len(acts) == 3


def test_what_is_done_later_may_take_the_lock_and_defer_again():
    mutex = Mutex()
    acts = []

    def first():
        with mutex:
            mutex.later(lambda: acts.append("second"))
        acts.append("first")

    with mutex:
        mutex.later(first)
    assert acts == ["second", "first"]


def test_what_is_deferred_comes_after_what_is_later():
    mutex = Mutex()
    acts = []
    with mutex:
        mutex.defer(lambda: acts.append("deferred"))
        mutex.defer(lambda: acts.append("deferred, too"))
        mutex.later(lambda: acts.append("later"))
    assert acts == ["later", "deferred", "deferred, too"]


def test_deferred_work_that_another_thread_takes_is_done_once():
    mutex, lock = _mutex()
    acts = []

    def another():
        with mutex:
            pass

    lock.arm("released", lambda: (mutex.defer(lambda: acts.append("once")), Call(another).result()))
    with mutex:
        pass
    assert acts == ["once"]


def test_deferred_work_may_be_taken_by_another_thread_at_the_last_moment():
    class TakenAfterTheLook(deque):
        looks = 0

        def __bool__(self):
            self.looks += 1
            return self.looks == 1

    mutex = Mutex()
    mutex._deferred = TakenAfterTheLook()
    with mutex:
        pass
    assert mutex._deferred.looks == 2


def test_a_lock_that_is_not_had_is_not_inside():
    mutex = Mutex()
    with mutex:
        assert Call(lambda: (mutex.acquire(blocking=False), mutex.inside())).result() == (
            False,
            False,
        )
        assert Call(mutex.acquire, True, 0.01).result() is False
    assert mutex.acquire(blocking=False) is True
    mutex.release()


def test_a_lock_whose_taking_is_interrupted_is_not_inside():
    mutex, lock = _mutex()

    def interrupt():
        raise KeyboardInterrupt

    acts = []
    lock.arm("wanting", lambda: (mutex.defer(lambda: acts.append("deferred")), interrupt()))
    with pytest.raises(KeyboardInterrupt), mutex:
        pass
    assert not mutex.inside()
    assert acts == ["deferred"]
    with mutex:
        assert mutex.inside()


def test_an_error_inside_lets_go_and_does_what_was_left_for_later():
    mutex = Mutex()
    acts = []
    with contextlib.suppress(KeyError), mutex:
        mutex.later(lambda: acts.append("later"))
        raise KeyError
    assert (acts, mutex._lock.locked(), mutex.inside()) == (["later"], False, False)
