"""Conversion between LlamaIndex's types and mem0's: messages, token counts, and memories as nodes."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from mem0_core import InputError, MemoryDict, RelationDict, SearchResult
from mem0_core.domain.records import Triplet
from mem0_core.domain.suggestions import describe_value
from mem0_core.language.messages import is_structured_output

__all__ = [
    "Question",
    "calls_tools",
    "copy_message",
    "count_tokens",
    "ends_turn",
    "is_tool_result",
    "message_text",
    "question_text",
    "replace_lone_surrogates",
    "to_mem0_messages",
    "to_nodes",
]

_log = logging.getLogger(__name__)

Question = str | QueryBundle | ChatMessage | Sequence[ChatMessage]

_MEM0_ROLES = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
}
_MEDIA_TOKENS = {ImageBlock: 256, AudioBlock: 256, VideoBlock: 256, DocumentBlock: 2048}
"""LlamaIndex's own estimates (`llama_index.core.memory.Memory`)."""

_REASONING = re.compile(r"\A\s*Thought:.*\n\s*Answer:\s*", re.DOTALL)
"""Text that a ReActAgent writes to memory before its answer."""


def to_mem0_messages(
    messages: Sequence[ChatMessage], *, images: bool = False, ids: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Convert the user's and the assistant's messages to the form that `Memory.add` takes.

    System messages, tool calls and their results, a model's reasoning, structured output, and empty messages are left
    out.

    Args:
        images: keep images, as URLs or data URLs, for a memory that describes them (``enable_vision``).
        ids: the id of each message.
    """
    converted = [_to_mem0_message(message, images) for message in messages]
    if ids is not None:
        converted = [said and {**said, "id": id} for said, id in zip(converted, ids, strict=True)]
    return [said for said in converted if said is not None]


def _to_mem0_message(message: ChatMessage, images: bool) -> dict[str, Any] | None:
    role = _MEM0_ROLES.get(message.role)
    if role is None or calls_tools(message):
        return None
    text = _strip_reasoning(message) if role == "assistant" else message_text(message)
    urls = _image_urls(message) if images else []
    if (not text.strip() and not urls) or (role == "assistant" and is_structured_output(text)):
        return None
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content: Any = [{"type": "text", "text": text}, *parts] if parts else text
    name = message.additional_kwargs.get("name")
    return {"role": role, "content": content, **({"name": name} if isinstance(name, str) else {})}


def message_text(message: ChatMessage) -> str:
    """Return all text of a message, in storable form; for plain text blocks the same as its `content`."""
    return replace_lone_surrogates("\n".join(_block_texts(message.blocks)))


def question_text(question: Question | None) -> str | None:
    """Return the text of a question in any form that chat engines and agents pass on; None if there is no question.

    Of several messages, the last user message is the question, or else the last message.

    Raises:
        InputError: it is of another type.
    """
    if question is None:
        return None
    if isinstance(question, str):
        return replace_lone_surrogates(question)
    if isinstance(question, QueryBundle):
        return replace_lone_surrogates(question.query_str)
    if isinstance(question, ChatMessage):
        return message_text(question)
    if isinstance(question, Sequence):
        messages = [message for message in question if isinstance(message, ChatMessage)]
        if len(messages) == len(question):
            said = [message for message in messages if message.role == MessageRole.USER] or messages
            return message_text(said[-1]) if said else None
    raise InputError(
        f"input must be a text, a QueryBundle or messages, not {describe_value(question)}; pass, for example, 'tea'"
    )


def replace_lone_surrogates(text: str) -> str:
    """Return `text` with a question mark for each lone surrogate, as left by a stream that cut an emoji in two."""
    return text.encode("utf-8", "replace").decode("utf-8")


def ends_turn(message: ChatMessage) -> bool:
    """Return True if this message ends a turn: an assistant's answer without tool calls."""
    return _MEM0_ROLES.get(message.role) == "assistant" and not calls_tools(message)


def calls_tools(message: ChatMessage) -> bool:
    """Return True if the message calls tools, in its blocks or in the form of older LLM classes."""
    if any(isinstance(block, ToolCallBlock) for block in message.blocks):
        return True
    return any(message.additional_kwargs.get(key) for key in ("tool_calls", "function_call"))


def is_tool_result(message: ChatMessage) -> bool:
    """Return True for the result of a tool call."""
    return message.role in (MessageRole.TOOL, MessageRole.FUNCTION)


def copy_message(message: ChatMessage) -> ChatMessage:
    """Return a copy down to the blocks: agents write their state into the text of the messages they are given."""
    blocks = [block.model_copy() for block in message.blocks]
    return message.model_copy(update={"blocks": blocks, "additional_kwargs": dict(message.additional_kwargs)})


def count_tokens(message: ChatMessage, tokenizer: Callable[[str], Sequence[Any]]) -> int:
    """Return the tokens that a model reads of the message; images and other media at a flat estimate."""
    texts = [message_text(message)]
    texts += [block.content or "" for block in message.blocks if isinstance(block, ThinkingBlock)]
    texts += [
        f"{block.tool_name} {json.dumps(block.tool_kwargs, default=str)}"
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    texts += [str(message.additional_kwargs[key]) for key in ("tool_calls",) if message.additional_kwargs.get(key)]
    media = sum(_MEDIA_TOKENS.get(type(block), 0) for block in message.blocks)
    return media + sum(len(tokenizer(text)) for text in texts if text)


def _strip_reasoning(message: ChatMessage) -> str:
    """Return the assistant's answer without the reasoning that a ReActAgent puts before it."""
    return _REASONING.sub("", message_text(message), count=1)


def _block_texts(blocks: Iterable[Any]) -> list[str]:
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, CitableBlock):
            texts += _block_texts(block.content)
        elif isinstance(block, CitationBlock):
            texts += _block_texts([block.cited_content])
    return texts


def _image_urls(message: ChatMessage) -> list[str]:
    """Return each image's URL if it has one, so that nothing is fetched; else its bytes as a data URL."""
    urls: list[str] = []
    for block in message.blocks:
        if isinstance(block, ImageBlock):
            try:
                urls.append(str(block.url) if block.url else _data_url(block))
            except (OSError, ValueError) as error:
                _log.warning("an image is not remembered: %s", error)
    return urls


def _data_url(block: ImageBlock) -> str:
    encoded = block.resolve_image(as_base64=True).read().decode("ascii")
    return f"data:{block.image_mimetype or 'image/jpeg'};base64,{encoded}"


# --- memories ----------------------------------------------------------------------------------------------------

_LLM_METADATA_KEYS = ("created_at", "updated_at")
"""Of a memory's metadata, what a query engine shows a model beside its text."""


def to_nodes(found: SearchResult | list[MemoryDict], *, relations: bool = True) -> list[NodeWithScore]:
    """Convert a search result to nodes, best first: memories, then relations that none of these memories states.

    A node has the id, text and score of its memory, and everything else as metadata. The caller's own metadata is
    nested under the key ``metadata``, so that it cannot be mistaken for an id; relations that the memory states are
    under ``relations``, as sentences.
    """
    if not isinstance(found, Mapping):  # version "v1.0"
        return [_build_memory_node(memory, []) for memory in found]
    said = [(relation, _relation_sentence(relation)) for relation in found["relations"]]
    nodes = [
        _build_memory_node(memory, [sentence for relation, sentence in said if memory["id"] in relation["memories"]])
        for memory in found["results"]
    ]
    ids = {memory["id"] for memory in found["results"]}
    unattached = [pair for pair in said if relations and not ids & set(pair[0]["memories"])]
    return nodes + [_build_relation_node(relation, sentence) for relation, sentence in unattached]


def _build_memory_node(memory: MemoryDict, relations: list[str]) -> NodeWithScore:
    rest: dict[str, Any] = {key: value for key, value in memory.items() if key not in ("id", "memory", "score")}
    return _build_node(memory["id"], memory["memory"], memory.get("score"), {**rest, "relations": relations})


def _build_relation_node(relation: RelationDict, sentence: str) -> NodeWithScore:
    rest = {key: value for key, value in relation.items() if key != "score"}
    return _build_node(
        f"relation: {sentence}", sentence, relation.get("score"), {**rest, "created_at": rest["valid_from"]}
    )


def _build_node(id: str, text: str, score: float | None, metadata: dict[str, Any]) -> NodeWithScore:
    hidden = [key for key in metadata if key not in _LLM_METADATA_KEYS or metadata[key] is None]
    node = TextNode(
        id_=id,
        text=text,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=score)


def _relation_sentence(relation: RelationDict) -> str:
    return Triplet(relation["source"], relation["relationship"], relation["destination"]).sentence
