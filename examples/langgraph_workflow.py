"""Recall memories before a LangGraph node answers, and store the turn afterwards.

Needs no key or network: a small script replaces the chat model, and the data is stored in a temporary folder.

    pip install "mem0-langchain[langgraph]"
    python examples/langgraph_workflow.py
    MEM0_EXAMPLE_MODEL=openai:gpt-4o-mini python examples/langgraph_workflow.py    # a real model of any provider
"""

from __future__ import annotations

import os
import tempfile
from importlib.util import find_spec
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from mem0_core import Memory, MemoryDict
from mem0_langchain.langgraph import RecallNode, RememberNode, format_memory_prompt

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"
MODEL = os.environ.get("MEM0_EXAMPLE_MODEL")


class State(MessagesState):
    memories: list[MemoryDict]  # RecallNode writes them here


def answer(state: State) -> dict[str, Any]:
    """Answer the user; the only node that you have to write."""
    if MODEL:
        system = SystemMessage("Be brief.\n\n" + format_memory_prompt(state["memories"]))
        return {"messages": [init_chat_model(MODEL).invoke([system, *state["messages"]])]}
    known = [memory["memory"] for memory in state["memories"]]  # without a model, repeat the best memory
    return {"messages": [AIMessage(f"You said: {known[0]}" if known else "That is new to me.")]}


def build_graph(memory: Memory) -> CompiledStateGraph[State, None, Any, Any]:
    graph = StateGraph(State)
    graph.add_node("recall", RecallNode(memory, k=3))
    graph.add_node("answer", answer)
    graph.add_node("remember", RememberNode(memory))
    graph.add_edge(START, "recall").add_edge("recall", "answer").add_edge("answer", "remember")
    return graph.add_edge("remember", END).compile()


def session(memory: Memory, user: str, text: str) -> None:
    """Run one conversation; `configurable` names the user."""
    print(f"  {user}: {text}")
    asked: Any = {"messages": [("user", text)]}
    for update in build_graph(memory).stream(asked, {"configurable": {"user_id": user}}, stream_mode="updates"):
        for found in (update.get("recall") or {}).get("memories", []):
            print(f"    recalled {found['score']:.2f} {found['memory']}")
        for message in (update.get("answer") or {}).get("messages", []):
            print(f"  graph: {message.text}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Monday")
            session(memory, "maya", "My dog Bruno is afraid of thunder.")

        # A new program opens the same folder.
        with Memory({"path": folder}, embedder=EMBEDDER) as memory:
            print("Friday")
            session(memory, "maya", "What is Bruno afraid of?")
            session(memory, "ben", "What is Bruno afraid of?")


if __name__ == "__main__":
    main()
