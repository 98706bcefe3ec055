"""The launcher and its standbys: how they start, what they hold, and how they end."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdfpool_django import errors
from pdfpool_django.documents import Session
from pdfpool_django.sandbox import host, launcher
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox
from pdfpool_django.sandbox.limits import MEMORY_RESERVE, NOBODY, SOCKET_FD
from tests.sandbox.helpers import (
    LIMIT,
    LIMITS,
    MEMORY,
    SLACK,
    Call,
    Watch,
    eventually,
    kill_and_await,
    limits,
    make_sandbox,
    open_descriptors,
    read,
    reads_again,
    refusals,
    run_program,
    sandbox_of,
    scripted,
    settle,
    standbys,
    start_program,
    watching,
)

ONE_PAGE = scripted(1)


@pytest.fixture(scope="module")
def lasting() -> Iterator[Sandbox]:
    sandbox = make_sandbox()
    read(sandbox, ONE_PAGE)
    settle(sandbox)
    yield sandbox
    sandbox.close()


@pytest.fixture
def shared(lasting: Sandbox) -> Iterator[Sandbox]:
    """A sandbox that is at rest again before the next test counts descriptors."""
    yield lasting
    settle(lasting)


@pytest.fixture
def started() -> Iterator[Sandbox]:
    """A sandbox of its own, with its standby at rest."""
    with sandbox_of() as sandbox:
        read(sandbox, ONE_PAGE)
        settle(sandbox)
        yield sandbox


# Starting


def test_nothing_is_started_before_the_first_use() -> None:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    sandbox = make_sandbox()
    stats = sandbox.stats()
    assert (stats.launcher_pid, stats.engine, stats.standbys) == (None, None, 0)
    assert stats.launchers_started == 0
    sandbox.close()
    assert set(threading.enumerate()) <= threads
    assert open_descriptors() == descriptors


def test_one_launcher_serves_every_document(shared: Sandbox) -> None:
    before = shared.stats()
    for _ in range(5):
        assert read(shared, ONE_PAGE).complete
    after = shared.stats()
    assert after.launcher_pid == before.launcher_pid
    assert after.launchers_started == before.launchers_started
    assert after.children_used == before.children_used + 5
    assert after.engine == "scripted 1"


def test_many_first_uses_at_once_start_one_launcher() -> None:
    with sandbox_of(standbys=2) as sandbox:
        calls = [Call(read, sandbox, ONE_PAGE) for _ in range(8)]
        assert all(call.result().complete for call in calls)
        assert sandbox.stats().launchers_started == 1


@pytest.mark.parametrize("count", [1, 2])
def test_standbys_are_pushed_ahead_of_need(count: int) -> None:
    with sandbox_of(standbys=count) as sandbox:
        read(sandbox, ONE_PAGE)
        settle(sandbox)
        assert sandbox.stats().standbys == count


def test_every_document_has_a_child_of_its_own() -> None:
    with sandbox_of(filtered=False) as sandbox:
        pids = {json.loads(read(sandbox, report_of_child()).text)["pid"] for _ in range(3)}
    assert len(pids) == 3


def test_ended_children_are_counted(started: Sandbox) -> None:
    before = started.stats().children_ended
    read(started, ONE_PAGE)
    eventually(lambda: started.stats().children_ended == before + 1, "one more child ended")


# What the launcher holds


@pytest.fixture(scope="module")
def launcher_report() -> dict[str, Any]:
    """What a launcher says of itself that was started by a process full of things to inherit."""
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_KEY", "secret")
        patch.setenv("PYTHONPATH", "/nonexistent")
        theirs.set_inheritable(True)
        old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        try:
            with sandbox_of("tests.engines.reports_launcher") as sandbox:
                report = json.loads(read(sandbox, b"anything").text)
                assert report["pid"] == sandbox.stats().launcher_pid
                return report
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
            signal.signal(signal.SIGHUP, old)


def test_the_launchers_environment_has_nothing_of_the_sites(
    launcher_report: dict[str, Any],
) -> None:
    assert launcher_report["environment"] == {"LC_ALL": "C.UTF-8", "PATH": os.defpath}


def test_the_launcher_is_isolated_and_works_in_the_root_directory(
    launcher_report: dict[str, Any],
) -> None:
    assert launcher_report["directory"] == "/"
    assert launcher_report["isolated"] == 1


def test_the_launcher_looks_for_modules_where_the_site_does_first(
    launcher_report: dict[str, Any],
) -> None:
    sites = list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))
    assert launcher_report["path"][: len(sites)] == sites


def test_the_launcher_inherits_no_descriptor_but_its_own(launcher_report: dict[str, Any]) -> None:
    assert len(launcher_report["descriptors"]) == 4
    assert {"0", "1", "2"} < set(launcher_report["descriptors"])


def test_the_launcher_has_a_session_of_its_own(launcher_report: dict[str, Any]) -> None:
    assert launcher_report["session"] == launcher_report["pid"]


def test_the_launcher_keeps_no_signal_ignored_or_blocked(launcher_report: dict[str, Any]) -> None:
    assert launcher_report["ignored"] == []
    assert launcher_report["blocked"] == []


def test_the_launcher_imports_only_what_its_engine_needs(launcher_report: dict[str, Any]) -> None:
    assert launcher_report["modules"] == []


def test_what_the_launcher_pushes_is_not_inherited_by_programs_of_the_site(
    started: Sandbox,
) -> None:
    (standby,) = standbys(started)
    assert not os.get_inheritable(standby._sock.fileno())
    assert not os.get_inheritable(standby._pidfd)


# What a child may do


def report_of_child() -> bytes:
    return scripted(1, {1: "reports_itself"})


@pytest.fixture(scope="module")
def child_report() -> dict[str, Any]:
    """What a child tells that may open files: the rest of its limits is the same."""
    with sandbox_of(filtered=False) as sandbox:
        report = json.loads(read(sandbox, report_of_child()).text)
        assert report["launcher"] == sandbox.stats().launcher_pid
        return report


def test_a_child_holds_the_standard_streams_and_its_socket(child_report: dict[str, Any]) -> None:
    # The scripted engine has closed the document's descriptor by then.
    assert child_report["descriptors"] == [0, 1, 2, SOCKET_FD]


def test_a_child_is_held_to_its_limits(child_report: dict[str, Any]) -> None:
    seconds = int(LIMIT)
    assert child_report["limits"] == {
        "AS": [MEMORY, MEMORY + MEMORY_RESERVE],
        "CPU": [seconds + 1, seconds + 2],
        "FSIZE": [0, 0],
        "NOFILE": [6, 6],
        "CORE": [0, 0],
    }


def test_a_child_can_win_no_privileges(child_report: dict[str, Any]) -> None:
    assert "\nNoNewPrivs:\t1\n" in child_report["status"]


def test_a_child_of_a_root_site_is_not_root(child_report: dict[str, Any]) -> None:
    user, group, groups = child_report["ids"]
    if os.geteuid() == 0:
        assert (user, group, groups) == ([NOBODY] * 3, [NOBODY] * 3, [])
    else:
        assert user == list(os.getresuid())
    assert "\nCapEff:\t0000000000000000\n" in child_report["status"]


def test_a_child_is_killed_first_where_the_host_runs_out_of_memory(
    child_report: dict[str, Any],
) -> None:
    assert child_report["oom_score_adj"].strip() == "1000"


def test_a_child_has_a_session_of_its_own(child_report: dict[str, Any]) -> None:
    assert child_report["session"] == child_report["pid"]


def test_a_limit_that_the_site_is_held_to_is_kept() -> None:
    with sandbox_of(filtered=False) as sandbox:
        read(sandbox, ONE_PAGE)
        settle(sandbox)
        resource.prlimit(sandbox.stats().launcher_pid, resource.RLIMIT_CPU, (5, 5))
        kill_and_await(standbys(sandbox)[0].pid)
        report = json.loads(read(sandbox, report_of_child()).text)
    assert report["limits"]["CPU"] == [5, 5]


# When standbys and launchers are lost


def test_a_standby_killed_at_rest_is_replaced(started: Sandbox) -> None:
    (standby,) = standbys(started)
    kill_and_await(standby.pid)
    assert read(started, ONE_PAGE).complete
    settle(started)
    assert started.stats().launchers_started == 1


def test_a_standby_killed_and_taken_in_the_same_instant_costs_no_error(started: Sandbox) -> None:
    for _ in range(5):
        settle(started)
        (standby,) = standbys(started)
        os.kill(standby.pid, signal.SIGKILL)
        assert read(started, ONE_PAGE).complete


def test_a_launcher_killed_at_rest_is_replaced(started: Sandbox) -> None:
    first = started.stats().launcher_pid
    kill_and_await(first)
    assert read(started, ONE_PAGE).complete
    assert started.stats().launcher_pid not in (None, first)


def test_a_launcher_killed_and_used_in_the_same_instant_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "RETRY_SECONDS", 0.05)  # so that none has lived shortly
    with sandbox_of() as sandbox:
        for _ in range(8):
            assert read(sandbox, ONE_PAGE).complete
            first = sandbox.stats().launcher_pid
            os.kill(first, signal.SIGKILL)
            while sandbox.stats().launcher_pid in (None, first):
                assert read(sandbox, ONE_PAGE).complete


def test_a_launcher_that_dies_while_a_child_is_awaited_is_replaced(started: Sandbox) -> None:
    """Its standbys are gone first, so that the caller waits for a new one."""
    launcher = started.stats().launcher_pid
    os.kill(launcher, signal.SIGSTOP)
    kill_and_await(standbys(started)[0].pid)
    call = Call(read, started, ONE_PAGE)
    eventually(lambda: started._changed._waiters, "a caller that waits")
    kill_and_await(launcher)
    assert call.result().complete


def test_descriptors_run_out_and_come_back() -> None:
    out = run_program(
        """
import os, resource
from tests.sandbox.helpers import *
from pdfpool_django.errors import Unavailable
with sandbox_of() as sandbox:
    read(sandbox, scripted(1))
    settle(sandbox)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    child = sandbox.child(time.monotonic() + 5)  # whose replacement cannot be received
    try:
        sandbox.child(time.monotonic() + 5)
    except Unavailable:
        print("unavailable")
    for fd in taken:
        os.close(fd)
    sandbox.release(child)
    def again():
        try:
            return read(sandbox, scripted(1)).complete
        except Unavailable:
            return False
    eventually(again, "documents are read again")
    print("read")
"""
    )
    assert out.split() == ["unavailable", "read"]


# When none can be started


def test_a_launcher_that_cannot_start_is_tried_once_a_second_until_it_can(tmp_path: Path) -> None:
    python = tmp_path / "python"
    with sandbox_of(python=str(python)) as sandbox:
        assert refusals(sandbox, time.monotonic() + 0.5) > 10
        assert sandbox.stats().launchers_started == 1
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        eventually(lambda: reads_again(sandbox), "documents are read again", 5)
        assert sandbox.stats().launchers_started == 2


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "tests.engines.cannot_be_imported"},
        {"engine": "tests.engines.no_such_module"},
        {"python": "/bin/false"},
    ],
    ids=["the engine cannot be imported", "there is no engine", "the interpreter is none"],
)
def test_a_launcher_that_ends_at_once_is_tried_once_a_second(options: dict[str, Any]) -> None:
    descriptors = open_descriptors()
    with sandbox_of(**options) as sandbox:
        assert refusals(sandbox, time.monotonic() + 0.7) > 5
        assert sandbox.stats().launchers_started == 1
        assert sandbox.stats().launcher_pid is None
    assert open_descriptors() == descriptors


def test_children_that_die_by_themselves_are_not_forked_without_end() -> None:
    with sandbox_of("tests.engines.dies_while_standing_by") as sandbox:
        with pytest.raises(errors.PdfPoolError):
            read(sandbox, ONE_PAGE, limits(deadline=0.6))
        eventually(lambda: sandbox.stats().children_ended >= 2, "the first ones have ended")
        threading.Event().wait(0.5)  # a rate takes time to measure
        assert sandbox.stats().children_ended <= 4


def test_a_refused_fork_is_unavailable_and_tried_again() -> None:
    with sandbox_of("tests.engines.cannot_fork_at_first") as sandbox:
        assert read(sandbox, ONE_PAGE).complete
        assert read(sandbox, ONE_PAGE).complete
        with pytest.raises(errors.Unavailable):
            read(sandbox, ONE_PAGE)
        eventually(lambda: reads_again(sandbox), "documents are read again", 5)
        assert sandbox.stats().launchers_started == 1


def unprivileged_python() -> str:
    """Return an interpreter that any user may run."""
    if os.geteuid() != 0:
        return sys.executable
    for candidate in (sys.executable, "/usr/bin/python3"):
        real = Path(candidate).resolve()
        folders = [*real.parents]
        if real.exists() and all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders):
            return candidate
    pytest.skip("no interpreter that another user may run")


def test_a_user_without_processes_left_gets_unavailable_until_there_are_some() -> None:
    out = run_program(
        """
import os, resource
from tests.sandbox.helpers import *
from pdfpool_django.errors import Unavailable
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(54321, 54321, 54321)
    os.setresuid(54321, 54321, 54321)
def again():
    try:
        return read(sandbox, scripted(1)).complete
    except Unavailable:
        return False
with sandbox_of() as sandbox:
    assert again()
    settle(sandbox)
    launcher = sandbox.stats().launcher_pid
    _, hard = resource.prlimit(launcher, resource.RLIMIT_NPROC)
    resource.prlimit(launcher, resource.RLIMIT_NPROC, (1, hard))
    kill_and_await(standbys(sandbox)[0].pid)
    print(again())
    resource.prlimit(launcher, resource.RLIMIT_NPROC, (hard, hard))
    eventually(again, "documents are read again", 5)
    print(sandbox.stats().launcher_pid == launcher)
""",
        python=unprivileged_python(),
    )
    assert out.split() == ["False", "True"]


# Closing


def test_close_leaves_no_process_no_thread_and_no_descriptor() -> None:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    sandbox = make_sandbox(standbys=2)
    read(sandbox, ONE_PAGE)
    settle(sandbox)
    pids = [sandbox.stats().launcher_pid, *(child.pid for child in standbys(sandbox))]
    with watching(*pids) as watch:
        sandbox.close()
        watch.await_ends()
    assert set(threading.enumerate()) <= threads
    assert open_descriptors() == descriptors


def test_a_closed_sandbox_gives_out_no_child(started: Sandbox) -> None:
    started.close()
    with pytest.raises(errors.Unavailable, match="shutting down"):
        read(started, ONE_PAGE)
    started.close()
    assert started.stats().launcher_pid is None


def test_closing_ends_a_document_that_is_being_read(started: Sandbox) -> None:
    reading = threading.Event()
    call = Call(read, started, scripted(2, {2: "hangs"}), publish=lambda _: reading.set())
    assert reading.wait(LIMIT)
    started.close()
    error = call.error()
    assert error is None or isinstance(error, errors.Unavailable)
    if error is None:
        assert call.result().error["code"] == "unavailable"


def test_closing_takes_grandchildren_along() -> None:
    with sandbox_of(filtered=False) as started, Watch() as watch:

        def close(event: object) -> None:
            text = getattr(event, "text", "")
            if text.isdigit():
                watch.add(int(text))
                started.close()

        read(started, scripted(1, {1: "forks_a_grandchild"}), publish=close)
        watch.await_ends()


def test_closing_while_the_launcher_starts_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, pids = make_sandbox(), []
    start = host._Launcher

    def start_and_close(*arguments: Any) -> host._Launcher:
        launcher = start(*arguments)
        watch.add(launcher.pid)
        pids.append(launcher.pid)
        sandbox.close()
        return launcher

    monkeypatch.setattr(host, "_Launcher", start_and_close)
    with Watch() as watch:
        with pytest.raises(errors.Unavailable):
            read(sandbox, ONE_PAGE)
        watch.await_ends()
    assert pids


# Forks and the end of the site


def test_a_forked_process_starts_its_own_launcher_and_leaves_its_parents_alone() -> None:
    out = run_program(
        """
import os
from tests.sandbox.helpers import *
with sandbox_of() as sandbox:
    read(sandbox, scripted(1))
    settle(sandbox)
    before = sandbox.stats().launcher_pid
    held = {child._sock.fileno() for child in standbys(sandbox)}
    pid = os.fork()
    if pid == 0:
        inherited = [fd for fd in held if os.path.exists(f"/proc/self/fd/{fd}")]
        same = read(sandbox, scripted(1)).complete and sandbox.stats().launcher_pid != before
        sandbox.close()
        with sandbox_of() as mine:
            print(inherited, same, read(mine, scripted(1)).complete, flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    print(read(sandbox, scripted(1)).complete, sandbox.stats().launcher_pid == before)
"""
    )
    assert out.splitlines() == ["[] True True", "True True"]


def test_a_forked_process_that_lives_on_does_not_keep_the_launcher() -> None:
    """Only the one who started it counts, also where another holds what it has open."""
    source = """
import os, signal
from tests.sandbox.helpers import *
sandbox = make_sandbox()
read(sandbox, scripted(1))
settle(sandbox)
if os.fork() == 0:
    signal.pause()
print(sandbox.stats().launcher_pid, *(child.pid for child in standbys(sandbox)), flush=True)
signal.pause()
"""
    with start_program(source) as program:
        pids = [int(pid) for pid in program.stdout.readline().split()]
        with watching(*pids) as watch:
            forked = forked_by(program.pid, pids[0])
            program.kill()
            watch.await_ends()
        os.kill(forked, signal.SIGKILL)


def forked_by(pid: int, launcher: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (forked,) = {int(child) for child in children} - {launcher}
    return forked


READS_A_SPINNING_DOCUMENT = """
from tests.sandbox.helpers import *
sandbox = make_sandbox(standbys=2)
sessions = []
def tell(event):
    if getattr(event, "number", 0) == 1:
        eventually(lambda: len(standbys(sandbox)) == 2, "standbys")
        pids = [child.pid for child in standbys(sandbox)]
        print(sandbox.stats().launcher_pid, sessions[0]._child.pid, *pids, flush=True)
read(sandbox, scripted(2, {2: "spins"}), publish=tell, on_session=sessions.append)
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_site_that_is_killed_in_the_middle_of_a_document(by: int) -> None:
    with start_program(READS_A_SPINNING_DOCUMENT) as program, Watch() as watch:
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 4
        watch.add(*pids)
        program.send_signal(by)
        watch.await_ends()


def test_no_child_outlives_its_launcher_while_the_site_does_nothing_about_it() -> None:
    with start_program(READS_A_SPINNING_DOCUMENT) as program, Watch() as watch:
        launcher, *children = (int(pid) for pid in program.stdout.readline().split())
        watch.add(launcher, *children)
        program.send_signal(signal.SIGSTOP)
        os.kill(launcher, signal.SIGKILL)
        watch.await_ends()
        program.kill()


def test_a_site_that_ends_by_itself_takes_its_launcher_along() -> None:
    source = """
from tests.sandbox.helpers import *
sandbox = make_sandbox()
read(sandbox, scripted(1))
settle(sandbox)
print(sandbox.stats().launcher_pid, *(child.pid for child in standbys(sandbox)), flush=True)
sys.stdin.readline()
"""
    with start_program(source) as program, Watch() as watch:
        watch.add(*(int(pid) for pid in program.stdout.readline().split()))
        program.stdin.write("end\n")
        program.stdin.flush()
        watch.await_ends(LIMIT)
        assert program.wait(LIMIT) == 0


def test_a_flooded_standard_error_blocks_nobody(shared: Sandbox) -> None:
    calls = [Call(read, shared, scripted(2, {1: "floods_stderr"})) for _ in range(3)]
    assert all(call.result().complete for call in calls)


def test_a_caller_waits_no_longer_than_its_deadline_for_a_child(started: Sandbox) -> None:
    launcher = started.stats().launcher_pid
    os.kill(launcher, signal.SIGSTOP)
    try:
        children = [started.child(time.monotonic() + LIMITS.deadline)]
        begun = time.monotonic()
        with pytest.raises(errors.Unavailable):
            started.child(time.monotonic() + 0.2)
        assert 0.2 <= time.monotonic() - begun < 0.7
    finally:
        os.kill(launcher, signal.SIGCONT)
    for child in children:
        started.release(child)


def test_a_child_that_cannot_be_watched_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    child = subprocess.Popen(["sleep", "60"])
    with Watch() as watch:
        watch.add(child.pid)
        monkeypatch.setattr(os, "pidfd_open", refuse)
        with pytest.raises(OSError, match="Too many open files"):
            launcher._pidfd_of(child.pid)
        watch.await_ends()
    child.wait()


def test_a_child_that_does_not_read_is_ended_at_the_deadline(started: Sandbox) -> None:
    os.kill(standbys(started)[0].pid, signal.SIGSTOP)
    more_than_a_socket_holds = "x" * 2_000_000
    with from_bytes(ONE_PAGE) as document:
        session = Session(started, document, more_than_a_socket_holds, limits(deadline=0.5))
        begun = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded, match=r"0\.5 seconds"):
            session.open()
    assert time.monotonic() - begun < 0.5 + SLACK
    assert read(started, ONE_PAGE).complete
