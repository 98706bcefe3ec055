"""Raises what ends a program."""

from __future__ import annotations


def act(page: int) -> str:
    raise SystemExit(0)
