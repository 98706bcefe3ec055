"""Where a process that has no HTTP tells a test what it has done, and waits to be let go."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PORT = "TEST_MEETING_PORT"
LIMIT = 20


def report(**message: Any) -> None:
    """Send a message to the test, and wait until it lets go."""
    with socket.create_connection(("127.0.0.1", int(os.environ[PORT])), LIMIT) as connection:
        connection.sendall(json.dumps(message).encode() + b"\n")
        connection.recv(1)


class Meeting:
    """The test's side."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.environment = {PORT: str(listener.getsockname()[1])}

    @contextmanager
    def next(self) -> Iterator[dict[str, Any]]:
        """Give the next message; its sender goes on when the block ends."""
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as lines:
            yield json.loads(lines.readline())


@contextmanager
def meeting() -> Iterator[Meeting]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(LIMIT)
        yield Meeting(listener)
