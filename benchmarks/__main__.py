"""``python -m benchmarks``: each benchmark in turn, as ratios of medians."""

from __future__ import annotations

import argparse
import os

import django


def main() -> None:
    """Run the benchmarks and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    django.setup()
    from benchmarks import one_page
    from benchmarks.timing import table

    timings = one_page.run(rounds)
    print(table(f"One page, {rounds} rounds in turn, milliseconds", timings))
    in_process, pooled, interpreter = (each.median for each in timings)
    print(f"extract takes {pooled / in_process:.2f} times as long as pypdf in this process,")
    print(f"and an interpreter per document {interpreter / pooled:.1f} times as long as extract.")


if __name__ == "__main__":
    main()
