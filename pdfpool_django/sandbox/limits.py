"""What a child does to itself before it reads a byte, so that a document cannot do more.

Sources: ``man 2 setrlimit``, ``man 2 prctl``, ``man 5 proc`` (oom_score_adj).
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import sys
from dataclasses import dataclass

from pdfpool_django.sandbox.platforms import resource

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38

NOBODY = 65534
"""User and group of a child whose site runs as root: the kernel's overflow id, on every Linux."""

MEMORY_RESERVE = 16 * 1024 * 1024
"""Bytes between the soft and the hard limit, for saying that the soft one was met."""

SOCKET_FD = 3
DOCUMENT_FD = 4
"""The document's descriptor, which a child is sent."""
INDEX_FD = 5
"""That of the text to be searched, which it may be sent besides."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What one child may use."""

    memory: int
    """Address space in bytes."""
    cpu: float
    """Processor time in seconds."""
    filtered: bool
    """Whether it may make only the system calls that reading needs."""


def confine(limits: ChildLimits, launcher_pid: int) -> None:
    """Give up every right and resource that reading a document does not need.

    Raises:
        OSError: A limit that this platform has could not be set.
    """
    _be_killed_first()
    _leave_root()
    # After the change of user, which clears it (man 2 prctl).
    _die_with_parent(launcher_pid)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _set_limits(limits)


def _be_killed_first() -> None:
    """Ask the kernel to choose this process first when the host runs out of memory."""
    with contextlib.suppress(FileNotFoundError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _leave_root() -> None:
    if os.geteuid() != 0:
        return
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def _die_with_parent(launcher_pid: int) -> None:
    """End with the launcher. It has one thread, so the signal means the process."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher_pid:
        os._exit(1)  # it was gone before the kernel was told


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _set_limits(limits: ChildLimits) -> None:
    seconds = math.ceil(limits.cpu) + 1
    _set(resource.RLIMIT_CORE, 0, 0)
    _set(resource.RLIMIT_FSIZE, 0, 0)
    _set(resource.RLIMIT_CPU, seconds, seconds + 1)
    _set(resource.RLIMIT_NOFILE, INDEX_FD + 1, INDEX_FD + 1)
    if sys.platform == "linux":  # macOS accepts the limit, and does not keep it
        _set(resource.RLIMIT_AS, limits.memory, limits.memory + MEMORY_RESERVE)


def _set(which: int, soft: int, hard: int) -> None:
    """Lower a limit; one that the site itself is held to is kept."""
    _, inherited = resource.getrlimit(which)
    if inherited != resource.RLIM_INFINITY:
        soft, hard = min(soft, inherited), min(hard, inherited)
    resource.setrlimit(which, (soft, hard))


def use_memory_reserve() -> None:
    """Raise the soft limit of memory to the hard one, so that a last word can be said."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
