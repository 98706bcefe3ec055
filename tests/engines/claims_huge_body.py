"""Writes the beginning of a frame with a body of 4 GB."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    os.write(SOCKET_FD, wire.HEADER.pack(2, 2**32 - 1) + b"{}")
    time.sleep(60)
    return "not reached"
