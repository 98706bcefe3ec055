"""Kills in every order at the moments that are hardest to get right.

Those are the handing over of a document, until its child has answered
anything, and the middle of an answer. The web process itself is killed, too.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from pdfpool_django import errors
from pdfpool_django.documents import Session
from pdfpool_django.model import Extraction
from pdfpool_django.sandbox import host
from pdfpool_django.sandbox.host import Child, Sandbox
from tests.sandbox.helpers import (
    Call,
    codes,
    eventually,
    make_sandbox,
    open_descriptors,
    processes_under,
    read,
    reads_again,
    refusals,
    sandbox_of,
    scripted,
    settle,
    standbys,
    start_program,
    watching,
)

GOOD = scripted(3)
TEXTS = ["text of page 1", "text of page 2", "text of page 3"]
COMPLETE = [None, None, None]

STANDBYS = 2


@pytest.fixture(autouse=True)
def launchers_are_killed_and_do_not_fail(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test after another kills them: each is to be replaced at once, however short its life."""
    if "launchers_that_die" not in request.node.name:
        monkeypatch.setattr(host, "RETRY_SECONDS", 0.02)


# Moments


@dataclass(frozen=True)
class Moment:
    """What is to be read, and how to see that it has come so far."""

    has_come: Callable[[Child], bool]
    at: dict[int, str] = field(default_factory=dict)
    password: str | None = None
    stopped: bool = False
    """Whether the child is stopped before, so that it takes nothing in."""


def unread(child: Child) -> int:
    """Return how much of what the child was sent it has not taken in (``man 7 unix``, SIOCOUTQ)."""
    answer = fcntl.ioctl(child._sock.fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
    return int(struct.unpack("i", answer)[0])


def is_being_sent(child: Child) -> bool:
    return not child._asked and unread(child) > 0


def is_sent(child: Child) -> bool:
    return child._asked and unread(child) > 0


def is_taken_in(child: Child) -> bool:
    return child._asked and unread(child) == 0


def has_half_of(page: int) -> Callable[[Child], bool]:
    beginning = b'"number":%d' % page
    return lambda child: beginning in child._decoder._data


def half_of(page: int) -> Moment:
    return Moment(has_half_of(page), {page: "answers_in_two_halves"})


MORE_THAN_A_SOCKET_HOLDS = "x" * 2_000_000

HANDING_OVER = {
    "being sent": Moment(is_being_sent, password=MORE_THAN_A_SOCKET_HOLDS, stopped=True),
    "sent": Moment(is_sent, stopped=True),
    "opening": Moment(is_taken_in, {0: "waits_for_a_signal"}),
}
ANSWERING = {"half of page 1": half_of(1), "half of page 2": half_of(2)}
MOMENTS = HANDING_OVER | ANSWERING


def kill_if_there(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended already, as with one killed before it."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_confined(pid: int) -> bool:
    """Whether a child has asked to end with its launcher, just before it gives up privileges."""
    return "\nNoNewPrivs:\t1\n" in Path(f"/proc/{pid}/status").read_text()


class Reading:
    """A document that is being read in a thread of its own.

    Its first children, as many as `held`, stay at the moment; later ones go on.
    """

    def __init__(self, sandbox: Sandbox, moment: Moment, held: int = 1) -> None:
        self._moment = moment
        self._session: Session | None = None
        if moment.stopped:
            for standby in standbys(sandbox)[:held]:
                # Before, it could not end with its launcher, and could not look for it either.
                eventually(lambda pid=standby.pid: is_confined(pid), "a child that is confined")
                os.kill(standby.pid, signal.SIGSTOP)
        document = scripted(3, {str(page): does for page, does in moment.at.items()})
        self._call = Call(read, sandbox, document, on_session=self._prepare)

    def _prepare(self, session: Session) -> None:
        session._password = self._moment.password
        self._session = session

    def child(self, after: Child | None = None) -> Child:
        """Return the child that is at the moment, once one is; another than `after`."""
        found: list[Child] = []
        eventually(lambda: self._find(found, {after}), "a child at the moment")
        return found[0]

    def _find(self, found: list[Child], known: Container[Child | None]) -> bool:
        child = self._session and self._session._child
        # One that has just been given back has no descriptor that could be asked.
        with suppress(OSError, ValueError):
            if child and child not in known and child.alive() and self._moment.has_come(child):
                found.append(child)
        return bool(found)

    def go_on(self, after: Child) -> None:
        """Let each child that comes to the moment later go on, until the reading ends."""
        known = {after}

        def ended() -> bool:
            found: list[Child] = []
            self._find(found, known)
            for child in found:
                known.add(child)  # a second signal would be one too many
                kill_if_there(child.pid, signal.SIGUSR1)
            return not self._call._thread.is_alive()

        eventually(ended, "the end of the reading")

    def result(self) -> Extraction:
        extraction = self._call.result()
        assert isinstance(extraction, Extraction)
        return extraction

    def error(self) -> BaseException | None:
        return self._call.error()


def kill(launcher: int, child: Child, victims: str) -> None:
    """Kill those that are named, in that order; nothing of a launcher's outlives it."""
    pids = {"child": child.pid, "launcher": launcher}
    named = [pids[victim] for victim in victims.split(" and ")]
    below = processes_under(launcher) if launcher in named else {}
    with watching(*named, *below) as watch:
        for pid in named:
            kill_if_there(pid, signal.SIGKILL)
        watch.await_ends()


# Where the site lives


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with sandbox_of(standbys=STANDBYS) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """A sandbox that must be as good afterwards as it was before."""
    assert read(shared, GOOD).complete
    settle(shared)
    before = open_descriptors()
    yield shared
    extraction = read(shared, GOOD)
    assert extraction.complete
    assert [page.text for page in extraction.pages] == TEXTS
    settle(shared)
    eventually(lambda: open_descriptors() == before, "the descriptors that were open before")
    assert "Z" not in processes_under(os.getpid()).values()


LOST_PAGE = ["memory_exceeded", None, None]
"""What a kill costs: one that is not ours counts as the kernel's, out of memory."""


def outcomes(moment: str, victims: str) -> list[list[str | None]]:
    """Return what may become of the pages."""
    if (moment, victims) == ("half of page 1", "child"):
        return [LOST_PAGE]
    if (moment, victims) == ("half of page 1", "child and launcher"):
        return [LOST_PAGE, COMPLETE]  # as the launcher has told of the child's end, or has not
    return [COMPLETE]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "victims", ["child", "launcher", "child and launcher", "launcher and child"]
)
def test_a_kill_costs_at_most_the_page_that_its_child_was_alone_with(
    sandbox: Sandbox, victims: str, moment: str
) -> None:
    reading = Reading(sandbox, MOMENTS[moment])
    child = reading.child()
    launcher = child._launcher.pid
    kill(launcher, child, victims)
    reading.go_on(after=child)
    extraction = reading.result()
    found = codes(extraction)
    assert found in outcomes(moment, victims)
    texts = [text if code is None else "" for text, code in zip(TEXTS, found, strict=True)]
    assert [page.text for page in extraction.pages] == texts
    assert extraction.complete == (found == COMPLETE)
    assert extraction.error is None
    if victims == "child":
        assert sandbox.stats().launcher_pid == launcher
    else:  # a reading that went on before the kill has not seen the launcher's end
        eventually(lambda: sandbox.stats().launcher_pid != launcher, "the launcher's end, noticed")


@pytest.mark.parametrize("moment", HANDING_OVER)
def test_a_document_whose_child_is_killed_twice_in_the_handing_over_is_given_up(
    sandbox: Sandbox, moment: str
) -> None:
    reading = Reading(sandbox, MOMENTS[moment], held=2)
    first = reading.child()
    kill(first._launcher.pid, first, "child")
    second = reading.child(after=first)
    kill(second._launcher.pid, second, "child")
    assert type(reading.error()) is errors.MemoryExceeded


def test_a_page_whose_child_is_killed_twice_in_its_answer_is_given_up(sandbox: Sandbox) -> None:
    reading = Reading(sandbox, half_of(2))
    first = reading.child()
    kill(first._launcher.pid, first, "child")
    second = reading.child(after=first)
    kill(second._launcher.pid, second, "child")
    extraction = reading.result()
    assert codes(extraction) == [None, "memory_exceeded", None]
    assert [page.text for page in extraction.pages] == [TEXTS[0], "", TEXTS[2]]


# Where the site does not live


COMES_TO_A_MOMENT = """
from tests.sandbox import test_kills
test_kills.come_to(sys.argv[1])
"""


def come_to(moment: str) -> None:
    """Be a site that stays at the moment; print the numbers of its launcher and of the child."""
    sandbox = make_sandbox(standbys=STANDBYS)
    read(sandbox, GOOD)
    settle(sandbox)
    child = Reading(sandbox, MOMENTS[moment]).child()
    # A child that the launcher does not know to be taken is a standby to it.
    more = STANDBYS if child._asked else STANDBYS - 1
    eventually(lambda: len(standbys(sandbox)) == more, "all that the launcher forks")
    print(sandbox.stats().launcher_pid, child.pid, flush=True)
    signal.pause()


@pytest.mark.parametrize("moment", [*HANDING_OVER, "half of page 1"])
@pytest.mark.parametrize(
    "victims",
    ["site", "site and child", "child and site", "site and launcher", "launcher and site"],
)
def test_all_that_is_ours_is_gone_a_second_after_the_site(victims: str, moment: str) -> None:
    with start_program(COMES_TO_A_MOMENT, moment) as program:
        launcher, child = (int(pid) for pid in program.stdout.readline().split())
        pids = {"site": program.pid, "launcher": launcher, "child": child}
        ours = processes_under(program.pid)
        assert {launcher, child} < set(ours)
        with watching(*ours) as watch:
            for victim in victims.split(" and "):
                kill_if_there(pids[victim], signal.SIGKILL)
            watch.await_ends(1.0)


# Launchers that die at every start


DIES = """#!/bin/sh
if test -e {broken}; then
    date +%s.%N >> {starts}
    {dying}
fi
exec {python} "$@"
"""


@pytest.mark.parametrize(
    "dying",
    ["exit 1", "sleep 0.3; exit 0", "kill -SEGV $$"],
    ids=["at once", "after a while", "by a signal"],
)
def test_launchers_that_die_are_started_once_a_second_however_many_ask(
    tmp_path: Path, dying: str
) -> None:
    broken, starts, python = (tmp_path / name for name in ("broken", "starts", "python"))
    words = {"broken": broken, "starts": starts, "python": sys.executable}
    quoted = {name: shlex.quote(str(word)) for name, word in words.items()}
    python.write_text(DIES.format(dying=dying, **quoted))
    python.chmod(0o755)
    broken.touch()
    before = open_descriptors()
    with sandbox_of(python=str(python)) as sandbox:
        until = time.monotonic() + 2.5
        callers = [Call(refusals, sandbox, until) for _ in range(4)]
        refused = [caller.result() for caller in callers]
        assert all(count > 10 for count in refused)
        moments = [float(line) for line in starts.read_text().split()]
        assert 2 <= len(moments) <= 3
        assert len(moments) == sandbox.stats().launchers_started
        # Its death is what the second runs from, and the clocks differ a little.
        assert all(later - earlier > 0.95 for earlier, later in pairwise(moments))
        broken.unlink()
        eventually(lambda: reads_again(sandbox), "documents are read again", 5)
        assert sandbox.stats().launchers_started == len(moments) + 1
        assert not sandbox.stats().failing
    assert open_descriptors() == before


def test_launchers_that_die_after_their_first_child_are_not_started_without_end() -> None:
    with sandbox_of("tests.engines.launcher_dies_early") as sandbox:
        until = time.monotonic() + 2.5
        refused = 0
        while time.monotonic() < until:
            try:
                read(sandbox, GOOD)
            except errors.Unavailable:
                refused += 1
                threading.Event().wait(0.01)
        # The first is replaced at once, as one that was killed is; the others once a second.
        assert 3 <= sandbox.stats().launchers_started <= 5
        assert refused > 10
