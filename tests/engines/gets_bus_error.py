"""Ends by SIGBUS."""

from __future__ import annotations

import os
import signal


def act(page: int) -> str:
    os.kill(os.getpid(), signal.SIGBUS)
    return "not reached"
