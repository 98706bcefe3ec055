"""`runtime.document`: a handle that holds a slot of the pool, and its caller, while it is open."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from pdfpool_django import runtime
from pdfpool_django.backends.local_handles import _Hold
from pdfpool_django.documents import Document, sandboxes
from pdfpool_django.errors import (
    Busy,
    CallerBusy,
    Closed,
    Crashed,
    DeadlineExceeded,
    NotAPdf,
    PasswordRequired,
    Unavailable,
    WrongPassword,
)
from pdfpool_django.extraction import extract
from pdfpool_django.sandbox.host import Sandbox
from tests.handle.engine import AUTHENTICATING
from tests.handle.helpers import (
    ENGINE,
    WAITS,
    a_forked_process,
    child_at,
    go_on,
    in_a_fork,
    nothing_left,
    text_of,
)
from tests.sandbox.helpers import (
    LIMIT,
    SLACK,
    Call,
    eventually,
    open_descriptors,
    scripted,
    settle,
)
from tests.sandbox.rest import await_rest

SETTINGS = {
    "ENGINE": ENGINE,
    "SLOTS": 1,
    "QUEUE": 1,
    "WAIT": LIMIT,
    "DEADLINE": 2 * LIMIT,
    "MEMORY": 128 * 1024 * 1024,
}


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[None]:
    with override_settings(PDFPOOL=SETTINGS):
        yield


@pytest.fixture
def changed() -> Any:
    """Return what changes settings for a block; the backend is built anew in it."""
    return lambda **changes: override_settings(PDFPOOL={**SETTINGS, **changes})


@pytest.fixture(autouse=True)
def the_pool_is_free_afterwards() -> Iterator[None]:
    yield
    free()
    assert extract(script(1), caller="somebody else").text == text_of(1)
    free()
    for each in (runtime.backend()._sandbox, *sandboxes._sandboxes.values()):  # type: ignore[attr-defined]
        if each._launcher is not None:  # its next standby must not come while another test looks
            settle(each)


def script(*arguments: Any, **options: Any) -> bytes:
    """Return a document of the scripted engine, which is taken for a PDF."""
    return scripted(*arguments, header="%PDF-1.7", **options)


def opened(data: bytes | None = None, caller: str = "me", **options: Any) -> Document:
    return runtime.document(script(2) if data is None else data, caller=caller, **options)


def free() -> None:
    def idle() -> bool:
        state = runtime.state()
        return not (state.running or state.queued or state.jobs)

    eventually(idle, "no job that runs or waits")


def handles_sandbox() -> Sandbox:
    (found,) = [
        each
        for each in sandboxes._sandboxes.values()
        if each._config.engine == ENGINE and each._config.memory == SETTINGS["MEMORY"]
    ]
    return found


# While it is open


def test_it_holds_its_slot_and_its_caller_until_it_is_closed() -> None:
    with opened() as document:
        state = runtime.state()
        assert (state.running, [job.caller for job in state.jobs]) == (1, ["me"])
        with pytest.raises(CallerBusy):
            extract(script(1), caller="me")
        with pytest.raises(CallerBusy):
            opened(caller="me")
        assert document.text() == text_of(1, 2)
        assert runtime.state().running == 1
    free()
    assert extract(script(1), caller="me").complete


def test_its_slot_and_its_caller_are_free_when_it_is_closed() -> None:
    for _ in range(50):
        with opened():
            pass
        assert runtime.state().running == 0
        with pytest.raises(WrongPassword):
            opened(script(1, password="secret"), password="wrong")
        assert runtime.state().running == 0


def test_others_wait_for_it_and_come_next() -> None:
    with opened() as document:
        second = Call(opened, caller="another")
        eventually(lambda: runtime.state().queued == 1, "one that waits")
        with pytest.raises(Busy):
            opened(caller="a third")
        with pytest.raises(Busy):
            extract(script(1), caller="a fourth")
        assert document.page(1).text() == text_of(1)
    with second.result() as document:
        assert document.page(2).text() == text_of(2)
        assert runtime.state().running == 1


def test_two_handles_of_one_document_are_two(changed: Any) -> None:
    with changed(SLOTS=2), opened(caller="a") as one, opened(caller="b") as other:
        assert runtime.state().running == 2
        one.close()
        assert other.text() == text_of(1, 2)


def test_it_reads_as_any_other_does() -> None:
    opened().close()
    free()
    pool_is_without_threads()
    sandbox = handles_sandbox()
    with nothing_left(sandbox):
        with opened(script(2, {1: WAITS, 2: WAITS})) as document:
            mapping = Call(lambda: list(document.map(lambda page: page.text())))
            assert child_at(sandbox, 1) != child_at(sandbox, 2)
            go_on(sandbox, 1, 2)
            assert mapping.result() == [text_of(1), text_of(2)]
        free()
        pool_is_without_threads()


def pool_is_without_threads() -> None:
    def gone() -> bool:
        return not any(each.name.startswith("pdfpool-job") for each in threading.enumerate())

    eventually(gone, "no thread of a job")


def test_a_locked_one_is_open_until_it_is_closed() -> None:
    with opened(script(1, password="secret")) as document:
        with pytest.raises(PasswordRequired):
            document.text()
        assert runtime.state().running == 1
        assert document.authenticate("secret")
        assert document.text() == text_of(1)
    with opened(script(1, password="secret"), password="secret", workers=1) as document:
        assert document.text() == text_of(1)


# How it is given back


def test_one_that_is_collected_gives_its_slot_back() -> None:
    found = [opened()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found.clear()
        gc.collect()
    assert [each.category for each in caught] == [ResourceWarning]
    free()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (script(1, {0: "segfaults"}), Crashed),
        (script(1, password="secret"), WrongPassword),
        (b"no document", NotAPdf),
    ],
)
def test_one_that_cannot_be_opened_gives_its_slot_back(data: bytes, error: Any) -> None:
    with pytest.raises(error):
        opened(data, password="wrong")
    free()


def test_without_workers_it_is_not_opened() -> None:
    with pytest.raises(ValueError, match="workers"):
        opened(workers=0)
    free()


def test_a_process_forked_meanwhile_does_not_keep_the_slot() -> None:
    document = opened()
    with a_forked_process():
        document.close()
        free()


def test_closing_it_in_a_forked_process_keeps_the_slot() -> None:
    with opened() as document:
        assert in_a_fork(document.close) is None
        assert runtime.state().running == 1
        assert document.text() == text_of(1, 2)


# Waiting for a slot


def test_a_time_that_is_up_leaves_nothing() -> None:
    with opened() as document:
        for timeout in (0.05, 0):
            with pytest.raises(TimeoutError):
                opened(caller="another", timeout=timeout)
        assert (runtime.state().queued, runtime.state().running) == (0, 1)
        gc.collect()
        assert document.text() == text_of(1, 2)
        document.close()
        free()
        opened(caller="another", timeout=LIMIT).close()


def test_a_slot_that_does_not_come_free_in_time_is_busy(changed: Any) -> None:
    with changed(WAIT=0.1), opened():
        with pytest.raises(Busy) as caught:
            opened(caller="another")
        assert caught.value.retry_after is not None
        assert runtime.state().queued == 0
        assert runtime.state().refusals == {"busy": 1}


def test_refusals_leave_no_descriptor() -> None:
    extract(script(1), caller="me")  # so that the pool has its launcher, too
    with opened():
        await_rest()
        before = open_descriptors()
        for _ in range(5):
            with pytest.raises(CallerBusy):
                opened()
            with pytest.raises(TimeoutError):
                opened(caller="another", timeout=0)
        gc.collect()
        assert open_descriptors() == before


def test_a_waiter_that_goes_in_the_instant_of_its_grant_frees_the_slot() -> None:
    hold = _Hold(LIMIT)
    hold.end()
    published: list[str] = []

    class Job:
        publish = staticmethod(published.append)

    call = Call(hold.run, Job())
    assert call.error(1.0) is None
    assert published == []
    gc.collect()


# The end of its time


def test_it_is_closed_when_its_time_is_over(changed: Any) -> None:
    with changed(DEADLINE=0.6, PAGE_DEADLINE=0.5):
        opened().close()  # the launcher is there
        free()
        started = time.monotonic()
        document = opened(script(2, {1: "hangs"}))
        eventually(lambda: document.closed, "it closed")
        assert 0.6 <= time.monotonic() - started < 0.6 + SLACK
        with pytest.raises(Closed):
            document.text()
        free()
        document.close()


def test_calls_in_flight_then_raise_closed(changed: Any) -> None:
    with changed(DEADLINE=1.0, PAGE_DEADLINE=1.0):
        opened().close()
        free()
        document = opened(script(1, {1: "hangs"}, authenticating="hangs"))
        time_left = threading.Event()
        time_left.wait(0.3)  # so that the read's own time is up later than the handle's
        assert type(Call(document.page(1).text).error()) is Closed
        free()


def test_one_whose_time_is_over_when_it_is_open_is_closed() -> None:
    hold = _Hold(0.01)

    class Job:
        publish = staticmethod(lambda event: None)

    Call(hold.run, Job()).result()
    with opened() as document:
        hold.keep(document)
        assert document.closed
    hold.end()
    gc.collect()


def test_opening_takes_no_longer_than_its_time(changed: Any) -> None:
    with changed(DEADLINE=0.5, PAGE_DEADLINE=0.5):
        opened().close()
        free()
        with pytest.raises((DeadlineExceeded, Closed)):
            opened(script(1, {0: "hangs"})).text()
        free()


# The end of the process


def test_closing_the_runtime_ends_every_handle(changed: Any) -> None:
    with changed(SLOTS=2):
        documents = [
            opened(script(1, {1: WAITS}), caller="a"),
            opened(script(1, {1: "hangs"}), caller="b"),
        ]
        sandbox = handles_sandbox()
        reads = [Call(document.page(1).text) for document in documents]
        child_at(sandbox, 1)
        runtime.close()
        assert [type(read.error()) for read in reads] == [Closed] * 2
        assert [document.closed for document in documents] == [True] * 2
        assert runtime.state().running == 0
        with pytest.raises(Unavailable):
            opened(caller="c")


def test_a_handle_in_its_grace_reads_on(changed: Any) -> None:
    with changed(SLOTS=2):
        document = opened(script(1, {1: WAITS}))
        sandbox = handles_sandbox()
        reading = Call(document.page(1).text)
        child_at(sandbox, 1)
        closing = Call(runtime.close, LIMIT)
        eventually(lambda: not runtime.state().available, "shutting down")
        go_on(sandbox, 1)
        assert reading.result() == text_of(1)
        document.close()
        closing.result()


def test_one_that_is_opened_while_the_runtime_closes_is_ended_too(changed: Any) -> None:
    with changed():
        opened().close()
        free()
        opening = Call(
            opened, script(1, password="secret", authenticating=WAITS), password="secret"
        )
        sandbox = handles_sandbox()
        child_at(sandbox, AUTHENTICATING)
        runtime.close()
        go_on(sandbox, AUTHENTICATING)
        document = opening.result()
        assert document.closed
        with pytest.raises(Closed):
            document.text()
