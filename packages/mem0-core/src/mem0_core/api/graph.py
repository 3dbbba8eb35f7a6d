"""Flows on the graph: list, traverse, query and draw relations; merge names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from mem0_core._system.files import validate_path
from mem0_core.api._arguments import (
    ScopeIds,
    filename_timestamp,
    scope_or_all,
    validate_id,
    validate_limit,
    validate_threshold,
    write_atomically,
)
from mem0_core.api._html import show_path, show_paths, show_query
from mem0_core.api._results import merge_dict, merge_result, path_dict, query_dict, relation_dict
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.records import MergeDict, MergeResult, PathDict, QueryResult, RelationDict, Scope
from mem0_core.domain.timestamps import parse_timestamp, utc_now
from mem0_core.errors import InputError, NotFoundError
from mem0_core.flow import Flow, do


class GraphApi(MemoryRuntime):
    """Flows of `Memory` on the graph."""

    def _relations_flow(
        self, *, ids: ScopeIds, as_of: int | float | str | datetime | None, include_ended: bool, limit: int | None
    ) -> Flow[list[RelationDict]]:
        scope = Scope(*ids)
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        maximum = None if limit is None else validate_limit(limit, None, default=0)
        found = yield from do(
            self._store.graph.relations, scope, as_of=time, include_ended=include_ended, limit=maximum
        )
        return [relation_dict(relation) for relation in found]

    def _traverse_flow(
        self, question: str, *, ids: ScopeIds, as_of: int | float | str | datetime | None, limit: int, depth: int | None
    ) -> Flow[list[PathDict]]:
        from mem0_core.language.parsed_query import parse_query
        from mem0_core.recall.exploration import traverse

        query = parse_query(question, name="question")
        scope = Scope(*ids)
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        maximum = validate_limit(limit, None, default=5)
        ports = yield from self._ports()
        found = yield from traverse(ports, query, scope, as_of=time, limit=maximum, depth=depth)
        return show_paths(show_path(path_dict(path)) for path in found)

    def _query_flow(
        self,
        text: str,
        *,
        ids: ScopeIds,
        as_of: int | float | str | datetime | None,
        parameters: Mapping[str, Any] | None,
    ) -> Flow[QueryResult]:
        from mem0_core.recall.exploration import run_query

        scope = Scope(*ids)
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        ports = yield from self._ports()
        return show_query(query_dict((yield from run_query(ports, text, scope, as_of=time, parameters=parameters))))

    def _visualize_flow(
        self, path: str | Path | None, *, entities: Sequence[str] | None, depth: int, limit: int, ids: ScopeIds
    ) -> Flow[str]:
        from mem0_core.admin.copies import register_copy
        from mem0_core.graph.view import render_page
        from mem0_core.recall.exploration import build_drawing

        scope = Scope(*ids)
        if isinstance(entities, str) or (entities is not None and not entities):
            raise InputError(f"entities must be a list of names, not {entities!r}")
        hops, maximum = validate_limit(depth, None, default=2), validate_limit(limit, None, default=0)
        ports = yield from self._ports()
        drawn = yield from build_drawing(ports, scope, entities=entities, depth=hops, limit=maximum)
        file = (
            validate_path(path, "path")
            if path is not None
            else self.config.database.parent / "viz" / f"graph_view_{filename_timestamp()}.html"
        )
        yield from do(register_copy, self._store.maintenance, "drawing", file)
        yield from do(write_atomically, file, (yield from do(render_page, drawn)))
        return str(file)

    def _merge_flow(
        self,
        what: Literal["all", "entities", "relationships"],
        *,
        ids: ScopeIds,
        names: Sequence[str] | None,
        into: str | None,
        threshold: float | None,
        dry_run: bool,
    ) -> Flow[MergeResult]:
        from mem0_core.ingest.entity_resolution import merge_duplicates

        scope = Scope(*ids)
        minimum = validate_threshold(threshold)
        ports = yield from self._ports()
        done = yield from merge_duplicates(
            ports, scope, what=what, names=names, into=into, threshold=minimum, at=utc_now(), dry_run=dry_run
        )
        return merge_result(done, dry_run)

    def _unmerge_flow(self, merge_id: str, *, ids: ScopeIds) -> Flow[MergeDict]:
        from mem0_core.ingest.entity_resolution import undo_merge

        owner = scope_or_all(ids)
        if owner is not None and all(
            merge.id != merge_id for merge in (yield from do(self._store.merges.list_merges, owner))
        ):
            raise NotFoundError(merge_id, "merge")
        return merge_dict((yield from undo_merge((yield from self._ports()), validate_id(merge_id), at=utc_now())))

    def _merges_flow(self, *, ids: ScopeIds) -> Flow[list[MergeDict]]:
        listed = yield from do(self._store.merges.list_merges, Scope(*ids))
        return [merge_dict(merge) for merge in listed]
