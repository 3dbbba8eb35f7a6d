"""Use a memory as the store of a LangGraph graph: the tools of an agent save and search notes.

Needs no key or network: a small script replaces the chat model, and the data is stored in a temporary folder.

    pip install "mem0-langchain[langgraph]"
    python examples/langgraph_store.py
    MEM0_EXAMPLE_MODEL=openai:gpt-4o-mini python examples/langgraph_store.py    # a real model of any provider
"""

from __future__ import annotations

import os
import tempfile
import uuid
from importlib.util import find_spec
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain.tools import ToolRuntime, tool
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from mem0_core import Memory
from mem0_langchain.langgraph import Mem0Store, encode_label

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"


class Secretary(BaseChatModel):
    """Chat model that saves statements and looks up questions."""

    @property
    def _llm_type(self) -> str:
        return "secretary"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            reply = AIMessage(str(last.content))
        else:
            text = str(last.text)
            name = "look_up" if text.endswith("?") else "note"
            reply = AIMessage("", tool_calls=[{"name": name, "args": {"text": text}, "id": str(uuid.uuid4())}])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def notes_namespace(runtime: ToolRuntime) -> tuple[str, ...]:
    """Return the namespace of the user of a run. The model cannot change it; `encode_label` allows e-mail addresses."""
    return "notes", encode_label(runtime.config["configurable"]["user_id"])


@tool
def note(text: str, runtime: ToolRuntime) -> str:
    """Save a note."""
    assert runtime.store is not None
    runtime.store.put(notes_namespace(runtime), str(uuid.uuid4()), {"text": text})
    return "Noted."


@tool
def look_up(text: str, runtime: ToolRuntime) -> str:
    """Search the notes."""
    assert runtime.store is not None
    found = runtime.store.search(notes_namespace(runtime), query=text, limit=1)
    return f"You said: {found[0].value['text']}" if found else "That is new to me."


def session(memory: Memory, user: str, *messages: str) -> None:
    name = os.environ.get("MEM0_EXAMPLE_MODEL")
    model = init_chat_model(name) if name else Secretary()
    store = Mem0Store(memory, fields=["text"])
    agent: Any = create_agent(model, tools=[note, look_up], store=store)
    for text in messages:
        reply = agent.invoke({"messages": text}, {"configurable": {"user_id": user}})
        print(f"  {user}: {text}\n  agent: {reply['messages'][-1].text}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Monday")
            session(memory, "maya@example.com", "My flight to Rome leaves at nine.", "My dog Bruno eats fish.")

        # A new program opens the same folder.
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Friday")
            session(memory, "maya@example.com", "When does my flight leave?")
            session(memory, "ben@example.com", "When does my flight leave?")
            print("  namespaces:", Mem0Store(memory).list_namespaces())


if __name__ == "__main__":
    main()
