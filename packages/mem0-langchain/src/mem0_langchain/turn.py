"""Turns of an agent, and the messages of a turn that still have to be remembered.

A turn's state is kept in the agent's own state, under a private key, so that it survives interrupts and the users of
one agent stay separate. It is plain JSON, which every checkpointer can store, and names memories by id: a graph streams
its state, and a checkpoint outlives the deletion of a memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage

from mem0_core import Scope
from mem0_core.language.messages import is_structured_output
from mem0_langchain.convert import extract_question, find_last_turn, is_from_user, to_mem0_messages

__all__ = [
    "TurnState",
    "begin_turn",
    "find_question",
    "finish_turn",
    "identify_messages",
    "is_run_by_tool",
    "keep_open",
    "to_remembered_messages",
    "turn_scope",
    "unremembered_messages",
]

_TOOLS_NODE = "tools"  # the node of LangChain's and LangGraph's agents that runs tools


class TurnState(TypedDict):
    """One middleware's part of an agent's state.

    Attributes:
        scope: owner of the turn, as ids; None once the turn is over.
        recalled: ids of the memories recalled for it.
        key: key of the text that the model is shown (memories, relations and summary); "" if there is none.
        first: id of the first message to remember; "" if there is none.
        after: id of the message before that, "" at the start. `first` has precedence: a middleware that cuts the
            history keeps the user's last message, if any.
        last_seen: id of the last message when the turn began, or when it could not be remembered.
        instructions: ids of the messages up to `last_seen` that programs wrote in failed turns.
    """

    scope: dict[str, str] | None
    recalled: list[str]
    key: str
    first: str
    after: str
    last_seen: str
    instructions: list[str]


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
        key="",
        first=_id_before(messages, start + 1) if start < end else "",
        after=_id_before(messages, start),
        last_seen=_id_before(messages, end),
        # The last message began this turn. Further ones after an answer came from a program before the failure.
        instructions=_instruction_ids(messages[:-1], previous) if previous and previous["scope"] == ids else [],
    )


def keep_open(messages: Sequence[BaseMessage], turn: TurnState) -> TurnState:
    """Return a turn that could not be remembered; the next turn of its thread includes it."""
    last_seen = _id_before(messages, len(messages))
    return {**turn, "last_seen": last_seen, "instructions": _instruction_ids(messages, turn)}


def unremembered_messages(messages: Sequence[BaseMessage], turn: TurnState | None) -> Sequence[BaseMessage]:
    """Return the messages of `turn` so far."""
    return messages[_first_unremembered(messages, turn) :]


def find_question(messages: Sequence[BaseMessage], turn: TurnState | None, *, all_by_user: bool = False) -> str:
    """Return the user's text in the last turn, the query for recall; may be empty.

    Args:
        all_by_user: True if no human message is an instruction of a program.
    """
    new = unremembered_messages(messages, turn)
    instructions = set() if all_by_user else _find_instructions(new, turn)
    return extract_question([message for index, message in enumerate(new) if index not in instructions])


def finish_turn(messages: Sequence[BaseMessage]) -> TurnState:
    """Return a finished turn, which keeps only its position in the history."""
    end = _id_before(messages, len(messages))
    return TurnState(scope=None, recalled=[], key="", first="", after=end, last_seen="", instructions=[])


def turn_scope(turn: TurnState | None) -> Scope | None:
    """Return the owner of the current turn; None if no turn is active."""
    return None if turn is None or turn["scope"] is None else Scope(**turn["scope"])


def identify_messages(messages: Sequence[BaseMessage], thread: object) -> list[str | None]:
    """Return the id of each message of a history: its own, or else its place in its turn.

    Args:
        thread: id of the thread, or None. Without one, a message that has no id itself has none.
    """
    prefix = "" if thread is None else f"{thread}"
    ids: list[str | None] = []
    turn = place = 0
    for index, message in enumerate(messages):
        if is_from_user(message) and not (index and is_from_user(messages[index - 1])):
            turn, place = turn + 1, 0
        position = None if thread is None else f"{prefix}/turn {turn}/{place}"
        ids.append(f"{prefix}/{message.id}" if message.id else position)
        place += 1
    return ids


def to_remembered_messages(
    messages: Sequence[BaseMessage], ids: Sequence[str | None], *, by_user: bool, turn: TurnState | None = None
) -> list[dict[str, Any]]:
    """Convert messages to those that `Memory.add` takes, without structured output and instructions of programs.

    Args:
        ids: the id of each message.
        by_user: False leaves out the human messages, which are tasks that another agent wrote.
        turn: the turn of the messages; None if no human message is an instruction of a program, or none is known.
    """
    instructions = _find_instructions(messages, turn)
    said = [
        index
        for index, message in enumerate(messages)
        if (by_user and index not in instructions and is_from_user(message))
        or not (is_from_user(message) or is_structured_output(str(message.text)))
    ]
    return to_mem0_messages([messages[index] for index in said], ids=[ids[index] for index in said])


def _find_instructions(messages: Sequence[BaseMessage], turn: TurnState | None) -> set[int]:
    """Return the indexes of human messages that follow an answer within the run: a program asks to correct it."""
    start = None if turn is None or not turn["last_seen"] else _index_after(messages, turn["last_seen"])
    earlier = () if turn is None else turn["instructions"]
    instructions = {index for index, message in enumerate(messages) if message.id and message.id in earlier}
    for index in range(len(messages) if start is None else start + 1, len(messages)):
        follows = index - 1 in instructions or _is_answer(messages[index - 1])
        if follows and is_from_user(messages[index]):
            instructions.add(index)
    return instructions


def _instruction_ids(messages: Sequence[BaseMessage], turn: TurnState) -> list[str]:
    return [messages[index].id or "" for index in sorted(_find_instructions(messages, turn))]


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls


def is_run_by_tool(config: Mapping[str, Any]) -> bool:
    """Return True in an agent that a tool of another agent runs: a model wrote its input."""
    namespace = (config.get("configurable") or {}).get("checkpoint_ns") or ""
    return any(node.partition(":")[0] == _TOOLS_NODE for node in namespace.split("|")[:-1])


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
