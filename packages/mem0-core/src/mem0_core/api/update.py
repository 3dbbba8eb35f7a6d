"""Flows that change memories: update and delete by id or by query, reset, rebuild."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mem0_core.api._arguments import (
    ScopeIds,
    parse_scope_and_filter,
    raise_policy_refusal,
    utc_now,
    utc_today,
    validate_id,
    validate_limit,
    validate_threshold,
)
from mem0_core.api._results import by_query_dict, memory_dict, status_dict
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.policy import apply_policy
from mem0_core.domain.records import ByQueryResult, MemoryDict, Scope
from mem0_core.flow import Flow, do
from mem0_core.ingest import updates
from mem0_core.ingest.by_query import Match, delete_matches, find_matches, update_matches
from mem0_core.interfaces import Ports
from mem0_core.language.messages import check_metadata
from mem0_core.language.parsed_query import parse_query

__all__ = ["UpdateApi"]


class UpdateApi(MemoryRuntime):
    """Flows of `Memory` that change or delete memories."""

    def _update_flow(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None) -> Flow[dict[str, Any]]:
        """Flow of `Memory.update`."""
        metadata = check_metadata(metadata, "the update")
        if self._policy is not None and isinstance(data, str):
            item = yield from do(self._store.get, validate_id(memory_id))
            if item is not None:
                data = apply_policy(self._policy, data, item.scope) or raise_policy_refusal(data)
        ports = yield from self._ports()
        updated = yield from updates.update_memory(ports, validate_id(memory_id), data, metadata=metadata, at=utc_now())
        return status_dict("Memory updated successfully!", updated.pending)

    def _update_by_query_flow(
        self,
        query: str | None,
        data: str | Callable[[MemoryDict], str | None],
        *,
        ids: ScopeIds,
        filters: Mapping[str, Any] | None,
        threshold: float,
        limit: int,
        metadata: Mapping[str, Any] | None,
        dry_run: bool,
    ) -> Flow[ByQueryResult]:
        """Flow of `Memory.update_by_query`."""
        metadata = check_metadata(metadata, "the update")
        ports, found = yield from self._find_matches(query, ids, filters, threshold, limit)
        texts = [data if isinstance(data, str) else data(memory_dict(match.item)) for match in found]
        if self._policy is not None:
            texts = [
                text and (apply_policy(self._policy, text, match.item.scope) or raise_policy_refusal(text))
                for match, text in zip(found, texts, strict=True)
            ]
        done = yield from update_matches(ports, found, texts, metadata=metadata, at=utc_now(), dry_run=dry_run)
        return by_query_dict(done, dry_run)

    def _delete_by_query_flow(
        self,
        query: str | None,
        *,
        ids: ScopeIds,
        filters: Mapping[str, Any] | None,
        threshold: float,
        limit: int,
        purge: bool,
        dry_run: bool,
    ) -> Flow[ByQueryResult]:
        """Flow of `Memory.delete_by_query`."""
        ports, found = yield from self._find_matches(query, ids, filters, threshold, limit)
        done = yield from delete_matches(ports, found, at=utc_now(), purge=purge, dry_run=dry_run)
        return by_query_dict(done, dry_run)

    def _find_matches(
        self, query: str | None, ids: ScopeIds, filters: Mapping[str, Any] | None, threshold: float, limit: int
    ) -> Flow[tuple[Ports, list[Match]]]:
        """Return the opened components and the memories that match a query, filters, or both."""
        scope, filter = parse_scope_and_filter(filters, ids)
        minimum, maximum = validate_threshold(threshold) or 0.0, validate_limit(limit, None, default=0)
        parsed = None if query is None else parse_query(query)
        ports = yield from self._ports()
        found = yield from find_matches(
            ports, parsed, scope, filter=filter, threshold=minimum, limit=maximum, today=utc_today()
        )
        return ports, found

    def _delete_flow(self, memory_id: str, *, purge: bool) -> Flow[dict[str, Any]]:
        """Flow of `Memory.delete`."""
        ports = yield from self._ports()
        pending = yield from updates.delete_memory(ports, validate_id(memory_id), at=utc_now(), purge=purge)
        return status_dict("Memory deleted successfully!", pending)

    def _delete_all_flow(self, *, ids: ScopeIds, purge: bool) -> Flow[dict[str, Any]]:
        """Flow of `Memory.delete_all`."""
        scope = Scope(*ids)
        ports = yield from self._ports()
        erased, pending = yield from updates.delete_scope(ports, scope, at=utc_now(), purge=purge)
        return status_dict(f"{erased} memories deleted successfully!", pending)

    def _reset_flow(self) -> Flow[None]:
        """Flow of `Memory.reset`."""
        yield from updates.reset_store((yield from self._ports()))

    def _rebuild_flow(self, *, on_progress: Callable[[int, int | None], object] | None) -> Flow[int]:
        """Flow of `Memory.rebuild`."""
        return (yield from updates.reembed_all((yield from self._ports()), on_progress))
