"""The process-wide backend: built on first use, one per process, forgotten after a fork."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from pdfpool_django import conf, sources
from pdfpool_django.backends.base import Backend, BackendState
from pdfpool_django.documents import Document
from pdfpool_django.model import OpenRequest
from pdfpool_django.sandbox import descriptors
from pdfpool_django.sandbox.platforms import after_fork
from pdfpool_django.sources import Source

_backends: dict[int, Backend] = {}
_substitutes: list[Backend] = []


def backend() -> Backend:
    """Return this process's backend; making it starts neither a thread nor a process.

    Raises:
        ImproperlyConfigured: The settings are wrong.
    """
    if _substitutes:
        return _substitutes[-1]
    pid = os.getpid()
    found = _backends.get(pid)
    if found is None:
        config = conf.load()
        made = import_string(config.backend)(config.backend_config)
        # Two threads may both have made one, which costs nothing; one of them is kept.
        found = _backends.setdefault(pid, made)
    return found


@contextlib.contextmanager
def using(substitute: Backend) -> Iterator[None]:
    """Have every request of this process run by another backend, for the length of the block.

    For tests. This process's own backend is left as it is; changed settings
    do not end the other.
    """
    _substitutes.append(substitute)
    try:
        yield
    finally:
        _substitutes.remove(substitute)


def document(
    source: Source,
    *,
    caller: str,
    password: str | None = None,
    workers: int = 2,
    timeout: float | None = None,
) -> Document:
    """Open a document that holds a slot of the pool, and its caller, until it is closed.

    It is closed when ``DEADLINE`` is over, whatever it does. For a handle
    without a slot there is `Document.open`.

    Args:
        source: The document, as for `extract`.
        caller: Who asks.
        password: The document's password, where it has one.
        workers: Reads at a time; each is a process of up to ``MEMORY``.
        timeout: Seconds to wait for a slot at most.

    Raises:
        PdfPoolError: The request was refused, or the document cannot be opened.
        TimeoutError: The time is up.
        OSError: The source cannot be read.
    """
    request = OpenRequest(caller, descriptors.name_of(source), password, workers)
    return backend().open_document(request, sources.describe(source), timeout)


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


after_fork(_forget)
setting_changed.connect(_on_setting_changed)
