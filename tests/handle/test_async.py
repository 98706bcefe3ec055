"""The documented way to use a handle from async code: the loop goes on meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from pdfpool_django.documents import Document
from pdfpool_django.errors import Closed
from pdfpool_django.sandbox.descriptors import from_bytes
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.helpers import (
    SOURCE,
    child_at,
    go_on,
    opened,
    reads_on,
    text_of,
    waiting_pages,
    waits_at,
)
from tests.sandbox.helpers import LIMIT, LIMITS, eventually, scripted


async def ticks(count: int) -> None:
    """Return when the loop has gone round so often."""
    async with asyncio.timeout(LIMIT):
        for _ in range(count):
            await asyncio.sleep(0)


async def test_the_loop_goes_on_while_pages_are_read(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(2)) as document:
        reads = [
            asyncio.create_task(asyncio.to_thread(document.page(number).text)) for number in (1, 2)
        ]
        for number in (1, 2):
            await asyncio.to_thread(child_at, sandbox, number)
        await ticks(1000)
        assert not any(read.done() for read in reads)
        await asyncio.to_thread(go_on, sandbox, 1, 2)
        async with asyncio.timeout(LIMIT):
            assert await asyncio.gather(*reads) == [text_of(1), text_of(2)]
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_a_whole_life_in_async_code(sandbox: Sandbox) -> None:
    def open_one() -> Document:
        data = from_bytes(scripted(3))
        return Document(data, sandbox, source=SOURCE, limits=LIMITS)

    async with asyncio.timeout(LIMIT):
        document = await asyncio.to_thread(open_one)
        texts = await asyncio.gather(
            *(asyncio.to_thread(document.page(number).text) for number in (1, 2, 3))
        )
        assert texts == [text_of(1), text_of(2), text_of(3)]
        assert len(await asyncio.to_thread(document.search, "text", max_results=2)) == 2
        mapped = await asyncio.to_thread(lambda: list(document.map(lambda page: page.number)))
        assert mapped == [1, 2, 3]
        await asyncio.to_thread(document.close)
        with pytest.raises(Closed):
            await asyncio.to_thread(document.text)
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_a_task_that_is_cancelled_leaves_the_handle_as_it_was(sandbox: Sandbox) -> None:
    with opened(sandbox, waiting_pages(1, 2)) as document:
        reading = asyncio.create_task(asyncio.to_thread(document.page(1).text))
        child = await asyncio.to_thread(child_at, sandbox, 1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert waits_at(child, 1)  # a thread cannot be cancelled: the page is read to its end
        assert await asyncio.to_thread(document.page(2).text) == text_of(2)
        await asyncio.to_thread(go_on, sandbox, 1)
        await asyncio.to_thread(
            eventually, lambda: len(document._readers._free) == 2, "both readers free"
        )
        assert reads_on(document, 3)
    await asyncio.get_running_loop().shutdown_default_executor()
