"""Twenty documents one after another, without a pause in which a standby could be made ready."""

from __future__ import annotations

import time

from benchmarks.one_page import PAUSE, document, in_process
from benchmarks.timing import in_turn, table
from pdfpool_django.extraction import extract

COUNT = 20


def run(rounds: int) -> str:
    """Time a burst, per document, beside one document at rest and pypdf in this process."""
    data = document()

    def burst() -> None:
        for _ in range(COUNT):
            extract(data, caller="benchmark")

    ways = {
        f"{COUNT} in this process": lambda: [in_process(data) for _ in range(COUNT)],
        f"{COUNT} by extract, one after another": burst,
        "1 by extract, at rest": lambda: extract(data, caller="benchmark"),
    }
    timings = in_turn(ways, max(2, rounds // 6), between=lambda: time.sleep(PAUSE))
    here, many, one = (each.median for each in timings)
    return (
        f"{table('A burst, milliseconds', timings)}\n"
        f"A document of a burst takes {many / COUNT:.2f} ms: {many / here:.2f} times as long as in "
        f"this process,\nand {many / COUNT / one:.2f} times as long as one at rest."
    )
