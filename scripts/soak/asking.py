"""What clients ask of the site, and whether what they are told is in the table."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdfpool_django.errors import ERROR_CLASSES
from pdfpool_django.http import status_of
from scripts.fuzz.judging import CODES, PAGE_CODES
from scripts.fuzz.seeds import Input, Seeds
from scripts.hostile_builder import KINDS, LIMITS
from scripts.pdf_builder import simple_pdf
from scripts.soak.chaos import CHILD, LAUNCHER, WORKER, Kills
from scripts.soak.settings import MAX_UPLOAD
from tests.server.client import SiteClient, multipart

PATIENCE = 60.0
"""Seconds after which a request counts as not answered."""

SETTLING = 3.0
"""Seconds after a kill in which what it did may still be told: as that no child can be had yet."""

CUT = "cut"
VANISHED = "vanished"
UNSERVED = "incomplete_unavailable"
"""A result without some pages, as no child could be had for them."""

_JSON, _TEXT, _LINES = "application/json", "text/plain", "application/x-ndjson"
_REFUSALS = {"busy", "caller_busy", "unavailable"}
_OF_DOCUMENTS = CODES | {"page_out_of_range"} | _REFUSALS
_AFTER_KILLS = {"memory_exceeded", "crashed", "not_attempted"}


@dataclass(frozen=True)
class Told:
    """What a client got."""

    kind: str
    outcome: str
    """``complete``, ``incomplete``, a code, a status, ``cut`` or ``vanished``."""
    started: float
    ended: float
    complaint: str = ""

    @property
    def seconds(self) -> float:
        return self.ended - self.started


@dataclass(frozen=True)
class Question:
    """A request, and what may be answered."""

    kind: str
    body: bytes
    accept: str = _JSON
    query: str = ""
    allowed: frozenset[str] = frozenset(_OF_DOCUMENTS | {"complete", "incomplete"})
    text: str | None = None
    """What a complete result must have, and nobody else's has."""
    signed: bool = True
    """Whether it comes with the user's session."""
    vanishes: str = ""
    """When its client goes: ``sending``, ``sent`` or ``reading``; it stays where empty."""
    sound: bool = False
    """Whether its document can be read, so that an error needs a kill to explain it."""


class Questions:
    """Makes requests; those that are to be identical are so for a few seconds."""

    def __init__(self, seed: int) -> None:
        self._seeds = Seeds()
        self._invoice = Path("example_project/samples/invoice.pdf").read_bytes()
        self._lock = threading.Lock()
        self._numbers = itertools.count(seed * 1_000_000)
        self._cheap = [kind.build() for kind in KINDS if not kind.errors & LIMITS]
        self._costly = [kind.build() for kind in KINDS if kind.errors & LIMITS]
        self._makers: dict[Callable[[random.Random], Question], int] = {
            self._own: 20,
            self._identical: 20,
            self._sample: 10,
            self._hostile: 14,
            self._bomb: 3,
            self._damaged: 12,
            self._oversized: 5,
            self._senseless: 4,
            self._nobody: 3,
            self._vanishing: 12,
        }

    def any(self, dice: random.Random) -> Question:
        """Return a request of one kind or another."""
        (make,) = dice.choices(list(self._makers), list(self._makers.values()))
        return make(dice)

    def _number(self) -> int:
        with self._lock:
            return next(self._numbers)

    def _own(self, dice: random.Random) -> Question:
        text = f"number {self._number()} is mine"
        pages = [f"{text}, page {page}" for page in range(dice.choice((1, 1, 3, 10)))]
        # Large ones go to a temporary file on their way.
        data = simple_pdf(*pages) + b"%" * dice.choice((0, 0, 100_000))
        accept = dice.choice((_JSON, _JSON, _TEXT, _LINES))
        return Question("own", data, accept, text=text, sound=True)

    def _identical(self, dice: random.Random) -> Question:
        text = f"everybody's {int(time.monotonic()) // 5}"
        return Question(
            "identical",
            simple_pdf(*[text] * 60),
            dice.choice((_JSON, _LINES)),
            text=text,
            sound=True,
        )

    def _sample(self, dice: random.Random) -> Question:
        query = dice.choice(("", "", "?pages=1", "?pages=99"))
        return Question("sample", self._invoice, query=query)

    def _hostile(self, dice: random.Random) -> Question:
        return Question("hostile", self._fitting(dice.choice(self._cheap)))

    def _bomb(self, dice: random.Random) -> Question:
        return Question("bomb", self._fitting(dice.choice(self._costly)))

    def _fitting(self, data: bytes) -> bytes:
        return data[: MAX_UPLOAD - 1000]

    def _damaged(self, _: random.Random) -> Question:
        return Question("damaged", self._fitting(self._input().data or b"%"))

    def _input(self) -> Input:
        number = self._number()
        with self._lock:
            return self._seeds.input(number)

    def _oversized(self, dice: random.Random) -> Question:
        data = self._invoice + b"%" * (MAX_UPLOAD + dice.choice((1, 10_000, 3_000_000)))
        allowed = frozenset({"file_too_large", "caller_busy"})
        return Question("oversized", data, allowed=allowed)

    def _senseless(self, dice: random.Random) -> Question:
        body, query = dice.choice(((b"", ""), (b"no PDF at all", ""), (self._invoice, "?pages=x")))
        allowed = frozenset({"invalid_request", "not_a_pdf", "caller_busy", "busy"})
        return Question("senseless", body, query=query, allowed=allowed)

    def _nobody(self, _: random.Random) -> Question:
        return Question(
            "nobody", self._invoice, allowed=frozenset({"not_authenticated"}), signed=False
        )

    def _vanishing(self, dice: random.Random) -> Question:
        when = dice.choice(("sending", "sent", "reading"))
        data = dice.choice(
            (simple_pdf(*["slow"] * 200), dice.choice(self._costly), self._own(dice).body)
        )
        return Question(f"vanishing, {when}", self._fitting(data), _LINES, vanishes=when)


class Asker:
    """A user's client."""

    def __init__(self, client: SiteClient, kills: Kills) -> None:
        self._kills = kills
        base = urllib.parse.urlsplit(client.base)
        self._address = (str(base.hostname), int(base.port or 80))
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in client._jar)
        self._session = {"Cookie": cookies, "X-CSRFToken": client.token}

    def ask(self, question: Question) -> Told:
        """Send a request, and say what came of it."""
        started = time.monotonic()
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE)
        outcome, complaint = CUT, ""
        try:
            outcome, complaint = self._exchange(connection, question)
        except TimeoutError:
            outcome, complaint = "silence", f"no answer within {PATIENCE:g} s"
        except (OSError, http.client.HTTPException) as error:
            cut = f"the connection was cut, and no worker was killed: {error!r}"
        finally:
            connection.close()
        ended = time.monotonic()
        if outcome == CUT and not self._killed(started, ended, WORKER):
            complaint = cut
        if not complaint:
            complaint = self._unexplained(question, outcome, started, ended)
        return Told(question.kind, outcome, started, ended, complaint)

    def _killed(self, started: float, ended: float, *kinds: str) -> bool:
        # The kill is remembered once it is done, which its victim's clients may know earlier.
        for _ in range(20):
            if self._kills.within(started, ended, *kinds):
                return True
            time.sleep(0.05)
        return False

    def _unexplained(self, question: Question, outcome: str, started: float, ended: float) -> str:
        """Return a complaint where only a kill could explain the outcome, and there was none."""
        needs_kill = outcome in ("unavailable", UNSERVED) or (
            question.sound and (outcome in _AFTER_KILLS or outcome == "incomplete")
        )
        if needs_kill and not self._killed(started - SETTLING, ended, CHILD, LAUNCHER, WORKER):
            return f"{outcome} without a kill"
        return ""

    def _exchange(self, connection: http.client.HTTPConnection, asked: Question) -> tuple[str, str]:
        body, content_type = multipart(asked.body, {})
        headers = {"Accept": asked.accept, "Content-Type": content_type}
        if asked.signed:
            headers |= self._session
        path = f"/pdf/extract/{asked.query}"
        if asked.vanishes == "sending":
            connection.putrequest("POST", path)
            for name, value in (*headers.items(), ("Content-Length", str(len(body)))):
                connection.putheader(name, value)
            connection.endheaders(body[: len(body) // 2])
            return VANISHED, ""
        self._send(connection, path, body, headers)
        if asked.vanishes == "sent":
            return VANISHED, ""
        response = connection.getresponse()
        if asked.vanishes == "reading":
            response.readline()
            return VANISHED, ""
        return judged(asked, response.status, response.headers, response.read())

    def _send(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        body: bytes,
        headers: dict[str, str],
    ) -> None:
        try:
            connection.request("POST", path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # Refused by its size alone: the answer is there, though the body was not taken.
            if connection.sock is None:
                raise


def judged(asked: Question, status: int, headers: Any, body: bytes) -> tuple[str, str]:
    """Return the outcome of an answer, and what is wrong with it."""
    kind = headers["Content-Type"].partition(";")[0]
    if kind == "application/problem+json":
        return _judged_problem(asked, status, headers, json.loads(body))
    if status != 200:
        return str(status), f"answered {status} as {kind}: {body[:200]!r}"
    if kind == _TEXT:
        complete = headers["Pdfpool-Complete"] == "true"
        return _judged_result(asked, complete, [], body.decode())
    if kind == _LINES:
        return _judged_lines(asked, [json.loads(line) for line in body.splitlines()])
    result = json.loads(body)
    errors = [result["error"], *(page["error"] for page in result["pages"])]
    text = "\f".join(page["text"] for page in result["pages"])
    return _judged_result(asked, result["complete"], [each for each in errors if each], text)


def _judged_problem(asked: Question, status: int, headers: Any, problem: Any) -> tuple[str, str]:
    code = problem["code"]
    if code not in asked.allowed:
        return code, f"{code}, which is not for this request: {problem['detail']}"
    error_class = ERROR_CLASSES[code]
    if status != status_of(error_class()):
        return code, f"{code} with the status {status}"
    if error_class.retryable and not int(headers["Retry-After"] or 0) >= 1:
        return code, f"{code} without Retry-After"
    return code, ""


def _judged_lines(asked: Question, lines: list[Any]) -> tuple[str, str]:
    kinds = [line["type"] for line in lines]
    last: Any = lines[-1] if lines else {"type": "nothing"}
    if last["type"] == "error":
        code = last.get("code") or last.get("error", {}).get("code")
        return code, "" if code in asked.allowed else f"{code} in a stream: {last}"
    if last["type"] != "end":
        return "unfinished", f"a stream that ends with {kinds[-3:]}"
    pages = [line for line in lines if line["type"] == "page"]
    errors = [last.get("error"), *(page.get("error") for page in pages)]
    text = "\f".join(page["text"] for page in pages)
    return _judged_result(asked, last["complete"], [each for each in errors if each], text)


def _judged_result(
    asked: Question, complete: bool, errors: list[Any], text: str
) -> tuple[str, str]:
    outcome = "complete" if complete else "incomplete"
    codes = {error["code"] for error in errors}
    if "unavailable" in codes and not complete:
        outcome = UNSERVED
    strange = sorted(codes - PAGE_CODES - {"unavailable"})
    if {"complete", "incomplete"} - asked.allowed or strange:
        return outcome, f"{outcome} with {strange}, which is not for this request"
    if asked.text is not None and complete and asked.text not in text:
        return outcome, f"another's text: {text[:100]!r} for {asked.text!r}"
    return outcome, ""
