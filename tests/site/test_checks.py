"""What `manage.py check` says of a site and its host, beyond single wrong values."""

from __future__ import annotations

import os
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, Error, run_checks
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

import pdfpool_django
from pdfpool_django import conf
from pdfpool_django.backends import local_checks, modules
from pdfpool_django.backends.base import BackendConfig
from pdfpool_django.backends.local import LocalBackend
from pdfpool_django.model import MIB
from pdfpool_django.sandbox import memory, seccomp
from tests.site.hosts import GIB, be_ordinary


def checked(given: Any, *, deploy: bool = False) -> list[CheckMessage]:
    with override_settings(PDFPOOL=given):
        return run_checks(tags=["pdfpool"], include_deployment_checks=deploy)


def only(given: Any, check_id: str, *, deploy: bool = False) -> CheckMessage:
    """Return the one message; its id, severity and hint are as they must be."""
    found = checked(given, deploy=deploy)
    assert [message.id for message in found] == [f"pdfpool.{check_id}"], found
    (message,) = found
    assert isinstance(message, Error if check_id.startswith("E") else CheckWarning)
    assert message.hint
    return message


@pytest.fixture(autouse=True)
def ordinary_host(monkeypatch: pytest.MonkeyPatch) -> None:
    be_ordinary(monkeypatch)


def test_an_ordinary_host_is_not_criticised() -> None:
    assert checked({}, deploy=True) == []


# CALLER and BACKEND


def test_a_caller_function_that_cannot_be_called_is_an_error() -> None:
    message = only({"CALLER": "os.sep"}, "E024")
    assert message.msg == "PDFPOOL['CALLER'] names os.sep, which cannot be called."


def test_an_async_caller_function_is_an_error() -> None:
    message = only({"CALLER": "asyncio.sleep"}, "E027")
    assert message.msg == "PDFPOOL['CALLER'] names asyncio.sleep, which is async."


@pytest.mark.parametrize(("key", "check_id"), [("CALLER", "E018"), ("BACKEND", "E019")])
def test_a_module_that_fails_while_it_is_imported_is_an_error(key: str, check_id: str) -> None:
    message = only({key: "tests.site.unsound.thing"}, check_id)
    assert message.msg.endswith("cannot be imported: RuntimeError: the site's key is missing")


@pytest.mark.parametrize("path", ["os.getcwd", "os.sep", "collections.OrderedDict"])
def test_what_is_no_backend_is_an_error_and_is_not_called(path: str) -> None:
    message = only({"BACKEND": path}, "E025")
    assert message.msg == f"PDFPOOL['BACKEND'] names {path}, which is no backend."


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tests.site.backends.CannotBeMade", "RuntimeError: no address is known"),
        ("tests.site.backends.CannotCheckItself", "OSError: the address does not answer"),
        ("pdfpool_django.backends.base.Backend", "TypeError: Can't instantiate abstract class"),
    ],
)
def test_a_backend_that_fails_is_an_error(path: str, reason: str) -> None:
    assert reason in only({"BACKEND": path}, "E026").msg


def test_a_wrong_backend_is_told_once() -> None:
    assert len(checked({"BACKEND": "tests.site.backends.CannotBeMade"}, deploy=True)) == 1


def test_a_backend_tells_its_own_problems() -> None:
    first, second = checked({"BACKEND": "tests.site.backends.HasProblemsOfItsOwn"})
    assert (first.id, first.msg, first.hint) == ("pdfpool.W008", "The moon is full.", "Wait.")
    assert isinstance(first, CheckWarning)
    assert (second.id, second.msg, second.hint) == ("moon.E007", "It is red.", "Go.")
    assert isinstance(second, Error)


# ENGINE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules can be imported; none is."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    assert not {name for name in set(sys.modules) - before if name.startswith("foreign")}


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("pypfd", "pdfpool_django.engines.pypfd"),
        ("no.such.engine", "no.such.engine"),
        ("tests.engines.missing", "tests.engines.missing"),
        ("json.decoder.engine", "json.decoder.engine"),
    ],
)
def test_an_engine_that_does_not_exist_is_an_error(name: str, module: str) -> None:
    message = only({"ENGINE": name}, "E020")
    assert message.msg == f"PDFPOOL['ENGINE'] names {module}, and there is no such module."


def test_an_engine_that_is_no_python_is_an_error(place: Path) -> None:
    write(place / "foreign/__init__.py")
    write(place / "foreign/broken.py", "def engine(:\n")
    message = only({"ENGINE": "foreign.broken"}, "E020")
    assert message.msg.startswith("PDFPOOL['ENGINE'] cannot be imported: ")


def test_a_foreign_engine_is_found_and_not_imported(place: Path) -> None:
    write(place / "foreign/__init__.py", "raise RuntimeError('imported')")
    write(place / "foreign/engines/__init__.py", "raise RuntimeError('imported')")
    write(place / "foreign/engines/mine.py", "import json, pypdf.errors\nfrom . import it")
    assert checked({"ENGINE": "foreign.engines.mine"}) == []


def test_an_engine_without_its_library_is_an_error(place: Path) -> None:
    write(place / "foreign/__init__.py")
    source = (
        "import zz_lib.part, json\nfrom aa_lib import thing\ntry:\n import bb_lib\nexcept: pass"
    )
    write(place / "foreign/mine.py", source)
    message = only({"ENGINE": "foreign.mine"}, "E021")
    assert "foreign.mine, which imports aa_lib and zz_lib; this is not installed." in message.msg
    assert message.hint == (
        f"Install it beside Django: {sys.executable} -m pip install aa_lib zz_lib."
    )


def test_our_own_engine_without_its_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    find = modules.find
    monkeypatch.setattr(modules, "find", lambda name: None if name == "pypdf" else find(name))
    assert "which imports pypdf; this is not installed." in only({}, "E021").msg


def test_what_another_interpreter_may_have_is_not_judged(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.symlink_to(sys.executable)
    assert checked({"ENGINE": "no.such.engine", "PYTHON": python}) == []


def test_what_cannot_be_known_without_importing_is_not_judged(place: Path) -> None:
    write(place / "foreign/nested/mine.py", "import no_such_library")
    assert checked({"ENGINE": "foreign.nested.mine"}) == []


def test_a_module_without_a_source_imports_nothing_that_is_known() -> None:
    spec = modules.find("sys")
    assert spec is not None
    assert modules.missing_imports(spec) == []


# PYTHON


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\n")
    return path


def test_an_interpreter_that_does_not_exist_is_an_error() -> None:
    message = only({"PYTHON": "/no/such/python"}, "E022")
    assert "'/no/such/python', where there is no program to execute." in message.msg


def test_an_interpreter_that_cannot_be_executed_is_an_error(program: Path) -> None:
    program.chmod(0o644)
    only({"PYTHON": program}, "E022")
    program.chmod(0o755)
    assert checked({"PYTHON": program}) == []


def test_a_folder_is_no_interpreter(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    only({"PYTHON": tmp_path / "python"}, "E022")


@pytest.mark.parametrize("name", ["uwsgi", "uwsgi_python3", "httpd", "apache2", "unitd"])
def test_a_server_is_no_interpreter(name: str) -> None:
    message = only({"PYTHON": f"/usr/sbin/{name}"}, "E023")
    assert (
        message.msg == f"PDFPOOL['PYTHON'] is '/usr/sbin/{name}', which is no Python interpreter."
    )
    assert "under uWSGI and mod_wsgi" in str(message.hint)


def test_a_server_is_never_started_as_an_interpreter() -> None:
    with (
        override_settings(PDFPOOL={"PYTHON": "/usr/bin/uwsgi"}),
        pytest.raises(ImproperlyConfigured, match="no Python interpreter"),
    ):
        conf.load()


@pytest.mark.parametrize("name", ["python", "python3.13t", "Python", "pypy3", ".python3-wrapped"])
def test_interpreters_are_known_by_their_names(name: str) -> None:
    assert conf._is_python(f"/usr/bin/{name}")


def test_a_link_to_an_interpreter_is_one(tmp_path: Path) -> None:
    (tmp_path / "interpreter").symlink_to(sys.executable)
    assert checked({"PYTHON": tmp_path / "interpreter"}) == []


def test_an_embedded_python_is_told_to_name_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    _, check, check_id = conf._SETTINGS["PYTHON"]
    monkeypatch.setitem(conf._SETTINGS, "PYTHON", ("", check, check_id))  # type: ignore[arg-type]
    message = only({}, "E017")
    assert str(message.hint).startswith("Write the path of the interpreter")


# Limits that go together


def test_a_page_deadline_that_is_never_met_is_a_warning() -> None:
    message = only({"DEADLINE": 10, "PAGE_DEADLINE": 10.5}, "W004")
    assert "is 10.5 seconds and never met, as the whole document has 10 (DEADLINE)" in message.msg


@pytest.mark.parametrize(
    "given", [{"DEADLINE": 5}, {"DEADLINE": 5, "PAGE_DEADLINE": 5}, {"PAGE_DEADLINE": 60}]
)
def test_a_page_deadline_within_the_documents_is_none(given: dict[str, Any]) -> None:
    assert checked(given) == []


def test_limits_that_are_wrong_are_told_once_before_a_deployment() -> None:
    assert [message.id for message in checked({"SLOTS": 0}, deploy=True)] == ["pdfpool.E003"]


# Memory


@pytest.mark.parametrize(
    ("given", "needed", "said"),
    [
        ({}, 768, "768 MiB at once (SLOTS 2 × PAGE_WORKERS 1 × MEMORY 384 MiB)"),
        ({"SLOTS": 1, "PAGE_WORKERS": 2}, 768, "(SLOTS 1 × PAGE_WORKERS 2 ×"),
        ({"SLOTS": 3, "MEMORY": 128 * MIB}, 384, "(SLOTS 3 × PAGE_WORKERS 1 × MEMORY 128"),
    ],
)
def test_more_memory_than_there_is_is_a_warning(
    given: dict[str, Any], needed: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = memory.Memory(needed * MIB, "the host's memory")
    monkeypatch.setattr(memory, "available", lambda: enough)
    assert checked(given) == []
    too_little = memory.Memory(needed * MIB - 1, "the host's memory")
    monkeypatch.setattr(memory, "available", lambda: too_little)
    message = only(given, "W005")
    assert said in message.msg
    assert f"more than the host's memory, {needed} MiB." in message.msg


def test_memory_that_is_not_known_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: None)
    assert checked({}) == []


MEMINFO = "MemTotal:        4194304 kB\nMemFree:          100 kB\n"
GROUP = "the limit of its control group"


def host(root: Path, groups: str, **limits: str) -> memory.Memory | None:
    """Return what a host leaves whose files these are."""
    write(root / "proc/meminfo", MEMINFO)
    write(root / "proc/self/cgroup", groups)
    for path, text in limits.items():
        write(root / "sys/fs/cgroup" / path, text)
    return REAL_AVAILABLE(root)


REAL_AVAILABLE = memory.available


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        pytest.param("0::/\n", {}, (4 * GIB, "the host's memory"), id="no-groups"),
        pytest.param(
            "0::/a/b\n", {"a/b/memory.max": "max\n"}, (4 * GIB, "the host's memory"), id="no-limit"
        ),
        pytest.param("0::/a/b\n", {"a/b/memory.max": f"{GIB}\n"}, (GIB, GROUP), id="its-own-limit"),
        pytest.param(
            "0::/a/b\n",
            {"a/b/memory.max": f"{2 * GIB}\n", "a/memory.max": f"{GIB}\n"},
            (GIB, GROUP),
            id="its-parents-limit",
        ),
        pytest.param(
            "0::/\n", {"memory.max": f"{GIB}\n"}, (GIB, GROUP), id="a-namespace-of-groups"
        ),
        pytest.param(
            "0::/../../host/path\n", {"memory.max": f"{GIB}"}, (GIB, GROUP), id="the-hosts-path"
        ),
        pytest.param(
            "4:cpu,memory:/docker/1f\n3:cpu:/x\n",
            {"memory/docker/1f/memory.limit_in_bytes": f"{GIB}\n"},
            (GIB, GROUP),
            id="version-1",
        ),
        pytest.param(
            "4:memory:/docker/1f\n0::/\n",
            {"memory/memory.limit_in_bytes": f"{GIB}\n"},
            (GIB, GROUP),
            id="version-1-in-a-container",
        ),
        pytest.param(
            "4:memory:/\n",
            {"memory/memory.limit_in_bytes": "9223372036854771712\n"},
            (4 * GIB, "the host's memory"),
            id="version-1-without-a-limit",
        ),
    ],
)
def test_the_least_of_host_and_groups_counts(
    groups: str, limits: dict[str, str], expected: tuple[int, str], tmp_path: Path
) -> None:
    assert host(tmp_path, groups, **limits) == memory.Memory(*expected)


def test_a_host_that_tells_nothing(tmp_path: Path) -> None:
    assert REAL_AVAILABLE(tmp_path) is None


def test_this_host_tells_its_memory() -> None:
    found = REAL_AVAILABLE()
    assert found is not None
    assert found.size <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_the_groups_limit_reaches_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(tmp_path, "0::/app\n", **{"app/memory.max": str(512 * MIB)})
    monkeypatch.setattr(memory, "available", REAL_AVAILABLE)
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    assert f"more than {GROUP}, 512 MiB." in only({}, "W005").msg


# Several workers: only before a deployment


def workers(given: dict[str, Any] | None = None) -> str:
    assert checked(given or {}) == []
    message = only(given or {}, "W006", deploy=True)
    return str(message.msg)


def test_several_workers_are_a_warning_with_the_real_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "4")
    assert workers({"SLOTS": 3}) == (
        "The server has 4 workers (WEB_CONCURRENCY=4), and each has a pool of its own: "
        "4 × 3 = 12 documents are read at once, which may take 4608 MiB; "
        "a caller may have 4 in flight."
    )


@pytest.mark.parametrize("given", ["1", "0", "", "many"])
def test_one_worker_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", given)
    assert checked({}, deploy=True) == []


@pytest.mark.parametrize(
    "given", ["--workers 3", "--workers=3", "-w 3", "-w3", "--threads 8 -w 2 --workers 3"]
)
def test_gunicorns_options_are_known(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "7")
    monkeypatch.setenv("GUNICORN_CMD_ARGS", given)
    assert workers().startswith("The server has 3 workers (GUNICORN_CMD_ARGS=")


def test_options_of_other_things_are_not_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--worker-class gthread --threads 16 --max-requests 9")
    assert checked({}, deploy=True) == []


def test_a_servers_own_arguments_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "-w 7")
    monkeypatch.setattr(sys, "argv", ["/venv/bin/gunicorn", "-w", "2", "site.wsgi"])
    assert workers().startswith("The server has 2 workers (the server's arguments)")
    monkeypatch.setattr(sys, "argv", ["manage.py", "import", "-w", "9"])
    assert workers().startswith("The server has 7 workers")


def test_uwsgi_tells_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uwsgi", types.SimpleNamespace(numproc=5))  # type: ignore[arg-type]
    assert workers().startswith("The server has 5 workers (uwsgi.numproc)")


# Process 1: only before a deployment


def test_process_1_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_checks.os, "getpid", lambda: 1)
    assert checked({}) == []
    message = only({}, "W007", deploy=True)
    assert message.msg.startswith("Django runs as process 1")
    assert "docker run --init" in str(message.hint)


# What the kernel offers


def test_system_calls_that_cannot_be_filtered_are_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seccomp, "why_unavailable", lambda: "it is an old kernel")
    message = only({}, "W002")
    assert message.msg == "The children's system calls cannot be filtered: it is an old kernel."


def test_a_backend_is_checked_without_starting_anything() -> None:
    backend = LocalBackend(BackendConfig())
    assert backend.check() == []
    assert backend.state().details["launchers_started"] == 0


# Every id

SOURCES = Path(pdfpool_django.__file__).parent.rglob("*.py")
ID = re.compile(r"pdfpool\.([EW]\d{3})")


def test_every_id_is_in_a_test() -> None:
    emitted = {found for path in SOURCES for found in ID.findall(path.read_text(encoding="utf-8"))}
    folder = Path(__file__).parent
    tests = "".join(path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
    assert emitted - set(re.findall(r"\b[EW]\d{3}\b", tests)) == set()
