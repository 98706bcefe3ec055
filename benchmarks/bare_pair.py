"""The cheapest isolation there is: a child forked ahead of need from a warm process.

No limits, no filter, no frames, no checks: what a document costs beyond this is the price of these.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from types import TracebackType
from typing import Self

from pypdf import PdfReader

from scripts.pdf_builder import simple_pdf

_CHUNK = 64 * 1024


class BarePair:
    """A warm process, and a child of it that waits; each child reads one document."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare_pair", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._child = self._next_child()

    @property
    def pid(self) -> int:
        """The warm process."""
        return self._process.pid

    def read(self, data: bytes) -> str:
        """Return the text of a document, read by the child that waits."""
        with self._child as child:
            child.sendall(len(data).to_bytes(8) + data)
            return _received(child).decode()

    def refill(self) -> None:
        """Have the next child forked where none waits; not a part of what a document costs."""
        if self._child.fileno() >= 0:
            return
        self._ours.send(b".")
        self._child = self._next_child()

    def _next_child(self) -> socket.socket:
        _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        return socket.socket(fileno=descriptors[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ours.close()
        self._child.close()
        self._process.wait()


def _received(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(_CHUNK):
        parts.append(part)
    return b"".join(parts)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(min(_CHUNK, size - len(data)))
        if not part:
            os._exit(0)
        data += part
    return bytes(data)


def _text(data: bytes) -> str:
    return PdfReader(io.BytesIO(data)).pages[0].extract_text()


def _serve_one(sock: socket.socket) -> None:
    _text(_WARM)  # so that the child has touched what it will touch
    data = _exactly(sock, int.from_bytes(_exactly(sock, 8)))
    sock.sendall(_text(data).encode())
    os._exit(0)


def _serve(control: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            control.close()
            ours.close()
            _serve_one(theirs)
        theirs.close()
        socket.send_fds(control, [b"."], [ours.fileno()])
        ours.close()
        if not control.recv(1):
            return


_WARM = simple_pdf("warm")

if __name__ == "__main__":
    import gc

    _text(_WARM)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        _serve(inherited)
