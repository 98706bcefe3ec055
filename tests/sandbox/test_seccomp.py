"""The system-call filter: what it allows and refuses, and that documents need no more."""

from __future__ import annotations

import errno
import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdfpool_django.backends.base import BackendConfig
from pdfpool_django.backends.local import LocalBackend
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.sandbox import seccomp
from pdfpool_django.sandbox.host import Sandbox
from tests.documents.test_warmth import documents
from tests.sandbox.helpers import ROOT, read, sandbox_of, scripted

HOSTILE = ROOT.parent / "shared" / "hostile"
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
PID = 4711
OTHER = 4712

needs_filter = pytest.mark.skipif(
    seccomp.why_unavailable() is not None, reason=str(seccomp.why_unavailable())
)


def judge(program: bytes, token: int, number: int, *arguments: int) -> int:
    """Return what the kernel would, by interpreting the program (``man 2 seccomp``)."""
    values = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("iIQ6Q", number, token, 0, *values)
    code = list(seccomp.INSTRUCTION.iter_unpack(program))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("I", data, value)
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        else:
            assert operation == 0x06
            return value


ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | errno.EPERM
KILL = 0x80000000


@pytest.fixture(params=seccomp.ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> seccomp.Architecture:
    return seccomp.ARCHITECTURES[request.param]


def test_only_the_calls_on_the_list_are_allowed(architecture: seccomp.Architecture) -> None:
    program = seccomp.program(architecture, PID)
    by_argument = {"tgkill": (PID,), "prlimit64": (0,), "newfstatat": (0, 0, 0, 0x1000)}
    allowed = {
        number
        for name, number in architecture.numbers.items()
        if judge(program, architecture.token, number, *by_argument.get(name, ())) == ALLOW
    }
    assert allowed == set(architecture.numbers.values())
    for number in set(range(1024)) - allowed:
        assert judge(program, architecture.token, number) == REFUSE


def test_a_process_may_signal_and_limit_itself_only(architecture: seccomp.Architecture) -> None:
    program = seccomp.program(architecture, PID)
    for name in ("tgkill", "prlimit64"):
        assert judge(program, architecture.token, architecture.numbers[name], OTHER) == REFUSE


def test_a_file_may_be_looked_at_by_its_descriptor_only(
    architecture: seccomp.Architecture,
) -> None:
    program = seccomp.program(architecture, PID)
    number = architecture.numbers["newfstatat"]
    assert judge(program, architecture.token, number, 0, 0, 0, 0) == REFUSE


def test_another_architectures_calls_end_the_process(architecture: seccomp.Architecture) -> None:
    program = seccomp.program(architecture, PID)
    assert judge(program, 0x40000003, architecture.numbers["read"]) == KILL


@pytest.mark.parametrize("name", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(name: str) -> None:
    if not HEADERS[name].exists():
        pytest.skip(f"{HEADERS[name]} is not installed")
    text = HEADERS[name].read_text(encoding="ascii")
    found = {
        match[1].removeprefix("3264_").replace("fstatat", "newfstatat"): int(match[2])
        for match in re.finditer(r"#define __NR(?:_|3264_)(\w+) (\d+)$", text, re.MULTILINE)
    }
    numbers = seccomp.ARCHITECTURES[name].numbers
    found["newfstatat"] = found.get("newfstatat", found.get("newnewfstatat", -1))
    assert {call: found[call] for call in numbers} == numbers


@pytest.fixture(scope="module")
def locked() -> Iterator[Sandbox]:
    with sandbox_of() as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def report(locked: Sandbox) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read(locked, scripted(1, {1: "tries_everything"})).text)
    return found


@needs_filter
def test_a_child_is_refused_everything_that_no_document_needs(report: dict[str, Any]) -> None:
    tries = {name: outcome for name, outcome in report.items() if name != "environment"}
    assert set(tries.values()) == {"EPERM"}, tries


def test_a_child_sees_nothing_of_the_sites_environment(report: dict[str, Any]) -> None:
    assert report["environment"] == {"LC_ALL": "C.UTF-8", "PATH": os.defpath}


@needs_filter
def test_the_state_tells_that_the_filter_is_on(locked: Sandbox) -> None:
    read(locked, scripted(1))
    assert locked.stats().unfiltered is None


def test_a_host_without_the_filter_reads_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "_ACTIONS", Path("/nonexistent"))
    (problem,) = LocalBackend(BackendConfig()).check()
    assert "cannot be filtered: the kernel does not tell that it can" in problem.message
    with sandbox_of(filtered=False) as sandbox:
        assert read(sandbox, scripted(1)).complete
        assert sandbox.stats().unfiltered == "it was not asked for"


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [("platform", "darwin", "darwin has no seccomp")],
)
def test_other_systems_have_none(
    monkeypatch: pytest.MonkeyPatch, attribute: str, value: str, reason: str
) -> None:
    monkeypatch.setattr(seccomp.sys, attribute, value)
    assert seccomp.why_unavailable() == reason


def test_other_machines_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
    assert seccomp.why_unavailable() == "there is no list of system calls for riscv64"


def outcome_of(sandbox: Sandbox, data: bytes) -> object:
    try:
        result = read(sandbox, data)
    except PdfPoolError as error:
        return error.code, str(error)
    return result.pages, result.metadata, result.warnings, result.error


def test_documents_read_the_same_locked_and_unlocked() -> None:
    kinds = dict(documents())
    kinds |= {path.name: path.read_bytes() for path in HOSTILE.glob("text_*.pdf")}
    kinds |= {path.name: path.read_bytes() for path in HOSTILE.glob("crypt_*.pdf")}
    engine = "pdfpool_django.engines.pypdf"
    with sandbox_of(engine) as locked, sandbox_of(engine, filtered=False) as unlocked:
        for name, data in kinds.items():
            assert outcome_of(locked, data) == outcome_of(unlocked, data), name
