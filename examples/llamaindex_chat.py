"""Build a LlamaIndex chat engine that remembers users across sessions.

Needs no key or network: a small script replaces the model, and the data is stored in a temporary folder.

    pip install mem0-llamaindex
    python examples/llamaindex_chat.py
"""

from __future__ import annotations

import json
import tempfile
from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from mem0_core import Memory
from mem0_llamaindex import Mem0Memory


class Clerk(CustomLLM):
    """LLM that repeats the first memory in its prompt."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="clerk")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        lines = [line for line in prompt.splitlines() if line.startswith('{"memory"')]
        if not lines:
            return CompletionResponse(text="That is new to me.")
        best = json.loads(lines[0])
        return CompletionResponse(text=f"On {best['date']} you said: {best['memory']}")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield self.complete(prompt)


def session(core: Memory, user: str, *messages: str) -> None:
    """Run one conversation; only long-term memory outlives it."""
    engine = SimpleChatEngine.from_defaults(llm=Clerk(), memory=Mem0Memory.from_defaults(core, user_id=user, k=3))
    for message in messages:
        print(f"  {user}: {message}")
        print(f"  clerk: {engine.chat(message)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Memory({"path": folder}) as core:
            print("Monday")
            session(core, "maya", "I am allergic to peanuts.")

        # A new program opens the same folder.
        with Memory({"path": folder}) as core:
            print("Friday")
            session(core, "maya", "Which food must I avoid?")
            session(core, "ben", "Which food must I avoid?")

            print("Stored for maya, verbatim; with Memory(llm=...), only facts are stored")
            for item in core.get_all(user_id="maya")["results"]:
                print(f"  {item['created_at'][:16]} {item['role']:9} {item['memory']}")


if __name__ == "__main__":
    main()
