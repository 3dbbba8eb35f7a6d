"""Replace `ConversationBufferMemory` in a LangChain 0.x chain by a memory that outlives the conversation.

Needs no key or network: a small script replaces the chat model, and the data is stored in a temporary folder.

    pip install "mem0-langchain[classic]"
    python examples/classic_chain.py
    MEM0_EXAMPLE_MODEL=openai:gpt-4o-mini python examples/classic_chain.py    # a real model of any provider
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from importlib.util import find_spec
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_classic.chains import LLMChain
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import PromptTemplate

from mem0_core import Memory
from mem0_langchain import Mem0Memory

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"
PROMPT = PromptTemplate.from_template("{history}\n\nHuman: {input}\nAI:")


class Clerk(SimpleChatModel):
    """Chat model that repeats the first memory in its prompt, else the first message of an earlier conversation."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        lines = str(messages[0].text).splitlines()
        said = [json.loads(line)["memory"] for line in lines if line.startswith('{"memory"')]
        said += [line.removeprefix("Human: ") for line in lines if line.startswith("Human: ")][:-1]
        return f"You said: {said[0]}" if said else "That is new to me."


def session(memory: Memory, user: str, *messages: str) -> None:
    """Run one conversation in a new chain, with the memory of a user."""
    name = os.environ.get("MEM0_EXAMPLE_MODEL")
    model = init_chat_model(name) if name else Clerk()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LangChain deprecates its chains
        chain = LLMChain(llm=model, prompt=PROMPT, memory=Mem0Memory(memory=memory, user_id=user))
    for text in messages:
        print(f"  {user}: {text}\n  chain: {chain.invoke({'input': text})['text']}")


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


if __name__ == "__main__":
    main()
