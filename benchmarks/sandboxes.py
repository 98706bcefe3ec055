"""A sandbox as `LocalBackend` makes it, for what is measured below the public functions."""

from __future__ import annotations

import sys
import time

from pdfpool_django.model import Limits
from pdfpool_django.sandbox.host import Sandbox, SandboxConfig

START_SECONDS = 30


def sandbox(*, filtered: bool = True) -> Sandbox:
    """Return one that has nothing started yet, and keeps one standby; to be closed."""
    allowed = Limits()
    return Sandbox(
        SandboxConfig(
            engine="pdfpool_django.engines.pypdf",
            python=sys.executable,
            memory=allowed.memory,
            cpu=allowed.deadline,
            standbys=1,
            filtered=filtered,
        )
    )


def use_one(some: Sandbox) -> None:
    """Take a child, which starts the launcher where there is none, and give it back unused."""
    some.release(some.child(time.monotonic() + START_SECONDS))
