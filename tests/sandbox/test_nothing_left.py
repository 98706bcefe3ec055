"""Many documents, a tenth of which misbehave: afterwards all is as it was after the first hundred.

``PDFPOOL_DOCUMENTS=5000`` reads that many instead of a few hundred.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pdfpool_django import errors
from pdfpool_django.model import Limits
from pdfpool_django.sandbox.host import Sandbox
from tests.sandbox.helpers import (
    LIMITS,
    codes,
    limits,
    open_descriptors,
    processes_under,
    read,
    run_program,
    sandbox_of,
    scripted,
    settle,
)

DOCUMENTS = int(os.environ.get("PDFPOOL_DOCUMENTS", "300"))
FIRST = 100
THREADS = 3
STANDBYS = 2

SECONDS = 60 + DOCUMENTS / 10
"""Time in which the documents are read, on a host that has other things to do."""

GROWTH = 2 * 1024 * 1024
"""Bytes of resident memory that a process may have gained, however many documents there were."""

pytestmark = pytest.mark.timeout(SECONDS + 60)


@dataclass(frozen=True)
class Case:
    """A document, and what is to become of it: its pages' codes, or the code of its error."""

    document: bytes
    outcome: Any
    limits: Limits = LIMITS


def at_page(does: str, code: str | None) -> Case:
    return Case(scripted(3, {"2": does}), [None, code, None])


def at_opening(does: str, code: str) -> Case:
    return Case(scripted(3, {"0": does}), code)


def for_ever(does: str) -> Case:
    return Case(scripted(1, {"1": does}), "deadline_exceeded", limits(page_deadline=0.1))


GOOD = Case(scripted(3), [None, None, None])
MISBEHAVING = [
    for_ever("hangs"),
    at_page("eats_memory", "memory_exceeded"),
    at_page("segfaults", "crashed"),
    at_page("answers_garbage", "crashed"),
    for_ever("ignores_sigterm"),
    at_page("aborts", "memory_exceeded"),
    at_page("answers_half_a_frame", "crashed"),
    at_page("closes_its_socket", "crashed"),
    at_page("floods_stderr", None),
    at_opening("exits_silently", "crashed"),
    for_ever("answers_half_a_frame_and_hangs"),
    at_page("eats_native_memory", "memory_exceeded"),
    at_page("exits_silently", "crashed"),
    at_page("claims_huge_head", "crashed"),
    for_ever("spins"),
    at_page("is_killed", "memory_exceeded"),
    at_opening("segfaults", "crashed"),
    at_page("ends_early", "crashed"),
    for_ever("trickles"),
    at_opening("eats_memory", "memory_exceeded"),
    at_page("says_another_type", "crashed"),
    at_page("raises_value_error", "invalid_pdf"),
    at_page("recurses", "invalid_pdf"),
]


def case(number: int) -> Case:
    turn, rest = divmod(number, 10)
    return GOOD if rest else MISBEHAVING[turn % len(MISBEHAVING)]


# The site that reads them, a process of its own: what other tests leave in memory is not measured

SITE = """
from tests.sandbox import test_nothing_left
test_nothing_left.be_the_site()
"""

PR_SET_CHILD_SUBREAPER = 36


def be_the_site() -> None:
    """Read all documents; print what there was after the first ones, and after the last."""
    # So that an orphan comes to us, where it is seen, and not to process 1.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = left_over()
    with sandbox_of(standbys=STANDBYS) as sandbox:
        wrong = read_all(sandbox, range(FIRST))
        first = measured(sandbox)
        wrong += read_all(sandbox, range(FIRST, DOCUMENTS))
        last = measured(sandbox)
    after = left_over()
    report = {"first": first, "last": last, "wrong": wrong, "before": before, "after": after}
    print(json.dumps(report))


def read_all(sandbox: Sandbox, numbers: range) -> list[Any]:
    """Read documents in a few threads; return those of which something else became."""
    shares = [numbers[start::THREADS] for start in range(THREADS)]
    # A task for each document would be memory that grows with the documents.
    with ThreadPoolExecutor(THREADS) as executor:
        found = executor.map(lambda share: read_share(sandbox, share), shares)
        return [wrong for part in found for wrong in part]


def read_share(sandbox: Sandbox, numbers: range) -> list[Any]:
    wrong = []
    for number in numbers:
        expected = case(number)
        found = outcome(sandbox, expected)
        if found != expected.outcome:
            wrong.append([number, expected.document.decode(), found])
    return wrong


def outcome(sandbox: Sandbox, case: Case) -> Any:
    try:
        return codes(read(sandbox, case.document, case.limits))
    except errors.PdfPoolError as error:
        return error.code


def measured(sandbox: Sandbox) -> dict[str, Any]:
    """Return what there is of each kind of thing, once the last document's child is gone."""
    settle(sandbox)
    gc.collect()
    stats = sandbox.stats()
    processes = processes_under(os.getpid())
    processes.pop(stats.launcher_pid or 0)
    return {
        "web process": about_process(os.getpid()),
        "launcher": about_process(stats.launcher_pid or 0),
        "launcher's number": stats.launcher_pid,
        "launchers": stats.launchers_started,
        "children": sorted(processes.values()),
        "used": stats.children_used,
        "files": files(),
    }


def about_process(pid: int) -> dict[str, int]:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "resident": int(status["VmRSS"].split()[0]) * 1024,
    }


def left_over() -> dict[str, Any]:
    """Return what a site without a sandbox has."""
    return {
        "processes": processes_under(os.getpid()),
        "descriptors": open_descriptors(),
        "threads": len(os.listdir("/proc/self/task")),
        "files": files(),
    }


def files() -> list[str]:
    """Return the temporary files, and the core dumps where the launcher works."""
    return sorted(os.listdir(tempfile.gettempdir())) + sorted(map(str, Path("/").glob("core*")))


# What it must be like


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
        return json.loads(run_program(SITE, seconds=SECONDS))


@pytest.fixture
def first(report: dict[str, Any]) -> dict[str, Any]:
    return report["first"]


@pytest.fixture
def last(report: dict[str, Any]) -> dict[str, Any]:
    return report["last"]


def test_every_document_has_come_to_its_own_end(report: dict[str, Any]) -> None:
    assert report["wrong"] == []
    assert report["last"]["used"] >= DOCUMENTS


def test_one_launcher_has_lived_through_all_of_it(
    first: dict[str, Any], last: dict[str, Any]
) -> None:
    assert last["launchers"] == 1
    assert last["launcher's number"] == first["launcher's number"]


def test_no_zombie_and_no_orphan_is_left(first: dict[str, Any], last: dict[str, Any]) -> None:
    for measure in (first, last):
        assert len(measure["children"]) == STANDBYS
        assert "Z" not in measure["children"]


def test_no_temporary_file_is_left(report: dict[str, Any]) -> None:
    before = report["before"]["files"]
    assert [report[when]["files"] for when in ("first", "last", "after")] == [before] * 3


@pytest.mark.parametrize("process", ["web process", "launcher"])
@pytest.mark.parametrize("things", ["descriptors", "threads"])
def test_no_more_is_held_than_after_the_first_hundred(
    first: dict[str, Any], last: dict[str, Any], process: str, things: str
) -> None:
    assert last[process][things] == first[process][things]


@pytest.mark.parametrize("process", ["web process", "launcher"])
def test_memory_does_not_grow_with_the_documents(
    first: dict[str, Any], last: dict[str, Any], process: str
) -> None:
    assert last[process]["resident"] < first[process]["resident"] + GROWTH


def test_nothing_at_all_is_left_once_the_sandbox_is_closed(report: dict[str, Any]) -> None:
    assert report["after"] == report["before"]
