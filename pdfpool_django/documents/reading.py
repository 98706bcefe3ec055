"""An extraction: the selected pages of a document, read and published one by one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from pdfpool_django.documents import parallel
from pdfpool_django.documents.session import Session
from pdfpool_django.model import EVERY_PAGE, DocumentInfo, Event, Extraction, Page, PageSelection

AHEAD = 32
"""Pages that each session may be ahead of the one that is to be published next."""


def read(
    session: Session,
    selection: PageSelection | None,
    sha256: str,
    engine: Callable[[], str],
    publish: Callable[[Event], None],
    helpers: Sequence[Session] = (),
) -> Extraction:
    """Read the selected pages of a document, and publish each as it comes.

    Args:
        session: The session, not yet opened.
        selection: Which pages; ``None`` for all.
        sha256: The document's SHA-256, for the result.
        engine: Tells the engine's name and version, once a child has been used.
        publish: Takes the `DocumentInfo` first, then each `Page`.
        helpers: Further sessions of the same document and budget, which read
            pages at the same time.

    Raises:
        PdfPoolError: No page could be read; the first failure says why.
        Stopped: The session was stopped.
    """
    budget = session.budget
    selection = selection or EVERY_PAGE
    opened = session.open(ahead=None if helpers else selection)
    ranges = selection.numbers(opened.page_count)
    selected = sum(len(part) for part in ranges)
    info = DocumentInfo(sha256, engine(), opened.page_count, selected, opened.metadata)
    publish(info)
    pages = []
    for page in _pages(session, helpers, ranges):
        publish(page)
        pages.append(page)
    failure = budget.error or budget.first_failure
    if failure is not None and not any(page.error is None or page.text for page in pages):
        raise failure
    return Extraction(
        sha256=sha256,
        engine=info.engine,
        page_count=opened.page_count,
        pages=tuple(pages),
        metadata=opened.metadata,
        warnings=opened.warnings,
        complete=budget.error is None and all(page.error is None for page in pages),
        error=None if budget.error is None else budget.error.as_error(),
        elapsed=budget.elapsed,
    )


def _pages(session: Session, helpers: Sequence[Session], ranges: Sequence[range]) -> Iterator[Page]:
    numbers = [number for part in ranges for number in part]
    if not helpers or len(numbers) < 2:
        return session.pages(ranges)
    workers = [functools.partial(_page, each) for each in (session, *helpers)]
    return parallel.in_order(workers, numbers, ahead=AHEAD, name="pdfpool-page", wait=True)


def _page(session: Session, number: int) -> Page:
    (page,) = session.pages([range(number, number + 1)])
    return page
