"""What this process has: taken before and after, it tells what was left behind."""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holdings:
    """What a process has that it could leave behind."""

    children: tuple[int, ...]
    descriptors: tuple[str, ...]
    files: tuple[str, ...]
    """In the folder for temporary ones, and core dumps where the launcher works."""
    threads: tuple[str, ...]

    def complaints(self, since: Holdings) -> list[str]:
        """Return what there is now that there was not."""
        return [
            f"{name} left: {', '.join(map(str, surplus))}"
            for name in ("children", "descriptors", "files", "threads")
            if (surplus := _surplus(getattr(self, name), getattr(since, name)))
        ]


def _surplus(now: tuple[object, ...], then: tuple[object, ...]) -> list[object]:
    left = list(now)
    for each in then:
        if each in left:
            left.remove(each)
    return left


def holdings() -> Holdings:
    """Return what this process has."""
    return Holdings(
        children=tuple(_children()),
        descriptors=tuple(_descriptors()),
        files=tuple(sorted(os.listdir(tempfile.gettempdir())) + _core_dumps()),
        threads=tuple(sorted(thread.name for thread in threading.enumerate())),
    )


def _core_dumps() -> list[str]:
    return sorted(map(str, Path("/").glob("core*")))


def _children() -> list[int]:
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):
        found += map(int, Path(f"/proc/self/task/{task}/children").read_text().split())
    return sorted(found)


def _descriptors() -> list[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:  # what lists them
            continue
        found.append(target.split(":")[0])  # a socket's number differs from one to the next
    return sorted(found)


def resident(pid: int | None = None) -> int:
    """Return the bytes of memory that a process has; 0 where it is gone."""
    try:
        status = Path(f"/proc/{pid or os.getpid()}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmRSS:"))
    return next((int(line[1]) * 1024 for line in lines), 0)
