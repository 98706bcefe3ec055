"""The programs that people have, against a served site: ``curl`` and ``requests``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from tests.server.scenario import script, waiting
from tests.server.site import Site, await_truth, serve

LIMIT = 60
KEY_OF_A = {"Authorization": "Bearer key-of-a"}
KEY_OF_B = {"X-API-Key": "key-of-b"}
READ = ["text of page 1", "text of page 2"]
MIB = 1024 * 1024

Background = Callable[..., Future[Any]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, database: Path) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with serve(folder, "tests.server.program_settings", database=database) as served:
        yield served


def padded(document: bytes, size: int) -> bytes:
    """Return a script of this size."""
    return document + b" " * (size - len(document))


# curl


CURL = shutil.which("curl")
needs_curl = pytest.mark.skipif(CURL is None, reason="there is no curl on this machine")
HTTP_ERROR = 22
"""curl's exit status where the server refuses and --fail-with-body is given."""
CUT_OFF = (55, 56)
"""Its exit statuses where the connection ends while it sends, or before it has an answer."""


@dataclass(frozen=True)
class Said:
    """What curl has printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def texts(self) -> list[str]:
        assert self.code == 0, self
        return [page["text"] for page in self.json["pages"]]


def curl(site: Site, *options: str, given: bytes = b"", path: str = "/pdf/extract/") -> Said:
    command = [str(CURL), "--silent", "--show-error", "--fail-with-body", "--max-time", str(LIMIT)]
    done = subprocess.run(
        [*command, *options, site.base + path], input=given, capture_output=True, timeout=LIMIT
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def with_headers(headers: dict[str, str]) -> list[str]:
    return [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]


AS_PDF = ["-H", "Content-Type: application/pdf"]
CURLS = {
    "a form": ["-F", "file=@a.pdf"],
    "a form from standard input": ["-F", "file=@-;filename=a.pdf"],
    "a body": ["--data-binary", "@a.pdf", *AS_PDF],
    # Of a file, curl would put the name behind the address.
    "in chunks, as they come": ["-X", "POST", "-T", "-", *AS_PDF],
    "in chunks, from a file": [
        *("--data-binary", "@a.pdf", *AS_PDF),
        *("-H", "Transfer-Encoding: chunked"),
    ],
}


def options_name(options: list[str]) -> str:
    return next(name for name, each in CURLS.items() if each == options)


every_curl = pytest.mark.parametrize("options", CURLS.values(), ids=CURLS)


@dataclass
class Sender:
    """Runs curl with a document, which is in a file and on standard input."""

    site: Site
    folder: Path

    def __call__(self, document: bytes, options: list[str], headers: dict[str, str]) -> Said:
        path = self.folder / "a.pdf"
        path.write_bytes(document)
        named = [each.replace("@a.pdf", f"@{path}") for each in options]
        return curl(self.site, *with_headers(headers), *named, given=document)


@pytest.fixture
def sender(site: Site, tmp_path: Path) -> Sender:
    return Sender(site, tmp_path)


@needs_curl
@every_curl
@pytest.mark.parametrize("headers", [KEY_OF_A, KEY_OF_B], ids=["Authorization", "X-API-Key"])
def test_curl_sends_a_document_with_its_key(
    sender: Sender, options: list[str], headers: dict[str, str]
) -> None:
    assert sender(script("by curl"), options, headers).texts == READ


@needs_curl
@every_curl
def test_curl_sends_a_large_document(sender: Sender, options: list[str]) -> None:
    document = padded(script("large, by curl"), int(1.5 * MIB))  # so curl asks before it sends
    assert sender(document, options, KEY_OF_A).texts == READ


@needs_curl
@every_curl
@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "a guess"}], ids=["no key", "a wrong key"])
def test_without_a_key_curl_fails_and_shows_why(
    sender: Sender, options: list[str], headers: dict[str, str]
) -> None:
    said = sender(script("of nobody"), options, headers)
    assert said.code == HTTP_ERROR, said
    assert said.json["code"] == "not_authenticated"
    assert "401" in said.err


@needs_curl
@every_curl
def test_beyond_the_limit_curl_fails_and_shows_why(sender: Sender, options: list[str]) -> None:
    said = sender(padded(script("too large"), 2 * MIB + 1), options, KEY_OF_A)
    assert said.code == HTTP_ERROR, said
    assert said.json["code"] == "file_too_large"


@needs_curl
@pytest.mark.parametrize("headers", [{}, KEY_OF_A], ids=["of nobody", "of somebody"])
@every_curl
def test_far_beyond_the_limit_curl_is_stopped(
    sender: Sender, options: list[str], headers: dict[str, str]
) -> None:
    said = sender(padded(script("far too large"), 20 * MIB), options, headers)
    if said.code in CUT_OFF and "in chunks" in options_name(options):
        return  # it was still sending, so that it did not look for an answer
    assert said.code == HTTP_ERROR, said
    assert said.json["code"] == ("file_too_large" if headers else "not_authenticated")


@needs_curl
def test_a_form_in_chunks_is_refused_with_the_reason(sender: Sender) -> None:
    options = [*CURLS["a form"], "-H", "Transfer-Encoding: chunked"]
    said = sender(script("a form in chunks"), options, KEY_OF_A)
    assert said.code == HTTP_ERROR, said
    assert "cannot be sent in chunks" in said.json["detail"]


@needs_curl
def test_curl_sends_options(sender: Sender) -> None:
    said = sender(script("options"), [*CURLS["a form"], "-F", "pages=2"], KEY_OF_A)
    assert said.texts == READ[1:]
    plain = [*CURLS["a body"], "-H", "Accept: text/plain"]
    assert sender(script("options"), plain, KEY_OF_A).out == "\f".join(READ)


@needs_curl
def test_curl_is_told_what_is_no_document(sender: Sender) -> None:
    said = sender(b"Dear Sir or Madam,", CURLS["a body"], KEY_OF_A)
    assert (said.code, said.json["code"]) == (HTTP_ERROR, "not_a_pdf")


@needs_curl
def test_curl_tries_again_when_it_is_told_to(
    site: Site, sender: Sender, background: Background
) -> None:
    with a_busy_pool(site, background) as busy:
        again = ["--retry", "10", *CURLS["a body"]]
        call = background(sender, script("later"), again, KEY_OF_B)
        busy.release_upon_a_refusal()
        assert READ[0] in call.result(LIMIT).out


# requests


class BusyPool:
    """A document of the first program holds the one slot."""

    def __init__(self, site: Site, background: Background) -> None:
        self._site = site
        self._refused = self._count()
        headers = {**KEY_OF_A, "Content-Type": "application/pdf"}
        self._call = background(
            requests.post, site.base + "/pdf/extract/", waiting("first"), headers=headers
        )

    def __enter__(self) -> BusyPool:
        self._child: int | None = self._site.await_page()
        return self

    @property
    def refusals(self) -> int:
        return self._count() - self._refused

    def _count(self) -> int:
        return sum(self._site.state()["refusals"].values())

    def release_upon_a_refusal(self) -> None:
        await_truth(lambda: self.refusals, "nobody has been refused")
        self.release()

    def release(self) -> None:
        """Let the document go on; others must not get the signal that they might wait for."""
        child, self._child = self._child, None
        if child is not None:
            os.kill(child, signal.SIGUSR1)
        assert self._call.result(LIMIT).json()["complete"]

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def a_busy_pool(site: Site, background: Background) -> BusyPool:
    return BusyPool(site, background)


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """A session as the documentation of urllib3 has it, which waits only where it is told to."""
    retry = Retry(
        total=10,
        status_forcelist=[429, 503],
        allowed_methods=None,  # so that a POST is sent again, too
        respect_retry_after_header=True,
        backoff_factor=0,
    )
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=retry))
        yield session


def as_form(document: bytes) -> dict[str, Any]:
    return {"files": {"file": ("a.pdf", document, "application/pdf")}}


def as_body(document: bytes) -> dict[str, Any]:
    return {"data": document, "headers": {"Content-Type": "application/pdf"}}


def post(
    session: requests.Session, site: Site, key: dict[str, str], **options: Any
) -> requests.Response:
    headers = {**key, **options.pop("headers", {})}
    return session.post(site.base + "/pdf/extract/", headers=headers, timeout=LIMIT, **options)


@pytest.mark.parametrize("send", [as_form, as_body], ids=["form", "body"])
@pytest.mark.parametrize(
    ("key", "status"), [(KEY_OF_B, 503), (KEY_OF_A, 429)], ids=["busy", "caller_busy"]
)
def test_requests_comes_back_when_it_is_told_to(
    site: Site,
    session: requests.Session,
    background: Background,
    send: Callable[[bytes], dict[str, Any]],
    key: dict[str, str],
    status: int,
) -> None:
    with a_busy_pool(site, background) as busy:
        since = time.monotonic()
        call = background(post, session, site, key, **send(script(f"second of {status}")))
        busy.release_upon_a_refusal()
        response = call.result(LIMIT)
        took = time.monotonic() - since
        refusals = busy.refusals
    assert response.status_code == 200, response.text
    assert [page["text"] for page in response.json()["pages"]] == READ
    history = response.raw.retries.history
    assert {each.status for each in history} == {status}
    assert len(history) == refusals
    assert took >= len(history), "it did not wait for the second that it was told to"


def test_requests_without_retries_shows_when_to_come_back(
    site: Site, background: Background
) -> None:
    with a_busy_pool(site, background) as busy, requests.Session() as plain:
        response = post(plain, site, KEY_OF_B, **as_form(script("refused")))
        busy.release_upon_a_refusal()
    assert response.status_code == 503
    assert response.json()["retry_after"] == int(response.headers["Retry-After"]) >= 1


def test_requests_does_not_come_back_where_that_is_vain(
    site: Site, session: requests.Session
) -> None:
    response = post(session, site, KEY_OF_A, **as_form(b"Dear Sir"))
    assert response.status_code == 415
    assert not response.raw.retries.history


def test_requests_may_stream_a_document(site: Site, session: requests.Session) -> None:
    document = script("streamed")
    pieces = (document[start : start + 10] for start in range(0, len(document), 10))
    headers = {"Content-Type": "application/pdf"}
    response = post(session, site, KEY_OF_A, data=pieces, headers=headers)
    assert [page["text"] for page in response.json()["pages"]] == READ


def test_one_connection_serves_after_a_refusal(site: Site, session: requests.Session) -> None:
    """What is not read of a refused body is not taken for the next request."""
    for size in (100, 100_000, 3 * MIB):
        refused = post(session, site, {}, **as_body(padded(script("refused"), size)))
        assert refused.status_code == 401, refused.text
        answer = post(session, site, KEY_OF_A, **as_body(script("next")))
        assert answer.status_code == 200, answer.text
