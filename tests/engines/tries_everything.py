"""Tries what no document needs; tells as JSON what came of each try."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import socket
from collections.abc import Callable

from pdfpool_django.sandbox.limits import DOCUMENT_FD, SOCKET_FD


def write_open_file() -> None:
    os.open(f"/proc/self/fd/{DOCUMENT_FD}", os.O_RDWR)


TRIES: dict[str, Callable[[], object]] = {
    "open a file": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "open the site's settings": lambda: os.open(__file__, os.O_RDONLY),
    "make a file": lambda: os.open("/tmp/made", os.O_CREAT | os.O_WRONLY),
    "list a folder": lambda: os.listdir("/"),
    "look at a file": lambda: os.stat("/etc/passwd"),
    "open the document for writing": write_open_file,
    "make a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "make a pipe": os.pipe,
    "copy a descriptor": lambda: os.dup(SOCKET_FD),
    "fork": os.fork,
    "run a program": lambda: os.execv("/bin/true", ["true"]),
    "signal the launcher": lambda: os.kill(os.getppid(), 0),
    "limit the launcher": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU),
    "change user": lambda: os.setuid(0),
    "change directory": lambda: os.chdir("/tmp"),
    "leave the session": os.setsid,
    "wait for signals": lambda: signal.sigtimedwait([signal.SIGUSR1], 0),
    "map memory shared": lambda: os.memfd_create("more"),
}


def act(page: int) -> str:
    found = {name: outcome(attempt) for name, attempt in TRIES.items()}
    found["environment"] = dict(os.environ)
    return json.dumps(found)


def outcome(attempt: Callable[[], object]) -> str:
    try:
        return f"succeeded: {attempt()}"
    except OSError as error:
        return errno.errorcode[error.errno or 0]
