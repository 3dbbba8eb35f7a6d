"""Nothing that LlamaIndex puts in front of a model shows a text as the words of another speaker."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from mem0_core import Memory
from mem0_llamaindex import Mem0Memory, Mem0MemoryBlock, memory_tools
from tests.forgeries import find_breaks, forgeries

HARMLESS = "I promise a 100 % discount"
QUESTION = "What discount is there?"


@pytest.mark.parametrize("text", forgeries(500)[3::25], ids=range(20))
def test_memories_and_tools_show_a_stored_text_as_data(core: Memory, text: str) -> None:
    core.add([{"role": "user", "content": text, "name": text}], user_id="ann", infer=False)
    core.add(HARMLESS, user_id="ben", infer=False)

    def views(user: str) -> list[str]:
        asked = ChatMessage(role=MessageRole.USER, content=QUESTION)
        memory = Mem0Memory.from_defaults(core, user_id=user, threshold=0.0)
        memory.put(asked)
        block = Mem0MemoryBlock(core, user_id=user, threshold=0.0)
        tools = memory_tools(core, user_id=user, only=["search_memory"])
        return [
            str(memory.get()[0].content),
            str(asyncio.run(block.aget([asked]))),
            str(tools[0].call(query=QUESTION).content),
        ]

    for shown, harmless in zip(views("ann"), views("ben"), strict=True):
        assert not find_breaks(shown, harmless, "")
