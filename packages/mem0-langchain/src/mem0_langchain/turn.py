"""Turns of an agent, and the messages of a turn that still have to be remembered.

A turn's state is kept in the agent's own state, under a private key, so that it survives interrupts and the users of
one agent stay separate. It is plain JSON, which every checkpointer can store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from langchain_core.messages import BaseMessage

from mem0_core import MemoryDict, Scope
from mem0_langchain.convert import find_last_turn

__all__ = [
    "RecalledMemory",
    "TurnState",
    "begin_turn",
    "finish_turn",
    "to_recalled_memory",
    "turn_scope",
    "unremembered_messages",
]


class RecalledMemory(TypedDict, total=False):
    """The fields of a recalled memory that a prompt or a reader of the state needs."""

    id: str
    memory: str
    score: float
    created_at: str
    updated_at: str | None
    actor_id: str
    role: str


class TurnState(TypedDict):
    """One middleware's part of an agent's state.

    Attributes:
        scope: owner of the turn, as ids; None once the turn is over.
        recalled: the memories recalled for it.
        block: the text that the model is shown: memories, relations and summary.
        first: id of the first message to remember; "" if there is none.
        after: id of the message before that, "" at the start. `first` has precedence: a middleware that cuts the
            history keeps the user's last message, if any.
        last_seen: id of the last message when the turn began.
    """

    scope: dict[str, str] | None
    recalled: list[RecalledMemory]
    block: str
    first: str
    after: str
    last_seen: str


def begin_turn(messages: Sequence[BaseMessage], previous: TurnState | None, scope: Scope) -> TurnState:
    """Return the turn that starts with `messages`, history included; nothing is recalled yet.

    A turn that never ended (the model or the memory failed) is remembered along with this one.
    """
    ids = {str(axis): value for axis, value in scope.ids.items()}
    start = _start_index(messages, previous, ids)
    end = len(messages)
    return TurnState(
        scope=ids,
        recalled=[],
        block="",
        first=_id_before(messages, start + 1) if start < end else "",
        after=_id_before(messages, start),
        last_seen=_id_before(messages, end),
    )


def unremembered_messages(messages: Sequence[BaseMessage], turn: TurnState | None) -> Sequence[BaseMessage]:
    """Return the messages of `turn` so far."""
    return messages[_first_unremembered(messages, turn) :]


def finish_turn(messages: Sequence[BaseMessage]) -> TurnState:
    """Return a finished turn, which keeps only its position in the history."""
    return TurnState(
        scope=None, recalled=[], block="", first="", after=_id_before(messages, len(messages)), last_seen=""
    )


def turn_scope(turn: TurnState | None) -> Scope | None:
    """Return the owner of the current turn; None if no turn is active."""
    return None if turn is None or turn["scope"] is None else Scope(**turn["scope"])


def to_recalled_memory(memory: MemoryDict) -> RecalledMemory:
    """Return the fields of a memory that a turn keeps."""
    return cast(RecalledMemory, {key: value for key, value in memory.items() if key in RecalledMemory.__annotations__})


def _start_index(messages: Sequence[BaseMessage], previous: TurnState | None, ids: Mapping[str, Any]) -> int:
    if previous is not None and previous["scope"] not in (None, ids):
        # Another user's turn failed in this thread: their messages are not remembered as this user's.
        last_seen = _index_after(messages, previous["last_seen"]) or 0
        return last_seen + find_last_turn(messages[last_seen:])
    return _first_unremembered(messages, previous)


def _first_unremembered(messages: Sequence[BaseMessage], turn: TurnState | None) -> int:
    """Return the index of the first message to remember; the last turn if the history no longer shows it."""
    if turn is not None and turn["first"] and (past := _index_after(messages, turn["first"])) is not None:
        return past - 1
    known = None if turn is None else _index_after(messages, turn["after"])
    return find_last_turn(messages) if known is None else known


def _index_after(messages: Sequence[BaseMessage], message_id: str) -> int | None:
    """Return the index after the message with this id, or None if it is missing."""
    if message_id == "":
        return 0
    return next((index + 1 for index in reversed(range(len(messages))) if messages[index].id == message_id), None)


def _id_before(messages: Sequence[BaseMessage], index: int) -> str:
    """Return the id of the message before `index`, "" at the start. Messages in an agent's state always have one."""
    return (messages[index - 1].id or "") if index > 0 else ""
