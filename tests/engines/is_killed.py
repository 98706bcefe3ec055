"""Ends by a SIGKILL that nobody here has sent: the kernel is out of memory."""

from __future__ import annotations

import os
import signal


def act(page: int) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "not reached"
