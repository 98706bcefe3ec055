"""Text that other systems can take: without what breaks those who store or send it."""

from __future__ import annotations

import re

_UNWELCOME = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DROPPED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_LINE_END = re.compile("\r\n?|\x85")


def clean(text: str) -> str:
    """Return `text` as valid Unicode with no control characters but tab and newline.

    Halves of a surrogate pair are joined where they belong together; a lone
    one becomes U+FFFD. NUL, which PostgreSQL refuses, and the two
    noncharacters that XML 1.0 forbids are dropped.
    """
    if _UNWELCOME.search(text) is None:
        return text
    if _SURROGATE.search(text) is not None:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _DROPPED.sub("", _LINE_END.sub("\n", text))


def clean_line(text: str, limit: int) -> str:
    """Return `text` clean, on one line, and cut at `limit` characters."""
    return " ".join(clean(text[: limit * 4]).split())[:limit]
