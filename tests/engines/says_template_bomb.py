"""Says an error whose sentence would fill the memory of whoever formats it."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.limits import SOCKET_FD

BOMB = {"code": "crashed", "template": "%(x)2000000000s", "params": {"x": 1}, "retry_after": None}


def act(page: int) -> str:
    os.write(SOCKET_FD, wire.encode({"type": "error", "error": BOMB}))
    time.sleep(60)
    return "not reached"
