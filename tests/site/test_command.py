"""``extract_pdf``: what it reads, how much at once, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import pty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from pdfpool_django import runtime
from tests.sandbox.helpers import Call, eventually
from tests.site.commands import Answer, run, write
from tests.site.helpers import (
    LOCKED,
    PASSWORD,
    SAMPLE,
    TEXTS,
    await_children,
    children,
    release,
    script,
    scripted,
    waiting,
)

# What is read


def test_a_files_pages_are_parted_by_form_feeds(folder: Path) -> None:
    answer = run(write(folder, "a.pdf", SAMPLE))
    assert answer.pages == list(TEXTS)
    assert answer.out.endswith("\n")
    assert (answer.status, answer.err) == (0, "")


def test_several_files_are_written_in_the_order_given(folder: Path) -> None:
    paths = [write(folder, f"{name}.pdf") for name in "cadbe"]
    assert run(*paths).pages == [f"text of {name}.pdf" for name in "cadbe"]


def test_the_same_file_may_be_given_twice(folder: Path) -> None:
    path = write(folder, "a.pdf")
    assert run(path, path).pages == ["text of a.pdf"] * 2


def test_a_folder_is_read_with_recursive(folder: Path) -> None:
    for name in ("b/c/deep.pdf", "b/UPPER.PDF", "a.pdf", "b/notes.txt", "b/folder.pdf/inner.pdf"):
        write(folder, name)
    answer = run(folder, "--recursive")
    names = ("a.pdf", "b/UPPER.PDF", "b/c/deep.pdf", "b/folder.pdf/inner.pdf")
    assert answer.pages == [f"text of {name}" for name in names]
    assert answer.status == 0


def test_a_folder_is_not_read_without_recursive(folder: Path) -> None:
    write(folder, "a.pdf")
    answer = run(folder)
    assert answer.status == 1
    assert answer.err == f"{folder}: It is a folder; add --recursive to read the files in it.\n"
    assert answer.out == ""


def test_a_folder_without_documents_is_no_failure(folder: Path) -> None:
    assert run(folder, "--recursive") == Answer("", "", 0, "")


@pytest.mark.parametrize(("pages", "chosen"), [("2-", TEXTS[1:]), ("3,1", (TEXTS[0], TEXTS[2]))])
def test_pages_are_chosen(folder: Path, pages: str, chosen: tuple[str, ...]) -> None:
    assert run(write(folder, "a.pdf", SAMPLE), "--pages", pages).pages == list(chosen)


def test_a_locked_file_is_opened_with_the_first_line_of_the_password_file(folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text(f"{PASSWORD}\nanother line\n")
    answer = run(write(folder, "a.pdf", LOCKED), "--password-file", secret)
    assert answer.pages == list(TEXTS)
    assert answer.status == 0


def test_a_locked_file_without_its_password_is_told(folder: Path) -> None:
    path = write(folder, "a.pdf", LOCKED)
    answer = run(path)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == f"{path}: The file is locked; send its password along.\n"


def test_a_wrong_password_is_told_and_not_shown(folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("a guess")
    answer = run(write(folder, "a.pdf", LOCKED), "--password-file", secret)
    assert answer.status == 1
    assert "does not open the file" in answer.err
    assert "a guess" not in answer.err + answer.message


# What fails


def test_a_broken_file_does_not_stop_the_others(folder: Path) -> None:
    paths = [
        write(folder, "a.pdf"),
        write(folder, "bad.pdf", b"%PDF-1.7\n"),
        write(folder, "c.pdf"),
    ]
    answer = run(*paths)
    assert answer.pages == ["text of a.pdf", "text of c.pdf"]
    assert answer.status == 1
    assert answer.message == "1 of 3 files could not be read completely."
    (line,) = answer.err.splitlines()
    assert line.startswith(f"{paths[1]}: The file is a broken PDF")
    assert "Save it again" in line


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "There is no such file; check its path."),
        (b"", "The file is empty; send one that is not."),
        (b"Dear Sir", "Send a PDF file."),
    ],
)
def test_a_message_names_the_file_what_failed_and_what_to_do(
    folder: Path, data: bytes | None, words: str
) -> None:
    path = folder / "a.pdf"
    if data is not None:
        path.write_bytes(data)
    answer = run(path, write(folder, "good.pdf"))
    assert answer.status == 1
    assert answer.err.startswith(f"{path}: ")
    assert answer.err.endswith(f"{words}\n")
    assert answer.pages == ["text of good.pdf"]


def test_a_page_beyond_the_end_is_told(folder: Path) -> None:
    answer = run(write(folder, "a.pdf", SAMPLE), "--pages", "2-4")
    assert answer.status == 1
    assert "Page 4 does not exist: the file has 3 pages." in answer.err


def test_an_incomplete_file_is_written_and_fails(folder: Path) -> None:
    with scripted():
        path = write(folder, "a.pdf", script("crash", 3, {2: "segfaults"}))
        answer = run(path)
    assert answer.pages == ["text of page 1", "", "text of page 3"]
    assert (answer.status, answer.message) == (1, "1 of 1 files could not be read completely.")
    assert answer.err.startswith(f"{path}, page 2: The file made the program that reads it fail")


def test_a_reading_that_stops_early_is_told(folder: Path) -> None:
    with scripted():
        at = {2: "segfaults", 3: "segfaults", 4: "segfaults"}
        path = write(folder, "a.pdf", script("crashes", 6, at))
        answer = run(path)
    assert answer.status == 1
    lines = answer.err.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"{path}, page 2",
        f"{path}, page 3",
        f"{path}, page 4",
        str(path),
    ]
    assert lines[-1].startswith(f"{path}: stopped early. ")


# Wrong usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pages", "9-3"], "--pages: The page range 9-3 runs backwards"),
        (["--pages", "x"], "--pages: “x” is not a page range"),
        (["--pages", "0"], "--pages: There is no page 0"),
        (["--jobs", "0"], "--jobs must be at least 1."),
        (["--password-file", "/no/such/file"], "--password-file: /no/such/file cannot be read"),
        (["-", "-"], "Standard input can be read once only."),
    ],
)
def test_wrong_usage_is_told_before_anything_is_read(arguments: list[str], words: str) -> None:
    answer = run("/no/such.pdf", *arguments)
    assert answer.status == 2
    assert answer.message.startswith(words)
    assert (answer.out, answer.err) == ("", "")


# How many at once


@pytest.mark.parametrize(("jobs", "at_once"), [(["--jobs", "1"], 1), ([], 2), (["--jobs", "9"], 2)])
def test_no_more_are_in_flight_than_asked_for_and_than_slots(
    folder: Path, jobs: list[str], at_once: int
) -> None:
    with scripted():
        paths = [write(folder, f"{n}.pdf", waiting(f"{n}")) for n in range(4)]
        call = Call(run, *paths, *jobs)
        left = len(paths)
        while left:
            pids = await_children(min(at_once, left))
            assert runtime.state().queued == 0
            release(*pids)
            left -= len(pids)
            eventually(lambda pids=pids: not set(children()) & set(pids), "their ends")
        assert call.result().pages == ["text of page 1, after the signal"] * 4


@override_settings(PDFPOOL={"SLOTS": 1, "QUEUE": 0})
def test_many_files_are_never_refused(folder: Path) -> None:
    paths = [write(folder, f"{n}.pdf") for n in range(8)]
    assert run(*paths).pages == [f"text of {n}.pdf" for n in range(8)]


# The progress bar


@contextlib.contextmanager
def terminal() -> Iterator[tuple[Any, Any]]:
    """A terminal, and what closes it and returns all that was written to it."""
    ours, theirs = pty.openpty()

    def written() -> str:
        file.close()
        pieces = []
        with contextlib.suppress(OSError):  # which is the end of a terminal
            while piece := os.read(ours, 4096):
                pieces.append(piece)
        return b"".join(pieces).decode()

    try:
        with open(theirs, "w") as file:
            yield file, written
    finally:
        os.close(ours)


def test_a_terminal_shows_how_many_pages_are_read(folder: Path) -> None:
    with terminal() as (file, written):
        answer = run(write(folder, "a.pdf", SAMPLE), stderr=file)
        shown = written()
    assert "/3 [" in shown
    assert "page" in shown
    assert answer.pages == list(TEXTS)


def test_a_terminal_shows_no_bar_where_none_is_wanted(folder: Path) -> None:
    with terminal() as (file, written):
        run(write(folder, "a.pdf", SAMPLE), "--no-progress", stderr=file)
        assert written() == ""


def on_screen(written: str) -> list[str]:
    """Return the lines that a terminal shows of what was written to it."""
    lines, column = [""], 0
    for character in written:
        if character == "\r":
            column = 0
        elif character == "\n":
            lines.append("")
            column = 0
        else:
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def run_on_terminal(folder: Path, *options: str) -> list[str]:
    paths = [write(folder, f"{n}.pdf") for n in range(3)]
    with terminal() as (file, written):
        run(*paths, *options, "--jobs", "1", stdout=file, stderr=file)
        return on_screen(written().replace("\f", ""))


def test_text_on_the_same_terminal_is_not_mixed_with_the_bar(folder: Path) -> None:
    assert run_on_terminal(folder) == [f"text of {n}.pdf" for n in range(3)] + [""]


def test_json_on_the_same_terminal_is_not_mixed_with_the_bar(folder: Path) -> None:
    results = json.loads("".join(run_on_terminal(folder, "--format", "json")))
    assert [result["pages"][0]["text"].strip() for result in results] == [
        f"text of {n}.pdf" for n in range(3)
    ]


def test_messages_are_not_lost_in_the_bar(folder: Path) -> None:
    with terminal() as (file, written):
        path = folder / "none.pdf"
        run(write(folder, "a.pdf", SAMPLE), path, stderr=file)
        assert f"{path}: There is no such file; check its path." in written()
