"""One line in the log for each call of a method of `Memory`: its name, scope, counts and milliseconds, and no text."""

from __future__ import annotations

import inspect
import logging
import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

from mem0_core.domain.records import Axis, Event
from mem0_core.flow import Flow
from mem0_core.interfaces.queue import trace_context

_log = logging.getLogger("mem0_core")
_MEMORY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EVENTS = frozenset(event.value for event in Event)
T = TypeVar("T")


def log_call(flow: Flow[T]) -> Flow[T]:
    """Wrap the flow of a method so that its end writes a line; return it as it is if the level INFO is off."""
    return _log_call(flow) if _log.isEnabledFor(logging.INFO) else flow


def _log_call(flow: Flow[T]) -> Flow[T]:
    # A flow that has not begun holds nothing but its arguments.
    words = [method_of(flow), *_describe_arguments(call_arguments(flow))]
    started = time.perf_counter()
    try:
        result = yield from flow
    except BaseException as error:
        _write([*words, f"error={type(error).__name__}"], started)
        raise
    _write([*words, *_describe_result(result)], started)
    return result


def _write(words: list[str], started: float) -> None:
    _log.info("%s ms=%.1f%s", " ".join(words), (time.perf_counter() - started) * 1000, _describe_trace())


def _describe_trace() -> str:
    """Return the ids of the span of the running call, if there is one."""
    current = trace_context.get()
    if current is None or not (parent := current().get("traceparent")):
        return ""
    _, trace_id, span_id, _ = parent.split("-")
    return f" trace_id={trace_id} span_id={span_id}"


def method_of(flow: Flow[Any]) -> str:
    """Return the name of the method whose flow this is: ``_search_flow`` belongs to ``search``."""
    name: str = getattr(flow, "__name__", "call")
    return name.removeprefix("_").removesuffix("_flow")


def call_arguments(flow: Flow[Any]) -> dict[str, Any]:
    """Return the arguments of the method whose flow has not begun, with those that it passes on as they are."""
    arguments = inspect.getgeneratorlocals(flow)
    return {**arguments, **more} if isinstance(more := arguments.get("arguments"), Mapping) else arguments


def describe_scope(ids: object) -> str | None:
    """Return the kinds of ids that restrict a call ("user+run", or "all"); None if the method takes none."""
    if not isinstance(ids, tuple):
        return None
    given = [axis.removesuffix("_id") for axis, value in zip(Axis, ids, strict=False) if value is not None]
    return "+".join(given) or "all"


def _describe_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """Return the kinds of ids that restrict a call, and the id of its memory; never the ids of users."""
    words = []
    if (kinds := describe_scope(arguments.get("ids"))) is not None:
        words.append(f"scope={kinds}")
    memory_id = arguments.get("memory_id")
    if isinstance(memory_id, str) and _MEMORY_ID.fullmatch(memory_id):
        words.append(f"id={memory_id}")
    return words


def _describe_result(result: object) -> list[str]:
    """Return the counts of a result: the lengths of its lists, its numbers, and its changes by event."""
    match result:
        case bool() | str():
            return []
        case int():
            return [f"count={result}"]
        case list():
            return [f"results={len(result)}"]
        case Mapping():
            return [word for name, value in result.items() for word in _describe_entry(str(name), value)]
        case _:
            return []


def _describe_entry(name: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [f"{name}={value}"]
    if name == "relations" and isinstance(value, Mapping):  # the changes of relations, by kind
        return [f"{name}={sum(len(one) for one in value.values() if isinstance(one, list))}"]
    if not isinstance(value, list):
        return []
    events = Counter(
        event
        for one in value
        if isinstance(one, Mapping) and isinstance(event := one.get("event"), str) and event in _EVENTS
    )
    return [f"{name}={len(value)}", *(f"{event}={count}" for event, count in sorted(events.items()))]
