"""Gives something else than text."""

from __future__ import annotations


def act(page: int) -> str:
    return b"bytes"  # type: ignore[return-value]
