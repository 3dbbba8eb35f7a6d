"""Two graphs for LangGraph's servers: an agent that recalls and remembers, and a graph that keeps notes in the store.

Needs no key: a small script replaces the chat model. The data is stored in the folder data next to this file.

    pip install "langgraph-cli[inmem]" mem0-langchain
    cd examples/langgraph_platform
    langgraph dev
"""

from __future__ import annotations

import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from mem0_core import Memory
from mem0_langchain import MemoryMiddleware


class Clerk(SimpleChatModel):
    """Chat model that repeats the first memory in its system prompt."""

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        lines = [line for line in str(messages[0].text).splitlines() if line.startswith('{"memory"')]
        return "You said: {memory}".format(**json.loads(lines[0])) if lines else "That is new to me."


# The user of a run is `user_id` of its context or configurable.
assistant = create_agent(Clerk(), middleware=[MemoryMiddleware(Memory(), stream_memories=True)])


async def take_note(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
    """Put the message into the store, and answer with the two notes that are nearest to it."""
    message = state["messages"][-1]
    await store.aput(("notes",), str(message.id), {"text": str(message.text)})
    found = await store.asearch(("notes",), query=str(message.text), limit=2)
    return {"messages": [AIMessage(" / ".join(item.value["text"] for item in found))]}


notes = StateGraph(MessagesState).add_node("take_note", take_note).add_edge(START, "take_note").compile()
