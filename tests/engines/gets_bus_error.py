"""Ends by SIGBUS."""

from __future__ import annotations

import signal


def act(page: int) -> str:
    signal.raise_signal(signal.SIGBUS)
    return "not reached"
