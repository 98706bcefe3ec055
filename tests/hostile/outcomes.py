"""What became of a file: read by `extract`, the view or the command, in the same words."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import Client

from pdfpool_django.errors import PdfPoolError
from pdfpool_django.extraction import extract
from tests.site.commands import run
from tests.site.web import post_raw

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


def by_extract(source: Any, **options: Any) -> Outcome:
    """Read a file as a caller of its own."""
    try:
        answer = extract(source, caller=f"hostile {next(_callers)}", **options).as_dict()
    except PdfPoolError as error:
        answer = dict(error.as_error())
    return _outcome(answer)


def by_view(client: Client, data: bytes) -> Outcome:
    """Post a file to the view."""
    response = post_raw(client, data)
    assert response.status_code < 500, response.content
    return _outcome(response.json())


def by_command(path: Path) -> Outcome:
    """Read a file by the command; its exit status must tell whether all of it was read."""
    answer = run(path, "--format", "json", "--no-progress")
    (said,) = json.loads(answer.out)
    found = _outcome(said if "pages" in said else said["error"])
    assert answer.status == (0 if found.complete else 1)
    return found


def _outcome(answer: dict[str, Any]) -> Outcome:
    """Return the outcome that an answer's JSON tells, which must be such as any parser takes."""
    json.dumps(answer, allow_nan=False).encode("utf-8")
    unclean = tuple(unclean_in(answer))
    if "pages" not in answer:
        code = answer["code"]
        return Outcome(raised=code, codes=frozenset({code}), unclean=unclean)
    pages = answer["pages"]
    errors = [answer["error"], *(page["error"] for page in pages)]
    warnings = [*answer["warnings"], *(each for page in pages for each in page["warnings"])]
    return Outcome(
        text="\f".join(page["text"] for page in pages),
        complete=answer["complete"],
        codes=frozenset(error["code"] for error in errors if error is not None),
        warnings=frozenset(warning["code"] for warning in warnings),
        page_count=answer["page_count"],
        labels=tuple(page["label"] for page in pages),
        unclean=unclean,
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
