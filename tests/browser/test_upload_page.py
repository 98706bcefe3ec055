"""The page for people, as a browser shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.pdf_builder import encrypted_pdf, simple_pdf
from tests.server.scenario import script
from tests.server.site import Site, await_truth

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.timeout(180)

AXE = Path(__file__).resolve().parent.parent.parent / "node_modules" / "axe-core" / "axe.min.js"

REAL = simple_pdf("The first page", "The second page", info={"Title": "Two"})
LOCKED = encrypted_pdf(REAL, user="pass wörd", owner="owner", algorithm="AES-256")
NARROW = {"width": 380, "height": 800}

Visit = Callable[..., Any]


def file(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "application/pdf", "buffer": data}


def choose(page: Page, *files: dict[str, Any]) -> None:
    page.get_by_label("PDF file").set_input_files(list(files))
    page.get_by_role("button", name="Read the text").click()


def drop(page: Page, name: str, data: bytes) -> None:
    """Drop a file on the form, as from the desktop."""
    transfer = page.evaluate_handle(
        """([name, bytes]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], name, {type: "application/pdf"}));
            return transfer;
        }""",
        [name, list(data)],
    )
    page.dispatch_event(".dropzone", "dragover", {"dataTransfer": transfer})
    page.dispatch_event(".dropzone", "drop", {"dataTransfer": transfer})


def item(page: Page, name: str) -> Locator:
    return page.get_by_role("article").filter(has=page.get_by_role("heading", name=name))


def says(page: Page, name: str) -> Locator:
    return item(page, name).get_by_role("status")


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as expected

    return expected(locator)


def test_a_chosen_file_gives_its_text(real_site: Site, visit: Visit) -> None:
    page = visit(real_site)
    choose(page, file("report.pdf", REAL))
    expect(says(page, "report.pdf")).to_contain_text("Done: 2 pages")
    expect(item(page, "report.pdf").locator("pre")).to_have_text(
        ["The first page", "The second page"]
    )


def test_a_dropped_file_gives_its_text(real_site: Site, visit: Visit) -> None:
    page = visit(real_site)
    drop(page, "dropped.pdf", REAL)
    expect(says(page, "dropped.pdf")).to_contain_text("Done: 2 pages")


def test_what_the_form_asks_besides_is_heeded(real_site: Site, visit: Visit) -> None:
    page = visit(real_site)
    page.get_by_label("Pages").fill("2")
    page.get_by_label("Password").fill("pass wörd")
    choose(page, file("part.pdf", LOCKED))
    expect(item(page, "part.pdf").locator("pre")).to_have_text(["The second page"])


def test_the_text_can_be_had_as_a_file(real_site: Site, visit: Visit) -> None:
    page = visit(real_site)
    choose(page, file("report.pdf", REAL))
    expect(says(page, "report.pdf")).to_contain_text("Done")
    with page.expect_download() as text:
        item(page, "report.pdf").get_by_role("link", name="Download as text").click()
    assert text.value.suggested_filename == "report.txt"
    content = Path(text.value.path()).read_text()
    assert [part.strip() for part in content.split("\f")] == ["The first page", "The second page"]
    with page.expect_download() as whole:
        item(page, "report.pdf").get_by_role("link", name="Download as JSON").click()
    assert whole.value.suggested_filename == "report.json"
    result = json.loads(Path(whole.value.path()).read_text())
    assert [each["number"] for each in result["pages"]] == [1, 2]
    assert result["complete"] is True


def test_the_text_can_be_copied(real_site: Site, visit: Visit) -> None:
    page = visit(real_site, permissions=["clipboard-read", "clipboard-write"])
    choose(page, file("report.pdf", REAL))
    item(page, "report.pdf").get_by_role("button", name="Copy").click()
    expect(item(page, "report.pdf").get_by_text("Copied")).to_be_visible()
    assert "The second page" in page.evaluate("() => navigator.clipboard.readText()")


def test_progress_moves_page_by_page_and_text_arrives_meanwhile(
    scripted_site: Site, visit: Visit
) -> None:
    page = visit(scripted_site)
    waits = {f"page_{number}": "waits_for_a_signal" for number in (1, 2)}
    choose(page, file("slow.pdf", script("slow", **waits)))
    progress = item(page, "slow.pdf").locator("progress")
    expect(says(page, "slow.pdf")).to_have_text("Being read: 0 of 2 pages.")
    expect(progress).to_have_attribute("value", "0")
    scripted_site.await_page()
    scripted_site.release()
    expect(says(page, "slow.pdf")).to_have_text("Being read: 1 of 2 pages.")
    expect(progress).to_have_attribute("value", "1")
    expect(item(page, "slow.pdf").locator("pre")).to_have_count(1)
    await_released(scripted_site, says(page, "slow.pdf"), "Done: 2 pages")


def await_released(site: Site, shown: Locator, words: str) -> None:
    """Release whatever waits until the page says the words: the next page may not wait yet."""

    def done() -> bool:
        site.release()
        return words in (shown.text_content() or "")

    await_truth(done, f"the page never said {words}")


def test_several_files_are_read_one_after_another(scripted_site: Site, visit: Visit) -> None:
    page = visit(scripted_site)
    slow = script("first", page_1="waits_for_a_signal")
    choose(page, file("first.pdf", slow), file("second.pdf", script("second")))
    expect(says(page, "first.pdf")).to_contain_text("Being read")
    expect(says(page, "second.pdf")).to_have_text("Waits for the files before it.")
    expect(page.locator("[data-pdfpool-state]")).to_contain_text("of 1 documents")
    await_released(scripted_site, says(page, "first.pdf"), "Done: 2 pages")
    expect(says(page, "second.pdf")).to_contain_text("Done: 2 pages")


def test_a_broken_file_says_what_to_do_and_keeps_no_other_from_being_read(
    real_site: Site, visit: Visit
) -> None:
    page = visit(real_site)
    choose(page, file("hello.pdf", b"hello"), file("report.pdf", REAL))
    expect(says(page, "hello.pdf")).to_contain_text("Send a PDF file.")
    expect(item(page, "hello.pdf").get_by_role("button", name="Try again")).to_be_visible()
    expect(says(page, "report.pdf")).to_contain_text("Done: 2 pages")


def test_a_locked_file_asks_for_its_password_until_it_is_right(
    real_site: Site, visit: Visit
) -> None:
    page = visit(real_site)
    choose(page, file("locked.pdf", LOCKED))
    locked = item(page, "locked.pdf")
    expect(says(page, "locked.pdf")).to_contain_text("The file is locked")
    for password, words in (("wrong", "does not open the file"), ("pass wörd", "Done: 2 pages")):
        locked.get_by_label("Password").fill(password)
        locked.get_by_role("button", name="Open").click()
        expect(says(page, "locked.pdf")).to_contain_text(words)
    expect(locked.get_by_label("Password")).to_be_hidden()


def test_a_lost_page_is_shown_as_such(scripted_site: Site, visit: Visit) -> None:
    page = visit(scripted_site)
    choose(page, file("half.pdf", script("half", page_1="segfaults")))
    expect(says(page, "half.pdf")).to_contain_text("Done, with gaps")
    expect(item(page, "half.pdf").locator(".problem")).to_contain_text("SIGSEGV")


def test_where_the_pool_is_busy_it_is_tried_again(scripted_site: Site, visit: Visit) -> None:
    page = visit(scripted_site)
    others = [scripted_site.client(name) for name in ("other", "third")]
    with ThreadPoolExecutor(2) as executor:
        calls = [
            executor.submit(other.extract, script(f"of {index}", page_1="waits_for_a_signal"))
            for index, other in enumerate(others)
        ]
        await_truth(lambda: scripted_site.state()["queued"] == 1, "nobody waits")
        choose(page, file("late.pdf", script("late")))
        expect(says(page, "late.pdf")).to_contain_text("Busy; trying again in")
        await_released(scripted_site, says(page, "late.pdf"), "Done: 2 pages")
        assert [call.result().status for call in calls] == [200, 200]


def test_what_is_cancelled_can_be_tried_again(scripted_site: Site, visit: Visit) -> None:
    page = visit(scripted_site)
    choose(page, file("long.pdf", script("long", page_1="waits_for_a_signal")))
    expect(says(page, "long.pdf")).to_contain_text("Being read")
    item(page, "long.pdf").get_by_role("button", name="Cancel").click()
    expect(says(page, "long.pdf")).to_have_text("Cancelled.")
    item(page, "long.pdf").get_by_role("button", name="Try again").click()
    await_released(scripted_site, says(page, "long.pdf"), "Done: 2 pages")


def test_who_has_been_logged_out_is_told_where_to_log_in(real_site: Site, visit: Visit) -> None:
    page = visit(real_site)
    page.context.clear_cookies(name="sessionid")
    choose(page, file("report.pdf", REAL))
    expect(says(page, "report.pdf")).to_contain_text("Log in first")
    link = item(page, "report.pdf").get_by_role("link", name="Log in")
    expect(link).to_have_attribute("href", "/accounts/login/")


def test_a_site_that_is_gone_is_told(scripted_site: Site, visit: Visit) -> None:
    page = visit(scripted_site)
    scripted_site.process.terminate()
    scripted_site.process.wait()
    choose(page, file("report.pdf", script("late")))
    expect(says(page, "report.pdf")).to_contain_text("The site does not answer")


def test_without_javascript_the_form_answers_with_a_page_of_text(
    real_site: Site, visit: Visit
) -> None:
    page = visit(real_site, java_script_enabled=False)
    choose(page, file("report.pdf", REAL))
    expect(page.locator("pre")).to_have_text(["The first page", "The second page"])
    expect(page.locator("#result")).to_have_text("Two")
    choose(page, file("Größe & mehr.pdf", b"Dear Sir"))
    expect(page.get_by_role("alert")).to_contain_text("The file is not a PDF")
    choose(page, file("report.pdf", REAL))
    expect(page.locator("pre")).to_have_count(2)


def test_without_javascript_the_form_takes_options(real_site: Site, visit: Visit) -> None:
    page = visit(real_site, java_script_enabled=False)
    choose(page, file("locked.pdf", LOCKED))
    expect(page.get_by_role("alert")).to_contain_text("The file is locked")
    page.get_by_label("Password").fill("pass wörd")
    page.get_by_label("Pages").fill("2")
    choose(page, file("locked.pdf", LOCKED))
    expect(page.locator("pre")).to_have_text(["The second page"])
    expect(page.get_by_label("Password")).to_have_value("")


def test_everything_can_be_reached_by_keyboard(real_site: Site, visit: Visit) -> None:
    page = visit(real_site)
    choose(page, file("report.pdf", REAL))
    expect(says(page, "report.pdf")).to_contain_text("Done")
    page.get_by_label("PDF file").focus()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.textContent.trim()"))
    for name in ("Read the text", "Copy", "Download as text", "Download as JSON"):
        assert name in reached
    assert any("The first page" in text for text in reached)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_no_violation_of_accessibility_is_found(
    real_site: Site, visit: Visit, scheme: str, width: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not here: npm install --no-save axe-core")
    options = {"viewport": NARROW} if width == "narrow" else {}
    # The checker itself is a script that the site's policy would refuse.
    page = visit(real_site, color_scheme=scheme, bypass_csp=True, **options)
    choose(page, *(file(f"{name}.pdf", data) for name, data in SHOWN.items()))
    expect(says(page, "last.pdf")).to_contain_text("Done: 2 pages")
    assert violations(page) == []
    page.goto(f"{real_site.base}/pdf/status/")
    assert violations(page) == []


SHOWN = {"locked": LOCKED, "broken": b"hello", "last": REAL}


def violations(page: Page) -> list[str]:
    page.add_script_tag(path=AXE)
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {each['help']} {each['nodes'][0]['html']}" for each in found]


@pytest.mark.parametrize("width", [1200, 380])
def test_nothing_is_wider_than_the_window(real_site: Site, visit: Visit, width: int) -> None:
    page = visit(real_site, viewport={"width": width, "height": 800})
    wide = simple_pdf("x" * 3000)
    choose(page, file("a" * 150 + ".pdf", wide))
    expect(says(page, "aaa")).to_contain_text("Done")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
