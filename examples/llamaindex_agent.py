"""Give a LlamaIndex agent memory: automatic, by tools, and across a saved and restored Context.

Needs no key or network: a small script replaces the model, and the data is stored in a temporary folder. To use a real
model, name its class: ``MEM0_EXAMPLE_LLM=llama_index.llms.openai.OpenAI:gpt-4o-mini`` (needs its package and key).

    pip install mem0-llamaindex
    python examples/llamaindex_agent.py
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.workflow import Context

from mem0_core import Memory
from mem0_llamaindex import Mem0Memory, memory_tools


def clerk(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
    """Answer like a chat model: save notes by a tool call, otherwise repeat the shown memories and messages."""
    said = str(messages[-1].content)
    if messages[-1].role == MessageRole.TOOL:
        return ChatMessage(role="assistant", content="I have noted that.")
    if said.startswith("Note: "):
        call = ToolCallBlock(tool_call_id="1", tool_name="save_memory", tool_kwargs={"text": said[len("Note: ") :]})
        return ChatMessage(role="assistant", blocks=[call])
    lines = [line for line in str(messages[0].content).splitlines() if line.startswith('{"memory"')]
    known = [json.loads(line)["memory"] for line in lines]
    known += [str(message.content) for message in messages[:-1] if message.role == MessageRole.USER]
    known = [text for text in known if not text.endswith("?") and not text.startswith("Note: ")]
    return ChatMessage(role="assistant", content=f"I know: {' '.join(known)}" if known else "That is new to me.")


def build_model() -> FunctionCallingLLM:
    named = os.environ.get("MEM0_EXAMPLE_LLM")
    if not named:
        return MockFunctionCallingLLM(response_generator=clerk)
    path, _, model = named.partition(":")
    module, _, name = path.rpartition(".")
    made: FunctionCallingLLM = getattr(import_module(module), name)(**({"model": model} if model else {}))
    return made


def build_agent(core: Memory, user: str) -> FunctionAgent:
    # The scope of the tools is fixed here; no model can change it.
    tools = memory_tools(core, user_id=user, only=["search_memory", "save_memory"])
    return FunctionAgent(tools=[*tools], llm=build_model())


async def ask(agent: FunctionAgent, user: str, message: str, **options: Any) -> None:
    print(f"  {user}: {message}")
    print(f"  agent: {await agent.run(message, **options)}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = {"path": folder}

        print("Monday")
        memory = Mem0Memory.from_config(config, user_id="maya", k=3)
        agent = build_agent(memory.long_term, "maya")
        context = Context(agent)
        await ask(agent, "maya", "I am allergic to peanuts.", memory=memory, ctx=context)
        await ask(agent, "maya", "Note: Maya's sister Ines visits in May.", ctx=context)
        saved = json.dumps(context.to_dict())  # for a database, a file or a cookie
        await memory.long_term.aclose()

        # A new program has the saved Context and the same folder.
        print("Friday")
        restored = Mem0Memory.from_config(config, user_id="maya")
        agent = build_agent(restored.long_term, "maya")
        context = Context.from_dict(agent, json.loads(saved))
        await ask(agent, "maya", "Which food must I avoid?", ctx=context)
        await ask(agent, "maya", "Who visits in May?", ctx=context)

        core = restored.long_term
        bens = Mem0Memory.from_defaults(core, user_id="ben")
        await ask(build_agent(core, "ben"), "ben", "Which food must I avoid?", memory=bens)
        await core.aclose()


if __name__ == "__main__":
    asyncio.run(main())
