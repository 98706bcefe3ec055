"""A scripted engine whose children end before they are given anything."""

from __future__ import annotations

import os

from tests.engines.scripted import ScriptedEngine


class DyingEngine(ScriptedEngine):
    """Ends every child while it gets ready."""

    def rehearse(self) -> None:
        os._exit(1)


engine = DyingEngine()
