"""Writes what is no frame where answers go."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    os.write(SOCKET_FD, b"\x00\x00\x00\x07\x00\x00\x00\x00garbage")
    time.sleep(60)
    return "not reached"
