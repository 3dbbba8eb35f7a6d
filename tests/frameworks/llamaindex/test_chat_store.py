"""`Mem0ChatStore` does what LlamaIndex's own `SimpleChatStore` does, and outlives the process."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore

from mem0_core import Memory
from mem0_core.testing import HashEmbedder
from mem0_llamaindex import Mem0ChatStore

MESSAGES = [
    ChatMessage(role=MessageRole.USER, content="Yes."),
    ChatMessage(role=MessageRole.USER, content="Yes."),
    ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [{"id": "1"}]}),
    ChatMessage(role=MessageRole.ASSISTANT, blocks=[ToolCallBlock(tool_call_id="2", tool_name="t", tool_kwargs={})]),
    ChatMessage(role=MessageRole.TOOL, content="42", additional_kwargs={"tool_call_id": "1"}),
    ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="Look"), ImageBlock(url="https://example.com/a.png")]),
]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_does_what_the_simple_store_does(core: Memory, mode: str) -> None:
    ours, theirs = Mem0ChatStore(core), SimpleChatStore()
    chance = random.Random(7)

    def both(method: str, *arguments: Any) -> None:
        asynchronous = {"add_message": "async_add_message"}.get(method, f"a{method}")
        expected = getattr(theirs, method)(*arguments)
        if mode == "sync":
            result = getattr(ours, method)(*arguments)
        else:
            result = asyncio.run(getattr(ours, asynchronous)(*arguments))
        assert (sorted(result) if method == "get_keys" else result) == expected, (method, arguments)

    for _ in range(40):
        key = chance.choice(["maya", "", "*"])
        method = chance.choice(["set_messages", "add_message", "add_message", "delete_message", "delete_last_message"])
        if method == "set_messages":
            both(method, key, chance.sample(MESSAGES, 3))
        elif method == "add_message":
            both(method, key, chance.choice(MESSAGES))
        elif method == "delete_message" and len(theirs.get_messages(key)) > 1:
            both(method, key, chance.randrange(5))
        elif len(theirs.get_messages(key)) > 1:
            both("delete_last_message", key)
        both("get_messages", key)
    both("delete_messages", "maya")
    both("get_messages", "maya")
    assert sorted(ours.get_keys()) == sorted(key for key in theirs.get_keys() if theirs.get_messages(key))
    assert ours.delete_messages("maya") is None
    assert ours.delete_last_message("maya") is None


def test_messages_are_no_memories_of_a_user(core: Memory) -> None:
    store = Mem0ChatStore(core)
    store.add_message("maya", ChatMessage(role=MessageRole.USER, content="I keep bees."))
    assert core.get_all(user_id="maya")["results"] == []
    assert Mem0ChatStore(core, namespace="other").get_keys() == []
    core.delete_all("chats", "llamaindex chat")
    assert store.get_keys() == []


def test_a_buffer_continues_in_another_process(tmp_path: Path) -> None:
    for turn in ("Monday", "Friday"):
        with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as memory:
            buffer = ChatMemoryBuffer.from_defaults(chat_store=Mem0ChatStore(memory), chat_store_key="maya")
            buffer.put(ChatMessage(role=MessageRole.USER, content=turn))
            texts = [message.content for message in buffer.get_all()]
    assert texts == ["Monday", "Friday"]
