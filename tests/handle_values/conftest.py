"""A sandbox of pypdf that can decode pictures, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pdfpool_django.sandbox.host import Sandbox
from tests.handle_values.opening import PYPDF_MEMORY
from tests.sandbox.helpers import sandbox_of


@pytest.fixture(scope="module")
def pypdf_sandbox() -> Iterator[Sandbox]:
    engine = "pdfpool_django.engines.pypdf"
    with sandbox_of(engine, images=True, memory=PYPDF_MEMORY, cpu=3600.0) as sandbox:
        yield sandbox
