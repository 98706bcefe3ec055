"""Leaves a process behind that sleeps; the text is its number."""

from __future__ import annotations

import os
import signal


def act(page: int) -> str:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    return str(pid)
