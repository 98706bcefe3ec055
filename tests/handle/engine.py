"""The scripted engine for handles: pages and calls that wait, warn, or answer garbage.

Beside what `tests.engines.scripted` knows, a script may have ``"password"``
(the document is locked with it), ``"answers"`` (of a call, the values),
``"frames"`` (of a call, the parts of its answer as they are sent), ``"during"``
(of a call, the act that comes first), and ``"authenticating"`` (an act while it
is opened with its password).
"""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from pdfpool_django.engines.base import Answer, Session
from pdfpool_django.errors import PasswordRequired, WrongPassword
from pdfpool_django.sandbox.limits import DOCUMENT_FD
from tests.engines.scripted import ScriptedDocument, ScriptedEngine, ScriptedSession

PLACES = range(1, 28)
"""Where one can wait: a page's number, or another number for a call."""

DURING_A_CALL = 20
AUTHENTICATING = 21

LOGGER = logging.getLogger("scripted")


def signal_of(place: int) -> int:
    """Return the signal that lets go on who waits at this place; it is caught while one waits."""
    return signal.SIGRTMIN + place


# Imported in the launcher, whose children so have them blocked before one can come.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal_of(place) for place in PLACES})


class _Released(Exception):
    """The signal has come."""


def _release(number: int, frame: object) -> NoReturn:
    raise _Released


def waits_here(place: int) -> str:
    number = signal_of(place)
    try:
        signal.signal(number, _release)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        while True:
            # Not long: a signal that comes right before it would only be seen after it.
            time.sleep(0.005)
    except _Released:
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        signal.signal(number, signal.SIG_DFL)
    return f"text of page {place}"


def warns(place: int) -> str:
    LOGGER.warning("careful on page %d", place)
    return f"text of page {place}"


def warns_and_waits(place: int) -> str:
    LOGGER.warning("careful before %d", place)
    text = waits_here(place)
    LOGGER.warning("careful after %d", place)
    return text


ACTS = {each.__name__: each for each in (waits_here, warns, warns_and_waits)}


class HandleDocument(ScriptedDocument):
    """A document that has what its script says."""

    @property
    def version(self) -> str | None:
        return "1.7"

    @property
    def encrypted(self) -> bool:
        return "password" in self.script

    def _answer(self, call: str) -> Iterator[Any]:
        return iter(self.script.get("answers", {}).get(call, ()))

    def size(self, number: int) -> tuple[float, float]:
        return 100.0 + number, 200.0

    def images(self, number: int) -> Iterator[tuple[dict[str, Any], bytes]]:
        return ((value, b"data") for value in self._answer("images"))

    def fonts(self, number: int) -> Iterator[dict[str, Any]]:
        return self._answer("fonts")

    def outline(self) -> Iterator[dict[str, Any]]:
        return self._answer("outline")

    def attachments(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        return ((value, b"data") for value in self._answer("attachments"))

    def permissions(self) -> dict[str, bool]:
        others = "modify copy annotate fill_forms extract_for_accessibility assemble"
        granted = dict.fromkeys([*others.split(), "print_in_high_quality"], True)
        return {"print": False, **granted}


class HandleSession(ScriptedSession):
    """A session whose calls may wait first, or say something else."""

    def handle(
        self, call: str, arguments: dict[str, Any], file: io.BufferedIOBase | None
    ) -> Answer:
        script = {} if self._document is None else self._document.script
        act = script.get("during", {}).get(call)
        if act is not None:
            self._document._acts[act](DURING_A_CALL)
        if call in script.get("frames", {}):
            yield from ((part, b"") for part in script["frames"][call])
        else:
            yield from super().handle(call, arguments, file)


class HandleEngine(ScriptedEngine):
    """Reads scripts."""

    def warm(self) -> None:
        super().warm()
        self._acts |= ACTS

    def open(
        self, file: io.BufferedIOBase, password: str | None, max_pages: int
    ) -> ScriptedDocument:
        script = json.loads(file.read())
        os.close(DOCUMENT_FD)
        wanted = script.get("password")
        if wanted is not None and password is None:
            raise PasswordRequired
        if wanted not in (None, password):
            raise WrongPassword
        act = script.get("authenticating")
        if act is not None and password is not None:
            self._acts[act](AUTHENTICATING)
        return HandleDocument(script, self._acts)

    def session(self) -> Session:
        return HandleSession(self)


engine = HandleEngine()
