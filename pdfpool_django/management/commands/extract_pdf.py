"""``manage.py extract_pdf``: the text of PDF files, on standard output or in files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from pdfpool_django import conf, http, runtime
from pdfpool_django.errors import ErrorDict, InvalidRequest, PdfPoolError
from pdfpool_django.extraction import submit
from pdfpool_django.model import DocumentInfo, Event, Extraction, PageSelection
from pdfpool_django.sandbox.descriptors import Descriptor
from pdfpool_django.sources import from_file

FORMATS = {"text": ".txt", "json": ".json", "ndjson": ".ndjson"}
STANDARD_INPUT = "-"

_INTERRUPTED = 130  # as shells report SIGINT
_READER_GONE = 141  # as shells report SIGPIPE


@dataclass
class _Item:
    """A file to read, and what came of it."""

    path: str
    name: str
    """The path of its result, below the output folder, without an ending."""
    result: Extraction | None = None
    error: ErrorDict | None = None
    events: list[Event] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.result is not None and self.result.complete


class _Progress:
    """A bar of pages on a terminal; elsewhere nothing. Messages go above it."""

    def __init__(self, stream: TextIO, shown: bool) -> None:
        self._stream = stream
        self._total = 0
        self._bar = tqdm(total=0, unit="page", file=stream, disable=not shown, leave=False)

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentInfo):
            self._total += event.selected
            self._bar.total = self._total
            self._bar.refresh()
        else:
            self._bar.update()

    def write(self, writer: _Writer, item: _Item) -> None:
        """Have a result written, without the bar in between where both are on a terminal."""
        if self._bar.disable or not writer.on_terminal:
            writer.write(item)
            return
        with tqdm.get_lock():  # type: ignore[no-untyped-call]
            self._bar.clear(nolock=True)
            writer.write(item)
            writer.end_line()  # the bar is drawn where the last one stands

    def say(self, line: str) -> None:
        self._bar.write(line, file=self._stream)

    def close(self) -> None:
        self._bar.close()


class Command(BaseCommand):
    """Read PDF files through the pool, like the site does."""

    help = "Write the text of PDF files to standard output, or into a folder."
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="A PDF file, or - for input.")
        parser.add_argument("--pages", metavar="RANGE", help="Pages to read, like 1-3,7 or 5-.")
        parser.add_argument("--password-file", metavar="FILE", help="Its first line is used.")
        parser.add_argument("--format", choices=FORMATS, default="text")
        parser.add_argument("--output", metavar="DIR", help="Write a file for each, here.")
        parser.add_argument("--recursive", action="store_true", help="Read folders, too.")
        parser.add_argument("--jobs", type=int, metavar="N", help="Files read at once.")
        parser.add_argument("--no-progress", action="store_true", help="Show no progress bar.")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        self._options = options
        self._check_usage()
        self._password = self._read_password()
        # Without Django's wrapper, which ends every piece of a bar with a newline.
        stderr: Any = self.stderr._out
        shown = not options["no_progress"] and stderr.isatty()
        self._progress = _Progress(stderr, shown)
        try:
            self._standard_input = self._read_standard_input()
            items = list(self._items())
            self._write_all(items)
        except KeyboardInterrupt:
            # Ends the children, so that the threads that wait for them end, too.
            runtime.close()
            self._progress.say("Interrupted.")
            sys.exit(_INTERRUPTED)
        except BrokenPipeError:
            # Whoever reads has enough, as `head` has; what is still in the buffer goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())
            runtime.close()
            sys.exit(_READER_GONE)
        finally:
            self._progress.close()
        failed = sum(not item.complete for item in items)
        if failed:
            raise CommandError(
                f"{failed} of {len(items)} files could not be read completely.", returncode=1
            )

    def _check_usage(self) -> None:
        jobs = self._options["jobs"]
        if jobs is not None and jobs < 1:
            raise CommandError("--jobs must be at least 1.", returncode=2)
        if self._options["paths"].count(STANDARD_INPUT) > 1:
            raise CommandError("Standard input can be read once only.", returncode=2)
        try:
            PageSelection.parse(self._options["pages"])
        except InvalidRequest as error:
            raise CommandError(f"--pages: {http.detail_of(error)}", returncode=2) from error

    def _read_password(self) -> str | None:
        path = self._options["password_file"]
        if path is None:
            return None
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            message = f"--password-file: {path} cannot be read: {_reason(error)}"
            raise CommandError(message, returncode=2) from error
        return lines[0] if lines else ""

    def _read_standard_input(self) -> Descriptor | None:
        """Read it in this thread, where waiting for it can be interrupted."""
        if STANDARD_INPUT not in self._options["paths"]:
            return None
        try:
            return from_file(sys.stdin.buffer)
        except OSError as error:
            raise CommandError(f"Standard input: {_reason(error)}", returncode=1) from error

    def _items(self) -> Iterator[_Item]:
        """Yield every file, each with a name of its own for its result."""
        taken: set[str] = set()
        for path, name in self._files():
            unique, count = name, 1
            while unique in taken:
                count += 1
                unique = f"{name}-{count}"
            taken.add(unique)
            yield _Item(path, unique)

    def _files(self) -> Iterator[tuple[str, str]]:
        for given in self._options["paths"]:
            path = Path(given)
            if given == STANDARD_INPUT:
                yield given, "stdin"
            elif self._options["recursive"] and path.is_dir():
                for found in sorted(path.rglob("*")):
                    if found.suffix.lower() == ".pdf" and found.is_file():
                        yield str(found), str(found.relative_to(path).with_suffix(""))
            else:
                yield given, path.stem

    def _write_all(self, items: list[_Item]) -> None:
        """Read the files, a few at once, and write each result in the order of the files."""
        writer = self._writer()
        slots = conf.load().backend_config.slots
        workers = min(self._options["jobs"] or slots, slots, len(items) or 1)
        executor = ThreadPoolExecutor(workers, thread_name_prefix="extract_pdf")
        try:
            futures = [
                executor.submit(self._read, item, f"extract_pdf:{os.getpid()}:{number}")
                for number, item in enumerate(items)
            ]
            for item, future in zip(items, futures, strict=True):
                self._wait_for(item, future)
                self._progress.write(writer, item)
            writer.close()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _writer(self) -> _Writer:
        name = self._options["format"]
        folder = self._options["output"]
        if folder is not None:
            return _FolderWriter(Path(folder), name)
        return _STREAM_WRITERS[name](self.stdout._out)

    def _wait_for(self, item: _Item, future: Future[None]) -> None:
        try:
            future.result()
        except PdfPoolError as error:
            item.error = {"code": error.code, "detail": http.detail_of(error)}
        except OSError as error:
            item.error = {"code": "unreadable", "detail": _reason(error)}
        if item.result is not None:
            item.result = http.localized(item.result)
        self._report(item)

    def _report(self, item: _Item) -> None:
        if item.error is not None:
            self._progress.say(f"{item.path}: {item.error['detail']}")
            return
        for page in item.result.pages if item.result else ():
            if page.error is not None and page.error["code"] != "not_attempted":
                self._progress.say(f"{item.path}, page {page.number}: {page.error['detail']}")
        if item.result is not None and item.result.error is not None:
            self._progress.say(f"{item.path}: stopped early. {item.result.error['detail']}")

    def _read(self, item: _Item, caller: str) -> None:
        source: Any = self._standard_input if item.path == STANDARD_INPUT else Path(item.path)
        keep_events = self._options["format"] == "ndjson"
        pages = self._options["pages"]
        with submit(source, caller=caller, pages=pages, password=self._password) as run:
            for event in run.events():
                self._progress.take(event)
                if keep_events:
                    item.events.append(event)
            item.result = run.result()


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, IsADirectoryError):
        return "It is a folder; add --recursive to read the files in it."
    if isinstance(error, FileNotFoundError):
        return "There is no such file; check its path."
    if isinstance(error, PermissionError):
        return "It may not be read; check its permissions."
    return f"{getattr(error, 'strerror', None) or error}."


def _as_object(item: _Item) -> dict[str, Any]:
    if item.result is None:
        return {"path": item.path, "error": item.error}
    return {"path": item.path, **item.result.as_dict()}


def _text(item: _Item) -> str:
    return "" if item.result is None else item.result.text


def _lines(item: _Item) -> str:
    return "".join(_json({"path": item.path, **line}) + "\n" for line in _lines_of(item))


def _lines_of(item: _Item) -> Iterator[dict[str, Any]]:
    for event in item.events:
        yield http.localized(event).as_event()
    if item.result is not None:
        yield item.result.as_event()
    if item.error is not None:
        yield {"type": "error", "error": item.error}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Writer:
    """Takes the results, in order."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._count = 0
        self._ended = True

    @property
    def on_terminal(self) -> bool:
        return self._out is not None and self._out.isatty()

    def write(self, item: _Item) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write what comes after the last result."""

    def end_line(self) -> None:
        if not self._ended:
            self._put("\n")

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        self._ended = text.endswith("\n")


class _TextWriter(_Writer):
    def write(self, item: _Item) -> None:
        if item.result is None:
            return
        # Files are parted as pages are, so that the whole is one stream of pages.
        self._put("\f" * bool(self._count) + _text(item))
        self._count += 1

    def close(self) -> None:
        self.end_line()


class _JsonWriter(_Writer):
    def write(self, item: _Item) -> None:
        self._put(("," if self._count else "[") + "\n" + _json(_as_object(item)))
        self._count += 1

    def close(self) -> None:
        self._out.write("\n]\n" if self._count else "[]\n")


class _LinesWriter(_Writer):
    def write(self, item: _Item) -> None:
        self._put(_lines(item))


_STREAM_WRITERS: dict[str, type[_Writer]] = {
    "text": _TextWriter,
    "json": _JsonWriter,
    "ndjson": _LinesWriter,
}


class _FolderWriter(_Writer):
    """Writes each result to a file named after its document."""

    _CONTENT: dict[str, Callable[[_Item], str]] = {  # noqa: RUF012
        "text": _text,
        "json": lambda item: _json(_as_object(item)) + "\n",
        "ndjson": _lines,
    }

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(None)
        self._folder = folder
        self._format = name
        with self._told(folder):  # before anything is read in vain
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, item: _Item) -> None:
        if item.result is None:
            return
        path = self._folder / f"{item.name}{FORMATS[self._format]}"
        with self._told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._CONTENT[self._format](item), encoding="utf-8")

    @contextlib.contextmanager
    def _told(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"--output: {path} cannot be written: {error.strerror}."
            raise CommandError(message, returncode=1) from error
