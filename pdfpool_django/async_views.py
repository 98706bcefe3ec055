"""The views for ASGI servers: no thread is tied to a request that waits."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import connections
from django.http import HttpRequest, HttpResponseBase

from pdfpool_django import views
from pdfpool_django.backends.base import Run
from pdfpool_django.streaming import NDJSON, AsyncEventLines


class AsyncExtractionView(views.ExtractionView):
    """What the async views share: all but the waiting is that of the sync ones."""

    async def begin(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> tuple[Run, contextlib.ExitStack]:
        """Have the document read; return the run, and what to close when it is not needed any more.

        What comes before the waiting is done in a thread, which is freed.

        Raises:
            PdfPoolError: The request was refused.
        """
        stack = contextlib.ExitStack()
        enter = sync_to_async(stack.enter_context)
        entered = asyncio.ensure_future(enter(self.running(request, *args, **kwargs)))
        try:
            run = await asyncio.shield(entered)
            await _free_thread()
        except BaseException:
            # The client may have gone while the thread still takes its request in.
            entered.add_done_callback(lambda done: _close(done, stack))
            raise
        return run, stack

    async def post(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        try:
            return await self.answer(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - every one has its response
            return await sync_to_async(self.respond_to)(request, error)

    async def answer(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        run, stack = await self.begin(request, *args, **kwargs)
        with stack:
            result = await run.aresult()
        return await sync_to_async(self.respond)(request, result)


def _close(entered: asyncio.Future[Run], stack: contextlib.ExitStack) -> None:
    if not entered.cancelled():
        entered.exception()  # looked at, so that it is not reported as lost
    stack.close()


class AsyncExtractView(AsyncExtractionView, views.ExtractView):
    """`ExtractView` for ASGI servers, to be subclassed like it."""

    get = AsyncExtractionView.post  # type: ignore[assignment]

    async def answer(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        if self.preferred_type(request) == NDJSON:
            return await self.astream(request, *args, **kwargs)
        return await super().answer(request, *args, **kwargs)

    async def astream(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Return the response that sends a line of JSON for each event as it happens."""
        run, stack = await self.begin(request, *args, **kwargs)
        with stack:
            lines = AsyncEventLines(run)
            lines.prepare = _free_thread  # middlewares need one again
            await lines.begin()
            response = self.streamed(lines)
            lines.leave = stack.pop_all().close
            return response


class AsyncUploadView(AsyncExtractionView, views.UploadView):
    """`UploadView` for ASGI servers."""

    async def get(self, request: HttpRequest) -> HttpResponseBase:  # type: ignore[override]
        return await sync_to_async(super().get)(request)


async def _free_thread() -> None:
    """End the thread in which Django has run this request's synchronous code so far.

    It would wait idly as long as the request does. Where another is needed
    afterwards, one is made.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is None or context not in SyncToAsync.context_to_thread_executor:
        return
    await sync_to_async(connections.close_all)()
    SyncToAsync.context_to_thread_executor.pop(context).shutdown(wait=False)
