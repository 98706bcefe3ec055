"""What a handle gains by reading pages in parallel, and what that takes: one worker and two."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Callable

from benchmarks.memory import MIB, pss, tree
from benchmarks.timing import in_turn, table, timing
from pdfpool_django.documents import Document, DocumentPage, sandboxes
from pdfpool_django.model import Limits
from scripts.pdf_builder import PdfBuilder, add_picture, page_entries, text_content

AIM = 1.7
PAGES = 1000
LINES = 20
PAGES_WITH_PICTURES = 200
WIDTH, HEIGHT = 600, 800

_ROUNDS = 10
_MEASURED = 3
_EVERY = 0.01
"""Seconds between two looks at the memory."""


def long_document() -> bytes:
    """Return a file of many pages, each full of text of its own."""
    builder = PdfBuilder()
    line = "On page %d, line %d, the quick brown fox jumps over the lazy dog again."
    texts = (
        "\n".join(line % (page, number) for number in range(LINES)) for page in range(1, PAGES + 1)
    )
    return builder.build([page_entries(builder, text_content(text)) for text in texts])


def picture_book() -> bytes:
    """Return a file with a picture on each page."""
    builder = PdfBuilder()
    noise = random.Random(0).randbytes(WIDTH * 3)
    pages = []
    for number in range(PAGES_WITH_PICTURES):
        rows = b"".join(noise[turn:] + noise[:turn] for turn in range(number, number + HEIGHT))
        entries = b"/Filter /FlateDecode /ColorSpace /DeviceRGB /BitsPerComponent 8"
        picture = add_picture(builder, WIDTH, HEIGHT, zlib.compress(rows, 1), entries)
        content = builder.add_stream(b"%d 0 0 %d 0 0 cm /Im Do" % (WIDTH, HEIGHT))
        resources = b"<< /XObject << /Im %d 0 R >> >>" % picture
        page = b"/MediaBox [0 0 %d %d] /Contents %d 0 R /Resources %s"
        pages.append(page % (WIDTH, HEIGHT, content, resources))
    return builder.build(pages)


def run(rounds: int) -> str:
    """Time `map` over the text with one worker and two; then look at the memory of both files."""
    data = long_document()
    counted = min(rounds, _ROUNDS)
    one, two = (
        Document.open(data, workers=workers, limits=Limits(deadline=600)) for workers in (1, 2)
    )
    with one, two:
        if list(one.map(_text)) != list(two.map(_text)):
            raise SystemExit("one worker and two do not agree on the text")
        ways: dict[str, Callable[[], object]] = {
            "one worker": lambda: list(one.map(_text)),
            "two workers": lambda: list(two.map(_text)),
        }
        timings = in_turn(ways, counted, warmups=0)  # the comparison was one
    gain = timings[0].median / timings[1].median
    measured = min(rounds // 2, _MEASURED)
    sizes = [
        timing(name, _at_least_two([peak(file, work, workers) / MIB for _ in range(measured)]))
        for kind, file, work in (
            ("text", data, _text),
            ("pictures", picture_book(), _pictures),
        )
        for workers in (1, 2)
        for name in (f"{kind}, {workers} worker{'s' * (workers > 1)}",)
    ]
    times = f"`map` over {PAGES} pages of text, {counted} rounds in turn, milliseconds"
    memory = (
        f"Launcher and children at their peak, {PAGES} pages of text and {PAGES_WITH_PICTURES} "
        f"with pictures,\n{measured} run{'s' * (measured > 1)}, MiB of proportional set size"
    )
    return (
        f"{table(times, timings)}\n"
        f"Two workers are {gain:.2f} times as fast as one (aim {AIM}, on two free cores).\n\n"
        f"{table(memory, sizes)}"
    )


def _at_least_two(sizes: list[float]) -> list[float]:
    return sizes if len(sizes) > 1 else sizes * 2


def _text(page: DocumentPage) -> str:
    return page.text()


def _pictures(page: DocumentPage) -> int:
    return sum(len(image.data) for image in page.images())


def peak(data: bytes, work: Callable[[DocumentPage], object], workers: int) -> int:
    """Return the most that a handle's processes take together while every page is worked on."""
    limits = Limits(deadline=600)
    with Document.open(data, workers=workers, limits=limits) as document:
        launcher = sandboxes.for_handles(limits).stats().launcher_pid
        if launcher is None:
            raise SystemExit("the handle has no launcher")
        done = threading.Event()
        seen: list[int] = []

        def watch() -> None:
            while not done.wait(_EVERY):
                seen.append(_sum(launcher))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for _ in document.map(work):
                pass
        finally:
            done.set()
            watcher.join()
    return max(seen)


def _sum(launcher: int) -> int:
    total = 0
    for pid in tree(launcher):
        try:
            total += pss(pid)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            continue  # it has ended meanwhile
    return total
