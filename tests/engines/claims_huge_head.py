"""Writes the beginning of a frame with 4 GB of JSON."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    os.write(SOCKET_FD, wire.HEADER.pack(2**32 - 1, 0))
    time.sleep(60)
    return "not reached"
