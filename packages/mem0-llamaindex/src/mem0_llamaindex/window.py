"""The part of a conversation that fits into a model's context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.utils import get_tokenizer

from mem0_llamaindex.convert import calls_tools, is_tool_result

__all__ = ["default_tokenizer", "fit_window"]


def default_tokenizer(text: str) -> Sequence[Any]:
    """Return LlamaIndex's own tokenizer, loaded on first use: half a second is too long for an event loop."""
    tokens: Sequence[Any] = get_tokenizer()(text)
    return tokens


def fit_window(messages: Sequence[ChatMessage], cost: Callable[[int], int], budget: int) -> list[ChatMessage]:
    """Return the last messages that cost no more than `budget`, whole; always at least the very last one.

    A tool call and its results are kept or dropped together, and results without their call are dropped. If older
    messages were cut off, the window begins with a user message if it has one, as models require.

    Args:
        cost: returns the tokens of the message at an index; called only for messages that may fit.
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
