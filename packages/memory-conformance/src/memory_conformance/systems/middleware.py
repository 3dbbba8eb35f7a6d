"""Memory middleware of LangChain's agents: a memory is a turn of an agent that has the middleware."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memory_conformance.api import Record, Records, System
from memory_conformance.systems.loading import load_object


class LangChainMiddleware(System):
    """Agents with the `AgentMiddleware` that the factory of `MEMORY_CONFORMANCE_MIDDLEWARE` returns for an owner.

    The factory is called with the folder and the owner. `add` runs a turn with the text as the user's message. `search`
    runs one with the query, and ends it when the model is called: it finds the added texts, of any owner, that the
    model is shown. A middleware has no ids, and shows as many texts as it is set to.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._make = load_object(os.environ["MEMORY_CONFORMANCE_MIDDLEWARE"])
        self._agents: dict[str, Any] = {}
        self._texts: list[str] = []

    def add(self, owner: str, text: str, **_: Any) -> str:
        """Run a turn that a model answers."""
        self._run(owner, text, "Noted.")
        self._texts.append(text)
        return str(len(self._texts))

    def search(self, owner: str, query: str, *, limit: int = 10, **_: Any) -> Records:
        """Return the texts in the prompt of a model call, in the order of the prompt."""
        try:
            self._run(owner, query, None)
        except ShownError as error:
            found = find_texts("\n".join(text for text in error.texts if text != query), self._texts)
            return [Record(text, text) for text in found][:limit]
        raise RuntimeError("the agent did not call its model")

    def close(self) -> None:
        """Forget the agents; those of the next object have middleware of their own."""
        self._agents.clear()

    def _run(self, owner: str, text: str, reply: str | None) -> None:
        from langchain.agents import create_agent

        model = make_model()
        if owner not in self._agents:
            self._agents[owner] = self._make(self.folder, owner)
        agent = create_agent(model(reply=reply), [], middleware=[self._agents[owner]])
        agent.invoke({"messages": [{"role": "user", "content": text}]})


class ShownError(Exception):
    """Ends the turn of a search, and carries the texts of the prompt."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__("the model was called")
        self.texts = texts


def make_model() -> Any:
    """Return a class of chat models that give one reply, or raise ShownError if it is None."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Model(BaseChatModel):
        reply: str | None

        @property
        def _llm_type(self) -> str:
            return "memory-conformance"

        def _generate(self, messages: list[BaseMessage], *args: Any, **keywords: Any) -> ChatResult:
            if self.reply is None:
                raise ShownError([message.text for message in messages])
            return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply))])

    return Model


def find_texts(shown: str, known: Iterable[str]) -> list[str]:
    """Return the known texts in a prompt, in its order; the longest at a place counts."""
    pattern = "|".join(re.escape(text) for text in sorted(set(known), key=len, reverse=True))
    return list(dict.fromkeys(re.findall(pattern, shown))) if pattern else []
