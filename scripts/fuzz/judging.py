"""Whether what became of an input is an outcome of the table."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pdfpool_django.errors import ERROR_CLASSES, PdfPoolError
from pdfpool_django.model import Extraction

LIMITS = {
    "SLOTS": 2,
    "QUEUE": 8,
    "WAIT": 120,
    "DEADLINE": 5,
    "PAGE_DEADLINE": 2,
    "MEMORY": 192 * 1024 * 1024,
    "MAX_PAGES": 500,
    "MAX_OUTPUT": 4 * 1024 * 1024,
}
"""Settings under which inputs are read."""

LATE = 5.0
"""Seconds past its deadline after which an answer is late: a host has other things to do, too."""

_OF_REQUESTS = {"not_authenticated", "forbidden", "file_too_large", "page_out_of_range"}
_OF_HANDLES = {"closed", "invalid_pattern"}
_OURS = {"internal_error", "unavailable", "busy", "caller_busy"}
CODES = frozenset(ERROR_CLASSES) - _OF_REQUESTS - _OF_HANDLES - _OURS - {"wrong_password"}
"""What may be said of a document that is read whole, without a password, where there is room."""
PAGE_CODES = CODES | {"not_attempted"}

# What PostgreSQL, XML or UTF-8 refuse, and what is no text. A line and a tab are.
_UNWELCOME = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Verdict:
    """What became of an input."""

    outcome: str
    """``complete``, ``incomplete``, or the code that was raised."""
    complaints: tuple[str, ...] = ()
    """What is not as the table has it."""
    noted: tuple[str, ...] = ()
    """What is, and yet points to a fault of an engine: a crash, with its reason."""
    seconds: float = 0.0


def judge(read: Callable[[], Extraction], deadline: float = LIMITS["DEADLINE"]) -> Verdict:
    """Read an input, and say what became of it."""
    started = time.monotonic()
    try:
        extraction = read()
    except PdfPoolError as error:
        said: dict[str, Any] = dict(error.as_error())
        outcome, complaints = error.code, [*_of_codes([said], CODES), *_unclean(said)]
        noted = _crashes([said])
    except BaseException as error:  # noqa: BLE001 - whatever it is, no caller expects it
        outcome, complaints = "raised", [f"raised {type(error).__name__}: {error}"]
        noted = []
    else:
        outcome = "complete" if extraction.complete else "incomplete"
        complaints, noted = list(_of_result(extraction)), _crashes(_errors(extraction))
    seconds = time.monotonic() - started
    if seconds > deadline + LATE:
        complaints.append(f"took {seconds:.1f} s")
    return Verdict(outcome, tuple(complaints), tuple(noted), seconds)


def _of_result(extraction: Extraction) -> Iterator[str]:
    found = _errors(extraction)
    yield from _of_codes(found, PAGE_CODES)
    if extraction.complete == bool(found):
        yield f"complete is {extraction.complete}, with {len(found)} errors"
    data = extraction.as_dict()
    try:
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (ValueError, TypeError) as error:
        yield f"is no JSON: {error}"
    yield from _unclean(data)
    numbers = [page.number for page in extraction.pages]
    if numbers != list(range(1, extraction.page_count + 1)):
        yield f"has the pages {numbers[:20]} of {extraction.page_count}"


def _errors(extraction: Extraction) -> list[Any]:
    return [
        error
        for error in (extraction.error, *(page.error for page in extraction.pages))
        if error is not None
    ]


def _of_codes(errors: list[Any], allowed: frozenset[str]) -> Iterator[str]:
    for error in errors:
        if error["code"] not in allowed:
            yield f"{error['code']}: {error['detail']}"


def _crashes(errors: list[Any]) -> list[str]:
    return sorted({error["detail"] for error in errors if error["code"] == "crashed"})


def _unclean(value: Any) -> Iterator[str]:
    """Yield a complaint for each string that other systems refuse."""
    if isinstance(value, str):
        found = _UNWELCOME.search(value)
        if found is not None:
            yield f"has {found[0]!r} in {value[max(0, found.start() - 20) :][:60]!r}"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _unclean(key)
            yield from _unclean(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _unclean(each)
