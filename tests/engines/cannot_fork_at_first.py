"""A scripted engine whose launcher is refused its third child, once."""

from __future__ import annotations

import errno
import os

from tests.engines.scripted import ScriptedEngine

REFUSED = 3


class RefusedEngine(ScriptedEngine):
    """Lets one fork of its launcher fail."""

    def warm(self) -> None:
        super().warm()
        forks = iter(range(1, 1_000_000))
        fork = os.fork

        def sometimes() -> int:
            if next(forks) == REFUSED:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return fork()

        os.fork = sometimes


engine = RefusedEngine()
