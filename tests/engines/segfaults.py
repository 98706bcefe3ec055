"""Reads address 0."""

from __future__ import annotations

import ctypes


def act(page: int) -> str:
    return ctypes.string_at(0).decode()
