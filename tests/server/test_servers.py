"""The same scenario, and the same ends, under every server."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server.scenario import (
    STEP_LIMIT,
    Background,
    assert_finished,
    assert_reads,
    assert_reads_as_text,
    assert_shares_one_job,
    assert_stops,
    assert_told,
    assert_waits_for_its_page,
    script,
    waiting,
    watching_the_django_process,
)
from tests.server.servers import (
    ASYNC_ASGI,
    ASYNC_PRELOADED,
    ASYNC_UVICORN,
    UVICORN,
    Server,
    gunicorns,
)
from tests.server.site import Site, await_truth, children, serve, wait_until_gone, watched

PLAIN = gunicorns([()])
GUNICORNS = gunicorns([(), ("--preload",)])
# Where a worker cannot end with a job in it, this is when gunicorn kills it.
IMPATIENT = gunicorns([("--timeout", "5")])
REPLACED = gunicorns([("--max-requests", "7")])


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path, database: Path) -> Iterator[Site]:
    with serve(tmp_path, request.param.settings, request.param, database) as served:
        yield served


def under(*servers: Server) -> Callable[..., object]:
    """Run a test once under each server."""
    return pytest.mark.parametrize("site", servers, indirect=True, ids=str)


@under(*GUNICORNS, UVICORN, ASYNC_ASGI, ASYNC_PRELOADED, ASYNC_UVICORN)
def test_documents_are_read_and_stopping_leaves_nothing(site: Site, background: Background) -> None:
    assert_reads(site)
    assert_reads_as_text(site)
    assert_waits_for_its_page(site, background)
    if site.server.shares:
        assert_shares_one_job(site, background)
    assert_stops(site)


@under(*GUNICORNS, UVICORN, ASYNC_ASGI, ASYNC_UVICORN)
def test_stopping_in_the_middle_of_a_job_tells_its_client_and_leaves_nothing(
    site: Site, background: Background
) -> None:
    answer = background(site.client().extract, waiting("never released"))
    site.await_page()
    with watching_the_django_process(site):
        assert_stops(site)
    assert_told(answer)


@under(*GUNICORNS)
def test_reloading_in_the_middle_of_a_job_lets_it_end_and_serves_on(
    site: Site, background: Background
) -> None:
    answer = background(site.client().extract, waiting("released"))
    child = site.await_page()
    with watching_the_django_process(site):
        site.process.send_signal(signal.SIGHUP)
        await_truth(lambda: len(children(site.process.pid)) == 2, "no new worker")
        os.kill(child, signal.SIGUSR1)
        assert_told(answer)
    assert_reads(site)


@under(*IMPATIENT, ASYNC_ASGI)
def test_reloading_in_the_middle_of_an_endless_job_ends_it_and_serves_on(
    site: Site, background: Background
) -> None:
    answer = background(site.client().extract, waiting("never released"))
    site.await_page()
    with watching_the_django_process(site):
        site.process.send_signal(signal.SIGHUP)
        await_truth(lambda: len(children(site.process.pid)) == 2, "no new worker")
    if site.server.shares:  # gunicorn itself answers for another that it aborts
        assert_told(answer)
    assert_reads(site)


@under(*GUNICORNS, UVICORN, ASYNC_ASGI, ASYNC_UVICORN)
def test_a_killed_process_takes_along_what_is_ours(site: Site, background: Background) -> None:
    answer = background(site.client().extract, waiting("cut"))
    site.await_page()
    with watching_the_django_process(site):
        os.kill(site.django_pid(), signal.SIGKILL)
    assert_told(answer)
    if site.server.levels_above:
        assert_reads(site, "other")


@under(*PLAIN, ASYNC_ASGI)
def test_a_killed_master_takes_along_its_worker_and_what_is_ours(
    site: Site, background: Background
) -> None:
    answer = background(site.client().extract, waiting("orphaned"))
    child = site.await_page()
    with watching_the_django_process(site):
        site.process.kill()
        site.process.wait(STEP_LIMIT)
        if not site.server.outlives_jobs:
            os.kill(child, signal.SIGUSR1)
            assert_finished(answer)
    assert_told(answer)


@under(*REPLACED)
def test_replaced_workers_leave_nothing_and_no_request_fails(site: Site) -> None:
    client = site.client()
    assert client.extract(script("first")).status == 200
    with watched(site.ours()) as first_launcher_and_children:
        for number in range(10):
            answer = client.extract(script(f"document {number}"))
            assert answer.status == 200, answer.text
        assert wait_until_gone(first_launcher_and_children, STEP_LIMIT) == 0
