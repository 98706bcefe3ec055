"""Every kind of source gives the same text, and stays as it was."""

from __future__ import annotations

import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage
from django.core.files.uploadedfile import (
    InMemoryUploadedFile,
    SimpleUploadedFile,
    TemporaryUploadedFile,
)
from django.db.models import FileField
from django.db.models.fields.files import FieldFile

from pdfpool_django.errors import InvalidRequest, NotAPdf
from pdfpool_django.extraction import extract
from scripts.pdf_builder import simple_pdf
from tests.sandbox.helpers import LIMIT, open_descriptors
from tests.site.asking import Ask
from tests.site.helpers import SAMPLE, TEXTS
from tests.site.storages import RemoteStorage

OFFSET = 5


def assert_whole(extraction: Any) -> None:
    assert [page.text.strip() for page in extraction.pages] == list(TEXTS)
    assert extraction.complete


def memfds() -> int:
    return open_descriptors().count("/memfd")


def field_file(storage: Any, name: str = "sample.pdf") -> FieldFile:
    return FieldFile(None, FileField(storage=storage), name)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sample.pdf"
    path.write_bytes(SAMPLE)
    return path


# What holds the bytes itself, or tells where they are


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes(ask: Ask, kind: Callable[[bytes], Any]) -> None:
    assert_whole(ask(kind(SAMPLE), caller="a"))


@pytest.mark.parametrize("kind", [Path, str])
def test_a_path(ask: Ask, path: Path, kind: Callable[[Path], Any]) -> None:
    assert_whole(ask(kind(path), caller="a"))


def test_a_large_document_in_memory(ask: Ask) -> None:
    texts = ["line after line\n" * 400] * 300
    data = simple_pdf(*texts)
    assert len(data) > 1024 * 1024
    extraction = ask(data, caller="a", pages=300)
    assert extraction.page_count == 300
    assert extraction.text.count("line after line") == 400


def test_a_file_that_is_replaced_is_read_as_it_was(path: Path) -> None:
    with path.open("rb") as file:
        path.unlink()
        path.write_bytes(b"something else")
        assert_whole(extract(file, caller="a"))


# Open files


def open_binary(path: Path) -> Any:
    return path.open("rb")


def open_unbuffered(path: Path) -> Any:
    return path.open("rb", buffering=0)


def open_for_writing_too(path: Path) -> Any:
    return path.open("r+b")


def open_in_memory(path: Path) -> Any:
    return io.BytesIO(path.read_bytes())


def open_spooled(path: Path) -> Any:
    file = tempfile.SpooledTemporaryFile()  # noqa: SIM115 - who opens it closes it
    file.write(path.read_bytes())
    return file


def open_django_file(path: Path) -> Any:
    return File(path.open("rb"), "sample.pdf")


def open_content_file(path: Path) -> Any:
    return ContentFile(path.read_bytes(), "sample.pdf")


def open_simple_upload(path: Path) -> Any:
    return SimpleUploadedFile("sample.pdf", path.read_bytes())


def open_upload_in_memory(path: Path) -> Any:
    data = path.read_bytes()
    file = io.BytesIO(data)
    return InMemoryUploadedFile(file, "file", "sample.pdf", "application/pdf", len(data), None)


def open_temporary_upload(path: Path) -> Any:
    data = path.read_bytes()
    upload = TemporaryUploadedFile("sample.pdf", "application/pdf", len(data), None)
    upload.write(data)
    return upload


OPENERS = [
    open_binary,
    open_unbuffered,
    open_for_writing_too,
    open_in_memory,
    open_spooled,
    open_django_file,
    open_content_file,
    open_simple_upload,
    open_upload_in_memory,
    open_temporary_upload,
]
each_opener = pytest.mark.parametrize("opener", OPENERS, ids=lambda opener: opener.__name__)


@each_opener
def test_an_open_file_is_read_from_its_start_left_where_it_was_and_not_closed(
    ask: Ask, path: Path, opener: Callable[[Path], Any]
) -> None:
    with opener(path) as file:
        file.seek(OFFSET)
        assert_whole(ask(file, caller="a"))
        assert file.tell() == OFFSET
        assert not file.closed


@pytest.mark.parametrize("opener", [open_for_writing_too, open_spooled, open_temporary_upload])
def test_what_was_just_written_to_a_file_is_read(path: Path, opener: Callable[[Path], Any]) -> None:
    with opener(path) as file:
        file.seek(0)
        data = simple_pdf("First page", "Second page", "Third page", "Unflushed")
        file.write(data)
        assert extract(file, caller="a").text.rstrip().endswith("Unflushed")


def test_a_text_file_is_refused(ask: Ask, path: Path) -> None:
    with path.open(encoding="latin-1") as file, pytest.raises(TypeError, match="binary mode"):
        ask(file, caller="a")


@contextmanager
def piped(data: bytes) -> Iterator[Any]:
    """A pipe into which a thread writes, more than fits at once."""
    reading, writing = os.pipe()
    with open(reading, "rb") as file:
        writer = threading.Thread(target=write_and_close, args=(writing, data))
        writer.start()
        yield file
        writer.join(LIMIT)
        assert not writer.is_alive()


def write_and_close(fd: int, data: bytes) -> None:
    with open(fd, "wb") as file:
        file.write(data)


def test_a_pipe(ask: Ask) -> None:
    data = SAMPLE + b"\n%" + b"x" * 200_000
    with piped(data) as file:
        assert_whole(ask(file, caller="a"))
        assert not file.closed


def test_a_named_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(SAMPLE,))
    writer.start()
    assert_whole(extract(fifo, caller="a"))
    writer.join(LIMIT)


# Files of a model


def test_a_closed_field_file_is_opened_and_closed_again(ask: Ask, path: Path) -> None:
    stored = field_file(FileSystemStorage(path.parent))
    assert stored.closed
    assert_whole(ask(stored, caller="a"))
    assert stored.closed


def test_an_open_field_file_stays_open(ask: Ask, path: Path) -> None:
    with field_file(FileSystemStorage(path.parent)).open("rb") as stored:
        stored.seek(OFFSET)
        assert_whole(ask(stored, caller="a"))
        assert not stored.closed
        assert stored.tell() == OFFSET


def test_a_field_file_of_a_remote_storage_is_read_in_chunks_and_closed(ask: Ask) -> None:
    storage = RemoteStorage(SAMPLE)
    assert_whole(ask(field_file(storage), caller="a"))
    assert [file.closed for file in storage.opened] == [True]


def test_a_field_file_without_a_file_is_a_value_error(ask: Ask) -> None:
    with pytest.raises(ValueError, match="no file associated"):
        ask(field_file(RemoteStorage(SAMPLE), ""), caller="a")


# What is no document


@pytest.mark.parametrize("source", [None, 7, object(), ["a"]])
def test_what_holds_no_document_is_a_type_error(ask: Ask, source: Any) -> None:
    with pytest.raises(TypeError, match="cannot be read from"):
        ask(source, caller="a")


def test_a_missing_file_is_its_own_error(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ask(tmp_path / "none.pdf", caller="a")


def test_a_folder_is_its_own_error(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        ask(tmp_path, caller="a")


def test_a_source_that_fails_while_it_is_read_is_its_own_error(ask: Ask) -> None:
    class Failing(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise ConnectionResetError("the storage is gone")

    before = memfds()
    with pytest.raises(ConnectionResetError, match="the storage is gone"):
        ask(Failing(), caller="a")
    assert memfds() == before


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", InvalidRequest),
        (b"Dear Sir or Madam", NotAPdf),
        (b" " * 1020 + SAMPLE, NotAPdf),
    ],
    ids=["empty", "a text", "a header too far in"],
)
def test_what_is_no_pdf_is_refused_and_nothing_is_left(
    ask: Ask, data: bytes, error: type[Exception]
) -> None:
    before = memfds()
    with pytest.raises(error):
        ask(data, caller="a")
    assert memfds() == before


def test_a_header_after_some_rubbish_is_found(ask: Ask) -> None:
    assert_whole(ask(b"\n" * 1000 + SAMPLE, caller="a"))


@each_opener
def test_no_descriptor_is_left(path: Path, opener: Callable[[Path], Any]) -> None:
    with opener(path) as file:
        before = memfds()
        extract(file, caller="a")
        assert memfds() == before
