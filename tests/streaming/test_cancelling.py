"""A client may go, or its task be cancelled, at any moment: nothing stays open."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.test import AsyncRequestFactory

from pdfpool_django import async_views, callers, extraction, runtime
from pdfpool_django.async_views import AsyncExtractView
from tests.sandbox.helpers import LIMIT, Watch, eventually
from tests.site.helpers import assert_reads_on, await_children, hanging, release, script, waiting
from tests.streaming.conftest import assert_nothing_is_open
from tests.streaming.connections import Connection, async_site
from tests.streaming.ways import EXTRACT, NDJSON, headers_of

JSON = "application/json"


@pytest.fixture
def application(site: None) -> Iterator[Any]:
    with async_site() as made:
        yield made


def disconnect(connection: Connection) -> None:
    connection.go_away()


def cancel(connection: Connection) -> None:
    """As a server does that shuts down."""
    connection.task.cancel()


# Django 5.2 waits for the view in a task of its own, which goes on when the server cancels
# the request's: a matter of the server's end only, as a disconnect is told in another way.
CANCELS_VIEWS = "TaskGroup" in inspect.getsource(ASGIHandler.handle)


@pytest.fixture(
    params=[
        disconnect,
        pytest.param(
            cancel,
            marks=pytest.mark.skipif(not CANCELS_VIEWS, reason="this Django cancels no views"),
        ),
    ],
    ids=lambda way: way.__name__,
)
def go(request: pytest.FixtureRequest) -> Callable[[Connection], None]:
    """Both ways in which a request comes to an early end."""
    way: Callable[[Connection], None] = request.param
    return way


class Gate:
    """Where a thread waits until a test lets it go."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def wait(self) -> None:
        self._reached.set()
        assert self._open.wait(LIMIT)

    async def await_reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, LIMIT)

    def open(self) -> None:
        self._open.set()

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*args: Any, **kwargs: Any) -> Any:
            self.wait()
            return function(*args, **kwargs)

        return gated

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.wait()
            return result

        return gated


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


async def assert_child_ends(pids: list[int]) -> None:
    with Watch() as watch:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                watch.add(pid)
        await asyncio.to_thread(watch.await_ends)


async def assert_nothing_stays_open() -> None:
    await asyncio.to_thread(assert_nothing_is_open)


# While the thread takes the request in


@pytest.mark.parametrize("accept", [JSON, NDJSON])
@pytest.mark.parametrize("where", ["before it is submitted", "after it is submitted"])
async def test_going_while_the_request_is_taken_in(
    application: Any,
    go: Callable[[Connection], None],
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    accept: str,
    where: str,
) -> None:
    gated = gate.before if where.startswith("before") else gate.after
    monkeypatch.setattr(extraction, "submit", gated(extraction.submit))
    connection = Connection(application, hanging("taken in", 2, 2), accept=accept)
    await gate.await_reached()
    assert callers.open_requests()._open == {"a": 1}
    go(connection)
    gate.open()
    await connection.end()
    assert connection.status is None
    await assert_nothing_stays_open()


async def test_going_while_the_thread_is_freed(
    application: Any,
    go: Callable[[Connection], None],
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gated:
        close_all = staticmethod(gate.before(async_views.connections.close_all))

    monkeypatch.setattr(async_views, "connections", Gated)
    connection = Connection(application, hanging("freed", 2, 2))
    await gate.await_reached()
    go(connection)
    gate.open()
    await connection.end()
    await assert_nothing_stays_open()


# While it waits


@pytest.mark.parametrize("accept", [JSON, NDJSON])
async def test_going_while_the_result_is_waited_for(
    application: Any, go: Callable[[Connection], None], accept: str
) -> None:
    connection = Connection(application, hanging("waited for", 2, 0), accept=accept)
    pids = await asyncio.to_thread(await_children)
    go(connection)
    await connection.end()
    await assert_child_ends(pids)
    await assert_nothing_stays_open()
    await asyncio.to_thread(assert_reads_on)


async def test_going_while_the_page_for_people_waits(
    application: Any, go: Callable[[Connection], None]
) -> None:
    head = b'Content-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
    form = b"--x\r\n" + head + hanging("for people") + b"\r\n--x--\r\n"
    connection = Connection(
        application, form, path="/pdf/", content_type="multipart/form-data; boundary=x"
    )
    pids = await asyncio.to_thread(await_children)
    go(connection)
    await connection.end()
    await assert_child_ends(pids)
    await assert_nothing_stays_open()


async def test_going_while_in_the_queue(application: Any, go: Callable[[Connection], None]) -> None:
    running = [Connection(application, hanging(f"of {each}"), each) for each in "xy"]
    await asyncio.to_thread(await_children, 2)
    queued = Connection(application, script("queued"))
    await asyncio.to_thread(eventually, lambda: runtime.state().queued == 1, "one in the queue")
    go(queued)
    await queued.end()
    await asyncio.to_thread(eventually, lambda: runtime.state().queued == 0, "an empty queue")
    for connection in running:
        go(connection)
        await connection.end()
    await assert_nothing_stays_open()


async def test_going_while_the_next_line_is_waited_for(
    application: Any, go: Callable[[Connection], None]
) -> None:
    connection = Connection(application, hanging("next line", 3, 2), accept=NDJSON)
    await connection.await_pieces(2)
    pids = await asyncio.to_thread(await_children)
    go(connection)
    await connection.end()
    await assert_child_ends(pids)
    await assert_nothing_stays_open()


async def test_going_while_a_line_is_being_sent(
    application: Any, go: Callable[[Connection], None]
) -> None:
    connection = Connection(application, hanging("being sent", 3, 2), accept=NDJSON)
    connection.stop_reading()
    # Not even the head has gone out.
    await asyncio.to_thread(await_children)
    await asyncio.to_thread(
        eventually, lambda: connection.status is not None, "the head of the answer"
    )
    go(connection)
    await connection.end()
    connection.forget()
    await assert_nothing_stays_open()


async def test_the_others_get_their_answer_when_the_starter_goes(
    application: Any, go: Callable[[Connection], None]
) -> None:
    data = waiting("others", 2, 2)
    starter = Connection(application, data, accept=NDJSON)
    await starter.await_pieces(2)
    follower = Connection(application, data, "b")
    await asyncio.to_thread(
        eventually, lambda: runtime.state().details["tickets"] == 2, "one that has joined"
    )
    go(starter)
    await starter.end()
    release(*await_children())
    assert [page["number"] for page in (await follower.answer())["pages"]] == [1, 2]


# At every moment


class CancelledAt:
    """Awaits a coroutine; at its nth wait its task is cancelled."""

    def __init__(self, coroutine: Any, count: int) -> None:
        self._coroutine = coroutine
        self._left = count
        self.waits: int = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._coroutine.__await__()
        raised: BaseException | None = None
        while True:
            try:
                waited_for = steps.send(None) if raised is None else steps.throw(raised)
            except StopIteration as end:
                return end.value
            if self.waits == self._left:
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
            self.waits += 1
            raised = None
            try:
                yield waited_for
            except BaseException as error:
                raised = error


async def whole(accept: str) -> list[Any]:
    """Ask the view alone, and read its answer to the end."""
    view = AsyncExtractView.as_view()
    request = AsyncRequestFactory().post(
        EXTRACT, script("whole", 2), "application/pdf", headers=headers_of("a", accept, {})
    )
    response = await view(request)
    assert response.status_code == 200, response.content
    if response.streaming:
        return [line async for line in response]
    return [response.content]


@pytest.mark.parametrize("accept", [JSON, NDJSON])
async def test_cancelling_at_any_wait_leaves_nothing_open(site: None, accept: str) -> None:
    cancelled = 0
    while True:
        watched = CancelledAt(whole(accept), cancelled)
        try:
            lines = await asyncio.wait_for(asyncio.create_task(awaiting(watched)), LIMIT)
        except asyncio.CancelledError:
            await assert_nothing_stays_open()
            cancelled += 1
            continue
        break
    assert len(lines) == (1 if accept == JSON else 4)
    assert cancelled, "the thread's, and those for the job where it is not done by then"


async def awaiting(watched: CancelledAt) -> Any:
    return await watched
