"""Maps memory until the kernel refuses, which Python tells as an OSError."""

from __future__ import annotations

import mmap


def act(page: int) -> str:
    hoard = []
    while True:
        hoard.append(mmap.mmap(-1, 4 * 1024 * 1024))
