"""A fair lock with two ways in: shared, by many at a time, and exclusive, by one alone."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator


class _Waiter:
    """One thread in the queue."""

    def __init__(self, exclusive: bool) -> None:
        self.exclusive = exclusive
        self.admitted = threading.Event()


class Access:
    """Admits in the order of asking: nobody overtakes a waiter, readers no waiting exclusive one.

    It is not reentrant: who holds it, in either way, and asks again waits for
    itself as soon as an exclusive waiter stands between.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sharing = 0
        self._exclusive = False
        self._waiters: deque[_Waiter] = deque()

    @contextlib.contextmanager
    def shared(self, timeout: float | None = None) -> Iterator[None]:
        """Hold it together with others who share it, for the length of the block.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: The time is up; nothing is held.
        """
        with self._admitted(False, timeout):
            yield

    @contextlib.contextmanager
    def exclusive(self, timeout: float | None = None) -> Iterator[None]:
        """Hold it alone, for the length of the block; see `shared`."""
        with self._admitted(True, timeout):
            yield

    @contextlib.contextmanager
    def _admitted(self, exclusive: bool, timeout: float | None) -> Iterator[None]:
        waiter = _Waiter(exclusive)
        try:
            # Within: an interruption may come at any point after the waiter is in the queue.
            with self._lock:
                self._waiters.append(waiter)
                self._admit()
            if not waiter.admitted.wait(timeout):
                raise TimeoutError("the document is still in use by others")
            yield
        finally:
            self._leave(waiter)

    def _leave(self, waiter: _Waiter) -> None:
        """Give back what the waiter holds: a place in the queue, or, since just now, the lock."""
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif waiter.admitted.is_set() and waiter.exclusive:
                self._exclusive = False
            elif waiter.admitted.is_set():
                self._sharing -= 1
            self._admit()

    def _admit(self) -> None:
        """Let in from the head of the queue whoever may come in; called under the lock."""
        while self._waiters:
            head = self._waiters[0]
            if self._exclusive or (head.exclusive and self._sharing):
                return
            self._waiters.popleft()
            if head.exclusive:
                self._exclusive = True
            else:
                self._sharing += 1
            head.admitted.set()

    def __repr__(self) -> str:
        holder = "exclusive" if self._exclusive else f"shared by {self._sharing}"
        return f"<Access {holder}, {len(self._waiters)} waiting>"
