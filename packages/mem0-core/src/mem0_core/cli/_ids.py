"""Short ids: display of the last eight digits of an id, and resolution of a part of an id to the memory it denotes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mem0_core.cli._errors import UsageError
from mem0_core.errors import NotFoundError

if TYPE_CHECKING:
    from mem0_core.memory import Memory

SHORT_DIGITS = 8
"""Digits at the end of an id: those at the beginning are its time, which the memories of an import share."""
_MIN_DIGITS = 4
_MAX_CANDIDATES = 10
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PART = re.compile(r"[0-9a-f][0-9a-f-]*", re.IGNORECASE)


def shorten_id(memory_id: str) -> str:
    """Return the last digits of a UUID; other ids, of an adopted store, are returned whole."""
    return memory_id[-SHORT_DIGITS:] if _UUID.fullmatch(memory_id) else memory_id


def resolve_memory_id(memory: Memory, given: str, ids: Mapping[str, str | None] | None = None) -> str:
    """Return the id of the memory, present or deleted, that `given` denotes: its id, or the end or start of it.

    Args:
        ids: Owner. Memories of other owners are neither found nor listed. None: all memories are.

    Raises:
        NotFoundError: No memory has such an id. UsageError: Several have; the error lists them.
    """
    owner: dict[str, Any] = dict(ids or {})
    if _UUID.fullmatch(given) or memory.get(given, **owner) is not None:
        return given
    candidates = _find_memory_ids(memory, given.lower()) if _is_part(given) else []
    if any(value is not None for value in owner.values()):
        candidates = [one for one in candidates if memory.get(one, **owner) or memory.history(one, **owner)]
    if not candidates and memory.history(given, **owner):  # an id that is no UUID, of a deleted memory
        return given
    return _choose(given, candidates, [_describe(memory, candidate) for candidate in candidates[:_MAX_CANDIDATES]])


def resolve_merge_id(given: str, known: Iterable[str]) -> str:
    """Return the merge id among `known` that `given` denotes; an unknown one is returned as it is."""
    candidates = _match_part(given.lower(), known) if _is_part(given) and not _UUID.fullmatch(given) else []
    return _choose(given, candidates, candidates) if candidates else given


def _is_part(given: str) -> bool:
    return len(given) >= _MIN_DIGITS and _PART.fullmatch(given) is not None


def _find_memory_ids(memory: Memory, part: str) -> list[str]:
    """Return the ids that end or begin with `part`; only stores with SQL tables also know those of deleted memories."""
    find = getattr(memory.store, "find_memory_ids", None)
    if find is not None:
        return sorted(find(part))
    return _match_part(part, (item.id for item in memory.store.list_memories(None)))


def _match_part(part: str, ids: Iterable[str]) -> list[str]:
    return sorted({one for one in ids if one.lower().endswith(part) or one.lower().startswith(part)})


def _choose(given: str, candidates: Sequence[str], descriptions: Sequence[str]) -> str:
    if not candidates:
        raise NotFoundError(given)
    if len(candidates) == 1:
        return candidates[0]
    hidden = len(candidates) - len(descriptions)
    lines = [*descriptions, *([f"and {hidden} more"] if hidden else [])]
    raise UsageError(
        f"{given!r} is the end or start of {len(candidates)} ids; type more digits:"
        + "".join(f"\n  {x}" for x in lines)
    )


def _describe(memory: Memory, memory_id: str) -> str:
    found = memory.get(memory_id)
    return f"{memory_id}  {found['memory'][:80] if found else '(deleted)'}"
