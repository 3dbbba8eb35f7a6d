"""`Mem0ChatStore` and `Mem0AsyncChatStore`: whole chat histories in a memory's store, for LlamaIndex's memories."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from mem0_core import AsyncMemory, Memory, Scope, StoreError
from mem0_core._system.boundary import convert_errors_of
from mem0_core.api.options import unwrap_memory
from mem0_core.domain.records import MemoryItem
from mem0_core.flow import Flow
from mem0_llamaindex.convert import message_text, replace_lone_surrogates

__all__ = ["Mem0AsyncChatStore", "Mem0ChatStore"]

_AGENT = "llamaindex chat"
_KEY, _PLACE, _MESSAGE, _STATUS = "key", "place", "message", "status"
_MAX_ATTEMPTS = 20  # of a write while other writers change the same messages


@convert_errors_of("set_messages", "add_message", "aset_messages", "async_add_message")
class Mem0ChatStore(BaseChatStore):
    """A chat store in a memory's database: durable, transactional, and shared by processes.

    >>> buffer = ChatMemoryBuffer.from_defaults(chat_store=Mem0ChatStore(memory), chat_store_key="maya")

    Messages are kept whole, with tool calls and blocks, apart from the memories of users: recall does not find them,
    and nothing is embedded. The memory's policy applies to their texts. To learn from conversations, use `Mem0Memory`
    or `Mem0MemoryBlock`. `Memory.erase` reaches the messages by the namespace as ``user_id`` and the ``agent_id``
    ``"llamaindex chat"``.

    Args:
        memory: a `mem0_core.Memory`.
        namespace: separates several chat stores in one memory.

    Raises:
        ScopeError: the namespace is empty. ConfigError: `memory` is not a memory.
    """

    _log: _ChatLog = PrivateAttr()

    def __init__(self, memory: Memory | AsyncMemory, *, namespace: str = "chats") -> None:
        super().__init__()
        self._log = _ChatLog(unwrap_memory(memory), namespace)

    @classmethod
    def class_name(cls) -> str:
        return "Mem0ChatStore"

    # --- Sync methods ------------------------------------------------------------------------------------------------

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the messages of a key."""
        self._log.memory._run(self._log.set(key, messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a key, oldest first."""
        return self._log.memory._run(self._log.get(key))

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Append a message, or insert it before another one."""
        self._log.memory._run(self._log.add(key, [message], before=idx))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete and return the messages of a key; None if it has none."""
        return self._log.memory._run(self._log.delete(key, _select_all)) or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete and return a message; None if there is none at this place."""
        return next(iter(self._log.memory._run(self._log.delete(key, _select_at(idx)))), None)

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete and return the last message; None if there is none."""
        return self.delete_message(key, -1)

    def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        return self._log.memory._run(self._log.keys())

    # --- Async methods -----------------------------------------------------------------------------------------------

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Async version of `set_messages`."""
        await self._log.memory._arun(self._log.set(key, messages))

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """Async version of `get_messages`."""
        return await self._log.memory._arun(self._log.get(key))

    async def async_add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Async version of `add_message`."""
        await self._log.memory._arun(self._log.add(key, [message], before=idx))

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Async version of `delete_messages`."""
        return await self._log.memory._arun(self._log.delete(key, _select_all)) or None

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Async version of `delete_message`."""
        return next(iter(await self._log.memory._arun(self._log.delete(key, _select_at(idx)))), None)

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Async version of `delete_last_message`."""
        return await self.adelete_message(key, -1)

    async def aget_keys(self) -> list[str]:
        """Async version of `get_keys`."""
        return await self._log.memory._arun(self._log.keys())


class Mem0AsyncChatStore(AsyncDBChatStore):
    """The chat store of LlamaIndex's `Memory` in a memory's database, in place of a SQL database of its own.

    >>> memory = Memory.from_defaults(session_id="maya", chat_store=Mem0AsyncChatStore(core))

    It reads and writes the messages of a `Mem0ChatStore` of the same namespace, which are active. Two classes are
    needed because LlamaIndex's base classes have sync and async methods of the same names.

    Args:
        memory: a `mem0_core.Memory`.
        namespace: separates several chat stores in one memory.

    Raises:
        ScopeError: the namespace is empty. ConfigError: `memory` is not a memory.
    """

    _log: _ChatLog = PrivateAttr()

    def __init__(self, memory: Memory | AsyncMemory, *, namespace: str = "chats") -> None:
        super().__init__()
        self._log = _ChatLog(unwrap_memory(memory), namespace)

    @classmethod
    def class_name(cls) -> str:
        return "Mem0AsyncChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a key, oldest first; of every status if `status` is None."""
        start = offset or 0
        return (await self._log.memory._arun(self._log.get(key, status)))[
            start : None if limit is None else start + limit
        ]

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """Return the number of messages of a key."""
        return len(await self._log.memory._arun(self._log.get(key, status)))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Append a message."""
        await self._log.memory._arun(self._log.add(key, [message], status))

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append several messages in one transaction."""
        await self._log.memory._arun(self._log.add(key, messages, status))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace all messages of a key, whatever their status."""
        await self._log.memory._arun(self._log.set(key, messages, status))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete and return a message by its place among all of the key; None if there is none."""
        return next(iter(await self._log.memory._arun(self._log.delete(key, _select_at(idx)))), None)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a key; of every status if `status` is None."""
        await self._log.memory._arun(self._log.delete(key, _select_first(None, status)))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete and return the oldest `n` active messages."""
        return await self._log.memory._arun(self._log.delete(key, _select_first(n, MessageStatus.ACTIVE)))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive and return the oldest `n` active messages."""
        return await self._log.memory._arun(self._log.archive(key, n))

    async def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        return await self._log.memory._arun(self._log.keys())


# --- The messages ----------------------------------------------------------------------------------------------------

_Select = Callable[[Sequence[MemoryItem]], Sequence[MemoryItem]]


@dataclass(frozen=True, slots=True)
class _Change:
    """A planned write of the messages of a key."""

    added: Sequence[tuple[ChatMessage, str]] = ()
    archived: Sequence[MemoryItem] = ()
    deleted: Sequence[MemoryItem] = ()


@dataclass(frozen=True, slots=True)
class _ChatLog:
    """The messages of chats, each a record in a memory's database. Every write is one transaction."""

    memory: Memory
    namespace: str

    def __post_init__(self) -> None:
        Scope(self.namespace)  # refuses an unusable one

    def get(self, key: str, status: MessageStatus | None = None) -> Flow[list[ChatMessage]]:
        return _to_messages(_select_first(None, status)((yield from self._list(key))))

    def keys(self) -> Flow[list[str]]:
        return list(dict.fromkeys(item.metadata[_KEY] for item in (yield from self._list(None))))

    def set(
        self, key: str, messages: Sequence[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> Flow[list[MemoryItem]]:
        added = [(message, status.value) for message in messages]
        return (yield from self._write(key, lambda stored: _Change(added, deleted=stored)))

    def add(
        self,
        key: str,
        messages: Sequence[ChatMessage],
        status: MessageStatus = MessageStatus.ACTIVE,
        *,
        before: int | None = None,
    ) -> Flow[None]:
        added = [(message, status.value) for message in messages]

        def insert(stored: list[MemoryItem]) -> _Change:
            later = stored[before:]
            return _Change([*added, *((_to_message(item), _status(item)) for item in later)], deleted=later)

        if before is not None:
            yield from self._write(key, insert)
        elif added:
            yield from self._commit(key, _Change(added))

    def delete(self, key: str, select: _Select) -> Flow[list[ChatMessage]]:
        written = yield from self._write(key, lambda stored: _Change(deleted=select(stored)))
        return _to_messages(written)

    def archive(self, key: str, count: int) -> Flow[list[ChatMessage]]:
        select = _select_first(count, MessageStatus.ACTIVE)
        return _to_messages((yield from self._write(key, lambda stored: _Change(archived=select(stored)))))

    def _list(self, key: str | None) -> Flow[list[MemoryItem]]:
        found = yield from self.memory._list_items_flow(self._scope(key))
        return sorted(found, key=lambda item: int(item.metadata[_PLACE]))

    def _write(self, key: str, plan: Callable[[list[MemoryItem]], _Change]) -> Flow[list[MemoryItem]]:
        """Write a change of the stored messages, and return those that it archived or deleted."""
        for _ in range(_MAX_ATTEMPTS):
            change = plan((yield from self._list(key)))
            if (yield from self._commit(key, change)):
                return [*change.archived, *change.deleted]
        raise StoreError(f"other processes kept changing the messages of the key {key!r}; try again")

    def _commit(self, key: str, change: _Change) -> Flow[bool]:
        now = time.time_ns()
        added = []
        for number, (message, status) in enumerate(change.added):
            allowed = self._allow(message, self._scope(key))
            dumped = json.dumps(allowed.model_dump(mode="json"))
            metadata = {_KEY: key, _PLACE: now + number, _MESSAGE: dumped, _STATUS: status}
            added.append((message_text(allowed), metadata))
        return (
            yield from self.memory._write_records_flow(
                self._scope(key),
                added=added,
                changed=[
                    replace(item, metadata={**item.metadata, _STATUS: MessageStatus.ARCHIVED.value})
                    for item in change.archived
                ],
                deleted=change.deleted,
            )
        )

    def _allow(self, message: ChatMessage, scope: Scope) -> ChatMessage:
        """Return the message as limits and policy allow it, or raise InputError."""
        text = message_text(message)
        allowed = self.memory._allowed_text(text, scope) if text else text
        if allowed == text:
            return message
        others = [block for block in message.blocks if not isinstance(block, TextBlock)]
        return message.model_copy(update={"blocks": [TextBlock(text=allowed), *others]})

    def _scope(self, key: str | None) -> Scope:
        """Return the scope of a key's messages, or of all. A key may be empty, an id may not."""
        return Scope(self.namespace, _AGENT, None if key is None else f"key {replace_lone_surrogates(key)}")


def _select_all(stored: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
    return stored


def _select_at(index: int) -> _Select:
    return lambda stored: [stored[index]] if -len(stored) <= index < len(stored) else []


def _select_first(count: int | None, status: MessageStatus | None) -> _Select:
    return lambda stored: [item for item in stored if status is None or _status(item) == status.value][:count]


def _status(item: MemoryItem) -> str:
    return str(item.metadata[_STATUS])


def _to_message(item: MemoryItem) -> ChatMessage:
    return ChatMessage.model_validate(json.loads(item.metadata[_MESSAGE]))


def _to_messages(items: Sequence[MemoryItem]) -> list[ChatMessage]:
    return [_to_message(item) for item in items]
