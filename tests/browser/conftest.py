"""A browser, and the pages that it looks at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.server.site import Site, make_database, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 20_000
"""Milliseconds after which a page that does not come to be as expected fails a test."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for a module: while it is driven, its thread has an event loop that runs."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: install the package chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=LIMIT)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def real_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The example site, reading PDFs."""
    folder = tmp_path_factory.mktemp("real")
    database = make_database(folder / "made.sqlite3", "example_project.settings")
    with serve(folder, "example_project.settings", database=database) as site:
        yield site


@pytest.fixture
def scripted_site(tmp_path: Path, database: Path) -> Iterator[Site]:
    """The example site with one slot, reading scripts."""
    with serve(tmp_path, "tests.server.settings", database=database) as site:
        yield site


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_database(tmp_path_factory.mktemp("database") / "db", "tests.server.settings")


class Visit:
    """A user who has logged in, and the upload page before them."""

    def __init__(self, context: BrowserContext, site: Site) -> None:
        self.context = context
        self.site = site
        self.errors: list[str] = []
        self.page = context.new_page()
        self.page.set_default_timeout(LIMIT)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        # What an answer's status makes the browser say is no fault of the page's.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def log_in(self, name: str = "demo") -> Page:
        self.page.goto(f"{self.site.base}/")
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", name)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Text from a PDF").wait_for()
        self.page.wait_for_load_state()  # the script has run
        return self.page


@pytest.fixture
def visit(browser: Browser) -> Iterator[Any]:
    """Open a page of a site for a user; at the end, nothing may have been an error on it."""
    visits: list[Visit] = []

    def begin(site: Site, **options: Any) -> Page:
        name = options.pop("user", "demo")
        visits.append(Visit(browser.new_context(**options), site))
        return visits[-1].log_in(name)

    yield begin
    for each in visits:
        each.context.close()
        assert each.errors == []
