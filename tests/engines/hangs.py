"""Never comes back from a page."""

from __future__ import annotations

import time


def act(page: int) -> str:
    while True:
        time.sleep(0.01)
