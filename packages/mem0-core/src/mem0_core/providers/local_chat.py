"""What the chat models that run in this process share: how they are asked, and how their answers are read.

A runtime (`llama_cpp`, `transformers`, `openvino`) loads a model and continues a conversation, by a JSON schema where
one is given: it then only picks tokens that keep the answer valid. Tools are such a schema too, told of in the system
message, so that every model has them, whatever its chat template knows.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Usage
from mem0_core.errors import ConfigError, Mem0Error, ModelError
from mem0_core.interfaces import Reply, Tool
from mem0_core.providers.prompted_tools import add_tool_prompt, build_tool_calls_schema, parse_tool_calls

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Completion", "LocalChat", "TemplateError", "read_template"]

log = logging.getLogger(__name__)

_THINKING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
"""What reasoning models say to themselves first, where no schema keeps them from it."""


class TemplateError(Exception):
    """A model's chat template refuses the messages: many take no system message."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a runtime made of a prompt; `is_truncated` says that it ended for want of room."""

    text: str
    input_tokens: int
    output_tokens: int
    is_truncated: bool = False


class LocalChat(ABC):
    """A chat model in this process. Safe to share between threads: one call runs at a time.

    Nothing is loaded before the first call.

    Args:
        source: names the model in errors.
        max_tokens: how long an answer may become; less where the context ends before.
        temperature: 0 takes the likeliest token each time.
        seed: makes answers that are drawn repeatable.
        context: tokens that question and answer may take together; None for as many as the model says.
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
        """Answer `messages`; see `ports.ChatModel`. Where `tools` are given, `schema` is not kept to.

        Raises:
            MissingExtra: the runtime is not installed.
            ConfigError: there is no such model, or it is none that this runtime can load.
            ModelError: the messages do not fit the model's context, hold images, or the runtime failed.
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
            log.warning("%r was cut short at %s, after %d tokens", self, task, answer.output_tokens)
        text = _THINKING.sub("", answer.text)
        return Reply(
            text=text,
            tool_calls=tuple(parse_tool_calls(text)) if tools else (),
            usage=Usage(input_tokens=answer.input_tokens, output_tokens=answer.output_tokens),
        )

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Tokens of a text in the model's own vocabulary."""

    @abstractmethod
    def _generate(self, messages: list[dict[str, str]], schema: str | None) -> Completion:
        """Answer, by a JSON schema where one is given. Raises TemplateError where the chat template refuses."""

    @abstractmethod
    def _special_tokens(self) -> Collection[str]:
        """The texts that are tokens with a meaning of their own: ends of turns, and the like."""

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
        except Exception as error:  # each runtime raises what it likes
            raise ModelError(f"{self!r} failed at {task!r}: {error}") from error

    def _message_text(self, message: Mapping[str, Any]) -> str:
        content = message.get("content") or ""
        if isinstance(content, str):
            return content.encode("utf-8", "replace").decode()  # lone surrogates are no text
        kinds = {part.get("type") for part in content}
        if kinds - {"text"}:
            raise ModelError(f"{self!r} reads text only, not {', '.join(sorted(map(str, kinds - {'text'})))}")
        return "\n".join(part["text"] for part in content).encode("utf-8", "replace").decode()

    def _answer_limit(self, tokens: int, context: int) -> int:
        """How long an answer to a prompt of so many tokens may be.

        Raises:
            ModelError: nothing is left of the context.
        """
        if tokens >= context:
            raise ModelError(f"{self!r}: {tokens} tokens were asked, and its context holds {context}")
        return min(self._max_tokens, context - tokens)


def read_template(chat_messages: str | os.PathLike[str]) -> str:
    """A chat template given as text, or as a file that holds it.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(chat_messages, str) and "{" in chat_messages:
        return chat_messages
    try:
        return Path(chat_messages).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"chat_template: {str(chat_messages)!r} is no template, nor a file that can be read: {error}"
        ) from error


def _escape_special_tokens(messages: list[dict[str, str]], special: Collection[str]) -> list[dict[str, str]]:
    """The messages with special tokens broken by a space, so that no text can end its turn or begin another's."""
    if not special:
        return messages
    marker = re.compile("|".join(re.escape(name) for name in sorted(special, key=len, reverse=True)))
    return [
        {**message, "content": marker.sub(lambda found: f"{found[0][0]} {found[0][1:]}", message["content"])}
        for message in messages
    ]


def _merge_system_messages(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same, for templates that know user and assistant only: what the system says begins the first user's turn."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if not others or others[0]["role"] != "user":
        return [{"role": "user", "content": "\n\n".join(system)}, *others]
    first = {"role": "user", "content": "\n\n".join([*system, others[0]["content"]])}
    return [first, *others[1:]]
