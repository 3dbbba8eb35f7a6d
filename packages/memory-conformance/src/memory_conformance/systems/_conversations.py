"""Base of stores that keep a conversation for each owner: a memory is a message of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_conformance.api import Record, Records, System


class ConversationSystem(System):
    """Opens the conversation of each owner once. Subclasses open one, add to it, and read its texts.

    A conversation has no search, no update and no deletion of one message; `first_number` is that of its first one.
    """

    first_number = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._conversations: dict[str, Any] = {}

    def _make(self, owner: str) -> Any:
        """Make the conversation of an owner."""
        raise NotImplementedError

    def _read_texts(self, owner: str) -> Sequence[str]:
        """Return the texts of the messages of an owner."""
        raise NotImplementedError

    def _open(self, owner: str) -> Any:
        """Return the conversation of an owner."""
        if owner not in self._conversations:
            self._conversations.setdefault(owner, self._make(owner))  # another thread may have made one
        return self._conversations[owner]

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, **_: Any) -> Records:
        """Return all messages of the conversation."""
        numbered = enumerate(self._read_texts(owner), self.first_number)
        return [Record(str(number), text) for number, text in numbered][offset:][:limit]

    def close(self) -> None:
        """Forget the conversations."""
        self._conversations.clear()
