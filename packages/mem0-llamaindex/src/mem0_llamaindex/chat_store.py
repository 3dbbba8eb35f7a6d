"""`Mem0ChatStore`: whole chat histories in a memory's store, for LlamaIndex's buffers and memories."""

from __future__ import annotations

import time
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store import BaseChatStore

from mem0_core import AsyncMemory, Memory
from mem0_core.domain.records import new_id
from mem0_core.flow import Flow, arun, run
from mem0_core.views import ScopedDocument, ScopedDocuments
from mem0_llamaindex.convert import message_text, replace_lone_surrogates
from mem0_llamaindex.long_term import unwrap_memory

__all__ = ["Mem0ChatStore"]

_AGENT = "llamaindex chat"
_PLACE, _MESSAGE = "place", "message"


class Mem0ChatStore(BaseChatStore):
    """A chat store in a memory's database: durable, transactional, and shared by processes.

    >>> buffer = ChatMemoryBuffer.from_defaults(chat_store=Mem0ChatStore(memory), chat_store_key="maya")

    Messages are kept whole, with tool calls and blocks, apart from the memories of users: recall does not find them.
    To learn from conversations, use `Mem0Memory` or `Mem0MemoryBlock`. `Memory.erase` reaches the messages by the
    namespace as ``user_id`` and the ``agent_id`` ``"llamaindex chat"``.

    Args:
        memory: a `mem0_core.Memory`.
        namespace: separates several chat stores in one memory.

    Raises:
        ScopeError: the namespace is empty. ConfigError: `memory` is not a memory.
    """

    _memory: Memory = PrivateAttr()
    _namespace: str = PrivateAttr()

    def __init__(self, memory: Memory | AsyncMemory, *, namespace: str = "chats") -> None:
        super().__init__()
        self._memory = unwrap_memory(memory)
        self._namespace = namespace
        self._open(None)

    @classmethod
    def class_name(cls) -> str:
        return "Mem0ChatStore"

    def _open(self, key: str | None) -> ScopedDocuments:
        """Return the messages of a key, or of all."""
        run_id = None if key is None else f"key {replace_lone_surrogates(key)}"  # a key may be empty, an id may not
        return ScopedDocuments(self._memory, user_id=self._namespace, agent_id=_AGENT, run_id=run_id)

    # --- Sync methods ------------------------------------------------------------------------------------------------

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the messages of a key."""
        run(self._set(key, messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a key, oldest first."""
        return [_to_message(one) for one in run(self._list(key))]

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Append a message, or insert it before another one."""
        run(self._add(key, message, idx))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete and return the messages of a key; None if it has none."""
        return run(self._delete(key, None))

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete and return a message; None if there is none at this place."""
        deleted = run(self._delete(key, idx))
        return deleted[0] if deleted else None

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete and return the last message; None if there is none."""
        return self.delete_message(key, -1)

    def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        return _keys(self._open(None).get())

    # --- Async methods -----------------------------------------------------------------------------------------------

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Async version of `set_messages`."""
        await arun(self._set(key, messages))

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """Async version of `get_messages`."""
        return [_to_message(one) for one in await arun(self._list(key))]

    async def async_add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Async version of `add_message`."""
        await arun(self._add(key, message, idx))

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Async version of `delete_messages`."""
        return await arun(self._delete(key, None))

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Async version of `delete_message`."""
        deleted = await arun(self._delete(key, idx))
        return deleted[0] if deleted else None

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Async version of `delete_last_message`."""
        return await self.adelete_message(key, -1)

    async def aget_keys(self) -> list[str]:
        """Async version of `get_keys`."""
        return _keys(await self._open(None).aget())

    # --- Flows -------------------------------------------------------------------------------------------------------

    def _list(self, key: str) -> Flow[list[ScopedDocument]]:
        found = yield from self._open(key).get_flow(None, filters=None)
        return sorted(found, key=_place)

    def _set(self, key: str, messages: Sequence[ChatMessage]) -> Flow[None]:
        stored = yield from self._list(key)
        yield from self._append(key, messages)  # first, so that a failure leaves the former messages
        yield from self._open(key).delete_flow([one.id for one in stored], filters=None)

    def _add(self, key: str, message: ChatMessage, idx: int | None) -> Flow[None]:
        if idx is None:
            yield from self._append(key, [message])
            return
        messages = [_to_message(one) for one in (yield from self._list(key))]
        messages.insert(idx, message)
        yield from self._set(key, messages)

    def _append(self, key: str, messages: Sequence[ChatMessage]) -> Flow[None]:
        if messages:
            now = time.time_ns()
            yield from self._open(key).add_flow(
                [replace_lone_surrogates(message_text(message)) for message in messages],
                metadatas=[
                    {"key": key, _PLACE: now + number, _MESSAGE: message.model_dump_json()}
                    for number, message in enumerate(messages)
                ],
                ids=[new_id() for _ in messages],
            )

    def _delete(self, key: str, idx: int | None) -> Flow[list[ChatMessage] | None]:
        stored = yield from self._list(key)
        if idx is not None:
            stored = [stored[idx]] if -len(stored) <= idx < len(stored) else []
        if not stored:
            return None
        yield from self._open(key).delete_flow([one.id for one in stored], filters=None)
        return [_to_message(one) for one in stored]


def _place(document: ScopedDocument) -> int:
    place: int = document.metadata[_PLACE]
    return place


def _to_message(document: ScopedDocument) -> ChatMessage:
    return ChatMessage.model_validate_json(document.metadata[_MESSAGE])


def _keys(documents: Sequence[ScopedDocument]) -> list[str]:
    return list(dict.fromkeys(str(one.metadata["key"]) for one in documents))
