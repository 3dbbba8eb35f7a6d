"""LangChain's chat message histories: a memory is a message of the conversation of its owner."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_conformance.api import Record, Records, System
from memory_conformance.systems.loading import load_object


class LangChainHistory(System):
    """`InMemoryChatMessageHistory`, or the history that the factory of an environment variable returns for an owner.

    The factory is called with the folder and the owner. A history has no search, update or deletion of one message.
    """

    capabilities = frozenset({"threads"})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._histories: dict[str, Any] = {}

    def _open(self, owner: str) -> Any:
        """Return the history of an owner."""
        if owner not in self._histories:
            from langchain_core.chat_history import InMemoryChatMessageHistory

            spec = os.environ.get("MEMORY_CONFORMANCE_HISTORY")
            made = load_object(spec)(self.folder, owner) if spec else InMemoryChatMessageHistory()
            self._histories.setdefault(owner, made)
        return self._histories[owner]

    def add(
        self,
        owner: str,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        expires: datetime | None = None,
    ) -> str:
        """Add one message of the user."""
        from langchain_core.messages import HumanMessage

        history = self._open(owner)
        history.add_messages([HumanMessage(text)])
        return str(len(history.messages))

    def list(
        self,
        owner: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        filters: Mapping[str, Any] | None = None,
    ) -> Records:
        """Return all messages of the conversation."""
        messages = self._open(owner).messages
        return [Record(str(number), message.text) for number, message in enumerate(messages, 1)][offset:][:limit]

    def erase(self, owner: str) -> None:
        """Clear the conversation."""
        self._open(owner).clear()

    def close(self) -> None:
        """Forget the conversations."""
        self._histories.clear()
