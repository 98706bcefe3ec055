"""Waits at each of its pages until somebody sends SIGUSR1; one that comes early is kept for it."""

from __future__ import annotations

import signal
import time
from typing import NoReturn

SIGNALS = {signal.SIGUSR1}

# Imported in the launcher, whose children so have it blocked before it can come.
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


class _Released(Exception):
    """The signal has come."""


def _release(number: int, frame: object) -> NoReturn:
    raise _Released


def act(page: int) -> str:
    signal.signal(signal.SIGUSR1, _release)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        while True:
            # Not long: a signal that comes right before it would only be seen after it.
            time.sleep(0.01)
    except _Released:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        return f"text of page {page}, after the signal"
