"""What an engine warns of comes back with the call that caused it, and with no other."""

from __future__ import annotations

import logging

import pytest

from pdfpool_django.model import WarningDict
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.engine import DURING_A_CALL
from tests.handle.helpers import SOURCE, child_at, go_on, opened
from tests.sandbox.helpers import Call, scripted

LOGGER = "pdfpool_django.documents"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOGGER)
    return caplog


def said(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.name == LOGGER]


def warning(detail: str, page: int) -> WarningDict:
    return {"code": "engine", "detail": detail, "page": page}


def test_a_warning_is_on_the_page_and_in_the_log(
    sandbox: Sandbox, log: pytest.LogCaptureFixture
) -> None:
    with opened(sandbox, scripted(3, {2: "warns"})) as document:
        assert document.page(1).read().warnings == ()
        assert document.page(2).read().warnings == (warning("careful on page 2", 2),)
        assert document.page(3).read().warnings == ()
        assert said(log) == [f"{SOURCE}, page 2: careful on page 2"]
        assert document.page(2).read().warnings == (warning("careful on page 2", 2),)
        assert document.page(2).text() == "text of page 2"
    assert len(said(log)) == 3


def test_two_pages_that_warn_at_once_keep_their_own(
    sandbox: Sandbox, log: pytest.LogCaptureFixture
) -> None:
    acts = {1: "warns_and_waits", 2: "warns_and_waits", 3: "warns"}
    with opened(sandbox, scripted(3, acts), workers=3) as document:
        reads = {number: Call(document.page(number).read) for number in (1, 2)}
        child_at(sandbox, 1), child_at(sandbox, 2)  # both have warned, and will once more
        assert document.page(3).read().warnings == (warning("careful on page 3", 3),)
        go_on(sandbox, 2, 1)
        for number, read in reads.items():
            assert read.result().warnings == (
                warning(f"careful before {number}", number),
                warning(f"careful after {number}", number),
            )
        assert sorted(said(log)) == sorted(
            [f"{SOURCE}, page 3: careful on page 3"]
            + [
                f"{SOURCE}, page {number}: careful {when} {number}"
                for number in (1, 2)
                for when in ("before", "after")
            ]
        )


def test_warnings_of_a_page_that_fails_are_kept(
    sandbox: Sandbox, log: pytest.LogCaptureFixture
) -> None:
    error = {"code": "invalid_pdf", "template": "It is bad.", "params": {}, "retry_after": None}
    with opened(sandbox, scripted(1, {1: "warns"}, say={1: {"error": error}})) as document:
        page = document.page(1).read(errors="keep")
        assert page.error == {"code": "invalid_pdf", "detail": "It is bad."}
        assert page.warnings == (warning("careful on page 1", 1),)
    assert said(log) == [f"{SOURCE}, page 1: careful on page 1"]


@pytest.mark.parametrize("name", ["images", "fonts", "page_info"])
def test_calls_about_a_page_are_logged_with_it(
    sandbox: Sandbox, log: pytest.LogCaptureFixture, name: str
) -> None:
    frames = {name: [{"warnings": [{"code": "engine", "detail": "careful"}]}]}
    if name == "page_info":
        info = {"value": {"label": "i", "size": [1, 2], "rotation": 0}}
        frames[name].insert(0, info)  # type: ignore[arg-type]
    with opened(sandbox, scripted(2, frames=frames)) as document:
        page = document.page(2)
        page.label if name == "page_info" else getattr(page, name)()
    assert said(log) == [f"{SOURCE}, page 2: careful"]


@pytest.mark.parametrize("name", ["outline", "attachments"])
def test_calls_about_the_document_are_logged_without_a_page(
    sandbox: Sandbox, log: pytest.LogCaptureFixture, name: str
) -> None:
    frames = {name: [{"warnings": [{"code": "engine", "detail": "careful"}]}]}
    with opened(sandbox, scripted(2, frames=frames)) as document:
        assert getattr(document, name)() == ()
    assert said(log) == [f"{SOURCE}: careful"]


def test_what_opening_warns_of_is_logged_once(
    sandbox: Sandbox, log: pytest.LogCaptureFixture
) -> None:
    with opened(sandbox, scripted(2, {0: "warns"})) as document:
        assert document.page(1).read().warnings == ()
        assert document.text() == "text of page 1\ftext of page 2"
    assert said(log) == [f"{SOURCE}: careful on page 0"]


def test_a_call_in_flight_gets_no_warning_of_another(
    sandbox: Sandbox, log: pytest.LogCaptureFixture
) -> None:
    data = scripted(2, {1: "warns"}, during={"outline": "waits_here"})
    with opened(sandbox, data) as document:
        outline = Call(document.outline)
        child_at(sandbox, DURING_A_CALL)
        assert document.page(1).read().warnings == (warning("careful on page 1", 1),)
        go_on(sandbox, DURING_A_CALL)
        assert outline.result() == ()
    assert said(log) == [f"{SOURCE}, page 1: careful on page 1"]
