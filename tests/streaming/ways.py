"""The sync views and the async ones, asked in the same words."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from django.http import HttpResponseBase
from django.test import AsyncClient, Client, override_settings

from tests.sandbox.helpers import LIMIT

NDJSON = "application/x-ndjson"
EXTRACT = "/pdf/extract/"


def headers_of(caller: str | None, accept: str | None, more: dict[str, str]) -> dict[str, str]:
    named = {} if caller is None else {"Authorization": f"Bearer {caller}"}
    return named | ({} if accept is None else {"Accept": accept}) | more


class Reader:
    """A response, whose lines are asked for one by one."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self._chunks: Any = None

    @property
    def streams(self) -> bool:
        return bool(self.response.streaming)

    def chunk(self) -> bytes | None:
        """Return the next piece that would be sent; ``None`` at the end."""
        if self._chunks is None:
            self._chunks = self._begin()
        return self._next(self._chunks)

    def line(self) -> dict[str, Any]:
        """Return the next event: each is a line, and is sent alone."""
        chunk = self.chunk()
        assert chunk is not None, "the stream has ended"
        assert chunk.endswith(b"\n")
        assert chunk.count(b"\n") == 1, chunk
        event: dict[str, Any] = json.loads(chunk)
        return event

    def lines(self) -> list[dict[str, Any]]:
        """Return the events up to the end."""
        return [json.loads(line) for line in self.body().splitlines()]

    def body(self) -> bytes:
        """Return what is left of the body."""
        return b"".join(iter(self.chunk, None))  # type: ignore[arg-type]

    def close(self) -> None:
        """End the response, as a server does, whatever has been sent of it."""
        self.response.close()

    def _begin(self) -> Any:
        return iter(self.response.streaming_content)

    def _next(self, chunks: Any) -> bytes | None:
        return next(chunks, None)


class Way:
    """How the views are asked."""

    name = "sync"
    urls = "example_project.urls"

    def ask(
        self,
        data: bytes = b"",
        caller: str | None = "a",
        accept: str | None = NDJSON,
        *,
        method: str = "POST",
        query: str = "",
        path: str = EXTRACT,
        content_type: str = "application/pdf",
        **headers: str,
    ) -> Any:
        """Send a request; return its response, of which nothing has been read yet."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        options = {
            "data": data,
            "content_type": content_type,
            "headers": headers_of(caller, accept, named),
        }
        return self._send(method, path + (f"?{query}" if query else ""), options)

    def _send(self, method: str, path: str, options: dict[str, Any]) -> HttpResponseBase:
        response: HttpResponseBase = Client().generic(method, path, **options)
        return response

    def read(self, *args: Any, **kwargs: Any) -> Reader:
        """Send a request whose answer streams."""
        response = self.ask(*args, **kwargs)
        assert response.status_code == 200, response.content
        assert response.streaming, response.content
        return self._reader(response)

    def _reader(self, response: Any) -> Reader:
        return Reader(response)

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with override_settings(ROOT_URLCONF=self.urls):
            yield

    def __str__(self) -> str:
        return self.name


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Any, context: contextvars.Context | None = None) -> Any:
        """Run a coroutine as a task; those of one request are of one context, as under a server."""
        done: Future[Any] = Future()

        async def running() -> None:
            try:
                done.set_result(await coroutine)
            except BaseException as error:
                done.set_exception(error)

        def start() -> None:
            self._tasks.add(task := self.loop.create_task(running(), context=context))
            task.add_done_callback(self._tasks.discard)

        self.loop.call_soon_threadsafe(start)
        return done.result(LIMIT)

    def end(self) -> None:
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(LIMIT)
        self.loop.close()


class AsyncReader(Reader):
    """A response of an async view."""

    def __init__(self, response: Any, loop: LoopThread, context: contextvars.Context) -> None:
        super().__init__(response)
        self._loop = loop
        self._context = context

    def _begin(self) -> Any:
        return aiter(self.response.streaming_content)

    def _next(self, chunks: Any) -> bytes | None:
        async def following() -> Any:
            return await anext(chunks, None)

        return self._loop.run(following(), self._context)


class AsyncWay(Way):
    """Asks the async views, from another thread."""

    name = "async"
    urls = "tests.server.async_urls"

    def __init__(self) -> None:
        self._loop: LoopThread | None = None

    @property
    def loop(self) -> LoopThread:
        assert self._loop is not None
        return self._loop

    def _send(self, method: str, path: str, options: dict[str, Any]) -> HttpResponseBase:
        context = contextvars.copy_context()
        asked = AsyncClient().generic(method, path, **options)
        response: Any = self.loop.run(asked, context)
        response.context_of_test = context
        return response  # type: ignore[no-any-return]

    def _reader(self, response: Any) -> Reader:
        return AsyncReader(response, self.loop, response.context_of_test)

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        self._loop = LoopThread()
        try:
            with super().at_hand():
                yield
        finally:
            self.loop.end()
