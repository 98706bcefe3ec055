"""How long the first request after a start takes: the launcher, its engine, and the document.

Run as a module, it is one such process, and prints the seconds of each step.
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.timing import table, timing

AIM = 0.5

_STEPS = ("the second request", "launcher and first child alone", "the first request")


def run(rounds: int) -> str:
    """Time the first two requests of new processes, and the start of a launcher by itself."""
    processes = [_new_process() for _ in range(max(2, rounds // 10))]
    timings = [
        timing(name, [process[number] for process in processes])
        for number, name in enumerate(_STEPS)
    ]
    title = f"After a start, {len(processes)} processes, milliseconds"
    return (
        f"{table(title, timings)}\n"
        f"The first request takes {timings[-1].median / 1000:.2f} s (aim {AIM})."
    )


def _new_process() -> list[float]:
    """Return the milliseconds of each step."""
    command = [sys.executable, "-m", "benchmarks.first_request"]
    out = subprocess.run(command, capture_output=True, check=True).stdout
    return [float(number) * 1000 for number in out.split()]


def _first_requests() -> None:
    import django

    django.setup()

    from benchmarks.sandboxes import sandbox, use_one
    from pdfpool_django.extraction import extract
    from scripts.pdf_builder import simple_pdf

    def seconds(data: bytes) -> float:
        start = time.perf_counter()
        extract(data, caller="benchmark")
        return time.perf_counter() - start

    data = simple_pdf("A page")
    first, second = seconds(data), seconds(data)
    another = sandbox()
    start = time.perf_counter()
    use_one(another)
    launcher = time.perf_counter() - start
    another.close()
    print(second, launcher, first)


if __name__ == "__main__":
    _first_requests()
