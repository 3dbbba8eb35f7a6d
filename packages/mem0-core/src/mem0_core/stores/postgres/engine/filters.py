"""`filters.matches` in PostgreSQL's SQL, over the columns of `memories`.

A field of the memory and a key of its metadata are compared alike, as ``jsonb``: what is missing is SQL's null, and
equals JSON's.
"""

from __future__ import annotations

import json
from typing import Any

from mem0_core.domain.filters import Condition, Filter
from mem0_core.stores.postgres.engine.text import escape

_COMPARISON_OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def filter_sql(filter: Filter) -> tuple[str, list[Any]]:
    """`filters.matches` in SQL. Every key and value is a parameter; only names from our own tables are spliced."""
    if isinstance(filter, Condition):
        return _condition_sql(filter)
    parts = [filter_sql(part) for part in filter.parts]
    if not parts:
        return ("true" if filter.kind != "or" else "false"), []
    joined = f" {'AND' if filter.kind == 'and' else 'OR'} ".join(sql for sql, _ in parts)
    return f"{'NOT ' if filter.kind == 'not' else ''}({joined})", [value for _, values in parts for value in values]


def _condition_sql(condition: Condition) -> tuple[str, list[Any]]:
    negated = {"ne": "eq", "nin": "in"}.get(condition.operator)
    test, values = _test_sql(negated or condition.operator, condition.value)
    found, key = (f"to_jsonb({condition.field})", []) if condition.own else ("metadata::jsonb -> ?", [condition.field])
    sql = f"(SELECT coalesce({test}, false) FROM (SELECT {found} AS it) AS its)"
    return (f"NOT {sql}" if negated else sql), [*values, *key]


def _test_sql(operator: str, value: Any) -> tuple[str, list[Any]]:
    """A test of `it`, a value of JSON."""
    if operator == "exists":
        return "jsonb_typeof(it) <> 'null'", []
    if operator in ("eq", "in"):
        wanted = value if isinstance(value, tuple) else (value,)
        return "coalesce(it, 'null') = ANY (?::text[]::jsonb[])", [[_json(each) for each in wanted]]
    if operator in _COMPARISON_OPERATORS and isinstance(value, str):
        return f"jsonb_typeof(it) = 'string' AND (it #>> '{{}}') COLLATE \"C\" {_COMPARISON_OPERATORS[operator]} ?", [
            value
        ]
    if operator in _COMPARISON_OPERATORS:
        number = "CASE WHEN jsonb_typeof(it) = 'number' THEN it::numeric END"
        return f"{number} {_COMPARISON_OPERATORS[operator]} ?::text::numeric", [repr(value)]
    if operator == "contains":
        listed = "(jsonb_typeof(it) = 'array' AND it @> ?::text::jsonb)"
        if not isinstance(value, str):
            return listed, [f"[{_json(value)}]"]
        part = "(jsonb_typeof(it) = 'string' AND strpos(it #>> '{}', ?) > 0)"
        return f"({part} OR {listed})", [value, f"[{_json(value)}]"]
    folded = str(value).casefold()
    return (
        "((jsonb_typeof(it) = 'string' AND strpos(mem0_casefold(it #>> '{}'), ?) > 0) OR EXISTS (SELECT 1 FROM"
        " jsonb_array_elements(CASE jsonb_typeof(it) WHEN 'array' THEN it ELSE '[]' END) AS i"
        " WHERE jsonb_typeof(i) = 'string' AND mem0_casefold(i #>> '{}') = ?))",
        [folded, folded],
    )


def _json(value: Any) -> str:
    return json.dumps(escape(value) if isinstance(value, str) else value, ensure_ascii=False)
