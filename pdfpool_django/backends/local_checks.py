"""What is wrong with reading documents in children of this process, on this host."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata

from pdfpool_django.backends import modules
from pdfpool_django.backends.base import BackendConfig, Problem
from pdfpool_django.model import MIB
from pdfpool_django.sandbox import memory, platforms, seccomp

_SERVERS = {"gunicorn", "uvicorn"}
_OWN_ENGINE = "pdfpool_django.engines.pypdf"
_OWN_DISTRIBUTION = "pdfpool-django"
_BOUND = re.compile(r"pypdf\b[^;]*>=\s*(\d+(?:\.\d+)*)")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_WORKERS = re.compile(r"(?:^|\s)(?:-w|--workers)[\s=]*(\d+)")


def problems(config: BackendConfig) -> list[Problem]:
    """Return everything that is wrong. Nothing is imported, and nothing run."""
    return [
        *_engine(config),
        *_library(config),
        *_interpreter(config),
        *_platform(),
        *_memory(config),
        *_workers(config),
        *_first_process(),
    ]


def _engine(config: BackendConfig) -> Iterator[Problem]:
    """Look for the engine, unless it may be where only another interpreter finds it."""
    if config.python != sys.executable:
        return
    try:
        spec = modules.find(config.engine)
        missing = modules.missing_imports(spec) if spec else []
    except LookupError:
        return
    except (ImportError, SyntaxError) as error:
        yield _no_engine(f"PDFPOOL['ENGINE'] cannot be imported: {error}.")
        return
    if spec is None:
        yield _no_engine(f"PDFPOOL['ENGINE'] names {config.engine}, and there is no such module.")
    elif missing:
        yield Problem(
            f"PDFPOOL['ENGINE'] names {config.engine}, which imports {' and '.join(missing)}; "
            f"this is not installed.",
            f"Install it beside Django: {sys.executable} -m pip install {' '.join(missing)}.",
            "pdfpool.E021",
        )


def _no_engine(message: str) -> Problem:
    hint = "Write 'pypdf', or the dotted path of a module that has an `engine`."
    return Problem(message, hint, "pdfpool.E020")


def _library(config: BackendConfig) -> Iterator[Problem]:
    """Warn of a pypdf below our own lower bound, which is raised for each of its advisories."""
    if config.python != sys.executable or config.engine != _OWN_ENGINE:
        return
    try:
        required, installed = metadata.requires(_OWN_DISTRIBUTION), metadata.version("pypdf")
    except metadata.PackageNotFoundError:
        return  # a checkout that is not installed; or no pypdf, which is said elsewhere
    found = (_BOUND.match(requirement) for requirement in required or ())
    bounds = [match[1] for match in found if match]
    if bounds and _release(installed) < max(map(_release, bounds)):
        yield Problem(
            f"pypdf {installed} is installed, and {max(bounds, key=_release)} or newer is needed: "
            "what older ones do with hostile files is known, and mended since.",
            f"Run: {sys.executable} -m pip install --upgrade {_OWN_DISTRIBUTION} pypdf.",
            "pdfpool.W009",
        )


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, zeros at their end left out."""
    match = _RELEASE.match(version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _interpreter(config: BackendConfig) -> Iterator[Problem]:
    if not os.path.isfile(config.python) or not os.access(config.python, os.X_OK):
        yield Problem(
            f"PDFPOOL['PYTHON'] is {config.python!r}, where there is no program to execute.",
            "Write the path of the interpreter that has the site's packages, such as "
            "'/srv/site/venv/bin/python'.",
            "pdfpool.E022",
        )


def _platform() -> Iterator[Problem]:
    obstacle = platforms.obstacle()
    if obstacle is not None:
        yield Problem(
            f"Documents cannot be read here, and every call is refused as `unavailable`: "
            f"{obstacle.reason}.{_missing_limits()}",
            obstacle.cure,
            "pdfpool.W003",
        )
        return
    reason = seccomp.why_unavailable()
    if reason is not None:
        yield Problem(
            f"The children's system calls cannot be filtered: {reason}.",
            "Documents are read with the other limits only. Use Linux on x86-64 or aarch64, "
            "and a container whose /proc shows the kernel's settings.",
            "pdfpool.W002",
        )


def _missing_limits() -> str:
    missing = platforms.missing_limits()
    return f" Nor has it these limits: {'; '.join(missing)}." if missing else ""


def _memory(config: BackendConfig) -> Iterator[Problem]:
    available = memory.available()
    needed = config.slots * config.page_workers * config.limits.memory
    if available is None or needed <= available.size:
        return
    yield Problem(
        f"Documents may take {_mib(needed)} at once (SLOTS {config.slots} × PAGE_WORKERS "
        f"{config.page_workers} × MEMORY {_mib(config.limits.memory)}), which is more than "
        f"{available.bound}, {_mib(available.size)}.",
        "Lower SLOTS, PAGE_WORKERS or MEMORY, or give it more memory; otherwise the kernel "
        "ends children whose documents are within their own limit.",
        "pdfpool.W005",
    )


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"


def _workers(config: BackendConfig) -> Iterator[Problem]:
    known = _known_workers()
    if known is None or known[0] < 2:
        return
    count, source = known
    children = count * config.slots * config.page_workers
    yield Problem(
        f"The server has {count} workers ({source}), and each has a pool of its own: "
        f"{count} × {config.slots} = {count * config.slots} documents are read at once, which may "
        f"take {_mib(children * config.limits.memory)}; a caller may have {count} in flight.",
        "Use one worker with many threads, or set SLOTS for one worker's share. Silence this "
        "where the server's own configuration sets another number.",
        "pdfpool.W006",
        deployment=True,
    )


def _known_workers() -> tuple[int, str] | None:
    """Return how many workers there are, as far as this process can know, and from where.

    A server's configuration file may say otherwise; to read it would be to run it.
    """
    running = getattr(sys.modules.get("uwsgi"), "numproc", None)  # only there inside uWSGI
    if isinstance(running, int):
        return running, "uwsgi.numproc"
    if os.path.basename(sys.argv[0]) in _SERVERS and (found := _WORKERS.findall(_arguments())):
        return int(found[-1]), "the server's arguments"
    given = os.environ.get("GUNICORN_CMD_ARGS", "")
    if found := _WORKERS.findall(given):
        return int(found[-1]), f"GUNICORN_CMD_ARGS={shlex.quote(given)}"
    count = os.environ.get("WEB_CONCURRENCY", "")
    return (int(count), f"WEB_CONCURRENCY={count}") if count.isdecimal() else None


def _arguments() -> str:
    return " ".join(sys.argv[1:])


def _first_process() -> Iterator[Problem]:
    if os.getpid() == 1:
        yield Problem(
            "Django runs as process 1, which inherits the orphans of its container and reaps none: "
            "what a child leaves behind stays as a zombie.",
            "Start the container with an init, as `docker run --init` or tini does.",
            "pdfpool.W007",
            deployment=True,
        )
