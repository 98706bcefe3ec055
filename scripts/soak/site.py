"""The site: its processes, what each of them has, and its state as staff see it."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.fuzz.leftovers import resident
from tests.server.client import SiteClient
from tests.server.servers import GUNICORN
from tests.server.site import ROOT, environment, manage, parents, stop

SETTINGS = "scripts.soak.settings"
USERS = tuple(f"user{number}" for number in range(12))
START_LIMIT = 30.0


@dataclass(frozen=True)
class Processes:
    """The site's processes of one instant, by what they are."""

    workers: tuple[int, ...]
    launchers: tuple[int, ...]
    children: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        return self.workers + self.launchers + self.children


class Site:
    """The example site, served by gunicorn in a folder of its own."""

    def __init__(self, process: subprocess.Popen[bytes], base: str, folder: Path) -> None:
        self.process = process
        self.base = base
        self.folder = folder
        self._staff: SiteClient | None = None

    @property
    def log(self) -> Path:
        return self.folder / "site.log"

    @property
    def temporary(self) -> Path:
        """Where the site has its temporary files."""
        return self.folder / "temporary"

    def processes(self) -> Processes:
        parent_of = parents()

        def below(above: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(sorted(pid for pid, parent in parent_of.items() if parent in above))

        workers = below((self.process.pid,))
        launchers = below(workers)
        return Processes(workers, launchers, below(launchers))

    def client(self, user: str) -> SiteClient:
        client = SiteClient(self.base)
        client.log_in(user, user)
        return client

    def state(self) -> dict[str, Any]:
        """Return the state of the pool of the worker that happens to answer."""
        if self._staff is None:
            self._staff = self.client(USERS[0])
        state: dict[str, Any] = self._staff.open("/pdf/status/").json
        return state


def descriptors(pid: int) -> Counter[str]:
    """Return what a process has open, by kind."""
    found: Counter[str] = Counter()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found[_kind_of(os.readlink(f"/proc/{pid}/fd/{fd}"))] += 1
    return found


def _kind_of(target: str) -> str:
    """Return what a descriptor leads to, without the number or name that each has of its own."""
    return "a deleted file" if target.endswith(" (deleted)") else target.split(":")[0]


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def memory_of(pids: tuple[int, ...]) -> int:
    return sum(resident(pid) for pid in pids)


@contextlib.contextmanager
def served() -> Iterator[Site]:
    """Serve the site from a new folder, and end it."""
    with tempfile.TemporaryDirectory(prefix="pdfpool-soak-") as name:
        folder = Path(name)
        (folder / "temporary").mkdir()
        surroundings = environment(folder / "db.sqlite3", SETTINGS)
        surroundings["TMPDIR"] = str(folder / "temporary")
        _make_users(surroundings)
        site = _start(folder, surroundings)
        try:
            yield site
        finally:
            stop(site.process)


def _make_users(surroundings: dict[str, str]) -> None:
    manage(surroundings, "migrate", "--verbosity", "0")
    make_users = (
        "from django.contrib.auth import get_user_model\n"
        f"for name in {USERS!r}:\n"
        "    get_user_model().objects.create_user(name, password=name, is_staff=True)"
    )
    manage(surroundings, "shell", "--verbosity", "0", "-c", make_users)


def _start(folder: Path, surroundings: dict[str, str]) -> Site:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=256) as listener,
        (folder / "site.log").open("wb") as log,
    ):
        process = subprocess.Popen(
            [sys.executable, *GUNICORN.command(listener.fileno())],
            cwd=ROOT,
            env=surroundings,
            pass_fds=[listener.fileno()],
            stdout=log,
            stderr=log,
        )
        return Site(process, f"http://127.0.0.1:{listener.getsockname()[1]}", folder)


def faults_in(log: str) -> list[str]:
    """Return the last line of each traceback in a log, and how often it is there."""
    found = re.findall(r"^Traceback \(most recent.*\n(?: .*\n|\n)*?(\S.*)$", log, re.MULTILINE)
    return [f"{count} × {line[:200]}" for line, count in Counter(found).most_common()]


def await_workers(site: Site) -> None:
    """Wait until the site answers."""
    until = time.monotonic() + START_LIMIT
    while True:
        with contextlib.suppress(OSError):
            if SiteClient(site.base).open("/pdf/health/").status == 200:
                return
        if time.monotonic() > until:
            raise TimeoutError(f"the site does not answer; its log is {site.log.read_text()}")
        time.sleep(0.1)
