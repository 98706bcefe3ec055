"""Ways of doing the same thing, timed in turn, so that a machine's mood meets them all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """How long one way took, in milliseconds."""

    name: str
    median: float
    tenth: float
    """10th percentile."""
    ninetieth: float
    """90th percentile."""


def in_turn(
    ways: Mapping[str, Callable[[], object]], rounds: int, warmups: int = 3
) -> list[Timing]:
    """Run every way once a round, and return how long each took."""
    for _ in range(warmups):
        for way in ways.values():
            way()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            taken[name].append((time.perf_counter() - start) * 1000)
    return [_timing(name, times) for name, times in taken.items()]


def _timing(name: str, times: list[float]) -> Timing:
    tenths = statistics.quantiles(times, n=10)
    return Timing(name, statistics.median(times), tenths[0], tenths[-1])


def table(title: str, timings: list[Timing]) -> str:
    """Return the timings as text, with each median as a ratio to the first's."""
    base = timings[0].median
    lines = [title, f"{'way':34}{'median':>9}{'10th':>9}{'90th':>9}{'ratio':>8}"]
    lines += [
        f"{each.name:34}{each.median:9.2f}{each.tenth:9.2f}{each.ninetieth:9.2f}"
        f"{each.median / base:8.2f}"
        for each in timings
    ]
    return "\n".join(lines)
