"""What is asked of a site under every server."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from pdfpool_django import errors
from tests.server.client import Answer
from tests.server.site import Site, await_truth, wait_until_gone, watched

STEP_LIMIT = 20
OURS_LIMIT = 1.0

CODES = {error.code for error in errors.PdfPoolError.__subclasses__()}

Background = Callable[..., Future[Answer]]


def script(name: str, **at: str) -> bytes:
    """Return a document for the scripted engine: what happens on which page."""
    pages = {page.removeprefix("page_"): act for page, act in at.items()}
    return json.dumps({"header": "%PDF-", "name": name, "pages": 2, "at": pages}).encode()


def waiting(name: str) -> bytes:
    """Return a document whose second page waits for a signal."""
    return script(name, page_2="waits_for_a_signal")


def assert_reads(site: Site, user: str = "demo") -> None:
    answer = site.client(user).extract(script("short"))
    assert answer.status == 200, answer.text
    assert [page["text"] for page in answer.json["pages"]] == ["text of page 1", "text of page 2"]


def assert_reads_as_text(site: Site) -> None:
    answer = site.client().extract(script("plain"), accept="text/plain")
    assert answer.status == 200, answer.text
    assert answer.text == "text of page 1\ftext of page 2"


def assert_waits_for_its_page(site: Site, background: Background) -> None:
    answer = background(site.client().extract, waiting("alone"))
    os.kill(site.await_page(), signal.SIGUSR1)
    assert_finished(answer)


def assert_shares_one_job(site: Site, background: Background) -> None:
    users = [site.client(name) for name in ("demo", "other")]
    before = details(site)
    answers = [background(user.extract, waiting("shared")) for user in users]
    child = site.await_page()
    await_truth(lambda: details(site)["joined"] == before["joined"] + 1, "nobody has joined")
    os.kill(child, signal.SIGUSR1)
    for answer in answers:
        assert_finished(answer)
    assert details(site)["children_used"] == before["children_used"] + 1


def details(site: Site) -> dict[str, int]:
    found = site.state()["details"]
    assert isinstance(found, dict)
    return found


def assert_finished(call: Future[Answer]) -> None:
    answer = call.result(STEP_LIMIT)
    assert answer.status == 200, answer.text
    assert answer.json["complete"], answer.text
    assert answer.json["pages"][1]["text"].endswith("after the signal")


def assert_told(call: Future[Answer]) -> None:
    """Check that a client got an answer, an error of the table, or a cut connection."""
    try:
        answer = call.result(STEP_LIMIT)
    except (OSError, http.client.HTTPException):
        return
    if answer.status == 200:
        assert answer.json["complete"] or answer.json["error"]["code"] in CODES, answer.text
    else:
        assert answer.headers["Content-Type"] == "application/problem+json", answer.text
        assert answer.json["code"] in CODES


@contextlib.contextmanager
def watching_the_django_process(site: Site) -> Iterator[None]:
    """Check that the process that serves ends in the block, and what is ours right after it."""
    ours = site.ours()
    assert len(ours) >= 2, "a launcher and a child"
    with watched([site.django_pid()]) as django, watched(ours) as rest:
        yield
        assert wait_until_gone(django, STEP_LIMIT) == 0, "the process that serves lives on"
        assert wait_until_gone(rest, OURS_LIMIT) == 0, "ours live on"


def assert_stops(site: Site, number: int = signal.SIGTERM) -> None:
    """Stop the site, and see every process of it and of ours gone."""
    with watched(site.everything()) as fds:
        site.process.send_signal(number)
        assert wait_until_gone(fds, STEP_LIMIT) == 0
