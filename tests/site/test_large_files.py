"""A large document is never held in the memory of the web process, wherever it comes from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs_code import ROOT
from tests.site.large_documents import MIB, REQUESTS, SOURCES

BOUND = 8 * MIB
"""What a few chunks, and whatever Python happens to allocate meanwhile, may take."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("large")
    done = subprocess.run(
        [sys.executable, "-m", "tests.site.large_documents", str(folder)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        check=True,
    )
    Path(folder, "large.pdf").unlink()
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [*SOURCES, *REQUESTS])
def test_two_hundred_megabytes_are_read_and_not_held(report: Any, name: str) -> None:
    result = report["results"][name]
    assert result["text"].strip() == "A page of a large file"
    assert result["sha256"] == report["sha256"]
    assert result["growth"] < BOUND


def test_no_copy_is_left(report: Any) -> None:
    assert report["left"] == ["large.pdf"]
