"""The sync driver: runs a flow in the calling thread, and calls that wait in threads during a `both`."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable
from dataclasses import field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from mem0_core._system.records import dataclass
from mem0_core.flow._steps import Both, Call, Flow, FlowReturn, Outcome, advance_flow, make_call

T = TypeVar("T")


def run(flow: Flow[T]) -> T:
    """Drive `flow` to its end in this thread and return its result; see `_BranchDriver` for `both`."""
    try:
        step = next(flow)
        while True:
            try:
                result = step.execute() if isinstance(step, Call) else _BranchDriver().run(step)
            except Exception as error:  # noqa: BLE001 - thrown into the flow, which decides
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


@dataclass(eq=False, slots=True)
class _Branch:
    """One of several flows that are driven together, and the pair that waits for it."""

    flow: Flow[object]
    pair: _Pair
    outcome: Outcome | None = None


@dataclass(eq=False, slots=True)
class _Pair:
    """A running `both`, and the branch that yielded it."""

    owner: _Branch | None
    branches: list[_Branch] = field(default_factory=list)

    def outcome(self) -> Outcome | None:
        """Return both results or the first error; None until both flows have ended."""
        first, second = (branch.outcome for branch in self.branches)
        if first is None or second is None:
            return None
        return Outcome((first.value, second.value), first.error or second.error)


class _BranchDriver:
    """Drives the flows of a `both`, and of those nested in it, in one thread.

    A call that may wait for another machine runs in a thread, so that such calls overlap. A call of an object with
    ``inline = True`` (our stores, for instance) runs here: two computing threads compete for the interpreter lock,
    which costs half as much CPU time again.
    """

    def __init__(self) -> None:
        self._ended: SimpleQueue[tuple[_Branch, Outcome]] = SimpleQueue()
        self._ready: deque[tuple[_Branch, Outcome]] = deque()
        self._running_calls = 0  # in threads
        self._flows: list[Flow[object]] = []

    def run(self, step: Both) -> object:
        pair = self._fork(step, None)
        try:
            while (whole := pair.outcome()) is None:
                if not self._ready:
                    self._ready.append(self._ended.get())
                    self._running_calls -= 1
                self._advance(*self._ready.popleft())
            return whole.get()
        finally:
            for flow in self._flows:
                flow.close()

    def _fork(self, step: Both, owner: _Branch | None) -> _Pair:
        pair = _Pair(owner)
        for flow in (step.first, step.second):
            pair.branches.append(_Branch(flow, pair))
            self._flows.append(flow)
        self._ready.extend((branch, Outcome()) for branch in pair.branches)
        return pair

    def _advance(self, branch: _Branch, last: Outcome) -> None:
        """Resume a flow with the outcome of its last step, until it waits or ends."""
        while True:
            try:
                step = advance_flow(branch.flow, last)
            except BaseException as error:  # noqa: BLE001 - raised from the `both`
                return self._end(branch, Outcome(error=error))
            if isinstance(step, FlowReturn):
                return self._end(branch, Outcome(step.value))
            if isinstance(step, Both):
                self._fork(step, branch)
                return None
            if not step.inline and (self._ready or self._running_calls):
                return self._send(branch, step)
            last = make_call(step)

    def _send(self, branch: _Branch, call: Call) -> None:
        """Make a call in a thread; a copied context carries LangChain's callbacks and LangGraph's config into it."""
        self._running_calls += 1
        context = contextvars.copy_context()
        _threads.start(lambda: self._ended.put((branch, context.run(make_call, call))))

    def _end(self, branch: _Branch, outcome: Outcome) -> None:
        branch.outcome = outcome
        whole = branch.pair.outcome()
        if whole is not None and branch.pair.owner is not None:
            self._ready.append((branch.pair.owner, whole))


class _ThreadPool:
    """Daemon threads that are reused for a second after their work, since starting one takes some 0.2 ms.

    A `ThreadPoolExecutor` would bound the calls that wait at the same time, and would keep the process from exiting
    while a call hangs.
    """

    _IDLE_SECONDS = 1.0

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None]]] = []  # a stack: the thread idle for longest ends first

    def start(self, work: Callable[[], None]) -> None:
        try:
            self._idle.pop().put(work)
        except IndexError:
            Thread(target=self._serve, args=(work,), name="mem0-flow", daemon=True).start()

    def _serve(self, work: Callable[[], None]) -> None:
        inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        while True:
            work()
            self._idle.append(inbox)
            try:
                work = inbox.get(timeout=self._IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.remove(inbox)
                except ValueError:  # `start` has just taken it: the work is about to arrive
                    work = inbox.get()
                else:
                    return


_threads = _ThreadPool()
