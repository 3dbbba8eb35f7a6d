"""Flows that change memories: update and delete by id or by query, reset, rebuild."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from mem0_core._system.boundary import call_hook, guard_hook
from mem0_core.api._arguments import (
    ScopeIds,
    parse_scope_and_filter,
    raise_policy_refusal,
    scope_or_all,
    validate_id,
    validate_limit,
    validate_threshold,
)
from mem0_core.api._results import by_query_dict, memory_dict, status_dict
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.policy import apply_policy
from mem0_core.domain.records import ByQueryResult, FeedbackDict, MemoryDict, RetractResult, Scope
from mem0_core.domain.suggestions import describe_value
from mem0_core.domain.timestamps import utc_now, utc_today
from mem0_core.domain.trust import parse_source
from mem0_core.errors import InputError, NotFoundError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.interfaces.maintenance import ProgressCallback
from mem0_core.language.messages import check_metadata

if TYPE_CHECKING:
    from mem0_core.ingest.by_query import Match

_MARKS: dict[bool | None, dict[str, Any]] = {True: {"useful": 1}, False: {"useless": 1}, None: {"clear": True}}


class UpdateApi(MemoryRuntime):
    """Flows of `Memory` that change or delete memories."""

    def _update_flow(
        self, memory_id: str, data: str, metadata: Mapping[str, Any] | None, *, ids: ScopeIds
    ) -> Flow[dict[str, Any]]:
        from mem0_core.ingest import updates

        if not (yield from self._is_owner(memory_id, ids)):
            raise NotFoundError(memory_id)
        metadata = check_metadata(metadata, "the update")
        if self._policy is not None and isinstance(data, str):
            item = yield from do(self._store.get, validate_id(memory_id))
            if item is not None:
                data = apply_policy(self._policy, data, item.scope) or raise_policy_refusal(data)
        ports = yield from self._ports()
        at = yield from self._statement_time((yield from do(self._store.owner, validate_id(memory_id))))
        updated = yield from updates.update_memory(ports, validate_id(memory_id), data, metadata=metadata, at=at)
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
        from mem0_core.ingest import updates
        from mem0_core.ingest.by_query import update_matches

        metadata = check_metadata(metadata, "the update")
        given: object = data
        if not isinstance(given, str) and not callable(given):
            shown = describe_value(given)
            raise InputError(f"data must be a text or a function of a memory, not {shown}; pass the new text")
        for _ in range(updates.MAX_ATTEMPTS):
            ports, found = yield from self._find_matches(query, ids, filters, threshold, limit)
            texts = [
                data if isinstance(data, str) else call_hook("data", data, memory_dict(match.item)) for match in found
            ]
            if self._policy is not None:
                texts = [
                    text and (apply_policy(self._policy, text, match.item.scope) or raise_policy_refusal(text))
                    for match, text in zip(found, texts, strict=True)
                ]
            at = yield from self._statement_time(found[0].item.scope if found else None)
            done = yield from update_matches(ports, found, texts, metadata=metadata, at=at, dry_run=dry_run)
            if done is not None:
                return by_query_dict(done, dry_run)
        raise StoreError(
            f"other writers changed the matching memories {updates.MAX_ATTEMPTS} times; nothing was written, try again"
        )

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
        from mem0_core.ingest.by_query import delete_matches

        ports, found = yield from self._find_matches(query, ids, filters, threshold, limit)
        done = yield from delete_matches(ports, found, at=utc_now(), purge=purge, dry_run=dry_run)
        if purge and not dry_run:
            yield from do(self._clear_temporary_files)
        return by_query_dict(done, dry_run)

    def _find_matches(
        self, query: str | None, ids: ScopeIds, filters: Mapping[str, Any] | None, threshold: float, limit: int
    ) -> Flow[tuple[Ports, list[Match]]]:
        """Return the opened components and the memories that match a query, filters, or both."""
        from mem0_core.ingest.by_query import find_matches
        from mem0_core.language.parsed_query import parse_query

        scope, filter = parse_scope_and_filter(filters, ids)
        minimum, maximum = validate_threshold(threshold) or 0.0, validate_limit(limit, None, default=0)
        parsed = None if query is None else parse_query(query)
        ports = yield from self._ports()
        found = yield from find_matches(
            ports, parsed, scope, filter=filter, threshold=minimum, limit=maximum, today=utc_today()
        )
        return ports, found

    def _delete_flow(self, memory_id: str, *, ids: ScopeIds, purge: bool) -> Flow[dict[str, Any]]:
        from mem0_core.ingest import updates

        if not (yield from self._is_owner(memory_id, ids)):
            raise NotFoundError(memory_id)
        ports = yield from self._ports()
        pending = yield from updates.delete_memory(ports, validate_id(memory_id), at=utc_now(), purge=purge)
        if purge:
            yield from do(self._clear_temporary_files)
        return status_dict("Memory deleted successfully!", pending)

    def _delete_all_flow(self, *, ids: ScopeIds, purge: bool) -> Flow[dict[str, Any]]:
        from mem0_core.ingest import updates

        scope = Scope(*ids)
        ports = yield from self._ports()
        erased, pending = yield from updates.delete_scope(ports, scope, at=utc_now(), purge=purge)
        if purge:
            yield from do(self._clear_temporary_files)
        return status_dict(f"{erased} memories deleted successfully!", pending)

    def _feedback_flow(self, memory_id: str, useful: bool | None, *, ids: ScopeIds) -> Flow[FeedbackDict]:
        if useful is not None and not isinstance(useful, bool):
            raise InputError(
                f"useful must be True, False, or None to withdraw all feedback on the memory, not {useful!r}"
            )
        if not (yield from self._is_owner(memory_id, ids)):
            raise NotFoundError(memory_id)
        if not (yield from do(self._store.mark, [validate_id(memory_id)], **_MARKS[useful])):
            raise NotFoundError(memory_id)
        item = yield from do(self._store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        return FeedbackDict(id=memory_id, useful=item.useful, useless=item.useless)

    def _count_citations_flow(self, answer: str, citations: Mapping[str, str], *, ids: ScopeIds) -> Flow[list[str]]:
        from mem0_core.llm.replies import read_citations

        owner = scope_or_all(ids)
        cited = read_citations(answer, citations)
        items = yield from do(self._store.get_many, cited)
        owned = [id for id in cited if id in items and (owner is None or owner.contains(items[id].scope))]
        if owned:
            yield from do(self._store.mark, owned, useful=1)
        return owned

    def _retract_flow(self, source: str, *, ids: ScopeIds, purge: bool) -> Flow[RetractResult]:
        from mem0_core.ingest import updates

        name, scope = parse_source(source), scope_or_all(ids)
        if name is None:
            raise InputError("source must be a non-empty string, not None; pass, for example, source='tool:web_search'")
        ports = yield from self._ports()
        done, pending = yield from updates.retract_source(ports, name, scope, at=utc_now(), purge=purge)
        if done.jobs or done.summaries:
            yield from do(self._background.start)
        result = cast(RetractResult, asdict(done))
        if pending:
            result["pending"] = list(pending)
        return result

    def _reset_flow(self) -> Flow[None]:
        from mem0_core.ingest import updates

        yield from updates.reset_store((yield from self._ports()))
        yield from do(self._clear_temporary_files)

    def _rebuild_flow(self, *, on_progress: ProgressCallback | None) -> Flow[int]:
        from mem0_core.ingest import updates

        on_progress = guard_hook("on_progress", on_progress)
        return (yield from updates.reembed_all((yield from self._ports()), on_progress))
