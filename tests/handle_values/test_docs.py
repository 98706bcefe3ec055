"""The page about handles: its code runs, and its table has every public name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdfpool_django import runtime
from pdfpool_django.documents import Document, DocumentPage, sandboxes
from scripts.pdf_builder import encrypted_pdf, simple_pdf
from tests.docs_code import ROOT, CodeBlock, code_blocks, run_code

PAGE = ROOT / "docs" / "document.md"
BLOCKS = code_blocks(PAGE)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_its_code_runs(
    block: CodeBlock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = simple_pdf("The total\nis 12", "second page")
    (tmp_path / "report.pdf").write_bytes(plain)
    locked = encrypted_pdf(plain, user="sesame", owner="o", algorithm="AES-256")
    (tmp_path / "locked.pdf").write_bytes(locked)
    monkeypatch.chdir(tmp_path)
    try:
        run_code(block)
    finally:
        runtime.reset()
        while sandboxes._sandboxes:  # which live as long as a process of a site does
            sandboxes._sandboxes.popitem()[1].close()
    said = capsys.readouterr().out
    assert said
    assert "later:" not in said


def test_there_is_code() -> None:
    assert len(BLOCKS) == 5


def names_in_table() -> set[str]:
    """Return what the first column names; a page's names with the word before them."""
    names = set()
    for row in re.findall(r"^\| ([^|]*`[^|]*) \|", PAGE.read_text("utf-8"), re.MULTILINE):
        kind = "page." if row.startswith("page:") else ""
        names |= {kind + name.removeprefix("Document.") for name in re.findall(r"`([\w.]+)`", row)}
    return names


def test_its_table_has_every_public_name_and_no_other() -> None:
    of_instances = {"version", "source", "encrypted", "closed"}
    documents = {name for name in vars(Document) if not name.startswith("_")} | of_instances
    pages = {f"page.{name}" for name in vars(DocumentPage) if not name.startswith("_")}
    assert names_in_table() == documents | pages


def test_its_links_lead_somewhere() -> None:
    text = PAGE.read_text("utf-8")
    for target in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (PAGE.parent / target).exists(), target
