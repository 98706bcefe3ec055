"""Closes the socket on which it should answer, and lives on."""

from __future__ import annotations

import os
import time

from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    os.close(SOCKET_FD)
    while True:
        time.sleep(0.01)
