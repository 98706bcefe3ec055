"""The four public functions, each as one that takes a document and returns its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pdfpool_django.extraction import aextract, astream, extract, stream
from pdfpool_django.model import Extraction

Ask = Callable[..., Extraction]


def by_aextract(source: Any, **options: Any) -> Extraction:
    return asyncio.run(aextract(source, **options))


def by_stream(source: Any, **options: Any) -> Extraction:
    with stream(source, **options) as pages:
        assert list(pages) == list(pages.extraction.pages)
    return pages.extraction


def by_astream(source: Any, **options: Any) -> Extraction:
    async def read() -> Extraction:
        async with astream(source, **options) as pages:
            assert [page async for page in pages] == list(pages.extraction.pages)
        return pages.extraction

    return asyncio.run(read())


WAYS: dict[str, Ask] = {
    "extract": extract,
    "aextract": by_aextract,
    "stream": by_stream,
    "astream": by_astream,
}
