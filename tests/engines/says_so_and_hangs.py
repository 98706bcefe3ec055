"""Says on standard error that it hangs, then does."""

from __future__ import annotations

import os
import time

WORDS = "a page hangs now"


def act(page: int) -> str:
    os.write(2, f"{WORDS}\n".encode())
    while True:
        time.sleep(0.01)
