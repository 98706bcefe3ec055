"""What every test may rely on: no backend is left to run on, and somebody has logged in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


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
