"""The launcher: a process that imports and warms an engine once, then forks children that have it.

It runs in an interpreter of its own, with one thread, and with nothing of the
site. The web process talks to it over one socket; its children are pushed
over that socket ahead of need.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from pdfpool_django.sandbox import child, seccomp, wire
from pdfpool_django.sandbox.limits import ChildLimits

REFILL_DELAY = 0.02
"""Seconds after a job's start at which its standby is replaced: not while it is busiest."""

_FOR_IMAGES = ("PIL",)
"""Packages that libraries load wherever they are installed, and only pictures need: 13 ms, 2 MB."""

RETRY_DELAY = 1.0
"""Seconds between two tries at what has failed."""


@dataclass(slots=True)
class _Child:
    id: int
    pid: int
    taken: bool = False


def main(sock: socket.socket, hello: dict[str, Any]) -> NoReturn:
    """Be the launcher that `hello` describes, until the web process ends."""
    _reset_signals()
    engine = _import_engine(hello["engine"], images=hello["images"])
    unfiltered = seccomp.why_unavailable() if hello["filtered"] else "it was not asked for"
    ready = {"engine": engine.identity, "pid": os.getpid(), "unfiltered": unfiltered}
    wire.send(sock, {"type": "ready", **ready})
    limits = ChildLimits(hello["memory"], hello["cpu"], filtered=unfiltered is None)
    launcher = _Launcher(sock, engine, limits, hello["standbys"], hello["parent"])
    try:
        launcher.run()
    finally:
        launcher.end()


def _reset_signals() -> None:
    """Undo what the site, or the one who started it, has ignored or blocked."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)


def _import_engine(name: str, *, images: bool) -> Any:
    if not images:
        for unwanted in _FOR_IMAGES:
            # So that importing it fails, as where it is not installed.
            sys.modules.setdefault(unwanted, None)  # type: ignore[arg-type]
    # Collecting while a thousand modules are made costs time; leaving it off, memory.
    gc.disable()
    engine = import_module(name).engine
    gc.enable()
    engine.warm()
    if images:
        engine.warm_images()
    gc.collect()
    gc.freeze()
    return engine


def _pidfd_of(pid: int) -> int:
    """Return a descriptor of a child; one that cannot be had ends the child."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


class _Launcher:
    def __init__(
        self,
        sock: socket.socket,
        engine: Any,
        limits: ChildLimits,
        standbys: int,
        parent: int,
    ) -> None:
        self._sock = sock
        self._engine = engine
        self._limits = limits
        self._standbys = standbys
        self._parent = parent
        self._reader = wire.DescriptorReader(sock)
        self._children: dict[int, _Child] = {}
        self._last_id = 0
        self._refill_at = 0.0
        self._retry_at = 0.0
        self._last_death = 0.0
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        # The socket alone is not enough: a process that the site forks may hold a copy of it.
        self._parent_fd = os.pidfd_open(parent)
        self._poll.register(self._parent_fd, select.POLLIN)

    def run(self) -> None:
        """Serve until the web process is gone."""
        while os.getppid() == self._parent:
            self._refill()
            for fd, _ in self._poll.poll(self._patience()):
                if fd == self._parent_fd:
                    return
                if fd in self._children:
                    self._reap(fd)
                elif not self._listen():
                    return

    def end(self) -> NoReturn:
        """Take every child along."""
        for fd, mine in self._children.items():
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.killpg(mine.pid, signal.SIGKILL)
        for mine in self._children.values():
            # Who inherits them may reap nobody, as a site that runs as process 1.
            with contextlib.suppress(OSError):
                os.waitpid(mine.pid, 0)
        os._exit(0)

    def _listen(self) -> bool:
        if not self._reader.read():
            return False
        for message, _ in self._reader.frames():
            if message["type"] == "taken":
                self._take(message["id"])
            else:
                self._refill_at = 0.0
        return True

    def _take(self, child_id: int) -> None:
        for mine in self._children.values():
            if mine.id == child_id:
                mine.taken = True
        self._refill_at = time.monotonic() + REFILL_DELAY

    def _missing(self) -> int:
        return self._standbys - sum(not mine.taken for mine in self._children.values())

    def _patience(self) -> float | None:
        """Return how many milliseconds may pass before the next fork is due."""
        if self._missing() <= 0:
            return None
        return max(0.0, self._due() - time.monotonic()) * 1000 + 1

    def _due(self) -> float:
        return max(self._refill_at, self._retry_at)

    def _refill(self) -> None:
        while self._missing() > 0 and time.monotonic() >= self._due():
            try:
                self._fork()
            except OSError as error:
                self._retry_at = time.monotonic() + RETRY_DELAY
                wire.send(self._sock, {"type": "fork_failed", "reason": str(error)})

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        # Asked here: the child's parent is another one if this process ends before it can ask.
        own_pid = os.getpid()
        with ours, theirs:
            pid = os.fork()
            if pid == 0:
                engine = self._engine
                child.run(theirs, engine.session, engine.rehearse, self._limits, own_pid)
            fd = _pidfd_of(pid)
            self._last_id += 1
            self._children[fd] = _Child(self._last_id, pid)
            self._poll.register(fd, select.POLLIN)
            message = {"type": "child", "id": self._last_id, "pid": pid, "descriptors": 2}
            wire.send(self._sock, message, fds=[ours.fileno(), fd])

    def _reap(self, fd: int) -> None:
        """Report how a child ended, and end what it may have left in its session."""
        mine = self._children.pop(fd)
        # While it is a zombie, its number cannot be another's.
        os.waitid(os.P_PID, mine.pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(mine.pid, signal.SIGKILL)
        _, status, usage = os.wait4(mine.pid, 0)
        self._poll.unregister(fd)
        os.close(fd)
        self._schedule_after(mine)
        message = {
            "type": "exit",
            "id": mine.id,
            "status": os.waitstatus_to_exitcode(status),
            "peak": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            "cpu": usage.ru_utime + usage.ru_stime,
        }
        wire.send(self._sock, message)

    def _schedule_after(self, mine: _Child) -> None:
        """Have the next standby forked at once, unless they die by themselves."""
        now = time.monotonic()
        self._refill_at = now
        if not mine.taken:
            if now - self._last_death < RETRY_DELAY:
                self._retry_at = now + RETRY_DELAY
            self._last_death = now
