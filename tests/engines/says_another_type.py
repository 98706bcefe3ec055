"""Sends a frame of a type that no child has."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    os.write(SOCKET_FD, wire.encode({"type": "exit", "status": 0}))
    time.sleep(60)
    return "not reached"
