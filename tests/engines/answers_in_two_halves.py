"""Sends the answer about its page in two halves, the second when somebody sends SIGUSR1."""

from __future__ import annotations

import socket
from typing import Any

from pdfpool_django.sandbox import wire
from tests.engines import waits_for_a_signal

_send = wire.send


def act(page: int) -> str:
    wire.send = _send_in_two_halves
    return f"text of page {page}"


def _send_in_two_halves(sock: socket.socket, message: dict[str, Any], body: bytes = b"") -> None:
    wire.send = _send
    frame = wire.encode(message, body)
    half = len(frame) // 2
    sock.sendall(frame[:half])
    waits_for_a_signal.act(0)
    sock.sendall(frame[half:])
