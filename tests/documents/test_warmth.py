"""A child may open no file: whatever a document needs must be loaded before the first fork."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.pdf_builder import PdfBuilder, encrypted_pdf, page_entries, simple_pdf, text_content

ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = ROOT.parent / "shared" / "corpus"

READ_ALL = """
import json, logging, sys
from io import BytesIO
from pathlib import Path
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.engines.pypdf import engine
engine.warm()
warm = set(sys.modules)
late = {}
for path in map(Path, json.load(sys.stdin)):
    session = engine.session()
    try:
        arguments = {"password": None, "max_pages": 50}
        opened = next(session.handle("open", arguments, BytesIO(path.read_bytes())))[0]
        last = min(3, opened["page_count"])
        list(session.handle("pages", {"ranges": [[1, last]]}, None))
    except PdfPoolError:
        pass
    for name in set(sys.modules) - warm:
        late.setdefault(name, path.name)
print(json.dumps(late))
"""


def filtered(data: bytes, name: bytes) -> bytes:
    """Return a file whose only page's content goes through a filter."""
    builder = PdfBuilder()
    stream = builder.add_stream(data, b"/Filter /" + name)
    page = page_entries(builder, b"")
    return builder.build([page.replace(b"/Contents 1 0 R", b"/Contents %d 0 R" % stream)])


def documents() -> Iterator[tuple[str, bytes]]:
    content = text_content("Some text")
    yield "flate", filtered(zlib.compress(content), b"FlateDecode")
    yield "hex", filtered(content.hex().encode() + b">", b"ASCIIHexDecode")
    yield "runs", filtered(bytes([len(content) - 1]) + content + b"\x80", b"RunLengthDecode")
    yield "unknown", filtered(content, b"BrotliDecode")
    inline = b"q BI /W 1 /H 1 /BPC 8 /CS /G /F /AHx ID 00> EI Q " + content
    builder = PdfBuilder()
    yield "inline image", builder.build([page_entries(builder, inline)])
    for algorithm in ("RC4-40", "AES-128", "AES-256-R5"):
        plain = simple_pdf("Some text")
        yield algorithm, encrypted_pdf(plain, user="", owner="owner", algorithm=algorithm)


def late_modules(paths: list[Path]) -> dict[str, str]:
    """Return the modules that reading the files imports, each with the file that needed it."""
    result = subprocess.run(
        [sys.executable, "-c", READ_ALL],
        input=json.dumps([str(path) for path in paths]),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    late: dict[str, str] = json.loads(result.stdout)
    return late


def test_no_document_needs_a_module_that_is_not_loaded(tmp_path: Path) -> None:
    for name, data in documents():
        (tmp_path / f"{name}.pdf").write_bytes(data)
    assert late_modules(sorted(tmp_path.iterdir())) == {}


def test_no_real_document_does_either() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real files is not beside the checkout")
    assert late_modules(sorted(CORPUS.glob("*.pdf"))) == {}
