"""Ends by SIGXCPU, as at the end of its processor time."""

from __future__ import annotations

import os
import signal


def act(page: int) -> str:
    os.kill(os.getpid(), signal.SIGXCPU)
    return "not reached"
