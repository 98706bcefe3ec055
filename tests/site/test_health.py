"""Whether the service can serve: said truly, and found out again once it can."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from pdfpool_django import errors, runtime
from pdfpool_django.extraction import extract
from pdfpool_django.sandbox import host
from tests.sandbox.helpers import eventually
from tests.site.helpers import SAMPLE, TEXTS
from tests.site.web import seen, url


def health() -> tuple[int, Any]:
    response = seen(Client().get(url("health")))
    body = response.json()
    return response.status_code, {name: body[name] for name in ("available", "reason")}


@pytest.fixture
def interpreter(tmp_path: Path) -> Iterator[Path]:
    """An interpreter that starts only once it is mended."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    with override_settings(PDFPOOL={"PYTHON": str(python)}):
        yield python


def mend(python: Path) -> None:
    mended = python.with_name("mended")
    mended.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    mended.chmod(0o755)
    mended.replace(python)


def test_a_site_that_has_read_nothing_yet_is_healthy() -> None:
    runtime.reset()
    assert health() == (200, {"available": True, "reason": None})
    assert runtime.state().details["launchers_started"] == 0


def test_where_no_child_can_be_started_the_site_is_not_healthy(interpreter: Path) -> None:
    with pytest.raises(errors.Unavailable):
        extract(SAMPLE, caller="a")
    for _ in range(2):
        assert health() == (503, {"available": False, "reason": "no child can be started"})


def test_it_is_healthy_again_once_the_cause_is_gone_though_nobody_asks_for_a_document(
    interpreter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "RETRY_SECONDS", 0.05)
    with pytest.raises(errors.Unavailable):
        extract(SAMPLE, caller="a")
    mend(interpreter)
    eventually(lambda: health()[0] == 200, "a healthy site")
    assert extract(SAMPLE, caller="a").pages[0].text.strip() == TEXTS[0]


def test_a_site_that_shuts_down_says_so() -> None:
    runtime.close()
    assert health() == (503, {"available": False, "reason": "shutting down"})


def test_a_caller_whose_time_was_too_short_makes_no_site_sick() -> None:
    runtime.reset()
    with override_settings(PDFPOOL={"DEADLINE": 0.000001}):
        with pytest.raises(errors.PdfPoolError):
            extract(SAMPLE, caller="a")
        assert runtime.state().available
