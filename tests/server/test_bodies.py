"""How bodies arrive over a real socket: in chunks, slowly, in part, and by other programs."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.server.client import Answer, SiteClient, multipart
from tests.server.scenario import assert_reads, details, script
from tests.server.servers import GUNICORN, UVICORN, Server, gunicorn
from tests.server.site import Site, serve

TIMEOUT = 30

IN_CHUNKS = [GUNICORN, gunicorn("gevent"), gunicorn("asgi"), UVICORN]


@pytest.fixture(scope="module", params=IN_CHUNKS, ids=str)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database: Path
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    server: Server = request.param
    with serve(folder, "tests.server.settings", server, database) as served:
        yield served


@contextlib.contextmanager
def connected(site: Site) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(site.base)
    assert address.hostname
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT)
    try:
        yield connection
    finally:
        connection.close()


def headers_of(client: SiteClient, content_type: str) -> dict[str, str]:
    return {
        "Cookie": "; ".join(f"{each.name}={each.value}" for each in client._jar),
        "X-CSRFToken": client.token,
        "Content-Type": content_type,
    }


def in_chunks(site: Site, content_type: str, *chunks: bytes) -> tuple[int, Any]:
    """Post a body whose length nobody knows before its end."""
    headers = headers_of(site.client(), content_type)
    with connected(site) as connection:
        connection.request("POST", "/pdf/extract/", iter(chunks), headers, encode_chunked=True)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def cut(data: bytes, size: int = 7) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def test_a_raw_body_may_come_in_chunks(site: Site) -> None:
    status, body = in_chunks(site, "application/pdf", *cut(script("chunked")))
    assert status == 200, body
    assert [page["text"] for page in body["pages"]] == ["text of page 1", "text of page 2"]


def test_a_form_may_not_come_in_chunks_and_the_answer_says_what_to_do(site: Site) -> None:
    form, content_type = multipart(script("chunked form"), {})
    status, body = in_chunks(site, content_type, *cut(form))
    assert (status, body["code"]) == (400, "invalid_request")
    assert "cannot be sent in chunks" in body["detail"]


def test_a_client_that_stops_in_the_middle_costs_nothing(site: Site) -> None:
    before = details(site)["jobs_started"]
    for content_type in ("application/pdf", "multipart/form-data; boundary=x"):
        with connected(site) as connection:
            connection.putrequest("POST", "/pdf/extract/")
            for name, value in headers_of(site.client(), content_type).items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", "100000")
            connection.endheaders(b"%PDF-" + b"x" * 1000)
    assert_reads(site)
    assert details(site)["jobs_started"] == before + 1


def test_a_slow_upload_keeps_nobody_from_a_slot(
    site: Site, background: Callable[..., Future[Answer]]
) -> None:
    document = script("slow upload")
    with connected(site) as connection:
        connection.putrequest("POST", "/pdf/extract/")
        for name, value in headers_of(site.client("other"), "application/pdf").items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(document)))
        connection.endheaders(document[:10])
        assert_reads(site)
        connection.send(document[10:])
        response = connection.getresponse()
        assert response.status == 200
        response.read()
