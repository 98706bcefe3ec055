"""Requests to a site whose pool is busy, and documents that cannot be read to their end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from pdfpool_django import runtime
from pdfpool_django.extraction import stream
from tests.sandbox.helpers import Call, eventually
from tests.site.helpers import (
    SAMPLE,
    SCRIPTED,
    await_children,
    hanging,
    release,
    script,
    waiting,
)
from tests.site.web import assert_problem, post_form, post_raw, seen, texts, url

OPTIONS = {**SCRIPTED, "CALLER": "tests.site.callers.by_token", "CALLER_REQUESTS": 2}


@pytest.fixture(scope="module", autouse=True)
def site() -> Iterator[None]:
    """A site whose callers come with a token, so that threads need no database."""
    with override_settings(PDFPOOL=OPTIONS):
        yield


def post(data: bytes, caller: str, form: bool = False, **headers: str) -> Any:
    send = post_form if form else post_raw
    return send(Client(), data, headers={"Authorization": f"Bearer {caller}", **headers})


def holding(*callers: str) -> Iterator[Any]:
    streams = [stream(hanging(f"of {caller}"), caller=caller) for caller in callers]
    await_children(len(callers))
    yield
    for each in streams:
        each.close()


@pytest.fixture
def one_busy() -> Iterator[None]:
    """The caller a has a document that is being read."""
    yield from holding("a")


@pytest.fixture
def all_busy() -> Iterator[None]:
    """Every slot is taken, and the queue is full."""
    holder = holding("a", "b")
    next(holder)
    with stream(script("queued"), caller="c"):
        yield
    next(holder, None)


# Refusals


@pytest.mark.usefixtures("all_busy")
@pytest.mark.parametrize("form", [True, False])
def test_beyond_slots_and_queue_a_request_is_told_when_to_come_back(form: bool) -> None:
    response = post(script("one more"), "d", form)
    details = assert_problem(response, 503, "busy", "try again")
    assert response["Retry-After"] == str(details["retry_after"])
    assert details["retry_after"] >= 1


@pytest.mark.usefixtures("one_busy")
@pytest.mark.parametrize("form", [True, False])
def test_a_second_document_of_a_caller_is_told_when_to_come_back(form: bool) -> None:
    response = post(script("second"), "a", form)
    details = assert_problem(response, 429, "caller_busy", "wait for it to end")
    assert response["Retry-After"] == str(details["retry_after"])
    assert texts(post(script("second"), "b", form)) == ["text of page 1"]


def test_after_shutting_down_a_request_is_told_when_to_come_back() -> None:
    runtime.close()
    response = post(script("late"), "a")
    assert_problem(response, 503, "unavailable")
    health = seen(Client().get(url("health")))
    assert health.status_code == 503
    assert health.json()["reason"] == "shutting down"


def test_identical_requests_share_a_job_up_to_a_callers_number_of_them() -> None:
    document = waiting("shared")
    before = runtime.state().details
    calls = [Call(post, document, "a") for _ in range(2)]
    pids = await_children()
    eventually(lambda: runtime.state().details["joined"] > before["joined"], "the second request")
    assert_problem(post(document, "a"), 429, "caller_busy", "You have 2 requests open already")
    calls.append(Call(post, document, "b"))
    eventually(lambda: runtime.state().details["joined"] == before["joined"] + 2, "the third")
    release(*pids)
    assert [texts(call.result()) for call in calls] == [["text of page 1, after the signal"]] * 3
    assert runtime.state().details["children_used"] == before["children_used"] + 1


# Documents that are not read to their end


def test_a_page_that_crashes_leaves_an_incomplete_result() -> None:
    response = post(script("crash", 5, {3: "segfaults"}), "a")
    assert response.status_code == 200
    body = response.json()
    assert body["complete"] is False
    assert body["error"] is None
    assert [page["number"] for page in body["pages"]] == [1, 2, 3, 4, 5]
    found = [page["error"] and page["error"]["code"] for page in body["pages"]]
    assert found == [None, None, "crashed", None, None]
    assert "SIGSEGV" in body["pages"][2]["error"]["detail"]


def test_an_incomplete_text_says_so_in_its_header() -> None:
    response = post(script("crash", 5, {3: "segfaults"}), "a", Accept="text/plain")
    assert response.status_code == 200
    assert response["Pdfpool-Complete"] == "false"
    kept = ["text of page 1", "text of page 2", "", "text of page 4", "text of page 5"]
    assert response.content.decode().split("\f") == kept


def test_what_stopped_the_reading_is_in_the_result() -> None:
    at = {2: "segfaults", 3: "segfaults", 4: "segfaults"}
    body = post(script("crashes", 6, at), "a").json()
    assert body["complete"] is False
    assert body["error"]["code"] == "crashed"
    assert [page["error"] and page["error"]["code"] for page in body["pages"][4:]] == [
        "not_attempted",
        "not_attempted",
    ]


@pytest.mark.parametrize(
    ("act", "code"),
    [
        ("segfaults", "crashed"),
        ("eats_memory", "memory_exceeded"),
        ("raises_value_error", "invalid_pdf"),
    ],
)
def test_a_document_of_which_nothing_can_be_read_is_an_error(act: str, code: str) -> None:
    assert_problem(post(script("bad", 1, {1: act}), "a"), 422, code)
    assert texts(post(script("good"), "a")) == ["text of page 1"]


def test_a_document_that_takes_too_long_is_an_error() -> None:
    with override_settings(PDFPOOL={**OPTIONS, "DEADLINE": 0.5}):
        response = post(hanging("slow"), "a")
    assert_problem(response, 422, "deadline_exceeded", "longer than the 0.5 seconds allowed")


def test_a_document_with_too_many_pages_is_an_error() -> None:
    with override_settings(PDFPOOL={**OPTIONS, "ENGINE": "pypdf", "MAX_PAGES": 2}):
        response = post(SAMPLE, "a")
    assert_problem(response, 422, "too_many_pages", "3 pages, more than the 2 allowed")


# Health and state


@pytest.mark.usefixtures("all_busy")
def test_a_busy_site_is_healthy() -> None:
    response = seen(Client().get(url("health")))
    assert response.status_code == 200
    busy = {"running": 2, "slots": 2, "queued": 1, "queue": 1}
    assert response.json() == {"available": True, "reason": None, **busy}


@pytest.mark.usefixtures("all_busy")
def test_staff_see_the_state_of_the_pool(admin_client: Client) -> None:
    body = seen(admin_client.get(url("status"))).json()
    shown = {name: body[name] for name in ("available", "slots", "queue", "running", "queued")}
    assert shown == {"available": True, "slots": 2, "queue": 1, "running": 2, "queued": 1}
    assert sorted(job["caller"] for job in body["jobs"]) == ["a", "b"]
    assert all(job["pages"] == 0 and job["age"] >= 0 for job in body["jobs"])
    assert {"children_used", "children_ended"} <= set(body["details"])


@pytest.mark.usefixtures("one_busy")
def test_staff_see_what_was_refused_and_how_children_ended(admin_client: Client) -> None:
    before = admin_client.get(url("status")).json()
    post(script("second"), "a")
    post(script("segfaults", 1, {1: "segfaults"}), "b")
    body = seen(admin_client.get(url("status"))).json()
    assert body["refusals"]["caller_busy"] == before["refusals"].get("caller_busy", 0) + 1
    assert body["details"]["endings"]["SIGSEGV"] >= 1


@pytest.mark.usefixtures("one_busy")
def test_a_browser_is_shown_the_state_as_a_page(admin_client: Client) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    html = seen(admin_client.get(url("status"), headers=browser)).content.decode()
    assert "<td>a</td>" in html
    assert "1 / 2" in html
    response = seen(Client().get(url("status"), headers=browser))
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/")


def test_others_do_not_see_the_state_of_the_pool(member: Client) -> None:
    response = seen(member.get(url("status")))
    assert_problem(response, 403, "forbidden", "Only staff")
    response = seen(Client().get(url("status")))
    assert_problem(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"]
