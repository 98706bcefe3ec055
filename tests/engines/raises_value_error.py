"""Raises what a library raises for a page that it cannot parse."""

from __future__ import annotations


def act(page: int) -> str:
    raise ValueError("no such operator")
