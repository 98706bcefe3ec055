"""The sessions of a document handle: each lent to one call at a time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pdfpool_django.documents.budget import Budget
from pdfpool_django.documents.session import Session
from pdfpool_django.errors import Closed, PdfPoolError
from pdfpool_django.model import Limits


@dataclass(slots=True, eq=False)
class _Reader:
    session: Session
    busy: float = 0.0
    """Seconds that its child has been in use for."""


class Readers:
    """Lends sessions; who finds none free waits for one.

    Args:
        sessions: The sessions; the last is lent first.
        worn: Seconds of use after which a child is replaced, as the kernel
            grants it a limited time.
    """

    def __init__(self, sessions: Iterable[Session], worn: float) -> None:
        self._worn = worn
        self._changed = threading.Condition()
        # The last one given back is lent first: as few children as do.
        self._free = [_Reader(session) for session in sessions]
        self._lent: list[_Reader] = []
        self._stopped = False

    @contextlib.contextmanager
    def one(self, limits: Limits) -> Iterator[Session]:
        """Lend a session for the length of the block, which may cost so much.

        Raises:
            Closed: The readers were stopped.
        """
        reader = self._take()
        started = time.monotonic()
        try:
            reader.session.budget = Budget(limits)  # whose time does not run while one waits
            yield reader.session
        except PdfPoolError:
            raise
        except BaseException:
            # Perhaps in the middle of an answer, which the next call would take for its own.
            reader.session.close()
            raise
        finally:
            reader.busy += time.monotonic() - started
            self._give_back(reader)

    @contextlib.contextmanager
    def joined_by(self, session: Session) -> Iterator[None]:
        """Have another session ended by `stop`, too, for the length of the block.

        Raises:
            Closed: The readers were stopped.
        """
        guest = _Reader(session)
        with self._changed:
            if self._stopped:
                raise Closed
            self._lent.append(guest)
        try:
            yield
        finally:
            with self._changed:
                self._lent.remove(guest)

    def replace(self, sessions: Iterable[Session]) -> None:
        """Have other sessions from now on. None may be lent."""
        self.close()
        with self._changed:
            self._free = [_Reader(session) for session in sessions]

    def stop(self) -> None:
        """End the children in the middle of whatever they do."""
        with self._changed:
            self._stopped = True
            lent = list(self._lent)
            self._changed.notify_all()
        for reader in lent:
            reader.session.stop()

    def close(self) -> None:
        """End the children of the sessions that are not lent."""
        for reader in self._free:
            reader.session.close()

    def forget(self) -> None:
        """End the children without taking a lock, for a finalizer."""
        for reader in self._free:
            reader.session.forget()

    def _take(self) -> _Reader:
        with self._changed:
            try:
                self._changed.wait_for(lambda: self._free or self._stopped)
            except BaseException:
                self._changed.notify()  # it may have been woken for a reader, which others await
                raise
            if self._stopped:
                raise Closed
            reader = self._free.pop()
            self._lent.append(reader)
            return reader

    def _give_back(self, reader: _Reader) -> None:
        if reader.busy > self._worn:
            reader.session.close()
            reader.busy = 0.0
        with self._changed:
            self._lent.remove(reader)
            self._free.append(reader)
            self._changed.notify()
