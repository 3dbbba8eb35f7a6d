"""Trust classes: the kinds of origin that a memory can have, from the least to the most trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from mem0_core.domain.filters import Condition, Filter, Group
from mem0_core.domain.records import RESERVED_PREFIX, InternalId, Message, Trust, is_valid_text
from mem0_core.errors import InputError

TrustClass = Literal["user", "assistant", "tool", "import"]

TRUST_CLASSES: tuple[TrustClass, ...] = ("user", "assistant", "tool", "import")
"""Names of the classes, from the most to the least trusted."""

MAX_SOURCE_CHARS = 1_000


def parse_trust(value: object, name: str) -> Trust | None:
    """Return the class that an argument names; None for None.

    Raises:
        InputError: there is no such class.
    """
    if value is None:
        return None
    if not isinstance(value, str) or value not in TRUST_CLASSES:
        raise InputError(
            f"unknown {name} {value!r}; supported: {', '.join(map(repr, TRUST_CLASSES))}; pass one of them"
        )
    return Trust[value.upper()]


def parse_source(value: object) -> str | None:
    """Return the name of a source; None for None.

    Raises:
        InputError: it is not a text that can be stored, is blank, or is too long.
    """
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value or not is_valid_text(value):
        raise InputError(f"source must be a non-empty string, not {value!r}; pass, for example, 'tool:web_search'")
    if value.startswith(RESERVED_PREFIX) and not isinstance(value, InternalId):
        raise InputError(f"source begins with {RESERVED_PREFIX!r}, which is reserved: choose another name")
    if len(value) > MAX_SOURCE_CHARS:
        raise InputError(f"source has {len(value)} characters; at most {MAX_SOURCE_CHARS} are accepted")
    return value


def trust_name(trust: Trust) -> TrustClass:
    """Return the name of a class."""
    return TRUST_CLASSES[Trust.USER - trust]


Origin: TypeAlias = tuple[str | None, TrustClass | None]
"""Source and trust class as a call names them."""


def parse_origin(source: object, trust: object) -> tuple[str | None, Trust | None]:
    """Return the origin that the arguments of a call name.

    Raises:
        InputError: one of them is invalid.
    """
    return parse_source(source), parse_trust(trust, "trust")


def name_origin(messages: Iterable[Message], origin: tuple[str | None, Trust | None]) -> tuple[Message, ...]:
    """Return messages with the origin that a call names; without one, messages keep their own."""
    source, trust = origin
    if source is None and trust is None:
        return tuple(messages)
    return tuple(
        replace(
            message,
            source=message.source if source is None else source,
            trust=message.trust if trust is None else trust,
        )
        for message in messages
    )


def at_least(trust: Trust | None, filter: Filter | None) -> Filter | None:
    """Return `filter` restricted to memories of a class or a more trusted one."""
    if trust is None:
        return filter
    trusted = Condition("trust", True, "gte", int(trust))
    return trusted if filter is None else Group("and", (filter, trusted))
