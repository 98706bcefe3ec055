"""Calls itself without end."""

from __future__ import annotations


def act(page: int) -> str:
    return act(page) + "."
