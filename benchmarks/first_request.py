"""How long the first request after a start takes: the launcher, its engine, and the document."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.timing import table, timing

_FIRST = """
import time, django
django.setup()
from scripts.pdf_builder import simple_pdf
from pdfpool_django.extraction import extract
data = simple_pdf("A page")
start = time.perf_counter()
extract(data, caller="benchmark")
first = time.perf_counter()
extract(data, caller="benchmark")
print(first - start, time.perf_counter() - first)
"""

AIM = 0.5


def run(rounds: int) -> str:
    """Time the first two requests of new processes."""
    firsts, seconds = [], []
    for _ in range(max(2, rounds // 10)):
        out = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, check=True).stdout
        first, second = (float(number) * 1000 for number in out.split())
        firsts.append(first)
        seconds.append(second)
    timings = [timing("the second request", seconds), timing("the first request", firsts)]
    return (
        f"{table(f'After a start, {len(firsts)} processes, milliseconds', timings)}\n"
        f"The first request takes {statistics.median(firsts) / 1000:.2f} s (aim {AIM})."
    )
