"""What the site's tests share: documents, the pool's state, and watches on its children."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.test import override_settings

from pdfpool_django import runtime
from pdfpool_django.extraction import extract
from scripts.pdf_builder import encrypted_pdf, simple_pdf
from tests.sandbox.helpers import LIMIT, eventually, watching

TEXTS = ("First page", "Second page", "Third page")
SAMPLE = simple_pdf(*TEXTS, info={"Title": "Three"})
PASSWORD = "a very secret word"
LOCKED = encrypted_pdf(SAMPLE, user=PASSWORD, owner="owner", algorithm="AES-256")

SCRIPTED = {"ENGINE": "tests.engines.scripted", "SLOTS": 2, "QUEUE": 1, "DEADLINE": LIMIT}


def script(name: str, pages: int = 1, at: Mapping[int, str] | None = None) -> bytes:
    """Return a document of the scripted engine, which the site takes for a PDF."""
    return json.dumps({"header": "%PDF-", "name": name, "pages": pages, "at": at or {}}).encode()


def waiting(name: str, pages: int = 1, at: int = 1) -> bytes:
    """Return a document whose page waits until `release`."""
    return script(name, pages, {at: "waits_for_a_signal"})


def hanging(name: str, pages: int = 1, at: int = 1) -> bytes:
    """Return a document whose page never ends."""
    return script(name, pages, {at: "hangs"})


@contextmanager
def scripted(**changes: Any) -> Iterator[None]:
    """Have a backend of the scripted engine, which documents can make wait."""
    with override_settings(PDFPOOL={**SCRIPTED, **changes}):
        yield


def children_used() -> int:
    used: int = runtime.state().details["children_used"]
    return used


def children() -> list[int]:
    """Return the processes that read a document right now."""
    launcher = runtime.backend()._sandbox._launcher  # type: ignore[attr-defined]
    return [] if launcher is None else [child.pid for child in list(launcher.in_use.values())]


def await_children(count: int = 1) -> list[int]:
    """Return the processes that read a document, as soon as there are so many."""
    eventually(lambda: len(children()) == count, f"{count} children in use")
    return children()


def await_idle() -> None:
    eventually(lambda: not runtime.state().running, "no job that runs")


def await_joined(count: int) -> None:
    eventually(lambda: runtime.state().details["joined"] >= count, f"{count} that joined")


def release(*pids: int) -> None:
    """Let the documents of these children go on."""
    for pid in pids:
        os.kill(pid, signal.SIGUSR1)


@contextmanager
def child_ends() -> Iterator[None]:
    """Expect the one child in use to end in the block, as nobody waits for it any more."""
    with watching(*await_children()) as watch:
        yield
        watch.await_ends()
    await_idle()


def assert_reads_on() -> None:
    """Another document is read normally."""
    assert extract(script("another"), caller="somebody else").text == "text of page 1"
