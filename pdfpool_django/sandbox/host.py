"""The web process's side: one launcher, the standbys it has pushed, and the children in use."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

from pdfpool_django.errors import (
    Crashed,
    DeadlineExceeded,
    MemoryExceeded,
    OutputTooLarge,
    PdfPoolError,
    Unavailable,
    from_data,
)
from pdfpool_django.sandbox import platforms, wire

logger = logging.getLogger("pdfpool_django.sandbox")

START_SECONDS = 30.0
"""Seconds that a caller waits for a child at most, where its own time is not up before."""

RETRY_SECONDS = 1.0
"""Seconds between two tries at starting a launcher."""

REPORT_SECONDS = 1.0
"""Seconds that the end of a child's socket waits for the report of how it ended."""

_BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap.py")

_LAUNCHERS_TRIED = 2
_STDERR_CHUNK = 4096
_STDERR_LOGGED = 64 * 1024


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """How the children of a sandbox are made."""

    engine: str
    """Dotted name of the engine's module."""
    python: str
    """Path of the interpreter that runs the launcher."""
    memory: int
    """Address space of a child, in bytes."""
    cpu: float
    """Processor time of a child, in seconds."""
    standbys: int
    """Children forked ahead of need."""
    filtered: bool = True
    """Whether children may make only the system calls that reading needs, where that can be had."""
    images: bool = False
    """Whether children can decode pictures, where what that takes is installed."""


@dataclass(frozen=True, slots=True)
class ExitReport:
    """How a child ended, as its launcher saw it."""

    status: int
    """Exit status, or minus the signal's number."""
    peak: int
    """Largest resident memory, in bytes."""
    cpu: float
    """Processor time, in seconds."""


@dataclass(frozen=True, slots=True)
class SandboxStats:
    """A sandbox at one instant, and what it has done since it was made."""

    launcher_pid: int | None
    engine: str | None
    unfiltered: str | None
    """Why the children's system calls are not filtered; ``None`` where they are."""
    failing: bool
    """Whether the last document that asked for a child got none."""
    standbys: int
    launchers_started: int
    children_used: int
    children_ended: int
    endings: dict[str, int]
    """How many children ended how.

    Of those that this process has ended: ``done``, ``stopped``, or the code of
    the error that they were ended for. Of others a signal's name, or ``status N``.
    """


class ChildLost(Exception):
    """A child ended before its answer did.

    Attributes:
        error: What that says about the document, or ``None`` where it says
            nothing: the child was taken along by its launcher.
        killed: Whether it was ended by a SIGKILL that is not ours: the
            kernel's, out of memory, or somebody's, by which nothing is said.
    """

    def __init__(self, error: PdfPoolError | None, killed: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.killed = killed


class Child:
    """One child in use. Only `kill` may be called from another thread."""

    def __init__(
        self, launcher: _Launcher, child_id: int, pid: int, descriptors: list[int]
    ) -> None:
        self.id = child_id
        self.pid = pid
        self.report: ExitReport | None = None
        self._launcher = launcher
        self._sock = socket.socket(fileno=descriptors[0])
        self._pidfd = descriptors[1]
        self._decoder = wire.Decoder()
        self._closing = threading.Lock()
        self._asked = False
        self.killed_for: str | None = None

    def ask(
        self, call: str, arguments: dict[str, Any], deadline: float, fds: Iterable[int] = ()
    ) -> None:
        """Send a call; its answer is read with `receive`.

        Args:
            call: The call's name.
            arguments: What goes with it, as JSON has it.
            deadline: Instant (``time.monotonic``) at which the child is killed,
                for one that does not read.
            fds: Descriptors to hand over.

        Raises:
            ChildLost: The child is gone, or was killed.
        """
        descriptors = list(fds)
        message = {"call": call, "arguments": arguments, "descriptors": len(descriptors)}
        try:
            self._sock.settimeout(max(deadline - time.monotonic(), 1e-3))
            wire.send(self._sock, message, fds=descriptors)
        except TimeoutError as error:
            raise self._lost(DeadlineExceeded(seconds=0)) from error
        except OSError as error:
            raise self._gone() from error
        if not self._asked:
            self._asked = True
            # Only now: the launcher's waking must not delay the document.
            self._launcher.tell("taken", self.id)

    def receive(self, deadline: float, max_body: int) -> wire.Frame | None:
        """Return the next part of the answer, or ``None`` at its end.

        Args:
            deadline: Instant (``time.monotonic``) at which the child is killed.
            max_body: Bytes of a body; a larger one ends the child.

        Raises:
            ChildLost: The child is gone, or was killed for what it said or did not say.
            PdfPoolError: The child answers that the call failed.
        """
        self._decoder.max_body = max_body
        frame = self._next_frame(deadline)
        kind = frame.message.get("type")
        if kind == "part" and isinstance(frame.message.get("part"), dict):
            return wire.Frame(frame.message["part"], frame.body, frame.size)
        if kind == "end":
            return None
        raise self._answered_error(frame.message)

    def _next_frame(self, deadline: float) -> wire.Frame:
        try:
            while (frame := self._decoder.next()) is None:
                self._decoder.feed(self._receive_some(deadline))
        except wire.BodyTooLarge as error:
            raise self._lost(OutputTooLarge(limit=self._decoder.max_body)) from error
        except wire.WireError as error:
            raise self._lost(Crashed(reason="its answer made no sense")) from error
        return frame

    def _receive_some(self, deadline: float) -> bytes:
        seconds = deadline - time.monotonic()
        if seconds <= 0:  # also for a child that never lets the socket run dry
            raise self._lost(DeadlineExceeded(seconds=0))
        try:
            self._sock.settimeout(seconds)
            data = self._sock.recv(64 * 1024)
        except TimeoutError as error:
            raise self._lost(DeadlineExceeded(seconds=0)) from error
        except OSError:
            data = b""  # ECONNRESET is an end like any other
        if not data:
            raise self._gone()
        return data

    def _answered_error(self, message: dict[str, Any]) -> Exception:
        """Return what the child's words mean, if they are words of ours."""
        kind = message.get("type")
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if kind == "error":
                error = from_data(message["error"])
                return self._lost(error) if isinstance(error, MemoryExceeded) else error
            if kind == "fault":
                return self._lost(Crashed(reason=str(message["fault"])[:300]))
        return self._lost(Crashed(reason="its answer made no sense"))

    def _lost(self, error: PdfPoolError) -> ChildLost:
        self.kill(error.code)
        return ChildLost(error)

    def _gone(self) -> ChildLost:
        """Return the loss of a child that has ended, with what its end says of its document."""
        self._launcher.await_report(self)
        if self._launcher.alive and self.alive():
            return self._lost(Crashed(reason="it closed its socket and lived on"))
        if self.report is None:
            return ChildLost(None)
        return ChildLost(_meaning(self.report), self.report.status == -signal.SIGKILL)

    def alive(self) -> bool:
        """Whether the child has not ended yet."""
        if self.report is not None:
            return False
        # A selector would cost more, or need a descriptor of its own.
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    def kill(self, reason: str = "stopped") -> None:
        """End the child now. Safe from any thread, and after its end."""
        with self._closing:
            if self._pidfd >= 0:
                self.killed_for = self.killed_for or reason
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """End the child and give its descriptors back."""
        self.kill("done")
        with self._closing:
            fd, self._pidfd = self._pidfd, -1
        if fd >= 0:
            self._sock.close()
            os.close(fd)

    def forget(self) -> None:
        """Close the descriptors without taking a lock: after a fork, or in a finalizer.

        The child sees the end of its socket, and ends.
        """
        self._launcher.in_use.pop(self.id, None)  # one step of the interpreter's, so without a lock
        with contextlib.suppress(OSError):
            os.close(self._sock.detach())
            os.close(self._pidfd)
        self._pidfd = -1


def _ending(status: int, killed_for: str | None) -> str:
    """Return what to call the end of a child."""
    if status == -signal.SIGKILL and killed_for is not None:
        return killed_for
    return f"status {status}" if status >= 0 else _signal_name(-status)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _meaning(report: ExitReport) -> PdfPoolError:
    """Return the error for a child that ended without an answer."""
    if report.status >= 0:
        return Crashed(reason=f"it ended with status {report.status} and no answer")
    number = -report.status
    if number in (signal.SIGKILL, signal.SIGABRT):
        # Not ours, so the kernel's, out of memory; native allocators abort at the limit.
        return MemoryExceeded()
    if number == signal.SIGXCPU:
        return DeadlineExceeded(seconds=report.cpu)
    return Crashed(reason=_signal_name(number))


class _Launcher:
    """One launcher process, and the thread that listens to it."""

    def __init__(
        self, config: SandboxConfig, condition: threading.Condition, endings: Counter[str]
    ) -> None:
        self.changed = condition
        self._endings = endings
        self.alive = True
        self.started_at = time.monotonic()
        self.died_at = 0.0
        self.follows_a_short_life = False
        self.engine: str | None = None
        self.unfiltered: str | None = None
        self.pushed = 0
        self.fork_failed_at = -RETRY_SECONDS
        self.standbys: deque[Child] = deque()
        self.in_use: dict[int, Child] = {}
        self._released: dict[int, Child] = {}
        """Those that have been killed, and not yet reported as ended."""
        self._stderr_logged = 0
        self._sock, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _spawn(config.python, theirs.fileno())
            except BaseException:
                self._sock.close()
                raise
        self.pid = self._process.pid
        self._greet(config)
        self._thread = threading.Thread(
            target=self._listen, name=f"pdfpool-launcher-{self.pid}", daemon=True
        )
        _launchers.add(self)
        try:
            self._thread.start()
        except BaseException:
            self._bury()
            raise

    @property
    def lived_shortly(self) -> bool:
        """Whether a launcher that has ended did so soon after its start."""
        return self.died_at - self.started_at < RETRY_SECONDS

    @property
    def failed(self) -> bool:
        """Whether one that has ended is not to be replaced at once.

        One that was killed is; one that gave no child, or is the second in a
        row to end soon, would only be followed by another such.
        """
        return self.pushed == 0 or (self.follows_a_short_life and self.lived_shortly)

    def _greet(self, config: SandboxConfig) -> None:
        hello = {
            "engine": config.engine,
            "path": [os.path.abspath(entry) for entry in sys.path],
            "memory": config.memory,
            "cpu": config.cpu,
            "standbys": config.standbys,
            "filtered": config.filtered,
            "images": config.images,
            "parent": os.getpid(),
        }
        with contextlib.suppress(OSError):  # dead already: the listener will see it
            wire.send(self._sock, hello)

    def take(self) -> Child | None:
        """Return a standby that lives, if there is one; called with `changed` held."""
        while self.standbys:
            child = self.standbys.popleft()
            if child.alive():
                self.in_use[child.id] = child
                return child
            child.close()
        return None

    def tell(self, kind: str, child_id: int = 0) -> None:
        with contextlib.suppress(OSError):  # dead: the listener will see it
            wire.send(self._sock, {"type": kind, "id": child_id})

    def await_report(self, child: Child) -> None:
        """Wait briefly until it is known how a child ended."""
        until = time.monotonic() + REPORT_SECONDS
        with self.changed:
            while child.report is None and self.alive:
                if not self.changed.wait(max(0, until - time.monotonic())):
                    return

    def release(self, child: Child) -> None:
        with self.changed:
            if self.in_use.pop(child.id, None) is not None and child.report is None:
                self._released[child.id] = child

    def close(self) -> None:
        """End the launcher and with it every child, and wait until they are gone."""
        with contextlib.suppress(OSError):
            # Only our half: the launcher ends what its children left behind, and itself.
            self._sock.shutdown(socket.SHUT_WR)
        if threading.current_thread() is self._thread:
            return
        self._thread.join(REPORT_SECONDS)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join(REPORT_SECONDS)

    def _listen(self) -> None:
        """Take in what the launcher and its children say; bury it at its end."""
        reader = wire.DescriptorReader(self._sock)
        try:
            self._listen_to_the_end(reader)
        except (OSError, wire.WireError) as error:
            # As when this process has no descriptor left to receive a child with.
            logger.error("the launcher cannot be listened to: %s", error)  # noqa: TRY400
        finally:
            reader.close()
            self._bury()

    def _listen_to_the_end(self, reader: wire.DescriptorReader) -> None:
        stderr: Any = self._process.stderr
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ)
            selector.register(stderr, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if stderr in ready and not self._drain(stderr):
                    selector.unregister(stderr)
                if self._sock in ready and not self._take_in(reader):
                    break

    def _take_in(self, reader: wire.DescriptorReader) -> bool:
        open_still = reader.read()
        with self.changed:
            for message, descriptors in reader.frames():
                self._handle(message, descriptors)
            self.changed.notify_all()
        return open_still

    def _handle(self, message: dict[str, Any], descriptors: list[int]) -> None:
        kind = message["type"]
        if kind == "ready":
            self.engine = message["engine"]
            self.unfiltered = message["unfiltered"]
        elif kind == "child":
            self.pushed += 1
            self.standbys.append(Child(self, message["id"], message["pid"], descriptors))
        elif kind == "exit":
            self._handle_exit(message)
        elif kind == "fork_failed":
            self.fork_failed_at = time.monotonic()
            logger.error("no child can be forked: %s", message["reason"])

    def _handle_exit(self, message: dict[str, Any]) -> None:
        status = message["status"]
        child = self._find(message["id"])
        self._endings[_ending(status, None if child is None else child.killed_for)] += 1
        if child is None:  # one that was forgotten
            return
        child.report = ExitReport(status, message["peak"], message["cpu"])
        if child in self.standbys:
            self.standbys.remove(child)
            child.close()

    def _find(self, child_id: int) -> Child | None:
        child = self.in_use.get(child_id) or self._released.pop(child_id, None)
        return child or next((each for each in self.standbys if each.id == child_id), None)

    def _drain(self, stderr: IO[bytes]) -> bool:
        """Read what was written to standard error; log its beginning, and drop the rest."""
        data = os.read(stderr.fileno(), _STDERR_CHUNK)
        if data and self._stderr_logged < _STDERR_LOGGED:
            self._stderr_logged += len(data)
            logger.debug("launcher %d: %s", self.pid, data.decode("utf-8", "backslashreplace"))
        return bool(data)

    def _bury(self) -> None:
        """End what is left of the launcher, and wake whoever waits for it."""
        self._process.kill()
        self._process.wait()
        with self.changed:
            self.alive = False
            self.died_at = time.monotonic()
            standbys, self.standbys = self.standbys, deque()
            self.changed.notify_all()
        for child in standbys:
            child.close()
        _launchers.discard(self)
        self._sock.close()
        self._process.stderr.close()  # type: ignore[union-attr]

    def forget(self) -> None:
        """Close every descriptor in a process that was forked; the launcher is not its own."""
        self.alive = False
        for child in (*self.standbys, *self.in_use.values()):
            child.forget()
        self.standbys.clear()
        with contextlib.suppress(OSError):
            os.close(self._sock.detach())
        self._process.stderr.close()  # type: ignore[union-attr]
        self._process.returncode = 0  # so that nobody here waits for another's child


def _spawn(python: str, fd: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the site's own interpreter and our own words
        [python, "-I", "-X", "utf8", _BOOTSTRAP, str(fd)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(fd,),
        cwd="/",
        env={"LC_ALL": "C.UTF-8", "PATH": os.defpath},
        start_new_session=True,
        bufsize=0,
    )


@dataclass(frozen=True, slots=True)
class _Patience:
    """How long somebody waits for a child."""

    until: float
    given_up: Callable[[], bool]

    def wait(self, changed: threading.Condition) -> None:
        seconds = self.until - time.monotonic()
        if seconds <= 0 or self.given_up():
            raise Unavailable()
        changed.wait(seconds)


class Sandbox:
    """Gives out children, each good for one document; starts its launcher on first use."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._changed = threading.Condition()
        self._launcher: _Launcher | None = None
        self._starting = False
        self._failed_at = -RETRY_SECONDS
        self._failing = False
        self._closed = False
        self._launchers_started = 0
        self._children_used = 0
        self._endings: Counter[str] = Counter()

    def child(self, deadline: float, given_up: Callable[[], bool] = lambda: False) -> Child:
        """Return a child that has read nothing yet; give it back with `release`.

        Args:
            deadline: Instant (``time.monotonic``) until which to wait for one.
            given_up: Tells, after each `wake`, whether there is no need to wait any more.

        Raises:
            Unavailable: There is none to be had, or it was given up.
        """
        until = min(deadline, time.monotonic() + START_SECONDS)
        try:
            child = self._child(_Patience(until, given_up))
        except Unavailable:
            if time.monotonic() < deadline and not given_up():  # else it was no fault of ours
                self._failing = True
            raise
        self._failing = False
        self._children_used += 1
        return child

    def wake(self) -> None:
        """Have those who wait for a child see whether they are to give up."""
        with self._changed:
            self._changed.notify_all()

    def _child(self, patience: _Patience) -> Child:
        for _ in range(_LAUNCHERS_TRIED):
            launcher = self._ready_launcher(patience)
            child = self._take(launcher, patience)
            if child is not None:
                return child
        raise Unavailable

    def _take(self, launcher: _Launcher, patience: _Patience) -> Child | None:
        with self._changed:
            child = launcher.take()
        if child is None:
            launcher.tell("want")
            child = self._await_standby(launcher, patience)
        return child

    def release(self, child: Child) -> None:
        """End a child that is not needed any more."""
        child.close()
        child._launcher.release(child)

    def stats(self) -> SandboxStats:
        """Return the sandbox's state at this instant."""
        with self._changed:
            launcher = self._launcher
            alive = launcher is not None and launcher.alive
            return SandboxStats(
                launcher_pid=launcher.pid if launcher and alive else None,
                engine=launcher.engine if launcher else None,
                unfiltered=launcher.unfiltered if launcher else None,
                failing=self._failing,
                standbys=len(launcher.standbys) if launcher else 0,
                launchers_started=self._launchers_started,
                children_used=self._children_used,
                children_ended=sum(self._endings.values()),
                endings=dict(self._endings),
            )

    def close(self) -> None:
        """End the launcher and every child; `child` is refused from now on."""
        with self._changed:
            self._closed = True
            launcher = self._launcher
            self._changed.notify_all()
        if launcher is not None:
            launcher.close()

    def _ready_launcher(self, patience: _Patience) -> _Launcher:
        """Return a live launcher; the first who finds none starts it, the others wait."""
        with self._changed:
            while self._starting:
                patience.wait(self._changed)
            self._refuse_if_closed()
            if self._launcher is not None and self._launcher.alive:
                return self._launcher
            if self._launcher is not None and self._launcher.failed:
                self._failed_at = max(self._failed_at, self._launcher.died_at)
            if time.monotonic() - self._failed_at < RETRY_SECONDS:
                raise Unavailable()
            self._starting = True
        return self._start()

    def _start(self) -> _Launcher:
        launcher, before = None, self._launcher
        try:
            launcher = _Launcher(self._config, self._changed, self._endings)
            launcher.follows_a_short_life = before is not None and before.lived_shortly
        except (OSError, RuntimeError, ValueError) as error:
            logger.error("the launcher cannot be started: %s", error)  # noqa: TRY400
            raise Unavailable() from error
        finally:
            with self._changed:
                self._starting = False
                self._launchers_started += 1
                self._launcher = launcher
                if launcher is None:
                    self._failed_at = time.monotonic()
                self._changed.notify_all()
        if self._closed:  # meanwhile, so that `close` has not seen this one
            launcher.close()
        self._refuse_if_closed()
        return launcher

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Unavailable("The service is shutting down; try again in a moment.")

    def _await_standby(self, launcher: _Launcher, patience: _Patience) -> Child | None:
        """Return the next standby, or ``None`` where the launcher has ended after a good start."""
        with self._changed:
            while (child := launcher.take()) is None:
                if not launcher.alive:
                    if launcher.pushed or self._closed:
                        return None
                    logger.error("the launcher ended before it could fork a child")
                    raise Unavailable()
                if time.monotonic() - launcher.fork_failed_at < RETRY_SECONDS:
                    raise Unavailable()
                patience.wait(self._changed)
            return child


_launchers: weakref.WeakSet[_Launcher] = weakref.WeakSet()


def _forget_launchers() -> None:
    """In a forked process: its parent's launchers are not its own."""
    for launcher in list(_launchers):
        launcher.forget()
    _launchers.clear()


def _close_launchers() -> None:
    for launcher in list(_launchers):
        launcher.close()


platforms.after_fork(_forget_launchers)
atexit.register(_close_launchers)
