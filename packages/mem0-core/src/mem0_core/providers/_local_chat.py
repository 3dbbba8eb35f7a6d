"""Base class of chat models that run in this process.

A runtime (`llama_cpp`, `transformers`, `openvino`) loads a model and continues a conversation. With a JSON schema it
only samples tokens that keep the answer valid. Tools are described in the system message and constrained by a schema,
so that every model has them, independently of its chat template.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Usage
from mem0_core.errors import ConfigError, Mem0Error, ModelError
from mem0_core.interfaces import Reply, Tool
from mem0_core.providers.prompted_tools import add_tool_prompt, build_tool_calls_schema, parse_tool_calls

if TYPE_CHECKING:
    from pydantic import BaseModel

log = logging.getLogger(__name__)

_THINKING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
"""The thoughts of reasoning models before an answer without a schema."""


class TemplateError(Exception):
    """A chat template refuses the messages; many accept no system message."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A generated answer; `is_truncated` is True if it reached the token limit."""

    text: str
    input_tokens: int
    output_tokens: int
    is_truncated: bool = False


class LocalChat(ABC):
    """A chat model in this process. Safe to share between threads: one call runs at a time.

    The model is loaded on the first call.

    Args:
        source: the model's name for errors.
        max_tokens: maximum tokens of an answer; fewer if the context ends earlier.
        temperature: 0 always takes the most likely token.
        seed: makes sampled answers repeatable.
        context: maximum tokens of prompt and answer; None for the model's own limit.
    """

    supports = frozenset({"schema", "tools"})

    def __init__(
        self, source: str, *, max_tokens: int, temperature: float, seed: int | None, context: int | None
    ) -> None:
        if max_tokens < 1:
            raise ConfigError(f"max_tokens must be at least 1, not {max_tokens}")
        if temperature < 0:
            raise ConfigError(f"temperature must be at least 0, not {temperature}")
        if context is not None and context < 1:
            raise ConfigError(f"context must be at least 1, not {context}")
        self._source = source
        self._context = context
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._seed = seed
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._source!r})"

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """Complete a conversation; see `ChatModel`. With `tools`, `schema` is ignored.

        Raises:
            MissingExtraError: the runtime is not installed.
            ConfigError: the model does not exist, or this runtime cannot load it.
            ModelError: the messages exceed the context or contain images, or the runtime failed.
        """
        prepared = add_tool_prompt(messages, tools) if tools else [dict(message) for message in messages]
        json_schema = (
            build_tool_calls_schema(tools) if tools else schema.model_json_schema() if schema is not None else None
        )
        chat_messages = [{"role": message["role"], "content": self._message_text(message)} for message in prepared]
        with self._lock:
            answer = self._generate_safely(
                chat_messages, None if json_schema is None else json.dumps(json_schema), task
            )
        if answer.is_truncated:
            log.warning("%r was truncated at %s, after %d tokens", self, task, answer.output_tokens)
        text = _THINKING.sub("", answer.text)
        return Reply(
            text=text,
            tool_calls=tuple(parse_tool_calls(text)) if tools else (),
            usage=Usage(input_tokens=answer.input_tokens, output_tokens=answer.output_tokens),
        )

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text in the model's own vocabulary."""

    @abstractmethod
    def _generate(self, messages: list[dict[str, str]], schema: str | None) -> Completion:
        """Generate an answer, constrained by a JSON schema if one is given.

        Raises:
            TemplateError: the chat template refuses the messages.
        """

    @abstractmethod
    def _special_tokens(self) -> Collection[str]:
        """Return the texts of control tokens, such as ends of turns."""

    def _generate_safely(self, messages: list[dict[str, str]], schema: str | None, task: str) -> Completion:
        try:
            plain = _escape_special_tokens(messages, self._special_tokens())
            try:
                return self._generate(plain, schema)
            except TemplateError:
                return self._generate(_merge_system_messages(plain), schema)
        except Mem0Error:
            raise
        except TemplateError as error:
            raise ModelError(f"{self!r}: its chat template refuses the messages of {task!r}: {error}") from error
        except Exception as error:  # each runtime has its own exceptions
            raise ModelError(f"{self!r} failed at {task!r}: {error}") from error

    def _message_text(self, message: Mapping[str, Any]) -> str:
        content = message.get("content") or ""
        if isinstance(content, str):
            return content.encode("utf-8", "replace").decode()  # without lone surrogates
        kinds = {part.get("type") for part in content}
        if kinds - {"text"}:
            raise ModelError(f"{self!r} reads text only, not {', '.join(sorted(map(str, kinds - {'text'})))}")
        return "\n".join(part["text"] for part in content).encode("utf-8", "replace").decode()

    def _answer_limit(self, tokens: int, context: int) -> int:
        """Return the maximum tokens of an answer to a prompt of `tokens` tokens.

        Raises:
            ModelError: the prompt fills the context.
        """
        if tokens >= context:
            raise ModelError(f"{self!r}: the prompt has {tokens} tokens, but the context holds {context}")
        return min(self._max_tokens, context - tokens)


def read_template(template: str | os.PathLike[str]) -> str:
    """Read a chat template, given as text or as a file.

    Raises:
        ConfigError: `template` is neither.
    """
    if isinstance(template, str) and "{" in template:
        return template
    try:
        return Path(template).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"chat_template: {str(template)!r} is neither a template nor a readable file: {error}"
        ) from error


def _escape_special_tokens(messages: list[dict[str, str]], special: Collection[str]) -> list[dict[str, str]]:
    """Break special tokens by a space, so that no text can end its turn or begin another."""
    if not special:
        return messages
    marker = re.compile("|".join(re.escape(name) for name in sorted(special, key=len, reverse=True)))
    return [
        {**message, "content": marker.sub(lambda found: f"{found[0][0]} {found[0][1:]}", message["content"])}
        for message in messages
    ]


def _merge_system_messages(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Move system messages to the start of the first user turn, for templates without a system role."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if not others or others[0]["role"] != "user":
        return [{"role": "user", "content": "\n\n".join(system)}, *others]
    first = {"role": "user", "content": "\n\n".join([*system, others[0]["content"]])}
    return [first, *others[1:]]
