"""The pages of one document read by several sessions at once, and given in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from pdfpool_django.documents.session import Session
from pdfpool_django.model import Page

AHEAD = 32
"""Pages that a session may be ahead of the one that is to be given next."""


def pages_in_parallel(sessions: Sequence[Session], ranges: Sequence[range]) -> Iterator[Page]:
    """Yield the pages of the ranges, in order, as `Session.pages` does.

    Each session takes the next page that none has taken: pages that take
    longer than others then cost no more than their time. The sessions share a
    budget, and each has a thread of its own while this is iterated.

    Raises:
        Stopped: The sessions were stopped.
    """
    numbers = [number for part in ranges for number in part]
    work = _Work(numbers, AHEAD * len(sessions))
    threads = [
        threading.Thread(target=work.do, args=(session,), name="pdfpool-page", daemon=True)
        for session in sessions
    ]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        yield from work.pages()
    finally:
        work.end()
        for thread in started:
            thread.join()


class _Work:
    """The page numbers that are left, and the pages that have been read."""

    def __init__(self, numbers: Sequence[int], ahead: int) -> None:
        self._numbers = numbers
        self._ahead = ahead
        self._changed = threading.Condition()
        self._taken = 0
        self._given = 0
        self._read: dict[int, Page] = {}
        self._fault: BaseException | None = None
        self._ended = False

    def do(self, session: Session) -> None:
        """Read what no other session has taken, until nothing is left."""
        try:
            while (place := self._take()) is not None:
                number = self._numbers[place]
                (page,) = session.pages([range(number, number + 1)])
                self._put(place, page)
        except BaseException as fault:  # noqa: BLE001 - the one who iterates raises it
            with self._changed:
                self._fault = self._fault or fault
                self._changed.notify_all()

    def pages(self) -> Iterator[Page]:
        """Yield the pages in order, as soon as each is there."""
        for place in range(len(self._numbers)):
            with self._changed:
                while place not in self._read:
                    if self._fault is not None:
                        raise self._fault
                    self._changed.wait()
                page = self._read.pop(place)
                self._given = place + 1
                self._changed.notify_all()
            yield page

    def end(self) -> None:
        """Have no further page read."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._idle() or self._taken < self._given + self._ahead)
            if self._idle():
                return None
            self._taken += 1
            return self._taken - 1

    def _idle(self) -> bool:
        return self._ended or self._fault is not None or self._taken == len(self._numbers)

    def _put(self, place: int, page: Page) -> None:
        with self._changed:
            self._read[place] = page
            self._changed.notify_all()
