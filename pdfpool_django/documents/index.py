"""The text of a document's pages, kept where children can search it and the process does not."""

from __future__ import annotations

from collections.abc import Iterable

from pdfpool_django.errors import OutputTooLarge
from pdfpool_django.model import Page
from pdfpool_django.sandbox.descriptors import Descriptor, Sealed


class SearchIndex:
    """Pages' texts, one after another, in memory that is gone when it is closed."""

    def __init__(
        self, text: Descriptor, places: dict[int, tuple[int, int]], unread: frozenset[int]
    ) -> None:
        self.text = text
        self._places = places
        """Of each page that has text: where it begins, and its length in bytes."""
        self._unread = unread
        """The pages that could not be read, or not all of them."""

    @classmethod
    def of(cls, pages: Iterable[Page], max_size: int) -> SearchIndex:
        """Return the index of pages; of one that has an error, what there is.

        Raises:
            OutputTooLarge: The text has more than `max_size` bytes.
        """
        places: dict[int, tuple[int, int]] = {}
        unread = set()
        size = 0
        with Sealed() as sealed:
            for page in pages:
                if page.error is not None:
                    unread.add(page.number)
                text = page.text.encode()
                places[page.number] = size, len(text)
                size += len(text)
                if size > max_size:
                    raise OutputTooLarge(limit=max_size)
                sealed.write(text)
            return cls(sealed.finish(None), places, frozenset(unread))

    def places(self, numbers: Iterable[int]) -> tuple[list[tuple[int, int, int]], tuple[int, ...]]:
        """Return number, place and length of each page, and the numbers of those with an error."""
        wanted = list(numbers)
        there = [(number, *self._places[number]) for number in wanted if self._places[number][1]]
        return there, tuple(number for number in wanted if number in self._unread)

    def close(self) -> None:
        """Give the memory back. A second time, nothing happens."""
        self.text.close()
