"""A function over the pages of a document, several at a time, its results in order."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from pdfpool_django.errors import PdfPoolError

P = TypeVar("P")
T = TypeVar("T")

AHEAD = 4
"""Results for each worker that may wait for whoever takes them."""


def in_order(
    function: Callable[[P], T], pages: Iterable[P], workers: int, *, keep_errors: bool
) -> Iterator[T | PdfPoolError]:
    """Yield what `function` returns for each page, in the order of the pages.

    Leaving early begins no further page; those that are being read are read to
    their end in the background.

    Args:
        function: Called in threads, in a copy of this context.
        pages: What it is called with.
        workers: Pages at a time.
        keep_errors: Whether a `PdfPoolError` takes its page's place among the
            results; else it is raised there, and ends the iteration.
    """
    context = contextvars.copy_context()
    waiting: deque[Future[T]] = deque()
    executor = ThreadPoolExecutor(workers, thread_name_prefix="pdfpool-map")
    try:
        for page in pages:
            waiting.append(executor.submit(context.copy().run, function, page))
            if len(waiting) >= AHEAD * workers:
                yield _result(waiting.popleft(), keep_errors)
        while waiting:
            yield _result(waiting.popleft(), keep_errors)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _result(future: Future[Any], keep_errors: bool) -> Any:
    try:
        return future.result()
    except PdfPoolError as error:
        if not keep_errors:
            raise
        return error
