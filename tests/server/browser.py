"""A real browser without a driver: Chromium, spoken to through a pair of pipes.

With ``--remote-debugging-pipe`` it takes commands of the DevTools protocol on
descriptor 3 and answers on descriptor 4: JSON, each message ended by a NUL.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIMIT = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")
_CHUNK = 65536


def browser_path() -> str | None:
    """Return the browser's program, if there is one here."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in a browser without a window, in which the scripts of sites do not run."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "DOM", "Runtime"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setScriptExecutionDisabled", value=True)  # ours run all the same

    def open(self, address: str) -> None:
        with self._loading():
            self._call("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def address(self) -> str:
        return str(self.evaluate("location.href"))

    @property
    def text(self) -> str:
        """What a person can read."""
        return str(self.evaluate("document.body.innerText"))

    def fill(self, selector: str, value: str) -> None:
        """Type into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self._call("Input.insertText", text=value)

    def choose(self, selector: str, path: Path) -> None:
        """Choose a file, as in the dialogue for it."""
        root = self._call("DOM.getDocument")["root"]["nodeId"]
        node = self._call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self._call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def click(self, selector: str) -> None:
        """Click what leads to another page, and wait for that."""
        with self._loading():
            self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    @contextlib.contextmanager
    def _loading(self) -> Iterator[None]:
        self._events.clear()
        yield
        self._await(lambda message: message.get("method") == "Page.loadEventFired")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        answer = self._await(lambda message: message.get("id") == number)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def _await(self, wanted: Any) -> dict[str, Any]:
        for message in self._events:
            if wanted(message):
                return message
        for message in self._messages():
            self._events.append(message)
            if wanted(message):
                return message
        raise AssertionError("the browser has ended")

    def _messages(self) -> Iterator[dict[str, Any]]:
        until = time.monotonic() + LIMIT
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while True:
                while b"\0" in self._buffer:
                    message, _, self._buffer = self._buffer.partition(b"\0")
                    yield json.loads(message)
                assert selector.select(until - time.monotonic()), "the browser does not answer"
                piece = os.read(self._answers, _CHUNK)
                if not piece:
                    return
                self._buffer += piece


@contextlib.contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Start a browser of a profile of its own, and end it."""
    program = browser_path()
    assert program
    command_end, commands = os.pipe()
    answers, answer_end = os.pipe()
    options = [
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-proxy-server"),
        f"--user-data-dir={folder}",
    ]
    # The shell puts the pipes where the browser looks for them.
    shell = f'exec "$@" 3<&{command_end} 4>&{answer_end}'
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell, "bash", program, *options],
        pass_fds=[command_end, answer_end],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_end)
    os.close(answer_end)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)  # at the end of which it ends
        os.close(answers)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
