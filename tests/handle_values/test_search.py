"""Searching: what is a match, what is a pattern, what it may cost, and where the index is."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdfpool_django.documents import Document, Match
from pdfpool_django.errors import (
    DeadlineExceeded,
    InvalidPattern,
    InvalidRequest,
    MemoryExceeded,
    OutputTooLarge,
    PageOutOfRange,
)
from pdfpool_django.sandbox.host import Sandbox
from scripts.hostile_builder import third_of_five
from scripts.pdf_builder import simple_pdf
from tests.handle_values.opening import opened
from tests.sandbox.helpers import LIMIT, eventually, limits, sandbox_of, scripted

MIB = 1024 * 1024

PAGES = (
    "The quick brown fox\njumps over the lazy dog.",
    "A fox, a Fox and a firefox: 3.50 (net) C++ a.b\naxb [x] a|b",
    "Nothing here but spaces  and a fox\nat the end",
)


@pytest.fixture(scope="module")
def document(pypdf_sandbox: Sandbox) -> Iterator[Document]:
    with opened(pypdf_sandbox, simple_pdf(*PAGES)) as document:
        yield document


def found(document: Document, needle: str, **options: Any) -> list[tuple[int, str]]:
    """Return page and text of each match, taken from the page's text by its place."""
    texts = {number: document.page(number).text() for number in range(1, document.page_count + 1)}
    matches = document.search(needle, **options)
    return [(match.page, texts[match.page][match.start : match.end]) for match in matches]


# What is a match


@pytest.mark.parametrize(
    ("needle", "options", "matches"),
    [
        ("fox", {}, [(1, "fox"), (2, "fox"), (2, "fox"), (3, "fox")]),
        ("FOX", {}, []),
        (
            "FOX",
            {"ignore_case": True},
            [(1, "fox"), (2, "fox"), (2, "Fox"), (2, "fox"), (3, "fox")],
        ),
        ("fox", {"whole_word": True}, [(1, "fox"), (2, "fox"), (3, "fox")]),
        ("fox jumps", {}, [(1, "fox\njumps")]),
        ("  fox \t\n jumps ", {}, [(1, "fox\njumps")]),
        ("spaces and", {}, [(3, "spaces  and")]),
        ("foxjumps", {}, []),
        ("dog. A fox", {}, []),  # not over the end of a page
        ("a.b", {}, [(2, "a.b")]),
        ("3.50 (net)", {}, [(2, "3.50 (net)")]),
        ("C++", {"whole_word": True}, [(2, "C++")]),
        ("[x]", {}, [(2, "[x]")]),
        ("a|b", {}, [(2, "a|b")]),
        (r"\w", {}, []),
        ("a.b", {"regex": True}, [(2, "a.b"), (2, "axb"), (2, "a|b")]),
        ("fox|dog", {"regex": True, "pages": 1}, [(1, "fox"), (1, "dog")]),
        ("fox|dog", {"regex": True, "whole_word": True, "pages": "2-3"}, [(2, "fox"), (3, "fox")]),
        (r"^jumps", {"regex": True}, []),
        (r"(?m)^jumps", {"regex": True}, [(1, "jumps")]),
        (r"(?mi)^JUMPS", {"regex": True, "whole_word": True}, [(1, "jumps")]),
        ("(?x) j u m p s # on", {"regex": True, "whole_word": True}, [(1, "jumps")]),
        (" ", {"regex": True, "pages": 1, "max_results": 1}, [(1, " ")]),
        ("fox", {"pages": [3, 1]}, [(1, "fox"), (3, "fox")]),
        ("fox", {"max_results": 2}, [(1, "fox"), (2, "fox")]),
        ("fox", {"max_results": 0}, []),
        ("fox", {"max_results": 99, "pages": "3-"}, [(3, "fox")]),
    ],
)
def test_what_is_found(
    document: Document, needle: str, options: dict[str, Any], matches: list[tuple[int, str]]
) -> None:
    assert found(document, needle, **options) == matches


def test_matches_do_not_overlap(pypdf_sandbox: Sandbox) -> None:
    with opened(pypdf_sandbox, simple_pdf("aaaaa")) as document:
        places = [(match.start, match.end) for match in document.search("aa")]
        assert places == [(0, 2), (2, 4)]


@pytest.mark.parametrize("pattern", ["a*", "(?=fox)", "$", "", "x*?", r"\b"])
def test_what_matches_nothing_is_no_match(document: Document, pattern: str) -> None:
    if pattern:
        assert all(match.end > match.start for match in document.search(pattern, regex=True))
    assert [each for _, each in found(document, "q*", regex=True)] == ["q"]


def test_the_context_is_the_words_around_on_one_line(document: Document) -> None:
    (match,) = document.search("fox jumps")
    assert match == Match(1, 16, 25, "The quick brown fox jumps over the lazy dog.")


def test_the_context_of_a_long_match_is_cut(pypdf_sandbox: Sandbox) -> None:
    long = "\n".join(["word"] * 1000)
    with opened(pypdf_sandbox, simple_pdf(long)) as document:
        (match,) = document.search(r"(?s)w.*d", regex=True)
        assert match.end - match.start == len(long)
        assert 500 <= len(match.context) <= 1000


def test_places_are_in_characters(searching_sandbox: Sandbox) -> None:
    text = "\U0001f600 é\u0301 fox \U0001f600\U0001f600 fox"
    with opened(searching_sandbox, text.encode()) as document:
        assert document.page(1).text() == text
        matches = document.search("fox")
        assert [text[match.start : match.end] for match in matches] == ["fox", "fox"]
        assert [text.index("fox"), text.rindex("fox")] == [match.start for match in matches]
        (smile,) = document.search("\U0001f600\U0001f600")
        assert smile.end - smile.start == 2
        assert document.search("\ud83d") == ()


_WORDS = st.text("ab(.+\\ \n", max_size=12)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(_WORDS, min_size=1, max_size=4), needle=_WORDS.filter(str.strip))
def test_literal_search_is_what_python_finds(
    searching_sandbox: Sandbox, texts: list[str], needle: str
) -> None:
    with opened(searching_sandbox, "\f".join(texts).encode()) as document:
        matches = [(match.page, match.start, match.end) for match in document.search(needle)]
    pattern = r"\s+".join(re.escape(word) for word in needle.split())
    assert matches == [
        (number, *found.span())
        for number, text in enumerate(texts, 1)
        for found in re.finditer(pattern, text)
    ]


@pytest.fixture(scope="module")
def searching_sandbox() -> Iterator[Sandbox]:
    with sandbox_of("tests.engines.says_its_text", cpu=3600.0) as sandbox:
        yield sandbox


# What is a pattern


@pytest.mark.parametrize(
    ("needle", "options"),
    [
        ("", {}),
        (" \n\t", {}),
        ("", {"regex": True}),
        ("(", {"regex": True}),
        ("a)(b", {"regex": True}),
        ("a)(b", {"regex": True, "whole_word": True}),
        ("[", {"regex": True}),
        ("*", {"regex": True}),
        ("(?<=a*)b", {"regex": True}),
        ("a{99999999999999999999}", {"regex": True}),
        ("(" * 5000 + ")" * 5000, {"regex": True}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_bad_pattern_is_said_to_be_one(
    document: Document, needle: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidPattern) as caught:
        document.search(needle, **options)
    assert caught.value.code == "invalid_pattern"
    sentence = str(caught.value)
    assert sentence.startswith("The pattern cannot be used (")
    assert len(sentence) < 400
    assert document.search("fox")


def test_a_number_below_zero_is_no_number_of_results(document: Document) -> None:
    with pytest.raises(ValueError, match="max_results"):
        document.search("fox", max_results=-1)


@pytest.mark.parametrize(("pages", "error"), [("9", PageOutOfRange), ("x", InvalidRequest)])
def test_pages_are_checked(document: Document, pages: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        document.search("fox", pages=pages)


# What it may cost


def test_a_pattern_that_runs_away_is_ended_and_the_handle_lives_on(
    searching_sandbox: Sandbox,
) -> None:
    text = "a" * 50 + "b"
    with opened(searching_sandbox, text.encode(), deadline=1.0) as document:
        document.prepare_search()
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            document.search("(a+)+$", regex=True)
        assert 1.0 <= time.monotonic() - started < LIMIT
        assert len(document.search("b")) == 1
        assert document.page(1).text() == text


def test_a_pattern_that_eats_memory_is_ended_and_the_handle_lives_on(
    searching_sandbox: Sandbox,
) -> None:
    text = "ab" * MIB
    with opened(searching_sandbox, text.encode(), page_deadline=LIMIT) as document:
        # Each repetition of a group is kept, so that it could be given back.
        with pytest.raises(MemoryExceeded):
            document.search("(?:(a)|(b))*c", regex=True)
        assert len(document.search("ab", max_results=3)) == 3


def test_more_text_than_allowed_is_refused_and_the_handle_lives_on(
    searching_sandbox: Sandbox,
) -> None:
    texts = ["x" * 300] * 4
    before = memory_files()
    with opened(searching_sandbox, "\f".join(texts).encode(), max_output=1000) as document:
        held = memory_files()
        for _ in range(2):
            with pytest.raises(OutputTooLarge):
                document.search("x")
        assert memory_files() == held
        assert document.page(4).text() == texts[3]
    assert memory_files() == before


def test_more_matches_than_may_be_kept_are_refused(searching_sandbox: Sandbox) -> None:
    with opened(searching_sandbox, b"x" * 500_000, max_output=600_000) as document:
        with pytest.raises(OutputTooLarge):
            document.search("x")
        assert len(document.search("x", max_results=100)) == 100


# Where the index is


def memory_files() -> int:
    """Return how many anonymous files this process has open."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            found += "memfd:pdfpool" in os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
    return found


def shared_memory() -> int:
    """Return the bytes of all anonymous files on this host (``man 5 proc``, meminfo)."""
    (line,) = re.findall(r"^Shmem: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(line) * 1024


def resident() -> int:
    """Return the bytes of this process's own memory, without what it shares."""
    status = Path("/proc/self/status").read_text()
    (line,) = re.findall(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)
    return int(line) * 1024


def test_the_index_is_outside_the_process_and_gone_when_it_is_cleared() -> None:
    page = ("needle in a haystack of text " * 36_000)[:MIB]
    pages = 48
    big = limits(max_output=128 * MIB)
    with sandbox_of("tests.engines.repeats_its_text", memory=256 * MIB) as sandbox:
        document_bytes = b"%d " % pages + page.encode()
        with opened(sandbox, document_bytes, max_output=big.max_output) as document:
            document.page(1).text()
            files, shared, own = memory_files(), shared_memory(), resident()
            document.prepare_search()
            assert memory_files() == files + 1
            held = shared_memory() - shared
            assert held > 0.8 * pages * MIB
            assert resident() - own < 0.5 * pages * MIB
            first = document.search("haystack", pages=pages, max_results=1)
            assert first == (Match(pages, 12, 20, first[0].context),)
            document.clear_search_index()
            assert memory_files() == files
            # No child holds it either: other processes may take and give memory meanwhile.
            eventually(lambda: shared_memory() < shared + 0.5 * held, "the index is gone", 1.0)
            assert len(document.search("haystack", pages=1, max_results=5)) == 5
        assert memory_files() < files


def test_no_child_holds_the_index_after_a_search(searching_sandbox: Sandbox) -> None:
    with opened(searching_sandbox, b"some text", workers=1) as document:
        for _ in range(200):
            document.search("some")
            (reader,) = document._readers._free
            child = reader.session._child
            assert child is not None
            descriptors = sorted(os.listdir(f"/proc/{child.pid}/fd"), key=int)
            assert descriptors == ["0", "1", "2", "3", "4"], "the document, and not the index"


def test_clearing_what_is_not_there_does_nothing(document: Document) -> None:
    document.clear_search_index()
    document.clear_search_index()
    assert document.search("fox")


# Pages that cannot be read


def test_unread_pages_are_named(pypdf_sandbox: Sandbox) -> None:
    data = third_of_five(b"BT /F1 9 Tf (before the break) Tj ET (no end")
    with opened(pypdf_sandbox, data) as document:
        broken = document.page(3).read(errors="keep")
        assert broken.error is not None
        assert broken.text
        matches = document.search("before the break")
        assert [match.page for match in matches] == [3], "what there is of a page is searched"
        assert matches.unread == (3,)
        assert document.search("break", pages="1-2").unread == ()
        assert document.search("break", pages="2-4").unread == (3,)


def test_a_page_that_costs_its_child_is_named() -> None:
    crashing = scripted(pages=4, at={"2": "segfaults"})
    with sandbox_of() as sandbox, opened(sandbox, crashing) as document:
        matches = document.search("text")
        assert [match.page for match in matches] == [1, 3, 4]
        assert matches.unread == (2,)
