"""The part of a conversation that fits into a model's context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.utils import get_tokenizer

from mem0_llamaindex.convert import calls_tools, is_tool_result

__all__ = ["default_tokenizer", "fit_window"]


def default_tokenizer(text: str) -> Sequence[Any]:
    """LlamaIndex's own tokenizer, loaded when it is first used: half a second is too long for an event loop."""
    tokens: Sequence[Any] = get_tokenizer()(text)
    return tokens


def fit_window(messages: Sequence[ChatMessage], cost: Callable[[int], int], budget: int) -> list[ChatMessage]:
    """The last messages that cost no more than `budget`, whole, the very last one in any case.

    A tool call and its results stay or go together, and results whose call is missing go. Where older messages
    were cut off, the window begins with a user's message if it holds one: models want to be asked first.

    Args:
        cost: tokens of the message at a position; asked only of those that may fit.
    """
    kept: list[range] = []
    spent, cut = 0, False
    for unit in _iter_units(messages):
        spent += sum(map(cost, unit))
        if kept and spent > budget:
            cut = True
            break
        kept.append(unit)
    window = [messages[place] for unit in reversed(kept) for place in unit]
    return _trim_to_question(window) if cut else window


def _iter_units(messages: Sequence[ChatMessage]) -> Iterator[range]:
    """Positions that belong together, the last first: a message, or a tool call with its results."""
    end = len(messages)
    while end > 0:
        start = end - 1
        while start >= 0 and is_tool_result(messages[start]):
            start -= 1
        if start < end - 1 and (start < 0 or not calls_tools(messages[start])):
            end = start + 1  # results without their call: no model accepts them
            continue
        yield range(start, end)
        end = start


def _trim_to_question(window: list[ChatMessage]) -> list[ChatMessage]:
    first = next((place for place, message in enumerate(window) if message.role == MessageRole.USER), 0)
    return window[first:]
