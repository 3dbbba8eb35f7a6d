"""Chat models: requests, tools and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mem0_core.domain.records import Usage

Task = Literal[
    "facts",
    "operations",
    "entities",
    "relations",
    "outdated",
    "refined",
    "triplets",
    "fused",
    "summary",
    "describe_image",
    "procedural",
    "rerank",
    "repair",
]
"""The purpose of a model call. Usage is counted by task, and a scripted model chooses its reply by it."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function a model may call; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the tool as OpenAI's chat completions describe one."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": {**function, "strict": True} if self.strict else function}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool.

    Attributes:
        arguments: a mapping, or the raw string if the model sent no JSON object.
    """

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a chat model; `usage` is None if the server does not report it."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A language model. Raises ModelError when a call fails for good.

    Two attributes are optional. ``supports`` is a collection of "schema" and "tools", which decides the form of the
    requests. ``count_tokens(text) -> int`` keeps token budgets exact; without it, tokens are estimated.
    """

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """Answer messages in OpenAI's role/content form; image parts come as ``image_url``.

        Args:
            task: the purpose of the call, one of `Task`.
            schema: ask for JSON of this shape. A model that cannot guarantee the shape answers as well as it can;
                `mem0_core.llm` tolerates malformed replies.
            tools: functions the model may call.
        """
        ...
