"""Flows behind the views of a memory: list, create, replace and delete whole memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core.api._arguments import raise_policy_refusal
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.filters import Filter, unexpired
from mem0_core.domain.policy import apply_policy, check_sizes
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    MemoryItem,
    Message,
    Scope,
    Trust,
    content_hash,
    new_id,
)
from mem0_core.domain.timestamps import utc_now, utc_today
from mem0_core.flow import Flow, do


class FilesApi(MemoryRuntime):
    """Flows on whole memories. Texts are stored exactly as they are given."""

    def _list_items_flow(self, scope: Scope, filter: Filter | None = None) -> Flow[list[MemoryItem]]:
        """Return the memories of a scope that pass the filter and have not expired, oldest first."""
        return (yield from do(self._store.list_memories, scope, filter=unexpired(utc_today(), filter)))

    def _create_items_flow(
        self,
        scope: Scope,
        texts: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        extract: bool = True,
        trust: Trust = Trust.USER,
    ) -> Flow[list[MemoryItem | None]]:
        """Add texts with their metadata as memories; None for a text that the scope has already."""
        from mem0_core.ingest import updates

        self._rates.record_add(scope)
        allowed = [(self._allowed_text(text, scope), metadata) for text, metadata in texts]
        ports = yield from self._ports()
        at = yield from self._statement_time(scope)
        options: dict[str, Any] = {"at": at, "extract": extract, "trust": trust}
        return (yield from updates.create_memories(ports, allowed, scope=scope, **options))

    def _replace_items_flow(self, texts: Sequence[tuple[MemoryItem, str]]) -> Flow[bool]:
        """Give memories their new texts, and the metadata of the given items, in one transaction.

        Returns:
            False if another writer changed one of them after it was read; nothing is written then.

        Raises:
            InputError: another memory of the scope has a new text.
        """
        from mem0_core.ingest import updates

        allowed = [(item, text if text == item.text else self._allowed_text(text, item.scope)) for item, text in texts]
        for _, text in allowed:
            updates.check_memory_text(text)
        ports = yield from self._ports()
        at = yield from self._statement_time(texts[0][0].scope if texts else None)
        return (yield from updates.update_memories(ports, allowed, metadata=None, at=at)) is not None

    def _write_records_flow(
        self,
        scope: Scope,
        *,
        added: Sequence[tuple[str, Mapping[str, Any]]] = (),
        changed: Sequence[MemoryItem] = (),
        deleted: Sequence[MemoryItem] = (),
    ) -> Flow[bool]:
        """Write memories that no search is to find, in one transaction: they have no embedding and no relations.

        Args:
            added: texts that limits and policy allow, with their metadata. Each is stored after its id, since a scope
                has each text once.
            changed: memories with other metadata than they were read with.
            deleted: memories as they were read.

        Returns:
            False if another writer changed one of the memories; nothing is written then.
        """
        from mem0_core.recall.embedding import embedding_space_of, placeholder_vector

        if added:
            self._rates.record_add(scope)
        ports = yield from self._ports()
        at = yield from self._statement_time(scope)
        changes = [MemoryChange(Event.UPDATE, item, before=item.text) for item in changed]
        changes += [MemoryChange(Event.DELETE, item, before=item.text) for item in deleted]
        for content, metadata in added:
            text = f"{(id := new_id())}\n\n{content}"
            item = MemoryItem(id, text, scope, content_hash(text), at, metadata=metadata)
            changes.append(MemoryChange(Event.ADD, item, vector=placeholder_vector(ports.embedder.dims)))
        if not changes:
            return True
        space = embedding_space_of(ports, changes)
        commit = yield from do(ports.store.commit, changes, scope=scope, at=at, embedding_space=space)
        return not commit.conflicts

    def _delete_items_flow(self, items: Sequence[MemoryItem]) -> Flow[None]:
        """Erase memories in one transaction."""
        from mem0_core.ingest import updates

        yield from updates.delete_memories((yield from self._ports()), items, at=utc_now(), purge=False)

    def _allowed_text(self, text: str, scope: Scope) -> str:
        """Return the text as limits and policy allow it, or raise."""
        check_sizes(self._limits, [Message("user", text)])
        return apply_policy(self._policy, text, scope) or raise_policy_refusal(text)
