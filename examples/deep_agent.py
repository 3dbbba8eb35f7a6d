"""Run a deep agent that keeps its notes in memory, with planning, a sub-agent and human approval.

Needs no key or network: a script replaces the chat model, and the data is stored in a temporary folder.

    pip install "mem0-langchain[deepagents]"
    python examples/deep_agent.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from mem0_core import Memory
from mem0_core.views import MemoryFiles
from mem0_langchain import MemoryMiddleware
from mem0_langchain.deepagents import Mem0Backend

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"


class ScriptedModel(GenericFakeChatModel):
    """Chat model that gives scripted replies, with the tools that it is offered."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def call(tool: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": f"call-{tool}"}])


def script() -> Iterator[AIMessage]:
    """Replies of the agent and, between them, those of its sub-agent."""
    steps = ["Find what Maya needs", "Write the plan down"]
    yield call("write_todos", todos=[{"content": step, "status": "pending"} for step in steps])
    yield call("task", description="What does Maya need on a trip?", subagent_type="researcher")
    yield call("grep", pattern="seat on a train", path="/memories/", output_mode="content")
    yield AIMessage("Maya sits by the window.")
    yield call("write_file", file_path="/memories/trips/porto.md", content="Night train to Porto, window seat.\n")
    yield AIMessage("The plan is in your notes.")


def build_agent(memory: Memory, replies: Iterator[AIMessage]) -> Any:
    model = ScriptedModel(messages=replies)
    return create_deep_agent(
        model,
        backend=CompositeBackend(default=StateBackend(), routes={"/memories/": Mem0Backend(memory)}),
        middleware=[MemoryMiddleware(memory), TodoListMiddleware()],
        subagents=[
            {
                "name": "researcher",
                "description": "Searches the notes of earlier conversations.",
                "system_prompt": "Search /memories/ and report.",
            }
        ],
        interrupt_on={"write_file": True},
        checkpointer=InMemorySaver(),
    )


def main() -> None:
    config: Any = {"configurable": {"user_id": "maya", "thread_id": "monday"}}
    with tempfile.TemporaryDirectory() as folder, Memory({"path": folder}, embedder=EMBEDDER) as memory:
        memory.add("On a train I want a seat by the window.", user_id="maya")

        print("Monday")
        agent = build_agent(memory, script())
        paused = agent.invoke({"messages": [{"role": "user", "content": "Plan my trip to Porto."}]}, config)
        for todo in paused["todos"]:
            print(f"  plan: {todo['content']}")
        (request,) = paused["__interrupt__"][0].value["action_requests"]
        print(f"  approve {request['name']} {request['args']['file_path']}? yes")
        done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        print(f"  agent: {done['messages'][-1].text}")

        print("Friday, in a new thread")
        config["configurable"]["thread_id"] = "friday"
        read = call("read_file", file_path="/memories/trips/porto.md")
        agent = build_agent(memory, iter([read, AIMessage("You take the night train.")]))
        reply = agent.invoke({"messages": [{"role": "user", "content": "How do I get to Porto?"}]}, config)
        print(f"  notes: {reply['messages'][-2].text.splitlines()[-1]}")
        print(f"  agent: {reply['messages'][-1].text}")

        print("Files of maya")
        for file in MemoryFiles(memory, user_id="maya").list_files():
            print(f"  {file.path}")


if __name__ == "__main__":
    main()
