"""The document as a read-only descriptor, made without holding its bytes twice."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import tempfile
from typing import IO, Any, Self

from pdfpool_django.sandbox import platforms
from pdfpool_django.sandbox.platforms import fcntl

_CHUNK = 1024 * 1024


class Descriptor:
    """A document that can be read, and not written, through `fd`; closed with `close`."""

    fd = -1

    def __init__(self, fd: int, sha256: str | None = None) -> None:
        self.fd = fd
        self.size = os.fstat(fd).st_size
        """Bytes."""
        self._sha256 = sha256

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, as 64 hexadecimal digits."""
        if self._sha256 is None:
            self._sha256 = self._hash()
        return self._sha256

    def _hash(self) -> str:
        digest = hashlib.sha256()
        buffer = bytearray(min(_CHUNK, max(self.size, 1)))
        view = memoryview(buffer)
        offset = 0
        while count := os.preadv(self.fd, [buffer], offset):
            digest.update(view[:count])
            offset += count
        return digest.hexdigest()

    def head(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        return os.pread(self.fd, size, 0)

    def duplicate(self) -> Descriptor:
        """Return another handle of the same document, to be closed on its own."""
        return Descriptor(os.dup(self.fd), self._sha256)

    def close(self) -> None:
        """Give the descriptor back. A second time, nothing happens."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        # A job that is dropped before it runs takes its document along.
        self.close()


def of(source: Any) -> Descriptor:
    """Return the document in what has its bytes, its path, or a binary file.

    Raises:
        OSError: It cannot be read.
        TypeError: It is nothing of that kind.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return from_bytes(source)
    if isinstance(source, (str, os.PathLike)):
        return from_path(source)
    if hasattr(source, "read"):
        return from_file(source)
    raise TypeError(f"a document cannot be read from {type(source).__name__}")


def name_of(source: Any) -> str:
    """Return what to call a source in the log: its path, or its kind."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else type(source).__name__


def from_path(path: str | os.PathLike[str]) -> Descriptor:
    """Open a file; what is not a regular one (a pipe, a device) is read to its end.

    Raises:
        OSError: The file cannot be opened or read.
        Unavailable: This platform has no way to do so safely; the other two raise it as well.
    """
    platforms.require()
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return Descriptor(fd)
        with open(fd, "rb", closefd=False) as file:
            copied = _copy(file)
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return copied


def from_bytes(data: bytes | bytearray | memoryview, sha256: str | None = None) -> Descriptor:
    """Put bytes where a child can read them, and nobody can change them."""
    platforms.require()
    with Sealed() as sealed:
        sealed.write(data)
        return sealed.finish(sha256)


def from_file(file: IO[bytes], sha256: str | None = None) -> Descriptor:
    """Return the whole of a binary file, from its start.

    The file's offset is left where it was, and the file open. A regular file
    is opened anew; of one in memory the bytes are taken; anything else is
    read in chunks.

    Args:
        file: A file opened for reading in binary mode.
        sha256: The SHA-256 of its bytes, where it is known already.

    Raises:
        OSError: The file cannot be read.
        TypeError: The file is not a binary one.
    """
    platforms.require()
    if isinstance(file, io.BytesIO):
        return from_bytes(file.getbuffer(), sha256)
    regular = _regular_descriptor(file)
    if regular is not None:
        with contextlib.suppress(PermissionError):
            return Descriptor(_reopen(regular), sha256)
    position = _rewind(file)
    try:
        return _copy(file, sha256)
    finally:
        if position is not None:
            file.seek(position)


def _regular_descriptor(file: Any) -> int | None:
    """Return the descriptor of a regular file whose bytes are the file's own.

    Not every ``fileno`` is: a `gzip.GzipFile` gives the compressed file's, and
    a spooled file is written out by the mere question.
    """
    raw = getattr(file, "raw", file)
    if type(raw) is not io.FileIO or not raw.readable():
        return None
    if file.writable():
        file.flush()
    return raw.fileno() if stat.S_ISREG(os.fstat(raw.fileno()).st_mode) else None


def _reopen(fd: int) -> int:
    """Return a new, read-only open file description of the same file (``man 5 proc``, fd)."""
    return os.open(f"{_FD_DIRECTORY}/{fd}", os.O_RDONLY | os.O_CLOEXEC)


_FD_DIRECTORY = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"


def _rewind(file: Any) -> int | None:
    """Go to the file's start; return where it was, or ``None`` where it cannot move."""
    seekable = getattr(file, "seekable", None)
    if not hasattr(file, "seek") or (seekable is not None and not seekable()):
        return None
    position: int = file.tell() if hasattr(file, "tell") else 0
    file.seek(0)
    return position


def _copy(file: IO[bytes], sha256: str | None = None) -> Descriptor:
    with Sealed() as sealed:
        while chunk := file.read(_CHUNK):
            if not isinstance(chunk, (bytes, bytearray, memoryview)):
                raise TypeError("the source is a text file; open it in binary mode")
            sealed.write(chunk)
        return sealed.finish(sha256)


class Sealed:
    """Anonymous memory that can be written once (``man 2 memfd_create``), hashed on the way."""

    def __init__(self) -> None:
        self._fd = _anonymous()
        self._digest = hashlib.sha256()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with memoryview(data) as view:
            self._digest.update(view)
            written = 0
            while written < view.nbytes:
                written += os.write(self._fd, view[written:])

    def finish(self, sha256: str | None) -> Descriptor:
        """Seal what was written, and return it read-only."""
        if hasattr(fcntl, "F_ADD_SEALS"):
            seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
            fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, seals)
        return Descriptor(_reopen(self._fd), sha256 or self._digest.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._fd)


def _anonymous() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pdfpool", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
