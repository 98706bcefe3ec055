"""An engine whose documents are text: pages parted by form feeds, in UTF-8."""

from __future__ import annotations

import io
from typing import Any

from pdfpool_django.engines.base import Engine, OpenDocument


class TextDocument(OpenDocument):
    """A document of these pages."""

    def __init__(self, pages: list[str]) -> None:
        self._pages = pages

    @property
    def page_count(self) -> int:
        return len(self._pages)

    def metadata(self) -> dict[str, Any]:
        return {}

    def label(self, number: int) -> str:
        return str(number)

    def text(self, number: int) -> str:
        return self._pages[number - 1]


class TextEngine(Engine):
    """Reads text."""

    identity = "text 1"

    def open(self, file: io.BufferedIOBase, password: str | None, max_pages: int) -> TextDocument:
        return TextDocument(file.read().decode().split("\f"))


engine = TextEngine()
