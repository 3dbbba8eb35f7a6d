"""Tools for a model that has none: told of in the system message, and read back from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core.interfaces import Tool, ToolCall

__all__ = ["add_tool_prompt", "build_tool_calls_schema", "parse_tool_calls"]


def add_tool_prompt(messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The messages with `tools` told of in the system message, for a model that has none."""
    functions = [{"name": t.name, "description": t.description, "parameters": dict(t.parameters)} for t in tools]
    words = (
        "You call functions by answering with one JSON object and nothing else: "
        '{"tool_calls": [{"name": "<function>", "arguments": {...}}]}, with an empty list where no call is needed.\n'
        f"The functions, with JSON schemas of their arguments:\n{json.dumps(functions, ensure_ascii=False)}"
    )
    # Many chat templates take one system message, and only as the first.
    if messages and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{words}"}, *map(dict, messages[1:])]
    return [{"role": "system", "content": words}, *map(dict, messages)]


def build_tool_calls_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """A JSON schema of what `add_tool_prompt` asks for, for models that can be held to one."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": dict(tool.parameters)},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {
        "type": "object",
        "properties": {"tool_calls": {"type": "array", "items": {"anyOf": calls}}},
        "required": ["tool_calls"],
        "additionalProperties": False,
    }


def parse_tool_calls(text: str) -> list[ToolCall]:
    """The calls in a reply to described tools; none where it is in another form, which `replies` then reads."""
    try:
        content = json.loads(text[text.find("{") : text.rfind("}") + 1], strict=False)
        return [ToolCall(name=call["name"], arguments=call["arguments"]) for call in content["tool_calls"]]
    except (ValueError, TypeError, KeyError):
        return []
