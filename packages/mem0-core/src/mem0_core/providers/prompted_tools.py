"""Tools for a model without tool calls: described in the system message, and parsed from a JSON reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core.interfaces import Reply, Tool, ToolCall


def add_tool_prompt(messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Describe `tools` in the system message, for a model without tool calls."""
    functions = [{"name": t.name, "description": t.description, "parameters": dict(t.parameters)} for t in tools]
    instructions = (
        "You call functions by answering with one JSON object and nothing else: "
        '{"tool_calls": [{"name": "<function>", "arguments": {...}}]}, with an empty list where no call is needed.\n'
        f"The functions, with JSON schemas of their arguments:\n{json.dumps(functions, ensure_ascii=False)}"
    )
    # Many chat templates accept only one system message, at the beginning.
    if messages and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{instructions}"}, *map(dict, messages[1:])]
    return [{"role": "system", "content": instructions}, *map(dict, messages)]


def build_tool_calls_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Build the JSON schema of the reply that `add_tool_prompt` requests, for constrained decoding."""
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
    """Parse the tool calls of a reply; return [] for another format, which `llm.replies` reads."""
    try:
        content = json.loads(text[text.find("{") : text.rfind("}") + 1], strict=False)
        return [ToolCall(name=call["name"], arguments=call["arguments"]) for call in content["tool_calls"]]
    except (ValueError, TypeError, KeyError):
        return []


def read_prompted_calls(reply: Reply) -> Reply:
    """Return a reply with the tool calls of its text, unless it has calls of its own."""
    return Reply(reply.text, reply.tool_calls or parse_tool_calls(reply.text), reply.usage)


def arguments_as_text(reply: Reply) -> Reply:
    """Return a reply whose text is the arguments of its only tool call, or a plain reply unchanged."""
    if not reply.tool_calls:
        return reply
    arguments = reply.tool_calls[0].arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Reply(text, usage=reply.usage)
