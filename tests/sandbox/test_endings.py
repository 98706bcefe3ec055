"""Whatever a document does to its child has its own error, and nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import pytest

from pdfpool_django import errors
from pdfpool_django.sandbox.host import Sandbox
from tests.sandbox.helpers import (
    LIMIT,
    LIMITS,
    SLACK,
    Watch,
    codes,
    limits,
    make_sandbox,
    open_descriptors,
    processes_under,
    read,
    sandbox_of,
    scripted,
    settle,
)

GOOD = scripted(2)


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """A sandbox that must be as good afterwards as it was before."""
    assert read(shared, GOOD).complete
    settle(shared)
    launcher, before = shared.stats().launcher_pid, open_descriptors()
    yield shared
    extraction = read(shared, GOOD)
    assert extraction.text == "text of page 1\ftext of page 2"
    assert extraction.complete
    settle(shared)
    assert shared.stats().launcher_pid == launcher
    assert open_descriptors() == before
    assert "Z" not in processes_under(os.getpid()).values()


ENDINGS = {
    "eats_memory": (errors.MemoryExceeded, ""),
    "eats_native_memory": (errors.MemoryExceeded, ""),
    "eats_mapped_memory": (errors.MemoryExceeded, ""),
    "eats_memory_in_zlib": (errors.MemoryExceeded, ""),
    "wraps_memory_error": (errors.MemoryExceeded, ""),
    "has_no_memory_to_say_so": (errors.MemoryExceeded, ""),
    "hides_memory_error": (errors.MemoryExceeded, ""),
    "aborts": (errors.MemoryExceeded, ""),
    "is_killed": (errors.MemoryExceeded, ""),
    "uses_up_processor_time": (errors.DeadlineExceeded, ""),
    "segfaults": (errors.Crashed, "SIGSEGV"),
    "gets_bus_error": (errors.Crashed, "SIGBUS"),
    "exits_silently": (errors.Crashed, "status 0"),
    "exits_with_3": (errors.Crashed, "status 3"),
    "raises_system_exit": (errors.Crashed, "SystemExit"),
    "answers_garbage": (errors.Crashed, "made no sense"),
    "answers_half_a_frame": (errors.Crashed, "status 0"),
    "claims_huge_head": (errors.Crashed, "made no sense"),
    "says_another_type": (errors.Crashed, "made no sense"),
    "ends_early": (errors.Crashed, "made no sense"),
    "says_template_bomb": (errors.Crashed, "made no sense"),
    "raises_value_error": (errors.InvalidPdf, "ValueError: no such operator"),
    "raises_without_text": (errors.InvalidPdf, "WithoutTextError"),
    "recurses": (errors.InvalidPdf, "RecursionError"),
}


@pytest.mark.parametrize("page", [0, 1], ids=["opening", "page"])
@pytest.mark.parametrize("does", ENDINGS)
def test_each_misbehaviour_has_its_own_error(sandbox: Sandbox, does: str, page: int) -> None:
    expected, detail = ENDINGS[does]
    started = time.monotonic()
    with pytest.raises(expected) as caught:
        read(sandbox, scripted(1, {page: does}))
    assert type(caught.value) is expected
    assert detail in str(caught.value)
    assert time.monotonic() - started < LIMITS.deadline / 4


@pytest.mark.parametrize("page", [0, 1], ids=["opening", "page"])
@pytest.mark.parametrize("does", ["hangs", "spins", "answers_half_a_frame_and_hangs"])
def test_a_deadline_is_kept_whatever_the_child_does(sandbox: Sandbox, does: str, page: int) -> None:
    started = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded, match=r"0\.3 seconds"):
        read(sandbox, scripted(1, {page: does}), limits(deadline=0.3))
    assert 0.3 <= time.monotonic() - started < 0.3 + SLACK


def test_a_deadline_is_kept_while_an_answer_trickles_in(sandbox: Sandbox) -> None:
    started = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        read(sandbox, scripted(1, {1: "trickles"}), limits(deadline=0.3))
    assert time.monotonic() - started < 0.3 + SLACK


def test_processor_time_is_bounded_by_the_kernel_too() -> None:
    # Both deadlines are far: it is the child's own limit that ends it.
    with sandbox_of(cpu=0.5) as sandbox, pytest.raises(errors.DeadlineExceeded):
        read(sandbox, scripted(1, {1: "spins"}))


@pytest.mark.parametrize("does", ["claims_huge_body", "gives_much_text"])
def test_more_output_than_allowed_is_refused_before_it_is_taken_in(
    sandbox: Sandbox, does: str
) -> None:
    with pytest.raises(errors.OutputTooLarge, match="1000 bytes"):
        read(sandbox, scripted(1, {1: does}), limits(max_output=1000))


def test_a_page_that_dies_of_a_small_limit_is_read_with_a_larger_one() -> None:
    with sandbox_of(memory=64 * 1024 * 1024) as small, pytest.raises(errors.MemoryExceeded):
        read(small, scripted(1, {1: "piles_up_memory"}))
    with sandbox_of() as larger:
        assert read(larger, scripted(1, {1: "piles_up_memory"})).complete


def test_a_child_is_counted_under_what_it_was_ended_for() -> None:
    with sandbox_of() as sandbox:
        for does, deadline in (("", 60), ("hangs", 0.3), ("segfaults", 60), ("exits_with_3", 60)):
            with contextlib.suppress(errors.PdfPoolError):
                read(sandbox, scripted(1, {1: does}), limits(deadline=deadline))
        settle(sandbox)
        sandbox.release(sandbox.child(time.monotonic() + LIMIT))
        stopped = sandbox.child(time.monotonic() + LIMIT)
        stopped.kill()
        sandbox.release(stopped)
        settle(sandbox)
        assert sandbox.stats().endings == {
            "done": 2,
            "deadline_exceeded": 1,
            "SIGSEGV": 1,
            "status 3": 1,
            "stopped": 1,
        }
        assert not sandbox._launcher._released


def test_a_child_that_gets_over_a_memory_error_is_believed(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(2, {1: "goes_on_without_memory"}))
    assert extraction.complete
    assert extraction.text == "went on\ftext of page 2"


def test_what_floods_standard_error_is_read(sandbox: Sandbox) -> None:
    extraction = read(sandbox, scripted(3, {2: "floods_stderr"}))
    assert extraction.complete
    assert extraction.text == "text of page 1\ftext of page 2\ftext of page 3"


@pytest.fixture
def unfiltered() -> Iterator[Sandbox]:
    """A sandbox as on a host that cannot filter system calls."""
    with sandbox_of(filtered=False) as sandbox:
        yield sandbox


def test_a_child_that_leaves_a_process_behind_ends_all_the_same(unfiltered: Sandbox) -> None:
    with pytest.raises(errors.Crashed, match="status 7"):
        read(unfiltered, scripted(1, {1: "leaves_a_grandchild"}))


def test_a_grandchild_goes_with_its_child(unfiltered: Sandbox) -> None:
    with Watch() as watch:

        def follow(event: object) -> None:
            text = getattr(event, "text", "")
            if text.isdigit():
                watch.add(int(text))

        extraction = read(unfiltered, scripted(1, {1: "forks_a_grandchild"}), publish=follow)
        assert extraction.text.isdigit()
        watch.await_ends()


def test_a_child_can_write_no_file_and_win_no_right(sandbox: Sandbox, unfiltered: Sandbox) -> None:
    for each in (sandbox, unfiltered):
        assert read(each, scripted(1, {1: "tries_to_write"})).text == ""


def test_misbehaviour_in_the_middle_costs_one_page(sandbox: Sandbox) -> None:
    for does in ("eats_memory", "segfaults", "exits_silently"):
        extraction = read(sandbox, scripted(5, {3: does}))
        assert codes(extraction)[:2] == codes(extraction)[3:] == [None, None]
        assert codes(extraction)[2] == ENDINGS[does][0].code
        assert not extraction.complete
        assert extraction.error is None
