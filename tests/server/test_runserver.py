"""``manage.py runserver``, whose reloader ends and starts the process that serves."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.scenario import (
    STEP_LIMIT,
    Background,
    assert_reads,
    assert_reads_as_text,
    assert_shares_one_job,
    assert_told,
    assert_waits_for_its_page,
    waiting,
    watching_the_django_process,
)
from tests.server.servers import Server
from tests.server.site import (
    PAGE_LIMIT,
    ROOT,
    Site,
    await_truth,
    environment,
    wait_until_gone,
    watched,
)

RUNSERVER = Server("runserver", ("manage.py", "runserver", "127.0.0.1:0"))
ADDRESS = re.compile(rb"development server at (http://[\d.:]+)/")
RELOADER_SECONDS = 1


class DevelopmentSite(Site):
    """A site that says at each start where it is."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process, "", RUNSERVER)
        self._said = b""
        self.await_start()

    def await_start(self) -> None:
        await_truth(self.has_started, "the server has not started")

    def has_started(self, seconds: float = 0) -> bool:
        """Learn the new address where there is one."""
        assert self.process.stdout
        if select.select([self.process.stdout], [], [], seconds)[0]:
            self._said += os.read(self.process.stdout.fileno(), 4096)
        found = ADDRESS.search(self._said)
        if found is not None:
            self.base = found[1].decode()
            self._said = self._said[found.end() :]
        return found is not None

    def interrupt(self) -> None:
        """Do as a terminal does at Control-C."""
        os.killpg(self.process.pid, signal.SIGINT)


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    path = tmp_path / "watched_settings.py"
    path.write_text("from tests.server.settings import *\n")
    return path


@pytest.fixture
def site(tmp_path: Path, settings_file: Path, database: Path) -> Iterator[DevelopmentSite]:
    own = shutil.copyfile(database, tmp_path / "db.sqlite3")
    process = subprocess.Popen(
        [sys.executable, *RUNSERVER.command(-1)],
        cwd=ROOT,
        env=environment(own, settings_file.stem)
        | {"PYTHONPATH": str(settings_file.parent), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield DevelopmentSite(process)
    finally:
        # The reloader and what it has started are one group, and end together.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=PAGE_LIMIT)


def touch_until_reloaded(site: DevelopmentSite, path: Path) -> None:
    """Touch a file again and again: the reloader takes what it first sees for unchanged."""
    until = time.monotonic() + PAGE_LIMIT
    for number in range(PAGE_LIMIT):
        assert time.monotonic() < until, "the server was not reloaded"
        stamp = time.time() + number
        os.utime(path, (stamp, stamp))
        if site.has_started(2 * RELOADER_SECONDS):
            return


def test_documents_are_read_and_control_c_leaves_nothing(
    site: DevelopmentSite, background: Background
) -> None:
    assert_reads(site)
    assert_reads_as_text(site)
    assert_waits_for_its_page(site, background)
    assert_shares_one_job(site, background)
    with watched(site.everything()) as fds:
        site.interrupt()
        assert wait_until_gone(fds, STEP_LIMIT) == 0


def test_control_c_in_the_middle_of_a_job_leaves_nothing(
    site: DevelopmentSite, background: Background
) -> None:
    answer = background(site.client().extract, waiting("interrupted"))
    site.await_page()
    with watching_the_django_process(site):
        site.interrupt()
    assert_told(answer)


def test_reloading_in_the_middle_of_a_job_ends_it_and_serves_on(
    site: DevelopmentSite, settings_file: Path, background: Background
) -> None:
    answer = background(site.client().extract, waiting("cut"))
    site.await_page()
    with watching_the_django_process(site):
        touch_until_reloaded(site, settings_file)
    assert_told(answer)
    assert_reads(site)
