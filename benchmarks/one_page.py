"""What isolation costs on a one-page file, beside none, the cheapest, and a new interpreter."""

from __future__ import annotations

import io
import subprocess
import sys
import time

from pypdf import PdfReader

from benchmarks.bare_pair import BarePair
from benchmarks.timing import in_turn, table
from pdfpool_django.extraction import extract
from scripts.pdf_builder import simple_pdf

LINES = 50
PAUSE = 0.03
"""Seconds after which the next standby is there, as on a site that is not at its limit."""

_ALONE = (
    "import io, sys, pypdf;"
    "print(pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages[0].extract_text())"
)


def document() -> bytes:
    """Return a page full of text."""
    line = "The quick brown fox jumps over the lazy dog, and %d of its friends."
    return simple_pdf("\n".join(line % number for number in range(LINES)))


def in_process(data: bytes) -> str:
    """Read a page here."""
    return PdfReader(io.BytesIO(data)).pages[0].extract_text()


def interpreter(data: bytes) -> str:
    """Read a page by an interpreter of its own."""
    command = [sys.executable, "-c", _ALONE]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()


def run(rounds: int) -> str:
    """Time the ways, which must agree on the text."""
    data = document()
    with BarePair() as pair:

        def bare() -> str:
            return pair.read(data)

        def pooled() -> str:
            return extract(data, caller="benchmark").text

        def between() -> None:
            pair.refill()
            time.sleep(PAUSE)

        if not in_process(data) == bare() == pooled() or in_process(data) not in interpreter(data):
            raise SystemExit("the ways do not agree on the text")
        between()
        ways = {
            "pypdf in this process": lambda: in_process(data),
            "a bare pre-forked pair": bare,
            "extract": pooled,
            "an interpreter per document": lambda: interpreter(data),
        }
        timings = in_turn(ways, rounds, between=between)
    here, paired, ours, new = (each.median for each in timings)
    return (
        f"{table(f'One page, {rounds} rounds in turn, milliseconds', timings)}\n"
        f"extract takes {ours / here:.2f} times as long as pypdf in this process (aim 1.25),\n"
        f"{ours / paired:.2f} times as long as a bare pre-forked pair (aim 1.1);\n"
        f"an interpreter per document {new / ours:.1f} times as long as extract."
    )
