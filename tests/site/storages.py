"""A storage that is far away: its files come in chunks, forwards only."""

from __future__ import annotations

from typing import Any

from django.core.files.base import File
from django.core.files.storage import Storage


class RemoteFile(File):  # type: ignore[type-arg]
    """A file without a descriptor, that cannot be read whole."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(None, name)
        self._data = data
        self._is_closed = False

    @property
    def closed(self) -> bool:
        return self._is_closed

    def read(self, size: int) -> bytes:
        assert 0 < size <= 1024 * 1024, "a remote file is read in chunks"
        assert not self._is_closed
        size = min(size, 100)
        chunk, self._data = self._data[:size], self._data[size:]
        return chunk

    def close(self) -> None:
        self._is_closed = True


class RemoteStorage(Storage):
    """Keeps bytes, and the files that it has given out."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.opened: list[RemoteFile] = []

    def _open(self, name: str, mode: str = "rb") -> RemoteFile:
        self.opened.append(RemoteFile(self._data, name))
        return self.opened[-1]

    def size(self, name: str) -> int:
        raise NotImplementedError("asking would cost another request")

    def path(self, name: str) -> Any:
        raise NotImplementedError("there is no path")
