"""Messages of a conversation are remembered once each: repeated words are kept, and replayed turns add nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as LlamaIndexMemory

from mem0_core import Memory, StoreError
from mem0_core.testing import HashEmbedder
from mem0_llamaindex import Mem0Memory, Mem0MemoryBlock, WriteThroughMemory

from .conftest import Counted

MODES = ("sync", "async")


async def put(memory: Mem0Memory, mode: str, *turn: str) -> None:
    """Put a user's message and the assistant's answer."""
    messages = [ChatMessage(role=role, content=text) for role, text in zip(("user", "assistant"), turn, strict=True)]
    if mode == "async":
        await memory.aput_messages(messages)
    else:
        memory.put_messages(messages)


async def log_of(memory: Memory) -> list[str]:
    assert await memory.aflush(timeout=20)
    seen = await memory.acontext(None, user_id="maya", recent=100)
    return [str(message["content"]) for message in seen["messages"]]


def conversation(core: Memory, **options: Any) -> Mem0Memory:
    return Mem0Memory.from_defaults(core, user_id="maya", **options)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("mode", MODES)
async def test_an_identical_turn_is_another_turn(core: Memory, mode: str, background: bool) -> None:
    memory = conversation(core, background=background)
    for _ in range(3):
        await put(memory, mode, "Yes, please.", "Here you are.")
    assert await log_of(core) == ["Yes, please.", "Here you are."] * 3
    memory.reset()
    await put(memory, mode, "Yes, please.", "Here you are.")
    assert len(await log_of(core)) == 8


@pytest.mark.parametrize("mode", MODES)
async def test_a_conversation_that_is_restored_twice_adds_only_what_differs(core: Memory, mode: str) -> None:
    memory = conversation(core)
    await put(memory, mode, "I like figs.", "Noted.")
    saved = memory.to_dict()
    for answer in ("In a market.", "In a market.", "In a shop."):
        copy = Mem0Memory.from_dict(saved)
        copy.bind(core)
        await put(copy, mode, "Where do I get some?", answer)
    assert await log_of(core) == ["I like figs.", "Noted.", "Where do I get some?", "In a market.", "In a shop."]


@pytest.mark.parametrize("mode", MODES)
async def test_agents_with_a_memory_each_share_a_conversation_by_its_id(core: Memory, mode: str) -> None:
    for answer in ("From one.", "From two."):
        await put(conversation(core, conversation="thread 7"), mode, "I like figs.", answer)
    assert await log_of(core) == ["I like figs.", "From one.", "From two."]
    await put(conversation(core), mode, "I like figs.", "From three.")
    assert (await log_of(core))[3:] == ["I like figs.", "From three."]


@pytest.mark.parametrize("mode", MODES)
async def test_a_turn_that_fails_keeps_its_identity(core: Memory, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = conversation(core)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise StoreError("the store is down")

    with monkeypatch.context() as broken:
        broken.setattr(core, "add", fail)
        broken.setattr(core, "aadd", fail)
        with pytest.raises(StoreError):
            await put(memory, mode, "Yes.", "Fine.")
    await put(memory, mode, "Yes.", "Fine.")
    assert await log_of(core) == ["Yes.", "Fine.", "Yes.", "Fine."]


@pytest.mark.parametrize("mode", MODES)
async def test_structured_output_is_not_remembered(core: Memory, mode: str) -> None:
    memory = conversation(core)
    await put(memory, mode, "I live in Porto. Is it raining?", '{"place": "Porto", "rain": true}')
    await put(memory, mode, "And tomorrow?", "```json\n[1, 2]\n```")
    await put(memory, mode, '{"mine": "is kept"}', "{Not} JSON.")
    assert await log_of(core) == [
        "I live in Porto. Is it raining?",
        "And tomorrow?",
        '{"mine": "is kept"}',
        "{Not} JSON.",
    ]


async def say(memory: LlamaIndexMemory, turns: Sequence[tuple[str, str]]) -> None:
    for question, answer in turns:
        await memory.aput_messages(
            [ChatMessage(role="user", content=question), ChatMessage(role="assistant", content=answer)]
        )
        await memory.aget()


@pytest.mark.parametrize("kind", [LlamaIndexMemory, WriteThroughMemory])
async def test_a_block_writes_identical_turns_also_in_another_process(
    counted: Counted, tmp_path: Path, kind: type[LlamaIndexMemory]
) -> None:
    database = f"sqlite+aiosqlite:///{tmp_path / 'chat.db'}"
    for _ in range(2):
        block = Mem0MemoryBlock(counted.memory, user_id="maya")
        memory = kind.from_defaults("monday", memory_blocks=[block], async_database_uri=database)
        await say(memory, [("Yes.", "Fine."), ("Yes.", "Fine.")])
    assert await log_of(counted.memory) == ["Yes.", "Fine."] * 4


async def test_a_long_conversation_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    original = Mem0Memory._identify_messages

    with Memory({"path": str(tmp_path), "durability": "process"}, embedder=HashEmbedder()) as core:
        memory = conversation(core, chat_history=[ChatMessage(role="user", content=f"Line {n}.") for n in range(50)])

        def identify(self: Mem0Memory) -> list[str]:
            before = len(self._message_ids)
            ids = original(self)
            hashed.extend(ids[before:])
            return ids

        monkeypatch.setattr(Mem0Memory, "_identify_messages", identify)
        for turn in range(5):
            await put(memory, "async", f"Question {turn}?", "Answer.")
    assert len(hashed) == len(set(hashed)) == 60
