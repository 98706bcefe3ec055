"""The async views in a site: bodies that Django spools, threads, and views of a site's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.core.files.base import ContentFile
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.test import AsyncClient, override_settings
from django.urls import path

from pdfpool_django.async_views import AsyncExtractView
from pdfpool_django.errors import Forbidden, PdfPoolError
from pdfpool_django.model import Extraction
from tests.server.async_urls import urlpatterns as async_urlpatterns
from tests.shelf.models import Report
from tests.site.helpers import SCRIPTED, await_children, release, script, waiting
from tests.streaming.conftest import OPTIONS
from tests.streaming.connections import Connection, async_site
from tests.streaming.ways import NDJSON

LIMIT = 1000
MANY = 5_000_000


class ReportTextView(AsyncExtractView):
    """The text of a report, for those who may view reports; kept with it."""

    http_method_names = ("get", "post", "options")

    def get_source(self, request: HttpRequest, pk: int) -> Any:
        report = get_object_or_404(Report, pk=pk)
        if not request.user.has_perm("shelf.view_report"):
            raise Forbidden("You may not view reports.")
        return report.file

    def respond(self, request: HttpRequest, result: Extraction) -> HttpResponseBase:
        Report.objects.update(text=result.text)
        return super().respond(request, result)

    def respond_to_error(self, request: HttpRequest, error: PdfPoolError) -> HttpResponseBase:
        Report.objects.update(problem=error.code)
        return super().respond_to_error(request, error)


urlpatterns = [*async_urlpatterns, path("reports/<int:pk>/text/", ReportTextView.as_view())]


# Sizes


@pytest.fixture
def application(site: None) -> Iterator[Any]:
    with async_site() as made:
        yield made


async def test_a_body_that_is_too_large_is_refused_when_django_has_spooled_all_of_it(
    application: ASGIHandler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spooled: list[int] = []
    read_body = ASGIHandler.read_body

    async def seen(self: ASGIHandler, receive: Any) -> Any:
        body = await read_body(self, receive)
        spooled.append(body.seek(0, 2))
        body.seek(0)
        return body

    monkeypatch.setattr(ASGIHandler, "read_body", seen)
    with override_settings(
        PDFPOOL={**SCRIPTED, **OPTIONS, "MAX_UPLOAD": LIMIT}, FILE_UPLOAD_TEMP_DIR=str(tmp_path)
    ):
        connection = Connection(application, script("large") + b" " * MANY)
        assert (await connection.answer())["code"] == "file_too_large"
    assert connection.status == 413
    assert spooled[0] > MANY
    assert connection.received == len(connection._chunks), "all of it has been taken"


# Threads


async def test_no_thread_waits_with_a_request(application: Any) -> None:
    warm = Connection(application, script("warm"))
    await warm.answer()
    before = set(threading.enumerate())
    data = waiting("without a thread", 2, 2)
    waiters = [Connection(application, data, str(number)) for number in range(20)]
    (child,) = await asyncio.to_thread(await_children)
    readers = [Connection(application, data, f"r{number}", NDJSON) for number in range(20)]
    for reader in readers:
        await reader.await_pieces(2)

    def others() -> list[str]:
        # to_thread's own are the loop's, and stay.
        names = [thread.name for thread in set(threading.enumerate()) - before]
        return [name for name in names if not name.startswith(("pdfpool", "asyncio"))]

    async with asyncio.timeout(10):
        while others():  # noqa: ASYNC110 - nothing tells of a thread's end
            await asyncio.sleep(0.01)
    release(child)
    for each in waiters:
        assert (await each.answer())["complete"]
    for reader in readers:
        await reader.end()


# Views of a site's own


@pytest.fixture
def shelf(transactional_db: None, tmp_path: Path) -> Iterator[int]:
    """A site with a report, of which the user reader may know."""
    options = {key: value for key, value in OPTIONS.items() if key != "CALLER"}
    with override_settings(
        ROOT_URLCONF=__name__, MEDIA_ROOT=str(tmp_path), PDFPOOL={**SCRIPTED, **options}
    ):
        user = User.objects.create_user("reader")
        user.user_permissions.add(Permission.objects.get(codename="view_report"))
        User.objects.create_user("stranger")
        report = Report.objects.create(file=ContentFile(script("kept", 2), "report.pdf"))
        yield report.pk


async def client_of(name: str) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(await User.objects.aget(username=name))
    return client


def close_databases() -> None:
    """Close this thread's connections; Django leaves those to databases in memory open."""
    for each in connections.all(initialized_only=True):
        BaseDatabaseWrapper.close(each)


@pytest.fixture(autouse=True)
async def databases_closed() -> Any:
    yield
    await sync_to_async(close_databases)()


async def test_a_subclass_looks_its_document_up_and_keeps_the_result(shelf: int) -> None:
    client = await client_of("reader")
    for ask in (client.get, client.post):
        response: Any = await ask(f"/reports/{shelf}/text/")
        assert response.status_code == 200, response.content
        assert [page["number"] for page in response.json()["pages"]] == [1, 2]
        assert (await Report.objects.aget()).text == "text of page 1\ftext of page 2"


async def test_a_subclass_streams_its_document(shelf: int) -> None:
    client = await client_of("reader")
    response: Any = await client.get(f"/reports/{shelf}/text/", headers={"Accept": NDJSON})
    lines = [line async for line in response]
    assert len(lines) == 4


async def test_a_subclass_refuses_and_may_note_it(shelf: int) -> None:
    client = await client_of("stranger")
    response: Any = await client.get(f"/reports/{shelf}/text/")
    assert response.status_code == 403
    assert response.json()["detail"] == "You may not view reports."
    assert (await Report.objects.aget()).problem == "forbidden"


async def test_what_does_not_exist_is_not_found(shelf: int) -> None:
    client = await client_of("reader")
    response: Any = await client.get("/reports/99/text/")
    assert response.status_code == 404
