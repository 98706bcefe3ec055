"""What every test may rely on: interrupts end what it starts, and no backend is left to run on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heeded() -> None:
    """A shell has its background jobs ignore them, and what the tests start would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_backend_is_left() -> Iterator[None]:
    """End the backend that the last test has left behind."""
    yield
    from pdfpool_django import runtime

    runtime.reset()


@pytest.fixture
def member(db: None, client: Any, django_user_model: Any) -> Any:
    """The browser of a user who has logged in."""
    client.force_login(django_user_model.objects.create_user("member"))
    return client
