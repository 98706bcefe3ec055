"""Aborts, as native allocators do."""

from __future__ import annotations

import os


def act(page: int) -> str:
    os.abort()
