"""Sends a body a byte at a time, without a pause and without an end."""

from __future__ import annotations

import os

from pdfpool_django.sandbox import wire
from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    os.write(SOCKET_FD, wire.HEADER.pack(2, 8 * 1024 * 1024) + b"{}")
    while True:
        os.write(SOCKET_FD, b"x")
