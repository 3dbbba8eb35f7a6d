"""`memory_files_tool`: memories as files under ``/memories``, for an agent that keeps its notes there."""

from __future__ import annotations

from typing import Any

from llama_index.core.tools import FunctionTool, ToolMetadata

from mem0_core import AsyncMemory, InputError, Memory
from mem0_core.api.options import unwrap_memory
from mem0_core.views import MEMORY_TOOL_DESCRIPTION, MemoryCommand, MemoryToolHandler, ToolReply
from mem0_llamaindex.convert import replace_lone_surrogates

__all__ = ["memory_files_tool"]


def memory_files_tool(
    memory: Memory | AsyncMemory,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
) -> FunctionTool:
    """Return a tool with the six commands of Anthropic's memory tool on the memories of one owner.

    >>> agent = FunctionAgent(tools=[memory_files_tool(memory, user_id="maya")], llm=llm)

    A model of any provider can use it. The owner is bound here, and no command can name another one. See
    `mem0_core.views.MemoryFiles` for the files.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: owner of the memories; give at least one.

    Raises:
        ScopeError: no id is given, or an id is invalid. ConfigError: `memory` is not a memory.

    Raises (by the tool; an agent passes it on to its model):
        InputError: the command failed; the text is the result of the command.
    """
    handler = MemoryToolHandler(unwrap_memory(memory), user_id=user_id, agent_id=agent_id, run_id=run_id)

    def call(**arguments: Any) -> str:
        return _text_of(handler.handle(_clean_arguments(arguments)))

    async def acall(**arguments: Any) -> str:
        return _text_of(await handler.ahandle(_clean_arguments(arguments)))

    metadata = ToolMetadata(name="memory", description=MEMORY_TOOL_DESCRIPTION, fn_schema=MemoryCommand)
    return FunctionTool(fn=call, async_fn=acall, metadata=metadata)


def _clean_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a model gave, with texts that can be stored."""
    return {
        name: replace_lone_surrogates(value) if isinstance(value, str) else value
        for name, value in arguments.items()
        if value is not None
    }


def _text_of(reply: ToolReply) -> str:
    if reply.is_error:
        raise InputError(reply.text)
    return reply.text
