"""An engine whose documents are scripts: JSON that says what happens on which page.

``{"pages": 5, "at": {"3": "hangs"}}`` reads five pages, and calls `act` of
`tests.engines.hangs` at the third; page 0 is the opening. What ``"say"`` has
for a page replaces parts of the answer about it.
"""

from __future__ import annotations

import io
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from pdfpool_django.engines.base import Engine, OpenDocument, Session
from pdfpool_django.sandbox.limits import DOCUMENT_FD

OPENING = "0"
_ACTING = "def act("


class ScriptedDocument(OpenDocument):
    """A document that does what its script says."""

    def __init__(self, script: dict[str, Any], acts: dict[str, Any]) -> None:
        self.script = script
        self._acts = acts
        self._act(OPENING)

    def _act(self, page: str) -> str:
        name = self.script.get("at", {}).get(page)
        return f"text of page {page}" if name is None else self._acts[name](int(page))

    @property
    def page_count(self) -> int:
        return self.script["pages"]

    def metadata(self) -> dict[str, Any]:
        return self.script.get("metadata", {})

    def label(self, number: int) -> str:
        return f"L{number}"

    def text(self, number: int) -> str:
        return self._act(str(number))


class ScriptedSession(Session):
    """A session that may be told to say something else."""

    def _said(self, part: dict[str, Any], page: str) -> dict[str, Any]:
        return part | self._document.script.get("say", {}).get(page, {})

    def _open(self, **arguments: Any) -> Any:
        for part, body in super()._open(**arguments):
            yield self._said(part, OPENING), body

    def _page(self, number: int, actual_text: bool = True) -> Any:
        part, body = super()._page(number)
        return self._said(part, str(number)), body


class ScriptedEngine(Engine):
    """Reads scripts."""

    identity = "scripted 1"
    loggers = ("scripted",)

    def warm(self) -> None:
        # A child can open no file, so every act is imported here.
        self._acts = {
            path.stem: import_module(f"tests.engines.{path.stem}").act
            for path in Path(__file__).parent.glob("*.py")
            if _ACTING in path.read_text("utf-8") and path.name != Path(__file__).name
        }

    def open(
        self, file: io.BufferedIOBase, password: str | None, max_pages: int
    ) -> ScriptedDocument:
        script = json.loads(file.read())
        os.close(DOCUMENT_FD)  # so that an act may open something
        return ScriptedDocument(script, self._acts)

    def session(self) -> Session:
        return ScriptedSession(self)


engine = ScriptedEngine()
