"""What is remembered: searched, listed, put into a prompt.

Each verb is a flow; `memory.Memory` makes its sync and async forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, cast

from mem0_core.api.arguments import (
    extract_query_text,
    parse_scope_and_filter,
    utc_today,
    validate_id,
    validate_limit,
    validate_threshold,
)
from mem0_core.api.runtime import MemoryRuntime
from mem0_core.domain.filters import Filter, unexpired
from mem0_core.domain.recipes import Recipe, resolve_recipe
from mem0_core.domain.records import (
    ContextDict,
    HistoryDict,
    MemoryDict,
    Messages,
    MissingDict,
    Scope,
    SearchResult,
)
from mem0_core.domain.results import hit_dict, memory_dict, message_dict, missing_dict, relation_dict
from mem0_core.errors import InputError, NotFoundError
from mem0_core.flow import Flow, do
from mem0_core.ingest.conversation import assemble_context
from mem0_core.language.messages import parse_date, parse_timestamp
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION, memory_line
from mem0_core.llm.tokens import estimate_tokens
from mem0_core.recall.context import PromptFormat
from mem0_core.recall.explain import explain_missing
from mem0_core.recall.search import SearchQuery, recall

__all__ = ["SearchApi"]


class SearchApi(MemoryRuntime):
    """What is remembered: searched, listed, put into a prompt."""

    def _search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        explain: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
    ) -> Flow[SearchResult]:
        """The memories of a scope that answer `query` best, best first; beside them, the relations that bear on it.

        Args:
            user_id, agent_id, run_id: whose memories; at least one, here or in `filters`. An id left out does not
                restrict: ``user_id="u"`` sees all runs and agents of u.
            limit, top_k: how many at most (10); two names for the same.
            filters: mem0's filters, see `mem0_core.domain.filters`.
            threshold: leave out what scores lower. Scores lie in [0, 1] and mean the same for every query.
            rerank: False skips the configured reranker, True insists on one.
            recipe: how memories are found and weighed, see `mem0_core.domain.recipes`; by default the configuration's.
            explain: give each result what its score was made of: every signal with its weight. `explain_missing` tells
                where a memory was lost that is not among the results.
            as_of: answer from what held then (Unix seconds, ISO 8601 or datetime): memories as they were, and the
                relations of that time. What was deleted by `delete` stays deleted.
            reference_date: the day from which "yesterday" or "last summer" in the query is counted; by default today,
                or the day of `as_of`.
            allow_no_answer: give nothing, and a ``note``, where the best hit scores below the recipe's gate.

        Raises:
            QueryError: the query is empty, or a filter cannot be read.
            ScopeError: no id, or one that cannot be an id.
            ConfigError: there is no such recipe.
        """
        scope, filter = parse_scope_and_filter(filters, user_id, agent_id, run_id)
        asked = self._build_query(
            query,
            scope,
            limit=validate_limit(limit, top_k, default=10),
            filter=filter,
            threshold=threshold,
            as_of=None if as_of is None else parse_timestamp(as_of, "as_of"),
            rerank=rerank,
            recipe=recipe,
            reference=reference_date,
            allow_no_answer=allow_no_answer,
        )
        recalled = yield from recall((yield from self._ports()), asked)
        found = SearchResult(
            results=[hit_dict(hit, explain) for hit in recalled.hits],
            relations=[relation_dict(relation, score) for relation, score in recalled.relations],
        )
        if recalled.note is not None:
            found["note"] = recalled.note
        return cast(SearchResult, self._to_version_format(found))

    def _explain_missing(
        self,
        query: str,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
    ) -> Flow[MissingDict]:
        """Where a memory was lost that `search` with the same arguments does not find.

        Returns:
            ``reason``: found, unknown, deleted, other_scope, not_said_yet (as of that day), expired, filtered,
            not_in_pool, below_limit, below_threshold, below_gate or lost_at_rerank; ``detail``, the same in a
            sentence; ``rank`` among what was scored, and ``ranks`` in each source; ``score`` and ``signals``.
        """
        scope, filter = parse_scope_and_filter(filters, user_id, agent_id, run_id)
        asked = self._build_query(
            query,
            scope,
            limit=validate_limit(limit, top_k, default=10),
            filter=filter,
            threshold=threshold,
            as_of=None if as_of is None else parse_timestamp(as_of, "as_of"),
            rerank=rerank,
            recipe=recipe,
            reference=reference_date,
            allow_no_answer=allow_no_answer,
        )
        missing = yield from explain_missing((yield from self._ports()), asked, validate_id(memory_id))
        return missing_dict(memory_id, missing)

    def _context(
        self,
        query: Messages | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        max_tokens: int = 2000,
        limit: int = 20,
        recent: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        exclude: Sequence[str] = (),
        introduction: str = MEMORIES_INTRODUCTION,
        count_tokens: Callable[[str], int] | None = None,
        citations: bool = False,
        as_of: int | float | str | datetime | None = None,
    ) -> Flow[ContextDict]:
        """What an agent should see now, within a budget: the summary, memories, relations, the last messages.

        Args:
            query: what is asked: a text, or the messages so far, of which the user's last is taken. None recalls
                nothing but what is pinned.
            max_tokens: the budget, counted by `count_tokens`, else by the chat model's where it has one, else estimated
                high.
            limit: how many memories at most.
            recent: how many messages at most, by default the `window` of the configuration; 0 where the caller has
                the conversation anyway.
            filters, threshold: as in `search`, for memories.
            exclude: texts that the agent sees anyway; memories that say just the same are left out.
            introduction: what the agent's model is told about the block.
            citations: number memories and relations, and ask the model to cite them as in [1]; `cited` finds in its
                answer the memories it names.
            as_of: what it would have seen then, but for the messages.

        Returns:
            ``text`` (all but the messages, as a block for the system prompt, marked as data), and its parts:
            ``summary``, ``memories``, ``relations``, ``messages``; ``tokens`` they take; with `citations`, as
            ``citations`` the ids of memories by their numbers in the text. Memories are best first, what is pinned
            before them; of near-duplicates there is the newest only, in the place of the best.
        """
        scope, filter = parse_scope_and_filter(filters, user_id, agent_id, run_id)
        then = None if as_of is None else parse_timestamp(as_of, "as_of")
        if not isinstance(max_tokens, int) or max_tokens < 1:
            raise InputError(f"max_tokens must be a positive whole number, not {max_tokens!r}")
        asked = extract_query_text(query)
        wanted = None
        if asked is not None:
            most = validate_limit(limit, None, default=20)
            wanted = self._build_query(asked, scope, limit=most, filter=filter, threshold=threshold, as_of=then)
        form = PromptFormat(
            max_tokens=max_tokens,
            count=count_tokens or (yield from self._token_counter()),
            line=lambda hit, number: memory_line(hit_dict(hit, False), number),
            introduction=introduction,
            citations=citations,
        )
        packed = yield from assemble_context(
            (yield from self._ports()),
            wanted,
            scope,
            form,
            today=utc_today() if then is None else then[:10],
            recent=self.config.window if recent is None else recent,
            exclude=exclude,
            as_of=then,
        )
        seen = ContextDict(
            text=packed.text,
            summary=packed.summary,
            memories=[hit_dict(hit, False) for hit in packed.hits],
            relations=[relation_dict(relation, score) for relation, score in packed.relations],
            messages=[message_dict(message) for message in packed.messages],
            tokens=packed.tokens,
        )
        if citations:
            seen["citations"] = packed.citations
        return seen

    def _token_counter(self) -> Flow[Callable[[str], int]]:
        """What counts tokens where the caller does not say; a model that reads its vocabulary first has done so."""
        count: Callable[[str], int] | None = getattr(self._chat, "count_tokens", None)
        if count is None:
            return estimate_tokens
        if not self._tokenizer_loaded:
            yield from do(count, "")
            self._tokenizer_loaded = True
        return count

    def _pin(self, memory_id: str, pinned: bool = True) -> Flow[None]:
        """Make a memory part of every `context` of its scope, whatever is asked, or (False) no longer.

        Raises:
            NotFoundError: no memory has that id.
        """
        if not (yield from do(self._store.pin, validate_id(memory_id), bool(pinned))):
            raise NotFoundError(memory_id)

    def _get(self, memory_id: str) -> Flow[MemoryDict | None]:
        """The memory with this id, or None."""
        item = yield from do(self._store.get, validate_id(memory_id))
        return None if item is None else memory_dict(item)

    def _get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        top_k: int | None = None,
        show_expired: bool = False,
    ) -> Flow[SearchResult]:
        """All memories of a scope, oldest first; `limit` (or `top_k`) cuts the list, by default nothing does."""
        scope, filter = parse_scope_and_filter(filters, user_id, agent_id, run_id)
        most = None if limit is None and top_k is None else validate_limit(limit, top_k, default=0)
        filter = filter if show_expired else unexpired(utc_today(), filter)
        items = yield from do(self._store.list_memories, scope, filter=filter, limit=most)
        held = (yield from do(self._store.graph.relations, scope, limit=most)) if self._graph_config else []
        found = SearchResult(
            results=[memory_dict(item) for item in items], relations=[relation_dict(relation) for relation in held]
        )
        return cast(SearchResult, self._to_version_format(found))

    def _history(self, memory_id: str) -> Flow[list[HistoryDict]]:
        """Every change of a memory, oldest first; of a deleted one too."""
        rows = yield from do(self._store.history, validate_id(memory_id))
        return [HistoryDict(**{name: getattr(row, name) for name in row.__slots__}) for row in rows]  # type: ignore[typeddict-item]

    def _build_query(
        self,
        text: str,
        scope: Scope,
        *,
        limit: int,
        filter: Filter | None,
        threshold: float | None,
        as_of: str | None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        reference: object = None,
        allow_no_answer: bool = False,
    ) -> SearchQuery:
        """A query as the configuration has it, with what is the call's own."""
        day = None if reference is None else date.fromisoformat(parse_date(reference, "reference_date"))
        return SearchQuery(
            text=text,
            scope=scope,
            today=utc_today() if as_of is None else as_of[:10],
            limit=limit,
            filter=filter,
            threshold=validate_threshold(threshold),
            rerank=rerank,
            as_of=as_of,
            half_life=self.config.half_life,
            include_unprocessed=self.config.read_your_writes,
            recipe=self._recipe if recipe is None else resolve_recipe(recipe),
            reference=day,
            allow_no_answer=allow_no_answer,
        )
