"""How much memory this process and its children may have together.

Sources: ``man 5 proc`` (meminfo), ``man 7 cgroups`` (/proc/pid/cgroup), and the kernel's
``admin-guide/cgroup-v2.rst`` (memory.max: a number of bytes or "max"; a group is held to its
ancestors' limits too) and ``admin-guide/cgroup-v1/memory.rst`` (memory.limit_in_bytes).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")

_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Memory:
    """An amount of memory, and what bounds it."""

    size: int
    """Bytes."""
    bound: str


def available(root: Path | None = None) -> Memory | None:
    """Return the least that the host and the control groups leave; ``None`` where none tells.

    Args:
        root: The directory that holds ``proc`` and ``sys``.
    """
    base = ROOT if root is None else root
    return min([*_host(base), *_groups(base)], default=None)


def _host(root: Path) -> Iterator[Memory]:
    if total := _TOTAL.search(_read(root / "proc/meminfo")):
        yield Memory(int(total[1]) * 1024, "the host's memory")


def _groups(root: Path) -> Iterator[Memory]:
    for line in _read(root / "proc/self/cgroup").splitlines():
        # hierarchy:controllers:path, where version 2 has no controllers.
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _limits(root / "sys/fs/cgroup", path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")


def _limits(mount: Path, path: str, name: str) -> Iterator[Memory]:
    """Yield the limits of a group and its ancestors.

    In a container the path may be the host's, and not exist here: the mount's
    top is then the container's own group.
    """
    group = PurePosixPath(path.lstrip("/"))
    for directory in (group, *group.parents):
        text = _read(mount / directory / name).strip()
        if text.isdecimal():  # and not "max"
            yield Memory(int(text), "the limit of its control group")


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""
