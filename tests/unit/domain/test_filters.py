"""mem0's filter language: accepted and refused filters."""

from __future__ import annotations

from typing import Any

import pytest

from mem0_core.domain.filters import parse_filters
from mem0_core.errors import QueryError, ScopeError


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (None, {}),
        ({}, {}),
        ({"user_id": "a"}, {"user_id": "a"}),
        ({"user_id": {"eq": "a"}, "run_id": "r"}, {"user_id": "a", "run_id": "r"}),
        ({"AND": [{"user_id": "a"}, {"topic": "food"}]}, {"user_id": "a"}),
        ({"AND": [{"AND": [{"agent_id": "x"}]}]}, {"agent_id": "x"}),
        ({"user_id": "a", "AND": [{"user_id": "a"}]}, {"user_id": "a"}),
    ],
)
def test_ids_are_taken_out_as_the_scope(filters: dict[str, Any] | None, ids: dict[str, str]) -> None:
    assert parse_filters(filters)[0] == ids


def test_ids_alone_leave_no_filter() -> None:
    assert parse_filters({"AND": [{"user_id": "a"}, {"run_id": "r"}]})[1] is None


@pytest.mark.parametrize(
    "filters",
    [
        {"OR": [{"user_id": "a"}, {"topic": "food"}]},
        {"NOT": [{"user_id": "a"}]},
        {"AND": [{"OR": [{"AND": [{"run_id": "r"}]}]}]},
        {"user_id": {"in": ["a", "b"]}},
        {"user_id": {"ne": "a"}},
        {"user_id": 7},
        {"user_id": None},
        {"user_id": "a", "AND": [{"user_id": "b"}]},
    ],
    ids=str,
)
def test_a_filter_cannot_widen_or_blur_the_scope(filters: dict[str, Any]) -> None:
    with pytest.raises(ScopeError):
        parse_filters(filters)


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"stars": {"above": 3}}, "above"),
        ({"stars": {"gt": [1]}}, "gt"),
        ({"stars": {"gt": True}}, "gt"),
        ({"stars": {"in": "abc"}}, "in"),
        ({"stars": {}}, "stars"),
        ({"stars": {"eq": {"a": 1}}}, "stars"),
        ({"stars": float("nan")}, "stars"),
        ({"stars": 2**70}, "stars"),
        ({"topic": {"icontains": 3}}, "icontains"),
        ({"OR": []}, "OR"),
        ({"OR": "food"}, "OR"),
        ({"AND": [3]}, "mapping"),
        ({3: "x"}, "string"),
        ([("a", 1)], "mapping"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_named(filters: Any, named: str) -> None:
    with pytest.raises(QueryError, match=named):
        parse_filters(filters)


def test_a_bottomless_filter_is_refused() -> None:
    filters: dict[str, Any] = {"topic": "x"}
    for _ in range(2000):
        filters = {"AND": [filters]}
    with pytest.raises(QueryError, match="deep"):
        parse_filters(filters)
