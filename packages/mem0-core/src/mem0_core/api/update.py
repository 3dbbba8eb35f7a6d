"""What becomes of memories: updated and deleted by id and by query, embedded anew.

Each verb is a flow; `memory.Memory` makes its sync and async forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mem0_core.api.arguments import (
    parse_scope_and_filter,
    raise_policy_refusal,
    utc_now,
    utc_today,
    validate_id,
    validate_limit,
    validate_threshold,
)
from mem0_core.api.search import SearchApi
from mem0_core.domain.policy import apply_policy
from mem0_core.domain.records import ByQueryResult, MemoryDict, Scope
from mem0_core.domain.results import by_query_dict, memory_dict, status_dict
from mem0_core.flow import Flow, do
from mem0_core.ingest import updates as upkeep
from mem0_core.ingest.by_query import Match, delete_matches, find_matches, update_matches
from mem0_core.interfaces import Ports
from mem0_core.language.messages import check_metadata

__all__ = ["UpdateApi"]


class UpdateApi(SearchApi):
    """What becomes of memories: updated and deleted by id and by query, embedded anew."""

    def _update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> Flow[dict[str, Any]]:
        """Give a memory a new text, and add `metadata` to what it has.

        Relations that only its old text supported end; with graph memory on, those of the new text are read, by the
        model where there is one.

        Raises:
            NotFoundError: no memory has that id.
            InputError: the text is empty, or another memory of the same scope says it already.
        """
        more = check_metadata(metadata, "the update")
        if self._policy is not None and isinstance(data, str):
            item = yield from do(self._store.get, validate_id(memory_id))
            if item is not None:
                data = apply_policy(self._policy, data, item.scope) or raise_policy_refusal(data)
        ports = yield from self._ports()
        updated = yield from upkeep.update_memory(ports, validate_id(memory_id), data, metadata=more, at=utc_now())
        return status_dict("Memory updated successfully!", updated.pending)

    def _update_by_query(
        self,
        query: str | None,
        data: str | Callable[[MemoryDict], str | None],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float = 0.5,
        limit: int = 20,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> Flow[ByQueryResult]:
        """`update_memory` for the memories that a query finds, or filters, or both.

        Args:
            query: what they are about; None for all that pass `filters`.
            data: the new text, where one memory is meant; else a function that makes it of a memory as `get` gives it,
                and returns None for one that stays as it is.
            filters: as in `search`.
            threshold: the cosine, in [0, 1], that a memory and the query must have.
            limit: how many memories may be meant. If more are, nothing is done.
            metadata: JSON added to what each of them has.
            dry_run: tell what would change, and change nothing.

        Returns:
            ``results``: each with ``event`` UPDATE or NONE, its text since, ``previous_memory`` and ``score``;
            ``relations`` that began to hold and that ended (not in a dry run); ``skipped``, what failed and why.

        Raises:
            InputError: more than `limit` memories match, a text cannot be one, or two of them would say the same.
                Nothing is written then.
        """
        more = check_metadata(metadata, "the update")
        ports, found = yield from self._find_matches(query, user_id, agent_id, run_id, filters, threshold, limit)
        texts = [data if isinstance(data, str) else data(memory_dict(match.item)) for match in found]
        if self._policy is not None:
            texts = [
                text and (apply_policy(self._policy, text, match.item.scope) or raise_policy_refusal(text))
                for match, text in zip(found, texts, strict=True)
            ]
        done = yield from update_matches(ports, found, texts, metadata=more, at=utc_now(), dry_run=dry_run)
        return by_query_dict(done, dry_run)

    def _delete_by_query(
        self,
        query: str | None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float = 0.5,
        limit: int = 20,
        purge: bool = False,
        dry_run: bool = False,
    ) -> Flow[ByQueryResult]:
        """`delete_memory` for the memories that a query finds, or filters, or both: all of them in one transaction, or
        none.

        Args:
            query, filters, threshold, limit, dry_run: as in `update_by_query`.
            purge: as in `delete_memory`.

        Raises:
            InputError: more than `limit` memories match; nothing is deleted.
        """
        ports, found = yield from self._find_matches(query, user_id, agent_id, run_id, filters, threshold, limit)
        done = yield from delete_matches(ports, found, at=utc_now(), purge=purge, dry_run=dry_run)
        return by_query_dict(done, dry_run)

    def _find_matches(
        self,
        query: str | None,
        user_id: str | None,
        agent_id: str | None,
        run_id: str | None,
        filters: Mapping[str, Any] | None,
        threshold: float,
        limit: int,
    ) -> Flow[tuple[Ports, list[Match]]]:
        scope, filter = parse_scope_and_filter(filters, user_id, agent_id, run_id)
        floor, most = validate_threshold(threshold) or 0.0, validate_limit(limit, None, default=0)
        ports = yield from self._ports()
        found = yield from find_matches(
            ports, query, scope, filter=filter, threshold=floor, limit=most, today=utc_today()
        )
        return ports, found

    def _delete(self, memory_id: str, *, purge: bool = False) -> Flow[dict[str, Any]]:
        """Erase a memory everywhere, with the messages it came from and the relations that only it supported.

        Its history tells what it was, until purged; no search finds it, as of any day.

        Args:
            purge: erase its history as well, from the file's free pages and log too (rewrites the file).

        Raises:
            NotFoundError: no memory has that id.
        """
        ports = yield from self._ports()
        pending = yield from upkeep.delete_memory(ports, validate_id(memory_id), at=utc_now(), purge=purge)
        return status_dict("Memory deleted successfully!", pending)

    def _delete_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> Flow[dict[str, Any]]:
        """`delete_memory` for everything in a scope, its messages and its graph included.

        Raises:
            ScopeError: no id is given: `reset_store` empties the store.
        """
        scope = Scope(user_id, agent_id, run_id)
        ports = yield from self._ports()
        erased, pending = yield from upkeep.delete_scope(ports, scope, at=utc_now(), purge=purge)
        return status_dict(f"{erased} memories deleted successfully!", pending)

    def _reset(self) -> Flow[None]:
        """Empty the whole store, everybody's memories and history."""
        yield from upkeep.reset_store((yield from self._ports()))

    def _rebuild(self, *, on_progress: Callable[[int, int | None], object] | None = None) -> Flow[int]:
        """Embed everything anew with the embedder of this object, and return how many memories there are.

        This is how a store changes its embedder. The old vectors serve until the last new one is ready.

        Args:
            on_progress: called with how many texts are embedded, and how many there are.
        """
        return (yield from upkeep.reembed_all((yield from self._ports()), on_progress))
