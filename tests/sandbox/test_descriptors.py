"""Every kind of source becomes a descriptor that can be read, and not written."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from pdfpool_django.sandbox import descriptors
from pdfpool_django.sandbox.descriptors import Descriptor, from_bytes, from_file, from_path
from tests.sandbox.helpers import LIMIT, Call, open_descriptors

DATA = bytes(range(256)) * 5000
"""Larger than a chunk, and than what a pipe holds."""

SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    before = files_open()
    yield
    assert files_open() == before


def files_open() -> list[str]:
    """Leave out sockets and pidfds: a launcher of another test may still be sending standbys."""
    return [name for name in open_descriptors() if name not in {"socket", "anon_inode"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "document"
    path.write_bytes(DATA)
    return path


class OnlyRead:
    """A file-like source that has nothing but ``read``, and gives less than is asked for."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(size, 1000))


class Tracked(io.RawIOBase):
    """A seekable source without a descriptor, as one over a network."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def check(document: Descriptor, data: bytes = DATA) -> None:
    """The document has the data, cannot be written, and is closed afterwards."""
    with document:
        assert document.size == len(data)
        assert os.pread(document.fd, len(data) + 1, 0) == data
        assert document.sha256 == hashlib.sha256(data).hexdigest()
        assert document.head(5) == data[:5]
        assert fcntl.fcntl(document.fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        assert not os.get_inheritable(document.fd)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(document.fd, b"x", 0)
        with pytest.raises(OSError):
            os.ftruncate(document.fd, 0)
    assert document.fd == -1


def test_a_path(path: Path) -> None:
    check(from_path(path))
    check(from_path(str(path)))
    check(from_path(os.fsencode(path)))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes(kind: Callable[[bytes], Any]) -> None:
    check(from_bytes(kind(DATA)))
    check(from_bytes(kind(b"")), b"")


def test_a_bytesio_is_left_where_it_was_and_may_grow_again() -> None:
    file = io.BytesIO(DATA)
    file.seek(7)
    check(from_file(file))
    assert file.tell() == 7
    file.seek(0, os.SEEK_END)
    file.write(b"more")  # which a view still held would forbid


@pytest.mark.parametrize("buffering", [0, -1], ids=["raw", "buffered"])
@pytest.mark.parametrize("mode", ["rb", "r+b", "a+b"])
def test_an_open_file_is_read_from_its_start_and_left_where_it_was(
    path: Path, mode: str, buffering: int
) -> None:
    with open(path, mode, buffering) as file:
        file.seek(7)
        check(from_file(file))
        assert file.tell() == 7
        assert file.read(3) == DATA[7:10]


def test_a_file_shares_no_offset_with_its_document(path: Path) -> None:
    with open(path, "rb") as file, from_file(file) as document:
        os.lseek(document.fd, 100, os.SEEK_SET)
        assert file.read(3) == DATA[:3]


def test_what_is_still_in_a_files_buffer_counts(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b"new")
        check(from_file(file), b"new" + DATA[3:])


def test_a_regular_file_is_not_copied(path: Path) -> None:
    with open(path, "rb") as file, from_file(file) as document:
        assert os.path.samestat(os.fstat(document.fd), os.stat(path))


def test_a_file_without_a_name_any_more(path: Path) -> None:
    with open(path, "rb") as file:
        path.unlink()
        check(from_file(file))


def test_a_named_temporary_file() -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(DATA)
        check(from_file(file))
        assert file.tell() == len(DATA)


def test_a_temporary_file() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(DATA)
        check(from_file(file))


@pytest.mark.parametrize("size", [len(DATA) + 1, 10], ids=["in memory", "rolled over"])
def test_a_spooled_file_is_read_and_left_as_it_was(size: int) -> None:
    with tempfile.SpooledTemporaryFile(max_size=size) as file:
        file.write(DATA)
        rolled = file._rolled
        check(from_file(file))
        assert file.tell() == len(DATA)
        assert file._rolled == rolled == (size == 10)


def test_a_gzip_file_is_read_uncompressed(tmp_path: Path) -> None:
    path = tmp_path / "document.gz"
    with gzip.open(path, "wb") as file:
        file.write(DATA)
    with gzip.open(path, "rb") as file:
        file.read(7)
        check(from_file(file))
        assert file.tell() == 7


def test_a_pipe_is_read_to_its_end() -> None:
    readable, writable = os.pipe()
    call = Call(write_all, writable)
    with open(readable, "rb") as file:
        check(from_file(file))
    call.result()


def write_all(fd: int) -> None:
    with open(fd, "wb") as file:
        file.write(DATA)


def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    call = Call(path.write_bytes, DATA)
    check(from_path(path))
    call.result()


def test_a_source_that_can_only_be_read() -> None:
    check(from_file(OnlyRead(DATA)))


@pytest.mark.parametrize("wrap", [Tracked, lambda data: io.BufferedReader(Tracked(data))])
def test_a_source_without_a_descriptor_is_left_where_it_was(
    wrap: Callable[[bytes], BinaryIO],
) -> None:
    file = wrap(DATA)
    file.seek(7)
    check(from_file(file))
    assert file.tell() == 7


def test_a_text_file_is_refused_and_left_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("some text")
    with open(path) as file:
        file.seek(5)
        with pytest.raises(TypeError, match="binary mode"):
            from_file(file)
        assert file.tell() == 5


def test_text_in_memory_is_refused() -> None:
    with pytest.raises(TypeError, match="binary mode"):
        from_file(io.StringIO("some text"))


@pytest.mark.parametrize("buffering", [0, -1], ids=["raw", "buffered"])
def test_a_file_that_can_only_be_written_is_refused(path: Path, buffering: int) -> None:
    with open(path, "ab", buffering) as file, pytest.raises(OSError, match="read"):
        from_file(file)
    assert path.read_bytes() == DATA


def test_a_closed_file_is_refused(path: Path) -> None:
    with open(path, "rb") as file:
        pass
    with pytest.raises(ValueError, match="closed"):
        from_file(file)


def test_what_cannot_be_opened_raises_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        from_path(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        from_path(tmp_path)


def test_a_source_that_fails_leaves_nothing_open() -> None:
    class Failing(OnlyRead):
        def read(self, size: int = -1) -> bytes:
            raise ConnectionResetError("the store has gone")

    with pytest.raises(ConnectionResetError):
        from_file(Failing(DATA))


def test_bytes_in_memory_are_sealed() -> None:
    with from_bytes(DATA) as document:
        path = f"/proc/self/fd/{document.fd}"
        with pytest.raises(PermissionError):
            os.close(os.open(path, os.O_RDWR | os.O_TRUNC))
        fd = os.open(path, os.O_RDWR)
        try:
            with pytest.raises(PermissionError):
                os.write(fd, b"x")
            with pytest.raises(PermissionError):
                os.ftruncate(fd, 1)
        finally:
            os.close(fd)


def test_a_known_hash_is_not_computed_again(path: Path) -> None:
    with open(path, "rb") as file, from_file(file, "known") as document:
        assert document.sha256 == "known"
    with from_bytes(DATA, "known") as document:
        assert document.sha256 == "known"


def test_hashing_does_not_move_the_offset(path: Path) -> None:
    with from_path(path) as document:
        assert document.sha256 == SHA256
        assert os.lseek(document.fd, 0, os.SEEK_CUR) == 0


def test_a_duplicate_outlives_its_original(path: Path) -> None:
    with from_path(path) as document:
        twin = document.duplicate()
    check(twin)


def test_closing_twice_closes_no_other_file(path: Path) -> None:
    document = from_path(path)
    number = document.fd
    document.close()
    with open(path, "rb") as other:
        assert other.fileno() == number
        document.close()
        assert other.read(3) == DATA[:3]


def test_a_document_that_is_dropped_is_closed(path: Path) -> None:
    before = open_descriptors()
    document = from_path(path)
    assert open_descriptors() != before
    del document
    assert open_descriptors() == before


def test_many_threads_may_read_one_document(path: Path) -> None:
    barrier = threading.Barrier(4, timeout=LIMIT)

    def read_all(document: Descriptor) -> str:
        barrier.wait()
        return document._hash()

    with from_path(path) as document:
        calls = [Call(read_all, document) for _ in range(4)]
        assert {call.result() for call in calls} == {SHA256}


def test_a_platform_without_anonymous_memory_copies_to_a_file_without_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(descriptors.os, "memfd_create")
    monkeypatch.delattr(descriptors.fcntl, "F_ADD_SEALS")
    check(from_bytes(DATA))
