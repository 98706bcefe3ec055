"""Raises an exception that cannot be turned into text."""

from __future__ import annotations


class WithoutTextError(Exception):
    """Fails again when it is shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text here")


def act(page: int) -> str:
    raise WithoutTextError
