"""Reading where there is no server: task workers, test workers, and forked processes."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.meeting import Meeting, meeting
from tests.server.scenario import (
    OURS_LIMIT,
    STEP_LIMIT,
    Background,
    assert_finished,
    assert_stops,
    script,
    waiting,
    watching_the_django_process,
)
from tests.server.servers import UVICORN, Server, gunicorn
from tests.server.site import (
    ROOT,
    Site,
    descendants,
    environment,
    serve,
    stop,
    wait_until_gone,
    watched,
)

TEXT = "text of page 1\ftext of page 2"

TINY_TESTS = f"""
import os

import pytest

from pdfpool_django.extraction import extract
from tests.server.meeting import report


@pytest.mark.parametrize("number", [1, 2])
def test_reads(number):
    text = extract({script("in a test")!r}, caller="test").text
    report(text=text, worker=os.environ["PYTEST_XDIST_WORKER"])
"""

needs_celery = pytest.mark.skipif(
    importlib.util.find_spec("celery") is None, reason="Celery is not installed"
)
needs_xdist = pytest.mark.skipif(
    importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed"
)


@contextlib.contextmanager
def program(surroundings: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=surroundings)
    try:
        yield process
    finally:
        stop(process)


# A site that forks


@pytest.mark.parametrize("server", [gunicorn("gthread"), UVICORN], ids=str)
def test_a_site_may_fork_while_a_job_runs(
    server: Server, tmp_path: Path, database: Path, background: Background
) -> None:
    with serve(tmp_path, "tests.server.forking_settings", server, database) as site:
        client = site.client()
        answer = background(client.extract, waiting("the parent's"))
        child = site.await_page()
        for task in ("exit", "leave"):
            assert client.open(f"/fork/{task}/").json == {"nothing_left": True}
        assert client.open("/fork/read/").json == {"text": TEXT, "nothing_left": True}
        os.kill(child, signal.SIGUSR1)
        assert_finished(answer)
        assert_stops(site)


# Celery


class Worker:
    """A Celery worker with one process for its tasks."""

    def __init__(self, surroundings: dict[str, str], met: Meeting, site: Site) -> None:
        self._surroundings = surroundings
        self._met = met
        self.site = site

    def send(self, document: bytes) -> None:
        arguments = json.dumps([document.decode()])
        subprocess.run(
            [
                *(sys.executable, "-m", "celery", "-A", "tests.server.celery_tasks"),
                *("call", "tests.server.celery_tasks.read", "--args", arguments),
            ],
            cwd=ROOT,
            env=self._surroundings,
            check=True,
        )

    def assert_reads(self) -> None:
        self.send(script("short"))
        with self._met.next() as message:
            assert message["text"] == TEXT


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with meeting() as met:
        surroundings = environment(tmp_path / "none", "tests.server.settings") | met.environment
        surroundings["TEST_BROKER"] = str(tmp_path)
        arguments = (
            *("-m", "celery", "-A", "tests.server.celery_tasks", "worker", "--pool", "prefork"),
            *("--concurrency", "1", "--without-gossip", "--without-mingle"),
        )
        with program(surroundings, *arguments) as process:
            yield Worker(surroundings, met, Site(process, "", Server("celery", ())))


@needs_celery
def test_a_celery_worker_reads_again_and_again_also_after_a_kill_and_leaves_nothing(
    worker: Worker,
) -> None:
    worker.assert_reads()
    worker.assert_reads()
    worker.send(waiting("cut"))
    worker.site.await_page()
    with watching_the_django_process(worker.site):
        os.kill(worker.site.django_pid(), signal.SIGKILL)
    worker.assert_reads()
    assert worker.site.ours(), "a launcher"
    assert_stops(worker.site)


# pytest-xdist


@needs_xdist
def test_workers_of_pytest_xdist_read_each_on_its_own_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_tiny.py").write_text(TINY_TESTS)
    with meeting() as met:
        surroundings = environment(tmp_path / "none", "tests.server.settings") | met.environment
        surroundings["PYTHONPATH"] = str(ROOT)
        arguments = ("-m", "pytest", "-n", "2", "-p", "no:cacheprovider", str(tmp_path))
        with program(surroundings, *arguments) as process, contextlib.ExitStack() as stack:
            with met.next() as one, met.next() as other:
                assert {one["worker"], other["worker"]} == {"gw0", "gw1"}
                assert one["text"] == other["text"] == TEXT
                below = descendants(process.pid)
                assert len(below) >= 4, "two workers and their launchers"
                fds = stack.enter_context(watched(below))
            assert process.wait(STEP_LIMIT) == 0
            assert wait_until_gone(fds, OURS_LIMIT) == 0
