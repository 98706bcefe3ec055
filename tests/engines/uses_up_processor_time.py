"""Ends by SIGXCPU, as at the end of its processor time."""

from __future__ import annotations

import signal


def act(page: int) -> str:
    signal.raise_signal(signal.SIGXCPU)
    return "not reached"
