"""Threads that run one at a time, in an order that a test chooses, step by step.

The pool's modules are loaded anew from their sources, in which every access of an attribute is
made a step, and with stand-ins for `threading` and `time`: taking a lock is a step, and a time-out
comes when the schedule says so. The threads are greenlets, which cost next to nothing to switch;
what a thread is, the pool knows from the stand-ins only. So a run can be repeated, and all orders
with a bounded number of preemptions can be tried, as the model checker CHESS does (Musuvathi et
al., OSDI 2008).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import random
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from greenlet import getcurrent, greenlet

import pdfpool_django

PACKAGE = Path(pdfpool_django.__file__).parent
MODULES = ("mutex", "outcomes", "tickets", "pool")


class Deadlock(AssertionError):
    """Every thread waits, and no time-out will wake one."""


class Stopped(BaseException):
    """Ends the threads of a run that has failed."""


class Worker:
    """One of the threads of a run."""

    def __init__(self, number: int, name: str, body: greenlet) -> None:
        self.number = number
        self.name = name
        self.greenlet = body
        self.wants: Lock | None = None
        """The lock that it waits for."""
        self.until: float | None = None
        """Instant at which it waits no longer."""
        self.timed_out = False

    @property
    def ended(self) -> bool:
        return self.greenlet.dead


@dataclass
class Decision:
    """A point of a run at which another thread could have gone on."""

    others: list[tuple[int, int]]
    """The alternatives: the thread's number, and what it costs of the preemptions."""


@dataclass
class Run:
    """One order of steps, and what could have been chosen instead."""

    choices: Mapping[int, int]
    """By the number of the decision, the alternative that was taken."""
    decisions: list[Decision] = field(default_factory=list)
    error: BaseException | None = None


class Scheduler:
    """Runs threads one at a time.

    Args:
        choices: At which decisions to take which alternative. At the others a
            thread goes on as long as it can, then the one with the lowest number.
        fine: Whether accesses of attributes are steps, too, or locks only.
        check: Called whenever no lock is held.
    """

    def __init__(
        self, choices: Mapping[int, int], *, fine: bool, check: Callable[[], object] | None = None
    ) -> None:
        self.now = 1000.0
        self.run = Run(choices)
        self.check = check
        self._fine = fine
        self._workers: list[Worker] = []
        self._hub = getcurrent()
        self._now_running: Worker | None = None
        self._held = 0
        self._steady: list[Decision] | None = None
        """What the last step decided between, if that is still so: no lock has changed hands."""

    # What threads of a run call

    def step(self) -> None:
        """Let another thread go on, if the schedule says so."""
        if self._now_running is None:
            return
        decisions = self.run.decisions
        if self._steady is not None and len(decisions) not in self.run.choices:
            decisions += self._steady
        else:
            self._pass_on(self._now_running)

    def touch(self, value: Any) -> Any:
        """Make a step of the access to an attribute of `value`."""
        if self._fine:
            self.step()
        return value

    def take(self, lock: Lock, timeout: float | None) -> bool:
        """Wait for a lock; return false after the timeout."""
        me = self._now_running
        assert me is not None
        me.wants, me.until = lock, None if timeout is None else self.now + timeout
        me.timed_out, self._steady = False, None
        self._pass_on(me)
        me.wants = me.until = None
        if me.timed_out:
            return False
        assert not lock.held
        lock.held, self._steady = True, None
        return True

    def changed(self, lock: Lock) -> None:
        """Count the locks of the pool that are held; look at it when none is."""
        self._steady = None
        if lock.guards:
            self._held += 1 if lock.held else -1
            if not self._held and self.check is not None:
                self._guarded(self.check)

    def ident(self) -> int:
        """Stand in for ``threading.get_ident``."""
        return -1 if self._now_running is None else self._now_running.number

    # What starts and ends them

    def spawn(self, name: str, work: Callable[[], object]) -> None:
        """Add a thread to the run; it begins when it is its turn."""

        def body() -> None:
            with contextlib.suppress(Stopped):
                self._guarded(work)

        # At its end the hub goes on, and not the one that has started it.
        self._workers.append(Worker(len(self._workers), name, greenlet(body, self._hub)))
        self._steady = None

    def go(self) -> Run:
        """Run the threads, and those that they start, to their ends."""
        while not all(each.ended for each in self._workers):
            chosen = self._choose(None)
            if chosen is None:
                self._fail(self._deadlock())
            if self.run.error is not None:
                break
            assert chosen is not None
            self._switch(chosen)
        self._end()
        return self.run

    def _end(self) -> None:
        """End the threads that a run which has failed leaves where they are."""
        self._now_running = None
        for each in self._workers:
            if not each.ended:
                with contextlib.suppress(Stopped):  # of one that has not begun
                    each.greenlet.throw(Stopped)

    def _guarded(self, work: Callable[[], object]) -> None:
        """Do a thread's work; what it raises ends the run, whoever would have caught it."""
        try:
            work()
        except Stopped:
            raise
        except BaseException as error:
            self._fail(error)
            raise Stopped from error

    def _pass_on(self, me: Worker) -> None:
        if self.run.error is not None:
            raise Stopped
        chosen = self._choose(me)
        if chosen is None:
            self._fail(self._deadlock())
            raise Stopped
        if chosen is not me:
            self._switch(chosen)
            self._now_running, self._steady = me, None
            if self.run.error is not None:
                raise Stopped

    def _switch(self, chosen: Worker) -> None:
        self._now_running, self._steady = chosen, None
        chosen.greenlet.switch()

    def _fail(self, error: BaseException) -> None:
        if self.run.error is None:
            self.run.error = error

    def _deadlock(self) -> Deadlock:
        names = ", ".join(each.name for each in self._workers if not each.ended)
        return Deadlock(f"these wait for ever: {names}")

    # The choice

    def _choose(self, me: Worker | None) -> Worker | None:
        """Return who goes on: mostly the one who ran, else as the schedule says."""
        able = self._able()
        if not able:
            return None
        first = me if me is not None and me in able else able[0]
        # Going on costs nothing; neither does any choice where the one who ran cannot.
        cost = int(first is me)
        others = [each for each in able if each is not first]
        chosen, decision = first, []
        if others:
            decision = [Decision([(each.number, cost) for each in others])]
            taken = self.run.choices.get(len(self.run.decisions))
            self.run.decisions += decision
            if taken is not None:
                chosen = others[taken]
        self._let(chosen)
        if first is me is chosen and me.wants is None:
            self._steady = decision
        return chosen

    def _able(self) -> list[Worker]:
        """Return the threads that can take their next step."""
        alive = [each for each in self._workers if not each.ended]
        waiting = [each for each in alive if self._is_waiting(each)]
        # Time may pass at any moment, but not past the one whose time is up first.
        soonest = min((each.until for each in waiting if each.until is not None), default=0.0)
        return [
            each
            for each in alive
            if each not in waiting
            or (each.until is not None and each.until <= max(soonest, self.now))
        ]

    def _is_waiting(self, worker: Worker) -> bool:
        return worker.wants is not None and worker.wants.held

    def _let(self, chosen: Worker) -> None:
        if self._is_waiting(chosen):
            assert chosen.until is not None
            chosen.timed_out = True
            self.now = max(self.now, chosen.until)


class Lock:
    """Stands in for ``threading.Lock``."""

    def __init__(self, scheduler: Scheduler, *, guards: bool) -> None:
        self.held = False
        self.guards = guards
        """Whether it is a mutex of the pool; the others are what its conditions wait on."""
        self._scheduler = scheduler

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not blocking or not (self.held or self.guards):
            # Nobody else has what a thread has only just made to wait on.
            taken, self.held = not self.held, True
        else:
            taken = self._scheduler.take(self, None if timeout < 0 else timeout)
        if taken:
            self._scheduler.changed(self)
        return taken

    def release(self) -> None:
        assert self.held, "release of a lock that is free"
        self.held = False
        self._scheduler.changed(self)
        self._scheduler.step()

    __enter__ = acquire

    def __exit__(self, *exc_info: object) -> None:
        self.release()


# The modules


class _Steps(ast.NodeTransformer):
    """Makes a step of every access to an attribute: ``a.b`` becomes ``_touch(a).b``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        touched = ast.Call(ast.Name("_touch", ast.Load()), [node.value], [])
        return ast.copy_location(ast.Attribute(touched, node.attr, node.ctx), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Part ``a.b += c`` into what it is: one access that reads, and one that writes."""
        if not isinstance(node.target, ast.Attribute):
            return self.generic_visit(node)
        read = ast.Attribute(node.target.value, node.target.attr, ast.Load())
        whole = ast.Assign([node.target], ast.BinOp(read, node.op, node.value))
        return self.visit(ast.copy_location(ast.parse(_written(whole)).body[0], node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [
            self.visit(each) if isinstance(each, ast.FunctionDef) else each for each in node.body
        ]
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        node.body = [
            self.visit(each) if isinstance(each, (ast.FunctionDef, ast.ClassDef)) else each
            for each in node.body
        ]
        return node


def _written(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def compiled(changes: Mapping[str, tuple[str, str]] | None = None) -> dict[str, types.CodeType]:
    """Return the modules with their steps.

    Args:
        changes: By module, a piece of its source and what to put there: a fault that is planted.
    """
    codes = {}
    for name in MODULES:
        source = (PACKAGE / f"{name}.py").read_text(encoding="utf-8")
        if changes and name in changes:
            old, new = changes[name]
            assert source.count(old) == 1, f"{old!r} is there {source.count(old)} times"
            source = source.replace(old, new)
        tree = ast.fix_missing_locations(_Steps().visit(ast.parse(source)))
        codes[name] = compile(tree, str(PACKAGE / f"{name}.py"), "exec")
    return codes


class Loaded:
    """The pool's modules under a scheduler; what a scheduler is, each run says anew."""

    def __init__(self, codes: Mapping[str, types.CodeType]) -> None:
        self.scheduler: Scheduler = None  # type: ignore[assignment]
        self.refused_threads = 0
        """How many threads fail to start, from the next one on."""
        self._modules: dict[str, types.ModuleType] = {}
        self._stand_ins = {"threading": self._threading(), "time": self._time()}
        for name, code in codes.items():
            self._load(name, code)
        self.pool = self._modules["pdfpool_django.pool"]

    def _load(self, name: str, code: types.CodeType) -> None:
        module = types.ModuleType(f"pdfpool_django.{name}")
        module.__dict__["_touch"] = lambda value: self.scheduler.touch(value)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        exec(code, module.__dict__)
        self._modules[module.__name__] = module

    def _import(self, name: str, *rest: Any) -> Any:
        found = self._stand_ins.get(name) or self._modules.get(name)
        return found if found is not None else builtins.__import__(name, *rest)

    def _time(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(monotonic=lambda: self.scheduler.now)

    def _threading(self) -> types.SimpleNamespace:
        loaded = self

        def waiter() -> Lock:
            return Lock(loaded.scheduler, guards=False)

        class Condition(threading.Condition):
            """The real one, but for what it waits on."""

            wait = types.FunctionType(
                threading.Condition.wait.__code__,
                {**vars(threading), "_allocate_lock": waiter},
                argdefs=threading.Condition.wait.__defaults__,
            )

        class Thread:
            """Starts a thread of the run."""

            def __init__(self, target: Callable[[], object], name: str, daemon: bool) -> None:
                assert daemon
                self._target = target

            def start(self) -> None:
                loaded.scheduler.step()
                if loaded.refused_threads:
                    loaded.refused_threads -= 1
                    raise RuntimeError("can't start new thread")
                loaded.scheduler.spawn("a thread of the pool", self._target)

        return types.SimpleNamespace(
            Lock=lambda: Lock(loaded.scheduler, guards=True),
            Condition=Condition,
            Thread=Thread,
            get_ident=lambda: loaded.scheduler.ident(),
            TIMEOUT_MAX=threading.TIMEOUT_MAX,
        )


# All orders


def schedules(
    try_one: Callable[[Mapping[int, int]], Run], preemptions: int, most: int | None = None
) -> Iterator[Run]:
    """Yield a run for each order with so many preemptions at most.

    Args:
        try_one: Runs with the choices given.
        preemptions: How often a thread that could go on does not.
        most: Ends after so many, if there are more: some from everywhere, and always the same.
    """
    dice = random.Random(0)
    waiting: list[tuple[dict[int, int], int]] = [({}, preemptions)]
    tried = 0
    while waiting and (most is None or tried < most):
        if most is not None:
            at = dice.randrange(len(waiting))
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
        choices, left = waiting.pop()
        run = try_one(choices)
        tried += 1
        yield run
        # Each order is made from the one that it leaves last, so none is tried twice.
        since = max(choices, default=-1) + 1
        for number in range(since, len(run.decisions)):
            for which, (_, cost) in enumerate(run.decisions[number].others):
                if cost <= left:
                    waiting.append(({**choices, number: which}, left - cost))
