"""Work on several items at a time: in order, each failure in its place, and left at any time."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from pdfpool_django.documents.parallel import in_order
from tests.sandbox.helpers import LIMIT, Call, eventually

NAME = "test-parallel"


def workers_alive() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == NAME]


def test_a_failure_is_raised_in_its_place_though_it_came_first() -> None:
    failed = threading.Event()

    def work(item: int) -> int:
        if item == 3:
            failed.set()
            raise KeyError(item)
        assert failed.wait(LIMIT)
        return item * 10

    results = in_order([work] * 3, range(1, 100), ahead=9, name=NAME)
    assert [next(results), next(results)] == [10, 20]
    with pytest.raises(KeyError):
        next(results)
    assert list(results) == []


def test_no_more_threads_than_items() -> None:
    threads = set()

    def work(item: int) -> None:
        threads.add(threading.current_thread())

    assert list(in_order([work] * 5, [1, 2], ahead=1, name=NAME)) == [None, None]
    assert len(threads) <= 2
    assert workers_alive() == []


def test_nothing_to_do_needs_no_thread() -> None:
    assert list(in_order([int] * 5, [], ahead=1, name=NAME)) == []


@pytest.mark.parametrize("wait", [False, True])
def test_leaving_waits_where_that_is_wanted(wait: bool) -> None:
    begun, gate = threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item == 2:
            begun.set()
            assert gate.wait(LIMIT)
        return item

    results = in_order([work] * 2, [1, 2, 3], ahead=1, name=NAME, wait=wait)
    assert next(results) == 1
    assert begun.wait(LIMIT)
    leaving = Call(results.close)
    if wait:
        eventually(lambda: len(workers_alive()) == 1, "one worker left")
        assert not leaving.done
    else:
        leaving.result()
        assert workers_alive() != []
    gate.set()
    leaving.result()
    eventually(lambda: workers_alive() == [], "no worker")


def test_an_interpreter_that_exits_does_not_wait() -> None:
    program = """
import threading
from pdfpool_django.documents.parallel import in_order
begun = threading.Event()
def work(item):
    begun.set()
    threading.Event().wait()
results = in_order([work], [1], ahead=1, name="forever")
threading.Thread(target=next, args=(results,), daemon=True).start()
begun.wait()
print("exits")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    assert done.stdout == "exits\n"
