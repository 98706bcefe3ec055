"""What every backend must do, whatever it runs requests with.

A subclass of `Conformance` says how a backend is made and what its documents
are; tests that only one backend can pass have no place here.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pdfpool_django import errors
from pdfpool_django.backends.base import Backend, BackendConfig, Problem, Run
from pdfpool_django.model import DocumentInfo, Event, Limits, Page, PageSelection, Request
from pdfpool_django.sandbox.descriptors import Descriptor, from_bytes
from tests.sandbox.helpers import LIMIT, MEMORY, Call, codes, eventually

CONFIG = BackendConfig(
    slots=2,
    queue=1,
    limits=Limits(deadline=LIMIT, page_deadline=LIMIT, memory=MEMORY),
    engine="tests.engines.scripted",
)
TEXTS = ["text of page 1", "text of page 2", "text of page 3"]


def request_for(data: bytes, caller: str = "a", pages: str | None = None) -> Request:
    sha256 = hashlib.sha256(data).hexdigest()
    return Request(f"{sha256} {pages}", caller, sha256, PageSelection.parse(pages), "a secret")


class Conformance:
    """The tests; each gets a backend of its own, as the fixture `backend`."""

    READABLE: bytes
    """A document of three pages, whose texts are `TEXTS`."""
    DAMAGED: bytes
    """The same, but that page 2 is `crashed`."""
    HANGING: bytes
    """A document whose one page never ends."""

    def make(self, config: BackendConfig) -> Backend:
        raise NotImplementedError

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        backend = self.make(CONFIG)
        yield backend
        backend.close()

    @pytest.fixture
    def submit(self, backend: Backend) -> Iterator[Callable[..., Run]]:
        """Submits a document; what has not been left after the test is then."""
        runs: list[Run] = []

        def submit(data: bytes, **options: Any) -> Run:
            runs.append(backend.submit(request_for(data, **options), from_bytes(data)))
            return runs[-1]

        yield submit
        for run in runs:
            run.leave()

    # A run

    def test_making_one_starts_nothing(self) -> None:
        threads, children = set(threading.enumerate()), child_processes()
        backend = self.make(CONFIG)
        assert backend.state().available
        assert set(threading.enumerate()) <= threads
        assert child_processes() <= children
        backend.close()

    def test_a_run_yields_what_the_document_is_then_its_pages_then_the_result(
        self, submit: Callable[..., Run]
    ) -> None:
        run = submit(self.READABLE)
        assert run.started
        info, *pages = run.events(LIMIT)
        result = run.result(LIMIT)
        assert isinstance(info, DocumentInfo)
        assert (info.page_count, info.selected) == (3, 3)
        assert info.sha256 == hashlib.sha256(self.READABLE).hexdigest()
        assert tuple(pages) == result.pages
        assert [page.text for page in result.pages] == TEXTS
        assert [page.number for page in result.pages] == [1, 2, 3]
        assert (result.sha256, result.engine) == (info.sha256, info.engine)
        assert (result.page_count, result.metadata) == (info.page_count, info.metadata)
        assert (result.complete, result.error) == (True, None)

    def test_the_result_needs_no_events_and_both_can_be_had_again(
        self, submit: Callable[..., Run]
    ) -> None:
        run = submit(self.READABLE)
        assert run.result(LIMIT) == run.result(LIMIT)
        assert texts(run.events(LIMIT)) == texts(run.events(LIMIT)) == TEXTS

    async def test_async_callers_have_the_same(self, submit: Callable[..., Run]) -> None:
        run = submit(self.READABLE)
        events = [event async for event in run.aevents(LIMIT)]
        assert events == list(run.events(LIMIT))
        assert await run.aresult(LIMIT) == run.result(LIMIT)

    def test_many_read_one_run_at_once(self, submit: Callable[..., Run]) -> None:
        run = submit(self.READABLE)
        calls = [Call(lambda: list(run.events(LIMIT))) for _ in range(4)]
        assert all(texts(call.result()) == TEXTS for call in calls)

    @pytest.mark.parametrize(("pages", "chosen"), [("2", [2]), ("2-", [2, 3]), ("3,1", [1, 3])])
    def test_only_the_pages_asked_for_are_given(
        self, submit: Callable[..., Run], pages: str, chosen: list[int]
    ) -> None:
        run = submit(self.READABLE, pages=pages)
        result, (info, *_) = run.result(LIMIT), run.events(LIMIT)
        assert [page.number for page in result.pages] == chosen
        assert isinstance(info, DocumentInfo)
        assert info.selected == len(chosen)
        assert result.page_count == 3
        assert result.complete

    def test_a_page_beyond_the_end_is_an_error(self, submit: Callable[..., Run]) -> None:
        run = submit(self.READABLE, pages="2-9")
        assert list(run.events(LIMIT)) == []
        with pytest.raises(errors.PageOutOfRange, match="Page 9 does not exist"):
            run.result(LIMIT)

    def test_a_page_that_is_lost_leaves_the_others(self, submit: Callable[..., Run]) -> None:
        result = submit(self.DAMAGED).result(LIMIT)
        assert codes(result) == [None, "crashed", None]
        assert not result.complete
        assert result.error is None
        assert submit(self.DAMAGED, pages="1,3").result(LIMIT).complete

    def test_where_no_page_could_be_read_the_page_error_is_raised(
        self, submit: Callable[..., Run]
    ) -> None:
        run = submit(self.DAMAGED, pages="2")
        found = [error_of(run), error_of(run)]
        assert [type(error) for error in found] == [errors.Crashed] * 2
        assert found[0] is not found[1]  # a traceback is one caller's

    async def test_async_callers_get_the_same_error(self, submit: Callable[..., Run]) -> None:
        run = submit(self.DAMAGED, pages="2")
        with pytest.raises(errors.Crashed):
            await run.aresult(LIMIT)

    def test_the_document_is_closed_when_it_has_been_read(self, backend: Backend) -> None:
        document = from_bytes(self.READABLE)
        with backend.submit(request_for(self.READABLE), document) as run:
            run.result(LIMIT)
        assert is_closed(document)

    def test_no_repr_has_the_password(self, backend: Backend, submit: Callable[..., Run]) -> None:
        run = submit(self.READABLE)
        run.result(LIMIT)
        values = (run, vars(run), backend, vars(backend), backend.state())
        assert not [value for value in values if "a secret" in repr(value)]

    # Time

    def test_who_gives_a_timeout_waits_no_longer(self, submit: Callable[..., Run]) -> None:
        run = submit(self.HANGING)
        for _ in range(2):  # the run stays valid
            with pytest.raises(TimeoutError):
                run.result(0.01)
            with pytest.raises(TimeoutError):
                list(run.events(0.01))

    async def test_async_callers_wait_no_longer_either(self, submit: Callable[..., Run]) -> None:
        run = submit(self.HANGING)
        with pytest.raises(TimeoutError):
            await run.aresult(0.01)
        with pytest.raises(TimeoutError):
            [event async for event in run.aevents(0.01)]

    def test_a_result_that_is_there_wins_over_a_timeout(self, submit: Callable[..., Run]) -> None:
        run = submit(self.READABLE)
        assert run.result(LIMIT) == run.result(0)

    def test_a_job_ends_with_its_deadline(self) -> None:
        backend = self.make(config_with(deadline=3.0))
        with backend.submit(request_for(self.HANGING), from_bytes(self.HANGING)) as run:
            assert type(error_of(run)) is errors.DeadlineExceeded
        assert backend.state().running == 0
        backend.close()

    # Sharing and leaving

    def test_identical_requests_share_a_job_until_each_has_left(
        self, backend: Backend, submit: Callable[..., Run]
    ) -> None:
        first, second = submit(self.HANGING), submit(self.HANGING, caller="b")
        assert (first.started, second.started) == (True, False)
        assert backend.state().running == 1
        first.leave()
        with pytest.raises(TimeoutError):
            second.result(0.01)
        second.leave()
        eventually(lambda: backend.state().running == 0, "the end of what nobody waits for")

    def test_who_has_left_gets_nothing_more(self, submit: Callable[..., Run]) -> None:
        run = submit(self.HANGING)
        run.leave()
        run.leave()
        assert [event for event in run.events(LIMIT) if isinstance(event, Page)] == []
        with pytest.raises(RuntimeError):
            run.result(LIMIT)

    def test_leaving_at_the_end_changes_nothing(self, submit: Callable[..., Run]) -> None:
        with submit(self.READABLE) as run:
            result = run.result(LIMIT)
        assert run.result(LIMIT) == result

    # State and end

    def test_the_state_is_plain_data(self, backend: Backend) -> None:
        state = backend.state()
        assert (state.slots, state.queue) == (2, 1)
        assert (state.running, state.queued, state.reason) == (0, 0, None)
        assert json.loads(json.dumps(state.as_dict()))["slots"] == 2
        assert backend.probe().available

    def test_it_checks_itself_and_starts_nothing(self, backend: Backend) -> None:
        before = child_processes()
        assert all(isinstance(problem, Problem) for problem in backend.check())
        assert child_processes() == before

    def test_one_that_is_closed_refuses_what_comes(self, backend: Backend) -> None:
        backend.close()
        backend.close(grace=LIMIT)
        assert (backend.state().available, backend.state().reason) == (False, "shutting down")
        assert not backend.probe().available
        document = from_bytes(self.READABLE)
        with pytest.raises(errors.Unavailable) as caught:
            backend.submit(request_for(self.READABLE), document)
        assert caught.value.retry_after
        assert is_closed(document)

    def test_who_waits_for_what_closing_ends_is_told(
        self, backend: Backend, submit: Callable[..., Run]
    ) -> None:
        run = submit(self.HANGING)
        backend.close()
        assert type(error_of(run)) is errors.Unavailable
        assert backend.state().running == 0

    def test_a_result_outlives_the_backend(
        self, backend: Backend, submit: Callable[..., Run]
    ) -> None:
        run = submit(self.READABLE)
        result = run.result(LIMIT)
        backend.close()
        assert run.result(LIMIT) == result


def config_with(deadline: float) -> BackendConfig:
    return BackendConfig(limits=Limits(deadline=deadline, memory=MEMORY), engine=CONFIG.engine)


def texts(events: Iterator[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Page)]


def error_of(run: Run) -> errors.PdfPoolError:
    with pytest.raises(errors.PdfPoolError) as caught:
        run.result()
    return caught.value


def is_closed(document: Descriptor) -> bool:
    return document.fd == -1


def child_processes() -> set[str]:
    """Return the children of this process, by every thread that may have started one."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for each in lists for pid in each.read_text().split()}
