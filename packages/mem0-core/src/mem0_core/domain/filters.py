"""mem0's filter language, parsed once into a tree that every store can apply.

``{"topic": "food", "stars": {"gte": 3}, "OR": [{"city": {"in": ["Porto", "Lisbon"]}}, {"city": "*"}]}``

A key names a key of the memory's metadata, or one of the memory's own fields (`OWN_FIELDS`). Write ``metadata.<key>``
for a metadata key with the name of a field. Ids are different: `parse_filters` extracts them as the scope, so a
metadata key called ``user_id`` can never widen a scope.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Axis, MemoryItem
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.domain.timestamps import parse_timestamp
from mem0_core.errors import InputError, QueryError, ScopeError

Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains", "exists"]
Scalar: TypeAlias = str | int | float | bool | None

OWN_FIELDS = frozenset({"id", "hash", "actor_id", "role", "memory_type", "created_at", "updated_at", "expiration_date"})
_TIMES = {"created_at", "updated_at"}
_MAX_DEPTH = 50
_ORDER = {"gt", "gte", "lt", "lte"}
_MEMBERSHIP = {"in", "nin"}
_TEXT = {"contains", "icontains"}
_EQUALITY = {"eq", "ne"}
_GROUPS: dict[str, Literal["and", "or", "not"]] = {"AND": "and", "OR": "or", "NOT": "not"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison; `own` is True for a field of the memory, False for a key of its metadata."""

    field: str
    own: bool
    operator: Operator
    value: Scalar | tuple[Scalar, ...] = None


@dataclass(frozen=True, slots=True)
class Group:
    """A combination of conditions. ``and``: all parts match; ``or``: at least one; ``not``: none."""

    kind: Literal["and", "or", "not"]
    parts: tuple[Filter, ...]


Filter: TypeAlias = Condition | Group


def parse_filters(filters: Mapping[str, Any] | None) -> tuple[dict[Axis, str], Filter | None]:
    """Split mem0 filters into ids and conditions on metadata.

    Raises:
        QueryError: an operator is unknown, or does not accept the value.
        ScopeError: an id is under OR or NOT, has an operator other than eq, or is given twice with two values.
    """
    if filters is None:
        return {}, None
    ids: dict[Axis, str] = {}
    parsed = _parse_all(filters, ids, ids_allowed=True)
    return ids, parsed if parsed.parts else None


def _parse_all(filters: object, ids: dict[Axis, str], *, ids_allowed: bool, depth: int = 0) -> Group:
    if depth > _MAX_DEPTH:
        raise QueryError(f"the filter is nested more than {_MAX_DEPTH} deep")
    if not isinstance(filters, Mapping):
        raise QueryError(
            f"filters must be a mapping of keys, not {describe_value(filters)}; pass, for example,"
            f" filters={{'topic': 'work'}}",
            query=filters,
        )
    parts: list[Filter] = []
    for key, value in filters.items():
        if key in _GROUPS:
            group = _parse_group(_GROUPS[key], value, ids, ids_allowed=ids_allowed, depth=depth + 1)
            parts += [group] if group.parts else []
        elif key in set(Axis):
            _take_id(Axis(key), value, ids, allowed=ids_allowed)
        elif isinstance(key, str):
            parts += _parse_field(key, value)
        else:
            raise QueryError(
                f"filters: a key must be a string, not {key!r}; pass, for example, filters={{{str(key)!r}: ...}}",
                query=filters,
            )
    return Group("and", tuple(parts))


def _parse_group(
    kind: Literal["and", "or", "not"], value: object, ids: dict[Axis, str], *, ids_allowed: bool, depth: int
) -> Group:
    branches = [value] if isinstance(value, Mapping) else value
    if not isinstance(branches, Sequence) or isinstance(branches, str):
        raise QueryError(
            f"{kind.upper()} in filters takes a list of filters, not {describe_value(value)}; pass, for example,"
            f" {{{kind.upper()!r}: [{{'topic': 'work'}}]}}",
            query=value,
        )
    parts = [_parse_all(one, ids, ids_allowed=ids_allowed and kind == "and", depth=depth) for one in branches]
    if kind == "or" and not parts:
        raise QueryError("OR needs at least one filter", query=value)
    # An empty branch of AND has no effect; under OR it would match everything, under NOT nothing.
    return Group(kind, tuple(part for part in parts if part.parts or kind != "and"))


def _take_id(axis: Axis, value: object, ids: dict[Axis, str], *, allowed: bool) -> None:
    if not allowed:
        given = describe_value(value)
        raise ScopeError(
            f"{axis}={given} is not allowed under OR or NOT: a call names one scope; pass {axis}= to the call"
        )
    if isinstance(value, Mapping) and set(value) == {"eq"}:
        value = value["eq"]
    if not isinstance(value, str):
        raise ScopeError(f"{axis} in filters must be one id, not {value!r}; make one call for each id")
    if ids.setdefault(axis, value) != value:
        raise ScopeError(f"{axis} is given twice in filters: {ids[axis]!r} and {value!r}; pass it once")


def _parse_field(key: str, value: object) -> list[Filter]:
    own = key in OWN_FIELDS
    field = key.removeprefix("metadata.") if not own else key
    if isinstance(value, Mapping):
        if key.startswith("$") and (group := key[1:].upper()) in _GROUPS:
            raise QueryError(
                f"{key} in filters takes a list of filters, not {describe_value(value)}; pass {{{group!r}: [...]}}",
                query=value,
            )
        if not value:
            raise QueryError(
                f"the filter on {key!r} is empty, {{}}; pass a value or an operator, for example"
                f" {{{key!r}: {{'gte': 3}}}}",
                query=value,
            )
        return [_condition(field, own, operator, operand) for operator, operand in value.items()]
    if value == "*":
        return [Condition(field, own, "exists")]
    return [_condition(field, own, "in" if isinstance(value, (list, tuple, set)) else "eq", value)]


def _condition(field: str, own: bool, operator: object, value: object) -> Condition:
    if operator in _EQUALITY or operator == "contains":
        _check_scalar(field, value)
    elif operator in _ORDER:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise QueryError(
                f"{operator} on {field!r} compares numbers or strings, not {describe_value(value)}; pass one, or use"
                " eq",
                query=value,
            )
        _check_scalar(field, value)
    elif operator == "icontains":
        if not isinstance(value, str):
            raise QueryError(
                f"icontains on {field!r} takes a string, not {describe_value(value)}; pass a text", query=value
            )
    elif operator in _MEMBERSHIP:
        if not isinstance(value, (list, tuple, set)):
            raise QueryError(
                f"{operator} on {field!r} takes a list, not {describe_value(value)}; pass"
                f" {{{field!r}: {{{operator!r}: [...]}}}}",
                query=value,
            )
        for element in value:
            _check_scalar(field, element)
        value = tuple(value)
    else:
        known = sorted(_EQUALITY | _ORDER | _MEMBERSHIP | _TEXT)
        hint = suggest(str(operator).removeprefix("$").casefold(), known)
        raise QueryError(
            f"unknown operator {operator!r} on {field!r} in filters{hint}; pass one of them", query=operator
        )
    if own and field in _TIMES:
        value = tuple(map(_moment, value)) if isinstance(value, tuple) else _moment(value)
        if operator in _ORDER and not (_PARTIAL_DATE.fullmatch(str(value)) or _is_time(value)):
            raise QueryError(
                f"{operator} on {field!r} takes a time, not {describe_value(value)}; pass ISO 8601 text such as"
                " '2026-01-31', or Unix seconds",
                query=value,
            )
    return Condition(field, own, operator, value)  # type: ignore[arg-type]


def _moment(value: object) -> object:
    """Return a timestamp in the stored form, so that texts compare like times; other values are unchanged."""
    try:
        return value if value is None or isinstance(value, bool) else parse_timestamp(value)
    except InputError:
        return value


_PARTIAL_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?")
"""Years and months compare as texts."""


def _is_time(value: object) -> bool:
    try:
        return bool(parse_timestamp(value))
    except InputError:
        return False


def _check_scalar(field: str, value: object) -> None:
    if value is not None and not isinstance(value, (str, int, float, bool)):
        group = field.removeprefix("$").upper()
        hint = f"; did you mean {group!r}?" if group in _GROUPS else "; pass one of these"
        raise QueryError(
            f"{field!r} in filters can be compared with text, numbers, booleans and null, not"
            f" {describe_value(value)}{hint}",
            query=value,
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryError(f"{field!r} cannot be compared with {value!r}", query=value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise QueryError(f"{field!r} is compared with {value!r}, which is beyond 64 bits", query=value)


def unexpired(today: str, filter: Filter | None) -> Filter:
    """Return `filter` restricted to memories that do not expire before `today` (``YYYY-MM-DD``)."""
    lasting = Condition("expiration_date", True, "eq", None)
    living = Group("or", (lasting, Condition("expiration_date", True, "gte", today)))
    return living if filter is None else Group("and", (filter, living))


def matches(filter: Filter | None, item: MemoryItem) -> bool:
    """Return True if `item` passes the filter. Translations by stores must agree with this function.

    A missing key equals null. Numbers compare with numbers and text with text; other values are not ordered.
    ``contains`` matches a part of a text, or an element of a list.
    """
    if filter is None:
        return True
    if isinstance(filter, Group):
        results = (matches(part, item) for part in filter.parts)
        return any(results) if filter.kind == "or" else all(results) if filter.kind == "and" else not any(results)
    found = getattr(item, filter.field) if filter.own else item.metadata.get(filter.field)
    return _TESTS[filter.operator](found, filter.value)


def _same(found: Any, value: Any) -> bool:
    # JSON distinguishes true from 1; Python does not.
    return isinstance(found, bool) == isinstance(value, bool) and bool(found == value)


def _order_test(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(found: Any, value: Any) -> bool:
        both_text = isinstance(found, str) and isinstance(value, str)
        both_numbers = _is_number(found) and _is_number(value)
        return (both_text or both_numbers) and compare(found, value)

    return test


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, (list, tuple)) and any(_same(element, value) for element in found)


def _icontains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return str(value).casefold() in found.casefold()
    return isinstance(found, (list, tuple)) and any(
        isinstance(element, str) and element.casefold() == str(value).casefold() for element in found
    )


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _same,
    "ne": lambda found, value: not _same(found, value),
    "gt": _order_test(lambda found, value: bool(found > value)),
    "gte": _order_test(lambda found, value: bool(found >= value)),
    "lt": _order_test(lambda found, value: bool(found < value)),
    "lte": _order_test(lambda found, value: bool(found <= value)),
    "in": lambda found, values: any(_same(found, value) for value in values),
    "nin": lambda found, values: not any(_same(found, value) for value in values),
    "contains": _contains,
    "icontains": _icontains,
    "exists": lambda found, _: found is not None,
}
