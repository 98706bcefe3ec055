"""Wraps running out of memory in an error of its own, as libraries do."""

from __future__ import annotations


def act(page: int) -> str:
    try:
        bytearray(1 << 40)
    except MemoryError as error:
        raise ValueError("the stream cannot be read") from error
    return "not reached"
