"""The child's side of a session: answer calls about one document, until the socket ends."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

from pdfpool_django.errors import MemoryExceeded, PdfPoolError
from pdfpool_django.sandbox import limits, seccomp, wire

Answer = Iterator[tuple[dict[str, Any], bytes]]

_BUFFER = 64 * 1024
_WHOLE_BELOW = 1024 * 1024
_MAX_TEXT = 2000
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
"""Where an object was in memory, as its ``repr`` says."""


class Served(Protocol):
    """What a child serves: the calls of one session."""

    def handle(
        self, call: str, arguments: dict[str, Any], file: io.BufferedIOBase | None
    ) -> Answer:
        """Yield the parts of the answer to `call`."""


def run(
    sock: socket.socket,
    open_session: Callable[[], Served],
    rehearse: Callable[[], None],
    child_limits: limits.ChildLimits,
    launcher_pid: int,
) -> NoReturn:
    """Be a child: confine the process, touch what will be needed, then answer calls."""
    status = 1
    try:
        os.setsid()
        sock = _only_descriptor(sock)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limits.confine(child_limits, launcher_pid)
        rehearse()
        if child_limits.filtered:
            seccomp.install()
        _Server(sock, open_session()).serve()
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        status = 0  # nobody listens any more
    except Exception:  # noqa: BLE001 - the last one who can say what went wrong
        traceback.print_exc()
    finally:
        os._exit(status)


def _only_descriptor(sock: socket.socket) -> socket.socket:
    """Keep the socket and the three standard streams; close all else that the launcher holds."""
    os.dup2(sock.fileno(), limits.SOCKET_FD)
    os.closerange(limits.SOCKET_FD + 1, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=limits.SOCKET_FD)


class _Server:
    def __init__(self, sock: socket.socket, session: Served) -> None:
        self._sock = sock
        self._session = session
        # Built while there is memory for it.
        self._out_of_memory = wire.encode({"type": "error", "error": MemoryExceeded().as_data()})

    def serve(self) -> None:
        reader = wire.DescriptorReader(self._sock)
        while reader.read():
            for message, descriptors in reader.frames():
                try:
                    self._answer(message, descriptors)
                except MemoryError:  # as when even telling what went wrong needs some
                    self._give_up()

    def _answer(self, message: dict[str, Any], descriptors: list[int]) -> None:
        last = self._parts(message, descriptors)
        if message["call"] != "open":  # whose document stays for the calls that follow
            for fd in descriptors:
                os.close(fd)
        wire.send(self._sock, last)  # now that nothing is held any more

    def _parts(self, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Send the parts of an answer; return the last word on it."""
        try:
            file = open_document(descriptors[0]) if descriptors else None
            for part, body in self._session.handle(message["call"], message["arguments"], file):
                wire.send(self._sock, {"type": "part", "part": part}, body)
        except PdfPoolError as error:
            return {"type": "error", "error": error.as_data()}
        except (BrokenPipeError, ConnectionResetError):
            raise
        except BaseException as error:  # noqa: BLE001 - the web process is told, whatever it is
            if is_out_of_memory(error):
                self._give_up()
            return {"type": "fault", "fault": describe(error)}
        return {"type": "end"}

    def _give_up(self) -> NoReturn:
        """Say that memory ran out, and end: what else has failed silently cannot be known."""
        limits.use_memory_reserve()
        self._sock.sendall(self._out_of_memory)
        os._exit(0)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out anywhere in the chain: libraries wrap it in errors of their own."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        if isinstance(link, MemoryError) or getattr(link, "errno", None) == errno.ENOMEM:
            return True
        seen.add(id(link))
        waiting += [link.__cause__, link.__context__]
    return False


def raise_if_out_of_memory(error: Exception) -> None:
    """Raise an error on that is no fault of what was read, and so must not be got over."""
    if is_out_of_memory(error):
        raise error


def describe(error: BaseException) -> str:
    """Return the error's type and text, whatever its ``str`` does; no two runs differ in it."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a foreign class may do anything
        text = "no text"
    return _ADDRESS.sub("", f"{type(error).__name__}: {text[:_MAX_TEXT]}")[:_MAX_TEXT]


class _PreadFile(io.RawIOBase):
    """A file with an offset of its own: one shared with another process would move under it."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._fd, [buffer], self._offset)
        self._offset += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._offset = base + offset
        return self._offset

    def tell(self) -> int:
        return self._offset


class _DocumentFile(io.BufferedReader):
    """A buffered file that reserves no more memory for a read than it has bytes left."""

    raw: _PreadFile

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _BUFFER:
            size = min(size, max(0, self.raw.size - self.tell()))
        return super().read(size)


def open_document(fd: int) -> io.BufferedIOBase:
    """Return the document behind a descriptor as a file; a small one is read at once."""
    size = os.fstat(fd).st_size
    if size <= _WHOLE_BELOW:
        return io.BytesIO(os.pread(fd, size, 0))
    return _DocumentFile(_PreadFile(fd, size), _BUFFER)
