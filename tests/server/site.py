"""Starting the example site as a process of its own, and watching what becomes of it."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.server.client import SiteClient

ROOT = Path(__file__).resolve().parent.parent.parent
USERS = ("demo", "other", "third")
START_LIMIT = 30


class Site:
    """A site that is being served."""

    def __init__(self, process: subprocess.Popen[bytes], base: str) -> None:
        self.process = process
        self.base = base

    def client(self, name: str = "demo") -> SiteClient:
        client = SiteClient(self.base)
        client.log_in(name, name)
        return client

    def state(self) -> dict[str, object]:
        state: dict[str, object] = self.client().open("/pdf/status/").json
        return state

    def descendants(self) -> list[int]:
        """Return the worker, its launcher, and the children."""
        return descendants(self.process.pid)

    def release(self) -> None:
        """Let documents go on that wait for a signal."""
        for pid in self.descendants()[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)


def descendants(pid: int) -> list[int]:
    """Return the processes below a process, from ``/proc``."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
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
    fds = [os.pidfd_open(pid) for pid in pids]
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def manage(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, check=True)


@contextlib.contextmanager
def serve(folder: Path, settings: str) -> Iterator[Site]:
    """Serve the example site from a fresh database, and end it."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": settings,
        "EXAMPLE_DATABASE": str(folder / "db.sqlite3"),
    }
    manage(environment, "migrate", "--verbosity", "0")
    make_users = (
        "from django.contrib.auth import get_user_model\n"
        f"for name in {USERS!r}:\n"
        "    get_user_model().objects.create_user(name, password=name, is_staff=True)"
    )
    manage(environment, "shell", "--verbosity", "0", "-c", make_users)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # The server inherits the socket, so no port can be taken by another meanwhile.
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn"),
                *("--config", "example_project/gunicorn.conf.py"),
                *("--bind", f"fd://{listener.fileno()}"),
            ],
            cwd=ROOT,
            env=environment,
            pass_fds=[listener.fileno()],
        )
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield Site(process, base)
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
