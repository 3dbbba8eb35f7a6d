"""One request to a model, with one repair request for an unreadable answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from mem0_core.domain.records import SkippedItem
from mem0_core.errors import ModelError, ReplyError
from mem0_core.flow import Flow
from mem0_core.interfaces import ChatModel, Reply, Task, Tool
from mem0_core.llm._json_replies import WHOLE_REPLY
from mem0_core.llm.calls import call_model
from mem0_core.llm.prompts import ReplyForm, repair_messages
from mem0_core.llm.replies import EMPTY_ITEMS, Reading, merge

T = TypeVar("T")


class UnusableReplyError(ReplyError):
    """The facts or operations of a reply stay unreadable as a whole: the messages have to be processed again."""

    def __init__(self, task: Task, *, raw: str, problems: tuple[str, ...]) -> None:
        super().__init__(f"the reply to {task!r} could not be used: {'; '.join(problems)}", raw=raw, problems=problems)
        self.task = task


def ask_with_repair(
    chat: ChatModel,
    messages: Sequence[Mapping[str, Any]],
    *,
    task: Task,
    read: Callable[[Reply], Reading[T]],
    key: Callable[[T], Hashable],
    schema: type[BaseModel] | None = None,
    tools: Sequence[Tool] = (),
    form: ReplyForm | None = None,
) -> Flow[Reading[T]]:
    """Ask a model, and return the readable part of its answer.

    An answer with problems is requested once more, with a list of them. Items of the second answer are added to those
    of the first, as `merge` joins them. Remaining problems stay in the reading.

    Args:
        read: reads a reply.
        key: identity of an item; items with equal keys are one.
        form: requested form of the reply; by default function calls if there are tools, and JSON otherwise.

    Raises:
        ModelError: the first call failed. If only the second failed, the first reading is returned.
    """
    reply = yield from call_model(chat.complete, messages, task=task, schema=schema, tools=tools)
    reading = read(reply)
    if not reading.problems:
        return reading
    complaints = [str(problem) for problem in reading.problems]
    try:
        again = yield from call_model(
            chat.complete,
            repair_messages(messages, reading.raw, complaints, form or ("calls" if tools else "json")),
            task="repair",
            schema=schema,
            tools=tools,
        )
    except ModelError:
        return reading
    return merge(reading, read(again), key)


def collect_skipped(reading: Reading[Any], task: Task, bad_reply: Literal["skip", "raise"]) -> tuple[SkippedItem, ...]:
    """Return the unreadable parts of the answers to `task` as skipped items.

    Raises:
        ReplyError: there are any, and `bad_reply` is "raise".
    """
    if reading.problems and bad_reply == "raise":
        problems = tuple(problem.reason for problem in reading.problems)
        raise ReplyError(f"the reply to {task!r}: {'; '.join(problems)}", raw=reading.raw, problems=problems)
    return tuple(SkippedItem(reason=f"{task}: {problem.reason}", item=problem.item) for problem in reading.problems)


def check_usable(reading: Reading[Any], task: Task, *, whole: bool = False) -> None:
    """Check that a reading without items means "nothing", not that the reply could not be read.

    Args:
        whole: True to accept a reading of which at least one problem concerns a single item.

    Raises:
        UnusableReplyError: it could not be read.
    """
    losses = [problem for problem in reading.problems if problem.loses_facts and problem.reason not in EMPTY_ITEMS]
    if reading.items or not losses or (whole and any(problem.about != WHOLE_REPLY for problem in losses)):
        return
    problems = tuple(dict.fromkeys(problem.reason for problem in losses))
    raise UnusableReplyError(task, raw=reading.raw, problems=problems)
