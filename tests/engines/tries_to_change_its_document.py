"""An engine whose every document's text tells which ways of changing its own file were open."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable
from typing import Any

from pdfpool_django.engines.base import Engine, OpenDocument
from pdfpool_django.sandbox.limits import DOCUMENT_FD

PATH = f"/proc/self/fd/{DOCUMENT_FD}"


def succeeds(way: Callable[[], object]) -> bool:
    try:
        way()
    except (OSError, ValueError):
        return False
    return True


def map_it() -> None:
    with mmap.mmap(DOCUMENT_FD, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as shared:
        shared[0] = 0


def open_it() -> None:
    os.pwrite(os.open(PATH, os.O_RDWR), b"x", 0)


WAYS = {
    "write": lambda: os.write(DOCUMENT_FD, b"x"),
    "write in place": lambda: os.pwrite(DOCUMENT_FD, b"x", 0),
    "truncate": lambda: os.ftruncate(DOCUMENT_FD, 0),
    "map": map_it,
    "open anew": open_it,
    "truncate by name": lambda: os.truncate(PATH, 0),
    "change its mode": lambda: os.fchmod(DOCUMENT_FD, 0o777),
}


class TryingDocument(OpenDocument):
    page_count = 1

    def metadata(self) -> dict[str, Any]:
        return {}

    def label(self, number: int) -> str:
        return str(number)

    def text(self, number: int) -> str:
        os.fstat(DOCUMENT_FD)  # it is there to be tried
        return ",".join(name for name, way in WAYS.items() if succeeds(way))


class TryingEngine(Engine):
    identity = "trying 1"

    def open(self, file: io.BufferedIOBase, password: str | None, max_pages: int) -> TryingDocument:
        return TryingDocument()


engine = TryingEngine()
