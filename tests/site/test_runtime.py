"""The process-wide backend: when it is built, when it is forgotten, and how it ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from pdfpool_django import conf, errors, runtime
from pdfpool_django.extraction import extract, stream, submit
from pdfpool_django.model import DocumentInfo
from tests.sandbox.helpers import LIMIT, Call, codes, eventually, run_program, watching
from tests.site.helpers import (
    SAMPLE,
    SCRIPTED,
    TEXTS,
    assert_reads_on,
    await_children,
    hanging,
    release,
    script,
    scripted,
    waiting,
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No backend at first, and no closed one left."""
    runtime.reset()
    yield
    runtime.reset()


def launcher_pid() -> int:
    pid = runtime.state().details["launcher_pid"]
    assert pid is not None
    return int(pid)


# Building


def test_asking_for_the_state_builds_a_backend_and_starts_nothing() -> None:
    threads = set(threading.enumerate())
    state = runtime.state()
    assert state.available
    assert (state.running, state.queued) == (0, 0)
    assert state.details["launcher_pid"] is None
    assert set(threading.enumerate()) <= threads


def test_one_backend_is_kept() -> None:
    assert runtime.backend() is runtime.backend()


def test_threads_that_come_first_at_once_get_one_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    barrier, load = threading.Barrier(4), conf.load

    def load_together() -> conf.Config:
        barrier.wait(LIMIT)  # by now, each has seen that there is no backend
        return load()

    monkeypatch.setattr(conf, "load", load_together)
    backends = [call.result() for call in [Call(runtime.backend) for _ in range(4)]]
    assert all(backend is runtime.backend() for backend in backends)


def test_importing_and_setting_up_builds_nothing() -> None:
    out = run_site("print(len(runtime._backends), threading.active_count())")
    assert out == "0 1\n"


def test_wrong_settings_are_told_to_who_comes_first() -> None:
    with override_settings(PDFPOOL={"SLOTS": 0}), pytest.raises(ImproperlyConfigured) as caught:
        extract(SAMPLE, caller="a")
    assert "PDFPOOL['SLOTS'] must be at least 1, but is 0." in str(caught.value)
    assert extract(SAMPLE, caller="a").page_count == 3


def test_the_settings_reach_the_backend() -> None:
    with scripted(SLOTS=3, QUEUE=5):
        state = runtime.state()
    assert (state.slots, state.queue) == (3, 5)


# Forgetting


def test_changed_settings_end_the_backend_and_build_another() -> None:
    extract(SAMPLE, caller="a")
    first = runtime.backend()
    with watching(launcher_pid()) as watch, scripted():
        watch.await_ends()
        assert runtime.backend() is not first
        assert_reads_on()
    assert extract(SAMPLE, caller="a").text.startswith(TEXTS[0])


def test_other_settings_change_nothing() -> None:
    first = runtime.backend()
    with override_settings(LANGUAGE_CODE="de"):
        assert runtime.backend() is first


SITE = """
import os, sys, threading
os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
import django
django.setup()
from pdfpool_django import runtime
from pdfpool_django.extraction import extract
from scripts.pdf_builder import simple_pdf
DATA = simple_pdf("a page")
"""

FORK = """
assert extract(DATA, caller="a").complete
parent = runtime.backend()
if (pid := os.fork()) == 0:
    assert not runtime._backends
    assert extract(DATA, caller="a").complete
    assert runtime.backend() is not parent
    print(runtime.state().details["launcher_pid"], flush=True)
    runtime.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert runtime.backend() is parent
assert extract(DATA, caller="a").complete
print(runtime.state().details["launcher_pid"], flush=True)
"""


def run_site(source: str) -> str:
    return run_program(SITE + source)


def test_a_forked_process_builds_its_own_and_its_parents_goes_on() -> None:
    child, parent = run_site(FORK).split()
    assert child != parent


def test_a_process_that_ends_takes_its_launcher_along() -> None:
    out = run_site(
        "extract(DATA, caller='a'); print(runtime.state().details['launcher_pid'], flush=True)"
    )
    eventually(lambda: not Path(f"/proc/{int(out)}").exists(), "the launcher's end")


# Closing


@pytest.fixture
def scripts() -> Iterator[None]:
    with scripted(SLOTS=1):
        yield


@pytest.mark.usefixtures("scripts")
def test_closing_gives_a_running_job_its_grace_and_refuses_another() -> None:
    running = Call(extract, waiting("running"), caller="a")
    (pid,) = await_children()
    closing = Call(runtime.close, grace=LIMIT)
    eventually(lambda: not runtime.state().available, "the closing")
    assert runtime.state().reason == "shutting down"
    with pytest.raises(errors.Unavailable) as caught:
        extract(script("late"), caller="b")
    assert caught.value.retry_after
    release(pid)
    assert running.result().complete
    closing.result()


@pytest.mark.usefixtures("scripts")
def test_a_running_job_can_be_joined_while_closing() -> None:
    document = waiting("running")
    running = Call(extract, document, caller="a")
    (pid,) = await_children()
    closing = Call(runtime.close, grace=LIMIT)
    eventually(lambda: not runtime.state().available, "the closing")
    joined = Call(extract, document, caller="b")
    eventually(lambda: runtime.state().details["joined"] == 1, "one that joined")
    release(pid)
    assert joined.result() == running.result()
    closing.result()


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("grace", [0, 0.2])
def test_closing_kills_what_its_grace_does_not_end_and_tells_the_caller(grace: float) -> None:
    running = Call(extract, hanging("running"), caller="a")
    (pid,) = await_children()
    with watching(launcher_pid(), pid) as watch:
        runtime.close(grace)
        watch.await_ends()
    assert type(running.error()) is errors.Unavailable


@pytest.mark.usefixtures("scripts")
def test_pages_that_were_read_before_the_killing_are_kept() -> None:
    pages = stream(hanging("running", pages=3, at=2), caller="a")
    assert next(pages).number == 1
    runtime.close()
    assert [page.number for page in pages] == [2, 3]
    assert codes(pages.extraction) == [None, "not_attempted", "not_attempted"]
    assert pages.extraction.error
    assert pages.extraction.error["code"] == "unavailable"


@pytest.mark.usefixtures("scripts")
def test_closing_tells_those_in_the_queue_at_once() -> None:
    with submit(hanging("running"), caller="a") as running:
        # It is open then: a child that is killed before has its document opened by another.
        assert isinstance(next(running.events(LIMIT)), DocumentInfo)
        (pid,) = await_children()
        queued = Call(extract, script("queued"), caller="b")
        eventually(lambda: runtime.state().queued == 1, "one in the queue")
        closing = Call(runtime.close, grace=LIMIT)
        assert type(queued.error()) is errors.Unavailable
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(errors.MemoryExceeded):
            running.result(LIMIT)
        closing.result()


@pytest.mark.usefixtures("scripts")
def test_closing_twice_or_idle_does_nothing_more() -> None:
    assert_reads_on()
    with watching(launcher_pid()) as watch:
        runtime.close()
        watch.await_ends()
    runtime.close(grace=LIMIT)
    with pytest.raises(errors.Unavailable):
        extract(script("late"), caller="a")


def test_closing_before_first_use_refuses_all_that_follows() -> None:
    runtime.close(grace=LIMIT)
    with pytest.raises(errors.Unavailable):
        extract(SAMPLE, caller="a")
    assert runtime.state().details["launcher_pid"] is None


def test_a_launcher_that_cannot_start_is_unavailable() -> None:
    with (
        override_settings(PDFPOOL={**SCRIPTED, "PYTHON": "/no/such/python"}),
        pytest.raises(errors.Unavailable),
    ):
        extract(SAMPLE, caller="a")
