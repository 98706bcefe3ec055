"""What hostile files cost and what becomes of them: ``python -m scripts.hostile_report``.

It prints the tables of ``docs/hostile.md``: of the kinds that the project
generates, and of the files beside the checkout where there are any.
"""

from __future__ import annotations

import argparse
import csv
import logging
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
MIB = 1024 * 1024


class Peaks:
    """The most memory that this process and its children's children have had meanwhile."""

    def __init__(self) -> None:
        self.child = 0
        self.before = self.own = _memory(os.getpid(), "VmRSS")

    def look(self) -> None:
        """Take note of the memory of now."""
        self.own = max(self.own, _memory(os.getpid(), "VmRSS"))
        for launcher in _children(os.getpid()):
            for child in _children(launcher):
                self.child = max(self.child, _memory(child, "VmHWM"))


def _memory(pid: int, entry: str) -> int:
    """Return an entry of a process's status in bytes (``man 5 proc``); 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(entry)), 0)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


@contextmanager
def watched(every: float = 0.01) -> Iterator[Peaks]:
    """Watch the memory of this process and of its children while something runs."""
    peaks, ended = Peaks(), threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            peaks.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()
        peaks.look()


@dataclass(frozen=True)
class Row:
    """One file's line in a table."""

    name: str
    outcome: str
    seconds: float
    child: int
    web: int

    def __str__(self) -> str:
        child, web = self.child / MIB, self.web / MIB
        return f"| {self.name} | {self.outcome} | {self.seconds:.2f} | {child:.0f} | {web:+.1f} |"


def measured(name: str, source: Any) -> Row:
    """Read a file, and return what became of it and what it cost."""
    from pdfpool_django.errors import PdfPoolError
    from pdfpool_django.extraction import extract

    started = time.monotonic()
    with watched() as peaks:
        try:
            outcome = _outcome(extract(source, caller=name))
        except PdfPoolError as error:
            outcome = f"`{error.code}`"
    seconds = time.monotonic() - started
    return Row(name, outcome, seconds, peaks.child, peaks.own - peaks.before)


def _outcome(extraction: Any) -> str:
    errors = [extraction.error, *(page.error for page in extraction.pages)]
    codes = sorted({error["code"] for error in errors if error} - {"not_attempted"})
    length = f"{len(extraction.text):,} characters"
    if extraction.complete:
        return length
    return f"{length}, {' '.join(f'`{code}`' for code in codes)}"


def table(title: str, rows: Iterable[Row]) -> None:
    """Print a table, line by line as the files are read."""
    print(f"\n### {title}\n")
    print("| file | outcome | seconds | child, MiB | web process, MiB |")
    print("|---|---|---|---|---|")
    for row in rows:
        print(row, flush=True)


def generated() -> Iterator[Row]:
    """Yield a row for each kind, read under the limits that the kind has in the tests."""
    from django.test import override_settings

    from scripts.hostile_builder import KINDS, THIRD

    for each in KINDS:
        data = each.build()
        with override_settings(PDFPOOL=dict(each.limits)):
            _warm_up()
            yield measured(each.name, data)
    for how, (build, _) in THIRD.items():
        data = build()
        with override_settings(PDFPOOL={"PAGE_DEADLINE": 2, "MEMORY": 128 * MIB}):
            _warm_up()
            yield measured(f"page 3 of 5 {how}", data)


def _warm_up() -> None:
    from pdfpool_django.extraction import extract

    extract(ROOT / "example_project" / "samples" / "invoice.pdf", caller="warm up")


def beside() -> Iterator[Row]:
    """Yield a row for each hostile file beside the checkout."""
    _warm_up()
    for path in sorted((SHARED / "hostile").glob("*.pdf")):
        yield measured(path.stem, path)


_PLAIN = """
import io, logging, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
logging.disable(logging.CRITICAL)
import pypdf
reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
for page in reader.pages:
    page.extract_text()
"""


def real_files() -> None:
    """Print how the real files end here and in plain pypdf, each in an interpreter of its own."""
    from pdfpool_django.errors import PdfPoolError
    from pdfpool_django.extraction import extract

    _warm_up()
    pairs: Counter[tuple[str, str]] = Counter()
    with (SHARED / "corpus" / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        data = (SHARED / "corpus" / row["file"]).read_bytes()
        command = [sys.executable, "-c", _PLAIN]
        plain = subprocess.run(command, input=data, capture_output=True, timeout=120)
        try:
            ours = "complete" if extract(data, caller="real").complete else "incomplete"
        except PdfPoolError as error:
            ours = f"`{error.code}`"
        pairs["read" if plain.returncode == 0 else "raised", ours] += 1
    print(
        "\n### Real files\n\n| pypdf in an interpreter of its own | here | files |\n|---|---|---|"
    )
    for (plain_outcome, ours), count in sorted(pairs.items(), reverse=True):
        print(f"| {plain_outcome} | {ours} | {count} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m scripts.hostile_report", description=__doc__)
    parser.add_argument("--only", choices=["generated", "beside", "real"])
    only = parser.parse_args().only
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    logging.disable(logging.CRITICAL)
    if only in (None, "generated"):
        table("Generated kinds", generated())
    if only in (None, "beside") and (SHARED / "hostile").is_dir():
        table("Files beside the checkout", beside())
    if only in (None, "real") and (SHARED / "corpus").is_dir():
        real_files()


if __name__ == "__main__":
    main()
