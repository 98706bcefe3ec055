"""Gives text that other systems refuse."""

from __future__ import annotations


def act(page: int) -> str:
    return "a\x00b\ud800c\x1bd\r\ne\ud83d\ude00f"
