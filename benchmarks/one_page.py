"""What isolation costs: a one-page file read here, by `extract`, and by an interpreter."""

from __future__ import annotations

import io
import subprocess
import sys

from pypdf import PdfReader

from benchmarks.timing import Timing, in_turn
from pdfpool_django.extraction import extract
from scripts.pdf_builder import simple_pdf

LINES = 50

_ALONE = (
    "import io, sys, pypdf;"
    "print(pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages[0].extract_text())"
)


def document() -> bytes:
    """Return a page full of text."""
    line = "The quick brown fox jumps over the lazy dog, and %d of its friends."
    return simple_pdf("\n".join(line % number for number in range(LINES)))


def run(rounds: int) -> list[Timing]:
    """Time the three ways, which must agree on the text."""
    data = document()

    def in_process() -> str:
        return PdfReader(io.BytesIO(data)).pages[0].extract_text()

    def pooled() -> str:
        return extract(data, caller="benchmark").text

    def interpreter() -> str:
        command = [sys.executable, "-c", _ALONE]
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()

    if in_process() != pooled() or in_process() not in interpreter():
        raise SystemExit("the ways do not agree on the text")
    ways = {
        "pypdf in this process": in_process,
        "extract": pooled,
        "an interpreter per document": interpreter,
    }
    return in_turn(ways, rounds)
