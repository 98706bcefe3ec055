from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pdfpool_django.pool import Pool
from tests.pool.helpers import Clock

Ask = Callable[..., Any]


def _do(pool: Pool, key: Any, caller: Any, fn: Any, timeout: float | None = None) -> Any:
    return pool.do(key, caller, fn, timeout=timeout)


def _ado(pool: Pool, key: Any, caller: Any, fn: Any, timeout: float | None = None) -> Any:
    return asyncio.run(pool.ado(key, caller, fn, timeout=timeout))


@pytest.fixture(params=[_do, _ado], ids=["do", "ado"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """`do`, or `ado` in an event loop of its own; both keep the same rules."""
    return request.param


@pytest.fixture
def clock() -> Iterator[Clock]:
    """The pool's clock, which moves only when told to."""
    with Clock() as clock:
        yield clock
