"""The part of a conversation that fits into a model's context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.utils import get_tokenizer

from mem0_llamaindex.convert import calls_tools, is_tool_result

__all__ = ["default_tokenizer", "find_last_question", "fit_window"]


def default_tokenizer(text: str) -> Sequence[Any]:
    """Return LlamaIndex's own tokenizer, loaded on first use: half a second is too long for an event loop."""
    tokens: Sequence[Any] = get_tokenizer()(text)
    return tokens


def fit_window(messages: Sequence[ChatMessage], cost: Callable[[int], int], budget: int) -> list[ChatMessage]:
    """Return the last messages that cost no more than `budget`, whole; always the question and the very last message.

    The question is the last user message. If the messages after it do not fit, the older ones of them are left out. A
    tool call and its results are kept or dropped together, and results without their call are dropped. If older
    messages were cut off, the window begins with a user message if it has one, as models require.

    Args:
        cost: returns the tokens of the message at an index; called only for messages that may fit.
    """
    units = _iter_units(messages)
    last = next(units, None)
    if last is None:
        return []
    question = find_last_question(messages)
    kept, rest = [last], units
    spent, cut = sum(map(cost, last)), False
    if question is not None and question not in last:
        spent += cost(question)
        newer, rest = _split_at(units, question)
        spent, cut = _keep_fitting(newer, kept, cost, spent, budget)
        kept.append(range(question, question + 1))
    if not cut:
        spent, cut = _keep_fitting(rest, kept, cost, spent, budget)
    window = [messages[place] for unit in reversed(kept) for place in unit]
    return _trim_to_question(window) if cut else window


def find_last_question(messages: Sequence[ChatMessage]) -> int | None:
    """Return the index of the last user message, or None if there is none."""
    places = range(len(messages) - 1, -1, -1)
    return next((index for index in places if messages[index].role == MessageRole.USER), None)


def _keep_fitting(
    units: Iterable[range], kept: list[range], cost: Callable[[int], int], spent: int, budget: int
) -> tuple[int, bool]:
    """Append units to `kept` while they fit; return the tokens spent, and True if one did not fit."""
    for unit in units:
        price = sum(map(cost, unit))
        if spent + price > budget:
            return spent, True
        spent += price
        kept.append(unit)
    return spent, False


def _split_at(units: Iterator[range], question: int) -> tuple[list[range], Iterator[range]]:
    """Return the units newer than the question, and an iterator over the older ones."""
    newer = list(takewhile(lambda unit: question not in unit, units))
    return newer, units


def _iter_units(messages: Sequence[ChatMessage]) -> Iterator[range]:
    """Yield groups of indexes that belong together, the last first: a message, or a tool call with its results."""
    end = len(messages)
    while end > 0:
        start = end - 1
        while start >= 0 and is_tool_result(messages[start]):
            start -= 1
        if start < end - 1 and (start < 0 or not calls_tools(messages[start])):
            end = start + 1  # no model accepts results without their call
            continue
        yield range(start, end)
        end = start


def _trim_to_question(window: list[ChatMessage]) -> list[ChatMessage]:
    first = next((place for place, message in enumerate(window) if message.role == MessageRole.USER), 0)
    return window[first:]
