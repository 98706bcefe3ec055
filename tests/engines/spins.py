"""Never comes back from a page, and uses the processor all the while."""

from __future__ import annotations


def act(page: int) -> str:
    while True:
        pass
