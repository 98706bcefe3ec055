"""Twenty documents one after another, without a pause in which a standby could be made ready."""

from __future__ import annotations

import time

from benchmarks.bare_pair import BarePair
from benchmarks.one_page import PAUSE, document, in_process
from benchmarks.timing import in_turn, table
from pdfpool_django.extraction import extract

COUNT = 20


def run(rounds: int) -> str:
    """Time a burst, per document, beside pypdf in this process, a bare pair, and one at rest."""
    data = document()
    with BarePair() as pair:

        def one() -> None:
            extract(data, caller="benchmark")

        def burst() -> None:
            for _ in range(COUNT):
                one()

        def bare_burst() -> None:
            for _ in range(COUNT):
                pair.refill()  # its forks are within the burst, as ours are
                pair.read(data)

        ways = {
            "pypdf in this process": lambda: [in_process(data) for _ in range(COUNT)],
            "a bare pre-forked pair": bare_burst,
            "extract": burst,
        }
        bursts = max(2, rounds // 6)
        many = in_turn(ways, bursts, warmups=1, between=lambda: time.sleep(PAUSE))
        rest = in_turn({"extract, at rest": one}, rounds, between=lambda: time.sleep(PAUSE))
    timings = [*(each.per(COUNT) for each in many), *rest]
    here, bare, ours, at_rest = (each.median for each in timings)
    return (
        f"{table(f'A burst of {COUNT}, milliseconds per document', timings)}\n"
        f"A document of a burst takes {ours / here:.2f} times as long as in this process,\n"
        f"{ours / bare:.2f} times as long as by a bare pair that forks within the burst, too,\n"
        f"and {ours / at_rest:.2f} times as long as one at rest."
    )
