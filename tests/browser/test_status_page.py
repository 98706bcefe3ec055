"""The page that shows staff the pool."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.browser.test_upload_page import expect
from tests.server.scenario import script
from tests.server.site import Site

pytestmark = pytest.mark.timeout(180)


def test_the_state_is_shown_and_shown_anew_by_itself(
    scripted_site: Site, visit: Callable[..., Any]
) -> None:
    page = visit(scripted_site)
    page.goto(f"{scripted_site.base}/pdf/status/")
    expect(page.get_by_text("0 / 1").first).to_be_visible()
    other = scripted_site.client("other")
    with ThreadPoolExecutor(1) as executor:
        call = executor.submit(other.extract, script("long", page_2="waits_for_a_signal"))
        expect(page.get_by_role("cell", name="1 / 2")).to_be_visible()
        expect(page.get_by_role("cell", name="user:2")).to_be_visible()
        scripted_site.await_page()
        scripted_site.release()
        assert call.result().status == 200
    expect(page.get_by_role("cell", name="user:2")).to_have_count(0)
    expect(page.get_by_role("cell", name="done")).to_be_visible()
