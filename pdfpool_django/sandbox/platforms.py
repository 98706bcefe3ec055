"""What this platform has of what children are made with: the one place that asks.

Every module can be imported on every platform, so that a site can be worked on there. Where no
child can be made, a call says so.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pdfpool_django.errors import Unavailable

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

__all__ = ["Obstacle", "after_fork", "fcntl", "missing_limits", "obstacle", "require", "resource"]

_NAMES = {"win32": "Windows", "darwin": "macOS", "linux": "Linux"}
_CURES = {
    "win32": "Run the site in WSL 2, the Windows Subsystem for Linux.",
    "darwin": "Run the site in a Linux container or virtual machine.",
}
_OTHER_CURE = "Run the site on Linux."

_LIMITS_OF_LINUX = (
    "a limit of address space that is kept (RLIMIT_AS)",
    "an allow-list of system calls (seccomp)",
    "a bar to new privileges (PR_SET_NO_NEW_PRIVS)",
    "the end of a child with its launcher (PR_SET_PDEATHSIG)",
    "the choice of a child for the kernel's out-of-memory killer (oom_score_adj)",
)
_LIMITS_OF_POSIX = ("limits of processor time, file size and descriptors (setrlimit)",)

_DESCRIPTORS = "/proc/self/fd"
_REFUSED = {errno.ENOSYS, errno.EPERM, errno.EACCES}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why no child can be made here."""

    reason: str
    cure: str
    """A sentence that says what to do."""


def obstacle() -> Obstacle | None:
    """Return why no child can be made here; ``None`` where one can."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        name = _NAMES.get(sys.platform, sys.platform)
        reason = f"{name} has no pidfds, by which children are watched and ended"
        return Obstacle(reason, _CURES.get(sys.platform, _OTHER_CURE))
    if not os.path.isdir(_DESCRIPTORS):
        reason = f"there is no {_DESCRIPTORS}, by which documents are opened read-only"
        return Obstacle(reason, "Mount /proc.")
    return None if _pidfds_work() else _NO_PIDFDS


_NO_PIDFDS = Obstacle(
    "the kernel, or a filter around this process, refuses pidfd_open",
    "Use Linux 5.3 or newer, and a container runtime that knows this system call.",
)


def _pidfds_work() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return error.errno not in _REFUSED  # as too many open files will pass
    return True


def require() -> None:
    """Make sure that children can be made here.

    Raises:
        Unavailable: They cannot.
    """
    found = obstacle()
    if found is not None:
        template = "Documents cannot be read here: %(reason)s. %(cure)s"
        raise Unavailable(template, reason=found.reason, cure=found.cure)


def missing_limits() -> tuple[str, ...]:
    """Return the limits of a child that this platform lacks, whatever its kernel's settings."""
    if sys.platform == "linux":
        return ()
    return _LIMITS_OF_LINUX if resource else (*_LIMITS_OF_LINUX, *_LIMITS_OF_POSIX)


def after_fork(forget: Callable[[], None]) -> None:
    """Have `forget` called in each process that is forked from this one, where any can be."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
