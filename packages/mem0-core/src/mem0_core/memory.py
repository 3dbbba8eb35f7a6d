"""`Memory`, the front door: mem0's verbs and shapes over the pipelines.

Each verb is written once, as a flow; its sync, async (``a...``) and `AsyncMemory` forms are made from it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar, cast

from mem0_core.background import Background
from mem0_core.config import (
    MemoryConfig,
    check_provider,
    load_config,
    open_log,
)
from mem0_core.errors import ConfigError, InputError, NotFoundError, ScopeError, StoreError
from mem0_core.filters import Filter, parse_filters, unexpired
from mem0_core.flow import Flow, StepRecord, arun, do, observe, run
from mem0_core.pipelines import upkeep
from mem0_core.pipelines.bulk import Source, import_messages
from mem0_core.pipelines.by_query import Match, delete_matches, matches, update_matches
from mem0_core.pipelines.converse import brief, summarise
from mem0_core.pipelines.missing import explain_missing
from mem0_core.pipelines.pack import Form
from mem0_core.pipelines.recall import Query, recall
from mem0_core.pipelines.remember import remember
from mem0_core.pipelines.request import PROCEDURAL, Prompts, Request, heard, options_of, request_of
from mem0_core.policy import REFUSED, Limits, Policy, Rates, check_sizes, governed, judged
from mem0_core.ports import (
    ChatModel,
    Embedder,
    Graph,
    GraphIndex,
    Job,
    Lease,
    MemoryStore,
    Ports,
    Reranker,
    VectorIndex,
)
from mem0_core.prompts import MEMORIES_INTRODUCTION, memory_line
from mem0_core.recipes import Recipe, recipe_of
from mem0_core.records import (
    AddManyResult,
    AddResult,
    Axis,
    ByQueryResult,
    ContextDict,
    HistoryDict,
    JobDict,
    MemoryDict,
    MergeDict,
    MergeResult,
    Message,
    Messages,
    MissingDict,
    PathDict,
    QueryResult,
    RelationDict,
    Scope,
    SearchResult,
    is_valid_text,
)
from mem0_core.shapes import (
    UsageCounter,
    added_dict,
    by_query_dict,
    done_dict,
    found_dict,
    job_dict,
    memory_dict,
    merge_dict,
    merge_result,
    message_dict,
    missing_dict,
    path_dict,
    query_dict,
    relation_dict,
    relations_dict,
)
from mem0_core.text import check_metadata, parse_day, parse_messages, parse_time
from mem0_core.tokens import estimated_tokens
from mem0_core.wiring import (
    Foreign,
    component,
    embedded_graph,
    graph_choice,
    graph_index,
    graph_options,
    open_store,
    rerank_model,
    vector_index,
    worker_settings,
)

if TYPE_CHECKING:
    from mem0_core.graph.adjacency import AdjacencyIndex

__all__ = ["AsyncMemory", "Memory"]

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _sync(verb: Callable[Concatenate[Memory, P], Flow[T]]) -> Callable[Concatenate[Memory, P], T]:
    """The verb as a method that returns when it is done."""

    def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = run(self._watch(verb(self, *args, **kwargs)))
        _warn_of_bare_list(result, verb)
        return result

    return _named(call, verb, "")


def _async(verb: Callable[Concatenate[Memory, P], Flow[T]]) -> Callable[Concatenate[Memory, P], Coroutine[Any, Any, T]]:
    """The verb as a coroutine method."""

    async def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = await arun(self._watch(verb(self, *args, **kwargs)))
        _warn_of_bare_list(result, verb)
        return result

    return _named(call, verb, "a")


def _awaited(
    verb: Callable[Concatenate[Memory, P], Flow[T]],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """The verb as a coroutine method of `AsyncMemory`."""

    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = await arun(self.memory._watch(verb(self.memory, *args, **kwargs)))
        _warn_of_bare_list(result, verb)
        return result

    return _named(call, verb, "")


def _named(call: F, verb: Callable[..., Any], prefix: str) -> F:
    """Give a made method the verb's signature and documentation, under its public name."""
    functools.update_wrapper(call, verb)
    call.__name__ = prefix + verb.__name__.removeprefix("_")
    call.__qualname__ = f"Memory.{call.__name__}"
    returned = str(verb.__annotations__["return"]).removeprefix("Flow[").removesuffix("]")
    call.__annotations__ = {**verb.__annotations__, "return": returned}
    call.__signature__ = inspect.signature(verb).replace(return_annotation=returned)  # type: ignore[attr-defined]
    return call


def _warn_of_bare_list(result: object, verb: Callable[..., Any]) -> None:
    """Tell whoever called a verb that ``version: v1.0`` makes bare lists of what v1.1 returns under "results"."""
    if isinstance(result, list) and verb.__name__ in ("_add", "_search", "_get_all"):
        message = f'version "v1.0" makes {verb.__name__[1:]} return a bare list; "v1.1" has it under "results"'
        warnings.warn(message, DeprecationWarning, stacklevel=3)


class Memory:
    """Long-term memory for agents, kept on this machine unless told otherwise.

    Args:
        config: a `MemoryConfig` or a mapping of its keys (mem0's names).
        llm, embedder, reranker: instances, ``"provider:model"`` or ``{"provider", "config"}``; they take
            precedence over `config`. Instances of a framework's classes serve where its adapter is installed
            (``mem0-langchain``, ``mem0-llamaindex``). With no `llm`, messages are kept verbatim.
        store: a `MemoryStore` in place of the one that `config` names.
        index: a `VectorIndex` in place of the embedded FAISS projection, which must follow the same store; or a
            vector store of a framework, as above.
        graph: where relations are searched, as a provider's name (``"sqlite"``, ``"neo4j"``, ``"ladybug"``), a
            ``graph_store`` mapping, or a `GraphIndex` that follows the same store; False for no graph memory.
        policy: asked for every message and every memory, with its scope, before it is kept: returns the text as it may
            be kept (redacted, or as it is), or None for not at all.
        on_step: told of every call a verb makes to a model or store (name, seconds, result or error), for
            logging and tracing.

    A memory may be shared between threads and tasks. Close it, or use it as a context manager.

    Raises:
        ConfigError: a key is unknown or wrong.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | None = None,
        *,
        llm: ChatModel | Mapping[str, Any] | str | Foreign | None = None,
        embedder: Embedder | Mapping[str, Any] | str | Foreign | None = None,
        reranker: Reranker | Mapping[str, Any] | str | Foreign | None = None,
        store: MemoryStore | None = None,
        index: VectorIndex | Foreign | None = None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None = None,
        policy: Policy | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
    ) -> None:
        self.config = load_config(config)
        self._on_step = on_step
        self._lock = Lock()
        self._closed = False
        self._chat: ChatModel | None = component("llm", "complete", llm, self.config.llm)
        self._has_counted = False  # whether the model has read what it counts tokens by
        self._embedder: Embedder = component("embedder", "embed", embedder, self.config.embedder, "onnx")
        self._reranker: Reranker | None = rerank_model(self._chat, reranker, self.config.reranker)
        if index is None:
            check_provider("vector_store", self.config.vector_store.provider)  # a wrong name is told now
        self._graph_config, self._graph_index = graph_choice(graph, self.config, self._chat)
        self._graph_chat: ChatModel | None = self._chat
        if self._graph_config is not None and self._graph_config.llm is not None:
            self._graph_chat = component("llm", "complete", self._graph_config.llm)
        self._end_log = open_log(self.config)
        self._store = store if store is not None else open_store(self.config)
        self._index: VectorIndex | None = self._wired(index)
        self._graph: Graph | None = None
        self._adjacency: AdjacencyIndex | None = None
        self._policy = policy
        self._recipe = recipe_of(self.config.recipe)
        self._limits = Limits(**self.config.limits.model_dump())
        self._rates = Rates(self._limits)
        self._background = Background(self._store.jobs, self._do_jobs, worker_settings(self.config.background))

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | Path) -> Self:
        """A memory from mem0's configuration dict, or from a YAML or JSON file of it."""
        return cls(load_config(config))

    # --- verbs, as flows -----------------------------------------------------------------------------------------

    def _add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        ttl: timedelta | float | None = None,
        dry_run: bool = False,
        background: bool = False,
    ) -> Flow[AddResult]:
        """Learn from a conversation: what is new is added, what changed is updated, what no longer holds is deleted.

        Args:
            messages: a text (one user message), a message, or a list of ``{"role", "content"}``, each with
                ``name`` (who spoke), ``timestamp`` and ``metadata`` where there are any. What is kept verbatim keeps
                them; facts are of the time of the last message.
            user_id, agent_id, run_id: whose memory it is; at least one.
            metadata: JSON kept with every memory this call adds or updates.
            infer: False keeps each user and assistant message as it was said.
            memory_type: ``"procedural_memory"`` for one summary of what an agent did, step by step.
            prompt: instructions for extraction, for this call only.
            timestamp: when the conversation took place; prompts call that day today. Unix seconds, ISO 8601
                or datetime; by default the time of the last message that has one, else now.
            expiration_date: last day on which the memories are recalled.
            ttl: how long from now they are recalled at least, as a timedelta or in seconds; it ends with a day.
            dry_run: tell what would change, and change nothing.
            background: keep the messages, durably, and return; a worker learns from them. Searches see them at once.
                The result holds nothing but ``job_id``: see `pending`, `flush` and `retry`.

        Returns:
            ``results`` (each with ``event`` ADD, UPDATE, DELETE or NONE), ``relations`` (those that began to hold
            and those that ended, as ``source -- relationship -- destination``), ``skipped`` (what could not be used,
            and why), ``usage``, and ``pending`` where a projection could not be told yet.

        Raises:
            ScopeError: no id, or one that cannot be an id.
            InputError: a message or metadata that cannot be stored.
            ModelError: a model call failed. ReplyError: with ``on_bad_reply="raise"``, it made no sense.
            StoreError: the commit failed. In every case nothing is written.
        """
        started, usage = time.perf_counter(), UsageCounter()
        scope = Scope(user_id, agent_id, run_id)
        if memory_type not in (None, PROCEDURAL):
            raise InputError(f"unknown memory_type {memory_type!r}; the one there is: {PROCEDURAL!r}")
        parsed = parse_messages(messages)
        check_sizes(self._limits, parsed.messages)
        allowed, refused = governed(self._policy, parsed.messages, scope)
        self._rates.count(scope)
        request = self._request(
            scope,
            at=_at(timestamp, parsed.messages),
            prompt=prompt,
            messages=allowed,
            metadata=check_metadata(metadata, "the add"),
            infer=infer,
            memory_type=memory_type,
            expiration_date=_last_day(expiration_date, ttl),
            dry_run=dry_run,
        )
        if background:
            job = yield from self._put_off(request)
            put = AddResult(
                results=[],
                relations=relations_dict(()),
                skipped=[*parsed.skipped, *refused],
                usage=usage.total(time.perf_counter() - started),
                job_id=job,
            )
            return cast(AddResult, self._versioned(put))
        ports = yield from self._ports()
        done = yield from observe(remember(ports, request), usage.count)
        if done.put_off:
            yield from do(self._background.start)
        result = AddResult(
            results=[added_dict(change) for change in done.changes],
            relations=relations_dict(done.relations),
            skipped=[*parsed.skipped, *refused, *done.skipped],
            usage=usage.total(time.perf_counter() - started),
        )
        if done.pending:
            result["pending"] = list(done.pending)
        return cast(AddResult, self._versioned(result))

    def _add_many(
        self,
        messages: Iterable[str | Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = False,
        chunk: int = 256,
        key: str | None = None,
        on_progress: Callable[[int, int | None], None] | None = None,
    ) -> Flow[AddManyResult]:
        """Import many messages, each as a memory of its own, kept as it was said: some hundred per transaction.

        What it leaves is what as many calls of `add` would leave (with ``infer=False``, where there is a model). It
        asks no model, and counts as one add.

        Args:
            messages: texts, or messages as `add` takes them. A list is read as a whole first, so that one that cannot
                be stored stops the import before it begins; an iterator is read a chunk at a time.
            user_id, agent_id, run_id: whose memories they are; at least one.
            metadata: JSON kept with every one of them, beside its own.
            infer: put each message off instead, as ``add(background=True)`` does, for the model to learn from.
            chunk: how many messages are embedded and committed at once. A chunk ends sooner where a message takes back
                what another one of it says, as far as rules read relations in them.
            key: a name for this import into this scope. What is done is kept with it: called again with the same
                messages and key, after whatever cut it short, it goes on from there, and does nothing if all is done.
                `delete_all` and `reset` forget it.
            on_progress: called after each chunk with how many messages are done, and how many there are (None for an
                iterator).

        Returns:
            ``added``, ``known`` (said before, by the same speaker in the same words), ``jobs`` (put off), ``skipped``
            with reasons, ``resumed`` (done by an earlier call with this key), and ``pending`` as for `add`.

        Raises:
            ConfigError: `infer` without a model.
            InputError: a message cannot be stored, and which; or the key is of a longer import.
            StoreError: a commit failed. What was committed before is kept, whatever is raised.
        """
        scope = Scope(user_id, agent_id, run_id)
        if infer and self._chat is None:
            raise ConfigError("llm: infer=True learns from messages with a chat model, and there is none")
        if key is not None and not (isinstance(key, str) and key and is_valid_text(key)):
            raise InputError(f"key must be a non-empty string, not {key!r}")
        most = _limit(chunk, None, default=0)
        by_rules = self._chat is None and self._graph_chat is None  # else nobody reads relations in what is not learnt
        request = self._request(
            scope, at=_now(), metadata=check_metadata(metadata, "the import"), infer=infer or by_rules
        )
        source = Source(
            messages,
            request,
            by_rules=by_rules and self._graph_config is not None,
            message_chars=self._limits.message_chars,
        )
        after = 0 if key is None else (yield from do(self._store.marked, scope, key))
        yield from do(source.open, after)
        self._rates.count(scope)
        done = yield from import_messages(
            (yield from self._ports()),
            request,
            source,
            after=after,
            chunk=most,
            key=key,
            put_off=infer,
            wake=self._background.start,
            on_progress=on_progress,
        )
        result = AddManyResult(added=done.added, known=done.known, skipped=done.skipped, jobs=done.jobs, resumed=after)
        if done.pending:
            result["pending"] = list(done.pending)
        return result

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
            filters: mem0's filters, see `mem0_core.filters`.
            threshold: leave out what scores lower. Scores lie in [0, 1] and mean the same for every query.
            rerank: False skips the configured reranker, True insists on one.
            recipe: how memories are found and weighed, see `mem0_core.recipes`; by default the configuration's.
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
        scope, filter = _address(filters, user_id, agent_id, run_id)
        asked = self._asked(
            query,
            scope,
            limit=_limit(limit, top_k, default=10),
            filter=filter,
            threshold=threshold,
            as_of=None if as_of is None else parse_time(as_of, "as_of"),
            rerank=rerank,
            recipe=recipe,
            reference=reference_date,
            allow_no_answer=allow_no_answer,
        )
        recalled = yield from recall((yield from self._ports()), asked)
        found = SearchResult(
            results=[found_dict(hit, explain) for hit in recalled.hits],
            relations=[relation_dict(relation, score) for relation, score in recalled.relations],
        )
        if recalled.note is not None:
            found["note"] = recalled.note
        return cast(SearchResult, self._versioned(found))

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
        scope, filter = _address(filters, user_id, agent_id, run_id)
        asked = self._asked(
            query,
            scope,
            limit=_limit(limit, top_k, default=10),
            filter=filter,
            threshold=threshold,
            as_of=None if as_of is None else parse_time(as_of, "as_of"),
            rerank=rerank,
            recipe=recipe,
            reference=reference_date,
            allow_no_answer=allow_no_answer,
        )
        missing = yield from explain_missing((yield from self._ports()), asked, _text_id(memory_id))
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
        scope, filter = _address(filters, user_id, agent_id, run_id)
        then = None if as_of is None else parse_time(as_of, "as_of")
        if not isinstance(max_tokens, int) or max_tokens < 1:
            raise InputError(f"max_tokens must be a positive whole number, not {max_tokens!r}")
        asked = _question(query)
        wanted = None
        if asked is not None:
            most = _limit(limit, None, default=20)
            wanted = self._asked(asked, scope, limit=most, filter=filter, threshold=threshold, as_of=then)
        form = Form(
            max_tokens=max_tokens,
            count=count_tokens or (yield from self._counter()),
            line=lambda hit, number: memory_line(found_dict(hit, False), number),
            introduction=introduction,
            citations=citations,
        )
        packed = yield from brief(
            (yield from self._ports()),
            wanted,
            scope,
            form,
            today=_today() if then is None else then[:10],
            recent=self.config.window if recent is None else recent,
            exclude=exclude,
            as_of=then,
        )
        seen = ContextDict(
            text=packed.text,
            summary=packed.summary,
            memories=[found_dict(hit, False) for hit in packed.hits],
            relations=[relation_dict(relation, score) for relation, score in packed.relations],
            messages=[message_dict(message) for message in packed.messages],
            tokens=packed.tokens,
        )
        if citations:
            seen["citations"] = packed.citations
        return seen

    def _counter(self) -> Flow[Callable[[str], int]]:
        """What counts tokens where the caller does not say; a model that reads its vocabulary first has done so."""
        count: Callable[[str], int] | None = getattr(self._chat, "count_tokens", None)
        if count is None:
            return estimated_tokens
        if not self._has_counted:
            yield from do(count, "")
            self._has_counted = True
        return count

    def _pin(self, memory_id: str, pinned: bool = True) -> Flow[None]:
        """Make a memory part of every `context` of its scope, whatever is asked, or (False) no longer.

        Raises:
            NotFoundError: no memory has that id.
        """
        if not (yield from do(self._store.pin, _text_id(memory_id), bool(pinned))):
            raise NotFoundError(memory_id)

    def _get(self, memory_id: str) -> Flow[MemoryDict | None]:
        """The memory with this id, or None."""
        item = yield from do(self._store.get, _text_id(memory_id))
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
        scope, filter = _address(filters, user_id, agent_id, run_id)
        most = None if limit is None and top_k is None else _limit(limit, top_k, default=0)
        filter = filter if show_expired else unexpired(_today(), filter)
        items = yield from do(self._store.find, scope, filter=filter, limit=most)
        held = (yield from do(self._store.graph.relations, scope, limit=most)) if self._graph_config else []
        found = SearchResult(
            results=[memory_dict(item) for item in items], relations=[relation_dict(relation) for relation in held]
        )
        return cast(SearchResult, self._versioned(found))

    def _put_off(self, request: Request) -> Flow[str]:
        """Keep a request for later, and see that somebody is there to do it."""
        if request.dry_run:
            raise InputError("dry_run and background: nothing would be done, later")
        job = yield from do(
            self._store.jobs.put,
            request.scope,
            "remember",
            at=request.at,
            messages=heard(request.messages),
            options=options_of(request),
        )
        yield from do(self._background.start)
        return str(job)

    def _pending(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Flow[list[JobDict]]:
        """What was put off and is not done yet, oldest first; of everybody, where no id is given.

        A job that failed too often is ``parked``, with its ``error``: it waits for `retry`.
        """
        given = any(value is not None for value in (user_id, agent_id, run_id))
        scope = Scope(user_id, agent_id, run_id) if given else None
        return [job_dict(job) for job in (yield from do(self._store.jobs.listed, scope))]

    def _flush(self, timeout: float | None = None) -> Flow[bool]:
        """Wait until nothing is left to do but what is parked; False where that took longer than `timeout` seconds."""
        if (yield from do(self._background.left)):
            yield from do(self._background.start)
        return (yield from do(self._background.flush, timeout))

    def _retry(self, job_id: str) -> Flow[None]:
        """Let a parked job be tried again.

        Raises:
            NotFoundError: no parked job has that id.
        """
        if not (isinstance(job_id, str) and job_id.isdecimal()):
            raise InputError(f"a job's id is a string of digits, not {job_id!r}")
        if not (yield from do(self._store.jobs.retry, int(job_id))):
            raise NotFoundError(job_id)
        yield from do(self._background.start)

    def _do_jobs(self, jobs: list[Job], lease: Lease) -> Flow[None]:
        """What the workers do: remember turns that were put off, or sum a conversation up."""
        ports = yield from self._ports()
        if jobs[0].kind == "summary":
            if self._chat is None:
                yield from do(self._store.jobs.done, lease)
                return
            yield from summarise(ports, self._chat, jobs[0], lease, max_words=self.config.summary_words)
        elif any(job.messages for job in jobs):
            done = yield from remember(ports, self._taken_up(jobs), lease)
            for skipped in done.skipped:  # nobody waits for the result
                _log.warning("not remembered: %s (%r)", skipped["reason"], skipped["item"])
        else:  # they were deleted meanwhile
            yield from do(self._store.jobs.done, lease)

    def _taken_up(self, jobs: Sequence[Job]) -> Request:
        """The request that jobs were put off for, as one."""
        return request_of(jobs, self._request(jobs[0].scope, at=jobs[-1].at))

    def _request(
        self,
        scope: Scope,
        *,
        at: str,
        prompt: str | None = None,
        messages: tuple[Message, ...] = (),
        **own: Any,
    ) -> Request:
        """A request as the configuration has it, with what is the call's own."""
        return Request(
            scope=scope,
            messages=messages,
            at=at,
            today=_today(),
            prompts=Prompts(
                facts=self.config.custom_fact_extraction_prompt,
                update=self.config.custom_update_memory_prompt,
                call=prompt,
            ),
            neighbours=self.config.neighbours,
            vision=self.config.enable_vision,
            window=self.config.window,
            summary_every=self.config.summary_every,
            bad_reply=self.config.on_bad_reply,
            extraction=self.config.extraction,
            operations=self.config.operations,
            policy=self._policy,
            **own,
        )

    def _asked(
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
    ) -> Query:
        """A query as the configuration has it, with what is the call's own."""
        day = None if reference is None else date.fromisoformat(parse_day(reference, "reference_date"))
        return Query(
            text=text,
            scope=scope,
            today=_today() if as_of is None else as_of[:10],
            limit=limit,
            filter=filter,
            threshold=_threshold(threshold),
            rerank=rerank,
            as_of=as_of,
            half_life=self.config.half_life,
            unlearnt=self.config.read_your_writes,
            recipe=self._recipe if recipe is None else recipe_of(recipe),
            reference=day,
            allow_no_answer=allow_no_answer,
        )

    def _relations(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        ended: bool = False,
        limit: int | None = None,
    ) -> Flow[list[RelationDict]]:
        """The relations of a scope that hold, oldest first.

        Args:
            as_of: those that held then (Unix seconds, ISO 8601 or datetime).
            ended: with those that hold no longer; each has ``valid_from``, ``valid_to`` and ``invalidated_at``.
            limit: how many at most; by default all.
        """
        scope = Scope(user_id, agent_id, run_id)
        then = None if as_of is None else parse_time(as_of, "as_of")
        most = None if limit is None else _limit(limit, None, default=0)
        held = yield from do(self._store.graph.relations, scope, as_of=then, ended=ended, limit=most)
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
        from mem0_core.pipelines.explore import traverse

        scope = Scope(user_id, agent_id, run_id)
        then = None if as_of is None else parse_time(as_of, "as_of")
        most = _limit(limit, None, default=5)
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
        from mem0_core.pipelines.explore import query

        scope = Scope(user_id, agent_id, run_id)
        then = None if as_of is None else parse_time(as_of, "as_of")
        return query_dict((yield from query((yield from self._ports()), text, scope, as_of=then)))

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
        from mem0_core.pipelines.explore import drawing

        scope = Scope(user_id, agent_id, run_id)
        if isinstance(entities, str) or (entities is not None and not entities):
            raise InputError(f"entities must be a list of names, not {entities!r}")
        hops, most = _limit(depth, None, default=2), _limit(limit, None, default=0)
        ports = yield from self._ports()
        drawn = yield from drawing(ports, scope, entities=entities, depth=hops, limit=most)
        file = Path(path) if path is not None else self.config.database.parent / "viz" / f"graph_view_{_stamp()}.html"
        yield from do(_write_whole, file, (yield from do(page, drawn)))
        return str(file)

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
            item = yield from do(self._store.get, _text_id(memory_id))
            if item is not None:
                data = judged(self._policy, data, item.scope) or _refused(data)
        ports = yield from self._ports()
        updated = yield from upkeep.update(ports, _text_id(memory_id), data, metadata=more, at=_now())
        return done_dict("Memory updated successfully!", updated.pending)

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
        """`update` for the memories that a query finds, or filters, or both.

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
        ports, found = yield from self._meant(query, user_id, agent_id, run_id, filters, threshold, limit)
        texts = [data if isinstance(data, str) else data(memory_dict(match.item)) for match in found]
        if self._policy is not None:
            texts = [
                text and (judged(self._policy, text, match.item.scope) or _refused(text))
                for match, text in zip(found, texts, strict=True)
            ]
        done = yield from update_matches(ports, found, texts, metadata=more, at=_now(), dry_run=dry_run)
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
        """`delete` for the memories that a query finds, or filters, or both: all of them in one transaction, or none.

        Args:
            query, filters, threshold, limit, dry_run: as in `update_by_query`.
            purge: as in `delete`.

        Raises:
            InputError: more than `limit` memories match; nothing is deleted.
        """
        ports, found = yield from self._meant(query, user_id, agent_id, run_id, filters, threshold, limit)
        done = yield from delete_matches(ports, found, at=_now(), purge=purge, dry_run=dry_run)
        return by_query_dict(done, dry_run)

    def _meant(
        self,
        query: str | None,
        user_id: str | None,
        agent_id: str | None,
        run_id: str | None,
        filters: Mapping[str, Any] | None,
        threshold: float,
        limit: int,
    ) -> Flow[tuple[Ports, list[Match]]]:
        scope, filter = _address(filters, user_id, agent_id, run_id)
        floor, most = _threshold(threshold) or 0.0, _limit(limit, None, default=0)
        ports = yield from self._ports()
        found = yield from matches(ports, query, scope, filter=filter, threshold=floor, limit=most, today=_today())
        return ports, found

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
        from mem0_core.pipelines.unify import unify

        scope = Scope(user_id, agent_id, run_id)
        floor = _threshold(threshold)
        ports = yield from self._ports()
        done = yield from unify(
            ports, scope, what=what, names=names, into=into, threshold=floor, at=_now(), dry_run=dry_run
        )
        return merge_result(done, dry_run)

    def _unmerge(self, merge_id: str) -> Flow[MergeDict]:
        """Take a merge back: the graph is as it was before it, but for what was said, or deleted, since.

        Raises:
            NotFoundError: no merge that stands has that id.
            InputError: a later merge builds on it, and has to be taken back first.
        """
        from mem0_core.pipelines.unify import undo

        return merge_dict((yield from undo((yield from self._ports()), _text_id(merge_id), at=_now())))

    def _merges(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Flow[list[MergeDict]]:
        """What was merged in a scope, oldest first, and what of it was taken back."""
        listed = yield from do(self._store.merges.listed, Scope(user_id, agent_id, run_id))
        return [merge_dict(merge) for merge in listed]

    def _delete(self, memory_id: str, *, purge: bool = False) -> Flow[dict[str, Any]]:
        """Erase a memory everywhere, with the messages it came from and the relations that only it supported.

        Its history tells what it was, until purged; no search finds it, as of any day.

        Args:
            purge: erase its history as well, from the file's free pages and log too (rewrites the file).

        Raises:
            NotFoundError: no memory has that id.
        """
        ports = yield from self._ports()
        pending = yield from upkeep.delete(ports, _text_id(memory_id), at=_now(), purge=purge)
        return done_dict("Memory deleted successfully!", pending)

    def _delete_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> Flow[dict[str, Any]]:
        """`delete` for everything in a scope, its messages and its graph included.

        Raises:
            ScopeError: no id is given: `reset` empties the store.
        """
        scope = Scope(user_id, agent_id, run_id)
        ports = yield from self._ports()
        erased, pending = yield from upkeep.delete_all(ports, scope, at=_now(), purge=purge)
        return done_dict(f"{erased} memories deleted successfully!", pending)

    def _history(self, memory_id: str) -> Flow[list[HistoryDict]]:
        """Every change of a memory, oldest first; of a deleted one too."""
        rows = yield from do(self._store.history, _text_id(memory_id))
        return [HistoryDict(**{name: getattr(row, name) for name in row.__slots__}) for row in rows]  # type: ignore[typeddict-item]

    def _reset(self) -> Flow[None]:
        """Empty the whole store, everybody's memories and history."""
        yield from upkeep.reset((yield from self._ports()))

    def _rebuild(self, *, on_progress: Callable[[int, int | None], object] | None = None) -> Flow[int]:
        """Embed everything anew with the embedder of this object, and return how many memories there are.

        This is how a store changes its embedder. The old vectors serve until the last new one is ready.

        Args:
            on_progress: called with how many texts are embedded, and how many there are.
        """
        return (yield from upkeep.rebuild((yield from self._ports()), on_progress))

    def _backup(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Write all that is committed into one file, while others write; `operations.backup.restore` goes back to it.

        Args:
            path: the new file.
            overwrite: replace a file that is there.
            on_progress: called with how many pages are copied, and how many there are.

        Returns:
            ``path``, ``bytes`` and ``memories`` of the copy.

        Raises:
            InputError: the file exists, and `overwrite` is not set. StoreError: the store is not a file of ours.
        """
        from mem0_core.operations.backup import back_up

        return (yield from do(back_up, self._store, Path(path), overwrite=overwrite, on_progress=on_progress))

    def _doctor(
        self,
        *,
        mend: bool = True,
        torn: str | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Check the truth, and every projection against it, and mend what can be mended.

        Args:
            mend: False only looks.
            torn: what `operations.doctor.torn_log` said of the log before the store was opened.
            on_progress: called with how many of the checks are done, and how many there are.

        Returns:
            ``healthy``, what was ``checked``, and ``findings``: each ``where``, ``what``, ``mended``, ``action``. Where
            the truth lies in a server, only its projections are checked.
        """
        from mem0_core.operations.doctor import examine

        return (yield from examine((yield from self._ports()), mend=mend, torn=torn, on_progress=on_progress)).as_dict()

    def _stats(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Flow[dict[str, Any]]:
        """How much a scope holds of what; without an id the whole store, with what it takes on disk."""
        from mem0_core.care import care_of
        from mem0_core.operations.statistics import statistics

        given = any(value is not None for value in (user_id, agent_id, run_id))
        scope = Scope(user_id, agent_id, run_id) if given else None
        return (yield from do(statistics, care_of(self._store), self.config.database, scope))

    def _export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        format: Literal["jsonl", "csv"] = "jsonl",
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Write a scope out; without an id everybody's. See `interchange.exporting` for what is in the files.

        Args:
            path: a file of JSON Lines, or for ``"csv"`` a folder that gets ``nodes.csv`` and ``edges.csv``.
            format: ``"jsonl"`` or ``"csv"``.
            overwrite: replace files that are there.
            on_progress: called with how many lines are written, and None.

        Returns:
            ``files``, and how much is ``written`` of each kind.

        Raises:
            InputError: a file exists and `overwrite` is not set, or cannot be written.
        """
        from mem0_core.care import care_of
        from mem0_core.interchange.exporting import export_csv, export_jsonl

        given = any(value is not None for value in (user_id, agent_id, run_id))
        scope = Scope(user_id, agent_id, run_id) if given else None
        care = care_of(self._store)
        if format == "csv":
            return (yield from do(export_csv, care, Path(path), scope, overwrite=overwrite))
        if format != "jsonl":
            raise InputError(f"unknown format {format!r}; there are 'jsonl' and 'csv'")
        return (yield from do(export_jsonl, care, Path(path), scope, overwrite=overwrite, on_progress=on_progress))

    def _adopt(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]] = (),
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Take memories over from another store, with their ids, times and metadata; what is here already stays.

        They are embedded anew, and without a model rules read their relations. A second call goes on where the first
        was cut short. A policy has its say on each of them, and on their history.

        Args:
            memories: each with ``id``, ``memory``, ``created_at``, at least one of user_id, agent_id and run_id, and
                where there are any ``updated_at``, ``metadata``, ``actor_id``, ``role``, ``expiration_date``.
            history: rows of mem0's history table, kept under their own ids.
            on_progress: called with how many memories are done, and how many there are.

        Returns:
            ``added``, ``known`` (by their id or their words), ``deleted`` (here, since they were taken over), and
            ``history``, the rows that are new.

        Raises:
            InputError, ScopeError: one of them cannot be stored, and which; nothing is written.
        """
        from mem0_core.care import care_of
        from mem0_core.pipelines.adopt import adopt, allowed, history_of, items_of

        items, rows = allowed(items_of(memories), history_of(history), self._policy)
        adopted = yield from adopt((yield from self._ports()), care_of(self._store), items, rows, on_progress)
        return dict(adopted)

    add = _sync(_add)
    add_many = _sync(_add_many)
    search = _sync(_search)
    explain_missing = _sync(_explain_missing)
    get = _sync(_get)
    get_all = _sync(_get_all)
    relations = _sync(_relations)
    traverse = _sync(_traverse)
    query = _sync(_query)
    visualize = _sync(_visualize)
    pending = _sync(_pending)
    context = _sync(_context)
    pin = _sync(_pin)
    flush = _sync(_flush)
    retry = _sync(_retry)
    update = _sync(_update)
    update_by_query = _sync(_update_by_query)
    delete_by_query = _sync(_delete_by_query)
    merge = _sync(_merge)
    unmerge = _sync(_unmerge)
    merges = _sync(_merges)
    delete = _sync(_delete)
    delete_all = _sync(_delete_all)
    history = _sync(_history)
    reset = _sync(_reset)
    rebuild = _sync(_rebuild)
    backup = _sync(_backup)
    doctor = _sync(_doctor)
    stats = _sync(_stats)
    export = _sync(_export)
    adopt = _sync(_adopt)

    aadd = _async(_add)
    aadd_many = _async(_add_many)
    asearch = _async(_search)
    aexplain_missing = _async(_explain_missing)
    aget = _async(_get)
    aget_all = _async(_get_all)
    arelations = _async(_relations)
    atraverse = _async(_traverse)
    aquery = _async(_query)
    avisualize = _async(_visualize)
    apending = _async(_pending)
    acontext = _async(_context)
    apin = _async(_pin)
    aflush = _async(_flush)
    aretry = _async(_retry)
    aupdate = _async(_update)
    aupdate_by_query = _async(_update_by_query)
    adelete_by_query = _async(_delete_by_query)
    amerge = _async(_merge)
    aunmerge = _async(_unmerge)
    amerges = _async(_merges)
    adelete = _async(_delete)
    adelete_all = _async(_delete_all)
    ahistory = _async(_history)
    areset = _async(_reset)
    arebuild = _async(_rebuild)
    abackup = _async(_backup)
    adoctor = _async(_doctor)
    astats = _async(_stats)
    aexport = _async(_export)
    aadopt = _async(_adopt)

    # --- wiring --------------------------------------------------------------------------------------------------

    @property
    def store(self) -> MemoryStore:
        """The truth, for who keeps more in it than conversations."""
        return self._store

    @property
    def embedder(self) -> Embedder:
        """What makes the vectors that `store` takes."""
        return self._embedder

    def close(self) -> None:
        """Wait for what is put off, as long as ``background.drain`` says; then let everything go.

        What is not done by then is done at the next start. Closing twice is fine.
        """
        if not self._closed and self._background.working:
            self._background.drain(self.config.background.drain)
        self._background.stop()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._graph is not None and self._graph.index is not self._graph.embedded:
                self._graph.index.close()
            if self._graph is not None:
                self._graph.embedded.close()
            if self._index is not None:
                self._index.close()
            self._store.close()
            self._end_log()

    @property
    def closed(self) -> bool:
        return self._closed

    async def aclose(self) -> None:
        """`close`, with the tasks and connections of this event loop."""
        if not self._closed and self._background.working:
            await self._background.adrain(self.config.background.drain)
        await self._background.astop()
        if self._graph is not None and (disconnect := getattr(self._graph.index, "aclose", None)) is not None:
            await disconnect()
        if (disconnect := getattr(self._store, "aclose", None)) is not None:
            await disconnect()
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        where = getattr(self._store, "where", self.config.database)
        return f"<Memory {where} embedder={self._embedder.name}>"

    def _wired(self, index: VectorIndex | Foreign | None) -> VectorIndex | None:
        """The caller's index, made to follow the truth where it is a framework's vector store."""
        try:
            wired: VectorIndex | None = component("vector_store", "nearest", index, source=self._store)
        except BaseException:
            self._store.close()
            raise
        return wired

    def _ports(self) -> Flow[Ports]:
        index = self._index if self._index is not None else (yield from do(self._opened_index))
        graph = self._graph
        if graph is None and self._graph_config is not None:
            graph = yield from do(self._opened_graph)
        walk = self.config.traverse.model_dump()
        adjacency = self._opened_adjacency()
        return Ports(self._store, index, self._embedder, self._chat, self._reranker, graph, adjacency, walk)

    def _opened_adjacency(self) -> AdjacencyIndex:
        """The graph as walks and queries see it, which is arrays: NumPy is imported at the first call that needs it."""
        with self._lock:
            if self._adjacency is None:
                from mem0_core.graph.adjacency import AdjacencyIndex

                self._adjacency = AdjacencyIndex(self._store.graph)
            return self._adjacency

    def _opened_index(self) -> VectorIndex:
        """The vector projection, opened at the first call that needs it: importing FAISS takes a while."""
        if self._index is None:
            with self._lock:
                if self._closed:
                    raise StoreError("this memory is closed")
                if self._index is None:
                    self._index = vector_index(self.config, self._store)
        return self._index

    def _opened_graph(self) -> Graph | None:
        """Graph memory, opened at the first call that needs it."""
        with self._lock:
            if self._closed:
                raise StoreError("this memory is closed")
            if self._graph is None and self._graph_config is not None:
                embedded = embedded_graph(self.config, self._store)
                index = self._graph_index or graph_index(self._graph_config, self._store, embedded)
                options = graph_options(self._graph_config, self.config)
                self._graph = Graph(index, embedded, self._graph_chat, options)
            return self._graph

    def _watch(self, flow: Flow[T]) -> Flow[T]:
        return flow if self._on_step is None else observe(flow, self._on_step)

    def _versioned(self, result: AddResult | SearchResult) -> Any:
        return result["results"] if self.config.version == "v1.0" else result


class AsyncMemory:
    """`Memory` for asyncio: the same verbs, awaited.

    Takes what `Memory` takes, or ``memory=`` to share one.
    """

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | None = None,
        *,
        memory: Memory | None = None,
        llm: ChatModel | Mapping[str, Any] | str | Foreign | None = None,
        embedder: Embedder | Mapping[str, Any] | str | Foreign | None = None,
        reranker: Reranker | Mapping[str, Any] | str | Foreign | None = None,
        store: MemoryStore | None = None,
        index: VectorIndex | Foreign | None = None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None = None,
        policy: Policy | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
    ) -> None:
        parts: dict[str, Any] = {
            "llm": llm,
            "embedder": embedder,
            "reranker": reranker,
            "store": store,
            "index": index,
            "graph": graph,
            "policy": policy,
            "on_step": on_step,
        }
        if memory is not None and any(part is not None for part in (config, *parts.values())):
            raise ConfigError("memory: give a memory to share, or what to make one from, not both")
        self.memory = memory if memory is not None else Memory(config, **parts)

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | Path) -> Self:
        """A memory from mem0's configuration dict, or from a YAML or JSON file of it."""
        return cls(load_config(config))

    add = _awaited(Memory._add)
    add_many = _awaited(Memory._add_many)
    search = _awaited(Memory._search)
    explain_missing = _awaited(Memory._explain_missing)
    get = _awaited(Memory._get)
    get_all = _awaited(Memory._get_all)
    relations = _awaited(Memory._relations)
    traverse = _awaited(Memory._traverse)
    query = _awaited(Memory._query)
    visualize = _awaited(Memory._visualize)
    pending = _awaited(Memory._pending)
    context = _awaited(Memory._context)
    pin = _awaited(Memory._pin)
    flush = _awaited(Memory._flush)
    retry = _awaited(Memory._retry)
    update = _awaited(Memory._update)
    update_by_query = _awaited(Memory._update_by_query)
    delete_by_query = _awaited(Memory._delete_by_query)
    merge = _awaited(Memory._merge)
    unmerge = _awaited(Memory._unmerge)
    merges = _awaited(Memory._merges)
    delete = _awaited(Memory._delete)
    delete_all = _awaited(Memory._delete_all)
    history = _awaited(Memory._history)
    reset = _awaited(Memory._reset)
    rebuild = _awaited(Memory._rebuild)
    backup = _awaited(Memory._backup)
    doctor = _awaited(Memory._doctor)
    stats = _awaited(Memory._stats)
    export = _awaited(Memory._export)
    adopt = _awaited(Memory._adopt)

    async def close(self) -> None:
        await self.memory.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


# --- arguments ---------------------------------------------------------------------------------------------------


def _address(
    filters: Mapping[str, Any] | None, user_id: str | None, agent_id: str | None, run_id: str | None
) -> tuple[Scope, Filter | None]:
    ids, filter = parse_filters(filters)
    given = {Axis.USER: user_id, Axis.AGENT: agent_id, Axis.RUN: run_id}
    for axis, value in ids.items():
        if given[axis] not in (None, value):
            raise ScopeError(f"{axis} is given twice: {given[axis]!r} and {value!r}")
        given[axis] = value
    return Scope(given[Axis.USER], given[Axis.AGENT], given[Axis.RUN]), filter


def _limit(limit: int | None, top_k: int | None, *, default: int) -> int:
    if limit is not None and top_k is not None and limit != top_k:
        raise InputError(f"limit={limit} and top_k={top_k} are two names for one thing")
    chosen = limit if limit is not None else top_k if top_k is not None else default
    if not isinstance(chosen, int) or isinstance(chosen, bool) or chosen < 1:
        raise InputError(f"limit must be a positive whole number, not {chosen!r}")
    return chosen


def _text_id(memory_id: object) -> str:
    if not isinstance(memory_id, str) or not memory_id:
        raise InputError(f"a memory's id is a non-empty string, not {memory_id!r}")
    return memory_id


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _at(timestamp: object, messages: Sequence[Message]) -> str:
    """The time of an add: what the caller says, else its last message, else now."""
    if timestamp is not None:
        return parse_time(timestamp)
    return next((message.timestamp for message in reversed(messages) if message.timestamp), None) or _now()


def _last_day(expiration_date: str | date | None, ttl: timedelta | float | None) -> str | None:
    """The last day on which memories are recalled, by either way to say it."""
    if expiration_date is not None and ttl is not None:
        raise InputError("expiration_date and ttl are two ways to say one thing")
    if ttl is not None:
        span = ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)
        if span <= timedelta(0):
            raise InputError(f"ttl must be positive, not {ttl!r}")
        return (datetime.now(UTC) + span).date().isoformat()
    return None if expiration_date is None else parse_day(expiration_date, "expiration_date")


def _question(query: Messages | None) -> str | None:
    """What is asked: the text, or the user's last message."""
    if query is None or isinstance(query, str):
        return query
    said = parse_messages(query).messages
    return next((message.content for message in reversed(said) if message.role == "user"), None)


def _refused(text: str) -> str:
    raise InputError(f"{REFUSED}: {text[:40]!r}")


def _threshold(threshold: object) -> float | None:
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise InputError(f"threshold must lie in [0, 1], as scores do, not {threshold!r}")
    return float(threshold)


def _stamp() -> str:
    """The time as part of a file's name, to the microsecond."""
    return datetime.now(UTC).strftime("%Y%m%d_%H%M%S_%f")


def _write_whole(file: Path, text: str) -> None:
    """Write a file or leave what was there."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f".{file.name}.{_stamp()}")
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error}") from error


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
