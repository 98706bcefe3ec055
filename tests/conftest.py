"""What every test may rely on: a backend that one test has built is not left to run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_backend_is_left() -> Iterator[None]:
    """End the backend that the last test has left behind."""
    yield
    from pdfpool_django import runtime

    runtime.reset()
