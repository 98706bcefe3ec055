"""Its launcher ends itself soon after it has forked its first child."""

from __future__ import annotations

import os
import signal

from tests.engines.scripted import ScriptedEngine

LIFE = 0.05


def _end_soon() -> None:
    if signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0):
        # Its signal ends a process without a handler.
        signal.setitimer(signal.ITIMER_REAL, LIFE)


os.register_at_fork(after_in_parent=_end_soon)

engine = ScriptedEngine()
