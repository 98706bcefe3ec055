"""What readers cost that have stopped reading."""

from __future__ import annotations

import pytest

from tests.sandbox.helpers import run_program

PROGRAM = """
import asyncio, sys, tracemalloc
import django
from django.conf import settings
from django.test import AsyncClient, Client

kind, pages, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
settings.configure(
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "pdfpool_django"],
    ROOT_URLCONF="pdfpool_django.urls" if kind == "sync" else "pdfpool_django.async_urls",
    PDFPOOL={
        "ENGINE": "tests.engines.text_and_a_wait",
        "CALLER": "tests.site.callers.by_token",
        "MAX_PAGES": 100_000,
    },
)
django.setup()
from pdfpool_django import runtime
from tests.site.helpers import await_children, await_idle, release

DATA = b"%PDF- " + str(pages).encode() + b" " + str(size).encode()
READERS = 50

def headers(number):
    return {"Authorization": f"Bearer {number}", "Accept": "application/x-ndjson"}

class Readers:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.loop.set_debug(False)  # or it keeps where each handle was made
        self.client = Client() if kind == "sync" else AsyncClient()

    def open(self, number):
        options = dict(headers=headers(number))
        if kind == "sync":
            response = self.client.generic("POST", "/extract/", DATA, "application/pdf", **options)
            lines = iter(response.streaming_content)
            assert next(lines).startswith(b'{"type": "document"')
            return response, lines

        async def opened():
            asked = self.client.generic("POST", "/extract/", DATA, "application/pdf", **options)
            response = await asked
            lines = aiter(response.streaming_content)
            assert (await anext(lines)).startswith(b'{"type": "document"')
            return response, lines

        return self.loop.run_until_complete(opened())

    def next(self, reader):
        if kind == "sync":
            return next(reader[1])
        return self.loop.run_until_complete(anext(reader[1]))

    def end(self):
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

readers = Readers()
first = readers.open("first")
for _ in range(pages - 1):  # all but the last one, which waits
    assert b'"type": "page"' in readers.next(first)
warm = [readers.open(f"warm {number}") for number in range(3)]
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
stalled = [readers.open(number) for number in range(READERS)]
assert runtime.state().running == 1
assert runtime.state().details["tickets"] == READERS + 4
stalled_bytes = tracemalloc.get_traced_memory()[0] - before
release(*await_children())
for reader in (first, *warm, *stalled):
    reader[0].close()
await_idle()
print(stalled_bytes)
readers.end()
runtime.reset()
"""


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("pages", "size"), [(8, 1024 * 1024), (4000, 1000)], ids=["8 MB of text", "4,000 pages"]
)
def test_fifty_readers_that_have_stopped_add_less_than_a_megabyte(
    kind: str, pages: int, size: int
) -> None:
    added = int(run_program(PROGRAM, kind, str(pages), str(size)))
    print(f"{kind}, {pages} pages of {size} bytes: 50 stalled readers add {added / 1e6:.3f} MB")
    assert added < 1_000_000
