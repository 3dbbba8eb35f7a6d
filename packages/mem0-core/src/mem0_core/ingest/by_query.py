"""Updating and deleting what a search finds, or a filter (seed 003, parts 3 and 4).

Which memories are meant is decided first, and all at once: by the cosine of each to the query, by itself (not by what
was said beside it, as searches weigh), and by the filter. More of them than the caller expects is an error, before
anything is done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from mem0_core.errors import InputError, Mem0Error
from mem0_core.flow import Flow, do
from mem0_core.ingest.updates import check_memory_text, delete_memories, update_memory
from mem0_core.interfaces import Ports
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.recall.search import SearchRequest, recall

__all__ = ["BulkChangeResult", "Match", "delete_matches", "find_matches", "update_matches"]


@dataclass(frozen=True, slots=True)
class Match:
    """A memory that is meant; `score` is its cosine to the query, None where a filter alone chose it."""

    item: MemoryItem
    score: float | None = None


@dataclass(frozen=True, slots=True)
class BulkChangeResult:
    """What became of the memories that were meant, or in a dry run would.

    Attributes:
        results: each with what happened to it (UPDATE, DELETE or NONE), and its text since.
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
    """The memories that are meant, nearest first; without a query all that pass the filter, oldest first.

    Raises:
        InputError: there are more than `limit`, or there is neither a query nor a filter.
    """
    if query is None and filter is None:
        raise InputError("give a query, filters, or both: delete_all is for everything in a scope")
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
        recalled = yield from recall(dataclasses.replace(ports, graph=None, reranker=None), request)
        found = [Match(hit.item, hit.score) for hit in recalled.hits]
    if len(found) > limit:
        raise InputError(
            f"more than {limit} memories match, and nothing was changed: ask more closely (threshold={threshold}),"
            " or allow more with limit="
        )
    return found


def delete_matches(
    ports: Ports, found: Sequence[Match], *, at: str, purge: bool, dry_run: bool
) -> Flow[BulkChangeResult]:
    """Erase the memories, all that came of them and the messages they came from, in one transaction."""
    done = BulkChangeResult(tuple((match, Event.DELETE, match.item.text) for match in found))
    if dry_run or not found:
        return done
    pending = yield from delete_memories(ports, [match.item for match in found], at=at, purge=purge)
    return dataclasses.replace(done, pending=pending)


def update_matches(
    ports: Ports,
    found: Sequence[Match],
    texts: Sequence[str | None],
    *,
    metadata: Mapping[str, Any] | None,
    at: str,
    dry_run: bool,
) -> Flow[BulkChangeResult]:
    """Give each memory its new text, None for the one it has.

    All texts are checked before the first is written. What then fails for one memory is told in `skipped`, and the
    others are done.

    Raises:
        InputError: a text cannot be one, or two memories of one scope would say the same.
    """
    told: dict[tuple[Scope, bytes], str] = {}
    for match, text in zip(found, texts, strict=True):
        if text is not None:
            check_memory_text(text)
        key = match.item.scope, same_fact_key(text or match.item.text, match.item.actor_id)
        if told.setdefault(key, match.item.id) != match.item.id:
            raise InputError(
                f"{match.item.id!r} and {told[key]!r} would say the same; nothing was changed. Give a function that"
                " makes of each memory its own text, or ask more closely"
            )
    results: list[tuple[Match, Event, str]] = []
    relations: list[RelationChange] = []
    skipped: list[SkippedItem] = []
    pending: tuple[LaggingProjection, ...] = ()
    for match, text in zip(found, texts, strict=True):
        after = match.item.text if text is None else text
        if after == match.item.text and not metadata:
            results.append((match, Event.NONE, after))
            continue
        if not dry_run:
            try:
                updated = yield from update_memory(ports, match.item.id, after, metadata=metadata, at=at)
            except Mem0Error as error:
                skipped.append(SkippedItem(reason=f"{match.item.id}: {error}", item=after))
                continue
            relations += updated.relations
            pending = updated.pending
        results.append((match, Event.UPDATE, after))
    return BulkChangeResult(tuple(results), tuple(relations), tuple(skipped), pending)
