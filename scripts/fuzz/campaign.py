"""Many inputs, several at a time, and what is left of them in the end."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pdfpool_django import runtime
from pdfpool_django.extraction import extract
from scripts.fuzz.judging import LIMITS, Verdict, judge
from scripts.fuzz.leftovers import holdings, resident
from scripts.fuzz.seeds import Input, Seeds

GROWTH = 32 * 1024 * 1024
"""Bytes of resident memory that the web process may gain after its first tenth."""

_IDLE_SECONDS = 3.0


@dataclass
class Report:
    """What became of the inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[Input, Verdict]] = field(default_factory=list)
    """Inputs with an outcome outside the table."""
    noted: list[tuple[Input, Verdict]] = field(default_factory=list)
    """Inputs that crashed their child: within the table, and worth a look."""
    slowest: tuple[float, int] = (0.0, 0)
    leftovers: list[str] = field(default_factory=list)
    seconds: float = 0.0
    resident: tuple[int, int] = (0, 0)
    """Bytes, of this process after its first tenth and at the end."""

    @property
    def sound(self) -> bool:
        return not self.findings and not self.leftovers

    def add(self, damaged: Input, verdict: Verdict) -> None:
        self.outcomes[verdict.outcome] += 1
        self.slowest = max(self.slowest, (verdict.seconds, damaged.number))
        if verdict.complaints:
            self.findings.append((damaged, verdict))
        elif verdict.noted:
            self.noted.append((damaged, verdict))


Read = Callable[[Input], Verdict]


def read(damaged: Input) -> Verdict:
    """Read an input as a caller of its own."""
    return judge(lambda: extract(damaged.data, caller=f"fuzz {damaged.number}"))


def run(
    seeds: Seeds,
    numbers: range,
    on_input: Callable[[Input, Verdict], None],
    reading: Read = read,
) -> Report:
    """Read the inputs with these numbers; the settings have `judging.LIMITS`.

    Args:
        seeds: What they are made of.
        numbers: Which.
        on_input: Called after each, under a lock.
        reading: Reads one.
    """
    report, before = Report(), holdings()
    started = time.monotonic()
    first = max(len(numbers) // 10, 1)
    _read_all(seeds, numbers[:first], report, on_input, reading)
    early = _settled_memory()
    _read_all(seeds, numbers[first:], report, on_input, reading)
    report.seconds = time.monotonic() - started
    report.resident = early, _settled_memory()
    report.leftovers += _what_is_left(report)
    runtime.reset()
    _await_threads(set(before.threads))
    report.leftovers += holdings().complaints(before)
    return report


def _read_all(
    seeds: Seeds,
    numbers: range,
    report: Report,
    on_input: Callable[[Input, Verdict], None],
    reading: Read,
) -> None:
    lock, waiting = threading.Lock(), iter(numbers)

    def work() -> None:
        for damaged in _inputs():
            verdict = reading(damaged)
            with lock:
                report.add(damaged, verdict)
                on_input(damaged, verdict)

    def _inputs() -> Iterator[Input]:
        while True:
            with lock:  # building a kind is not for two threads at once
                number = next(waiting, None)
                if number is None:
                    return
                damaged = seeds.input(number)
            yield damaged

    with ThreadPoolExecutor(int(LIMITS["SLOTS"])) as executor:
        for ended in [executor.submit(work) for _ in range(int(LIMITS["SLOTS"]))]:
            ended.result()


def _settled_memory() -> int:
    gc.collect()
    return resident()


def _what_is_left(report: Report) -> Iterator[str]:
    """Yield what the pool still holds, and by how much this process has grown."""
    state = runtime.state()
    if state.running or state.queued:
        yield f"jobs left: {state.running} running, {state.queued} queued"
    early, late = report.resident
    if late - early > GROWTH:
        yield f"memory left: {early:,} bytes early, {late:,} at the end"


def _await_threads(names: set[str]) -> None:
    """Wait until the pool's threads have idled away."""
    until = time.monotonic() + _IDLE_SECONDS
    for thread in threading.enumerate():
        if thread.name not in names and thread is not threading.current_thread():
            thread.join(max(0, until - time.monotonic()))


def write(folder: Path, damaged: Input) -> Path:
    """Keep an input in a folder; return where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{damaged.number}.pdf"
    path.write_bytes(damaged.data)
    return path


def numbers(seed: int, count: int) -> range:
    """Return the numbers of a campaign's inputs."""
    return range(seed, seed + count)
