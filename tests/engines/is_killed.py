"""Ends by a SIGKILL that nobody here has sent: the kernel is out of memory."""

from __future__ import annotations

import signal


def act(page: int) -> str:
    signal.raise_signal(signal.SIGKILL)
    return "not reached"
