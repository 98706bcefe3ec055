"""Ends, and leaves a process behind that holds the socket open."""

from __future__ import annotations

import os
import signal


def act(page: int) -> str:
    if os.fork() == 0:
        signal.pause()
    os._exit(7)
