"""``python -m benchmarks [NAME...]``: each benchmark in turn, as ratios of medians."""

from __future__ import annotations

import argparse
import os
from importlib import import_module

import django

NAMES = ("one_page", "burst", "sizes", "memory", "first_request", "system_calls")


def main() -> None:
    """Run the benchmarks that are named, or all, and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=60, help="60 by default, at least 2")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown or options.rounds < 2:
        parser.error(f"the names are {', '.join(NAMES)}; at least 2 rounds")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    for name in options.names or NAMES:
        print(import_module(f"benchmarks.{name}").run(options.rounds), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
