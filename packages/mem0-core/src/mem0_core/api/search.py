"""Flows that read memories: search, context, listing, history."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from mem0_core.api._arguments import (
    DEFAULT_LIMIT,
    ScopeIds,
    extract_message_texts,
    extract_query_text,
    parse_scope_and_filter,
    scope_or_all,
    validate_count,
    validate_id,
    validate_limit,
    validate_threshold,
)
from mem0_core.api._html import show_answer, show_context, show_search
from mem0_core.api._results import answer_dict, hit_dict, memory_dict, message_dict, missing_dict, relation_dict
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.feed import ChangeDict, ChangesDict
from mem0_core.domain.filters import Filter, unexpired
from mem0_core.domain.recipes import Recipe, resolve_recipe
from mem0_core.domain.records import (
    AnswerDict,
    ContextDict,
    HistoryDict,
    Hit,
    MemoryDict,
    Messages,
    MissingDict,
    Scope,
    SearchResult,
)
from mem0_core.domain.timestamps import parse_date, parse_timestamp, utc_today
from mem0_core.domain.trust import TrustClass, at_least, parse_trust
from mem0_core.errors import InputError, NotFoundError
from mem0_core.flow import Flow, do

if TYPE_CHECKING:
    from mem0_core.recall.context import PackedContext, PromptFormat
    from mem0_core.recall.search import SearchRequest

# The pipeline and the reader of questions are imported by the methods that need them: half of the time of an import.

_MAX_SEQ = 2**63 - 1  # the largest integer of SQLite and PostgreSQL


class _RequestOptions(TypedDict):
    threshold: float | None
    rerank: bool | None
    recipe: Recipe | Mapping[str, Any] | str | None
    as_of: int | float | str | datetime | None
    reference_date: int | float | str | date | None
    allow_no_answer: bool


class SearchArguments(_RequestOptions):
    """Arguments of `Memory.search` that `Memory.explain_missing` has too."""

    ids: ScopeIds
    limit: int | None
    top_k: int | None
    filters: Mapping[str, Any] | None
    min_trust: TrustClass | None


class SearchApi(MemoryRuntime):
    """Flows of `Memory` that read memories, and its `pin`."""

    def _search_flow(
        self,
        query: str,
        *,
        explain: bool,
        include_superseded: bool,
        **arguments: Unpack[SearchArguments],
    ) -> Flow[SearchResult]:
        from mem0_core.recall.search import recall

        search = self._parse_search(query, **arguments, include_superseded=include_superseded)
        recalled = yield from recall((yield from self._ports()), search)
        result = SearchResult(
            results=[hit_dict(hit, explain) for hit in recalled.hits],
            relations=[relation_dict(relation, score) for relation, score in recalled.relations],
        )
        if recalled.note is not None:
            result["note"] = recalled.note
        return show_search(result)

    def _answer_flow(
        self,
        question: str,
        *,
        ids: ScopeIds,
        filters: Mapping[str, Any] | None,
        min_trust: TrustClass | None,
        as_of: int | float | str | datetime | None,
        reference_date: int | float | str | date | None,
    ) -> Flow[AnswerDict]:
        from mem0_core.recall.answer import answer

        request = self._build_request(
            question,
            *parse_scope_and_filter(filters, ids),
            min_trust=min_trust,
            limit=10,
            threshold=None,
            as_of=as_of,
            reference_date=reference_date,
            argument="question",
        )
        return show_answer(answer_dict((yield from answer((yield from self._ports()), request))))

    def _explain_missing_flow(
        self,
        query: str,
        memory_id: str,
        **arguments: Unpack[SearchArguments],
    ) -> Flow[MissingDict]:
        from mem0_core.recall.explain import explain_missing

        search = self._parse_search(query, **arguments)
        missing = yield from explain_missing((yield from self._ports()), search, validate_id(memory_id))
        return missing_dict(memory_id, missing)

    def _context_flow(
        self,
        query: Messages | None,
        *,
        ids: ScopeIds,
        max_tokens: int,
        limit: int,
        recent: int | None,
        filters: Mapping[str, Any] | None,
        min_trust: TrustClass | None,
        threshold: float | None,
        recipe: Recipe | Mapping[str, Any] | str | None,
        exclude: Sequence[str],
        introduction: str,
        count_tokens: Callable[[str], int] | None,
        citations: bool,
        as_of: int | float | str | datetime | None,
        reference_date: int | float | str | date | None,
    ) -> Flow[ContextDict]:
        from mem0_core.ingest.conversation import assemble_context

        scope, filter = parse_scope_and_filter(filters, ids)
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        _check_token_budget(max_tokens)
        text, search = extract_query_text(query), None
        if text is not None:
            search = self._build_request(
                text,
                scope,
                filter,
                min_trust=min_trust,
                limit=validate_limit(limit, None, default=20),
                threshold=threshold,
                as_of=time,
                recipe=recipe,
                reference_date=reference_date,
            )
        context = yield from assemble_context(
            (yield from self._ports()),
            search,
            scope,
            prompt_format(max_tokens, count_tokens or (yield from self._token_counter()), introduction, citations),
            today=utc_today() if time is None else time[:10],
            recent=self.config.window if recent is None else validate_count(recent, "recent", minimum=0),
            exclude=[*exclude, *extract_message_texts(query)],
            as_of=time,
            min_trust=parse_trust(min_trust, "min_trust"),
        )
        return show_context(context_dict(context, citations))

    def _token_counter(self) -> Flow[Callable[[str], int]]:
        """Return the chat model's token counter, with its vocabulary loaded; without one, an estimate."""
        count: Callable[[str], int] | None = getattr(self._chat, "count_tokens", None)
        if count is None:
            from mem0_core.llm.tokens import estimate_tokens

            return estimate_tokens
        if not self._tokenizer_loaded:
            yield from do(count, "")
            self._tokenizer_loaded = True
        return count

    def _pin_flow(self, memory_id: str, pinned: bool, *, ids: ScopeIds) -> Flow[None]:
        if not (yield from self._is_owner(memory_id, ids)):
            raise NotFoundError(memory_id)
        if not (yield from do(self._store.pin, validate_id(memory_id), bool(pinned))):
            raise NotFoundError(memory_id)

    def _get_flow(self, memory_id: str, *, ids: ScopeIds) -> Flow[MemoryDict | None]:
        owner = scope_or_all(ids)
        item = yield from do(self._store.get, validate_id(memory_id))
        return None if item is None or not (owner is None or owner.contains(item.scope)) else memory_dict(item)

    def _get_all_flow(
        self,
        *,
        ids: ScopeIds,
        filters: Mapping[str, Any] | None,
        limit: int | None,
        top_k: int | None,
        min_trust: TrustClass | None,
        show_expired: bool,
    ) -> Flow[SearchResult]:
        scope, filter = parse_scope_and_filter(filters, ids)
        maximum = None if limit is None and top_k is None else validate_limit(limit, top_k, default=DEFAULT_LIMIT)
        trust = parse_trust(min_trust, "min_trust")
        filter = at_least(trust, filter)
        filter = filter if show_expired else unexpired(utc_today(), filter)
        items = yield from do(self._store.list_memories, scope, filter=filter, limit=maximum)
        relations = (yield from do(self._store.graph.relations, scope, limit=maximum)) if self._graph_config else []
        if trust is not None and relations:
            untrusted = yield from do(self._store.graph.untrusted_relation_rows, scope, trust)
            relations = [relation for relation in relations if relation.row not in untrusted]
        result = SearchResult(
            results=[memory_dict(item) for item in items], relations=[relation_dict(relation) for relation in relations]
        )
        return show_search(result)

    def _history_flow(self, memory_id: str, *, ids: ScopeIds) -> Flow[list[HistoryDict]]:
        if not (yield from self._is_owner(memory_id, ids)):
            return []
        rows = yield from do(self._store.history, validate_id(memory_id))
        return [HistoryDict(**{name: getattr(row, name) for name in row.__slots__}) for row in rows]  # type: ignore[typeddict-item]

    def _changes_flow(self, *, after: int, limit: int, ids: ScopeIds) -> Flow[ChangesDict]:
        after, limit = validate_count(after, "after", minimum=0, maximum=_MAX_SEQ), validate_count(limit, "limit")
        events = yield from do(self._store.feed.changes, scope_or_all(ids), after=after, limit=limit)
        results = [ChangeDict(**dataclasses.asdict(event)) for event in events]  # type: ignore[typeddict-item]
        return ChangesDict(results=results, cursor=events[-1].seq if events else after)

    def _parse_search(
        self,
        query: str,
        *,
        ids: ScopeIds,
        limit: int | None,
        top_k: int | None,
        filters: Mapping[str, Any] | None,
        min_trust: TrustClass | None,
        include_superseded: bool = False,
        **options: Unpack[_RequestOptions],
    ) -> SearchRequest:
        """Check the arguments of a search."""
        return self._build_request(
            query,
            *parse_scope_and_filter(filters, ids),
            min_trust=min_trust,
            limit=validate_limit(limit, top_k, default=DEFAULT_LIMIT),
            include_superseded=include_superseded,
            **options,
        )

    def _build_request(
        self,
        text: str,
        scope: Scope,
        filter: Filter | None,
        *,
        min_trust: TrustClass | None,
        limit: int,
        threshold: float | None,
        as_of: int | float | str | datetime | None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        reference_date: object = None,
        allow_no_answer: bool = False,
        include_superseded: bool = False,
        argument: str = "query",
    ) -> SearchRequest:
        """Parse the query, which is `argument` of the method, and complete the request from the configuration."""
        from mem0_core.language.parsed_query import parse_query
        from mem0_core.recall.search import SearchRequest

        trust = parse_trust(min_trust, "min_trust")
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        today = utc_today() if time is None else time[:10]
        day = today if reference_date is None else parse_date(reference_date, "reference_date")
        return SearchRequest(
            query=parse_query(text, name=argument, reference=date.fromisoformat(day)),
            scope=scope,
            today=today,
            limit=limit,
            filter=at_least(trust, filter),
            min_trust=trust,
            threshold=validate_threshold(threshold),
            rerank=rerank,
            as_of=time,
            half_life=self.config.half_life,
            include_unprocessed=self.config.read_your_writes,
            recipe=self._recipe if recipe is None else resolve_recipe(recipe),
            allow_no_answer=allow_no_answer,
            include_superseded=include_superseded,
        )


def _check_token_budget(max_tokens: object) -> None:
    if not isinstance(max_tokens, int) or max_tokens < 1:
        raise InputError(f"max_tokens must be a positive whole number, not {max_tokens!r}; pass, for example, 2000")


def _context_line(hit: Hit, number: int | None) -> str:
    from mem0_core.llm.prompts import memory_line

    return memory_line(hit_dict(hit, False), number)


def prompt_format(max_tokens: int, count: Callable[[str], int], introduction: str, citations: bool) -> PromptFormat:
    """Return the format of a context."""
    from mem0_core.recall.context import PromptFormat

    return PromptFormat(max_tokens, count, _context_line, introduction, citations)


def context_dict(context: PackedContext, citations: bool) -> ContextDict:
    """Return a context as `Memory.context` does."""
    result = ContextDict(
        text=context.text,
        summary=context.summary,
        memories=[hit_dict(hit, False) for hit in context.hits],
        relations=[relation_dict(relation, score) for relation, score in context.relations],
        messages=[message_dict(message) for message in context.messages],
        tokens=context.tokens,
    )
    if citations:
        result["citations"] = context.citations
    return result
