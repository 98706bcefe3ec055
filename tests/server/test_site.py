"""The example site under gunicorn, as its users and its host see it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from scripts.pdf_builder import simple_pdf
from tests.server.client import Answer, SiteClient
from tests.server.site import Site, serve, wait_until_gone, watched

STEP_LIMIT = 20


def script(name: str, **at: str) -> bytes:
    """Return a document for the scripted engine: what happens on which page."""
    pages = {page.removeprefix("page_"): act for page, act in at.items()}
    return json.dumps({"header": "%PDF-", "name": name, "pages": 5, "at": pages}).encode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve(tmp_path_factory.mktemp("site"), "example_project.settings") as served:
        yield served


@pytest.fixture
def scripted(tmp_path: Path, database: Path) -> Iterator[Site]:
    with serve(tmp_path, "tests.server.settings", database=database) as served:
        yield served


def until(site: Site, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask for the pool's state until it is as wanted: there is no event to wait on over HTTP."""
    client = site.client()
    pause = threading.Event()
    for _ in range(STEP_LIMIT * 50):
        state: dict[str, Any] = client.open("/pdf/status/").json
        if condition(state):
            return state
        pause.wait(0.02)
    raise AssertionError(f"the pool never came to be as wanted: {state}")


def in_child(state: dict[str, Any]) -> bool:
    """Whether a job runs and has its child, which then heeds the signal."""
    running: int = state["running"]
    return running == 1 and state["details"]["children_used"] >= 1


def test_a_document_gives_its_text_as_json_and_as_plain_text(site: Site) -> None:
    client = site.client()
    data = simple_pdf("First page", "Second page", info={"Title": "Two"})
    as_json = client.extract(data)
    assert as_json.status == 200, as_json.text
    assert [page["text"].strip() for page in as_json.json["pages"]] == ["First page", "Second page"]
    assert as_json.json["metadata"] == {"title": "Two"}
    as_text = client.extract(data, accept="text/plain", pages="2")
    assert as_text.text.strip() == "Second page"
    assert as_text.headers["Pdfpool-Complete"] == "true"


def test_the_page_for_people_answers_with_the_text(site: Site) -> None:
    answer = site.client().upload(simple_pdf("A <b>bold</b> claim"))
    assert answer.status == 200
    assert "A &lt;b&gt;bold&lt;/b&gt; claim" in answer.text


def test_strangers_are_sent_to_log_in(site: Site) -> None:
    stranger = SiteClient(site.base)
    assert "Log in" in stranger.open("/").text
    answer = stranger.open("/pdf/extract/", b"%PDF-", Content_Type="application/pdf")
    assert answer.status == 401
    assert answer.json["code"] == "not_authenticated"
    assert answer.headers["WWW-Authenticate"]


def test_identical_uploads_at_once_share_one_child(
    scripted: Site, background: Callable[..., Future[Answer]]
) -> None:
    document = script("shared", page_2="waits_for_a_signal")
    answers = [
        background(scripted.client(name).extract, document) for name in ("demo", "other", "third")
    ]
    state = until(scripted, lambda state: state["details"]["joined"] == 2 and in_child(state))
    assert state["running"] == 1
    scripted.await_page()
    scripted.release()
    assert {answer.result(STEP_LIMIT).status for answer in answers} == {200}
    details = scripted.state()["details"]
    assert isinstance(details, dict)
    assert details["children_used"] == 1


def test_beyond_slots_and_queue_is_busy_and_a_second_document_is_one_too_many(
    scripted: Site, background: Callable[..., Future[Answer]]
) -> None:
    document = script("one", page_1="waits_for_a_signal")
    running = background(scripted.client("demo").extract, document)
    until(scripted, in_child)
    refused = scripted.client("demo").extract(script("two"))
    assert refused.status == 429
    assert refused.json["code"] == "caller_busy"
    assert int(refused.headers["Retry-After"]) >= 1
    waiting = background(scripted.client("other").extract, script("three"))
    until(scripted, lambda state: state["queued"] == 1)
    refused = scripted.client("third").extract(script("four"))
    assert refused.status == 503
    assert refused.json["code"] == "busy"
    assert int(refused.headers["Retry-After"]) >= 1
    scripted.await_page()
    scripted.release()
    assert running.result(STEP_LIMIT).json["complete"]
    assert waiting.result(STEP_LIMIT).json["complete"]


def test_nothing_of_ours_outlives_a_killed_site_by_a_second(
    scripted: Site, background: Callable[..., Future[Answer]]
) -> None:
    background(scripted.client().extract, script("long", page_1="hangs"))
    until(scripted, in_child)
    worker, *ours = scripted.descendants()
    assert len(ours) >= 2, "a launcher and a child"
    with watched(ours) as fds:
        os.kill(worker, signal.SIGKILL)
        assert wait_until_gone(fds, 1.0) == 0


def test_stopping_the_site_leaves_nothing(scripted: Site) -> None:
    assert scripted.client().extract(script("short")).status == 200
    ours = scripted.descendants()
    with watched(ours) as fds:
        scripted.process.terminate()
        assert wait_until_gone(fds, STEP_LIMIT) == 0
