"""`filters.matches` in SQLite's SQL, over the columns of `memories`."""

from __future__ import annotations

import json
from typing import Any

from mem0_core.domain.filters import Condition, Filter


def filter_sql(filter: Filter) -> tuple[str, list[Any]]:
    """`filters.matches` in SQL. Every key and value is a parameter; only names from our own tables are spliced."""
    if isinstance(filter, Condition):
        return _column_sql(filter) if filter.own else _metadata_sql(filter)
    parts = [filter_sql(part) for part in filter.parts]
    if not parts:
        return ("1" if filter.kind != "or" else "0"), []
    joined = f" {'AND' if filter.kind == 'and' else 'OR'} ".join(sql for sql, _ in parts)
    return f"{'NOT ' if filter.kind == 'not' else ''}({joined})", [value for _, values in parts for value in values]


_COMPARISON_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def _column_sql(condition: Condition) -> tuple[str, list[Any]]:
    sql, values = _test_sql(condition.operator, condition.value, condition.field, f"typeof({condition.field})")
    return f"ifnull({sql}, 0)", values


def _metadata_sql(condition: Condition) -> tuple[str, list[Any]]:
    negated = {"ne": "eq", "nin": "in"}.get(condition.operator)
    sql, values = _test_sql(negated or condition.operator, condition.value, "e.value", "e.type")
    found = f"EXISTS (SELECT 1 FROM json_each(metadata) AS e WHERE e.key = ? AND {sql})"
    values = [condition.field, *values]
    wanted = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if condition.operator in ("eq", "ne", "in", "nin") and None in wanted:  # a missing key equals null
        found = f"({found} OR NOT EXISTS (SELECT 1 FROM json_each(metadata) AS e WHERE e.key = ?))"
        values.append(condition.field)
    return (f"NOT {found}" if negated else found), values


def _test_sql(operator: str, value: Any, column: str, kind: str) -> tuple[str, list[Any]]:
    """A comparison of `column`, whose JSON or SQL type the expression `kind` names."""
    if operator == "exists":
        return f"{kind} <> 'null'", []
    if operator in ("eq", "in"):
        return _in_sql(value if isinstance(value, tuple) else (value,), column, kind)
    if operator in ("ne", "nin"):
        sql, values = _test_sql("in", value if isinstance(value, tuple) else (value,), column, kind)
        return f"NOT ifnull({sql}, 0)", values
    if operator in _COMPARISON_OPERATORS:
        kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
        return f"({kind} IN {kinds} AND {column} {_COMPARISON_OPERATORS[operator]} ?)", [value]
    if operator == "contains":
        element, values = _equal_sql(value, "i.value", "i.type")
        # The CASE guards json_each from a column that is no JSON array.
        listed = (
            f"({kind} = 'array' AND EXISTS (SELECT 1 FROM"
            f" json_each(CASE {kind} WHEN 'array' THEN {column} ELSE '[]' END) AS i WHERE {element}))"
        )
        if not isinstance(value, str):
            return listed, values
        return f"(({kind} = 'text' AND instr({column}, ?) > 0) OR {listed})", [value, *values]
    folded = str(value).casefold()
    return (
        f"(({kind} = 'text' AND instr(casefold({column}), ?) > 0) OR ({kind} = 'array' AND EXISTS (SELECT 1 FROM"
        f" json_each(CASE {kind} WHEN 'array' THEN {column} ELSE '[]' END) AS i"
        " WHERE i.type = 'text' AND casefold(i.value) = ?)))",
        [folded, folded],
    )


def _in_sql(values: tuple[Any, ...], column: str, kind: str) -> tuple[str, list[Any]]:
    """Equality with one of `values`: texts and numbers go as one JSON array each, however many they are."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    others = {str(value): value for value in values if value is None or isinstance(value, bool)}
    tests = [_equal_sql(value, column, kind) for value in others.values()]
    for kinds, among in (("('text')", texts), ("('integer', 'real')", numbers)):
        if among:
            tests.append((f"({kind} IN {kinds} AND {column} IN (SELECT value FROM json_each(?)))", [json.dumps(among)]))
    return "(" + (" OR ".join(sql for sql, _ in tests) or "0") + ")", [v for _, bound in tests for v in bound]


def _equal_sql(value: Any, column: str, kind: str) -> tuple[str, list[Any]]:
    if value is None:
        return f"{kind} = 'null'", []
    if isinstance(value, bool):
        return f"{kind} = '{'true' if value else 'false'}'", []
    kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    return f"({kind} IN {kinds} AND {column} = ?)", [value]


def casefold(text: Any) -> Any:
    """Fold the case of a text; other values pass through."""
    return text.casefold() if isinstance(text, str) else text
