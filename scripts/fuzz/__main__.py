"""Damage PDFs by seed, and read each with `extract`: ``python -m scripts.fuzz --number 10000``.

It prints how many came to which outcome. An outcome outside the table, or
anything left behind, is printed with the command that brings it back, and
makes the exit status 1; the input itself is kept in a folder.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import django
from tqdm import tqdm

from scripts.fuzz.judging import LIMITS, Verdict

if TYPE_CHECKING:
    from scripts.fuzz.campaign import Report


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.fuzz", description=__doc__)
    parser.add_argument("--number", type=int, default=1000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=1, help="the first input's number")
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="a folder with more PDFs to damage"
    )
    parser.add_argument(
        "--keep", type=Path, default=Path("build/fuzz"), help="where inputs that fail are kept"
    )
    parser.add_argument("--write-only", action="store_true", help="keep the inputs, read none")
    return parser.parse_args()


def main() -> int:
    """Read the inputs, and say what became of them."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="pdfpool-fuzz-") as folder:
        # So that what is left in it is ours.
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
        django.setup()
        logging.disable(logging.CRITICAL)
        from django.test import override_settings

        with override_settings(PDFPOOL=LIMITS):
            return _campaign(options)


def _campaign(options: argparse.Namespace) -> int:
    from scripts.fuzz import campaign
    from scripts.fuzz.seeds import Input, Seeds

    seeds, numbers = Seeds(options.also), campaign.numbers(options.seed, options.number)
    if options.write_only:
        for number in numbers:
            print(campaign.write(options.keep, seeds.input(number)))
        return 0
    with tqdm(total=len(numbers), unit="input", disable=not sys.stderr.isatty()) as bar:

        def on_input(damaged: Input, verdict: Verdict) -> None:
            bar.update()
            if verdict.complaints or verdict.noted:
                path = campaign.write(options.keep, damaged)
                bar.write(_about(damaged.number, damaged.name, verdict, path, options.also))

        report = campaign.run(seeds, numbers, on_input)
    print(_table(report))
    return 0 if report.sound else 1


def _about(number: int, name: str, verdict: Verdict, path: Path, also: list[Path]) -> str:
    command = ["python", "-m", "scripts.fuzz", "--seed", str(number), "--number", "1"]
    command += [word for folder in also for word in ("--also", str(folder))]
    said = [f"  FAILED {each}" for each in verdict.complaints]
    said += [f"  noted {each}" for each in verdict.noted]
    head = f"input {number}, made of {name!r}, {len(path.read_bytes()):,} bytes in {path}"
    return "\n".join([head, *said, f"  again: {shlex.join(command)}"])


def _table(report: Report) -> str:
    total, (seconds, slowest) = sum(report.outcomes.values()), report.slowest
    lines = ["", "| outcome | inputs |", "|---|---|"]
    lines += [f"| `{name}` | {count:,} |" for name, count in report.outcomes.most_common()]
    early, late = (each / 1024**2 for each in report.resident)
    lines += [
        "",
        f"{total:,} inputs in {report.seconds:.0f} s; the slowest is {slowest}, {seconds:.1f} s.",
        f"{len(report.findings)} outside the table, {len(report.noted)} crashes of a child.",
        f"This process: {early:.0f} MiB after the first tenth, {late:.0f} MiB at the end.",
        *(f"LEFT BEHIND: {each}" for each in report.leftovers),
        *([] if report.leftovers else ["Nothing was left behind."]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
