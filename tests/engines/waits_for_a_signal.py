"""Waits at its page until somebody sends SIGUSR1."""

from __future__ import annotations

import signal

SIGNALS = {signal.SIGUSR1}

# Imported in the launcher, whose children so have it blocked before it can come.
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def act(page: int) -> str:
    signal.sigwait(SIGNALS)
    return f"text of page {page}, after the signal"
