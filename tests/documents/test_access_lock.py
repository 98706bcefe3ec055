"""The shared and exclusive lock: who comes in, in which order, and what an interruption leaves."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pdfpool_django.access import Access
from tests.sandbox.helpers import LIMIT, eventually


class Visitor:
    """A thread that comes in, stays until it is told to go, and leaves."""

    def __init__(self, access: Access, exclusive: bool) -> None:
        self.inside = threading.Event()
        self.go = threading.Event()
        self._way = access.exclusive if exclusive else access.shared
        self._access = access
        self._waiting_before = len(access._waiters)
        self.thread = threading.Thread(target=self._visit, daemon=True)
        self.thread.start()

    def _visit(self) -> None:
        with self._way():
            self.inside.set()
            assert self.go.wait(LIMIT)

    def await_queued(self) -> None:
        eventually(lambda: len(self._access._waiters) > self._waiting_before, "one more waiter")
        assert not self.inside.is_set()

    def await_inside(self) -> None:
        assert self.inside.wait(LIMIT)

    def leave(self) -> None:
        self.go.set()
        self.thread.join(LIMIT)
        assert not self.thread.is_alive()


@pytest.fixture
def access() -> Iterator[Access]:
    access = Access()
    yield access
    assert repr(access) == "<Access shared by 0, 0 waiting>"


def queued(access: Access, exclusive: bool) -> Visitor:
    visitor = Visitor(access, exclusive)
    visitor.await_queued()
    return visitor


def inside(access: Access, exclusive: bool) -> Visitor:
    visitor = Visitor(access, exclusive)
    visitor.await_inside()
    return visitor


def test_many_may_share(access: Access) -> None:
    visitors = [inside(access, False) for _ in range(5)]
    assert "shared by 5" in repr(access)
    for visitor in visitors:
        visitor.leave()


@pytest.mark.parametrize("second", [False, True])
def test_who_has_it_alone_has_it_alone(access: Access, second: bool) -> None:
    first = inside(access, True)
    assert "exclusive" in repr(access)
    waiting = queued(access, second)
    first.leave()
    waiting.await_inside()
    waiting.leave()


def test_who_wants_it_alone_waits_for_everybody(access: Access) -> None:
    readers = [inside(access, False) for _ in range(3)]
    alone = queued(access, True)
    for reader in readers:
        assert not alone.inside.is_set()
        reader.leave()
    alone.await_inside()
    alone.leave()


def test_a_waiting_exclusive_one_is_not_overtaken_by_new_readers(access: Access) -> None:
    reader = inside(access, False)
    alone = queued(access, True)
    late = [queued(access, False) for _ in range(3)]
    reader.leave()
    alone.await_inside()
    assert not any(each.inside.is_set() for each in late)
    alone.leave()
    for each in late:
        each.await_inside()
    for each in late:
        each.leave()


def test_everybody_comes_in_by_the_order_of_asking(access: Access) -> None:
    first = inside(access, True)
    kinds = [True, False, False, True, True, False]
    line = [queued(access, exclusive) for exclusive in kinds]
    first.leave()
    for group in (line[:1], line[1:3], line[3:4], line[4:5], line[5:]):
        for visitor in group:
            visitor.await_inside()
        assert [each for each in line if each.inside.is_set() and not each.go.is_set()] == group
        for visitor in group:
            visitor.leave()


@pytest.mark.parametrize("way", ["shared", "exclusive"])
def test_who_waits_too_long_leaves_no_trace(access: Access, way: str) -> None:
    holder = inside(access, True)
    with pytest.raises(TimeoutError), getattr(access, way)(timeout=0.01):
        pytest.fail("it came in")
    assert repr(access) == "<Access exclusive, 0 waiting>"
    holder.leave()


def test_who_gives_up_lets_in_those_whom_it_stood_before(access: Access) -> None:
    reader = inside(access, False)
    come: list[Visitor] = []

    def ask_behind() -> None:
        eventually(lambda: access._waiters, "the exclusive one in the queue")
        come.append(queued(access, False))

    behind = threading.Thread(target=ask_behind)
    behind.start()
    with pytest.raises(TimeoutError), access.exclusive(timeout=0.5):
        pytest.fail("it came in")
    behind.join(LIMIT)
    come[0].await_inside()
    come[0].leave()
    reader.leave()


def test_no_time_is_enough_where_nobody_is_inside(access: Access) -> None:
    with access.exclusive(timeout=0):
        pass
    with access.shared(timeout=0), access.shared(timeout=0):
        pass


@pytest.mark.parametrize("way", ["shared", "exclusive"])
def test_a_block_that_fails_gives_it_back(access: Access, way: str) -> None:
    with pytest.raises(ZeroDivisionError), getattr(access, way)():
        raise ZeroDivisionError


class Interrupted(BaseException):
    """What a signal's handler raises in the middle of whatever its thread does."""


class Interrupting(threading.Event):
    """An event whose waiter is interrupted, perhaps in the instant in which it is set."""

    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__()
        self._before = before

    def wait(self, timeout: float | None = None) -> Any:
        self._before()
        raise Interrupted


@pytest.mark.parametrize("way", ["shared", "exclusive"])
@pytest.mark.parametrize("admitted", [False, True])
def test_an_interrupted_waiter_leaves_no_trace(
    access: Access, monkeypatch: pytest.MonkeyPatch, way: str, admitted: bool
) -> None:
    holder = inside(access, True)
    behind: list[Visitor] = []

    def before() -> None:
        monkeypatch.undo()
        behind.append(queued(access, True))
        if admitted:
            holder.leave()

    monkeypatch.setattr(threading, "Event", lambda: Interrupting(before))
    with pytest.raises(Interrupted), getattr(access, way)():
        pytest.fail("it came in")
    if not admitted:
        holder.leave()
    behind[0].await_inside()
    behind[0].leave()


def test_under_load_it_is_never_held_both_ways(access: Access) -> None:
    counts = {"shared": 0, "exclusive": 0, "timeouts": 0}
    broken: list[tuple[int, int]] = []
    guard = threading.Lock()

    @contextlib.contextmanager
    def counted(way: str) -> Iterator[None]:
        with guard:
            counts[way] += 1
            if counts["exclusive"] > 1 or (counts["exclusive"] and counts["shared"]):
                broken.append((counts["shared"], counts["exclusive"]))
        yield
        with guard:
            counts[way] -= 1

    def visit(seed: int) -> None:
        choices = random.Random(seed)
        for _ in range(300):
            way = "exclusive" if choices.random() < 0.2 else "shared"
            timeout = choices.choice([None, 0, 0.0005])
            try:
                with getattr(access, way)(timeout), counted(way):
                    pass
            except TimeoutError:
                with guard:
                    counts["timeouts"] += 1

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert broken == []
