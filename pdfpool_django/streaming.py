"""A run as lines of JSON, one for each event as it happens."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from django.http import StreamingHttpResponse

from pdfpool_django import http
from pdfpool_django.backends.base import Run
from pdfpool_django.errors import InternalError, PdfPoolError
from pdfpool_django.model import Event, Extraction

logger = logging.getLogger("pdfpool_django.streaming")

NDJSON = "application/x-ndjson"


class _Lines:
    """What sync and async lines share. A response closes them at its end."""

    leave: Callable[[], None] | None = None
    """Leaves the run; called once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._first: Event | None = None

    def close(self) -> None:
        """Leave the run. A second time, nothing happens."""
        leave, self.leave = self.leave, None
        if leave is not None:
            leave()

    def _beginning(self) -> list[bytes]:
        return [] if self._first is None else [_event_line(self._first)]


class EventLines(_Lines):
    """The lines of a run; one event at a time is held."""

    def begin(self) -> None:
        """Wait for the first event: what is refused, or fails, before it has no lines.

        Raises:
            PdfPoolError: The request was refused, or the document cannot be opened.
        """
        self._events = self._run.events()
        self._first = next(self._events, None)
        if self._first is None:
            self._run.result()

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._beginning()
            for event in self._events:
                yield _event_line(event)
            yield _event_line(self._run.result())
        except Exception as error:  # noqa: BLE001 - the response has begun: a line must say it
            yield _error_line(error)
        finally:
            self.close()


class AsyncEventLines(_Lines):
    """Like `EventLines`, for servers that wait asynchronously."""

    prepare: Callable[[], Awaitable[None]] | None = None
    """Called before the first line is sent, when the response has been through the middlewares."""

    async def begin(self) -> None:
        """See `EventLines.begin`."""
        self._events = self._run.aevents()
        self._first = await anext(self._events, None)
        if self._first is None:
            await self._run.aresult()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self.prepare is not None:
                await self.prepare()
            for line in self._beginning():
                yield line
            async for event in self._events:
                yield _event_line(event)
            yield _event_line(await self._run.aresult())
        except Exception as error:  # noqa: BLE001 - the response has begun: a line must say it
            yield _error_line(error)
        finally:
            self.close()


def response(lines: EventLines | AsyncEventLines) -> StreamingHttpResponse:
    """Return the response that sends the lines, each as soon as it is there."""
    streamed = StreamingHttpResponse(lines, content_type=NDJSON)
    # nginx would collect them else.
    streamed["X-Accel-Buffering"] = "no"
    return streamed


def _event_line(event: Event | Extraction) -> bytes:
    return _line(http.localized(event).as_event())


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


def _error_line(error: Exception) -> bytes:
    if not isinstance(error, PdfPoolError):
        fault = InternalError()
        logger.error("a stream failed, reference %s", fault.reference, exc_info=error)
        error = fault
    return _line({"type": "error", "error": http.problem(error)})
