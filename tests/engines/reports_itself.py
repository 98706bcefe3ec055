"""Tells as JSON what the child has and may do."""

from __future__ import annotations

import json
import os
import resource

_LIMITS = ("AS", "CPU", "FSIZE", "NOFILE", "CORE")


def act(page: int) -> str:
    report = {
        "descriptors": open_descriptors(),
        "limits": {
            name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in _LIMITS
        },
        "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
        "pid": os.getpid(),
        "session": os.getsid(0),
        "launcher": os.getppid(),
        "status": read("status"),
        "oom_score_adj": read("oom_score_adj"),
    }
    return json.dumps(report)


def open_descriptors() -> list[int]:
    found = []
    for fd in range(1024):
        try:
            os.fstat(fd)
        except OSError:
            continue
        found.append(fd)
    return found


def read(name: str) -> str:
    with open(f"/proc/self/{name}", encoding="utf-8") as file:
        return file.read()
