"""How a job ended, kept so that each of its tickets can have it as its own."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn


class PoolError(Exception):
    """The pool did not run a job, or the job did not end as jobs do."""


class PoolBusy(PoolError):
    """The queue is full, or the job waited in it for longer than the pool's `wait`."""


class CallerBusy(PoolError):
    """The caller already has a job in flight for another key."""


class PoolClosed(PoolError):
    """The pool takes no new jobs, or was closed while this one was queued."""


class JobCrashed(PoolError):
    """The job ended with something other than an `Exception`, which is the ``__cause__``."""


@dataclass(slots=True)
class Returned:
    """`fn` returned."""

    value: Any


@dataclass(slots=True)
class Failed:
    """`fn` raised, or never ran."""

    error: BaseException
    crashed: bool = False
    """Whether the tickets get `JobCrashed`, with the error as its cause."""
    traceback: TracebackType | None = None

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Return the failure of a job whose `fn` raised `error`."""
        traceback = error.__traceback__
        # The first frame is the pool's own, which tells nobody anything.
        error.__traceback__ = traceback.tb_next if traceback else None
        return cls(error, not _is_ordinary(error), error.__traceback__)

    def throw(self) -> NoReturn:
        """Raise the error as this waiter's own, so that no waiter sees another's frames."""
        if self.crashed:
            raise JobCrashed(f"the job ended with {type(self.error).__name__}") from self.error
        own = _copied(self.error).with_traceback(self.traceback)
        try:
            raise own
        finally:
            # `raise` chains the exception that the caller is handling, if any.
            own.__context__ = None
            del own


def _is_ordinary(error: BaseException) -> bool:
    """Whether the error can be raised in its waiters' threads without changing its meaning."""
    return isinstance(error, Exception) and not isinstance(
        error, (StopIteration, StopAsyncIteration)
    )


def _copied(error: BaseException) -> BaseException:
    """Return a copy of the same type that says the same, else the error itself."""
    try:
        clone = copy.copy(error)
        if type(clone) is not type(error) or clone is error:
            return error
        clone.args = error.args
        clone.__cause__ = error.__cause__
        clone.__suppress_context__ = error.__suppress_context__
        if hasattr(error, "__notes__"):
            clone.__notes__ = list(error.__notes__)
    except Exception:  # noqa: BLE001 - a foreign class's own copying may raise anything
        return error
    return clone
