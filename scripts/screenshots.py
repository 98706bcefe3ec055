"""Take the pictures of ``docs/pages.md``: ``python -m scripts.screenshots ADDRESS``.

The site has to run there, as by ``make run``; a user who is staff sees the
state of the pool, too. Needs Playwright, and Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from scripts.pdf_builder import encrypted_pdf, simple_pdf

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
WIDTHS = {"wide": 1000, "narrow": 380}
HEIGHT = 800


@contextmanager
def logged_in(browser: Browser, options: argparse.Namespace, **look: Any) -> Iterator[Page]:
    """Open the upload page of somebody who has logged in."""
    with browser.new_context(**look) as context:
        page = context.new_page()
        page.goto(options.address)
        page.fill("#id_username", options.user)
        page.fill("#id_password", options.password)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="Text from a PDF").wait_for()
        page.wait_for_load_state()  # the script has run
        yield page


def show_every_state(page: Page) -> None:
    """Have a file read, one asked for its password, and one refused."""
    invoice = (ROOT / "example_project" / "samples" / "invoice.pdf").read_bytes()
    locked = encrypted_pdf(simple_pdf("x"), user="x", owner="y", algorithm="AES-256")
    files = {"invoice.pdf": invoice, "locked.pdf": locked, "letter.docx": b"Dear Sir"}
    page.get_by_label("PDF file").set_input_files(
        [
            {"name": name, "mimeType": "application/pdf", "buffer": data}
            for name, data in files.items()
        ]
    )
    page.get_by_role("button", name="Read the text").click()
    page.get_by_text("The file is locked").wait_for()
    page.get_by_text("is not a PDF").wait_for()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--user", default="demo")
    parser.add_argument("--password", default="demo")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            for name, width in WIDTHS.items():
                size = {"width": width, "height": HEIGHT}
                look = {"color_scheme": scheme, "viewport": size}
                with logged_in(browser, options, **look) as page:
                    show_every_state(page)
                    page.screenshot(path=FOLDER / f"upload-{scheme}-{name}.png", full_page=True)
                    answer = page.goto(f"{options.address}/pdf/status/")
                    if answer is not None and answer.ok:
                        path = FOLDER / f"status-{scheme}-{name}.png"
                        page.screenshot(path=path, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
