"""Takes memory as Python objects until there is none."""

from __future__ import annotations


def act(page: int) -> str:
    hoard = []
    while True:
        hoard.append(bytearray(4 * 1024 * 1024))
