"""Our chat stores do what LlamaIndex's own `SimpleChatStore` and `SQLAlchemyChatStore` do."""

from __future__ import annotations

import asyncio
import random
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.memory import Memory as LlamaIndexMemory
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from mem0_core import Memory, ScopeError
from mem0_core.testing import HashEmbedder
from mem0_llamaindex import Mem0AsyncChatStore, Mem0ChatStore

from .conftest import Counted

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


async def test_the_async_store_does_what_the_sql_store_does(core: Memory) -> None:
    ours, theirs = Mem0AsyncChatStore(core), SQLAlchemyChatStore(table_name="chats")
    chance = random.Random(7)

    async def both(method: str, *arguments: Any, **options: Any) -> None:
        expected = await getattr(theirs, method)(*arguments, **options)
        assert await getattr(ours, method)(*arguments, **options) == expected, (method, arguments, options)

    for _ in range(40):
        key, status = chance.choice(["maya", "", "*"]), chance.choice(list(MessageStatus))
        method = chance.choice(
            ["set_messages", "add_message", "add_messages", "archive_oldest_messages", "delete_oldest_messages"]
        )
        if method == "add_message":
            await both(method, key, chance.choice(MESSAGES), status=status)
        elif method in ("set_messages", "add_messages"):
            await both(method, key, chance.sample(MESSAGES, 3), status=status)
        else:
            await both(method, key, chance.randrange(3))
        for wanted in (None, *MessageStatus):
            await both("get_messages", key, wanted)
            await both("count_messages", key, wanted)
        await both("get_messages", key, None, limit=2, offset=1)
    assert sorted(await ours.get_keys()) == sorted(await theirs.get_keys())
    await both("delete_messages", "maya", MessageStatus.ARCHIVED)
    await both("get_messages", "maya", None)
    await both("delete_messages", "maya")
    assert await ours.delete_message("maya", 0) is None


async def test_both_stores_share_the_messages_of_a_namespace(core: Memory) -> None:
    shared, other = Mem0AsyncChatStore(core), Mem0AsyncChatStore(core, namespace="other")
    Mem0ChatStore(core).set_messages("maya", MESSAGES[:3])
    assert await shared.archive_oldest_messages("maya", 1) == MESSAGES[:1]
    Mem0ChatStore(core).add_message("maya", MESSAGES[4], idx=0)
    assert await shared.get_messages("maya") == [MESSAGES[4], *MESSAGES[1:3]]
    assert await shared.delete_message("maya", 1) == MESSAGES[0]
    assert await shared.get_messages("maya", None) == Mem0ChatStore(core).get_messages("maya")
    assert await other.get_keys() == []
    with pytest.raises(ScopeError):
        Mem0AsyncChatStore(core, namespace="")


@pytest.mark.skipif(
    "chat_store" not in signature(LlamaIndexMemory.from_defaults).parameters, reason="takes SQL stores only"
)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_llamaindexs_memory_continues_in_another_process(tmp_path: Path, mode: str) -> None:
    for question in ("Monday?", "Friday?"):
        with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as memory:
            chat_store = Mem0AsyncChatStore(memory)
            session = LlamaIndexMemory.from_defaults(session_id="maya", chat_store=chat_store, token_limit=500)
            engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=1), memory=session)
            if mode == "sync":
                engine.chat(question)
            else:
                asyncio.run(engine.achat(question))
            said = [message.content for message in session.get_all()]
    assert said == ["Monday?", "text", "Friday?", "text"]


async def test_messages_that_are_put_at_once_are_all_kept(core: Memory) -> None:
    store = Mem0AsyncChatStore(core)
    puts = [store.add_message("maya", ChatMessage(role=MessageRole.USER, content=f"Line {n}")) for n in range(20)]
    archived = [store.archive_oldest_messages("maya", 1) for _ in range(5)]
    _, taken_by = await asyncio.gather(asyncio.gather(*puts), asyncio.gather(*archived))
    taken = [message.content for some in taken_by for message in some]
    assert len(taken) == len(set(taken))
    assert await store.count_messages("maya") == 20 - len(taken)
    assert await store.count_messages("maya", None) == 20


def test_a_message_is_stored_in_one_transaction_without_its_embedding(counted: Counted) -> None:
    store = Mem0ChatStore(counted.memory)
    store.set_messages("maya", MESSAGES)
    counted.calls.clear()
    store.set_messages("maya", MESSAGES[:2])
    store.add_message("maya", MESSAGES[2])
    assert counted.calls["commit"] == 2
    assert not counted.calls["embed"]


def test_a_policy_applies_to_messages(tmp_path: Path) -> None:
    def hide_numbers(text: str, scope: Any) -> str:
        return text.replace("A-4711", "[number]")

    with Memory({"path": tmp_path}, embedder=HashEmbedder(), policy=hide_numbers) as memory:
        store = Mem0ChatStore(memory)
        store.add_message("maya", ChatMessage(role=MessageRole.USER, content="My number is A-4711."))
        store.add_message("maya", MESSAGES[5])
        assert store.get_messages("maya")[0].content == "My number is [number]."
        assert store.get_messages("maya")[1] == MESSAGES[5]
        assert "A-4711" not in str(memory.get_all(user_id="chats"))


def test_half_an_emoji_in_a_message_comes_back(core: Memory) -> None:
    message = ChatMessage(role=MessageRole.ASSISTANT, content="Good \ud83d")
    Mem0ChatStore(core).add_message("maya", message)
    assert Mem0ChatStore(core).get_messages("maya") == [message]
