"""What is an outcome of the table, and what is left behind, is told from what is not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pdfpool_django import errors
from pdfpool_django.model import Extraction, Page
from scripts.fuzz import judging, leftovers
from scripts.fuzz.judging import judge

GOOD = Extraction(
    sha256="0" * 64,
    engine="test",
    page_count=1,
    pages=(Page(number=1, label="1", text="text", error=None, warnings=()),),
    metadata={},
    warnings=(),
    complete=True,
    error=None,
    elapsed=0.0,
)


def raising(error: BaseException) -> Any:
    def read() -> Extraction:
        raise error

    return read


def with_page(**changes: Any) -> Extraction:
    return replace(GOOD, pages=(replace(GOOD.pages[0], **changes),))


def test_a_result_is_an_outcome() -> None:
    verdict = judge(lambda: GOOD)
    assert (verdict.outcome, verdict.complaints) == ("complete", ())


def test_an_incomplete_result_is_an_outcome() -> None:
    part = replace(
        with_page(text="", error={"code": "invalid_pdf", "detail": "broken"}), complete=False
    )
    verdict = judge(lambda: part)
    assert (verdict.outcome, verdict.complaints) == ("incomplete", ())


@pytest.mark.parametrize("code", errors.ERROR_CLASSES)
def test_an_error_is_one_if_it_can_be_said_of_a_document(code: str) -> None:
    params = {"reason": "r", "limit": 1, "page": 1, "page_count": 2, "seconds": 1}
    verdict = judge(raising(errors.ERROR_CLASSES[code](**params)))
    ours = {"internal_error", "unavailable", "busy", "caller_busy"}
    of_others = {
        *("not_authenticated", "forbidden", "file_too_large", "page_out_of_range"),
        *("closed", "invalid_pattern", "wrong_password"),
    }
    assert verdict.outcome == code
    assert bool(verdict.complaints) == (code in ours | of_others)


@pytest.mark.parametrize("error", [ValueError("x"), MemoryError(), TimeoutError(), SystemExit(1)])
def test_anything_else_that_is_raised_is_none(error: BaseException) -> None:
    assert judge(raising(error)).complaints


@pytest.mark.parametrize(
    "result",
    [
        with_page(text="a\x00b"),
        with_page(text="a\ud800b"),
        with_page(label="\x07"),
        with_page(text="\uffff"),
        replace(GOOD, metadata={"title": "\x1b"}),
        replace(GOOD, metadata={"number": float("nan")}),
        replace(GOOD, complete=False),
        with_page(error={"code": "invalid_pdf", "detail": "broken"}),
        replace(with_page(error={"code": "internal_error", "detail": "x"}), complete=False),
        replace(with_page(error={"code": "no_such_code", "detail": "x"}), complete=False),
        replace(GOOD, page_count=2),
        replace(GOOD, pages=GOOD.pages * 2, page_count=2),
    ],
)
def test_a_result_that_is_not_as_it_must_be_is_none(result: Extraction) -> None:
    assert judge(lambda: result).complaints


def test_a_late_answer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "LATE", -1)
    assert judge(lambda: GOOD, deadline=0.0).complaints


def test_a_crash_is_noted() -> None:
    verdict = judge(raising(errors.Crashed(reason="SIGSEGV")))
    assert verdict.complaints == ()
    assert "SIGSEGV" in verdict.noted[0]


# Leftovers


def test_nothing_is_left_where_nothing_was_done() -> None:
    before = leftovers.holdings()
    assert leftovers.holdings().complaints(before) == []


def test_a_descriptor_is_left() -> None:
    before = leftovers.holdings()
    fd = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert leftovers.holdings().complaints(before) == ["descriptors left: /dev/zero"]
    finally:
        os.close(fd)


def test_a_file_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = leftovers.holdings()
    (tmp_path / "left").touch()
    assert leftovers.holdings().complaints(before) == ["files left: left"]


def test_a_child_is_left() -> None:
    before = leftovers.holdings()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        complaints = leftovers.holdings().complaints(before)
        assert f"children left: {child.pid}" in complaints
        child.kill()


def test_a_thread_is_left() -> None:
    before, ended = leftovers.holdings(), threading.Event()
    thread = threading.Thread(target=ended.wait, name="straggler")
    thread.start()
    try:
        assert leftovers.holdings().complaints(before) == ["threads left: straggler"]
    finally:
        ended.set()
        thread.join()
