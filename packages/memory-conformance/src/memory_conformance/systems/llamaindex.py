"""LlamaIndex's `Memory`: a memory is a message of the session of its owner."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_conformance.api import Record, Records, System


class LlamaIndexMemory(System):
    """`Memory` with its chat store in a SQLite file; it has no search, no update and no deletion of one message."""

    capabilities = frozenset({"durable", "crash_safe", "shared", "files"})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._sessions: dict[str, Any] = {}

    def _open(self, owner: str) -> Any:
        """Return the memory of a session."""
        from llama_index.core.memory import Memory

        if owner not in self._sessions:
            url = f"sqlite+aiosqlite:///{self.folder / 'chat.db'}"
            self._sessions[owner] = Memory.from_defaults(
                session_id=owner, async_database_uri=url, token_limit=10_000_000
            )
        return self._sessions[owner]

    def add(
        self,
        owner: str,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        expires: datetime | None = None,
    ) -> str:
        """Put one message of the user."""
        from llama_index.core.llms import ChatMessage

        memory = self._open(owner)
        memory.put(ChatMessage(role="user", content=text))
        return str(len(memory.get_all()))

    def list(
        self,
        owner: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        filters: Mapping[str, Any] | None = None,
    ) -> Records:
        """Return all messages of the session."""
        messages = self._open(owner).get_all()
        records = [Record(str(number), str(message.content or "")) for number, message in enumerate(messages)]
        return records[offset:][:limit]

    def erase(self, owner: str) -> None:
        """Reset the session."""
        self._open(owner).reset()

    def close(self) -> None:
        """Forget the sessions."""
        self._sessions.clear()
