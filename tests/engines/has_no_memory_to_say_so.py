"""Fails, and memory runs out once more while it is looked at why."""

from __future__ import annotations

from typing import NoReturn


class _Costly(BaseException):
    @property
    def errno(self) -> NoReturn:
        raise MemoryError


def act(page: int) -> str:
    raise _Costly
