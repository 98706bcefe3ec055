"""Keeps 60 MiB for every page that it reads."""

from __future__ import annotations

HOARD = []


def act(page: int) -> str:
    HOARD.append(bytearray(60 * 1024 * 1024))
    return f"text of page {page}"
