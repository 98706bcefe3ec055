"""Damaged files: the same for the same number, damaged indeed, and past the outer layers."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pypdf import PdfReader

from scripts.fuzz import anatomy, mutations
from scripts.fuzz.seeds import BUNDLED, Seeds
from scripts.hostile_builder import KINDS
from scripts.pdf_builder import simple_pdf

SAMPLE = BUNDLED[0].read_bytes()
RICH = next(kind.build() for kind in KINDS if kind.name.startswith("CJK: a CMap of its own, of"))
WAYS = sorted(set(mutations.MUTATIONS), key=lambda each: each.__name__)
PLAIN = simple_pdf("first words", "second words")


def text_of(data: bytes) -> str:
    reader = PdfReader(io.BytesIO(data), strict=True)
    return "".join(page.extract_text() for page in reader.pages)


@pytest.fixture(scope="module")
def seeds() -> Seeds:
    return Seeds()


def test_an_inputs_number_says_all_of_it(seeds: Seeds) -> None:
    again = Seeds()
    for number in range(60):
        assert seeds.input(number) == again.input(number)


def test_inputs_are_many_different_ones(seeds: Seeds) -> None:
    inputs = [seeds.input(number) for number in range(300)]
    assert len({each.data for each in inputs}) > 290
    assert len({each.name for each in inputs}) > 60


def test_more_files_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "own.pdf").write_bytes(PLAIN)
    (tmp_path / "large.pdf").write_bytes(PLAIN + b"%" * 400_000)
    names = {Seeds([tmp_path]).input(number).name for number in range(60)}
    assert "own.pdf" in names
    assert "large.pdf" not in names


@pytest.mark.parametrize("change", WAYS, ids=lambda each: each.__name__)
def test_each_way_damages(change: mutations.Mutation) -> None:
    changed = [change(RICH, random.Random(seed)) for seed in range(20)]
    assert sum(each != RICH for each in changed) >= 15
    assert len(set(changed)) >= 4


@pytest.mark.parametrize("change", WAYS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("data", [b"", b"%", b"%PDF-1.7\n", b"no pdf at all", b"1 0 obj endobj"])
def test_no_way_needs_a_sound_file(change: mutations.Mutation, data: bytes) -> None:
    for seed in range(10):
        assert isinstance(change(data, random.Random(seed)), bytes)


@pytest.mark.parametrize("change", [anatomy.deflated, anatomy.packed, anatomy.with_table])
def test_what_is_written_anew_is_still_read(change: object) -> None:
    assert callable(change)
    changed = change(PLAIN)
    assert changed != PLAIN
    assert text_of(changed) == text_of(PLAIN)


def test_a_file_can_be_packed() -> None:
    packed = anatomy.packed(SAMPLE)
    assert b"/ObjStm" in packed
    assert b"\nxref" not in packed
    assert text_of(packed) == text_of(SAMPLE)


def contents(data: bytes) -> Iterator[bytes]:
    for part in anatomy.parts(data):
        found = anatomy.stream(part.body)
        if found is not None:
            yield zlib.decompress(found.data)


def test_what_is_within_a_stream_is_damaged_and_can_still_be_inflated() -> None:
    sound = anatomy.deflated(PLAIN)
    before = list(contents(sound))
    for seed in range(30):
        after = list(contents(mutations.within_stream(sound, random.Random(seed))))
        assert len(after) == len(before)
        assert sum(mine != other for mine, other in zip(before, after, strict=True)) <= 1
    # And is of the length that it says, or every one would be read by way of repairs.
    damaged = mutations.within_stream(sound, random.Random(1))
    for part in anatomy.parts(damaged):
        found = anatomy.stream(part.body)
        if found is not None:
            assert b"/Length %d" % len(found.data) in found.before


def test_a_moved_object_is_found_by_the_mended_table() -> None:
    moved = PLAIN.replace(b"1 0 obj", b"%" * 100 + b"\n1 0 obj", 1)
    assert text_of(anatomy.with_table(moved)) == text_of(PLAIN)


def test_half_of_the_damaged_files_are_still_opened() -> None:
    """Else the campaign would try little but the refusals."""
    opened = 0
    for seed in range(60):
        try:
            data = mutations.mutated(SAMPLE, random.Random(seed))
            opened += len(PdfReader(io.BytesIO(data)).pages) > 0
        except Exception:
            continue
    assert opened >= 30
