"""An engine whose documents are a number and a text: so many pages of that text."""

from __future__ import annotations

import io

from tests.engines.says_its_text import TextDocument, TextEngine


class RepeatingEngine(TextEngine):
    """Reads a text many times."""

    def open(self, file: io.BufferedIOBase, password: str | None, max_pages: int) -> TextDocument:
        count, _, text = file.read().decode().partition(" ")
        return TextDocument([text] * int(count))


engine = RepeatingEngine()
