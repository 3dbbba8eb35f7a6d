"""Call every public function with arguments of any type, and count the exceptions that are not the library's."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import io
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchmarks.faults.arguments import ArgumentSource, describe
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from mem0_core import AsyncMemory, Mem0Error, Memory
from mem0_core.testing import HashEmbedder, ScriptedChat

__all__ = ["GROUPS", "Fuzzed", "Target", "fuzz", "fuzz_targets", "measure"]

GROUPS = ("memory", "async memory", "models", "functions", "command", "langchain", "llamaindex")

_HOOKS = ("before_agent", "abefore_agent", "after_agent", "aafter_agent")
_UNCALLED = frozenset({"close", "aclose", "wrap_model_call", "awrap_model_call", "model_post_init", *_HOOKS})
"""Methods that end the object, that pass a framework's own errors, or that a framework calls."""
_WEIGHTS = {"add": 8, "search": 5, "add_many": 3, "context": 3, "adopt": 3, "query": 2, "update_by_query": 2}
"""Methods that read the most are called more often than the others."""
_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Target:
    """A function to call, and the other exceptions that its framework promises."""

    name: str
    call: Callable[..., Any]
    accepted: tuple[type[BaseException], ...] = ()


@dataclass(slots=True)
class Fuzzed:
    """The outcome of many calls.

    Attributes:
        foreign: a line for each call that raised a foreign exception.
        kinds: number of calls by the exception, or by ``returned``.
        slowest: seconds of the longest call, and its function.
    """

    calls: int = 0
    foreign: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")

    def merge(self, other: Fuzzed) -> None:
        """Add the outcome of other calls."""
        self.calls += other.calls
        self.foreign += other.foreign
        self.kinds += other.kinds
        self.slowest = max(self.slowest, other.slowest)


def measure(plan: Plan) -> Report:
    """Fuzz all groups of functions with equal shares of the calls."""
    report = Report("fuzz")
    total = Fuzzed()
    for number, group in enumerate(GROUPS):
        found = fuzz(group, plan.fuzz_calls // len(GROUPS), number)
        total.merge(found)
        report.add(group, "calls", found.calls)
        report.add(group, "foreign exceptions", len(found.foreign), bar=Bar("==", 0))
        report.add(group, "longest call", found.slowest[0], "s", note=found.slowest[1])
        print(f"fuzz: {group}: {found.calls} calls, {len(found.foreign)} foreign", file=sys.stderr, flush=True)
    report.add("all", "calls", total.calls)
    report.add("all", "foreign exceptions", len(total.foreign), bar=Bar("==", 0))
    report.details = {"foreign": total.foreign[:_MAX_SHOWN], "kinds": dict(total.kinds.most_common())}
    return report


def fuzz(group: str, calls: int, start: int) -> Fuzzed:
    """Call the functions of a group in a scratch folder; `start` selects the arguments."""
    with _scratch_folder() as folder, open_group(group, folder) as (targets, source):
        return fuzz_targets(targets, source, calls, start)


def fuzz_targets(targets: Sequence[Target], source: ArgumentSource, calls: int, start: int) -> Fuzzed:
    """Call functions `calls` times."""
    found = Fuzzed()

    @seed(start)
    @settings(
        max_examples=calls,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(targets))
        positional, named = source.draw(data, target.call)
        _call(found, target, positional, named)

    run()
    return found


def _call(found: Fuzzed, target: Target, positional: list[Any], named: dict[str, Any]) -> None:
    started = time.perf_counter()
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _finish(target.call(*positional, **named))
        outcome = "returned"
    except asyncio.CancelledError:
        raise
    except Mem0Error as error:
        outcome = type(error).__name__
        if outcome == "InternalError":
            found.foreign.append(_describe_call(target, positional, named, error.__cause__ or error))
    except target.accepted as error:
        outcome = f"accepted {type(error).__name__}"
    except Exception as error:  # noqa: BLE001 - the exceptions that are counted here
        outcome = f"foreign {type(error).__name__}"
        found.foreign.append(_describe_call(target, positional, named, error))
    found.calls += 1
    found.kinds[outcome] += 1
    found.slowest = max(found.slowest, (time.perf_counter() - started, target.name))


def _finish(result: Any) -> None:
    """Await a coroutine; take the first items of an iterator."""
    if inspect.iscoroutine(result):
        _event_loop().run_until_complete(result)
    elif inspect.isgenerator(result):
        for _, _ in zip(range(3), result, strict=False):
            pass


@functools.cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all calls; other code of the process may close the current one."""
    return asyncio.new_event_loop()


def _describe_call(target: Target, positional: list[Any], named: dict[str, Any], error: BaseException) -> str:
    given_values = [*map(describe, positional), *(f"{name}={describe(value)}" for name, value in named.items())]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "mem0_" in frame.filename]
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    return f"{target.name}({', '.join(given_values)}): {type(error).__name__}: {describe(str(error))} at {where}"


# --- groups of functions -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_group(group: str, folder: Path) -> Iterator[tuple[list[Target], ArgumentSource]]:
    """Open what the functions of a group need, and yield them with the source of their arguments."""
    chat = ScriptedChat(_reply) if group == "models" else None
    config = {"path": str(folder / "store"), "background": {"drain": 0.0}}
    if group == "command":
        yield [Target("mem0-core", _run_command)], _CommandSource({"path": (str(folder / "store"),)})
        return
    with Memory(config, embedder=HashEmbedder(dims=16), llm=chat, on_step=_fail_sometimes) as memory:
        ids = [memory.add(text, user_id="u", infer=False)["results"][0]["id"] for text in _TEXTS]
        kept = _KEPT - {"config"} if group == "functions" else _KEPT
        source = ArgumentSource({**_VALID, "memory_id": tuple(ids)}, kept)
        yield list(_TARGETS[group](memory)), source


def _memory_targets(memory: Memory) -> Iterator[Target]:
    yield from _methods(memory, "Memory")


def _async_targets(memory: Memory) -> Iterator[Target]:
    yield from _methods(AsyncMemory(memory=memory), "AsyncMemory")


def _function_targets(memory: Memory) -> Iterator[Target]:
    import mem0_core
    from mem0_core import config, interchange

    for module in (mem0_core, interchange):
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function):
                yield Target(f"{module.__name__}.{name}", function)
    yield Target("load_config", config.load_config)
    yield Target("Memory", _open_and_close)
    yield Target("Memory.from_config", lambda config: Memory.from_config(config).close())
    yield Target("Scope", mem0_core.Scope)


def _open_and_close(config: Any = None, llm: Any = None, embedder: Any = None, store: Any = None) -> None:
    Memory(config, llm=llm, embedder=embedder, store=store).close()


def _langchain_targets(memory: Memory) -> Iterator[Target]:
    from pydantic import ValidationError

    import mem0_langchain as package

    accepted = (ValidationError,)
    for tool in package.memory_tools(memory, user_id="u"):
        call = functools.partial(_invoke_tool, tool)
        yield Target(f"tool {tool.name}", _with_signature(call, tool.tool_call_schema), accepted)
    history = package.Mem0ChatMessageHistory(memory, user_id="u", run_id="s")
    objects = (
        history,
        package.Mem0Retriever(memory=memory, user_id="u"),
        package.Mem0Memory(memory=memory, user_id="u"),
        package.MemoryMiddleware(memory, user_id="u"),
    )
    for one in objects:
        yield from _methods(one, type(one).__name__, accepted)
    yield Target("format_memory_prompt", package.format_memory_prompt)


def _llamaindex_targets(memory: Memory) -> Iterator[Target]:
    from pydantic import ValidationError

    import mem0_llamaindex as package

    accepted = (ValidationError,)
    objects = (
        package.Mem0Memory.from_defaults(memory, user_id="u"),
        package.Mem0Retriever(memory, user_id="u"),
        package.Mem0MemoryBlock(memory=memory, user_id="u"),
    )
    for one in objects:
        yield from _methods(one, type(one).__name__, accepted)
    for tool in package.memory_tools(memory, user_id="u"):
        yield Target(f"tool {tool.metadata.name}", _with_signature(tool.call, tool.metadata.fn_schema), accepted)


def _invoke_tool(tool: Any, **fields: Any) -> Any:
    return tool.invoke(fields)


def _with_signature(call: Callable[..., Any], schema: Any) -> Callable[..., Any]:
    """Return a function that passes the fields of a schema by name."""

    def function(**fields: Any) -> Any:
        return call(**fields)

    function.__signature__ = inspect.signature(schema)  # type: ignore[attr-defined]
    return function


_TARGETS: dict[str, Callable[[Memory], Iterator[Target]]] = {
    "memory": _memory_targets,
    "async memory": _async_targets,
    "models": _memory_targets,
    "functions": _function_targets,
    "langchain": _langchain_targets,
    "llamaindex": _llamaindex_targets,
}


def _methods(owner: Any, name: str, accepted: tuple[type[BaseException], ...] = ()) -> Iterator[Target]:
    """Yield the public methods that this project defines in the class of an object."""
    for method in dir(type(owner)):
        if method.startswith("_") or method in _UNCALLED:
            continue
        member = inspect.getattr_static(type(owner), method)
        function = getattr(member, "__wrapped__", member)
        if inspect.isfunction(function) and function.__module__.startswith("mem0_"):
            target = Target(f"{name}.{method}", getattr(owner, method), accepted)
            yield from [target] * _WEIGHTS.get(method, _WEIGHTS.get(method[1:], 1))


# --- the command -------------------------------------------------------------------------------------------------


def _run_command(words: list[str]) -> int:
    from mem0_core.cli import main

    with contextlib.suppress(SystemExit):  # of argparse
        return main(words)
    return 2


_COMMANDS = (
    *("add", "ask", "search", "show", "list", "history", "update", "delete", "update-by-query", "delete-by-query"),
    *("relations", "query", "traverse", "explain", "context", "stats", "doctor", "export", "import", "backup"),
    *("pending", "retry", "merge", "merges", "unmerge", "pin", "erase", "config", "migrate", "restore", "rebuild"),
)
_WORDS = (
    *("--user", "u", "--agent", "--run", "--json", "--limit", "5", "-1", "1e9", "--filters", '{"a":', "{}", "--force"),
    *("", "tea", "I live in Rome.", "\ud800", "--apply", "--dry-run", "--purge", "nan", "--as-of", "2024-99-99", "[]"),
    *("out.jsonl", ".", "missing/file", "--format", "csv", "text", "--threshold", "nan", "n" * 5000, "--metadata"),
)


class _CommandSource(ArgumentSource):
    """Draws the words of a command line."""

    __slots__ = ()

    def draw(self, data: st.DataObject, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Draw a command and some words after it."""
        words = data.draw(st.lists(st.sampled_from(_WORDS) | st.text(max_size=8), max_size=5))
        words = [word for word in words if not word.startswith(("/", ".."))]
        return [["--path", *self.valid["path"], data.draw(st.sampled_from(_COMMANDS)), *words]], {}


# --- values ------------------------------------------------------------------------------------------------------

_TEXTS = ("I live in Rome.", "My sister Anna likes green tea.", "Bob works at Galp.")
_IDS = ("u", "v", None)
_PATHS = ("out.jsonl", Path("out.db"), "folder/deep/out", ".", "store", "drawing.html")
_VALID: dict[str, tuple[Any, ...]] = {
    "user_id": ("u", "u", "u", "v"),
    "agent_id": _IDS,
    "run_id": _IDS,
    "messages": (
        *_TEXTS,
        [{"role": "user", "content": "I moved to Oslo."}, {"role": "assistant", "content": "Noted."}],
        [{"role": "user", "content": "Hi", "name": "Ann", "timestamp": "2024-05-01", "metadata": {"a": 1}}],
    ),
    "query": ("Where do I live?", "tea", "MATCH (a)-[r]->(b) RETURN a, r, b", None),
    "filters": ({"a": 1}, {"OR": [{"a": {"gt": 1}}, {"b": {"in": ["x"]}}]}, {"user_id": "u"}, None),
    "metadata": ({"a": 1, "b": ["x"]}, None),
    "data": ("I live in Oslo.", lambda found: f"{found['memory']} Indeed."),
    "path": _PATHS,
    "history": _PATHS,
    "folder": _PATHS,
    "texts": (["tea", "rice"],),
    "scores": ([0.5, 0.2], None),
    "entities": (["Anna"], None),
    "timeout": (0.0, 0.01),
    "memories": (
        [],
        [{"id": "m1", "memory": "Hi.", "created_at": "2024-01-01", "user_id": "u", "messages": [1]}],
        [{"id": "m2", "memory": "Ho.", "user_id": "u", "metadata": {"a": []}}],
    ),
    "config": (None, {"path": "other"}, {"version": "v1.0", "path": "other"}, {"embedder": {"provider": "hash"}}),
    "embedder": ("hash", {"provider": "hash", "config": {}}, None),
    "llm": (None, {"provider": "openai", "config": {"model": "x"}}, "ollama:x"),
    "store": (None, "other.db"),
}
_KEPT = frozenset({"timeout", "path", "history", "folder", "config"})
_REPLIES: tuple[Any, ...] = (
    *("", "[]", "null", "{", "x" * 99, {"facts": ["Likes tea", 5, None]}, {"memory": [{"id": "9", "event": "X"}]}),
)
_steps = iter(range(10**12))


def _fail_sometimes(step: object) -> None:
    if next(_steps) % 7 == 0:
        raise RuntimeError("the tracer failed")


def _reply(task: str, messages: Any) -> Any:
    """Reply as a model that is often wrong, and sometimes fails."""
    turn = next(_steps)
    if turn % 11 == 0:
        raise (StopIteration, TypeError, OSError, KeyError)[turn % 4]("the model failed")
    replies = (
        "",
        "[]",
        "null",
        "{",
        {"facts": ["Likes tea", 5, None]},
        {"memory": [{"id": "9", "event": "X"}]},
        "x" * 99,
    )
    return replies[turn % len(replies)]


@contextlib.contextmanager
def _scratch_folder() -> Iterator[Path]:
    """Work in a new folder, so that relative paths do no harm."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="mem0-fuzz-", ignore_cleanup_errors=True) as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)
