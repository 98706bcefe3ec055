"""The process-wide backend: built on first use, one per process, forgotten after a fork."""

from __future__ import annotations

import os
from typing import Any

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from pdfpool_django import conf
from pdfpool_django.backends.base import Backend, BackendState

_backends: dict[int, Backend] = {}


def backend() -> Backend:
    """Return this process's backend; making it starts neither a thread nor a process.

    Raises:
        ImproperlyConfigured: The settings are wrong.
    """
    pid = os.getpid()
    found = _backends.get(pid)
    if found is None:
        config = conf.load()
        made = import_string(config.backend)(config.backend_config)
        # Two threads may both have made one, which costs nothing; one of them is kept.
        found = _backends.setdefault(pid, made)
    return found


def state() -> BackendState:
    """Return the backend's state at this instant."""
    return backend().state()


def probe() -> BackendState:
    """Return the backend's state, after it has tried again what has failed of late."""
    return backend().probe()


def close(grace: float = 0) -> None:
    """Refuse new requests, give running ones `grace` seconds, then end them.

    For the end of a process: a server's hook calls it. Whoever waits for an
    extraction that is ended gets `Unavailable`. A second time, nothing happens.
    """
    backend().close(grace)


def reset() -> None:
    """End the backend, and have the next request build one from the settings of then."""
    old = _backends.pop(os.getpid(), None)
    if old is not None:
        old.close()


def _forget() -> None:
    """In a forked process: its parent's backend is not its own."""
    _backends.clear()


def _on_setting_changed(*, setting: str, **_: Any) -> None:
    if setting == "PDFPOOL":
        reset()


os.register_at_fork(after_in_child=_forget)
setting_changed.connect(_on_setting_changed)
