"""SQL written once and run by SQLite or PostgreSQL, by sync or async code.

A store method is a generator. It yields statements that have not run and receives their results::

    class SqlNotes(StepMethods):
        @read_method
        def row(self, memory_id: str) -> Steps[int | None]:
            found = yield from fetch_rows("SELECT row FROM memories WHERE id = ?", (memory_id,))
            return found[0][0] if found else None

The decorator turns the generator into a method that drives it over the engine ``self._db``: a SQLite connection, or a
pool of PostgreSQL connections. Where the engine has an event loop's pool, the object also has the async version
(``arow``). The form is that of `flow` and of psycopg's own generators.

Placeholders are question marks. The PostgreSQL driver translates them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import islice
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from mem0_core._system.records import dataclass
from mem0_core.flow import Call

P = ParamSpec("P")
T = TypeVar("T")


# --- steps -------------------------------------------------------------------------------------------------------


# One is made for every statement, so these classes are not frozen: that would take three times as long.


@dataclass(slots=True)
class Statement:
    """One statement. With `many` it runs once for each of `values` and returns no rows."""

    sql: str
    values: Sequence[Any] = ()
    many: bool = False


@dataclass(slots=True)
class Batch:
    """Statements that do not need one another's results. PostgreSQL runs them in one round trip."""

    statements: tuple[Statement, ...]


@dataclass(slots=True)
class SetScope:
    """Restrict the rest of the transaction to one scope, where row-level security is active.

    Attributes:
        part: the first id of the scope, as `partition_key` writes it; ``"*"`` for all scopes.
        agent_id, run_id: further ids of the scope; empty for none.
        member: user whose membership the database checks in a space; ``"*"`` for the library itself.
    """

    part: str
    agent_id: str = ""
    run_id: str = ""
    member: str = "*"

    def widen(self, other: SetScope) -> SetScope:
        """Return the narrowest restriction that admits the rows of both."""
        agent_id = self.agent_id if self.agent_id == other.agent_id else ""
        return SetScope(self.part, agent_id, self.run_id if self.run_id == other.run_id else "", self.member)


@dataclass(slots=True)
class StatementResult:
    """Rows that a statement returned, and the number of rows that it changed."""

    rows: list[tuple[Any, ...]]
    count: int


Step: TypeAlias = Statement | Batch | SetScope
Steps: TypeAlias = Generator[Step, Any, T]


def fetch_rows(sql: str, values: Sequence[Any] = ()) -> Steps[list[tuple[Any, ...]]]:
    """Return the rows of a statement."""
    result: StatementResult = yield Statement(sql, values)
    return result.rows


def execute(sql: str, values: Sequence[Any] = ()) -> Steps[int]:
    """Run a statement and return the number of rows that it changed."""
    result: StatementResult = yield Statement(sql, values)
    return result.count


def execute_many(sql: str, rows: Sequence[Sequence[Any]]) -> Steps[None]:
    """Run a statement once for each of `rows`."""
    if rows:
        yield Statement(sql, rows, many=True)


def execute_batch(*statements: Statement) -> Steps[list[StatementResult]]:
    """Run statements that do not need one another's results."""
    results: list[StatementResult] = yield Batch(statements)
    return results


@functools.lru_cache(maxsize=256)
def insert_sql(table: str, columns: str, tail: str = "") -> str:
    """Return an INSERT of one row: `columns` is a comma-separated list, `tail` the ON CONFLICT or RETURNING clause."""
    marks = ", ".join("?" * len(columns.split(",")))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) {tail}".rstrip()


# --- methods -----------------------------------------------------------------------------------------------------


TransactionKind = Literal["lookup", "read", "snapshot", "write"]
"""``read``: each statement sees the latest state. ``lookup``: a read that is so short that a writer may wait for it.
``snapshot``: all statements see one state. ``write``: one transaction."""

MAX_LOOKUP_ROWS = 500  # of a lookup: to read as many memories takes no longer than most commits, some milliseconds


class _Engine(Protocol):
    def run(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T: ...


class _EngineOwner(Protocol):
    @property
    def _db(self) -> _Engine: ...


S = TypeVar("S", bound=_EngineOwner)
Method: TypeAlias = Callable[Concatenate[S, P], T]


def read_method(steps: Callable[Concatenate[S, P], Steps[T]]) -> Method[S, P, T]:
    """Make a method that reads. Several calls of such methods can share a round trip, see `flow.call_all`."""
    return _make_shared(steps, "read")


def lookup_method(steps: Callable[Concatenate[S, P], Steps[T]]) -> Method[S, P, T]:
    """Make a method that reads a few rows by an index. Its calls can share a round trip."""
    return _make_shared(steps, "lookup")


def lookup_method_if(
    is_short: Callable[..., bool],
) -> Callable[[Callable[Concatenate[S, P], Steps[T]]], Method[S, P, T]]:
    """Make a method whose calls are lookups if their arguments satisfy `is_short`, and other reads if not."""

    def decorate(steps: Callable[Concatenate[S, P], Steps[T]]) -> Method[S, P, T]:
        return _make_shared(steps, "lookup", is_short)

    return decorate


def snapshot_method(steps: Callable[Concatenate[S, P], Steps[T]]) -> Method[S, P, T]:
    """Make a method that reads one state of the database."""
    return _make_method(steps, "snapshot")


def write_method(steps: Callable[Concatenate[S, P], Steps[T]]) -> Method[S, P, T]:
    """Make a method that runs in one write transaction."""
    return _make_method(steps, "write")


def _make_shared(
    steps: Callable[Concatenate[S, P], Steps[T]], kind: TransactionKind, is_short: Callable[..., bool] | None = None
) -> Method[S, P, T]:
    method = _make_method(steps, kind, is_short)
    vars(method).update(together=_run_calls, atogether=_arun_calls)
    return method


def _make_method(
    steps: Callable[Concatenate[S, P], Steps[T]], kind: TransactionKind, is_short: Callable[..., bool] | None = None
) -> Method[S, P, T]:
    def choose_kind(*args: P.args, **kwargs: P.kwargs) -> TransactionKind:
        return kind if is_short is None or is_short(*args, **kwargs) else "read"

    @functools.wraps(steps)
    def method(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.run(lambda: steps(self, *args, **kwargs), choose_kind(*args, **kwargs))

    vars(method).update(steps=steps, choose_kind=choose_kind)
    return method


class StepMethods:
    """Base class that adds the async version ``a<method>`` of each method made by `read_method` and its siblings."""

    _db: Any

    @property
    def inline(self) -> bool:
        """True if the methods only compute, see `flow`."""
        return not hasattr(self._db, "arun")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if hasattr(method, "steps"):
                setattr(cls, f"a{name}", _AsyncVersion(method, name))


class _AsyncVersion:
    """Async version of a method. An object whose engine has no event loop's pool does not have it."""

    def __init__(self, method: Any, name: str) -> None:
        steps, choose_kind = method.steps, method.choose_kind

        async def twin(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            return await self._db.arun(lambda: steps(self, *args, **kwargs), choose_kind(*args, **kwargs))

        functools.update_wrapper(twin, method)
        self._twin: Any = twin
        twin.__name__ = f"a{name}"
        twin.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.a{name}"

    def __get__(self, owner: Any, owner_class: type | None = None) -> Any:
        if owner is not None and not hasattr(owner._db, "arun"):
            raise AttributeError(f"{self._twin.__qualname__}: this engine runs sync code only")
        return self._twin.__get__(owner, owner_class)


# --- calls that share round trips ----------------------------------------------------------------------------------


def _run_calls(calls: Sequence[Call]) -> list[Any]:
    """Make calls of one scope and one engine in as many round trips as the longest of them takes."""
    engine = _engine_of(calls)
    if not hasattr(engine, "arun"):  # there is no round trip to share
        return [call.execute() for call in calls]
    results: list[Any] = engine.run(lambda: _interleave([_steps_of(call) for call in calls]), "read")
    return results


async def _arun_calls(calls: Sequence[Call]) -> list[Any]:
    engine = _engine_of(calls)
    results: list[Any] = await engine.arun(lambda: _interleave([_steps_of(call) for call in calls]), "read")
    return results


def _engine_of(calls: Sequence[Call]) -> Any:
    (engine,) = {call.method.__self__._db for call in calls}  # type: ignore[attr-defined]
    return engine


def _steps_of(call: Call) -> Steps[Any]:
    method: Any = call.method
    steps: Steps[Any] = method.steps(method.__self__, *call.args, **call.kwargs)
    return steps


def _interleave(all_steps: Sequence[Steps[Any]]) -> Steps[list[Any]]:
    """Advance several generators together: their next statements form one batch."""
    results: list[Any] = [None] * len(all_steps)
    answers: dict[int, Any] = dict.fromkeys(range(len(all_steps)))
    scope: SetScope | None = None
    while answers:
        requests: dict[int, Statement | Batch] = {}
        for index, answer in answers.items():
            try:
                step = all_steps[index].send(answer)
                while isinstance(step, SetScope):
                    assert scope is None or scope.part == step.part, "calls that share round trips must have one scope"
                    scope = step if scope is None else scope.widen(step)
                    step = all_steps[index].send((yield scope))
                requests[index] = step
            except StopIteration as stop:
                results[index] = stop.value
        answers = yield from _fetch_answers(requests)
    return results


def _fetch_answers(requests: Mapping[int, Statement | Batch]) -> Steps[dict[int, Any]]:
    """Run the statements of all requests as one batch and return the answer to each request."""
    statements = [
        one for step in requests.values() for one in (step.statements if isinstance(step, Batch) else (step,))
    ]
    answers = iter((yield from execute_batch(*statements)) if statements else ())
    return {
        index: list(islice(answers, len(step.statements))) if isinstance(step, Batch) else next(answers)
        for index, step in requests.items()
    }
