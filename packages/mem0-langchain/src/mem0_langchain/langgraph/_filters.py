"""LangGraph's filters on the values of items."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mem0_core.domain.filters import Condition, Filter, Group

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_MAX_EXACT_INT = 2**53  # up to here integers are exact as floats, and equal numbers have the same digits


def build_prefilter(filter: Mapping[str, Any] | None) -> Filter | None:
    """Return a filter for the database that every matching item passes, and few others.

    A value is stored as JSON, in which a wanted field appears as ``"key": value`` at some depth. Return None if nothing
    is known, or if the filter is one that only `matches_filter` rejects.
    """
    operators = _collect_operators(filter)
    parts = (
        tuple(_build_contains_filter(key, wanted) for key, wanted in _equality_terms(filter))
        if operators <= _OPERATORS.keys()
        else ()
    )
    return Group("and", parts) if parts else None


def _collect_operators(filter: Any) -> set[str]:
    if not isinstance(filter, Mapping):
        return set()
    return {key for key in filter if str(key).startswith("$")}.union(*map(_collect_operators, filter.values()))


def _equality_terms(filter: Mapping[str, Any] | None) -> Iterator[tuple[str, list[str]]]:
    """Return the keys that must equal something, with the JSON texts that equal values begin with."""
    for key, wanted in (filter or {}).items():
        if isinstance(wanted, Mapping) and not any(str(part).startswith("$") for part in wanted):
            yield from _equality_terms(wanted)
            continue
        texts = _equal_json_texts(wanted["$eq"] if isinstance(wanted, Mapping) and "$eq" in wanted else wanted)
        if texts and type(key) is str and "." not in key:
            yield key, texts


def _equal_json_texts(value: Any) -> list[str]:
    """Return the JSON beginnings of all values that Python considers equal to `value`; empty if there are too many."""
    if type(value) is str:
        return [json.dumps(value)]
    if type(value) in (int, float, bool) and abs(value) <= _MAX_EXACT_INT:
        whole = value == int(value)  # as 5 and as 5.0
        return [json.dumps(int(value) if whole else value), *{0: ["-0.0", "false"], 1: ["true"]}.get(value, [])]
    return []


def _build_contains_filter(key: str, texts: Sequence[str]) -> Filter:
    found = tuple(Condition("value", False, "contains", f"{json.dumps(key)}: {text}") for text in texts)
    return Group("or", found)


def matches_filter(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    return all(_matches_value(_look_up(value, key), wanted) for key, wanted in (filter or {}).items())


def _look_up(value: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, or of a path like ``user.home`` if there is no such key."""
    found: Any = value
    for part in [key] if key in value or not isinstance(key, str) else key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _matches_value(value: Any, wanted: Any) -> bool:
    """Return True if a value matches, objects and lists part by part; extra keys of an object are ignored."""
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_compare_operand(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_matches_value(value.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same_length = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return same_length and all(_matches_value(part, other) for part, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compare_operand(value: Any, name: str, operand: Any) -> bool:
    if name not in _OPERATORS:
        raise ValueError(f"Unsupported operator: {name}")
    compare = _OPERATORS[name]
    if name in ("$eq", "$ne"):
        return bool(compare(value, operand))
    try:
        return bool(compare(float(value), float(operand)))
    except (TypeError, ValueError):  # missing, or not a number: not comparable
        return False
