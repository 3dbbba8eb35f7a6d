"""Flows: the same generator under the sync and the async driver."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from mem0_core.flow import Both, Call, Flow, StepRecord, arun, both, call_all, defer, do, observe, run


class Calculator:
    """A port with a method that has an async counterpart, and methods that have none."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def double(self, value: int, *, plus: int = 0) -> int:
        self.made.append("sync")
        return 2 * value + plus

    async def adouble(self, value: int, *, plus: int = 0) -> int:
        await asyncio.sleep(0)
        self.made.append("async")
        return 2 * value + plus

    def thread_name(self) -> str:
        return threading.current_thread().name

    def fail(self) -> int:
        raise ValueError("no")


Drive = Callable[[Flow[Any]], Any]


@pytest.fixture(params=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Drive:
    return run if request.param == "sync" else lambda flow: asyncio.run(arun(flow))


def four_times(calculator: Calculator, value: int) -> Flow[int]:
    twice = yield from do(calculator.double, value)
    return (yield from do(calculator.double, twice, plus=1))


def test_a_flow_returns_what_its_calls_make(drive: Drive) -> None:
    assert drive(four_times(Calculator(), 3)) == 13


def test_the_async_driver_awaits_the_counterpart_and_the_sync_driver_does_not() -> None:
    calculator = Calculator()
    asyncio.run(arun(four_times(calculator, 1)))
    assert calculator.made == ["async", "async"]
    run(four_times(calculator, 1))
    assert calculator.made[2:] == ["sync", "sync"]


def test_a_call_without_a_counterpart_leaves_the_event_loop_free() -> None:
    name = asyncio.run(arun(do(Calculator().thread_name)))
    assert name != threading.current_thread().name


def test_plain_functions_can_be_called(drive: Drive) -> None:
    assert drive(do(len, [1, 2, 3])) == 3


def test_a_flow_can_be_stepped_by_hand() -> None:
    calculator = Calculator()
    flow = four_times(calculator, 3)
    step = next(flow)
    assert isinstance(step, Call)
    assert (step.method, step.args, step.name) == (calculator.double, (3,), "Calculator.double")
    assert flow.send(6).kwargs == {"plus": 1}  # type: ignore[union-attr]
    with pytest.raises(StopIteration) as stop:
        flow.send(13)
    assert stop.value.value == 13


def test_errors_are_thrown_into_the_flow(drive: Drive) -> None:
    def careful(calculator: Calculator) -> Flow[str]:
        try:
            yield from do(calculator.fail)
        except ValueError as error:
            return f"caught {error}"
        return "missed"

    assert drive(careful(Calculator())) == "caught no"


def test_uncaught_errors_come_out_and_finally_blocks_run(drive: Drive) -> None:
    left: list[str] = []

    def careless() -> Flow[int]:
        try:
            return (yield from do(Calculator().fail))
        finally:
            left.append("cleaned")

    with pytest.raises(ValueError, match="no"):
        drive(careless())
    assert left == ["cleaned"]


def test_both_runs_two_flows_at_once(drive: Drive) -> None:
    """Each branch waits for the other: run one after the other, they would never meet."""
    barrier = threading.Barrier(2, timeout=30)

    def meet(name: str) -> Flow[str]:
        yield from do(barrier.wait)
        return name

    assert drive(both(meet("facts"), meet("graph"))) == ("facts", "graph")


def test_both_waits_for_the_other_branch_before_it_raises(drive: Drive) -> None:
    finished: list[str] = []

    def slow() -> Flow[None]:
        yield from do(time.sleep, 0.05)
        finished.append("slow")

    with pytest.raises(ValueError, match="no"):
        drive(both(do(Calculator().fail), slow()))
    with pytest.raises(ValueError, match="no"):
        drive(both(slow(), do(Calculator().fail)))
    assert finished == ["slow", "slow"]


def test_both_nests(drive: Drive) -> None:
    flow = both(both(do(len, "a"), do(len, "bb")), do(len, "ccc"))
    assert drive(flow) == ((1, 2), 3)


def test_context_variables_reach_both_branches(drive: Drive) -> None:
    """LangChain's callbacks and LangGraph's config travel in context variables."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")
    assert drive(both(do(variable.get), do(variable.get))) == ("seen", "seen")


def test_observe_sees_every_call_of_every_branch(drive: Drive) -> None:
    calculator, seen = Calculator(), list[StepRecord]()

    def flow() -> Flow[object]:
        with contextlib.suppress(ValueError):
            yield from do(calculator.fail)
        return (yield from both(four_times(calculator, 1), do(calculator.double, 5)))

    assert drive(observe(flow(), seen.append)) == (5, 10)
    failed, *done = seen
    assert failed.call.name == "Calculator.fail"
    assert isinstance(failed.error, ValueError)
    assert sorted(record.result for record in done) == [2, 5, 10]
    assert all(record.seconds >= 0 for record in seen)


def test_observing_hands_errors_on(drive: Drive) -> None:
    seen: list[StepRecord] = []
    with pytest.raises(ValueError, match="no"):
        drive(observe(do(Calculator().fail), seen.append))
    assert len(seen) == 1


def test_observed_steps_can_still_be_stepped_by_hand() -> None:
    step = next(observe(both(do(len, "a"), do(len, "b")), lambda record: None))
    assert isinstance(step, Both)


def test_cancelling_closes_the_flow_and_its_branches() -> None:
    left: list[str] = []

    class Waiting:
        def forever(self) -> None:
            raise AssertionError("the counterpart is awaited")

        async def aforever(self) -> None:
            await asyncio.sleep(60)

    def patient(name: str) -> Flow[None]:
        try:
            yield from do(Waiting().forever)
        finally:
            left.append(name)

    async def main() -> None:
        task = asyncio.create_task(arun(both(patient("a"), patient("b"))))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert sorted(left) == ["a", "b"]


class Computing:
    """A port with calls that only compute and note their thread; `wait` blocks until `let_go` is set."""

    inline = True

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.entered, self.let_go = threading.Event(), threading.Event()

    def compute(self) -> None:
        self.threads.append(threading.get_ident())

    def fail(self) -> None:
        self.compute()
        raise ValueError("no")

    def wait(self) -> None:
        self.compute()
        self.entered.set()
        assert self.let_go.wait(30)


def test_calls_that_only_compute_stay_in_one_thread_outside_the_event_loop() -> None:
    port, calculator = Computing(), Calculator()

    def mixed() -> Flow[int]:
        yield from do(port.compute)
        with contextlib.suppress(ValueError):
            yield from do(port.fail)
        yield from do(port.compute)
        doubled = yield from do(calculator.double, 4)  # has an async counterpart, which is awaited
        yield from do(port.compute)
        return doubled

    assert asyncio.run(arun(mixed())) == 8
    assert calculator.made == ["async"]
    assert len(port.threads) == 4
    assert len(set(port.threads[:3])) == 1
    assert threading.get_ident() not in port.threads


def test_errors_of_calls_that_only_compute_come_out() -> None:
    with pytest.raises(ValueError, match="no"):
        asyncio.run(arun(do(Computing().fail)))


def test_cancelling_a_computing_flow_ends_its_call_and_closes_the_flow() -> None:
    port, closed = Computing(), threading.Event()

    def patient() -> Flow[None]:
        try:
            yield from do(port.wait)
            yield from do(port.compute)
        finally:
            closed.set()

    async def main() -> None:
        task = asyncio.create_task(arun(patient()))
        assert await asyncio.to_thread(port.entered.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        port.let_go.set()

    asyncio.run(main())
    assert closed.wait(30)
    assert len(port.threads) == 1


def test_few_calls_compute_at_once_beside_one_event_loop() -> None:
    """Threads that all compute fight for the interpreter, and so hold up the loop; calls that wait do not."""
    waiting, computing, let_go = list[int](), list[int](), threading.Event()

    class Store:
        inline = True

        def compute(self) -> None:
            computing.append(threading.get_ident())
            assert let_go.wait(30)

    class Model:
        def ask(self) -> None:
            waiting.append(threading.get_ident())
            assert let_go.wait(30)

    async def main() -> None:
        flows = [arun(do(Store().compute)) for _ in range(5)] + [arun(do(Model().ask)) for _ in range(3)]
        tasks = [asyncio.create_task(flow) for flow in flows]
        while len(computing) < 2 or len(waiting) < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert (len(computing), len(waiting)) == (2, 3)
        let_go.set()
        await asyncio.gather(*tasks)
        assert len(computing) == 5

    asyncio.run(asyncio.wait_for(main(), 30))


class Model:
    """A port without async counterparts; `ask` waits until `answers` is set."""

    def __init__(self, answers: threading.Event | None = None) -> None:
        self.threads: list[int] = []
        self._answers = answers

    def ask(self) -> None:
        self.threads.append(threading.get_ident())
        assert self._answers is None or self._answers.wait(30)


def compute_around_a_request(port: Computing, model: Model) -> Flow[None]:
    yield from do(port.compute)
    yield from do(model.ask)
    yield from do(port.compute)


def test_a_call_without_a_counterpart_runs_in_the_thread_that_computes() -> None:
    port, model = Computing(), Model()
    asyncio.run(arun(compute_around_a_request(port, model)))
    assert len(port.threads) == 2
    assert len({*port.threads, *model.threads}) == 1
    assert threading.get_ident() not in port.threads


def test_a_call_that_waits_releases_its_permit_and_the_flow_resumes_with_the_next_one() -> None:
    answers = threading.Event()
    model, port, others = Model(answers), Computing(), [Computing(), Computing()]

    async def main() -> None:
        patient = asyncio.create_task(arun(compute_around_a_request(port, model)))
        while not model.threads:
            await asyncio.sleep(0.01)
        busy = [asyncio.create_task(arun(do(other.wait))) for other in others]
        for other in others:  # both have a permit, though two flows started before
            assert await asyncio.to_thread(other.entered.wait, 10)
        answers.set()
        await asyncio.sleep(0.05)
        assert len(port.threads) == 1, "there is no permit for it"
        others[0].let_go.set()
        await patient
        assert len(port.threads) == 2
        others[1].let_go.set()
        await asyncio.gather(*busy)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_flow_cancelled_while_it_waits_for_a_thread_or_a_permit_returns_its_permit() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        first, port = Computing(), Computing()
        busy = asyncio.create_task(arun(do(first.wait)))
        while not first.entered.is_set():
            await asyncio.sleep(0.01)
        without_a_thread, without_a_permit = (asyncio.create_task(arun(do(port.compute))) for _ in range(2))
        await asyncio.sleep(0.05)
        for task in (without_a_permit, without_a_thread):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        first.let_go.set()
        await busy
        assert not port.threads
        for _ in range(5):
            await arun(do(port.compute))

    asyncio.run(asyncio.wait_for(main(), 30))


# --- many on one event loop ----------------------------------------------------------------------------------------


def test_one_flow_resumes_in_each_iteration_of_the_loop() -> None:
    """The work of 20 flows between their calls does not add up to one long delay of the loop."""
    rounds, went_on = 0, list[int]()

    class Server:
        async def aask(self) -> None:
            await asyncio.sleep(0)

        def ask(self) -> None: ...

    def asking() -> Flow[None]:
        for _ in range(5):
            yield from do(Server().ask)
            went_on.append(rounds)

    async def main() -> None:
        async def tick() -> None:
            nonlocal rounds
            while True:
                await asyncio.sleep(0)
                rounds += 1

        ticker = asyncio.create_task(tick())
        await asyncio.gather(*(arun(asking()) for _ in range(20)))
        ticker.cancel()

    asyncio.run(main())
    assert len(went_on) == 100
    assert max(went_on.count(each) for each in went_on) <= 2, "a flow's turn may begin before or after the ticker's"


def test_a_call_that_only_computes_on_the_loop_takes_no_iteration_of_it() -> None:
    rounds = 0

    class Cache:
        inline = True

        def find(self) -> int:
            raise AssertionError("a thread was used")

        async def afind(self) -> int:
            return rounds

    def finding() -> Flow[set[int]]:
        first = yield from do(Cache().find)
        return {first, (yield from do(Cache().find)), (yield from do(Cache().find))}

    async def main() -> set[int]:
        async def tick() -> None:
            nonlocal rounds
            while True:
                await asyncio.sleep(0)
                rounds += 1

        ticker = asyncio.create_task(tick())
        await asyncio.sleep(0)
        found = await arun(finding())
        ticker.cancel()
        return found

    assert len(asyncio.run(main())) == 1


def test_a_flow_cancelled_in_its_turn_passes_the_turn_on() -> None:
    class Server:
        async def aask(self) -> None:
            await asyncio.sleep(0)

        def ask(self) -> None: ...

    def asking() -> Flow[str]:
        for _ in range(10):
            yield from do(Server().ask)
        return "done"

    async def main() -> list[object]:
        flows = [asyncio.create_task(arun(asking())) for _ in range(12)]
        for place, flow in enumerate(flows):
            await asyncio.sleep(0)
            if place % 2:
                flow.cancel()
        return await asyncio.wait_for(asyncio.gather(*flows, return_exceptions=True), 20)

    ended = asyncio.run(main())
    assert [one for one in ended if one == "done"] == ["done"] * 6


# --- calls in one go ---------------------------------------------------------------------------------------------


class Batching:
    """An object that makes several calls in one go."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []

    def half(self, value: int) -> int:
        raise AssertionError("made by itself")

    def third(self, value: int) -> int:
        raise AssertionError("made by itself")


def _in_one_go(calls: Sequence[Call], kind: str = "sync") -> list[int]:
    owner = cast(Any, calls[0].method).__self__
    owner.made.append((kind, len(calls)))
    return [call.args[0] // (2 if call.method.__name__ == "half" else 3) for call in calls]


async def _in_one_go_awaited(calls: Sequence[Call]) -> list[int]:
    return _in_one_go(calls, "async")


for method in (Batching.half, Batching.third):
    vars(method).update(together=_in_one_go, atogether=_in_one_go_awaited)


def test_call_all_gives_the_results_of_its_calls_in_their_order(drive: Drive) -> None:
    calculator = Calculator()
    assert drive(call_all(defer(calculator.double, 1), defer(len, "abc"), defer(calculator.double, 2, plus=1))) == [
        2,
        3,
        5,
    ]
    assert drive(call_all()) == []


def test_call_all_makes_calls_in_one_go_where_their_object_can(drive: Drive) -> None:
    batching = Batching()
    assert drive(call_all(defer(batching.half, 6), defer(batching.third, 6))) == [3, 2]
    assert batching.made in ([("sync", 2)], [("async", 2)])
    with pytest.raises(AssertionError, match="made by itself"):
        drive(call_all(defer(batching.half, 6), defer(len, "abc")))


def test_the_first_error_of_call_all_is_thrown_in(drive: Drive) -> None:
    calculator = Calculator()

    def flow() -> Flow[str]:
        try:
            yield from call_all(defer(calculator.double, 1), defer(calculator.fail), defer(calculator.double, 2))
        except ValueError as error:
            return str(error)
        return "no error"

    assert drive(flow()) == "no"
    assert len(calculator.made) == 1


def test_calls_that_only_compute_do_so_in_call_all_too(drive: Drive) -> None:
    computing = Computing()

    def flow() -> Flow[None]:
        yield from call_all(defer(computing.compute), defer(computing.compute))
        yield from do(computing.compute)

    drive(flow())
    assert len(computing.threads) == 3
    assert len(set(computing.threads)) == 1


def test_observe_reports_every_call_of_call_all(drive: Drive) -> None:
    calculator, seen = Calculator(), list[StepRecord]()
    assert drive(observe(call_all(defer(calculator.double, 1), defer(len, "ab")), seen.append)) == [2, 2]
    assert [(record.call.name, record.result) for record in seen] == [("Calculator.double", 2), ("len", 2)]
    with pytest.raises(ValueError, match="no"):
        drive(observe(call_all(defer(calculator.fail), defer(len, "ab")), seen.append))
    assert isinstance(seen[-1].error, ValueError)
