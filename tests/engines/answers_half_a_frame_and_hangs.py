"""Writes the first half of a frame, and nothing more."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    frame = wire.encode({"type": "part", "part": {"number": page}})
    os.write(SOCKET_FD, frame[: len(frame) // 2])
    time.sleep(60)
    return "not reached"
