"""Asking a model: one question, and one chance to mend an answer that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from mem0_core.domain.records import SkippedItem
from mem0_core.errors import ModelError, ReplyError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import ChatModel, Reply, Task, Tool
from mem0_core.llm.prompts import repair_messages
from mem0_core.llm.replies import Reading, merge

__all__ = ["ask_with_repair", "collect_skipped"]

T = TypeVar("T")


def ask_with_repair(
    chat: ChatModel,
    messages: Sequence[Mapping[str, Any]],
    *,
    task: Task,
    read: Callable[[Reply], Reading[T]],
    key: Callable[[T], Hashable],
    schema: type[BaseModel] | None = None,
    tools: Sequence[Tool] = (),
) -> Flow[Reading[T]]:
    """What the model answered, as far as `read` can tell.

    An answer with problems is asked for once more, with the complaint; what the second brings is added to what
    was readable in the first (two things are one where `key` says so). Problems that are left stay in the reading.

    Raises:
        ModelError: the first call failed. Where only the second did, the first answer stands as it is.
    """
    reply = yield from do(chat.complete, messages, task=task, schema=schema, tools=tools)
    reading = read(reply)
    if not reading.problems:
        return reading
    complaints = [str(problem) for problem in reading.problems]
    try:
        again = yield from do(
            chat.complete,
            repair_messages(messages, reading.raw, complaints),
            task="repair",
            schema=schema,
            tools=tools,
        )
    except ModelError:
        return reading
    return merge(reading, read(again), key)


def collect_skipped(reading: Reading[Any], task: Task, bad_reply: Literal["skip", "raise"]) -> tuple[SkippedItem, ...]:
    """What was not readable in the answers to `task`, for the caller to see.

    Raises:
        ReplyError: there is such a thing, and `bad_reply` is "raise".
    """
    if reading.problems and bad_reply == "raise":
        problems = tuple(problem.reason for problem in reading.problems)
        raise ReplyError(f"the reply to {task!r}: {'; '.join(problems)}", raw=reading.raw, problems=problems)
    return tuple(SkippedItem(reason=f"{task}: {problem.reason}", item=problem.item) for problem in reading.problems)
