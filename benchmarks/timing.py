"""Ways of doing the same thing, timed in turn, so that a machine's mood meets them all alike."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Timing:
    """How long one way took, in milliseconds, or how much it took, in the table's unit."""

    name: str
    median: float
    tenth: float
    """10th percentile."""
    ninetieth: float
    """90th percentile."""

    def per(self, count: int) -> Timing:
        """Return the same for one of `count` things that were done each time."""
        return replace(
            self,
            median=self.median / count,
            tenth=self.tenth / count,
            ninetieth=self.ninetieth / count,
        )


def nothing() -> None:
    """Do nothing between two rounds."""


def in_turn(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    warmups: int = 3,
    between: Callable[[], object] = nothing,
) -> list[Timing]:
    """Run every way once a round, and return how long each took.

    Args:
        ways: What to run, by name.
        rounds: How often, at least 2.
        warmups: Rounds before that are not counted.
        between: Called after every way, and not counted: to make ready for the next.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    # Each round has an order of its own: none is always timed after what empties the caches.
    shuffled = random.Random(0)
    for number in range(warmups + rounds):
        for name in shuffled.sample(list(ways), len(ways)):
            start = time.perf_counter()
            ways[name]()
            seconds = time.perf_counter() - start
            if number >= warmups:
                taken[name].append(seconds * 1000)
            between()
    return [timing(name, times) for name, times in taken.items()]


def timing(name: str, times: list[float]) -> Timing:
    """Return the timing of a way, from its milliseconds."""
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return Timing(name, statistics.median(times), tenths[0], tenths[-1])


def table(title: str, timings: list[Timing]) -> str:
    """Return the timings as text, with each median as a ratio to the first's."""
    base = timings[0].median
    lines = [title, f"{'way':40}{'median':>9}{'10th':>9}{'90th':>9}{'ratio':>8}"]
    lines += [
        f"{each.name:40}{each.median:9.2f}{each.tenth:9.2f}{each.ninetieth:9.2f}"
        f"{each.median / base:8.2f}"
        for each in timings
    ]
    return "\n".join(lines)
