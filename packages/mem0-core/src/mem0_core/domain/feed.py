"""The change feed: every change of a memory as an event with a number, without its text."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from mem0_core._system.records import dataclass
from mem0_core.domain.records import HistoryEvent

ScopeEvent = Literal["ERASE", "RESET"]
"""Events without ids: a scope was erased with its part of the feed, or the whole store was emptied."""

SpaceEvent = Literal["PROPOSE", "APPROVE", "REJECT"]
"""Events of a write to a space that waits for approval."""

EventKind: TypeAlias = HistoryEvent | ScopeEvent | SpaceEvent

Reason = Literal[
    "add", "import", "update", "pin", "unpin", "feedback", "delete", "retract", "erase", "reset", "approval"
]
"""Operation that made a change. Changes from before the feed existed have the reason ``history``."""


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """One change, as the store keeps it; `ChangeDict` describes the values."""

    seq: int
    event: str
    memory_id: str | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    actor_id: str | None
    role: str | None
    source: str | None
    why: str
    at: str


class ChangeDict(TypedDict):
    """One change in the feed.

    Attributes:
        seq: number of the change, and the cursor behind it. Later changes have higher numbers, with gaps.
        event: "ADD", "UPDATE", "DELETE", "RETRACT", "RESTORE"; or "ERASE" or "RESET", which have no ids; or, in a
            space, "PROPOSE", "APPROVE" or "REJECT".
        memory_id: id of the memory; of the pending write, for an event of its approval.
        user_id, agent_id, run_id: scope of the memory.
        actor_id: name of the speaker, if the memory has one; the user who proposed, approved or rejected a write.
        role: role of the message that the memory came from.
        source: source of the messages behind the change, as `add` was given it.
        why: operation that made the change: "add", "import", "update", "pin", "unpin", "feedback", "delete", "retract",
            "erase", "reset", "approval", or "history" for a change from before the feed existed.
        at: ISO 8601 time at which the change was written.
        space: name of the space of the memory, for a `Principal`; None for the principal's own.
    """

    seq: int
    event: str
    memory_id: str | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    actor_id: str | None
    role: str | None
    source: str | None
    why: str
    at: str
    space: NotRequired[str | None]


class ChangesDict(TypedDict):
    """A page of the feed.

    Attributes:
        results: the changes, in their order.
        cursor: value of `after` for the next page.
    """

    results: list[ChangeDict]
    cursor: int
