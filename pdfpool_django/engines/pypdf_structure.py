"""The text that a document's structure gives for what pages show (ISO 32000-2, 14.7 and 14.9.4)."""

from __future__ import annotations

from typing import Any

from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject

_MAX_ANCESTORS = 64
_MAX_NODES = 100_000

Replaced = tuple[int, str]
"""A structure element, as a number of its own, and the text that stands for it."""


class StructureTexts:
    """The ``/ActualText`` of structure elements, found by what marked content says of itself."""

    def __init__(self, reader: PdfReader) -> None:
        self._reader = reader
        self._lists: dict[int, Any] | None = None
        self._of_element: dict[int, tuple[Any, Replaced | None]] = {}

    def of(self, key: int, mcid: int) -> Replaced | None:
        """Return what stands for marked content; ``None`` where it stands for itself.

        Args:
            key: ``/StructParents`` of its page or form.
            mcid: Its ``/MCID``.
        """
        if self._lists is None:
            self._lists = {}
            self._lists = self._parents()
        elements = self._lists.get(key)
        elements = None if elements is None else elements.get_object()
        if not isinstance(elements, ArrayObject) or not 0 <= mcid < len(elements):
            return None
        element = elements[mcid].get_object()
        return self._replaced(element, 0) if isinstance(element, DictionaryObject) else None

    def _replaced(self, element: DictionaryObject, depth: int) -> Replaced | None:
        """Return the text of an element, or of the outermost one around it that has any."""
        known = self._of_element.get(id(element))
        if known is not None:
            return known[1]
        parent = element.get("/P")
        parent = None if parent is None else parent.get_object()
        found = None
        if isinstance(parent, DictionaryObject) and depth < _MAX_ANCESTORS:
            found = self._replaced(parent, depth + 1)
        text = element.get("/ActualText")
        if found is None and text is not None:
            value = text.get_object()
            if isinstance(value, str):
                found = id(element), str(value)
        # With the element itself, so that no other object takes its id.
        self._of_element[id(element)] = element, found
        return found

    def _parents(self) -> dict[int, Any]:
        """Return the lists of the parent tree, a number tree, by their keys."""
        root = self._reader.root_object.get("/StructTreeRoot")
        root = None if root is None else root.get_object()
        tree = root.get("/ParentTree") if isinstance(root, DictionaryObject) else None
        waiting, seen = [tree], 0
        found: dict[Any, Any] = {}
        while waiting and seen < _MAX_NODES:
            seen += 1
            node = waiting.pop()
            node = None if node is None else node.get_object()
            if not isinstance(node, DictionaryObject):
                continue
            kids, pairs = node.get("/Kids"), node.get("/Nums")
            if kids is not None and isinstance(kids.get_object(), ArrayObject):
                waiting += kids.get_object()
            if pairs is not None and isinstance(pairs.get_object(), ArrayObject):
                entries = list(pairs.get_object())
                found.update(zip(entries[::2], entries[1::2], strict=False))
        return {key: value for key, value in found.items() if isinstance(key, int)}
