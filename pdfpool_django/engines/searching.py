"""Searching the text of pages, in a child: a pattern may run away as well as a document."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from pdfpool_django.errors import InvalidPattern

CONTEXT = 40
"""Characters of context before and after a match."""

_MAX_CONTEXT = 500
_MAX_REASON = 200
_GLOBAL_FLAGS = re.compile(r"\A(?:\(\?[aiLmsux]+\))+")


def search(
    file: io.BufferedIOBase,
    pages: list[list[int]],
    needle: str,
    ignore_case: bool,
    whole_word: bool,
    regex: bool,
    max_results: int | None,
) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the matches, in order.

    Args:
        file: The pages' texts, as UTF-8, one after another.
        pages: Number of each page to be searched, with the place and length in
            bytes of its text.
        needle: What to search for. White space in it stands for any white
            space, so that a match may go over the end of a line.
        ignore_case: Whether ``A`` and ``a`` are the same.
        whole_word: Whether a match must neither begin nor end within a word.
        regex: Whether `needle` is a regular expression (Python's ``re``).
        max_results: Matches to give at most; ``None`` for all. What matches nothing is no match.

    Raises:
        InvalidPattern: The needle is empty, or no regular expression.
    """
    pattern = _compiled(needle, ignore_case, whole_word, regex)
    if max_results == 0:
        return
    found = 0
    for number, offset, length in pages:
        file.seek(offset)
        text = file.read(length).decode("utf-8", "surrogatepass")
        for match in pattern.finditer(text):
            if match.start() == match.end():
                continue
            yield _value(number, text, match), b""
            found += 1
            if found == max_results:
                return


def _compiled(needle: str, ignore_case: bool, whole_word: bool, regex: bool) -> re.Pattern[str]:
    if not (needle if regex else needle.strip()):
        raise InvalidPattern(reason="it is empty")
    source = needle if regex else r"\s+".join(re.escape(word) for word in needle.split())
    try:
        flags = re.compile(source).flags  # alone first, so that it cannot close the group around it
        if whole_word:
            # Flags for the whole must stand first; what is verbose may end in a comment.
            source = _GLOBAL_FLAGS.sub("", source)
            source = rf"(?<!\w)(?:{source}{chr(10) if flags & re.VERBOSE else ''})(?!\w)"
        return re.compile(source, flags | re.IGNORECASE if ignore_case else flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidPattern(reason=str(error)[:_MAX_REASON]) from error


def _value(number: int, text: str, match: re.Match[str]) -> dict[str, Any]:
    start, end = match.span()
    around = text[max(0, start - CONTEXT) : min(end, start + _MAX_CONTEXT) + CONTEXT]
    return {"page": number, "start": start, "end": end, "context": " ".join(around.split())}
