from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from pdfpool_django import runtime
from tests.sandbox.helpers import eventually
from tests.site.asking import WAYS, Ask
from tests.site.helpers import scripted


@pytest.fixture(autouse=True)
def idle_afterwards() -> Iterator[None]:
    """A test leaves no job behind, nor a backend that is closed."""
    yield
    if not runtime._backends:
        return
    try:
        eventually(lambda: not runtime.state().running + runtime.state().queued, "an idle pool")
    except BaseException:
        runtime.reset()
        raise
    if not runtime.state().available:
        runtime.reset()


@pytest.fixture(scope="module")
def scripts() -> Iterator[None]:
    """For a module: documents are scripts, which say what happens on which page."""
    with scripted():
        yield


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Each of the four public functions."""
    way: Ask = request.param
    return way


@pytest.fixture
def uploads(tmp_path: Path) -> Iterator[Path]:
    """Where every upload becomes a temporary file; after the test, it is gone."""
    with override_settings(
        FILE_UPLOAD_TEMP_DIR=str(tmp_path),
        FILE_UPLOAD_MAX_MEMORY_SIZE=0,
        DATA_UPLOAD_MAX_MEMORY_SIZE=10_000,
    ):
        yield tmp_path
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a test keeps its documents."""
    folder = tmp_path / "in"
    folder.mkdir()
    return folder
