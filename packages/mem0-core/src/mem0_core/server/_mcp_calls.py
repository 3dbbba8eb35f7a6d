"""Calls of tools by the SDK: their steps are reported as progress, and wrong arguments as in the library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from mem0_core.domain.suggestions import describe_field, describe_unknown, suggest
from mem0_core.flow import Call, step_listener

_MAX_NAME_CHARS = 60  # of an unknown argument that is shown
_STAGES = {
    "embed": "embedding",
    "search": "searching",
    "nearest": "searching",
    "compare": "reranking",
    "score": "reranking",
    "score_passages": "reranking",
    "commit": "writing",
    "commit_updates": "writing",
    "delete": "writing",
}


def extend_calls(base: Any, tool_error: Any) -> Any:
    """Return a class of servers that extends the SDK's.

    Args:
        base: `MCPServer`, or `FastMCP` of version 1 of the SDK.
        tool_error: The SDK's class of errors that a model reads.
    """

    class MemoryServer(base):  # type: ignore[misc]  # the version of the SDK decides
        _schemas: Mapping[str, dict[str, Any]] = {}  # of the arguments of each tool

        async def call_tool(self, name: str, arguments: dict[str, Any], *context: Any) -> Any:
            if name not in self._schemas:
                self._schemas = {tool.name: _input_schema(tool) for tool in await self.list_tools()}
            schema = self._schemas.get(name)
            if schema is None:
                raise tool_error(f"there is no tool {name!r}{suggest(name, self._schemas)}; call one of them")
            for argument, value in arguments.items():
                if argument not in schema["properties"]:
                    shown = repr(argument)[1:-1][:_MAX_NAME_CHARS]
                    raise tool_error(f"{name} {describe_unknown(shown, value, schema['properties'])}")
            try:
                async with _report_progress(context[0] if context else self.get_context()):
                    return await super().call_tool(name, arguments, *context)
            except tool_error as error:
                cause = error.__cause__
                if not isinstance(cause, ValidationError) or cause.title != f"{name}Arguments":
                    raise
                raise tool_error(describe_field(name, cause.errors()[0], required=schema["required"])) from cause

    return MemoryServer


def _input_schema(tool: Any) -> dict[str, Any]:
    schema = getattr(tool, "input_schema", None) or tool.inputSchema  # named otherwise in version 1 of the SDK
    return {"properties": {}, "required": [], **schema}


@asynccontextmanager
async def _report_progress(context: Any) -> AsyncIterator[None]:
    """Report each stage of the library's calls when it begins, and the end of the last; only clients that ask get it.

    The number of stages is not known before they have run, so progress has no total.
    """
    loop, stages = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def listen(call: Call) -> Call:
        stage = _find_stage(call)
        if stage is not None:
            loop.call_soon_threadsafe(stages.put_nowait, stage)  # flows also run in threads
        return call

    sender = asyncio.create_task(_send_stages(context, stages))
    token = step_listener.set(listen)
    try:
        yield
        stages.put_nowait("done")
        stages.put_nowait(None)
        await sender
    finally:
        step_listener.reset(token)
        sender.cancel()


async def _send_stages(context: Any, stages: asyncio.Queue[str | None]) -> None:
    begun: set[str] = set()
    while (stage := await stages.get()) is not None:
        if stage not in begun:
            begun.add(stage)
            await context.report_progress(len(begun), message=stage)


def _find_stage(call: Call) -> str | None:
    """Return the stage that a call of a model or store begins."""
    method = getattr(call.method, "__name__", "")
    if method == "complete":
        return f"model: {str(call.kwargs.get('task') or 'chat').replace('_', ' ')}"
    return _STAGES.get(method)
