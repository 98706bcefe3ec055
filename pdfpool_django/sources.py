"""From whatever holds a document to a descriptor that a child can read."""

from __future__ import annotations

import os
import tempfile
from typing import IO, Any, TypeAlias

from django.core.files.base import File
from django.core.files.utils import FileProxyMixin

from pdfpool_django.documents import beginning
from pdfpool_django.sandbox import descriptors
from pdfpool_django.sandbox.descriptors import Descriptor

Source: TypeAlias = (
    "bytes | bytearray | memoryview | str | os.PathLike[str] | IO[bytes] | File[Any]"
)
"""What a document may be read from."""


def describe(source: Source | Descriptor) -> Descriptor:
    """Return the document that `source` holds, hashed.

    Raises:
        InvalidRequest: It is empty.
        NotAPdf: It has neither a PDF header nor an object where readers look for one.
        OSError: It cannot be read.
        TypeError: It is nothing that holds a document.
    """
    document = _descriptor(source)
    try:
        beginning.check(document)
        document.sha256  # noqa: B018 - computed here, where it may take its time
    except BaseException:
        document.close()
        raise
    return document


def _descriptor(source: Any) -> Descriptor:
    if isinstance(source, Descriptor):
        return source
    if isinstance(source, File):
        return _from_django(source)
    return from_file(source) if hasattr(source, "read") else descriptors.of(source)


def _from_django(source: File[Any]) -> Descriptor:
    """Take a Django file; one that is closed, like a fresh `FieldFile`, is closed again."""
    closed = source.closed
    if closed:
        source.open("rb")
    try:
        return from_file(source)
    finally:
        if closed:
            source.close()


def from_file(file: Any, sha256: str | None = None) -> Descriptor:
    """Return the document in a binary file, its wrappers taken off; see `descriptors.from_file`."""
    return descriptors.from_file(_unwrapped(file), sha256)


def _unwrapped(file: Any) -> Any:
    """Return the file inside wrappers that add nothing to its bytes.

    A storage's own class may well add something, as one that decrypts does:
    it is known by a ``read`` of its own.
    """
    while _is_proxy(file):
        file = file.file
    return file


def _is_proxy(file: Any) -> bool:
    if isinstance(file, tempfile._TemporaryFileWrapper):
        return True
    return isinstance(file, FileProxyMixin) and type(file).read is FileProxyMixin.read
