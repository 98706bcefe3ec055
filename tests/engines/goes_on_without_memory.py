"""Catches running out of memory, and goes on."""

from __future__ import annotations


def act(page: int) -> str:
    hoard = []
    try:
        while True:
            hoard.append(bytearray(4 * 1024 * 1024))
    except MemoryError:
        hoard.clear()
    return "went on"
