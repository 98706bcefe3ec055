"""Hangs, and lets no signal end it that can be ignored."""

from __future__ import annotations

import signal
import time


def act(page: int) -> str:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(0.01)
