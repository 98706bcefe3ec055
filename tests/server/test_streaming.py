"""Lines arrive as pages are read, under every server that can send them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.scenario import OURS_LIMIT, STEP_LIMIT, assert_reads, details
from tests.server.sending import NDJSON, Sent
from tests.server.servers import GUNICORN, UVICORN, Server, gunicorn
from tests.server.site import Site, await_truth, serve, wait_until_gone, watched

SYNC, ASYNC = "tests.server.settings", "tests.server.async_settings"
BY_THREADS = [(GUNICORN, SYNC), (gunicorn("gevent"), SYNC)]
BY_TASKS = [(gunicorn("asgi"), ASYNC), (UVICORN, ASYNC)]


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path, database: Path) -> Iterator[Site]:
    server, settings = request.param
    with serve(tmp_path, settings, server, database) as served:
        yield served


def under(*servers: tuple[Server, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "site", servers, indirect=True, ids=[str(server) for server, _ in servers]
    )


def slow(name: str, pages: int = 4) -> bytes:
    """Return a document each of whose pages, but for the first, waits for a signal."""
    at = {str(page): "waits_for_each_signal" for page in range(2, pages + 1)}
    return json.dumps({"header": "%PDF-", "name": name, "pages": pages, "at": at}).encode()


def begun(sent: Sent) -> Sent:
    assert sent.line()["type"] == "document"
    assert sent.line()["number"] == 1
    return sent


@under((gunicorn("sync"), SYNC), *BY_THREADS, *BY_TASKS)
def test_each_page_arrives_before_the_next_one_is_let_go(site: Site) -> None:
    sent = Sent(site.client(), slow("slow"), NDJSON)
    assert sent.response.headers["Content-Type"] == NDJSON
    assert sent.response.headers["X-Accel-Buffering"] == "no"
    arrived, let_go = [], [time.monotonic()]
    begun(sent)
    arrived.append(time.monotonic())
    child = site.await_page()
    for number in (2, 3, 4):
        let_go.append(time.monotonic())
        os.kill(child, signal.SIGUSR1)
        assert sent.line()["number"] == number
        arrived.append(time.monotonic())
    assert sent.line()["type"] == "end"
    assert sent.response.read() == b""
    # Each between its own signal and the next page's.
    assert sorted(arrived + let_go) == [
        instant for pair in zip(let_go, arrived, strict=True) for instant in pair
    ]
    sent.go_away()


@under(*BY_THREADS, *BY_TASKS)
def test_who_joins_late_gets_the_earlier_pages_at_once(site: Site) -> None:
    early = begun(Sent(site.client(), slow("joined", 3), NDJSON))
    child = site.await_page()
    os.kill(child, signal.SIGUSR1)
    assert early.line()["number"] == 2
    late = begun(Sent(site.client("other"), slow("joined", 3), NDJSON))
    assert late.line()["number"] == 2
    os.kill(child, signal.SIGUSR1)
    assert [early.line()["type"] for _ in range(2)] == ["page", "end"]
    assert [late.line()["type"] for _ in range(2)] == ["page", "end"]
    early.go_away()
    late.go_away()


@under(*BY_THREADS)
def test_a_reader_that_has_gone_is_noticed_when_lines_are_sent_to_it(site: Site) -> None:
    sent = begun(Sent(site.client(), slow("gone"), NDJSON))
    child = site.await_page()
    with watched([child]) as fds:
        sent.go_away()
        # The first line after it is still taken by the kernel, which is told by the answer to it.
        os.kill(child, signal.SIGUSR1)
        await_truth(lambda: pages_read(site) == 2, "page 2 has not been read")
        os.kill(child, signal.SIGUSR1)
        assert wait_until_gone(fds, STEP_LIMIT) == 0, "page 4 still waits"
    await_truth(lambda: details(site)["tickets"] == 0, "a ticket is held")
    assert_reads(site)


def pages_read(site: Site) -> int:
    jobs = site.state()["jobs"]
    assert isinstance(jobs, list)
    return int(jobs[0]["pages"]) if jobs else 0


@pytest.mark.parametrize("accept", ["application/json", NDJSON])
@under(*BY_TASKS)
def test_a_client_that_disconnects_leaves_at_once(site: Site, accept: str) -> None:
    sent = Sent(site.client(), slow("left"), accept)
    if accept == NDJSON:
        begun(sent)
    with watched([site.await_page()]) as fds:
        sent.go_away()
        assert wait_until_gone(fds, OURS_LIMIT) == 0, "its child lives on"
    await_truth(lambda: not site.state()["running"], "its job runs on")
    assert details(site)["tickets"] == 0
    assert_reads(site)


@pytest.mark.parametrize("accept", ["application/json", NDJSON])
@under(*BY_TASKS)
def test_the_followers_of_one_that_disconnects_get_their_answer(site: Site, accept: str) -> None:
    document = slow("followed", 2)
    starter = Sent(site.client(), document, accept)
    child = site.await_page()
    followers = [Sent(site.client("other"), document), Sent(site.client("third"), document, NDJSON)]
    await_truth(lambda: details(site)["tickets"] == 3, "they have not joined")
    starter.go_away()
    await_truth(lambda: details(site)["tickets"] == 2, "the starter has not left")
    os.kill(child, signal.SIGUSR1)
    as_json, as_lines = (follower.answer() for follower in followers)
    assert as_json.json["complete"], as_json.text
    *_, page, end = (json.loads(line) for line in as_lines.body.splitlines())
    assert page["text"] == as_json.json["pages"][1]["text"] == "text of page 2, after the signal"
    assert end["complete"]
