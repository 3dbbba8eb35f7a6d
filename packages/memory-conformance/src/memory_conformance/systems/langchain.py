"""LangChain's chat message histories: a memory is a message of the conversation of its owner."""

from __future__ import annotations

import os
from typing import Any

from memory_conformance.systems._conversations import ConversationSystem
from memory_conformance.systems.loading import load_object


class LangChainHistory(ConversationSystem):
    """`InMemoryChatMessageHistory`, or the history that the factory of an environment variable returns for an owner.

    The factory is called with the folder and the owner. A history has no search, update or deletion of one message.
    """

    capabilities = frozenset({"threads"})
    first_number = 1

    def _make(self, owner: str) -> Any:
        from langchain_core.chat_history import InMemoryChatMessageHistory

        spec = os.environ.get("MEMORY_CONFORMANCE_HISTORY")
        return load_object(spec)(self.folder, owner) if spec else InMemoryChatMessageHistory()

    def _read_texts(self, owner: str) -> list[str]:
        return [message.text for message in self._open(owner).messages]

    def add(self, owner: str, text: str, **_: Any) -> str:
        """Add one message of the user."""
        from langchain_core.messages import HumanMessage

        history = self._open(owner)
        history.add_messages([HumanMessage(text)])
        return str(len(history.messages))

    def erase(self, owner: str) -> None:
        """Clear the conversation."""
        self._open(owner).clear()
