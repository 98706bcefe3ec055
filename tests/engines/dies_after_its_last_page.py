"""A scripted engine whose child ends between its last page and the end of the answer."""

from __future__ import annotations

import os
from typing import Any

from tests.engines.scripted import ScriptedEngine, ScriptedSession


class DyingSession(ScriptedSession):
    """Ends once it has told of every page."""

    def _pages(self, **arguments: Any) -> Any:
        yield from super()._pages(**arguments)
        os._exit(0)


class DyingEngine(ScriptedEngine):
    """Ends every child early."""

    def session(self) -> DyingSession:
        return DyingSession(self)


engine = DyingEngine()
