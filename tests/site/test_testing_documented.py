"""docs/testing.md: its code is run, the tests in it as tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from pdfpool_django import runtime, testing
from tests.docs_code import ROOT, CodeBlock, code_blocks, run_code, run_tests

PAGE = ROOT / "docs" / "testing.md"
BLOCKS = code_blocks(PAGE)
SETTINGS = [block for block in BLOCKS if block.file == "settings_test.py"]
TESTS = [block for block in BLOCKS if block not in SETTINGS]


def test_its_tests_pass(tmp_path: Path) -> None:
    assert run_tests(TESTS, tmp_path) == set().union(*(block.tests for block in TESTS))
    assert all(block.tests for block in TESTS)


@pytest.mark.parametrize("block", SETTINGS, ids=str)
def test_its_settings_have_the_backend(block: CodeBlock) -> None:
    with override_settings(PDFPOOL=run_code(block)["PDFPOOL"]):
        assert isinstance(runtime.backend(), testing.CannedBackend)


def test_every_public_name_is_told_of() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = {name for name in testing.__all__ if name in text}
    assert told == set(testing.__all__) - {"RecordedRequest"}  # its fields are
    assert len(SETTINGS) == 1
