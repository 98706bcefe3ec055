"""What became of a file: read by `extract`, and held against what was wanted."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdfpool_django.errors import PdfPoolError
from pdfpool_django.extraction import extract

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared"

_UNWELCOME = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_callers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """The result of one extraction, or its error, in the words that are compared."""

    text: str = ""
    complete: bool = False
    raised: str | None = None
    codes: frozenset[str] = frozenset()
    """Of the error raised, or of those in the result."""
    warnings: frozenset[str] = frozenset()
    page_count: int = 0
    labels: tuple[str, ...] = ()
    unclean: tuple[str, ...] = ()
    """Strings of the result that other systems refuse."""


def outcome_of(source: Any, **options: Any) -> Outcome:
    """Read a file as a caller of its own."""
    try:
        extraction = extract(source, caller=f"hostile {next(_callers)}", **options)
    except PdfPoolError as error:
        unclean = tuple(unclean_in(str(error)))
        return Outcome(raised=error.code, codes=frozenset({error.code}), unclean=unclean)
    errors = [extraction.error, *(page.error for page in extraction.pages)]
    warnings = list(extraction.warnings)
    for page in extraction.pages:
        warnings += page.warnings
    data = extraction.as_dict()
    json.dumps(data, allow_nan=False).encode("utf-8")
    return Outcome(
        text=extraction.text,
        complete=extraction.complete,
        codes=frozenset(error["code"] for error in errors if error is not None),
        warnings=frozenset(warning["code"] for warning in warnings),
        page_count=extraction.page_count,
        labels=tuple(page.label for page in extraction.pages),
        unclean=tuple(unclean_in(data)),
    )


def unclean_in(value: Any) -> Iterator[str]:
    """Yield the strings of a value that have what PostgreSQL, XML or UTF-8 refuse."""
    if isinstance(value, str) and _UNWELCOME.search(value):
        yield value[:100]
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from unclean_in(key)
            yield from unclean_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from unclean_in(each)
