"""Exits with status 0 and no answer."""

from __future__ import annotations

import os


def act(page: int) -> str:
    os._exit(0)
