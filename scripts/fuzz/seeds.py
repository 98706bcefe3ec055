"""What is mutated: the bundled files and the generated kinds, and files of other folders."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.fuzz import anatomy
from scripts.fuzz.mutations import mutated
from scripts.hostile_builder import KINDS, LIMITS, Kind

ROOT = Path(__file__).resolve().parent.parent.parent
BUNDLED = (
    ROOT / "example_project" / "samples" / "invoice.pdf",
    *sorted((ROOT / "pdfpool_django" / "engines" / "warm").glob("*.pdf")),
)

MAX_SEED = 300_000
"""Bytes of a file from another folder; a larger one takes its time and shows no more."""

_COSTLY_SHARE = 0.004
"""Of the inputs, those made of a kind that is to meet a limit, which each take seconds."""


@dataclass(frozen=True)
class Input:
    """A damaged file."""

    number: int
    name: str
    """Of what it was made."""
    data: bytes


class Seeds:
    """The files that are mutated; an input's number, and nothing else, says what becomes of which.

    Args:
        folders: Where more files are, beside those of the project.
    """

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        bundled = {path.name: path.read_bytes() for path in BUNDLED}
        plain = {name: data for name, data in bundled.items() if b"/Encrypt" not in data}
        self._bundled = [
            *bundled.items(),
            *((f"{name}, deflated", anatomy.deflated(data)) for name, data in plain.items()),
            *((f"{name}, packed", anatomy.packed(data)) for name, data in plain.items()),
        ]
        self._cheap = [kind for kind in KINDS if not _is_costly(kind) and _is_the_same(kind)]
        self._costly = [kind for kind in KINDS if _is_costly(kind)]
        self._files = [
            path
            for folder in folders
            for path in sorted(folder.glob("*.pdf"))
            if path.stat().st_size <= MAX_SEED
        ]
        self._built: dict[str, bytes] = {}

    def input(self, number: int) -> Input:
        """Return the input with this number."""
        dice = random.Random(number)
        name, data = self._pick(dice)
        return Input(number, name, mutated(data, dice))

    def _pick(self, dice: random.Random) -> tuple[str, bytes]:
        if dice.random() < _COSTLY_SHARE:
            return self._kind(dice.choice(self._costly))
        sources: list[Callable[[], tuple[str, bytes]]] = [
            lambda: dice.choice(self._bundled),
            lambda: self._kind(dice.choice(self._cheap)),
        ]
        if self._files:
            sources += [lambda: _file(dice.choice(self._files))]
        return dice.choice(sources)()

    def _kind(self, kind: Kind) -> tuple[str, bytes]:
        if kind.name not in self._built:
            self._built[kind.name] = kind.build()
        return kind.name, self._built[kind.name]


def _file(path: Path) -> tuple[str, bytes]:
    return path.name, path.read_bytes()


def _is_costly(kind: Kind) -> bool:
    return bool(kind.errors & LIMITS)


def _is_the_same(kind: Kind) -> bool:
    """Whether its file is the same each time: those that are locked have keys made for each."""
    return not kind.name.startswith("locked:")
