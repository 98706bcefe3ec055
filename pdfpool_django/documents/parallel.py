"""Work on several items at a time, its results in the items' order."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")


def in_order(
    workers: Sequence[Callable[[P], T]],
    items: Sequence[P],
    *,
    ahead: int,
    name: str,
    wait: bool = False,
) -> Iterator[T]:
    """Yield what the workers make of the items, in the order of the items.

    Each worker has a thread of its own while this is iterated, and takes the
    next item that none has taken: items that take longer than others then cost
    no more than their time. What a worker raises is raised in the place of its
    item, and ends the iteration; no item is begun after that, or once the
    iteration is left. The threads do not keep the interpreter from exiting.

    Args:
        workers: Called in their threads, each call in a copy of this context.
        items: What they are called with.
        ahead: Results, for each worker, that may wait for who iterates.
        name: The name of the threads.
        wait: Whether leaving waits for the items that have been begun; else
            they are done to their end in the background.
    """
    context = contextvars.copy_context()
    work: _Work[P, T] = _Work(items, ahead * len(workers))
    threads: list[threading.Thread] = []
    try:
        for worker in workers[: len(items)]:
            thread = threading.Thread(
                target=work.do, args=(worker, context), name=name, daemon=True
            )
            thread.start()
            threads.append(thread)
        yield from work.results()
        wait = True  # for threads that have nothing left to do
    finally:
        work.end()
        if wait:
            for thread in threads:
                thread.join()


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


class _Work(Generic[P, T]):
    """The items that are left, and the results that nobody has taken."""

    def __init__(self, items: Sequence[P], ahead: int) -> None:
        self._items = items
        self._ahead = ahead
        self._changed = threading.Condition()
        self._begun = 0
        self._given = 0
        self._done: dict[int, T | _Raised] = {}
        self._ended = False

    def do(self, worker: Callable[[P], T], context: contextvars.Context) -> None:
        """Do what no other worker has taken, until nothing is left."""
        while (place := self._take()) is not None:
            try:
                result: T | _Raised = context.copy().run(worker, self._items[place])
            except BaseException as error:  # noqa: BLE001 - the one who iterates raises it
                result = _Raised(error)
            self._put(place, result)

    def results(self) -> Iterator[T]:
        """Yield the results in order, as soon as each is there."""
        for place in range(len(self._items)):
            with self._changed:
                while place not in self._done:
                    self._changed.wait()
                result = self._done.pop(place)
                self._given += 1
                self._changed.notify_all()
            if isinstance(result, _Raised):
                raise result.error
            yield result

    def end(self) -> None:
        """Have no further item begun."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._idle() or self._begun < self._given + self._ahead)
            if self._idle():
                return None
            self._begun += 1
            return self._begun - 1

    def _idle(self) -> bool:
        return self._ended or self._begun == len(self._items)

    def _put(self, place: int, result: T | _Raised) -> None:
        with self._changed:
            self._done[place] = result
            self._ended = self._ended or isinstance(result, _Raised)
            self._changed.notify_all()
