"""The sandboxes that document handles share: one for each set of limits, made on first use."""

from __future__ import annotations

import sys
import threading

from pdfpool_django.model import Limits
from pdfpool_django.sandbox import platforms
from pdfpool_django.sandbox.host import Sandbox, SandboxConfig

CPU_SECONDS = 3600.0
"""Processor time of one child of a handle: it lives for long, and each call has its own limit."""

PYPDF = "pdfpool_django.engines.pypdf"

_STANDBYS = 1

_lock = threading.Lock()
_sandboxes: dict[SandboxConfig, Sandbox] = {}


def for_handles(limits: Limits, engine: str = PYPDF, python: str = sys.executable) -> Sandbox:
    """Return this process's sandbox for handles with these limits.

    Another than the pool's: a handle's children live for long, decode
    pictures, and must not be counted among the pool's.
    """
    config = SandboxConfig(
        engine=engine,
        python=python,
        memory=limits.memory,
        cpu=CPU_SECONDS,
        standbys=_STANDBYS,
        images=True,
    )
    with _lock:
        if config not in _sandboxes:
            _sandboxes[config] = Sandbox(config)
        return _sandboxes[config]


def _forget() -> None:
    """In a forked process: its parent's launchers are not its own, and the lock may be held."""
    global _lock
    _lock = threading.Lock()
    _sandboxes.clear()


platforms.after_fork(_forget)
