"""LlamaIndex's `Memory`: a memory is a message of the session of its owner."""

from __future__ import annotations

from typing import Any

from memory_conformance.systems._conversations import ConversationSystem


class LlamaIndexMemory(ConversationSystem):
    """`Memory` with its chat store in a SQLite file; it has no search, no update and no deletion of one message."""

    capabilities = frozenset({"durable", "crash_safe", "shared", "files"})
    first_number = 1

    def _make(self, owner: str) -> Any:
        from llama_index.core.memory import Memory

        url = f"sqlite+aiosqlite:///{self.folder / 'chat.db'}"
        return Memory.from_defaults(session_id=owner, async_database_uri=url, token_limit=10_000_000)

    def _read_texts(self, owner: str) -> list[str]:
        return [str(message.content or "") for message in self._open(owner).get_all()]

    def add(self, owner: str, text: str, **_: Any) -> str:
        """Put one message of the user."""
        from llama_index.core.llms import ChatMessage

        memory = self._open(owner)
        memory.put(ChatMessage(role="user", content=text))
        return str(len(memory.get_all()))

    def erase(self, owner: str) -> None:
        """Reset the session."""
        self._open(owner).reset()
