"""What the lines say, and when they are sent at all."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from django.test import modify_settings

from tests.site.helpers import await_children, release, script
from tests.streaming.ways import NDJSON, Way

EACH = "waits_for_each_signal"


def put_together(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON answer that the lines amount to."""
    document, *pages, end = lines
    assert [each.pop("type") for each in lines] == ["document", *["page"] * len(pages), "end"]
    assert document.pop("selected") == len(pages)
    assert document.items() <= end.items()
    return {**end, "pages": pages}


def test_the_lines_are_the_json_answer_in_pieces(way: Way) -> None:
    data = script("whole", 4, {3: "segfaults"})
    whole = way.ask(data, accept=None).json()
    assert [page["error"] is None for page in whole["pages"]] == [True, True, False, True]
    joined = put_together(way.read(data).lines())
    assert joined.pop("elapsed") > 0
    del whole["elapsed"]
    assert joined == whole


def test_only_the_pages_asked_for_have_lines(way: Way) -> None:
    document, *pages, end = way.read(script("some", 5), query="pages=2,4").lines()
    assert [page["number"] for page in pages] == [2, 4]
    assert (document["page_count"], document["selected"], end["page_count"]) == (5, 2, 5)


def test_each_event_is_sent_as_it_happens(way: Way) -> None:
    reader = way.read(script("by and by", 3, {2: EACH, 3: EACH}))
    assert reader.line()["type"] == "document"
    assert reader.line()["text"] == "text of page 1"
    (child,) = await_children()
    for number in (2, 3):
        release(child)
        assert reader.line()["text"] == f"text of page {number}, after the signal"
    assert reader.line()["type"] == "end"
    assert reader.chunk() is None


def test_the_response_says_what_it_is_and_that_nobody_should_keep_or_collect_it(way: Way) -> None:
    reader = way.read(script("headers"))
    assert reader.response["Content-Type"] == NDJSON
    assert reader.response["Cache-Control"] == "no-store"
    assert reader.response["X-Accel-Buffering"] == "no"
    assert "Accept" in reader.response["Vary"].split(", ")
    assert not reader.response.has_header("Content-Length")
    reader.close()


def test_text_outside_ascii_is_sent_as_it_is_and_a_line_break_ends_no_line(way: Way) -> None:
    title = "Größe 漢字 \u2028\u0085\r\n 𝄞\t“”"
    data = json.dumps({"header": "%PDF-", "pages": 1, "metadata": {"title": title}}).encode()
    body = way.read(data).body()
    assert body.count("Größe 漢字".encode()) == 2
    document, _, end = (json.loads(line) for line in body.removesuffix(b"\n").split(b"\n"))
    assert document["metadata"] == end["metadata"] == way.ask(data, accept=None).json()["metadata"]
    assert document["metadata"]["title"].startswith("Größe 漢字 ")


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("application/json, application/x-ndjson", "application/json"),
        ("application/x-ndjson, application/json", NDJSON),
        ("application/x-ndjson;q=0.5, application/json;q=0.9", "application/json"),
        ("application/x-ndjson;q=0", "application/json"),
        ("text/plain, application/x-ndjson;q=0.9", "text/plain; charset=utf-8"),
        (NDJSON, NDJSON),
        ("application/x-ndjson, */*;q=0.1", NDJSON),
        ("application/x-ndjson;q=0.9, application/json;q=0.5", NDJSON),
        ("application/x-ndjson;q=0.2, image/png", NDJSON),
        ("Application/X-NDJSON", NDJSON),
    ],
)
def test_lines_are_sent_to_who_likes_them_best(way: Way, accept: str | None, given: str) -> None:
    response = way.ask(script("liked"), accept=accept)
    assert response["Content-Type"] == given
    assert response.streaming == (given == NDJSON)
    response.close()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_another_method_is_refused_and_reads_nothing(way: Way, method: str) -> None:
    response = way.ask(script("another method"), method=method)
    assert response.status_code == 405
    assert response["Cache-Control"] == "no-store"
    assert not response.streaming


@pytest.mark.parametrize("middleware", ["gzip.GZipMiddleware", "http.ConditionalGetMiddleware"])
def test_middlewares_that_change_responses_take_this_one(way: Way, middleware: str) -> None:
    with modify_settings(MIDDLEWARE={"prepend": f"django.middleware.{middleware}"}):
        reader = way.read(script("through", 3), Accept_Encoding="gzip")
        compressed = reader.response.get("Content-Encoding") == "gzip"
        assert compressed == middleware.startswith("gzip")
        assert not reader.response.has_header("ETag")
        body = reader.body()
    if compressed:
        body = gzip.decompress(body)  # perhaps of several members, as Django 5.2 makes them
    assert len(put_together([json.loads(line) for line in body.splitlines()])["pages"]) == 3


def test_a_reader_behind_a_middleware_that_compresses_leaves_too(way: Way) -> None:
    with modify_settings(MIDDLEWARE={"prepend": "django.middleware.gzip.GZipMiddleware"}):
        reader = way.read(script("compressed", 2, {2: "hangs"}), Accept_Encoding="gzip")
        assert reader.chunk()
        reader.close()


def test_a_form_gets_lines_as_well(way: Way) -> None:
    head = b'Content-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
    body = b"--boundary\r\n" + head + script("a form", 2) + b"\r\n--boundary--\r\n"
    reader = way.read(body, content_type="multipart/form-data; boundary=boundary")
    assert [line["type"] for line in reader.lines()] == ["document", "page", "page", "end"]
