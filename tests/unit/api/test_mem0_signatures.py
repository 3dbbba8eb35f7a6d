"""The public methods of mem0 1.0.11, as data: `Memory` and `AsyncMemory` accept each of their calls."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory

REQUIRED = inspect.Parameter.empty
OWNER: Mapping[str, Any] = {"user_id": None, "agent_id": None, "run_id": None}
ADD = {**OWNER, "metadata": None, "infer": True, "memory_type": None, "prompt": None}
SEARCH = {**OWNER, "limit": 100, "filters": None, "threshold": None, "rerank": True}
GET_ALL = {**OWNER, "filters": None, "limit": 100}
POSITIONAL: Mapping[str, Mapping[str, Any]] = {
    "from_config": {"config_dict": REQUIRED},
    "add": {"messages": REQUIRED},
    "search": {"query": REQUIRED},
    "get": {"memory_id": REQUIRED},
    "get_all": {},
    "update": {"memory_id": REQUIRED, "data": REQUIRED, "metadata": None},
    "delete": {"memory_id": REQUIRED},
    "delete_all": OWNER,
    "history": {"memory_id": REQUIRED},
    "reset": {},
    "close": {},
}
"""Parameters that mem0 takes by position and by name, with their defaults; the same in both of its classes."""
KEYWORDS: Mapping[str, Mapping[str, Any]] = {"add": ADD, "search": SEARCH, "get_all": GET_ALL}
"""Parameters that mem0 takes by name only."""
SAME_MEANING = {("search", "rerank"): None}
"""Defaults that differ in the value, not in the effect: None uses a configured reranker, as True does."""
METHODS = [
    pytest.param(kind, name, id=f"{kind.__name__}.{name}") for kind in (Memory, AsyncMemory) for name in POSITIONAL
]


def parameters(kind: type, name: str) -> list[inspect.Parameter]:
    every = inspect.signature(getattr(kind, name)).parameters.values()
    return [one for one in every if one.name != "self"]


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_parameters_by_position_are_those_of_mem0(kind: type, name: str) -> None:
    by_position = [one for one in parameters(kind, name) if one.kind is one.POSITIONAL_OR_KEYWORD]
    expected = POSITIONAL[name]
    assert [one.name for one in by_position] == list(expected)
    optional = {one.name: one.default for one in by_position if one.default is not REQUIRED}
    assert {key: value for key, value in expected.items() if value is not REQUIRED}.items() <= optional.items()


@pytest.mark.parametrize(("kind", "name"), [one for one in METHODS if one.values[1] in KEYWORDS])
def test_parameters_by_name_have_the_defaults_of_mem0(kind: type, name: str) -> None:
    ours = {one.name: one.default for one in parameters(kind, name)}
    for key, default in KEYWORDS[name].items():
        assert ours[key] == SAME_MEANING.get((name, key), default), key


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_parameters_that_mem0_has_not_are_optional(kind: type, name: str) -> None:
    known = {**POSITIONAL[name], **KEYWORDS.get(name, {})}
    added = [one for one in parameters(kind, name) if one.name not in known]
    assert all(one.default is not REQUIRED and one.kind is one.KEYWORD_ONLY for one in added)


@pytest.mark.parametrize("name", [name for name in POSITIONAL if name != "from_config"])
def test_methods_of_the_async_class_are_awaited(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(AsyncMemory, name))
    assert not inspect.iscoroutinefunction(getattr(Memory, name))
