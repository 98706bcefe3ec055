"""A large document is never held in the memory of the web process, wherever it comes from.

Nor is it held elsewhere, where the site has it as a file; and what the site has stays as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from pdfpool_django import documents, sources
from pdfpool_django.documents import Session
from pdfpool_django.extraction import extract
from pdfpool_django.model import Extraction
from tests.docs_code import ROOT
from tests.sandbox.helpers import LIMITS, ignore, sandbox_of
from tests.site import large_sources
from tests.site.helpers import SAMPLE
from tests.site.large_documents import MIB, REQUESTS, SOURCES
from tests.site.large_sources import COPIED, HELD, KEPT, REGULAR, WRITTEN

BOUND = 8 * MIB
"""What a few chunks, and whatever Python happens to allocate meanwhile, may take."""


TRYING = "tests.engines.tries_to_change_its_document"
ON_DISK = [*REGULAR, *REQUESTS, *WRITTEN]
ELSEWHERE = [*COPIED, *HELD, *KEPT]
MEDIUM = [*HELD, *KEPT, *WRITTEN]


def report_of(program: str, folder: Path) -> Any:
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TMPDIR": str(folder),
        # What is freed goes back to the system, so that it hides no growth (man 3 mallopt).
        "MALLOC_MMAP_THRESHOLD_": str(128 * 1024),
    }
    done = subprocess.run(
        [sys.executable, "-m", f"tests.site.{program}", str(folder)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("large")
    report = report_of("large_documents", folder)
    Path(folder, "large.pdf").unlink()
    return report


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return report_of("large_sources", tmp_path_factory.mktemp("copies"))


def result_of(copies: Any, name: str) -> Any:
    result = copies["results"][name]
    assert "error" not in result, result
    return result


@pytest.mark.parametrize("name", [*SOURCES, *REQUESTS])
def test_two_hundred_megabytes_are_read_and_not_held(report: Any, name: str) -> None:
    result = report["results"][name]
    assert result["text"].strip() == "A page of a large file"
    assert result["sha256"] == report["sha256"]
    assert result["growth"] < BOUND


def test_no_copy_is_left(report: Any, copies: Any) -> None:
    assert report["left"] == ["large.pdf"]
    assert copies["left"] == []


@pytest.mark.parametrize("name", ON_DISK + ELSEWHERE)
def test_a_child_with_the_least_memory_reads_it(copies: Any, name: str) -> None:
    assert result_of(copies, name)["text"].strip() == large_sources.TEXT


@pytest.mark.parametrize("name", [*REGULAR, *COPIED, *REQUESTS, *HELD])
def test_the_process_does_not_grow_by_the_document(copies: Any, name: str) -> None:
    assert result_of(copies, name)["growth"] < BOUND


@pytest.mark.parametrize("name", [*KEPT, *WRITTEN])
def test_an_upload_that_django_keeps_in_memory_is_there_once(copies: Any, name: str) -> None:
    assert result_of(copies, name)["growth"] < copies["medium"]["size"] + BOUND


@pytest.mark.parametrize("name", ON_DISK)
def test_what_is_in_a_file_is_not_copied(copies: Any, name: str) -> None:
    assert result_of(copies, name)["copied"] == 0


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_in_no_file_is_copied_once(copies: Any, name: str) -> None:
    expected = copies["medium" if name in MEDIUM else "large"]["size"]
    assert result_of(copies, name)["copied"] == expected


@pytest.mark.parametrize("name", [*REGULAR, *COPIED, *HELD])
def test_a_large_source_is_left_as_it_was(copies: Any, name: str) -> None:
    result = result_of(copies, name)
    before, after = result["places"]
    assert before == after
    assert result["sha256"] == copies["medium" if name in MEDIUM else "large"]["sha256"]


# What the site stores


def stored(source: Any) -> Any:
    """Return what `os.stat` takes for the file that a source is about."""
    if isinstance(source, Path):
        return source
    return source.path if source.closed else source.fileno()


def read_by_the_site(source: Any) -> Extraction:
    os.chmod(stored(source), 0o666)  # whoever the child is, the file's mode alone would let it
    with override_settings(PDFPOOL={"ENGINE": TRYING}):
        return extract(source, caller="a")


def read_unfiltered(source: Any) -> Extraction:
    """Read it where no filter of system calls hides what the descriptor itself allows."""
    if os.geteuid() != 0:
        pytest.skip("without the filter, a child of an ordinary user's site has that user's rights")
    with sandbox_of(TRYING, filtered=False) as sandbox, sources.describe(source) as document:
        session = Session(sandbox, document, None, LIMITS)
        try:
            return documents.read(session, None, document.sha256, str, ignore)
        finally:
            session.close()


@pytest.mark.parametrize("read", [read_by_the_site, read_unfiltered])
@pytest.mark.parametrize("name", REGULAR)
def test_a_child_cannot_change_what_the_site_stores(
    tmp_path: Path, name: str, read: Callable[[Any], Extraction]
) -> None:
    path = tmp_path / "kept.pdf"
    path.write_bytes(SAMPLE)
    path.chmod(0o600)
    with REGULAR[name](path) as source:
        before = os.stat(stored(source))
        extraction = read(source)
        after = os.stat(stored(source))
        assert b"".join(large_sources.contents(source)) == SAMPLE
    assert extraction.pages[0].error is None
    assert extraction.text == ""
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
