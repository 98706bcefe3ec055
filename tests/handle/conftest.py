"""Sandboxes of the scripted engine and of pypdf, and a look at what each test leaves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pdfpool_django.sandbox.host import Sandbox
from tests.handle.helpers import ENGINE, handle, nothing_left
from tests.handle_values.opening import PYPDF_MEMORY
from tests.sandbox.helpers import sandbox_of, scripted, settle


@pytest.fixture(scope="session", autouse=True)
def quick_collections() -> Iterator[None]:
    """Have the collector, which every test here runs, not look at what was there before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    with sandbox_of(ENGINE, cpu=3600.0) as sandbox:
        handle(sandbox, scripted(1)).close()
        yield sandbox


@pytest.fixture
def sandbox(shared_sandbox: Sandbox) -> Iterator[Sandbox]:
    """After the test there is no child in use, no descriptor and no thread that was not before."""
    with nothing_left(shared_sandbox):
        yield shared_sandbox


@pytest.fixture
def pypdf_sandbox(shared_pypdf_sandbox: Sandbox) -> Iterator[Sandbox]:
    """After the test its next standby is there, so that it does not come while another looks."""
    yield shared_pypdf_sandbox
    settle(shared_pypdf_sandbox)


@pytest.fixture(scope="session")
def shared_pypdf_sandbox() -> Iterator[Sandbox]:
    with sandbox_of("pdfpool_django.engines.pypdf", memory=PYPDF_MEMORY, cpu=3600.0) as sandbox:
        yield sandbox
