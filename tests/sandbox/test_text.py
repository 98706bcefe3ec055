"""Text that other systems take."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdfpool_django.text import clean, clean_line

RELAXED = settings(max_examples=50, deadline=None)

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
NASTY_TEXT = st.text(
    st.sampled_from("a\x00\x07\t\n\r\x0b\x0c\x1f\x7f\x85\x9f\ud83d\ude00\ufffe\uffff")
)


@RELAXED
@given(ANY_TEXT | NASTY_TEXT)
def test_clean_text_is_valid_and_has_no_control_characters(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    controls = {each for each in cleaned if unicodedata.category(each) in ("Cc", "Cs")}
    assert controls <= {"\t", "\n"}
    assert not {"\ufffe", "\uffff"} & set(cleaned)


@RELAXED
@given(ANY_TEXT | NASTY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@RELAXED
@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"])))
def test_clean_text_is_left_alone(text: str) -> None:
    assert clean(text) == text


@RELAXED
@given(ANY_TEXT)
def test_a_lone_half_of_a_surrogate_pair_costs_one_character(text: str) -> None:
    halves = clean(f"<\ud83d>{text}<\ude00>")
    assert halves.startswith("<\N{REPLACEMENT CHARACTER}>")
    assert halves.endswith("<\N{REPLACEMENT CHARACTER}>")


@RELAXED
@given(st.text(st.characters(min_codepoint=0x10000, exclude_categories=["Cn"])))
def test_halves_of_a_surrogate_pair_are_joined(text: str) -> None:
    data = text.encode("utf-16-le")
    halves = "".join(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))
    assert clean(halves) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\nb\rc\x85d\n", "a\nb\nc\nd\n"),
        ("a\x00b", "ab"),
        ("a\tb", "a\tb"),
        ("\ude00\ud83d", "\N{REPLACEMENT CHARACTER}" * 2),
        ("page\x0cbreak", "pagebreak"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert clean(text) == expected


@RELAXED
@given(ANY_TEXT | NASTY_TEXT, st.integers(0, 50))
def test_a_clean_line_is_one_short_line(text: str, limit: int) -> None:
    line = clean_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    line.encode("utf-8")


def test_a_clean_line_keeps_its_words() -> None:
    assert clean_line(" two\n\twords ", 100) == "two words"
    assert clean_line("two words", 5) == "two w"
