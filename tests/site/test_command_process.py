"""``manage.py extract_pdf`` as a process: exit codes, streams, and Ctrl-C."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scripts.pdf_builder import simple_pdf
from tests.engines.says_so_and_hangs import WORDS
from tests.sandbox.helpers import LIMIT, ROOT, eventually, processes_under, watching
from tests.site.helpers import SAMPLE, TEXTS, script

INTERRUPTED = 130
READER_GONE = 141


@contextmanager
def started(*arguments: Any, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command, where no database can be reached."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.site.settings", "PYTHONDEVMODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "manage.py", "extract_pdf", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **settings, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def run(*arguments: Any, stdin: Any = "") -> tuple[int, str, str]:
    with started(*arguments) as process:
        out, err = process.communicate(stdin, timeout=LIMIT)
    return process.returncode, out, err


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample.pdf"
    path.write_bytes(SAMPLE)
    return path


# Exit codes and streams


def test_text_goes_to_standard_output_and_nothing_else_does(sample: Path) -> None:
    status, out, err = run(sample)
    assert (status, err) == (0, "")
    assert [page.strip() for page in out.split("\f")] == list(TEXTS)


def test_a_failure_goes_to_standard_error(sample: Path) -> None:
    status, out, err = run(sample, sample.with_name("none.pdf"))
    assert status == 1
    assert TEXTS[0] in out
    assert err.splitlines() == [
        f"{sample.with_name('none.pdf')}: There is no such file; check its path.",
        "CommandError: 1 of 2 files could not be read completely.",
    ]


@pytest.mark.parametrize(
    "arguments", [[], ["--format", "xml", "a.pdf"], ["--pages", "x", "a.pdf"], ["--jobs", "x", "a"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert "Traceback" not in err
    assert err


def test_json_can_be_piped(sample: Path) -> None:
    status, out, _ = run(sample, "--format", "json")
    assert status == 0
    assert [page["label"] for page in json.loads(out)[0]["pages"]] == ["1", "2", "3"]


def test_a_reader_that_has_enough_is_no_failure_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    path.write_bytes(simple_pdf(*["more than a pipe holds\n" * 400] * 20))
    with started(path, path) as process:
        assert process.stdout
        assert process.stdout.read(9) == "more than"
        process.stdout.close()
        assert process.wait(LIMIT) == READER_GONE
        assert process.stderr
        assert process.stderr.read() == ""


# Standard input


def test_a_document_on_standard_input(sample: Path) -> None:
    status, out, err = run("-", "--format", "json", "--pages", "2", stdin=SAMPLE.decode("ascii"))
    (found,) = json.loads(out)
    assert (status, err) == (0, "")
    assert found["path"] == "-"
    assert [page["text"].strip() for page in found["pages"]] == [TEXTS[1]]


def test_nothing_on_standard_input_is_told() -> None:
    status, out, err = run("-")
    assert (status, out) == (1, "")
    assert err.startswith("-: The file is empty")


def test_standard_input_has_a_name_among_the_results(sample: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    status, _, _ = run("-", sample, "--output", output, stdin=SAMPLE.decode("ascii"))
    assert status == 0
    assert sorted(path.name for path in output.iterdir()) == ["sample.txt", "stdin.txt"]


# Interrupting


def test_an_interrupt_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.pdf" for n in range(4)]
    for path in paths:
        path.write_bytes(script(path.name, 2, {2: "says_so_and_hangs"}))
    options = {"ENGINE": "tests.engines.scripted", "LOG_LEVEL": "DEBUG"}
    with started(*paths, **options) as process:
        await_words(process, WORDS)
        with watching(*processes_under(process.pid)) as watch:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT)
            watch.await_ends()
    assert process.returncode == INTERRUPTED
    assert "Interrupted." in err
    assert "Traceback" not in err
    assert out == ""


def await_words(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr
    for line in process.stderr:
        if words in line:
            return
    pytest.fail("it ended before it said so")


def test_an_interrupt_while_standard_input_is_read_says_so_too() -> None:
    with started("-") as process:
        assert process.stdin
        process.stdin.write("%PDF-")
        process.stdin.flush()
        fd = process.stdin.fileno()
        eventually(lambda: not unread(fd), "the reading of standard input")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == INTERRUPTED
    assert err == "Interrupted.\n"


def unread(fd: int) -> int:
    """Return how many bytes are in a pipe (``man 2 ioctl_pipe``)."""
    (count,) = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))
    return int(count)
