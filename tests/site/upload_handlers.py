"""Upload handlers such as sites have, which do more with a file than keep it."""

from __future__ import annotations

import io
import zlib
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.core.files.uploadhandler import (
    FileUploadHandler,
    SkipFile,
    StopUpload,
    TemporaryFileUploadHandler,
)
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from pdfpool_django.errors import FileTooLarge, InvalidRequest

ENVELOPE = 16
SEPARATOR = b"\0"
QUOTA = 100


class Passing(FileUploadHandler):
    """Hands everything on."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


class Unwrapping(Passing):
    """Takes a file out of its envelope: sixteen bytes before it."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data[max(0, ENVELOPE - start) :]


class Picking(Passing):
    """Takes the one of several files in one that the request's header names."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        assert self.request is not None
        return raw_data.split(SEPARATOR)[int(self.request.headers["X-Part"])]


class Inflating(TemporaryFileUploadHandler):
    """Keeps what a packed file holds, and knows its size only as it was sent."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._inflater = zlib.decompressobj()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.file.write(self._inflater.decompress(raw_data))


class Elsewhere(UploadedFile):  # type: ignore[type-arg]
    """A file in a store of the site's, from which it is read piece by piece."""

    PIECE = 1000

    def __init__(self, name: str) -> None:
        super().__init__(name=name, size=None)
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        data = STORE[self.name]
        wanted = len(data) if size < 0 else min(size, self.PIECE)
        piece = data[self._position : self._position + wanted]
        self._position += len(piece)
        return piece

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        end = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(STORE[self.name])}
        self._position = end[whence] + offset
        return self._position

    def close(self) -> None:
        STORE.pop(self.name, None)


STORE: dict[str | None, bytes] = {}


class KeepingElsewhere(FileUploadHandler):
    """Keeps each file in the store, until it is closed."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        STORE[self.file_name] = b""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        STORE[self.file_name] += raw_data

    def file_complete(self, file_size: int) -> Elsewhere:
        return Elsewhere(self.file_name or "")

    def upload_interrupted(self) -> None:
        STORE.pop(self.file_name, None)


class Skipping(Passing):
    """Takes no file whose name ends as it should not."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if not (self.file_name or "").endswith(".pdf"):
            raise SkipFile


class SkippingLate(Passing):
    """Gives a file up once it has seen its first bytes."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        raise SkipFile


class Stopping(Passing):
    """Stops what goes beyond its quota, without a word."""

    connection_reset = False

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        if start + len(raw_data) > QUOTA:
            raise StopUpload(connection_reset=self.connection_reset)
        return raw_data


class StoppingAtOnce(Stopping):
    """Does not read the rest either."""

    connection_reset = True


class Refusing(Passing):
    """Stops what goes beyond its quota, and says so as this application does."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        if start + len(raw_data) > QUOTA:
            raise FileTooLarge(limit=QUOTA)
        return raw_data


class RefusingNames(Passing):
    """Refuses a file for its name."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        raise InvalidRequest("No files on Mondays; send it on another day.")


class Failing(Passing):
    """Has a fault."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        raise RuntimeError("the scanner for viruses is gone")


class ParsingItself(Passing):
    """Has another parser for the whole form."""

    def handle_raw_input(self, input_data: Any, *args: Any, **kwargs: Any) -> Any:
        data = input_data.read()
        start, end = data.index(b"%PDF-"), data.rindex(b"\r\n--")
        file = SimpleUploadedFile("a.pdf", data[start:end])
        return QueryDict("pages=2"), MultiValueDict({"file": [file]})
