"""The handle against a model of it: calls that Hypothesis makes up, and threads make at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from pdfpool_django.documents import Document
from pdfpool_django.errors import PdfPoolError
from pdfpool_django.sandbox.host import Sandbox
from scripts.pdf_builder import encrypted_pdf, simple_pdf
from tests.handle.helpers import SOURCE, children, handle, in_threads, nothing_left

TEXTS = ("one fish", "two fish\nin two lines", "red")
PLAIN = simple_pdf(*TEXTS, info={"Title": "Fish"})
PASSWORD = "secret"


def encrypted(user: str, algorithm: str) -> bytes:
    return encrypted_pdf(PLAIN, user=user, owner="owner", algorithm=algorithm)


@dataclass(frozen=True)
class Kind:
    """A document, and what it asks of who opens it."""

    data: bytes
    version: str = "1.7"
    locked: bool = False
    encrypted: bool = False


KINDS = {
    "plain": Kind(PLAIN),
    "locked": Kind(encrypted(PASSWORD, "AES-256"), "1.3", locked=True, encrypted=True),
    "locked, old": Kind(encrypted(PASSWORD, "RC4-128"), "1.3", locked=True, encrypted=True),
    "encrypted without a password": Kind(encrypted("", "AES-128"), "1.3", encrypted=True),
}


@dataclass(frozen=True)
class State:
    """What matters of a handle."""

    lockable: bool
    """Whether the document has a password that opens it, and no other does."""
    locked: bool
    closed: bool = False


@dataclass(frozen=True)
class Operation:
    """A call, and what it comes to in a state: its answer, or its error's code."""

    call: Callable[[Document], Any]
    expected: Callable[[State], Any]
    unlocks: bool = False
    closes: bool = False

    def after(self, state: State) -> State:
        """Return the state that the call leaves."""
        locked = state.locked and (state.closed or not self.unlocks)
        return State(state.lockable, locked, state.closed or self.closes)


def reading(call: Callable[[Document], Any], answer: Any) -> Operation:
    def expected(state: State) -> Any:
        return "closed" if state.closed else "password_required" if state.locked else answer

    return Operation(call, expected)


def reading_page(number: int) -> Operation:
    def expected(state: State) -> Any:
        # The password comes first: of a locked document no page is known.
        known = "closed" if state.closed else TEXTS[number - 1] + "\n"
        return "password_required" if state.locked else known

    return Operation(lambda document: document.page(number).text(), expected)


def searching(needle: str, found: list[int], **options: Any) -> Operation:
    def call(document: Document) -> Any:
        return [match.page for match in document.search(needle, **options)]

    return reading(call, found)


def authenticating(password: str) -> Operation:
    right = password == PASSWORD

    def expected(state: State) -> Any:
        return "closed" if state.closed else right or not state.lockable

    return Operation(lambda document: document.authenticate(password), expected, unlocks=right)


def closing(timeout: float | None) -> Operation:
    return Operation(lambda document: document.close(timeout), lambda state: None, closes=True)


SEPARATE = [text + "\n" for text in TEXTS]

OPERATIONS = {
    "page 1": reading_page(1),
    "page 2": reading_page(2),
    "page 3": reading_page(3),
    "text": reading(lambda document: document.text(), "\f".join(SEPARATE)),
    "map": reading(lambda document: list(document.map(lambda page: page.text())), SEPARATE),
    "metadata": reading(lambda document: document.metadata()["title"], "Fish"),
    "outline": reading(lambda document: document.outline(), ()),
    "permissions": reading(lambda document: document.permissions().copy, True),
    "page_count": Operation(
        lambda document: document.page_count,
        lambda state: "password_required" if state.locked else 3,
    ),
    "search": searching("fish", [1, 2]),
    "search over lines": searching("fish in", [2]),
    "search some pages": searching("fish", [2], pages="2-3"),
    "search a pattern": searching("r.d|o.e", [1, 3], regex=True),
    "prepare_search": reading(lambda document: document.prepare_search(), None),
    "clear_search_index": Operation(
        lambda document: document.clear_search_index(),
        lambda state: "closed" if state.closed else None,
    ),
    "wrong password": authenticating("wrong"),
    "right password": authenticating(PASSWORD),
    "close": closing(None),
    "close at once": closing(0),
}
READS = [name for name, each in OPERATIONS.items() if not each.closes]


def outcomes(operation: Operation, others: list[Operation], state: State) -> list[Any]:
    """Return what a call may come to, whichever of the others come before it, in any order."""
    possible = []
    changing = [other for other in others if other.unlocks or other.closes]
    for count in range(len(changing) + 1):
        for before in permutations(changing, count):
            reached = state
            for other in before:
                reached = other.after(reached)
            possible.append(operation.expected(reached))
    return possible


class HandleMachine(RuleBasedStateMachine):
    """Calls on a handle from several threads; each must come to what the model says it may."""

    sandbox: Sandbox

    @initialize(name=st.sampled_from(sorted(KINDS)), workers=st.integers(1, 3))
    def open(self, name: str, workers: int) -> None:
        kind = KINDS[name]
        self.kind = kind
        self.workers = workers
        self.document = handle(self.sandbox, kind.data, workers=workers)
        self.state = State(kind.locked, kind.locked)

    @rule(names=st.lists(st.sampled_from(READS), min_size=1, max_size=5))
    def call_at_once(self, names: list[str]) -> None:
        self._call_at_once(names)

    @rule(
        names=st.lists(st.sampled_from(READS), max_size=4),
        way=st.sampled_from(["close", "close at once"]),
    )
    def call_and_close_at_once(self, names: list[str], way: str) -> None:
        self._call_at_once([*names, way])

    def _call_at_once(self, names: list[str]) -> None:
        called = [OPERATIONS[name] for name in names]

        def made(operation: Operation) -> Callable[[], Any]:
            return lambda: operation.call(self.document)

        found = [
            answer.code if isinstance(answer, PdfPoolError) else answer
            for answer in in_threads(*map(made, called))
        ]
        for place, (name, answer) in enumerate(zip(names, found, strict=True)):
            others = called[:place] + called[place + 1 :]
            assert answer in outcomes(called[place], others, self.state), name
        unlocked = any(
            each.unlocks and answer is True for each, answer in zip(called, found, strict=True)
        )
        locked, closed = self.state.locked and not unlocked, any(each.closes for each in called)
        self.state = State(self.state.lockable, locked, self.state.closed or closed)

    @invariant()
    def what_is_known_is_told(self) -> None:
        document = self.document
        assert document.closed is self.state.closed
        assert (document.source, document.version) == (SOURCE, self.kind.version)
        assert document.encrypted is self.kind.encrypted
        assert repr(document._access) == "<Access shared by 0, 0 waiting>"
        in_use = len(children(self.sandbox))
        assert in_use == 0 if self.state.closed else in_use <= self.workers

    def teardown(self) -> None:
        if hasattr(self, "document"):
            self.document.close(timeout=0)


def test_calls_come_to_what_the_model_says(pypdf_sandbox: Sandbox) -> None:
    class Machine(HandleMachine):
        sandbox = pypdf_sandbox

    handle(pypdf_sandbox, PLAIN).close()
    with nothing_left(pypdf_sandbox):
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=60,
                stateful_step_count=12,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
