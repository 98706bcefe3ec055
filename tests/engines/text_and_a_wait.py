"""An engine whose documents are two numbers: pages, and characters of each; the last one waits."""

from __future__ import annotations

import io
from typing import Any

from pdfpool_django.engines.base import Engine, OpenDocument
from tests.engines import waits_for_each_signal


class LongDocument(OpenDocument):
    """Pages of one letter."""

    def __init__(self, count: int, size: int) -> None:
        self._count = count
        self._size = size

    @property
    def page_count(self) -> int:
        return self._count

    def metadata(self) -> dict[str, Any]:
        return {}

    def label(self, number: int) -> str:
        return str(number)

    def text(self, number: int) -> str:
        if number == self._count:
            return waits_for_each_signal.act(number)
        return "x" * self._size


class LongEngine(Engine):
    """Makes long documents."""

    identity = "long 1"
    loggers = ()

    def warm(self) -> None:
        """Nothing is needed."""

    def open(self, file: io.BufferedIOBase, password: str | None, max_pages: int) -> LongDocument:
        _, count, size = file.read().split()
        return LongDocument(int(count), int(size))


engine = LongEngine()
