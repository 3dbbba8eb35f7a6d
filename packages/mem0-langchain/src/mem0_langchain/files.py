"""`MemoryFilesTool`: memories as files under ``/memories``, for an agent that keeps its notes there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.tools import ToolException

from mem0_core import Scope
from mem0_core.flow import Flow
from mem0_core.views import MEMORY_TOOL_DESCRIPTION, MemoryCommand, MemoryToolHandler
from mem0_langchain.runs import to_ids
from mem0_langchain.tools import MemoryTool, ToolResult

__all__ = ["MemoryFilesTool"]


class MemoryFilesTool(MemoryTool):
    """`memory`: the six commands of Anthropic's memory tool on the memories of a run's owner.

    A model of any provider can use it. Claude knows its commands under the type ``memory_20250818``, with which
    ``bind_tools`` can name it instead of this tool's own schema. A failed command is a tool message with the status
    ``error``. See `mem0_core.views.MemoryFiles` for the files.

    >>> agent = create_agent(model, tools=[MemoryFilesTool(memory=memory)])
    """

    name: str = "memory"
    description: str = MEMORY_TOOL_DESCRIPTION
    args_schema: Any = MemoryCommand
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True

    def _execute(self, scope: Scope, **arguments: Any) -> Flow[ToolResult]:
        handler = MemoryToolHandler(self.memory, **to_ids(scope))
        given = {name: value for name, value in arguments.items() if value is not None}
        reply = yield from handler.handle_flow(given)
        if reply.is_error:
            raise ToolException(reply.text)
        return reply.text, given
