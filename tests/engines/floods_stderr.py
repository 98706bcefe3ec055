"""Writes much more to standard error than a pipe holds, then reads the page."""

from __future__ import annotations

import os


def act(page: int) -> str:
    for _ in range(256):
        os.write(2, b"x" * 16383 + b"\n")
    return f"text of page {page}"
