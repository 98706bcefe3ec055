"""Hosts for the checks: whatever the tests run on, they start from one where nothing is wrong."""

from __future__ import annotations

import pytest

from pdfpool_django.model import MIB
from pdfpool_django.sandbox import memory, platforms, seccomp

GIB = 1024 * MIB


def be_ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have plenty of memory, every limit, and one worker that is not process 1."""
    monkeypatch.setattr(memory, "available", lambda: memory.Memory(64 * GIB, "the host's memory"))
    monkeypatch.setattr(seccomp, "why_unavailable", lambda: None)
    monkeypatch.setattr(platforms, "obstacle", lambda: None)
    monkeypatch.delenv("WEB_CONCURRENCY", raising=False)
    monkeypatch.delenv("GUNICORN_CMD_ARGS", raising=False)
