"""Arguments for calls of public functions: valid ones, chosen by name and annotation, and hostile ones of any type."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from hypothesis import strategies as st

__all__ = ["ArgumentSource", "describe"]

_OPTION_SHARE = 4  # one of so many optional arguments is given
_HOSTILE_SHARE = 3  # one of so many given arguments is hostile


class _Broken:
    """An object whose every special method raises."""

    def _fail(self, *args: object) -> NoReturn:
        raise ZeroDivisionError("a method of the caller's object failed")

    __len__ = __iter__ = __bool__ = __str__ = __repr__ = __getitem__ = __hash__ = __index__ = __float__ = _fail
    __call__ = __contains__ = __lt__ = __int__ = __fspath__ = __eq__ = _fail


class _Raising:
    """An object whose every attribute raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"no {name} here")


class _Subclass(str):
    """A text whose methods lie."""

    __slots__ = ()

    def strip(self, *args: object) -> Any:
        return 5

    def casefold(self) -> Any:
        raise KeyError("casefold")


class _OddMapping(Mapping[Any, Any]):
    """A mapping whose items fail."""

    def __getitem__(self, key: object) -> NoReturn:
        raise OSError("the mapping is gone")

    def __iter__(self) -> Iterator[str]:
        return iter(["role", "content", "provider", "AND"])

    def __len__(self) -> int:
        return 4


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _nested_mapping(depth: int, key: str) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {key: [value]}
    return value


def _failing_iterator() -> Iterator[str]:
    yield "one"
    raise StopAsyncIteration("the source failed")


def _fail(*args: object, **kwargs: object) -> NoReturn:
    raise LookupError("a function of the caller failed")


def _cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


_FIXED: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, -(10**30)),
    *(0.5, -0.0, 1e300, math.nan, math.inf, -math.inf, 3 + 4j),
    *("", " ", "*", "\0", "a\0b", "\ud800", "e\u0301" * 300, "n" * 5_000, "\u202eabc"),
    *("2024-13-45", "0001-01-01", "9999-12-31T23:59:59+14:00", "P1D"),
    *('{"a":', "MATCH (a)-[*", "?" * 50, "((((" * 50, "%s{}\\"),
    *(b"bytes", b"\xff\xfe", bytearray(b"x"), Decimal("NaN"), Decimal("1e400")),
    *(date.min, datetime.max, datetime(1, 1, 1, tzinfo=UTC), timedelta.max, timedelta(0), timedelta.min),
    *(int, object, Ellipsis, NotImplemented, (), ("a", 1), frozenset({1}), range(3), Path("x\0y"), slice(1, 2)),
)
"""Values that a call cannot use up."""

_MADE: tuple[Callable[[], Any], ...] = (
    *(list, dict, set, object, _Broken, _Raising, _OddMapping, _cycle, _failing_iterator),
    *(lambda: [None], lambda: [1, "a", {}], lambda: {"role": 5}, lambda: {1: 2}, lambda: {"a": {1, 2}}, lambda: [{}]),
    *(lambda: {"role": "user", "content": None}, lambda: [{"role": [], "content": {}}], lambda: [[["x"]]]),
    *(lambda: {"role": "user", "content": "hi", "timestamp": object()}, lambda: {"AND": 5}, lambda: {"OR": [None]}),
    *(lambda: {"created_at": {"gte": object()}}, lambda: {"a": {"in": 5}}, lambda: {"user_id": {"ne": []}}),
    *(lambda: _nested(2_000), lambda: _nested_mapping(2_000, "AND"), lambda: _nested_mapping(30, "NOT")),
    *(lambda: _nested_mapping(2_000, "metadata"), lambda: iter(["a", 5]), lambda: (one for one in [object()])),
    *(lambda: np.float32(0.5), lambda: np.int64(3), lambda: np.array([1.0, math.nan]), lambda: np.array("x")),
    *(lambda: _fail, lambda: _Subclass("tea"), lambda: lambda: None, lambda: type("Odd", (), {"provider": 5})()),
)
"""Makers of values that end, change or break with their first use."""


@dataclass(slots=True)
class ArgumentSource:
    """Draws the arguments of calls.

    Attributes:
        valid: values by the name of a parameter; they are tried before those of its annotation.
        kept: names of parameters that never get a hostile value, as these would wait or write anywhere.
        usual: names of optional parameters that every call gives.
    """

    valid: Mapping[str, tuple[Any, ...]]
    kept: frozenset[str] = frozenset()
    usual: frozenset[str] = frozenset({"user_id"})

    def draw(self, data: st.DataObject, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Draw the positional and the named arguments of one call."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        hints = _hints(function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or parameter.name == "self":
                continue
            is_optional = parameter.default is not parameter.empty and parameter.name not in self.usual
            if is_optional and data.draw(st.integers(1, _OPTION_SHARE)) != 1:
                continue
            value = self._value(data, parameter.name, hints.get(parameter.name))
            if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
                named[parameter.name] = value
            else:
                positional.append(value)
        return positional, named

    def _value(self, data: st.DataObject, name: str, hint: Any) -> Any:
        share = _HOSTILE_SHARE * 4 if name in self.usual else _HOSTILE_SHARE
        if name not in self.kept and data.draw(st.integers(1, share)) == 1:
            return self.hostile(data)
        if name in self.valid:
            return data.draw(st.sampled_from(self.valid[name]))
        return data.draw(_by_hint(hint))

    def hostile(self, data: st.DataObject) -> Any:
        """Draw a value that no function expects."""
        if data.draw(st.integers(1, 8)) == 1:
            return data.draw(_ANY)
        chosen = data.draw(st.integers(0, len(_FIXED) + len(_MADE) - 1))
        return _FIXED[chosen] if chosen < len(_FIXED) else _MADE[chosen - len(_FIXED)]()


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.binary(max_size=6)
_ANY = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(("tea", "I live in Rome.", "Where do I live?", "u", "2024-05-01")) | st.text(max_size=20),
    int: st.integers(-2, 60),
    float: st.floats(-1, 2),
    bool: st.booleans(),
    type(None): st.none(),
}


def _by_hint(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for an annotation; anything at all where it is too particular."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(parts)
    known = [_BY_TYPE[part] for part in (hint, *parts) if isinstance(part, type) and part in _BY_TYPE]
    return st.one_of(known) if known else _ANY


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # noqa: BLE001 - annotations of frameworks that are imported for type checkers only
        return {}


def describe(value: object) -> str:
    """Return a short text about an argument."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - hostile on purpose
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."
