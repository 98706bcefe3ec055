"""Tells which ways of writing a file are open to it."""

from __future__ import annotations

import os

from pdfpool_django.sandbox.limits import SOCKET_FD


def act(page: int) -> str:
    done = [name for name, way in WAYS.items() if succeeds(way)]
    return ",".join(done)


def succeeds(way: object) -> bool:
    try:
        way()
    except OSError:
        return False
    return True


def write_temporary_file() -> None:
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
    try:
        os.write(fd, b"x")
    finally:
        os.close(fd)


def connect_descriptors() -> None:
    fds = [os.dup(SOCKET_FD) for _ in range(3)]
    for fd in fds:
        os.close(fd)


WAYS = {
    "temporary file": write_temporary_file,
    "more descriptors": connect_descriptors,
    "becoming root": lambda: os.setresuid(0, 0, 0),
}
