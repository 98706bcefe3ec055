"""The text of a document's pages, kept where children can search it and the process does not."""

from __future__ import annotations

from collections.abc import Iterable

from pdfpool_django.errors import OutputTooLarge
from pdfpool_django.model import Page
from pdfpool_django.sandbox.descriptors import Descriptor, Sealed


class SearchIndex:
    """Pages' texts, one after another, in memory that is gone when it is closed."""

    def __init__(self, text: Descriptor, places: dict[int, tuple[int, int]]) -> None:
        self.text = text
        self._places = places
        """Of each page that could be read: where its text begins, and its length in bytes."""

    @classmethod
    def of(cls, pages: Iterable[Page], max_size: int) -> SearchIndex:
        """Return the index of pages; one that has an error is left out.

        Raises:
            OutputTooLarge: The text has more than `max_size` bytes.
        """
        places: dict[int, tuple[int, int]] = {}
        size = 0
        with Sealed() as sealed:
            for page in pages:
                if page.error is None or page.text:
                    text = page.text.encode()
                    places[page.number] = size, len(text)
                    size += len(text)
                    if size > max_size:
                        raise OutputTooLarge(limit=max_size)
                    sealed.write(text)
            return cls(sealed.finish(None), places)

    def places(self, numbers: Iterable[int]) -> tuple[list[tuple[int, int, int]], tuple[int, ...]]:
        """Return number, place and length of each page, and the numbers that are not there."""
        wanted = list(numbers)
        there = [(number, *self._places[number]) for number in wanted if number in self._places]
        return there, tuple(number for number in wanted if number not in self._places)

    def close(self) -> None:
        """Give the memory back. A second time, nothing happens."""
        self.text.close()
