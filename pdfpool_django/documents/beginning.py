"""By its beginning, whether a file is a PDF at all: known before a child is asked."""

from __future__ import annotations

import re

from pdfpool_django.errors import InvalidRequest, NotAPdf
from pdfpool_django.sandbox.descriptors import Descriptor

WITHIN = 1024
"""Bytes at a file's start in which readers look for the header (ISO 32000-1, annex H, note 13)."""

# Some files have a broken header, like “%PDF.1.4”, or begin with an object.
_BEGINNING = re.compile(rb"%PDF-|(?<![0-9])[0-9]{1,10}\s+[0-9]{1,5}\s+obj\b")
_VERSION = re.compile(rb"%PDF-(\d\.\d)")


def is_of_a_pdf(head: bytes) -> bool:
    """Whether a file that begins like this may be a PDF.

    Args:
        head: Its first `WITHIN` bytes, or all of a shorter file.
    """
    return _BEGINNING.search(head) is not None


def check(document: Descriptor) -> None:
    """Refuse what is no PDF.

    Raises:
        InvalidRequest: It is empty.
        NotAPdf: It has neither a PDF header nor an object where readers look for one.
    """
    if document.size == 0:
        raise InvalidRequest("The file is empty; send one that is not.")
    if not is_of_a_pdf(document.head(WITHIN)):
        raise NotAPdf


def version(document: Descriptor) -> str | None:
    """Return the version of PDF that the header names, like ``1.7``."""
    found = _VERSION.search(document.head(WITHIN))
    return None if found is None else found[1].decode()
