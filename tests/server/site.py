"""Starting the example site as a process of its own, and watching what becomes of it."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.server.client import SiteClient
from tests.server.servers import GUNICORN, Server

ROOT = Path(__file__).resolve().parent.parent.parent
USERS = ("demo", "other", "third")
START_LIMIT = 30
PAGE_LIMIT = 20
POLL_SECONDS = 0.02


class Site:
    """A site that is being served."""

    def __init__(
        self, process: subprocess.Popen[bytes], base: str, server: Server = GUNICORN
    ) -> None:
        self.process = process
        self.base = base
        self.server = server
        self._staff: SiteClient | None = None

    def client(self, name: str = "demo") -> SiteClient:
        client = SiteClient(self.base)
        client.log_in(name, name)
        return client

    def state(self) -> dict[str, object]:
        if self._staff is None:
            self._staff = self.client()
        state: dict[str, object] = self._staff.open("/pdf/status/").json
        return state

    def descendants(self) -> list[int]:
        """Return the worker, its launcher, and the children."""
        return descendants(self.process.pid)

    def release(self) -> None:
        """Let documents go on that wait for a signal; it would end a launcher that starts."""
        for pid in self.at_their_page():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)

    def django_pid(self) -> int:
        """Return the process that serves; what is below it is ours."""
        pid = self.process.pid
        for _ in range(self.server.levels_above):
            (pid,) = children(pid)
        return pid

    def ours(self) -> list[int]:
        """Return the launcher and the children of the process that serves."""
        return descendants(self.django_pid())

    def everything(self) -> list[int]:
        return [self.process.pid, *self.descendants()]

    def await_page(self) -> int:
        """Return the child that waits for a signal at its page, once there is one."""
        waiting: list[int] = []

        def found() -> bool:
            waiting[:] = self.at_their_page()
            return bool(waiting)

        await_truth(found, "no child has come to its page")
        return waiting[0]

    def at_their_page(self) -> list[int]:
        """Return the children that wait for a signal at their page.

        A server with one request at a time cannot be asked how its job is; that the child has
        installed its handler can be seen from outside.
        """
        # Below the launcher: before its exec it, too, has a handler, the server's own.
        of_ours, parent_of, serving = self.ours(), parents(), self.django_pid()
        return [
            pid for pid in of_ours if parent_of.get(pid) != serving and handles(pid, signal.SIGUSR1)
        ]


def await_truth(condition: Callable[[], object], otherwise: str) -> None:
    """Ask again and again, where nothing tells of the change."""
    until = time.monotonic() + PAGE_LIMIT
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until, otherwise
        pause.wait(POLL_SECONDS)


def handles(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def parents() -> dict[int, int]:
    """Return the parent of each process there is.

    Read from each process: the list that a thread has of its children may lack one while another
    of them ends.
    """
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                # The name, in parentheses, may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = int(fields[1])
    return found


def children(pid: int) -> list[int]:
    return [child for child, parent in parents().items() if parent == pid]


def descendants(pid: int) -> list[int]:
    """Return the processes below a process, those nearest to it first."""
    parent_of, found, above = parents(), [], {pid}
    while above := {child for child, parent in parent_of.items() if parent in above}:
        found += sorted(above)
    return found


def wait_until_gone(pidfds: list[int], seconds: float) -> int:
    """Wait for processes to end; return how many are left when the time is up."""
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for fd in pidfds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fd)
        return len(selector.get_map())


@contextlib.contextmanager
def watched(pids: list[int]) -> Iterator[list[int]]:
    """Give a descriptor for each process, which becomes readable at its end."""
    fds = []
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended since it was found
                fds.append(os.pidfd_open(pid))
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def manage(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, check=True)


def environment(database: Path, settings: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": settings,
        "EXAMPLE_DATABASE": str(database),
    }


def make_database(path: Path, settings: str) -> Path:
    """Make the database of a site with its users in it."""
    surroundings = environment(path, settings)
    manage(surroundings, "migrate", "--verbosity", "0")
    make_users = (
        "from django.contrib.auth import get_user_model\n"
        f"for name in {USERS!r}:\n"
        "    get_user_model().objects.create_user(name, password=name, is_staff=True)"
    )
    manage(surroundings, "shell", "--verbosity", "0", "-c", make_users)
    return path


@contextlib.contextmanager
def serve(
    folder: Path, settings: str, server: Server = GUNICORN, database: Path | None = None
) -> Iterator[Site]:
    """Serve the example site from a database of its own, and end it."""
    own = folder / "db.sqlite3"
    if database is None:
        make_database(own, settings)
    else:
        shutil.copyfile(database, own)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # The server inherits the socket, so no port can be taken by another meanwhile.
        process = subprocess.Popen(
            [sys.executable, *server.command(listener.fileno())],
            cwd=ROOT,
            env=environment(own, settings),
            pass_fds=[listener.fileno()],
        )
        port = listener.getsockname()[1]
    # Closed here: where the server is gone, its clients are told so.
    try:
        yield Site(process, f"http://127.0.0.1:{port}", server)
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(START_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
