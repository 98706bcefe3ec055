"""What a soak shows: its tables, and a plot."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from xml.sax.saxutils import escape

from scripts.soak.asking import CUT, VANISHED, Told
from scripts.soak.chaos import CHILD, LAUNCHER, WORKER, Kills
from scripts.soak.watching import Life, Sample

MIB = 1024 * 1024

_Scale = Callable[[float], float]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760, 300, 50, 40, 26
_MOST_POINTS = 240
_COLOURS = {"worker": "#1f5fa8", "launcher": "#b5541c", "children": "#4a8f3c"}
_TICKS = {CHILD: "#4a8f3c", LAUNCHER: "#b5541c", WORKER: "#c01616"}


def tables(told: list[Told], kills: Kills, life: Life | None) -> str:
    """Return the tables, as Markdown."""
    return "\n".join(
        [
            *_outcomes(told),
            "",
            *_latencies(told),
            "",
            "| killed | times |",
            "|---|---|",
            *(f"| {kind} | {count} |" for kind, count in sorted(kills.counts().items())),
            "",
            *_memory(life),
        ]
    )


def _outcomes(told: list[Told]) -> Iterator[str]:
    kinds = sorted({each.kind for each in told})
    counts = Counter((each.kind, each.outcome) for each in told)
    totals = Counter(each.outcome for each in told)
    yield f"| outcome | all | {' | '.join(kinds)} |"
    yield "|---|" + "---|" * (len(kinds) + 1)
    for outcome, total in totals.most_common():
        cells = " | ".join(str(counts[kind, outcome] or "") for kind in kinds)
        yield f"| `{outcome}` | {total:,} | {cells} |"


def _latencies(told: list[Told]) -> Iterator[str]:
    yield "| answers | number | median, ms | 90 % | 99 % | longest |"
    yield "|---|---|---|---|---|---|"
    groups = {
        "with a result": [each for each in told if each.outcome in ("complete", "incomplete")],
        "without one": [
            each for each in told if each.outcome not in ("complete", "incomplete", CUT, VANISHED)
        ],
    }
    for name, group in groups.items():
        cells = [f"{1000 * each:,.0f}" for each in percentiles([each.seconds for each in group])]
        yield f"| {name} | {len(group):,} | {' | '.join(cells)} |"


def percentiles(seconds: list[float]) -> list[float]:
    """Return the median, the 90th and the 99th percentile, and the largest."""
    if len(seconds) < 2:
        return [*seconds, 0.0][:1] * 4
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return [cuts[49], cuts[89], cuts[98], max(seconds)]


def _memory(life: Life | None) -> Iterator[str]:
    if life is not None:
        yield (
            f"The last worker lived for {life.seconds:.0f} s: {life.early / MIB:.1f} MiB after its "
            f"first minute (or third), {life.late / MIB:.1f} MiB at the end."
        )


def plot(samples: list[Sample], kills: Kills) -> str:
    """Return a drawing (SVG) of the memory over time, with a tick for each kill."""
    shown = samples[:: max(1, len(samples) // _MOST_POINTS)]
    start, end = shown[0].at, shown[-1].at
    lines = {
        "worker": [(each.at, each.of_worker) for each in shown],
        "launcher": [(each.at, each.of_launcher) for each in shown],
        "children": [(each.at, each.of_children) for each in shown],
    }
    top = max(size for line in lines.values() for _, size in line) or MIB

    def across(at: float) -> float:
        return _LEFT + (at - start) / max(end - start, 1e-9) * (_WIDTH - _LEFT - 10)

    def up(size: float) -> float:
        return _HEIGHT - _BOTTOM - size / top * (_HEIGHT - _BOTTOM - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        "<title>Resident memory of the site under load, with each kill</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        *_axes(end - start, top, across, up, start),
        *_ticks(kills, start, end, across),
    ]
    for number, (name, line) in enumerate(lines.items()):
        points = " ".join(f"{across(at):.0f},{up(size):.0f}" for at, size in line)
        parts.append(f'<polyline fill="none" stroke="{_COLOURS[name]}" points="{points}"/>')
        parts.append(_text(_LEFT + 10 + 90 * number, 14, name, _COLOURS[name]))
    parts.append(_text(_LEFT + 290, 14, "ticks below: kills, in their colour; red: a worker"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(seconds: float, top: float, across: _Scale, up: _Scale, start: float) -> Iterator[str]:
    for part in range(5):
        size, at = top * part / 4, start + seconds * part / 4
        height, left = up(size), across(at)
        yield f'<path d="M{_LEFT} {height:.0f}H{_WIDTH - 10}" stroke="#ddd"/>'
        yield _text(4, height + 4, f"{size / MIB:.0f} MiB")
        yield _text(left - 10, _HEIGHT - 6, f"{seconds * part / 4:.0f} s")


def _ticks(kills: Kills, start: float, end: float, across: _Scale) -> Iterator[str]:
    for kill in kills:
        if start <= kill.after <= end:
            left, foot = across(kill.after), _HEIGHT - _BOTTOM
            yield (
                f'<path d="M{left:.0f} {foot + 3}v14" stroke="{_TICKS[kill.kind]}" '
                'stroke-width="2"/>'
            )


def _text(left: float, top: float, said: str, colour: str = "#333") -> str:
    return f'<text x="{left:.0f}" y="{top:.0f}" fill="{colour}">{escape(said)}</text>'
