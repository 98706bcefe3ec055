"""Both kinds of views, and a check that nothing is open after a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections

from pdfpool_django import callers, runtime
from tests.sandbox.helpers import eventually
from tests.site.helpers import LIMIT, scripted
from tests.streaming.ways import AsyncWay, Way

OPTIONS = {"CALLER": "tests.site.callers.by_token", "CALLER_REQUESTS": 60, "WAIT": LIMIT}


@pytest.fixture(scope="module", autouse=True)
def site() -> Iterator[None]:
    """A site whose documents are scripts, and whose callers come with a token."""
    with scripted(**OPTIONS):
        yield


@pytest.fixture(params=[Way(), AsyncWay()], ids=str)
def way(
    request: pytest.FixtureRequest, site: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Way]:
    """Both kinds of views."""
    # A connection that another test has made in this thread is not a request's to look after.
    monkeypatch.setattr(connections, "all", lambda initialized_only=False: [])
    asked: Way = request.param
    with asked.at_hand():
        yield asked


def assert_nothing_is_open() -> None:
    """No request is open, no ticket is held, and no job runs or waits."""

    def closed() -> bool:
        state = runtime.state()
        return not (
            state.running
            + state.queued
            + state.details["tickets"]
            + len(callers.open_requests()._open)
        )

    try:
        eventually(closed, "nothing open")
    except BaseException:
        # So that the tests after this one do not fail as well.
        runtime.reset()
        callers._open_requests.clear()
        raise


@pytest.fixture(autouse=True)
def nothing_open(site: None) -> Iterator[None]:
    yield
    assert_nothing_is_open()
    if not runtime.state().available:
        runtime.reset()
