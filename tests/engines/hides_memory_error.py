"""Raises something else while it handles running out of memory."""

from __future__ import annotations


def act(page: int) -> str:
    try:
        bytearray(1 << 40)
    except MemoryError:
        {}["missing"]
    return "not reached"
