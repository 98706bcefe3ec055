"""What the tests of served sites share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server.client import Answer
from tests.server.site import make_database


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database with users, for each site to copy."""
    return make_database(
        tmp_path_factory.mktemp("database") / "db.sqlite3", "tests.server.settings"
    )


@pytest.fixture
def background() -> Iterator[Callable[..., Future[Answer]]]:
    executor = ThreadPoolExecutor(8)
    yield executor.submit
    executor.shutdown(wait=False, cancel_futures=True)
