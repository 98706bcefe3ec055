"""Warns again and again, each time in other words."""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("scripted")


def act(page: int) -> str:
    for number in range(10_000):
        LOGGER.warning("warning %d", number)
    return f"text of page {page}"
