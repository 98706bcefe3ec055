"""Connections to the site as an ASGI application, whose clients can stop reading and go away."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.asgi import get_asgi_application
from django.test import override_settings

from tests.sandbox.helpers import LIMIT
from tests.streaming.ways import EXTRACT, headers_of

_CHUNK = 64 * 1024


@contextmanager
def async_site() -> Iterator[Any]:
    """Have the site as an ASGI application."""
    with override_settings(ROOT_URLCONF="tests.server.async_urls"):
        yield get_asgi_application()


class Connection:
    """One request."""

    def __init__(
        self,
        application: Any,
        data: bytes,
        caller: str = "a",
        accept: str = "application/json",
        path: str = EXTRACT,
        content_type: str = "application/pdf",
    ) -> None:
        headers = headers_of(caller, accept, {"Content-Type": content_type})
        headers |= {"Content-Length": str(len(data)), "Host": "localhost"}
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        self._chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
        self.received = 0
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.sent: list[bytes] = []
        self._gone = asyncio.Event()
        self._reading = asyncio.Event()
        self._reading.set()
        self._changed = asyncio.Condition()
        self.task = asyncio.create_task(application(self.scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self.received < len(self._chunks):
            chunk = self._chunks[self.received]
            self.received += 1
            more = self.received < len(self._chunks)
            return {"type": "http.request", "body": chunk, "more_body": more}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        async with self._changed:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                named = ((name.decode(), value.decode()) for name, value in message["headers"])
                self.headers.update(named)
            elif message.get("body"):
                self.sent.append(message["body"])
            self._changed.notify_all()
        await self._reading.wait()

    def stop_reading(self) -> None:
        """Let what is sent from now on wait."""
        self._reading.clear()

    def go_away(self) -> None:
        self._gone.set()

    async def await_pieces(self, count: int) -> None:
        """Return when so many pieces of the body have been sent."""
        async with asyncio.timeout(LIMIT), self._changed:
            await self._changed.wait_for(lambda: len(self.sent) >= count)

    async def end(self) -> None:
        """Wait until the application has done with the request."""
        async with asyncio.timeout(LIMIT):
            await asyncio.wait([self.task])

    def forget(self) -> None:
        """Let go of the request's task, as a server does; its traceback holds the response."""
        del self.task
        gc.collect()

    async def answer(self) -> Any:
        """Wait for the whole answer, and return it as JSON."""
        await self.end()
        self.task.result()
        return json.loads(b"".join(self.sent))
