"""Conversations cancelled after each call of the memory: no turn is lost, half written or stored twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemory

from mem0_core import Memory
from mem0_llamaindex import Mem0Memory, Mem0MemoryBlock, WriteThroughMemory
from tests.support import Canceller, cancel_everywhere, open_memory

FIRST, SECOND = "I drink green tea.", "I live in Porto."


def build_memory(core: Memory, user: str, background: bool) -> BaseMemory:
    return Mem0Memory(core, user_id=user, background=background)


def build_blocks(core: Memory, user: str, background: bool) -> BaseMemory:
    block = Mem0MemoryBlock(core, user_id=user, background=background)
    return WriteThroughMemory.from_defaults(session_id=user, memory_blocks=[block])


def turn(text: str) -> list[ChatMessage]:
    return [ChatMessage(text, role=MessageRole.USER), ChatMessage("Noted.", role=MessageRole.ASSISTANT)]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("build", [build_memory, build_blocks])
def test_a_turn_cancelled_after_any_call_is_stored_once_when_the_conversation_goes_on(
    tmp_path: Path, build: Callable[[Memory, str, bool], Any], background: bool
) -> None:
    canceller = Canceller()

    async def talk(core: Memory, calls: int) -> bool:
        memory = build(core, f"user {calls}", background)

        async def say(text: str) -> None:
            for message in turn(text):
                await memory.aput(message)
                await memory.aget()

        cancelled = await canceller.run(say(FIRST), calls)
        held = [message.content for message in await memory.aget_all()]
        for message in turn(FIRST)[len(held) :]:  # the caller repeats a put that was not done
            await memory.aput(message)
        await say(SECOND)
        return cancelled

    with open_memory(tmp_path, on_step=canceller) as core:
        ended = asyncio.run(cancel_everywhere(partial(talk, core)))
        assert ended > 3
        assert core.flush(timeout=120)
        for calls in range(1, ended + 1):
            said = core.context(None, user_id=f"user {calls}", recent=100)["messages"]
            assert [message["content"] for message in said] == [FIRST, "Noted.", SECOND, "Noted."], calls
