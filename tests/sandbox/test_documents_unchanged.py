"""A child that has been given a document's descriptor cannot change what the site stores."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pdfpool_django import documents
from pdfpool_django.documents import Session
from pdfpool_django.sandbox.descriptors import Descriptor, from_bytes, from_file, from_path
from pdfpool_django.sandbox.host import Sandbox
from tests.sandbox.helpers import LIMITS, ignore, sandbox_of

DATA = b"%PDF- what the site stores"
TRYING = "tests.engines.tries_to_change_its_document"


@contextlib.contextmanager
def by_path(path: Path) -> Iterator[Descriptor]:
    yield from_path(path)


@contextlib.contextmanager
def by_file(path: Path) -> Iterator[Descriptor]:
    with path.open("r+b") as file:
        yield from_file(file)


@contextlib.contextmanager
def by_named_file(path: Path) -> Iterator[Descriptor]:
    with tempfile.NamedTemporaryFile(dir=path.parent) as named:
        named.write(DATA)
        yield from_file(named.file)
        named.seek(0)
        assert named.read() == DATA


@contextlib.contextmanager
def by_bytes(path: Path) -> Iterator[Descriptor]:
    yield from_bytes(DATA)


@contextlib.contextmanager
def by_buffer(path: Path) -> Iterator[Descriptor]:
    buffer = io.BytesIO(DATA)
    yield from_file(buffer)
    assert buffer.getvalue() == DATA


WAYS: list[Callable[[Path], Any]] = [by_path, by_file, by_named_file, by_bytes, by_buffer]


@pytest.fixture(scope="module", params=[True, False], ids=["filtered", "unfiltered"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if not request.param and os.geteuid() != 0:
        pytest.skip("without the filter, a child of an ordinary user's site has that user's rights")
    with sandbox_of(TRYING, filtered=request.param) as sandbox:
        yield sandbox


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_of_changing_it_is_open(
    sandbox: Sandbox, tmp_path: Path, way: Callable[[Path], Any]
) -> None:
    path = tmp_path / "kept.pdf"
    path.write_bytes(DATA)
    if sandbox._config.filtered:
        path.chmod(0o666)  # whoever the child is, the file's mode alone would let it
    before = os.stat(path)
    with way(path) as document, document:
        session = Session(sandbox, document, None, LIMITS)
        try:
            extraction = documents.read(session, None, document.sha256, str, ignore)
        finally:
            session.close()
    assert extraction.pages[0].error is None
    assert extraction.text == ""
    assert path.read_bytes() == DATA
    after = os.stat(path)
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
