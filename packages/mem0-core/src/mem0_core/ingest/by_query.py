"""Update and delete the memories that match a query or a filter.

The matches are determined once, before any change: by the cosine of each memory to the query alone, without the
signals that a search adds, and by the filter. More matches than expected are an error, and nothing is changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.filters import Filter
from mem0_core.domain.recipes import MEM0
from mem0_core.domain.records import (
    Event,
    LaggingProjection,
    MemoryItem,
    RelationChange,
    Scope,
    SkippedItem,
    same_fact_key,
)
from mem0_core.errors import InputError
from mem0_core.flow import Flow, do
from mem0_core.ingest.updates import check_memory_text, delete_memories, update_memories
from mem0_core.interfaces import Ports
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.recall.search import SearchRequest, recall


@dataclass(frozen=True, slots=True)
class Match:
    """A matching memory.

    Attributes:
        score: its cosine to the query; None if only a filter selected it.
    """

    item: MemoryItem
    score: float | None = None


@dataclass(frozen=True, slots=True)
class BulkChangeResult:
    """Outcome of a change by query; in a dry run, the planned outcome.

    Attributes:
        results: (match, UPDATE, DELETE or NONE, the text after it) per memory.
        relations: changes of the graph.
        skipped: unusable parts of the model's replies about relations.
        pending: projections that could not be updated yet.
    """

    results: tuple[tuple[Match, Event, str], ...] = ()
    relations: tuple[RelationChange, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()
    pending: tuple[LaggingProjection, ...] = ()


def find_matches(
    ports: Ports,
    query: ParsedQuery | None,
    scope: Scope,
    *,
    filter: Filter | None,
    threshold: float,
    limit: int,
    today: str,
) -> Flow[list[Match]]:
    """Return the matching memories, nearest first; without a query all that pass the filter, oldest first.

    Args:
        threshold: lowest cosine of a match to the query, in [-1, 1].
        limit: largest number of matches that is accepted.
        today: ``YYYY-MM-DD``; memories that expired before it do not match a query.

    Raises:
        InputError: there are more than `limit` matches, or neither a query nor a filter is given.
    """
    if query is None and filter is None:
        raise InputError(
            "query and filters are both missing: give at least one; delete_all deletes everything in a scope"
        )
    if query is None:
        items = yield from do(ports.store.list_memories, scope, filter=filter, limit=limit + 1)
        found = [Match(item) for item in items]
    else:
        request = SearchRequest(
            query,
            scope,
            today,
            limit=limit + 1,
            filter=filter,
            threshold=threshold,
            rerank=False,
            include_unprocessed=False,
            recipe=MEM0,
        )
        recalled = yield from recall(dataclasses.replace(ports, graph=None, reranker=None, cache=None), request)
        found = [Match(hit.item, hit.score) for hit in recalled.hits]
    if len(found) > limit:
        raise InputError(
            f"more than {limit} memories match, and nothing was changed: raise threshold={threshold}, narrow the"
            " filters, or raise limit"
        )
    return found


def delete_matches(
    ports: Ports, found: Sequence[Match], *, at: str, purge: bool, dry_run: bool
) -> Flow[BulkChangeResult]:
    """Erase memories, the data derived from them and their source messages, in one transaction."""
    planned = BulkChangeResult(tuple((match, Event.DELETE, match.item.text) for match in found))
    if dry_run or not found:
        return planned
    pending = yield from delete_memories(ports, [match.item for match in found], at=at, purge=purge)
    return dataclasses.replace(planned, pending=pending)


def update_matches(
    ports: Ports,
    found: Sequence[Match],
    texts: Sequence[str | None],
    *,
    metadata: Mapping[str, Any] | None,
    at: str,
    dry_run: bool,
) -> Flow[BulkChangeResult | None]:
    """Give each memory its new text, in one transaction; None keeps the present text.

    Returns:
        The outcome; None if another writer changed one of the memories since it was read, and nothing is written.

    Raises:
        InputError: a text is not valid, or is that of another memory of the scope; nothing is written.
        ModelError: a model call failed; nothing is written.
    """
    _check_texts(found, texts)
    after = [(match, match.item.text if text is None else text) for match, text in zip(found, texts, strict=True)]
    changed = [(match.item, text) for match, text in after if text != match.item.text or metadata]
    ids = {item.id for item, _ in changed}
    results = tuple((match, Event.UPDATE if match.item.id in ids else Event.NONE, text) for match, text in after)
    if dry_run or not changed:
        return BulkChangeResult(results)
    updated = yield from update_memories(ports, changed, metadata=metadata, at=at)
    if updated is None:
        return None
    return BulkChangeResult(results, updated.relations, updated.skipped, updated.pending)


def _check_texts(found: Sequence[Match], texts: Sequence[str | None]) -> None:
    """Check that all new texts are valid and differ.

    Raises:
        InputError: a text is not valid, or two memories of one scope would have the same text.
    """
    first_ids: dict[tuple[Scope, bytes], str] = {}  # of each text
    for match, text in zip(found, texts, strict=True):
        if text is not None:
            check_memory_text(text)
        key = match.item.scope, same_fact_key(text or match.item.text, match.item.actor_id)
        if first_ids.setdefault(key, match.item.id) != match.item.id:
            raise InputError(
                f"{match.item.id!r} and {first_ids[key]!r} would have the same text; nothing was changed. Give a"
                " function that returns a text per memory, or narrow the query"
            )
