"""What other tests have left in this process does not change while one of these looks."""

from __future__ import annotations

import pytest

from tests.sandbox.rest import await_rest


@pytest.fixture(scope="module", autouse=True)
def others_are_at_rest() -> None:
    await_rest()
