"""Takes memory as a C library does, which aborts when there is none."""

from __future__ import annotations

import ctypes

LIBC = ctypes.CDLL(None)
LIBC.calloc.restype = ctypes.c_void_p


def act(page: int) -> str:
    while LIBC.calloc(1, ctypes.c_size_t(4 * 1024 * 1024)):
        pass
    LIBC.abort()
    return "not reached"
