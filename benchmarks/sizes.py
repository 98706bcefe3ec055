"""What an upload's size costs, once it has been received: a document of one page and much else."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

from benchmarks.one_page import PAUSE
from benchmarks.timing import in_turn, table
from pdfpool_django.extraction import submit
from pdfpool_django.sandbox.descriptors import from_file, from_path
from scripts.pdf_builder import simple_pdf

SIZES = {"5 KB": 5_000, "5 MB": 5_000_000, "50 MB": 50_000_000}


def write(path: Path, size: int) -> None:
    """Write a page's document of so many bytes: white space stands before its table of objects."""
    small = simple_pdf("A page")
    found = re.search(rb"startxref\s+(\d+)", small)
    if found is None:
        raise ValueError("the document has no table")
    table_at = int(found[1])
    with path.open("wb") as file:
        file.write(small[:table_at])
        file.write(b" " * (size - len(small)))
        moved = file.tell()
        file.write(small[table_at : found.start(1)] + b"%d\n%%%%EOF\n" % moved)


def run(rounds: int) -> str:
    """Time the reading of documents that differ in size only."""
    with tempfile.TemporaryDirectory() as folder:
        documents: dict[str, tuple[Path, str]] = {}
        for name, size in SIZES.items():
            path = Path(folder, f"{size}.pdf")
            write(path, size)
            with from_path(path) as document:
                documents[name] = path, document.sha256
        ways = {
            name: lambda path=path, sha256=sha256: _read(path, sha256)
            for name, (path, sha256) in documents.items()
        }
        hashes = {
            f"SHA-256 of {name}": lambda path=path: _hash(path)
            for name, (path, _) in documents.items()
        }
        timings = in_turn(ways, rounds, between=lambda: time.sleep(PAUSE))
        hashing = in_turn(hashes, max(2, rounds // 10))
    small, _, large = (each.median for each in timings)
    return (
        f"{table(f'Handing over and reading, {rounds} rounds in turn, milliseconds', timings)}\n"
        f"50 MB take {large / small:.2f} times as long as 5 KB (aim: flat).\n"
        f"{table('Hashing, which is done while an upload comes, milliseconds', hashing)}"
    )


def _read(path: Path, sha256: str) -> str:
    with path.open("rb") as file, submit(from_file(file, sha256), caller="benchmark") as reading:
        return reading.result().text


def _hash(path: Path) -> str:
    with from_path(path) as document:
        return document.sha256
