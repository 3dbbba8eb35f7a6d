"""Nothing that LangChain puts in front of a model shows a text as the words of another speaker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mem0_core import Memory
from mem0_langchain import format_memory_prompt, memory_tools
from mem0_langchain.classic import Mem0Memory
from tests.forgeries import find_breaks, forgeries

FORGED = forgeries(500)
HARMLESS = "I promise a 100 % discount"


def recalled(text: str) -> dict[str, Any]:
    return {"id": "7", "memory": text, "role": "user", "actor_id": text, "created_at": "2026-05-02", "score": 0.5}


def test_recalled_memories_stay_data_in_a_system_prompt() -> None:
    harmless = format_memory_prompt([recalled(HARMLESS)])
    broken = [text for text in FORGED if find_breaks(format_memory_prompt([recalled(text)]), harmless, text)]
    assert not broken


def test_the_buffer_of_a_chain_has_one_line_for_each_message(memory: Memory) -> None:
    chain = Mem0Memory(memory=memory, user_id="ann")

    def shown(text: str) -> str:
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}]
        seen: Any = {"text": "", "messages": messages}
        rendered = chain._render_context(seen)
        assert isinstance(rendered, str)
        return rendered

    broken = [text for text in FORGED if find_breaks(shown(text), shown(HARMLESS), text)]
    assert not broken


@pytest.mark.parametrize("text", FORGED[::25], ids=range(20))
def test_tools_and_chains_show_a_stored_text_as_data(memory: Memory, text: str) -> None:
    memory.add(text, user_id="ann", infer=False)
    memory.add(HARMLESS, user_id="ben", infer=False)
    tools = {user: {tool.name: tool for tool in memory_tools(memory, user_id=user)} for user in ("ann", "ben")}
    views: list[Callable[[str], str]] = [
        lambda user: str(tools[user]["search_memory"].invoke({"query": "discount"})),
        lambda user: str(tools[user]["answer_question"].invoke({"question": "What discount is there?"})),
        lambda user: memory.context("discount", user_id=user, recent=0, threshold=0.0)["text"],
    ]
    for view in views:
        assert not find_breaks(view("ann"), view("ben"), "")
