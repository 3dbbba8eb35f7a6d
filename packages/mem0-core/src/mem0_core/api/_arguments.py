"""Validation and conversion of the arguments of public methods, with one error text per mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from mem0_core._system.files import describe_unwritable, replace_atomically
from mem0_core.domain.filters import Filter, parse_filters
from mem0_core.domain.policy import POLICY_REFUSAL
from mem0_core.domain.records import Axis, Message, Messages, Scope
from mem0_core.domain.suggestions import describe_misspelled_id, describe_value
from mem0_core.domain.timestamps import parse_date, parse_timestamp
from mem0_core.errors import InputError, ScopeError
from mem0_core.language.messages import parse_messages

DEFAULT_LIMIT = 100
"""Default maximum of `search` and `get_all`; as in mem0 1.x."""

_MAX_COUNT = 2**31 - 1  # the largest number that all stores and FAISS take

ScopeIds: TypeAlias = tuple[str | None, str | None, str | None]
"""The arguments user_id, agent_id and run_id of a call."""


def parse_scope_and_filter(filters: Mapping[str, Any] | None, ids: ScopeIds) -> tuple[Scope, Filter | None]:
    """Return the scope that `ids` and `filters` name together, and the remaining filter.

    Raises:
        ScopeError: an argument and a filter name different ids, no id is given, or one is invalid.
        QueryError: a filter is invalid.
    """
    filter_ids, filter = parse_filters(filters)
    given = dict(zip((Axis.USER, Axis.AGENT, Axis.RUN), ids, strict=True))
    for axis, value in filter_ids.items():
        if given[axis] not in (None, value):
            raise ScopeError(f"{axis} is given twice: {given[axis]!r} and {value!r}; pass it once")
        given[axis] = value
    if filters and not any(given.values()) and (hint := describe_misspelled_id(filters, "filters")):
        raise ScopeError(f"give at least one of user_id, agent_id, run_id: none was given{hint}")
    return Scope(given[Axis.USER], given[Axis.AGENT], given[Axis.RUN]), filter


def scope_or_all(ids: ScopeIds) -> Scope | None:
    """Return the scope of the given ids, or None, for all scopes, if there are none."""
    return Scope(*ids) if any(value is not None for value in ids) else None


def validate_limit(limit: int | None, top_k: int | None, *, default: int) -> int:
    """Return the maximum that `limit` or its other name asks for; a `limit` that is the default counts as omitted."""
    if top_k is None:
        return validate_count(default if limit is None else limit, "limit", example=10)
    if limit not in (None, default, top_k):
        raise InputError(f"limit={limit} and top_k={top_k} name the same argument; pass one of them")
    return validate_count(top_k, "top_k", example=10)


def validate_count(value: object, name: str, *, minimum: int = 1, maximum: int = _MAX_COUNT, example: int = 10) -> int:
    """Return a count, with a huge one as the largest that every store takes."""
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        kind = "a positive whole number" if minimum == 1 else f"a whole number of at least {minimum}"
        raise InputError(f"{name} must be {kind}, not {describe_value(value)}; pass, for example, {name}={example}")
    return min(value, maximum)


def validate_id(memory_id: object) -> str:
    if not isinstance(memory_id, str) or not memory_id:
        raise InputError(
            f"memory_id must be a non-empty string, not {memory_id!r}; pass the 'id' of a result of add, search or"
            " get_all"
        )
    return memory_id


def resolve_timestamp(timestamp: object, messages: Sequence[Message]) -> str | None:
    """Return the time of an add: the argument, else the time of its last message; None for now."""
    if timestamp is not None:
        return parse_timestamp(timestamp)
    return next((message.timestamp for message in reversed(messages) if message.timestamp), None)


def resolve_expiration_date(expiration_date: str | date | None, ttl: timedelta | float | None) -> str | None:
    """Return the last day of memories, from the argument that is given."""
    if expiration_date is not None and ttl is not None:
        raise InputError("expiration_date and ttl exclude each other; pass one of them")
    if ttl is not None:
        return _add_lifetime(ttl)
    return None if expiration_date is None else parse_date(expiration_date, "expiration_date")


def _add_lifetime(ttl: timedelta | float) -> str:
    """Return the day on which a lifetime that begins now ends; at most the last day of the calendar."""
    if isinstance(ttl, bool) or not isinstance(ttl, (timedelta, int, float)):
        given = describe_value(ttl)
        raise InputError(f"ttl must be seconds or a timedelta, not {given}; pass, for example, timedelta(days=30)")
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if not seconds > 0:  # NaN too
        raise InputError(f"ttl must be positive, not {ttl!r}; pass, for example, timedelta(days=30)")
    now = datetime.now(UTC)
    rest = datetime.max.replace(tzinfo=UTC) - now
    end = datetime.max if seconds >= rest.total_seconds() else now + timedelta(seconds=float(seconds))
    return end.date().isoformat()


def extract_query_text(query: Messages | None) -> str | None:
    """Return the text of a query: the text itself, or the last user message."""
    if query is None or isinstance(query, str):
        return query
    messages = parse_messages(query, "query").messages
    return next((message.content for message in reversed(messages) if message.role == "user"), None)


def extract_message_texts(query: Messages | None) -> list[str]:
    """Return the texts of the messages of a conversation; none for a query that is a text."""
    return (
        []
        if query is None or isinstance(query, str)
        else [each.content for each in parse_messages(query, "query").messages]
    )


def raise_policy_refusal(text: str) -> str:
    raise InputError(f"{POLICY_REFUSAL}: {text[:40]!r}")


def validate_threshold(threshold: object) -> float | None:
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise InputError(f"threshold must be a number in [0, 1], not {threshold!r}; pass, for example, threshold=0.3")
    return float(threshold)


def filename_timestamp() -> str:
    """Return the current time, to the microsecond, in a form for file names."""
    return datetime.now(UTC).strftime("%Y%m%d_%H%M%S_%f")


def write_atomically(file: Path, text: str) -> None:
    """Replace a file with `text`, or leave it unchanged on an error."""
    try:
        with replace_atomically(file) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(describe_unwritable(file, error)) from error
