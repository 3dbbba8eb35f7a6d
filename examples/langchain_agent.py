"""Build a LangChain agent that remembers users across sessions.

Needs no key or network: a small script replaces the chat model, and the data is stored in a temporary folder.

    pip install mem0-langchain
    python examples/langchain_agent.py
    MEM0_EXAMPLE_MODEL=openai:gpt-4o-mini python examples/langchain_agent.py    # a real model of any provider
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

from mem0_core import Memory
from mem0_langchain import MemoryMiddleware

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"


class Clerk(SimpleChatModel):
    """Chat model that repeats the first memory in its system prompt."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        lines = [line for line in str(messages[0].text).splitlines() if line.startswith('{"memory"')]
        return "On {date} you said: {memory}".format(**json.loads(lines[0])) if lines else "That is new to me."


@dataclass
class UserContext:
    """Context of a run, with the user of its memory."""

    user_id: str


def session(memory: Memory, user: str, *messages: str) -> None:
    """Run one conversation; only long-term memory outlives it."""
    name = os.environ.get("MEM0_EXAMPLE_MODEL")
    model = init_chat_model(name) if name else Clerk()
    agent = create_agent(
        model, system_prompt="Be brief.", middleware=[MemoryMiddleware(memory)], context_schema=UserContext
    )
    for text in messages:
        reply = agent.invoke({"messages": [{"role": "user", "content": text}]}, context=UserContext(user))
        print(f"  {user}: {text}\n  agent: {reply['messages'][-1].text}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Monday")
            session(memory, "maya", "I am allergic to peanuts.")

        # A new program opens the same folder.
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Friday")
            session(memory, "maya", "Am I allergic to any food?")
            session(memory, "ben", "Am I allergic to any food?")

            print("Stored for maya, verbatim; with Memory(llm=...), only facts are stored")
            for item in memory.get_all(user_id="maya")["results"]:
                print(f"  {item['created_at'][:16]} {item['role']:9} {item['memory']}")


if __name__ == "__main__":
    main()
