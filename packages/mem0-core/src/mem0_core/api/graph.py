"""The graph: listed, walked, asked, drawn, its names merged.

Each verb is a flow; `memory.Memory` makes its sync and async forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from mem0_core.api.arguments import (
    filename_timestamp,
    utc_now,
    validate_id,
    validate_limit,
    validate_threshold,
    write_atomically,
)
from mem0_core.api.runtime import MemoryRuntime
from mem0_core.domain.records import MergeDict, MergeResult, PathDict, QueryResult, RelationDict, Scope
from mem0_core.domain.results import merge_dict, merge_result, path_dict, query_dict, relation_dict
from mem0_core.errors import InputError
from mem0_core.flow import Flow, do
from mem0_core.language.messages import parse_timestamp

__all__ = ["GraphApi"]


class GraphApi(MemoryRuntime):
    """The graph: listed, walked, asked, drawn, its names merged."""

    def _relations(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        include_ended: bool = False,
        limit: int | None = None,
    ) -> Flow[list[RelationDict]]:
        """The relations of a scope that hold, oldest first.

        Args:
            as_of: those that held then (Unix seconds, ISO 8601 or datetime).
            ended: with those that hold no longer; each has ``valid_from``, ``valid_to`` and ``invalidated_at``.
            limit: how many at most; by default all.
        """
        scope = Scope(user_id, agent_id, run_id)
        then = None if as_of is None else parse_timestamp(as_of, "as_of")
        most = None if limit is None else validate_limit(limit, None, default=0)
        held = yield from do(self._store.graph.relations, scope, as_of=then, include_ended=include_ended, limit=most)
        return [relation_dict(relation) for relation in held]

    def _traverse(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        limit: int = 5,
        depth: int | None = None,
    ) -> Flow[list[PathDict]]:
        """Where a question such as "my sister's dog" leads to in the graph, best first, with the path to it.

        It begins at a quoted name, a capitalised one, or the user, and follows the terms in the order they are meant.
        A question without such a chain ("who is Anna") gives the relations around whom it names.

        Args:
            as_of: by what held then (Unix seconds, ISO 8601 or datetime).
            limit: how many ends at most.
            depth: how many relations a path may have; by default as many as there are terms. More allows relations
                between them that no term asks for, at a lower score.

        Returns:
            for each end ``start``, ``end``, ``score`` in [0, 1], and ``steps``: relations as `relations` gives them,
            each with ``forward``, whether the path goes along its arrow.

        Raises:
            QueryError: the question is empty.
        """
        from mem0_core.recall.exploration import traverse

        scope = Scope(user_id, agent_id, run_id)
        then = None if as_of is None else parse_timestamp(as_of, "as_of")
        most = validate_limit(limit, None, default=5)
        ports = yield from self._ports()
        found = yield from traverse(ports, question, scope, as_of=then, limit=most, depth=depth)
        return [path_dict(path) for path in found]

    def _query(
        self,
        text: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
    ) -> Flow[QueryResult]:
        """Ask the graph of a scope by patterns, conditions and nearness; docs/graph.md has the language.

        ``MATCH (a:person)-[r:works_at]->(b) WHERE SIMILAR(b, 'an oil company', 0.5) RETURN a.name, r LIMIT 10``

        Args:
            as_of: what held then, unless the query says ``AS OF`` itself.

        Returns:
            ``columns`` and ``rows``, a mapping for each row: a node as ``name`` and ``type``, a relation as `relations`
            gives it, several in a row as a list; ``note`` where not all could be looked at or returned. For ``EXPLAIN``
            the ``plan``, by lines, and no rows.

        Raises:
            QueryError: the query cannot be read (with the position, and what was expected), makes no sense, or takes
                too long. No query reaches what is not in the scope.
        """
        from mem0_core.recall.exploration import run_query

        scope = Scope(user_id, agent_id, run_id)
        then = None if as_of is None else parse_timestamp(as_of, "as_of")
        return query_dict((yield from run_query((yield from self._ports()), text, scope, as_of=then)))

    def _visualize(
        self,
        path: str | Path | None = None,
        *,
        entities: Sequence[str] | None = None,
        depth: int = 2,
        limit: int = 5_000,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Flow[str]:
        """Draw the graph of a scope as one HTML file that opens without a network, and return its path.

        It has a search box, a filter of relations and a slider of time; a click shows the memories behind. What is in
        it are memories: treat the file as you treat them.

        Args:
            path: the file, which is replaced; by default a new one in ``viz/`` beside the data.
            entities: draw what lies within `depth` steps of these only.
            limit: how many nodes at most, those with most relations first.

        Raises:
            MissingExtra: ``pip install 'mem0-core[viz]'``.
            InputError: an entity is not in the graph, or the file cannot be written.
        """
        from mem0_core.graph.view import page
        from mem0_core.recall.exploration import build_drawing

        scope = Scope(user_id, agent_id, run_id)
        if isinstance(entities, str) or (entities is not None and not entities):
            raise InputError(f"entities must be a list of names, not {entities!r}")
        hops, most = validate_limit(depth, None, default=2), validate_limit(limit, None, default=0)
        ports = yield from self._ports()
        drawn = yield from build_drawing(ports, scope, entities=entities, depth=hops, limit=most)
        file = (
            Path(path)
            if path is not None
            else self.config.database.parent / "viz" / f"graph_view_{filename_timestamp()}.html"
        )
        yield from do(write_atomically, file, (yield from do(page, drawn)))
        return str(file)

    def _merge(
        self,
        what: Literal["all", "entities", "relationships"] = "all",
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        names: Sequence[str] | None = None,
        into: str | None = None,
        threshold: float | None = None,
        dry_run: bool = True,
    ) -> Flow[MergeResult]:
        """Make one of entities, or relationships, that go by several names; a dry run, unless told not to be.

        Relations of the names that go become relations of the one that stays, with their weight and evidence; what is
        said of these names later is said of it. `unmerge` takes it back. What is in different scopes is never merged.

        Args:
            what: of which kind candidates are looked for.
            names: merge just these, of the kind that `what` names, and look for no candidates.
            into: which of `names` stays; by default the one with most relations.
            threshold: the score, in [0, 1], from which two names are one; by default what was measured to be right
                (docs/graph.md).
            dry_run: tell what would be merged, and merge nothing.

        Returns:
            ``merges``, each with ``name`` (that stays), ``merged`` (those that go), ``score`` (of the weakest link),
            ``reasons``, how many ``relations`` go over, and, when it was done, its ``id``; and ``apart``, names that
            are near and were not merged, with the reason.

        Raises:
            InputError: one of `names` is not in the graph, or they are in several scopes.
        """
        from mem0_core.ingest.entity_resolution import merge_duplicates

        scope = Scope(user_id, agent_id, run_id)
        floor = validate_threshold(threshold)
        ports = yield from self._ports()
        done = yield from merge_duplicates(
            ports, scope, what=what, names=names, into=into, threshold=floor, at=utc_now(), dry_run=dry_run
        )
        return merge_result(done, dry_run)

    def _unmerge(self, merge_id: str) -> Flow[MergeDict]:
        """Take a merge back: the graph is as it was before it, but for what was said, or deleted, since.

        Raises:
            NotFoundError: no merge that stands has that id.
            InputError: a later merge builds on it, and has to be taken back first.
        """
        from mem0_core.ingest.entity_resolution import undo_merge

        return merge_dict((yield from undo_merge((yield from self._ports()), validate_id(merge_id), at=utc_now())))

    def _merges(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Flow[list[MergeDict]]:
        """What was merged in a scope, oldest first, and what of it was taken back."""
        listed = yield from do(self._store.merges.list_merges, Scope(user_id, agent_id, run_id))
        return [merge_dict(merge) for merge in listed]
