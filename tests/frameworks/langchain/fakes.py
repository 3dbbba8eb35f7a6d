"""A chat model that answers by a function and keeps what it was told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

Answer = Callable[[list[BaseMessage]], AIMessage | str]


class Chatbot(GenericFakeChatModel):
    messages: Iterator[AIMessage | str] = Field(default_factory=lambda: iter(()))
    answer: Answer = lambda messages: "Noted."
    heard: list[list[BaseMessage]] = Field(default_factory=list)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.heard.append(list(messages))
        said = self.answer(messages)
        message = AIMessage(said) if isinstance(said, str) else said
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    @property
    def systems(self) -> list[str]:
        """The system message of every call, "" where there was none."""
        return [system_text(messages) for messages in self.heard]


def system_text(messages: list[BaseMessage]) -> str:
    return "\n".join(str(message.text) for message in messages if isinstance(message, SystemMessage))


def calls(name: str, **arguments: Any) -> AIMessage:
    """A message that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])
