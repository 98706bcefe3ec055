"""Which lines launchers and children run: a plugin of pytest's, for ``make coverage``.

A child can write no file, and is killed when it is done. So it notes what it
runs in memory that it shares with a file: a byte for each pair of lines that
follow one another, which is what `coverage` keeps for branches.
"""

from __future__ import annotations

import dis
import inspect
import mmap
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pdfpool_django"
FILES = sorted(
    [*PACKAGE.glob("engines/*.py"), *PACKAGE.glob("sandbox/*.py"), *PACKAGE.glob("*.py")]
)

Arc = tuple[int, int]
"""A line and the next one; negative for the beginning or the end of the function on that line."""


class Table:
    """The arcs of one file, within the shared memory."""

    def __init__(self, path: Path, begin: int) -> None:
        self.path = path
        self.begin = begin
        self._lines = len(path.read_bytes().splitlines()) + 1

    @property
    def size(self) -> int:
        return 4 * self._lines**2

    def place(self, arc: Arc) -> int:
        origin, target = (line if line >= 0 else self._lines - line - 1 for line in arc)
        return self.begin + origin * 2 * self._lines + target

    def arcs(self, memory: mmap.mmap) -> Iterator[Arc]:
        place = memory.find(b"\1", self.begin, self.begin + self.size)
        while place >= 0:
            origin, target = divmod(place - self.begin, 2 * self._lines)
            yield self._line(origin), self._line(target)
            place = memory.find(b"\1", place + 1, self.begin + self.size)

    def _line(self, index: int) -> int:
        return index if index < self._lines else self._lines - index - 1


class Notes:
    """What has been run, in memory that processes share through the file at `path`."""

    def __init__(self, path: str) -> None:
        self.tables: dict[str, Table] = {}
        end = 0
        for each in FILES:
            self.tables[str(each)] = Table(each, end)
            end += self.tables[str(each)].size
        with open(path, "a+b") as file:
            file.truncate(end)
            fd, untracked = file.fileno(), {}
            if sys.version_info >= (3, 13):
                untracked["trackfd"] = False  # a launcher shows its tests what it has open
            self.memory = mmap.mmap(fd, end, **untracked)

    def trace(self, frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any] | None:
        """Follow a function of ours; to be given to `sys.settrace`."""
        table = self.tables.get(frame.f_code.co_filename)
        if table is None:
            return None
        beginning = -frame.f_code.co_firstlineno
        last = frame.f_lineno if _goes_on(frame) else beginning

        def note(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
            nonlocal last
            if event == "line":
                self.memory[table.place((last, frame.f_lineno))] = 1
                last = frame.f_lineno
            elif event == "return" and not _is_instruction(frame, "YIELD_VALUE"):
                self.memory[table.place((last, beginning))] = 1
            return note

        return note


def _goes_on(frame: FrameType) -> bool:
    """Whether a generator is entered again; its instruction's argument is 0 at the beginning."""
    return _is_instruction(frame, "RESUME") and frame.f_code.co_code[frame.f_lasti + 1] != 0


def _is_instruction(frame: FrameType, name: str) -> bool:
    if not frame.f_code.co_flags & inspect.CO_GENERATOR:
        return False
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == dis.opmap[name]


def be_launcher(path: str, bootstrap: str) -> None:
    """Be a launcher that notes what it and its children run."""
    sys.settrace(Notes(path).trace)
    runpy.run_path(bootstrap, run_name="__main__")


_LAUNCHER = """
import sys
sys.path.insert(0, {root!r})
from scripts.child_coverage import be_launcher
be_launcher({path!r}, {bootstrap!r})
"""


def pytest_sessionstart(session: Any) -> None:
    from pdfpool_django.sandbox import host

    folder = tempfile.TemporaryDirectory(prefix="pdfpool-coverage-")
    path, launcher = os.path.join(folder.name, "notes"), os.path.join(folder.name, "launcher.py")
    source = _LAUNCHER.format(root=str(ROOT), path=path, bootstrap=host._BOOTSTRAP)
    Path(launcher).write_text(source, encoding="utf-8")
    host._BOOTSTRAP = launcher
    session.config.child_coverage = folder, Notes(path)


def pytest_sessionfinish(session: Any) -> None:
    """Leave a file beside coverage's own, for ``coverage combine --append``."""
    from coverage import CoverageData

    folder, notes = session.config.child_coverage
    data = CoverageData(basename=str(ROOT / f".coverage.children.{os.getpid()}"))
    data.add_arcs({name: list(each.arcs(notes.memory)) for name, each in notes.tables.items()})
    data.write()
    folder.cleanup()
