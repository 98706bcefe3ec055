"""Gives a mebibyte of text."""

from __future__ import annotations


def act(page: int) -> str:
    return "x" * (1024 * 1024)
