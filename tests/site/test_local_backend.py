"""The backend of this process: what its faults are to those who ask, and what it estimates."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from pdfpool_django import documents, errors, runtime
from pdfpool_django.backends.local import LocalBackend
from pdfpool_django.extraction import extract, stream
from tests.sandbox.helpers import open_descriptors
from tests.site.asking import Ask
from tests.site.helpers import (
    assert_reads_on,
    await_children,
    await_idle,
    hanging,
    script,
)

pytestmark = pytest.mark.usefixtures("scripts")

FAULTS = {
    "no descriptor left": (OSError(24, "Too many open files"), errors.Unavailable),
    "a bug": (ZeroDivisionError("of ours"), errors.InternalError),
    "an exit": (SystemExit("an exit of ours"), errors.InternalError),
}


@pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_ours_is_logged_and_told_without_its_words(
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: BaseException,
    error: type[errors.PdfPoolError],
) -> None:
    def fail(*args: Any, **options: Any) -> NoReturn:
        raise fault

    monkeypatch.setattr(documents, "read", fail)
    with pytest.raises(error) as caught:
        ask(script("unlucky"), caller="a")
    monkeypatch.undo()
    assert type(caught.value) is error
    assert str(fault) not in str(caught.value)
    assert str(fault) in caplog.text
    levels = {each.levelno for each in caplog.records if each.name == "pdfpool_django.backends"}
    assert levels == {logging.ERROR}
    if isinstance(caught.value, errors.InternalError):
        assert caught.value.reference in caplog.text
    assert_reads_on()


def test_every_caller_of_a_shared_job_gets_an_error_of_its_own() -> None:
    document = hanging("shared")
    with stream(document, caller="a") as first, stream(document, caller="b") as second:
        await_children()
        runtime.close()
        found = [error_of(first), error_of(second)]
    assert [type(error) for error in found] == [errors.Unavailable] * 2
    assert found[0] is not found[1]


def error_of(pages: Any) -> errors.PdfPoolError:
    with pytest.raises(errors.PdfPoolError) as caught:
        list(pages)
    return caught.value


@pytest.fixture
def busy() -> Iterator[LocalBackend]:
    """A backend whose two slots are taken."""
    streams = [stream(hanging(caller), caller=caller) for caller in "ab"]
    await_children(2)
    backend = runtime.backend()
    assert isinstance(backend, LocalBackend)
    yield backend
    for each in streams:
        each.close()
    await_idle()


def retry_after() -> float:
    with pytest.raises(errors.CallerBusy) as caught:
        extract(script("another"), caller="a")
    assert caught.value.retry_after is not None
    return caught.value.retry_after


def test_when_to_come_back_is_whole_seconds(busy: LocalBackend) -> None:
    busy._durations.clear()
    busy._durations.append(2.5)
    assert retry_after() == 2  # with two slots
    busy._durations.extend([0.01, 0.01])
    assert retry_after() == 1


def test_when_to_come_back_is_estimated_from_recent_jobs_slots_and_queue(
    busy: LocalBackend,
) -> None:
    busy._durations.clear()
    busy._durations.extend([1, 8, 90])
    assert math.isclose(retry_after(), 4.0)
    with stream(script("queued"), caller="c"):
        assert math.isclose(retry_after(), 8.0)


def test_when_to_come_back_is_known_before_any_job_has_ended(busy: LocalBackend) -> None:
    busy._durations.clear()
    assert 0 < retry_after() < 10


def test_a_refused_document_is_closed(busy: LocalBackend) -> None:
    before = open_descriptors().count("/memfd")
    retry_after()
    with stream(hanging("b"), caller="d"):  # which joins
        assert open_descriptors().count("/memfd") == before


def test_a_repr_tells_how_busy_it_is(busy: LocalBackend) -> None:
    assert repr(busy) == "<LocalBackend <Pool running=2/2 queued=0/1>>"
