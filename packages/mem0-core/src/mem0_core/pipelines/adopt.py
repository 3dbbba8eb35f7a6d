"""Taking memories over from another store, one by one in the order of their times, under their own ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mem0_core.errors import InputError, ScopeError
from mem0_core.flow import Flow, do
from mem0_core.pipelines.near import embed_texts, space_of
from mem0_core.pipelines.relate import tell
from mem0_core.pipelines.stated import stated
from mem0_core.policy import Policy, judged
from mem0_core.ports import Ports
from mem0_core.records import (
    Change,
    Event,
    HistoryRow,
    MemoryItem,
    Scope,
    content_hash,
    is_valid_text,
)
from mem0_core.text import check_metadata, parse_day, parse_time

if TYPE_CHECKING:
    from mem0_core.care import Care

__all__ = ["adopt", "allowed", "history_of", "items_of"]

_BATCH = 256

Progress = Callable[[int, int | None], object]


def items_of(memories: Iterable[Mapping[str, Any]]) -> list[MemoryItem]:
    """Memories as they come from elsewhere, checked; oldest first.

    Raises:
        InputError, ScopeError: naming the memory, and what is wrong with it.
    """
    items = [_item(memory, place) for place, memory in enumerate(memories)]
    return sorted(items, key=lambda item: item.created_at)


def _item(memory: Mapping[str, Any], place: int) -> MemoryItem:
    memory_id, text = memory.get("id"), memory.get("memory")
    what = f"memory {memory_id!r}" if memory_id else f"memories[{place}]"
    if not isinstance(memory_id, str) or not memory_id or not is_valid_text(memory_id):
        raise InputError(f"{what}: its id must be a non-empty string, not {memory_id!r}")
    if not isinstance(text, str) or not text.strip() or not is_valid_text(text):
        raise InputError(f"{what} has no text: {text!r}")
    try:
        scope = Scope(memory.get("user_id"), memory.get("agent_id"), memory.get("run_id"))
    except ScopeError as error:
        raise ScopeError(f"{what}: {error}") from error
    at = {key: memory.get(key) for key in ("created_at", "updated_at")}
    until = memory.get("expiration_date")
    return MemoryItem(
        id=memory_id,
        text=text,
        scope=scope,
        hash=content_hash(text),
        created_at=parse_time(at["created_at"], f"{what}.created_at"),
        updated_at=None if at["updated_at"] is None else parse_time(at["updated_at"], f"{what}.updated_at"),
        metadata=check_metadata(memory.get("metadata"), what),
        actor_id=memory.get("actor_id"),
        role=memory.get("role"),
        memory_type=memory.get("memory_type"),
        expiration_date=None if until is None else parse_day(until, f"{what}.expiration_date"),
    )


def history_of(rows: Sequence[Mapping[str, Any]]) -> list[HistoryRow]:
    """Rows of mem0's history table.

    Raises:
        InputError: a row without id, memory or event.
    """
    made = []
    for place, row in enumerate(rows):
        if not all(isinstance(row.get(key), str) for key in ("id", "memory_id", "event")):
            raise InputError(f"history[{place}] has no id, memory_id or event")
        values: dict[str, Any] = {field.name: row.get(field.name) for field in dataclasses.fields(HistoryRow)}
        made.append(HistoryRow(**{**values, "is_deleted": bool(values["is_deleted"])}))
    return made


def allowed(
    items: Sequence[MemoryItem], history: Sequence[HistoryRow], policy: Policy | None
) -> tuple[list[MemoryItem], list[HistoryRow]]:
    """What a policy leaves of them. Of history it is asked for texts of memories that come along; others have none."""
    if policy is None:
        return list(items), list(history)
    left = [(item, judged(policy, item.text, item.scope)) for item in items]
    kept = [dataclasses.replace(item, text=text, hash=content_hash(text)) for item, text in left if text is not None]
    scopes = {item.id: item.scope for item in kept}
    rows = []
    for row in history:
        if row.memory_id in scopes:
            texts = [text and judged(policy, text, scopes[row.memory_id]) for text in (row.old_memory, row.new_memory)]
            rows.append(dataclasses.replace(row, old_memory=texts[0], new_memory=texts[1]))
    return kept, rows


def adopt(
    ports: Ports,
    care: Care,
    items: Sequence[MemoryItem],
    history: Sequence[HistoryRow],
    on_progress: Progress | None = None,
) -> Flow[dict[str, int]]:
    """Commit each memory that is not here yet, with its relations; then its history.

    Each is a commit of its own, so that a later one can end what an earlier one says, as if they had been added so.
    """
    counts = {"added": 0, "known": 0, "deleted": 0}
    done = 0
    for start in range(0, len(items), _BATCH):
        batch = items[start : start + _BATCH]
        fresh = []
        for item in batch:
            fate = yield from _fate(ports, item)
            if fate is None:
                fresh.append(item)
            else:
                counts[fate] += 1
        vectors = (yield from embed_texts(ports, [item.text for item in fresh])) if fresh else ()
        for item, vector in zip(fresh, vectors, strict=True):
            counts["added" if (yield from _committed(ports, item, vector)) else "known"] += 1
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(items))
    yield from tell(ports)
    new = (yield from do(care.adopt_history, history)) if history else 0
    return {**counts, "history": new}


def _fate(ports: Ports, item: MemoryItem) -> Flow[str | None]:
    """What became of a memory that was taken over before; None for one that was not."""
    if (yield from do(ports.store.get, item.id)) is not None:
        return "known"
    past = yield from do(ports.store.history, item.id)
    return "deleted" if past and past[-1].event == Event.DELETE else None


def _committed(ports: Ports, item: MemoryItem, vector: Any) -> Flow[bool]:
    """Whether the scope did not say it yet."""
    change = Change(Event.ADD, item, vector=vector)
    by_rules = ports.graph is not None and ports.graph.chat is None  # a model is not asked, as in other imports
    relations = (yield from stated(ports, item)) if by_rules else ()
    commit = yield from do(
        ports.store.commit,
        [change],
        scope=item.scope,
        at=item.updated_at or item.created_at,
        space=space_of(ports, [change], relations),
        relations=relations,
        on_conflict=ports.on_conflict,
    )
    return commit.applied[0].event is Event.ADD
