"""The example site behind nginx, set up as the documentation says."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs_code import ROOT, code_blocks
from tests.server.scenario import assert_reads, script
from tests.server.sending import NDJSON, TIMEOUT, Sent
from tests.server.servers import ASYNC_ASGI, GUNICORN, Server, gunicorn
from tests.server.site import Site, await_truth, serve, stop

NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
(LOCATION,) = code_blocks(ROOT / "docs" / "servers.md", "nginx")
MIB = 1024 * 1024

CONFIGURATION = """
daemon off;
worker_processes 1;
user root;  # so that it may use the folder; ignored where the tests run as somebody else
pid {folder}/pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    server {{
        listen {address};
        location / {{ proxy_pass http://{upstream}; proxy_set_header Host $http_host; }}
        {location}
    }}
}}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx here")


@contextmanager
def behind_nginx(site: Site, folder: Path) -> Iterator[Site]:
    """Put nginx before a site."""
    upstream = urlsplit(site.base).netloc
    assert NGINX is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())
        configuration = folder / "nginx.conf"
        location = LOCATION.source.replace("127.0.0.1:8000", upstream)
        assert location != LOCATION.source
        configuration.write_text(
            CONFIGURATION.format(
                folder=folder, address=address, upstream=upstream, location=location
            )
        )
        # It takes the socket over, as from an nginx before it: no port can be lost meanwhile.
        process = subprocess.Popen(
            [NGINX, "-p", folder, "-c", configuration],
            env={**os.environ, "NGINX": f"{listener.fileno()};"},
            pass_fds=[listener.fileno()],
        )
    try:
        yield Site(site.process, f"http://{address}", site.server)
    finally:
        stop(process)


@pytest.fixture
def proxied(request: pytest.FixtureRequest, tmp_path: Path, database: Path) -> Iterator[Site]:
    server: Server = request.param
    with serve(tmp_path, server.settings, server, database) as site:
        folder = tmp_path / "nginx"
        folder.mkdir()
        with behind_nginx(site, folder) as proxied:
            yield proxied


def under(*servers: Server) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("proxied", servers, indirect=True, ids=str)


@contextmanager
def announced(site: Site, length: int) -> Iterator[http.client.HTTPConnection]:
    """Send the head of a request with a document, as a user who is not anybody else here."""
    client = site.client("third")
    connection = http.client.HTTPConnection(urlsplit(site.base).netloc, timeout=TIMEOUT)
    connection.putrequest("POST", "/pdf/extract/")
    connection.putheader("Content-Type", "application/pdf")
    connection.putheader("Content-Length", str(length))
    connection.putheader("Cookie", "; ".join(f"{each.name}={each.value}" for each in client._jar))
    connection.putheader("X-CSRFToken", client.token)
    connection.endheaders()
    with closing(connection):
        yield connection


@under(GUNICORN, ASYNC_ASGI)
def test_a_browser_s_form_is_read(proxied: Site) -> None:
    # A browser names where its form comes from, and Django compares it with the host.
    sent = Sent(proxied.client(), script("by a browser"), Origin=proxied.base)
    answer = sent.answer()
    assert answer.status == 200, answer.text


@under(GUNICORN, ASYNC_ASGI)
def test_a_line_arrives_as_its_page_is_read(proxied: Site) -> None:
    sent = Sent(proxied.client(), script("slow", page_2="waits_for_a_signal"), NDJSON)
    assert sent.line()["type"] == "document"
    assert sent.line()["number"] == 1
    os.kill(proxied.await_page(), signal.SIGUSR1)
    assert sent.line()["number"] == 2
    assert sent.line()["type"] == "end"
    sent.go_away()


@under(ASYNC_ASGI)
def test_a_client_that_goes_ends_its_job(proxied: Site) -> None:
    sent = Sent(proxied.client("other"), script("left", page_1="waits_for_a_signal"))
    proxied.await_page()
    sent.go_away()
    await_truth(lambda: proxied.state()["running"] == 0, "the job goes on")
    assert_reads(proxied)


@under(GUNICORN)
def test_what_is_too_large_never_comes_to_the_site(proxied: Site) -> None:
    with announced(proxied, 51 * MIB + 1) as connection:
        response = connection.getresponse()
        assert response.status == 413
        assert response.headers["Server"].startswith("nginx")


@under(gunicorn("sync"))
def test_a_slow_upload_does_not_come_to_a_server_with_one_request_at_a_time(proxied: Site) -> None:
    document = script("slow upload")
    with announced(proxied, len(document)) as connection:
        connection.send(document[:10])
        assert_reads(proxied)
        connection.send(document[10:])
        assert connection.getresponse().status == 200
