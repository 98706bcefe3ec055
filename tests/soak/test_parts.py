"""What a soak takes for an answer of the table, for a cut that a kill explains, and for growth."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from pdfpool_django.errors import ERROR_CLASSES, PdfPoolError
from pdfpool_django.http import problem_response
from scripts.soak import report, site
from scripts.soak.asking import Asker, Question, Told, judged
from scripts.soak.chaos import CHILD, LAUNCHER, WORKER, Kill, Kills
from scripts.soak.watching import Sample, last_life

GOOD = Question("good", b"%PDF-", text="mine", sound=True)
PAGE = {"type": "page", "text": "mine", "error": None}
RESULT = {"complete": True, "error": None, "pages": [PAGE]}


def problem(error: PdfPoolError, question: Question = GOOD, **changes: Any) -> str:
    """Return what is wrong with the answer for an error, with this changed."""
    response = problem_response(error)
    headers = {"Content-Type": response["Content-Type"], "Retry-After": response.get("Retry-After")}
    headers |= changes.pop("headers", {})
    status = changes.pop("status", response.status_code)
    outcome, complaint = judged(question, status, headers, response.content)
    assert outcome == error.code
    return complaint


def result(value: Any, kind: str = "application/json", status: int = 200) -> tuple[str, str]:
    return judged(GOOD, status, {"Content-Type": kind}, json.dumps(value).encode())


def test_errors_of_documents_are_in_the_table() -> None:
    for code in ("busy", "caller_busy", "unavailable", "crashed"):
        error = ERROR_CLASSES[code](reason="r", retry_after=1)
        assert problem(error) == ""


def test_a_fault_of_ours_is_not() -> None:
    assert "internal_error" in problem(ERROR_CLASSES["internal_error"]())


def test_a_refusal_that_this_request_cannot_get_is_not() -> None:
    oversized = Question("oversized", b"", allowed=frozenset({"file_too_large"}))
    assert problem(ERROR_CLASSES["file_too_large"](limit=1), oversized) == ""
    assert problem(ERROR_CLASSES["busy"](), oversized) != ""


def test_another_status_is_not() -> None:
    assert "status" in problem(ERROR_CLASSES["busy"](retry_after=1), status=500)


def test_a_refusal_without_retry_after_is_not() -> None:
    error = ERROR_CLASSES["busy"](retry_after=1)
    assert "Retry-After" in problem(error, headers={"Retry-After": None})


def test_a_page_of_the_server_is_not() -> None:
    assert result("oops", "text/html", 502)[1] != ""


def test_a_result_is_an_answer() -> None:
    assert result(RESULT) == ("complete", "")


def test_anothers_text_is_none() -> None:
    other = {**RESULT, "pages": [{**PAGE, "text": "another's"}]}
    assert "another's text" in result(other)[1]


def test_an_incomplete_result_with_a_strange_error_is_none() -> None:
    strange = {**RESULT, "complete": False, "error": {"code": "internal_error"}}
    assert result(strange)[1] != ""


@pytest.mark.parametrize(
    ("lines", "outcome", "right"),
    [
        ([PAGE, {"type": "end", "complete": True, "error": None}], "complete", True),
        ([{**PAGE, "text": "x"}, {"type": "end", "complete": True}], "complete", False),
        ([PAGE], "unfinished", False),
        ([], "unfinished", False),
        ([{"type": "error", "code": "crashed"}], "crashed", True),
        ([{"type": "error", "code": "internal_error"}], "internal_error", False),
    ],
)
def test_a_stream_is_an_answer_if_it_ends(lines: list[Any], outcome: str, right: bool) -> None:
    body = b"\n".join(json.dumps(line).encode() for line in lines)
    found = judged(GOOD, 200, {"Content-Type": "application/x-ndjson"}, body)
    assert (found[0], found[1] == "") == (outcome, right)


# Cuts, and outcomes that need a kill


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """Answer one request with these bytes, and close."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                _read_request(connection)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def _read_request(connection: socket.socket) -> None:
    """Read all of it: an end with something unread breaks off what has been answered (RFC 1122)."""
    with connection.makefile("rb") as file:
        head = b"".join(iter(file.readline, b"\r\n"))
        length = re.search(rb"(?i)^content-length: (\d+)", head, re.MULTILINE)
        file.read(int(length[1]) if length else 0)


def asked(answer: bytes, kills: Kills) -> Told:
    with server(answer) as base:
        client: Any = SimpleNamespace(base=base, _jar=[], token="t")
        return Asker(client, kills).ask(GOOD)


def killed(*kinds: str, at: float | None = None) -> Kills:
    kills = Kills()
    for kind in kinds:
        instant = time.monotonic() + 0.05 if at is None else at
        kills.add(Kill(kind, instant - 0.1, instant + 0.1))
    return kills


HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n\r\n"
UNAVAILABLE = HEAD % b"503 x" + b'{"code": "unavailable", "detail": "d"}'
MEMORY = HEAD % b"422 x" + b'{"code": "memory_exceeded", "detail": "d"}'


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(b"", "cut"), (UNAVAILABLE, "unavailable"), (MEMORY, "memory_exceeded")],
)
@pytest.mark.parametrize("kills", [killed(), killed(WORKER, at=1.0)], ids=["no kill", "another"])
def test_what_only_a_kill_explains_is_a_complaint_without_one(
    answer: bytes, outcome: str, kills: Kills
) -> None:
    told = asked(answer, kills)
    assert told.outcome == outcome
    assert told.complaint


def test_a_killed_worker_explains_a_cut_and_a_killed_child_does_not() -> None:
    assert asked(b"", killed(WORKER)).complaint == ""
    assert asked(b"", killed(CHILD, LAUNCHER)).complaint != ""


@pytest.mark.parametrize("answer", [UNAVAILABLE, MEMORY])
def test_a_killed_child_explains_what_its_caller_is_told(answer: bytes) -> None:
    assert asked(answer, killed(CHILD)).complaint == ""


# Memory, percentiles, the plot, the log


def samples(*sizes: int, worker: int = 1, start: float = 0.0) -> list[Sample]:
    return [Sample(start + at, worker, size, 5, 7) for at, size in enumerate(sizes)]


def test_growth_is_the_last_workers_since_its_first_minute() -> None:
    life = last_life(samples(*[900] * 50) + samples(*range(100, 300), worker=2, start=50))
    assert life is not None
    assert (life.early, life.late, life.seconds) == (164, 294, 199)


def test_a_short_life_is_judged_from_its_first_third() -> None:
    life = last_life(samples(*range(30)))
    assert life is not None
    assert (life.early, life.late) == (14, 24)
    assert last_life([]) is None


def test_percentiles() -> None:
    assert report.percentiles([float(each) for each in range(101)]) == [50, 90, 99, 100]
    assert report.percentiles([2.0]) == [2.0] * 4
    assert report.percentiles([]) == [0.0] * 4


def test_the_plot_is_a_small_drawing_of_every_kill() -> None:
    kills = killed(CHILD, LAUNCHER, WORKER, at=100.0)
    drawn = report.plot(samples(*range(1000)), kills)
    assert len(drawn) < 20_000
    root = ElementTree.fromstring(drawn)
    assert len(root.findall("{*}polyline")) == 3
    assert len(re.findall(r'stroke-width="2"', drawn)) == 3


def test_a_table_has_each_outcome_and_kind() -> None:
    told = [Told("own", "complete", 0, 1), Told("bomb", "cut", 0, 2)]
    shown = report.tables(told, killed(WORKER), last_life(samples(1, 2, 3)))
    assert "| `complete` | 1 |  | 1 |" in shown
    assert "| `cut` | 1 | 1 |  |" in shown
    assert "| worker | 1 |" in shown


def test_faults_in_a_log_are_found() -> None:
    log = 'x\nTraceback (most recent call last):\n  File "a", line 1\n    f()\nKeyError: 7\ny\n' * 2
    assert site.faults_in(log) == ["2 × KeyError: 7"]
    assert site.faults_in("all is well\n") == []
