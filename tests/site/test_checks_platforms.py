"""Other platforms than Linux: everything imports, a check says what is missing, calls refuse."""

from __future__ import annotations

import errno
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks

from pdfpool_django import errors, runtime
from pdfpool_django.extraction import extract
from pdfpool_django.sandbox import descriptors, platforms
from tests.site.helpers import SAMPLE

ROOT = Path(__file__).resolve().parent.parent.parent

# Names that the standard library does not have there (docs.python.org, "Availability").
MISSING = {
    "win32": {
        "modules": ["fcntl", "resource", "grp", "pwd", "termios", "_posixsubprocess"],
        "os": [
            *("O_CLOEXEC", "P_PID", "WEXITED", "WNOHANG", "WNOWAIT", "fork", "forkpty"),
            *("getegid", "geteuid", "getgid", "getpgid", "getuid", "killpg", "memfd_create"),
            *("MFD_ALLOW_SEALING", "MFD_CLOEXEC", "pidfd_open", "pread", "preadv", "pwrite"),
            *("register_at_fork", "setgroups", "setresgid", "setresuid", "setsid", "sysconf"),
            *("wait", "wait3", "wait4", "waitid"),
        ],
        "signal": [
            *("SIGKILL", "SIGHUP", "SIGCHLD", "SIGXCPU", "SIGBUS", "SIGUSR1", "SIG_SETMASK"),
            *("pidfd_send_signal", "pthread_sigmask"),
        ],
        "socket": ["AF_UNIX", "CMSG_SPACE", "MSG_CMSG_CLOEXEC", "SCM_RIGHTS", "send_fds"],
        "select": ["poll", "POLLIN", "epoll"],
    },
    "darwin": {
        "modules": [],
        "os": ["memfd_create", "MFD_ALLOW_SEALING", "MFD_CLOEXEC", "pidfd_open"],
        "signal": ["pidfd_send_signal"],
        "socket": ["MSG_CMSG_CLOEXEC"],
        "select": ["epoll"],
    },
}
MISSING["freebsd14"] = MISSING["darwin"]

SCRIPT = """
# What is not ours has been made for the platform already, so it is imported first.
import asyncio, concurrent.futures.thread, importlib, json, logging.config, multiprocessing, os
import pathlib, pkgutil, select, signal, socket, subprocess, sys, tempfile, zoneinfo
import tqdm
import django.core.checks, django.core.files.uploadedfile, django.core.management
import django.db.backends.sqlite3.base, django.forms, django.http.multipartparser
import django.test, django.views.generic
runner = asyncio.Runner()
runner.get_loop()  # for it needs a socket pair of the platform's kind

platform, missing = json.loads(sys.argv[1])
assert not [name for name in sys.modules if name.startswith("pdfpool_django")]
sys.platform = platform
for name in missing.pop("modules"):
    sys.modules[name] = None
for module, names in missing.items():
    for name in names:
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)

os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
django.setup()
import pdfpool_django
names = [each.name for each in pkgutil.walk_packages(pdfpool_django.__path__, "pdfpool_django.")]
for name in names:
    if name == "pdfpool_django.engines.base" or not name.startswith("pdfpool_django.engines."):
        importlib.import_module(name)

from django.test import Client
from pdfpool_django import errors, runtime
from pdfpool_django.extraction import aextract, extract

data = pathlib.Path("example_project/samples/invoice.pdf").read_bytes()
refusals = []
for source in (data, "example_project/samples/invoice.pdf", open(os.devnull, "rb")):
    try:
        extract(source, caller="a")
    except errors.Unavailable as error:
        refusals.append(str(error))
try:
    runner.run(aextract(data, caller="a"))
except errors.Unavailable as error:
    refusals.append(str(error))
state = runtime.state()
with django.test.override_settings(ALLOWED_HOSTS=["testserver"]):
    health = Client().get("/pdf/health/")
runtime.close()
runner.close()
print(json.dumps({
    "imported": names,
    "checks": [[each.id, each.msg, each.hint] for each in django.core.checks.run_checks(
        tags=["pdfpool"], include_deployment_checks=True)],
    "refusals": refusals,
    "available": state.available,
    "reason": state.reason,
    "health": health.status_code,
}))
"""


@pytest.fixture(scope="module", params=MISSING)
def elsewhere(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a fresh interpreter tells that has only what another platform has."""
    what = json.dumps([request.param, MISSING[request.param]])
    environment = {name: os.environ[name] for name in os.environ if name != "WEB_CONCURRENCY"}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, what],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout.splitlines()[-1])
    return {**told, "platform": request.param}


CURES = {
    "win32": "Run the site in WSL 2, the Windows Subsystem for Linux.",
    "darwin": "Run the site in a Linux container or virtual machine.",
    "freebsd14": "Run the site on Linux.",
}
NAMES = {"win32": "Windows", "darwin": "macOS", "freebsd14": "freebsd14"}


def test_everything_imports(elsewhere: dict[str, Any]) -> None:
    assert {"pdfpool_django.views", "pdfpool_django.sandbox.host"} <= set(elsewhere["imported"])


def test_the_one_check_names_the_cure_and_each_missing_limit(elsewhere: dict[str, Any]) -> None:
    ((check_id, message, hint),) = elsewhere["checks"]
    assert check_id == "pdfpool.W003"
    assert f"refused as `unavailable`: {NAMES[elsewhere['platform']]} has no pidfds" in message
    assert hint == CURES[elsewhere["platform"]]
    for limit in ("RLIMIT_AS", "seccomp", "NO_NEW_PRIVS", "PDEATHSIG", "oom_score_adj"):
        assert limit in message
    assert ("setrlimit" in message) is (elsewhere["platform"] == "win32")


def test_calls_are_unavailable_and_name_the_cure(elsewhere: dict[str, Any]) -> None:
    name, cure = NAMES[elsewhere["platform"]], CURES[elsewhere["platform"]]
    sentence = (
        f"Documents cannot be read here: {name} has no pidfds, by which children are watched and "
        f"ended. {cure}"
    )
    assert elsewhere["refusals"] == [sentence] * 4


def test_the_site_is_not_healthy_and_says_why(elsewhere: dict[str, Any]) -> None:
    assert elsewhere["available"] is False
    assert "has no pidfds" in elsewhere["reason"]
    assert elsewhere["health"] == 503


# Linux that lacks something


def only() -> CheckMessage:
    (message,) = run_checks(tags=["pdfpool"])
    assert message.id == "pdfpool.W003"
    return message


def refused(number: int) -> Any:
    def pidfd_open(pid: int) -> int:
        raise OSError(number, os.strerror(number))

    return pidfd_open


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_without_pidfds(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pidfd_open", refused(number))
    assert "the kernel, or a filter around this process, refuses pidfd_open." in only().msg
    assert not runtime.state().available
    with pytest.raises(errors.Unavailable, match=r"Use Linux 5\.3 or newer"):
        extract(SAMPLE, caller="a")


def test_too_many_open_files_say_nothing_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pidfd_open", refused(errno.EMFILE))
    assert platforms.obstacle() is None


def test_a_host_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "_DESCRIPTORS", "/nonexistent")
    message = only()
    assert "there is no /nonexistent" in message.msg
    assert message.hint == "Mount /proc."
    with pytest.raises(errors.Unavailable, match="Mount /proc"):
        descriptors.from_bytes(b"%PDF-")


def test_linux_lacks_no_limit() -> None:
    assert platforms.obstacle() is None
    assert platforms.missing_limits() == ()


def test_what_only_windows_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    there = runpy.run_path(platforms.__file__)
    assert (there["fcntl"], there["resource"]) == (None, None)
    monkeypatch.delattr(os, "register_at_fork")
    there["after_fork"](pytest.fail)
    monkeypatch.setattr(sys, "platform", "win32")
    assert "setrlimit" in there["missing_limits"]()[-1]
    assert there["obstacle"]().cure == CURES["win32"]
