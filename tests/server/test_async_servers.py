"""The asynchronous views under ASGI servers: waiting, leaving, and what that leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server.client import SiteClient
from tests.server.scenario import (
    assert_reads,
    details,
    script,
    waiting,
)
from tests.server.sending import NDJSON, Sent
from tests.server.servers import ASYNC_ASGI, ASYNC_UVICORN, Server
from tests.server.site import Site, await_truth, serve

WAITING = "tests.server.waiting_settings"

USERS = ("demo", "other", "third")
MANY = 200
JSON = "application/json"
REST_SECONDS = 2.0
"""Longer than an idle thread of the pool waits for its next job."""


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path, database: Path) -> Iterator[Site]:
    with serve(tmp_path, request.param.settings, request.param, database) as served:
        yield served


@pytest.fixture
def crowded(request: pytest.FixtureRequest, tmp_path: Path, database: Path) -> Iterator[Site]:
    with serve(tmp_path, WAITING, request.param, database) as served:
        yield served


def under(fixture: str, *servers: Server) -> Callable[..., object]:
    return pytest.mark.parametrize(fixture, servers, indirect=True, ids=str)


@under("site", ASYNC_ASGI, ASYNC_UVICORN)
def test_the_page_for_people_works(site: Site) -> None:
    answer = site.client().upload(script("for people"))
    assert answer.status == 200
    assert "text of page 2" in answer.text
    assert site.client().upload(b"no PDF").status == 415
    assert "Log in" in SiteClient(site.base).open("/pdf/").text


# Many that wait


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def threads_at_rest(pid: int) -> int:
    """Return the least there are within a while in which nobody asks for anything."""
    until, pause, least = time.monotonic() + REST_SECONDS, threading.Event(), threads(pid)
    while time.monotonic() < until:
        pause.wait(0.02)
        least = min(least, threads(pid))
    return least


def databases_open(site: Site, path: Path) -> int:
    """Return how often the process that serves has the database open."""
    folder, count = Path(f"/proc/{site.django_pid()}/fd"), 0
    for entry in folder.iterdir():
        with contextlib.suppress(OSError):
            count += Path(os.readlink(entry)) == path
    return count


def send_many(site: Site, document: Callable[[int], bytes], *accepted: str) -> list[Sent]:
    """Send requests of as many callers, which take turns in what they accept."""
    clients = [site.client(user) for user in USERS]
    return [
        Sent(
            clients[number % len(clients)],
            document(number),
            accepted[number % len(accepted)],
            X_Place=str(number),
        )
        for number in range(MANY)
    ]


def assert_waits_without_threads(site: Site, database: Path, at_rest: int) -> None:
    pid = site.django_pid()
    await_truth(lambda: details(site)["tickets"] == MANY, "not all of them wait")
    assert site.state()["running"] == 1
    # The slot's, and one for who is served meanwhile.
    await_truth(lambda: threads(pid) <= at_rest + 1 + 1, "there are more threads")
    await_truth(lambda: databases_open(site, database) == 0, "the database is open")
    print(f"{site.server}: {at_rest} threads at rest, {threads(pid)} with {MANY} waiting")


@under("crowded", ASYNC_ASGI, ASYNC_UVICORN)
def test_two_hundred_that_wait_for_one_job_hold_no_thread_and_no_database(
    crowded: Site, tmp_path: Path
) -> None:
    database = tmp_path / "db.sqlite3"
    assert_reads(crowded)
    at_rest = threads_at_rest(crowded.django_pid())
    assert databases_open(crowded, database) == 0
    sent = send_many(crowded, lambda number: waiting("for all"), JSON, NDJSON)
    assert_waits_without_threads(crowded, database, at_rest)
    os.kill(crowded.await_page(), signal.SIGUSR1)
    for each in sent:
        last = each.answer().body.splitlines()[-1]  # JSON is a single one
        assert json.loads(last)["complete"]
    assert details(crowded)["tickets"] == 0
    await_truth(lambda: databases_open(crowded, database) == 0, "the database is open")
    await_truth(lambda: threads(crowded.django_pid()) <= at_rest, "threads are left")


@under("crowded", ASYNC_ASGI, ASYNC_UVICORN)
def test_two_hundred_in_the_queue_hold_nothing_and_leave_it_when_they_disconnect(
    crowded: Site, tmp_path: Path
) -> None:
    database = tmp_path / "db.sqlite3"
    assert_reads(crowded)
    at_rest = threads_at_rest(crowded.django_pid())
    sent = send_many(crowded, lambda number: waiting(f"of {number}"), JSON)
    assert_waits_without_threads(crowded, database, at_rest)
    assert crowded.state()["queued"] == MANY - 1
    for each in sent:
        each.go_away()
    await_truth(lambda: details(crowded)["tickets"] == 0, "tickets are held")
    assert_reads(crowded)
    await_truth(lambda: databases_open(crowded, database) == 0, "the database is open")
    await_truth(lambda: threads(crowded.django_pid()) <= at_rest, "threads are left")
