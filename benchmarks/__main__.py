"""``python -m benchmarks [NAME...]``: each benchmark in turn, as ratios of medians."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib import import_module

import django

NAMES = ("one_page", "burst", "sizes", "memory", "first_request", "system_calls", "handle")
"""Modules of this package; each has a ``run(rounds)`` that returns its tables and sentences."""


def main() -> None:
    """Run the benchmarks that are named, or all, and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=60, help="60 by default, at least 2")
    options = parser.parse_args()
    _check(parser, options.names, options.rounds)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    print(_machine(), flush=True)
    for name in options.names or NAMES:
        print(f"\n# {name}", flush=True)
        print(import_module(f"benchmarks.{name}").run(options.rounds), flush=True)


def _check(parser: argparse.ArgumentParser, names: Sequence[str], rounds: int) -> None:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; the names are {', '.join(NAMES)}")
    if rounds < 2:
        parser.error("a median needs at least 2 rounds")


def _machine() -> str:
    """Return what the numbers depend on: times taken beside other work are not to be compared."""
    load = os.getloadavg()[0]
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}"


if __name__ == "__main__":
    main()
