"""Conversion between LangChain's types and mem0's: messages, documents, and memories in prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)

from mem0_core import InputError, MemoryDict, RelationDict, SearchResult
from mem0_core._system.boundary import convert_errors
from mem0_core.domain.records import Triplet
from mem0_core.domain.suggestions import describe_value
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION, memories_block, memory_line

__all__ = [
    "extract_memories",
    "extract_question",
    "extract_shown_texts",
    "find_last_turn",
    "format_memory_prompt",
    "is_from_user",
    "memory_to_document",
    "read_messages",
    "relation_to_document",
    "to_mem0_messages",
]

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_IGNORED_BLOCK_TYPES = frozenset({"reasoning", "tool_call", "tool_call_chunk", "invalid_tool_call", "server_tool_call"})


# --- messages ----------------------------------------------------------------------------------------------------


def read_messages(value: Any) -> list[BaseMessage]:
    """Read messages from a graph's state: LangChain messages, mappings, pairs, or one text.

    Raises:
        InputError: an item is not a message.
    """
    try:
        return convert_to_messages([value] if isinstance(value, (str, BaseMessage)) else value)
    except (ArithmeticError, AttributeError, LookupError, NotImplementedError, OSError, TypeError, ValueError) as error:
        given, reason = describe_value(value), str(error).partition("\n")[0]
        raise InputError(
            f"messages cannot be read: {reason}; given: {given}; pass messages of LangChain, mappings such as"
            " {'role': 'user', 'content': 'I ski.'}, or one text"
        ) from error


def to_mem0_messages(
    messages: Sequence[BaseMessage], *, ids: Sequence[str | None] | None = None
) -> list[dict[str, Any]]:
    """Convert the user's and the assistant's messages to the form that `Memory.add` takes.

    System messages, tool calls and tool results are left out, and so is text that a framework wrote in the user's name
    (a summary of the conversation). Images are kept as URLs or data URLs. Of other kinds of content only the kind is
    kept, so that `add` reports it as skipped.

    Args:
        ids: the id of each message, None for a message without one.
    """
    return [
        {"role": role, "content": content}
        | ({"name": message.name} if message.name else {})
        | ({"id": id} if id else {})
        for message, id in zip(messages, ids or [None] * len(messages), strict=True)
        if (role := _mem0_role(message)) is not None and (content := _convert_content(message))
    ]


def is_from_user(message: BaseMessage) -> bool:
    """Return True for a message that the user wrote."""
    return _mem0_role(message) == "user"


def find_last_turn(messages: Sequence[BaseMessage]) -> int:
    """Return the index where the last turn starts.

    A turn starts at a user message that does not follow another user message. Without user messages, it is 0.
    """
    start = len(messages)
    while start > 0 and _mem0_role(messages[start - 1]) != "user":
        start -= 1
    while start > 0 and _mem0_role(messages[start - 1]) == "user":
        start -= 1
    return start


def extract_question(messages: Sequence[BaseMessage]) -> str:
    """Return the user's text in the last turn of `messages`, the query for recall; may be empty."""
    texts = [message.text for message in messages[find_last_turn(messages) :] if _mem0_role(message) == "user"]
    return "\n".join(text for text in texts if text.strip())


def extract_shown_texts(messages: Iterable[BaseMessage]) -> list[str]:
    """Return the texts that the model sees in messages, with the memories that tools returned."""
    texts: list[str] = []
    for message in messages:
        memories = message.artifact if isinstance(message, ToolMessage) else None
        if isinstance(memories, list):
            found = (memory.get("memory") for memory in memories if isinstance(memory, Mapping))
            texts += [text for text in found if isinstance(text, str)]
        if text := message.text.strip():
            texts.append(text)
    return texts


def _mem0_role(message: BaseMessage) -> str | None:
    """Return ``"user"`` or ``"assistant"``, or None for messages that neither of them wrote."""
    if "lc_source" in message.additional_kwargs:  # LangChain marks generated messages with it
        return None
    if message.response_metadata.get("__is_handoff_back"):  # langgraph-supervisor writes it for an agent
        return None
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "assistant"
    return _ROLES.get(message.role) if isinstance(message, ChatMessage) else None


def _convert_content(message: BaseMessage) -> str | list[dict[str, Any]]:
    """Return the text, or the list of parts if there are other parts than text; empty if there is no content."""
    text = str(message.text)
    others = [] if isinstance(message.content, str) else [_convert_part(block) for block in message.content_blocks]
    parts = [part for part in others if part is not None]
    if not parts:
        return text if text.strip() else ""
    return ([{"type": "text", "text": text}] if text.strip() else []) + parts


def _convert_part(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert a non-text content part to mem0's form; return None for text, reasoning and tool calls."""
    kind = block["type"]
    if kind == "text" or kind in _IGNORED_BLOCK_TYPES or kind.endswith("_result"):
        return None
    if kind == "image" and block.get("url"):
        return {"type": "image_url", "image_url": {"url": block["url"]}}
    if kind == "image" and block.get("base64"):
        mime = block.get("mime_type", "image/jpeg")
        return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{block['base64']}"}}
    if kind == "non_standard":
        value = block.get("value")
        kind = value.get("type", kind) if isinstance(value, Mapping) else kind
        return None if kind in ("thinking", "redacted_thinking", "tool_use", "server_tool_use") else {"type": kind}
    return {"type": kind}


# --- memories ----------------------------------------------------------------------------------------------------


def extract_memories(result: SearchResult | list[MemoryDict]) -> list[MemoryDict]:
    """Return the memories of a search result; version "v1.0" returns them as a bare list."""
    return result["results"] if isinstance(result, Mapping) else result


def memory_to_document(memory: MemoryDict) -> Document:
    """Convert a memory to a document: its text and id, and everything else (score, times, ids, speaker) as metadata.

    The caller's own metadata is nested under the key ``metadata``, so that it cannot be mistaken for an id or a score.
    """
    rest = {key: value for key, value in memory.items() if key not in ("id", "memory")}
    return Document(id=memory["id"], page_content=memory["memory"], metadata=rest)


def relation_to_document(relation: RelationDict) -> Document:
    """Convert a relation to a document: its sentence, with all other fields as metadata."""
    triplet = Triplet(relation["source"], relation["relationship"], relation["destination"])
    return Document(page_content=triplet.sentence, metadata={**relation, "type": "relation"})


@convert_errors
def format_memory_prompt(memories: Sequence[Mapping[str, Any]], *, introduction: str = MEMORIES_INTRODUCTION) -> str:
    """Format memories as a block of data for a system prompt; empty if there are none.

    Args:
        memories: as `Memory.search` or `RecallNode` returns them.
        introduction: text that introduces the memories to the model.

    Raises:
        InputError: an item has no text.
    """
    for memory in memories:
        if "memory" not in memory:
            raise InputError(f"memories: {describe_value(memory)} has no key 'memory'; pass what Memory.search returns")
    return memories_block([memory_line(memory) for memory in memories], introduction=introduction)
