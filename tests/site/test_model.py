"""Which pages are meant, and the shapes that results have as data."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdfpool_django.errors import InvalidRequest, PageOutOfRange
from pdfpool_django.model import Extraction, Page, PageRange, PageSelection, Request

NUMBERS = st.integers(1, 40)
PARTS = st.lists(st.tuples(NUMBERS, NUMBERS | st.none()), min_size=1, max_size=8)
END = 50


def spell(part: tuple[int, int | None]) -> str:
    first, last = part
    return f"{first}-" if last is None else f"{first}-{last}"


def ordered(parts: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    return [(a, b) if b is None else (min(a, b), max(a, b)) for a, b in parts]


def meant(parts: list[tuple[int, int | None]]) -> set[int]:
    return {n for a, b in parts for n in range(a, (END if b is None else b) + 1)}


def numbers_of(selection: PageSelection | None, page_count: int = END) -> list[int]:
    assert selection is not None
    return list(chain.from_iterable(selection.numbers(page_count)))


# Parsing


@given(PARTS)
def test_the_pages_of_a_text_are_those_of_its_ranges_once_each_and_in_order(parts: list) -> None:
    parts = ordered(parts)
    selection = PageSelection.parse(",".join(map(spell, parts)))
    assert numbers_of(selection) == sorted(meant(parts))


@given(PARTS, PARTS)
def test_two_texts_have_one_canonical_spelling_exactly_if_they_mean_the_same(
    one: list, two: list
) -> None:
    first = PageSelection.parse(",".join(map(spell, ordered(one))))
    second = PageSelection.parse(",".join(map(spell, ordered(two))))
    assert first
    assert second
    same = meant(ordered(one)) == meant(ordered(two)) and is_open(one) == is_open(two)
    assert (first.as_text() == second.as_text()) == (first == second) == same


def is_open(parts: list[tuple[int, int | None]]) -> bool:
    return any(last is None for _, last in parts)


@given(PARTS)
def test_the_canonical_spelling_is_its_own(parts: list) -> None:
    selection = PageSelection.parse(",".join(map(spell, ordered(parts))))
    assert selection
    assert PageSelection.parse(selection.as_text()) == selection


@given(st.lists(NUMBERS, min_size=1))
def test_an_iterable_means_its_numbers(numbers: list[int]) -> None:
    assert numbers_of(PageSelection.parse(iter(numbers))) == sorted(set(numbers))


@pytest.mark.parametrize(
    ("pages", "canonical"),
    [
        ("1-3,7", "1-3,7"),
        (" 1 - 3 , 7 ", "1-3,7"),
        ("7,1-3", "1-3,7"),
        ("1,2,3", "1-3"),
        ("3-3", "3"),
        ("5-", "5-"),
        ("5-,2", "2,5-"),
        ("1-4,5-", "1-"),
        ("5-,7-9", "5-"),
        ("007", "7"),
        (7, "7"),
        ([3, 1, 2, 2], "1-3"),
        (range(2, 5), "2-4"),
        ({9}, "9"),
    ],
)
def test_canonical_spellings(pages: object, canonical: str) -> None:
    selection = PageSelection.parse(pages)  # type: ignore[arg-type]
    assert selection
    assert selection.as_text() == canonical


@pytest.mark.parametrize("pages", [None, "", "  "])
def test_nothing_means_every_page(pages: str | None) -> None:
    assert PageSelection.parse(pages) is None


def test_a_selection_is_taken_as_it_is() -> None:
    selection = PageSelection((PageRange(2, 3),))
    assert PageSelection.parse(selection) is selection


@pytest.mark.parametrize(
    ("pages", "sentence"),
    [
        ("0", "There is no page 0; pages are numbered from 1."),
        ("0-3", "There is no page 0; pages are numbered from 1."),
        ("9-3", "The page range 9-3 runs backwards; write the smaller number first."),
        ("x", "“x” is not a page range; write one like “1-3,7” or “5-”."),
        ("-3", "“-3” is not a page range; write one like “1-3,7” or “5-”."),
        ("1,,2", "“” is not a page range; write one like “1-3,7” or “5-”."),
        ("1;2", "“1;2” is not a page range; write one like “1-3,7” or “5-”."),
        ("١", "“١” is not a page range; write one like “1-3,7” or “5-”."),
        ("1" * 11, f"“{'1' * 11}” is not a page range; write one like “1-3,7” or “5-”."),
        ("9" * 10, "There is no page 9999999999; pages are numbered from 1."),
        ("1," * 6000, "The page range is longer than 10000 characters; shorten it."),
        (0, "There is no page 0; pages are numbered from 1."),
        (-1, "There is no page -1; pages are numbered from 1."),
        (2**31, "There is no page 2147483648; pages are numbered from 1."),
        ([1, 0], "There is no page 0; pages are numbered from 1."),
        ([], "No page was asked for; name at least one."),
    ],
)
def test_what_is_no_page_is_refused_with_a_sentence_that_helps(
    pages: object, sentence: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        PageSelection.parse(pages)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


@pytest.mark.parametrize("pages", [True, 1.5, ["1"], [True], [1.0], [None], object()])
def test_what_cannot_name_pages_is_refused(pages: object) -> None:
    with pytest.raises(InvalidRequest, match="Pages must be given as text"):
        PageSelection.parse(pages)  # type: ignore[arg-type]


@given(st.text(max_size=30))
def test_any_text_is_a_selection_or_refused(text: str) -> None:
    try:
        selection = PageSelection.parse(text)
    except InvalidRequest:
        return
    assert selection is None or selection.numbers(2**31)


# Against a page count


def test_an_open_range_goes_to_the_end() -> None:
    assert numbers_of(PageSelection.parse("1,4-"), 6) == [1, 4, 5, 6]


@pytest.mark.parametrize(
    ("pages", "beyond"), [("4", 4), ("4-", 4), ("2-9", 9), ("1-999999999", 999999999)]
)
def test_a_page_beyond_the_end_is_out_of_range(pages: str, beyond: int) -> None:
    selection = PageSelection.parse(pages)
    assert selection
    with pytest.raises(PageOutOfRange) as caught:
        selection.numbers(3)
    assert caught.value.params == {"page": beyond, "page_count": 3}


@pytest.mark.parametrize("pages", ["1", "1-2", "2-"])
def test_a_document_without_pages_has_none_to_select(pages: str) -> None:
    selection = PageSelection.parse(pages)
    assert selection
    with pytest.raises(PageOutOfRange):
        selection.numbers(0)


def test_all_of_a_document_without_pages_is_nothing() -> None:
    selection = PageSelection.parse("1-")
    assert selection
    assert not any(selection.numbers(0))


# Shapes

PAGE = Page(
    number=2,
    label="ii",
    text="two",
    error={"code": "crashed", "detail": "It fell over."},
    warnings=({"code": "engine", "detail": "odd", "page": 2},),
)
RESULT = Extraction(
    sha256="ab" * 32,
    engine="pypdf 7",
    page_count=9,
    pages=(Page(1, "i", "one"), PAGE),
    metadata={"title": "T"},
    warnings=({"code": "engine", "detail": "odder", "page": None},),
    complete=False,
    error={"code": "busy", "detail": "Later."},
    elapsed=1.5,
)


def test_a_page_as_data() -> None:
    assert PAGE.as_dict() == {
        "number": 2,
        "label": "ii",
        "text": "two",
        "error": {"code": "crashed", "detail": "It fell over."},
        "warnings": [{"code": "engine", "detail": "odd", "page": 2}],
    }


def test_a_result_as_data() -> None:
    assert RESULT.as_dict() == {
        "version": 1,
        "sha256": "ab" * 32,
        "engine": "pypdf 7",
        "page_count": 9,
        "pages": [Page(1, "i", "one").as_dict(), PAGE.as_dict()],
        "metadata": {"title": "T"},
        "warnings": [{"code": "engine", "detail": "odder", "page": None}],
        "complete": False,
        "error": {"code": "busy", "detail": "Later."},
        "elapsed": 1.5,
    }


def test_a_results_data_is_plain_json() -> None:
    assert json.loads(json.dumps(RESULT.as_dict())) == RESULT.as_dict()


def test_a_results_text_is_its_pages_joined_by_form_feeds() -> None:
    assert RESULT.text == "one\ftwo"


@pytest.mark.parametrize(
    ("value", "name"), [(RESULT, "pages"), (PAGE, "text"), (Request("k", "c", "s"), "key")]
)
def test_values_are_frozen(value: object, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)


def test_a_requests_repr_has_no_password() -> None:
    assert "secret" not in repr(Request("k", "c", "s", password="secret"))
