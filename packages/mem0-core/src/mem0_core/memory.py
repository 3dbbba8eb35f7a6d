"""`Memory` and `AsyncMemory`: the public methods of long-term memory.

Each sync method of `Memory` is written here, and runs a flow of `mem0_core.api`. The async methods repeat the sync
signatures; ``python tools/generate_memory.py`` writes them between the markers, and a test fails if they are stale.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NoReturn, Self

from mem0_core._system.boundary import convert_errors_of
from mem0_core.api.add import AddApi
from mem0_core.api.admin import AdminApi
from mem0_core.api.factory import FrameworkModel
from mem0_core.api.files import FilesApi
from mem0_core.api.graph import GraphApi
from mem0_core.api.search import SearchApi
from mem0_core.api.spaces import SpacesApi
from mem0_core.api.update import UpdateApi
from mem0_core.config import MemoryConfig, advise_argument, choose_config
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.feed import ChangesDict
from mem0_core.domain.missing_names import SuggestsMethods
from mem0_core.domain.policy import Policy
from mem0_core.domain.recipes import Recipe
from mem0_core.domain.records import (
    AddManyResult,
    AddResult,
    AnswerDict,
    ByQueryResult,
    ContextDict,
    FeedbackDict,
    HistoryDict,
    JobDict,
    MemoryDict,
    MergeDict,
    MergeResult,
    Messages,
    MissingDict,
    PathDict,
    QueryResult,
    RelationDict,
    RetractResult,
    SearchResult,
    VerifyResult,
)
from mem0_core.domain.suggestions import check_arguments
from mem0_core.domain.trust import TrustClass
from mem0_core.errors import ArgumentError, ConfigError
from mem0_core.flow import StepRecord
from mem0_core.interfaces import ChatModel, Embedder, GraphIndex, MemoryStore, RecordStore, Reranker, VectorIndex
from mem0_core.interfaces.keys import Keys
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION

__all__ = ["AsyncMemory", "Memory"]


@convert_errors_of("__init__", "from_config", "close", "aclose")
@check_arguments(advise=advise_argument)
class Memory(SpacesApi, AddApi, SearchApi, GraphApi, UpdateApi, FilesApi, AdminApi):
    """Long-term memory for agents, stored on this machine by default.

    Threads and tasks may share a memory. Close it, or use it as a context manager.

    Args:
        config: A `MemoryConfig`, a mapping of its keys (mem0's names), the path of a YAML or JSON file that holds one,
            or the folder of the data.
        path: Folder of all local data; takes precedence over `config`.
        llm, embedder, reranker: Instances, ``"provider:model"``, the name of a known model (``"gpt-4o-mini"``) or
            ``{"provider", "config"}``. They take precedence over `config`. Models of LangChain and LlamaIndex work if
            ``mem0-langchain`` or ``mem0-llamaindex`` is installed. Without an `llm`, messages are stored verbatim. If
            neither an `embedder` nor a `reranker` is named and onnxruntime is installed, the rerankers of mem0-models
            read the best five or ten hits of a search; ``reranker=False`` turns them off.
        store: The primary store in place of the one that `config` names: a URL (``postgresql://host/database``), a
            SQLite file, ``{"provider", "config"}``, a `MemoryStore`, or a smaller `RecordStore`.
        index: A `VectorIndex` to use instead of the embedded one; it must follow the same store. A
            framework's vector store works as described for `llm`.
        graph: Projection for relation search: a provider's name (``"sqlite"``, ``"neo4j"``, ``"ladybug"``), a
            ``graph_store`` mapping, or a `GraphIndex` that follows the same store. False turns graph memory off.
        keys: Encrypts the store with a key per tenant: the folder of a `Keyring`, a mapping of tenants
            (``"user_id=alice"``) to keys, or a function of a tenant. Takes precedence over `config`.
        policy: Called with every message and memory, and its scope, before it is stored. Returns the text to store
            (unchanged or redacted), or None to drop it.
        on_step: Called after every call to a model or store (name, seconds, result or error), for logging and tracing.
            An error of it is logged and changes nothing.

    Raises:
        ConfigError: A key is unknown or has a wrong value.
        StoreError: The store cannot be opened. EncryptionError: it is encrypted, and `keys` are missing or others.
    """

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        path: str | Path | None = None,
        llm: ChatModel | Mapping[str, Any] | str | FrameworkModel | None = None,
        embedder: Embedder | Mapping[str, Any] | str | FrameworkModel | None = None,
        reranker: Reranker | Mapping[str, Any] | str | FrameworkModel | bool | None = None,
        store: MemoryStore | RecordStore | Mapping[str, Any] | str | Path | None = None,
        index: VectorIndex | FrameworkModel | None = None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None = None,
        keys: Keys | None = None,
        policy: Policy | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
    ) -> None:
        super().__init__(
            config,
            path=path,
            llm=llm,
            embedder=embedder,
            reranker=reranker,
            store=store,
            index=index,
            graph=graph,
            keys=keys,
            policy=policy,
            on_step=on_step,
        )

    @classmethod
    def from_config(
        cls,
        config_dict: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
    ) -> Self:
        """Create a memory from mem0's configuration dict, or from a YAML or JSON file that holds one.

        Args:
            config_dict, config: Two names for the same argument; the first is mem0's.
        """
        return cls(choose_config(config_dict, config))

    @property
    def store(self) -> MemoryStore:
        """Primary store of this memory, for applications that keep more than conversations in it."""
        return self._store

    @property
    def embedder(self) -> Embedder:
        """Embedder of the vectors in `store`."""
        return self._embedder

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def close(self) -> None:
        """Wait up to ``background.drain`` seconds for queued jobs, then release all resources.

        Unfinished jobs run after the next start. A second call does nothing.
        """
        self._close()

    async def aclose(self) -> None:
        """Close the memory together with the tasks and connections of the current event loop."""
        await self._aclose()

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

    # --- Add ---------------------------------------------------------------------------------------------------------

    def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        keep: Literal["all", "statements"] = "all",
        facts_about: Literal["auto", "owner", "user", "agent"] = "auto",
        memory_type: str | None = None,
        prompt: str | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        ttl: timedelta | float | None = None,
        dry_run: bool = False,
        background: bool = False,
        max_pending: int | None = None,
        source: str | None = None,
        trust: TrustClass | None = None,
    ) -> AddResult:
        """Learn from a conversation: add new facts, update changed ones, delete those that no longer hold.

        Args:
            messages: A text (one user message), one message, or a list of ``{"role", "content"}`` with an optional
                ``name`` (the speaker), ``timestamp``, ``metadata`` and ``id``. Messages stored verbatim keep these
                fields; extracted facts take the time of the last message. A message with an ``id`` that the scope has
                already, with the same content, is left out; without ids an add that repeats another one word for word
                learns again, and its messages stay in the conversation once.
            user_id, agent_id, run_id: Owner of the memories; at least one is required.
            metadata: JSON object stored with every memory that this call adds or updates.
            infer: False stores each user and assistant message verbatim.
            keep: Without a chat model, the messages that become memories: ``"statements"`` leaves questions, greetings
                and acknowledgements in the conversation, where `context` shows them as recent messages.
            facts_about: The person whose facts a chat model is asked for. ``"auto"``, the rule of mem0 1.x: the agent
                if there are an `agent_id` and a message of the assistant, else the user. ``"owner"``: the same, but
                the user if there is a `user_id`. ``"user"`` and ``"agent"``: always that one.
            memory_type: ``"procedural_memory"`` stores one step-by-step summary of an agent's actions.
            prompt: Extraction instructions for this call only.
            timestamp: Time of the conversation, as Unix seconds, ISO 8601 or datetime; prompts call that day today.
                Default: the time of the last message that has one, else now.
            expiration_date: Last day on which the memories are recalled.
            ttl: Minimum time for which the memories are recalled, as a timedelta or in seconds; it ends with a day.
            dry_run: Report the changes and write nothing.
            background: Store the messages durably and return; a worker extracts facts later. Searches see the
                messages at once. The result holds only ``job_id``: see `pending`, `flush` and `retry`. It has none if
                all messages are stored already.
            max_pending: With `background`, maximum number of adds of the scope that may be queued already.
            source: Name of the document, tool, agent or chat that the messages come from; `retract` withdraws it.
            trust: Class of their origin: ``"user"``, ``"assistant"``, ``"tool"`` or ``"import"``, from the most to the
                least trusted. Default: that of each message's role.

        Returns:
            ``results`` (each with ``event`` ADD, UPDATE or DELETE), ``relations`` (those that began and those that
            ended, as ``source -- relationship -- destination``), ``skipped`` (unusable items and messages beyond a
            bound, with reasons) and ``usage``; ``unchanged`` (with ``event`` NONE) if memories were stated again, and
            ``pending`` if a projection lags behind. ``job_id`` if the model's reply was unusable as a whole: the
            messages wait as a failed job of that id for `retry`.

        Raises:
            ScopeError: No id is given, or one is invalid.
            InputError: A message or the metadata cannot be stored.
            LimitError: The call exceeds `limits`, or more than `max_pending` adds are queued.
            ModelError: A model call failed. ReplyError: with ``on_bad_reply="raise"``, its reply was malformed.
            StoreError: The commit failed. After any of these errors, nothing is written.
        """
        flow = self._add_flow(
            messages,
            ids=(user_id, agent_id, run_id),
            metadata=metadata,
            infer=infer,
            keep=keep,
            facts_about=facts_about,
            memory_type=memory_type,
            prompt=prompt,
            timestamp=timestamp,
            expiration_date=expiration_date,
            ttl=ttl,
            dry_run=dry_run,
            background=background,
            max_pending=max_pending,
            origin=(source, trust),
        )
        return self._to_version(self._run(flow), "add")

    def add_many(
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
        source: str | None = None,
        trust: TrustClass | None = None,
        on_progress: Callable[[int, int | None], None] | None = None,
    ) -> AddManyResult:
        """Import many messages, each as one verbatim memory, in transactions of some hundred messages.

        The result equals that of as many calls of `add` (with ``infer=False`` if there is a model). It asks no model.

        Args:
            messages: Texts, or messages as for `add`. A list is validated as a whole first, an iterator by chunks.
            user_id, agent_id, run_id: Owner of the memories; at least one is required.
            metadata: JSON object stored with every message, in addition to its own.
            infer: Queue each message for the model instead, as ``add(background=True)`` does.
            chunk: Number of messages to embed and commit at once; fewer, if one retracts a relation of an earlier one.
            key: Name of this import into this scope, stored with its progress. A later call with the same messages and
                key resumes after the last commit. `delete_all` and `reset` forget it.
            source, trust: As in `add`, for every message.
            on_progress: Called after each chunk with the imported and the total number (None for an iterator).

        Returns:
            ``added``, ``known`` (same words by the same speaker), ``jobs`` (queued), ``skipped`` with reasons,
            ``resumed`` (done by an earlier call with this key), and ``pending`` as for `add`.

        Raises:
            ConfigError: `infer` is set and there is no model.
            InputError: A message cannot be stored (the error names it), or the key belongs to a longer import.
            StoreError: A commit failed. After any error, earlier commits are kept.
        """
        flow = self._add_many_flow(
            messages,
            ids=(user_id, agent_id, run_id),
            metadata=metadata,
            infer=infer,
            chunk=chunk,
            key=key,
            origin=(source, trust),
            on_progress=on_progress,
        )
        return self._run(flow)

    def pending(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[JobDict]:
        """Return queued jobs, oldest first; without an id, those of all scopes.

        A job that failed too often, or whose reply was unusable, has the state ``failed`` and an ``error``, and waits
        for `retry`.
        """
        return self._run(self._pending_flow(ids=(user_id, agent_id, run_id)))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queued jobs except failed ones are done; return False after `timeout` seconds."""
        return self._run(self._flush_flow(timeout))

    def retry(
        self,
        job_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Queue a failed job again.

        Args:
            user_id, agent_id, run_id: As in `get`, for the job.

        Raises:
            NotFoundError: No failed job has that id.
        """
        return self._run(self._retry_flow(job_id, ids=(user_id, agent_id, run_id)))

    # --- Search ------------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        explain: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
        include_superseded: bool = False,
    ) -> SearchResult:
        """Return the memories of a scope that best answer `query`, best first, with the relations relevant to it.

        Args:
            user_id, agent_id, run_id: Owner of the memories; at least one is required, here or in `filters`. An omitted
                id matches everything: ``user_id="u"`` includes all runs and agents of u.
            limit, top_k: Maximum number of results (100, as in mem0 1.x); two names for the same argument.
            filters: mem0's filters, see `mem0_core.domain.filters`.
            min_trust: Least trusted class of memories and relations to return; see `add`. A memory has the class of the
                least trusted message in its lineage.
            threshold: Minimum score. Scores are in [0, 1] and comparable between queries.
            rerank: False skips the configured reranker. True without one leaves the order, with a ``note``, as mem0 1.x
                leaves it.
            recipe: Retrieval and ranking settings, see `mem0_core.domain.recipes`. Default: the configured recipe.
            explain: Add the signals of each score and their weights. See `explain_missing` for memories that are not
                among the results.
            as_of: Search the memories and relations as they were at that time (Unix seconds, ISO 8601 or datetime).
                Memories erased by `delete` are not found.
            reference_date: Day that "yesterday" or "last summer" in the query refers to. Default: today, or the day of
                `as_of`.
            allow_no_answer: Return no results, and a ``note``, if no memory is about the subject and relation that the
                query asks for, or states the property. For a query that is not understood, if the best score is below
                the recipe's gate.
            include_superseded: Search the earlier texts of memories too, which were updated or deleted by a model.

        Returns:
            ``results`` and ``relations``. A memory of a state has ``valid_from``, and once the state is over
            ``valid_to`` and ``superseded_by``, the id of the memory that ended it. For a query about the present it
            ranks below the memories that hold; a query about the past ("in 2021", "before Oslo") ranks the memories
            of that time first.

        Raises:
            QueryError: The query is empty, or a filter is invalid.
            ScopeError: No id is given, or one is invalid.
            ConfigError: The recipe does not exist.
        """
        flow = self._search_flow(
            query,
            ids=(user_id, agent_id, run_id),
            limit=limit,
            top_k=top_k,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            recipe=recipe,
            explain=explain,
            as_of=as_of,
            reference_date=reference_date,
            allow_no_answer=allow_no_answer,
            include_superseded=include_superseded,
        )
        return self._to_version(self._run(flow), "search")

    def answer(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> AnswerDict:
        """Answer a question from the memories of a scope, without a model.

        A question about a state ("Where does my sister's husband work?", "Who was I dating in 2021?", "Where did I live
        before Oslo?") is answered by the value that held at the time it asks about; one about a property ("What color
        is my car?") by a memory that states it; any other by its best memory.

        Args:
            user_id, agent_id, run_id, filters, min_trust, as_of, reference_date: As in `search`.

        Returns:
            ``answer``, a text, None if it is unknown; its ``values``; ``confidence`` in [0, 1]; the ``memories`` that
            prove it; ``since`` and ``until``; the ``path`` through the graph, if there is one. If the answer is
            unknown, the ``nearest`` memory and a ``note`` with the reason.

        Raises:
            QueryError: The question is empty, or a filter is invalid.
            ScopeError: No id is given, or one is invalid.
        """
        flow = self._answer_flow(
            question,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            min_trust=min_trust,
            as_of=as_of,
            reference_date=reference_date,
        )
        return self._run(flow)

    def explain_missing(
        self,
        query: str,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
    ) -> MissingDict:
        """Explain why `search` with the same arguments does not return a memory.

        Returns:
            ``reason``: found, unknown (of another user too), deleted, other_scope (another agent or run),
            not_said_yet (at the time `as_of`), expired, filtered, not_in_pool, below_limit, below_threshold,
            no_answer or lost_at_rerank; ``detail``, the reason as a sentence; ``rank`` among the scored candidates,
            and ``ranks`` in each source; ``score`` and ``signals``.
        """
        flow = self._explain_missing_flow(
            query,
            memory_id,
            ids=(user_id, agent_id, run_id),
            limit=limit,
            top_k=top_k,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            recipe=recipe,
            as_of=as_of,
            reference_date=reference_date,
            allow_no_answer=allow_no_answer,
        )
        return self._run(flow)

    def context(
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
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        exclude: Sequence[str] = (),
        introduction: str = MEMORIES_INTRODUCTION,
        count_tokens: Callable[[str], int] | None = None,
        citations: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> ContextDict:
        """Assemble an agent's context within a token budget: summary, memories, relations and recent messages.

        Args:
            query: A text, or the conversation so far; its last user message is the query, and memories that repeat its
                messages are omitted. None recalls only pinned memories.
            max_tokens: Budget, counted by `count_tokens`, else by the chat model if it can count, else estimated high.
            limit: Maximum number of memories.
            recent: Maximum number of messages. Default: the configured `window`; 0 if the caller has the conversation.
            filters, recipe: As in `search`, for memories.
            min_trust: As in `search`. Messages of less trusted classes are left out too, and so is the summary.
            threshold: Minimum score, from 0 to 1. Default: a floor calibrated for the kind of texts, relative to the
                best score, which omits memories that do not bear on the query. 0 omits none.
            exclude: Texts that the agent has already; memories that only repeat their sentences are omitted.
            introduction: Instructions to the agent's model about the block.
            citations: Number memories and relations, and ask the model to cite them as in [1];
                `read_citations` returns the memories that an answer cites.
            as_of: Use the state of that time, except for the messages.
            reference_date: As in `search`.

        Returns:
            ``text`` (everything but the messages, as a block for the system prompt, marked as data), and its parts
            ``summary``, ``memories``, ``relations``, ``messages``; the number of ``tokens``; with `citations`, as
            ``citations`` the memory ids by their numbers in the text. Memories are in order of score, after pinned
            ones. Of near-duplicates only the newest is included, at the rank of the best. A line about something that
            is over says so with ``until``.
        """
        flow = self._context_flow(
            query,
            ids=(user_id, agent_id, run_id),
            max_tokens=max_tokens,
            limit=limit,
            recent=recent,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            recipe=recipe,
            exclude=exclude,
            introduction=introduction,
            count_tokens=count_tokens,
            citations=citations,
            as_of=as_of,
            reference_date=reference_date,
        )
        return self._run(flow)

    def get(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> MemoryDict | None:
        """Return the memory with this id, or None.

        Args:
            user_id, agent_id, run_id: Owner. Another owner's memory is treated as if it did not exist. Pass them if the
                id comes from a user or a model; without them, any memory is accessible.
        """
        return self._run(self._get_flow(memory_id, ids=(user_id, agent_id, run_id)))

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        min_trust: TrustClass | None = None,
        show_expired: bool = False,
    ) -> SearchResult:
        """Return the memories of a scope, oldest first.

        Args:
            limit, top_k: Maximum number of results (100, as in mem0 1.x); two names for the same argument. With
                ``limit=None``, all of them.
            min_trust: As in `search`.
        """
        flow = self._get_all_flow(
            ids=(user_id, agent_id, run_id),
            filters=filters,
            limit=limit,
            top_k=top_k,
            min_trust=min_trust,
            show_expired=show_expired,
        )
        return self._to_version(self._run(flow), "get_all")

    def history(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[HistoryDict]:
        """Return every change of a memory, oldest first, even if it is deleted.

        Args:
            user_id, agent_id, run_id: As in `get`.
        """
        return self._run(self._history_flow(memory_id, ids=(user_id, agent_id, run_id)))

    def changes(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> ChangesDict:
        """Return the next changes of memories, in the order in which they were made.

        Pass the returned ``cursor`` as `after` to read on. Each change is in the feed exactly once, and a change that
        is made later has a higher number. A change is in the feed if and only if it was committed. The feed contains
        ids and no texts; `get` returns the text.

        Args:
            after: Cursor of an earlier call; 0 for the first change.
            limit: Maximum number of changes.
            user_id, agent_id, run_id: Only changes in this scope; without ids, of the whole store.
        """
        return self._run(self._changes_flow(after=after, limit=limit, ids=(user_id, agent_id, run_id)))

    def pin(
        self,
        memory_id: str,
        pinned: bool = True,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Include a memory in every `context` of its scope regardless of the query; False ends this.

        Args:
            user_id, agent_id, run_id: As in `get`.

        Raises:
            NotFoundError: No memory has that id.
        """
        return self._run(self._pin_flow(memory_id, pinned, ids=(user_id, agent_id, run_id)))

    def feedback(
        self,
        memory_id: str,
        useful: bool | None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> FeedbackDict:
        """Count a memory as useful or useless; the signal ``feedback`` of a search raises or lowers it a little.

        ``search(explain=True)`` shows the contribution to a score. The counts leave with the memory.

        Args:
            useful: None withdraws all feedback on the memory, citations included.
            user_id, agent_id, run_id: As in `get`.

        Returns:
            The counts ``useful`` and ``useless`` of the memory.

        Raises:
            NotFoundError: No memory has that id.
            CapabilityError: The store does not keep feedback.
        """
        return self._run(self._feedback_flow(memory_id, useful, ids=(user_id, agent_id, run_id)))

    def count_citations(
        self,
        answer: str,
        citations: Mapping[str, str],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[str]:
        """Count each memory that an answer cites as useful once more, and return their ids.

        Args:
            answer: A model's reply, with citations such as ``[1]``; see `read_citations`.
            citations: Ids by number, as ``context(citations=True)`` returns them.
            user_id, agent_id, run_id: As in `get`. Memories of others, and deleted ones, are left out.

        Raises:
            InputError: `citations` has another form.
            CapabilityError: The store does not keep feedback.
        """
        return self._run(self._count_citations_flow(answer, citations, ids=(user_id, agent_id, run_id)))

    # --- Graph -------------------------------------------------------------------------------------------------------

    def relations(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        ended: bool = False,
        limit: int | None = None,
    ) -> list[RelationDict]:
        """Return the valid relations of a scope, oldest first.

        Args:
            as_of: Return those that were valid at that time (Unix seconds, ISO 8601 or datetime).
            ended: Include ended relations; each has ``valid_from``, ``valid_to`` and ``invalidated_at``.
            limit: Maximum number of relations. Default: all.
        """
        flow = self._relations_flow(ids=(user_id, agent_id, run_id), as_of=as_of, include_ended=ended, limit=limit)
        return self._run(flow)

    def traverse(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        limit: int = 5,
        depth: int | None = None,
    ) -> list[PathDict]:
        """Follow a question such as "Where does my sister work?" through the graph; return the paths, best first.

        A path starts at a name or at the user, and follows the terms in their logical order. For a question without
        such a chain ("who is Anna"), return the relations of the named entity.

        Args:
            as_of: Use the relations that were valid at that time (Unix seconds, ISO 8601 or datetime). Default: now,
                and for the last step the time that the question names ("in 2021", "before Oslo").
            limit: Maximum number of paths.
            depth: Maximum number of relations in a path. Default: the number of terms. A larger value allows relations
                between them that match no term, at a lower score.

        Returns:
            For each path ``start``, ``end``, ``score`` in [0, 1], and ``steps``: relations as `relations` returns them,
            each with ``forward``, False if the path follows it backwards.

        Raises:
            QueryError: The question is empty.
        """
        flow = self._traverse_flow(question, ids=(user_id, agent_id, run_id), as_of=as_of, limit=limit, depth=depth)
        return self._run(flow)

    def query(
        self,
        text: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> QueryResult:
        """Query the graph of a scope by patterns, conditions and similarity; the graph page documents the language.

        ``MATCH (a:person)-[r:works_at]->(b) WHERE SIMILAR(b, 'an oil company', 0.5) RETURN a.name, r LIMIT 10``

        Args:
            as_of: Query the relations of that time, unless the query itself has ``AS OF``.
            parameters: Values of the query's ``$parameters``, by name: texts, numbers, booleans, None and lists of
                these. They are never parsed as a part of the query.

        Returns:
            ``columns`` and ``rows``, one mapping per row: a node as ``name`` and ``type``, a relation as `relations`
            returns it, a path as ``nodes`` and ``relations``, several values as a list; ``note`` if the result is
            incomplete. For ``EXPLAIN``, the lines of the ``plan`` and no rows.

        Raises:
            QueryError: The query cannot be parsed (the error has the position and the nearest accepted form), is
                invalid, or takes too long. A query never reads data outside the scope.
        """
        flow = self._query_flow(text, ids=(user_id, agent_id, run_id), as_of=as_of, parameters=parameters)
        return self._run(flow)

    def visualize(
        self,
        path: str | Path | None = None,
        *,
        entities: Sequence[str] | None = None,
        depth: int = 2,
        limit: int = 5_000,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> str:
        """Draw the graph of a scope as one HTML file that works offline, and return its path.

        The page has a search box, a relation filter and a time slider; a click shows the source memories. The file
        contains memories: protect it as you protect them.

        Args:
            path: File to write or replace. Default: a new file in the folder ``viz`` of the data.
            entities: Draw only nodes within `depth` steps of these entities.
            limit: Maximum number of nodes; those with most relations come first.

        Raises:
            MissingExtraError: Run ``pip install 'mem0-core[viz]'``.
            InputError: An entity is not in the graph, or the file cannot be written.
        """
        flow = self._visualize_flow(path, ids=(user_id, agent_id, run_id), entities=entities, depth=depth, limit=limit)
        return self._run(flow)

    def merge(
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
    ) -> MergeResult:
        """Merge entities or relationships that have several names; a dry run by default.

        The remaining name takes over the relations of the merged names, with their weights and evidence. Later mentions
        of a merged name refer to it. `unmerge` reverts a merge. Names of different scopes are never merged.

        Args:
            what: Kind of candidates to look for.
            names: Merge exactly these names, of the kind in `what`, instead of looking for candidates.
            into: The one of `names` that remains. Default: the one with most relations.
            threshold: Minimum score, in [0, 1], of two names for one thing. Default: a measured value (see the graph
                page).
            dry_run: Report the merges and write nothing.

        Returns:
            ``merges``, each with ``name`` (remains), ``merged`` (replaced names), ``score`` (of the weakest link),
            ``reasons``, the number of ``relations`` that move, and its ``id`` if it was applied; ``same_as``, pairs of
            names that may mean the same, with ``score`` and ``reason``, to be merged by `names`; and ``apart``, similar
            names that were not merged, with the reason.

        Raises:
            InputError: One of `names` is not in the graph, or they belong to several scopes.
        """
        flow = self._merge_flow(
            what, ids=(user_id, agent_id, run_id), names=names, into=into, threshold=threshold, dry_run=dry_run
        )
        return self._run(flow)

    def unmerge(
        self,
        merge_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> MergeDict:
        """Revert a merge: restore the graph, except for later additions and deletions.

        Args:
            user_id, agent_id, run_id: As in `get`, for the merge.

        Raises:
            NotFoundError: No active merge has that id.
            InputError: A later merge builds on it; revert that one first.
        """
        return self._run(self._unmerge_flow(merge_id, ids=(user_id, agent_id, run_id)))

    def merges(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[MergeDict]:
        """Return the merges of a scope, including reverted ones, oldest first."""
        return self._run(self._merges_flow(ids=(user_id, agent_id, run_id)))

    # --- Update and delete -------------------------------------------------------------------------------------------

    def update(
        self,
        memory_id: str,
        data: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Replace the text of a memory, and add `metadata` to its metadata.

        Relations that only the old text supported end. With graph memory, relations are extracted from the new text, by
        the model if there is one.

        Args:
            user_id, agent_id, run_id: As in `get`.

        Raises:
            NotFoundError: No memory has that id.
            InputError: The text is empty, or another memory of the scope has the same text.
        """
        return self._run(self._update_flow(memory_id, data, metadata, ids=(user_id, agent_id, run_id)))

    def update_by_query(
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
    ) -> ByQueryResult:
        """Update the memories that match a query, filters, or both, in one transaction.

        Args:
            query: Topic of the memories; None selects all that pass `filters`.
            data: The new text, for a query that matches one memory; else a function that takes a memory, as `get`
                returns it, and returns its new text, or None to leave it unchanged. It is called again if another
                writer changes a match during the call.
            filters: As in `search`.
            threshold: Minimum cosine similarity, in [0, 1], of a memory and the query.
            limit: Maximum number of matches. If more memories match, nothing is updated.
            metadata: JSON object to add to the metadata of each match.
            dry_run: Report the changes and write nothing.

        Returns:
            ``results``: each with ``event`` UPDATE or NONE, its new text, ``previous_memory`` and ``score``;
            ``relations`` that began and that ended (not in a dry run); ``skipped`` parts of the model's replies about
            relations, with reasons.

        Raises:
            InputError: More than `limit` memories match, a text is invalid, or two memories of a scope would have the
                same text.
            ModelError: A model call failed.
            StoreError: The commit failed, or other writers kept changing the matches. After any of these errors,
                nothing is written.
        """
        flow = self._update_by_query_flow(
            query,
            data,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            threshold=threshold,
            limit=limit,
            metadata=metadata,
            dry_run=dry_run,
        )
        return self._run(flow)

    def delete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> dict[str, Any]:
        """Erase a memory everywhere, with its source messages and the relations that only it supported.

        Its history remains until it is purged; no search finds the memory, not even with `as_of`.

        Args:
            user_id, agent_id, run_id: As in `get`.
            purge: Erase the history too, also from the file's free pages and log. This rewrites the file.

        Raises:
            NotFoundError: No memory has that id.
        """
        return self._run(self._delete_flow(memory_id, ids=(user_id, agent_id, run_id), purge=purge))

    def delete_by_query(
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
    ) -> ByQueryResult:
        """Delete the memories that match a query, filters, or both, in one transaction.

        Args:
            query, filters, threshold, limit, dry_run: As in `update_by_query`.
            purge: As in `delete`.

        Raises:
            InputError: More than `limit` memories match; nothing is deleted.
        """
        flow = self._delete_by_query_flow(
            query,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            threshold=threshold,
            limit=limit,
            purge=purge,
            dry_run=dry_run,
        )
        return self._run(flow)

    def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        *,
        purge: bool = False,
    ) -> dict[str, Any]:
        """Delete everything in a scope, including its messages and its graph.

        Args:
            purge: As in `delete`.

        Raises:
            ScopeError: No id is given; use `reset` to empty the store.
        """
        return self._run(self._delete_all_flow(ids=(user_id, agent_id, run_id), purge=purge))

    def reset(self) -> None:
        """Empty the whole store: the memories and the history of all scopes."""
        return self._run(self._reset_flow())

    def retract(
        self,
        source: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> RetractResult:
        """Withdraw everything that was learned from a source and that nothing else has said, in one transaction.

        A memory returns to its last text that does not depend on the source, or leaves. Its relations, words and
        vectors leave with it. Memories and relations that only this source ended hold again. The messages of the
        source and the summaries that contain them are erased; what others said is kept. `history` shows a withdrawn
        memory as RETRACT and a text that came back as RESTORE.

        Args:
            source: Its name, as given to `add`.
            user_id, agent_id, run_id: Scope to withdraw it from. Without an id, all scopes.
            purge: Also delete the history of the memories that leave.

        Returns:
            The numbers of ``messages``, ``memories`` and ``relations`` that left, of memories ``restored`` to an
            earlier text, of memories ``kept`` because others said them too, of ``relations_restored``, of erased
            ``summaries``, and of ``jobs``: with a model, messages of others behind withdrawn texts are read again.
            ``pending`` as for `add`.

        Raises:
            InputError: The name is not a non-empty string.
            CapabilityError: The store has no sources.
            StoreError: The transaction failed; nothing is withdrawn.
        """
        return self._run(self._retract_flow(source, ids=(user_id, agent_id, run_id), purge=purge))

    # --- Erasure -----------------------------------------------------------------------------------------------------

    def erase(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        *,
        reason: str,
    ) -> ErasureReceipt:
        """Erase everything of a subject, search for residue of it, and return a signed receipt.

        Memories, history, messages, summaries, relations, merges, queued jobs, import checkpoints, vector snapshots and
        projections are erased, in all scopes that have the given ids. Then every table, file and projection is searched
        for fingerprints of the erased data. An erasure that is interrupted is finished by the next call, or when the
        store is opened again.

        Args:
            user_id, agent_id, run_id: Ids of the subject; at least one is required.
            reason: Reason for the receipt, such as the number of a request. Do not quote the data.

        Returns:
            The receipt. It contains counts and digests, and no text of the subject. ``complete`` is True if nothing was
            found; ``out_of_reach`` names the earlier backups.

        Raises:
            ScopeError: No id is given.
            InputError: The reason is missing, or quotes the data.
            StoreError: The store or a projection failed. The erasure stays on record and will be resumed.
        """
        return self._run(self._erase_flow(ids=(user_id, agent_id, run_id), reason=reason))

    def erasures(self) -> list[ErasureReceipt]:
        """Return the receipts of all erasures of this store, oldest first."""
        return self._run(self._erasures_flow())

    def verify_receipt(
        self,
        receipt: Mapping[str, Any],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> bool:
        """Return True if this store signed a receipt and nothing in it was changed.

        Args:
            user_id, agent_id, run_id: Also require that the receipt is about exactly this subject.
        """
        return self._run(self._verify_receipt_flow(receipt, ids=(user_id, agent_id, run_id)))

    # --- Administration ----------------------------------------------------------------------------------------------

    def rebuild(self, *, on_progress: Callable[[int, int | None], object] | None = None) -> int:
        """Embed all texts again with the current embedder, and return the number of memories.

        Use it to change the embedder of a store. The old vectors serve until the last new one is ready. Writes go on:
        what they change is embedded in a further round.

        Args:
            on_progress: Called with the number of embedded texts and the total.

        Raises:
            StoreError: Writes changed texts in every one of 20 rounds. Nothing is replaced.
        """
        return self._run(self._rebuild_flow(on_progress=on_progress))

    def backup(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Write a consistent copy of the store to one file while others write; `mem0-core restore` reads it.

        Args:
            path: New SQLite file, for a store in any database.
            overwrite: Replace an existing file.
            on_progress: Called with the number of copied pages and the total; for a store in a server, with the number
                of records and None.

        Returns:
            ``path``, ``bytes`` and ``memories`` of the copy, and its ``identity``, which receipts name.

        Raises:
            InputError: The file exists, and `overwrite` is not set. StoreError: it cannot be written.
        """
        return self._run(self._backup_flow(path, overwrite=overwrite, on_progress=on_progress))

    def doctor(
        self,
        *,
        repair: bool = True,
        deep: bool = False,
        torn: str | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Check the primary store and compare every projection with it; repair problems where possible.

        Args:
            repair: False only reports.
            deep: Also derive all contents again and report what differs, see `verify`.
            torn: Result of `mem0_core.admin.doctor.find_log_damage`, called before the store was opened.
            on_progress: Called with the number of finished checks and the total.

        Returns:
            ``healthy``, the ``checked`` parts, and ``findings``: each ``where``, ``what``, ``mended``, ``action``.
        """
        return self._run(self._doctor_flow(repair=repair, deep=deep, torn=torn, on_progress=on_progress))

    def verify(self) -> VerifyResult:
        """Derive memories, words, vectors and relations from history and messages, and compare one digest.

        Memories come from their history, words and vectors from the texts, and relations by rules from their messages.
        Everything is embedded again.

        Returns:
            ``agrees``; ``digest`` of the stored contents, and ``derived`` of the derived ones; ``counts`` of compared
            items by part; ``differences`` and ``underivable``, each with ``part``, ``item`` and ``reason``.

        Raises:
            CapabilityError: The store has no maintenance.
            ModelError: The embedder failed.
        """
        return self._run(self._verify_flow())

    def stats(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Return record counts of a scope; without an id, of the whole store and with its size on disk."""
        return self._run(self._stats_flow(ids=(user_id, agent_id, run_id)))

    def export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        format: Literal["jsonl", "csv", "pam", "mif"] = "jsonl",
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Write the data of a scope to files; without an id, of all scopes. See `mem0_core.interchange.export_jsonl`.

        Args:
            path: A file, or for ``"csv"`` a folder for ``nodes.csv`` and ``edges.csv``.
            format: ``"jsonl"``, JSON Lines with everything; ``"csv"``, the graph; or ``"pam"`` or ``"mif"``, the
                memories in an open form (docs/how-to/switch.md).
            overwrite: Replace existing files.
            on_progress: Called with the number of written lines, and None.

        Returns:
            ``files``, and ``written``: the number of records of each kind.

        Raises:
            InputError: A file exists and `overwrite` is not set, or it cannot be written.
        """
        flow = self._export_flow(
            path, ids=(user_id, agent_id, run_id), format=format, overwrite=overwrite, on_progress=on_progress
        )
        return self._run(flow)

    def adopt(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]] = (),
        messages: Sequence[Mapping[str, Any]] = (),
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Import memories from another store with their ids, times and metadata; existing memories stay unchanged.

        They are embedded again, unless their vectors are given and the embedder would make the same; without a model,
        rules extract their relations. An interrupted import resumes with a second call. The policy applies to each
        memory, its history and its messages.

        Args:
            memories: Each with ``id``, ``memory``, ``created_at``, at least one of user_id, agent_id and run_id, and
                optionally ``updated_at``, ``metadata``, ``actor_id``, ``role``, ``expiration_date``, ``useful``,
                ``useless``, ``trust`` (default: ``user``), the ids of its source ``messages``, and ``vector``.
            history: Rows of mem0's history table, stored under their own ids.
            messages: Each with ``id``, ``digest`` (identifies a repeated message), ``role``, ``content``,
                ``created_at``, its ids, and optionally ``name``, ``metadata``, ``source`` and ``trust``. Messages that
                are sources only of memories deleted here are not imported.
            on_progress: Called with the number of processed memories and the total.

        Returns:
            ``added``, ``known`` (same id or same words), ``deleted`` (deleted here after an earlier import),
            ``history``, the number of new rows, ``adopted_messages``, the number of imported messages, and ``vectors``:
            how many were ``moved`` and ``embedded``, and the ``reason``.

        Raises:
            InputError, ScopeError: An item cannot be stored; the error names it, and nothing is written.
        """
        return self._run(self._adopt_flow(memories, history=history, messages=messages, on_progress=on_progress))

    # --- Async methods, generated by tools/generate_memory.py: do not edit -------------------------------------------

    async def aadd(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        keep: Literal["all", "statements"] = "all",
        facts_about: Literal["auto", "owner", "user", "agent"] = "auto",
        memory_type: str | None = None,
        prompt: str | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        ttl: timedelta | float | None = None,
        dry_run: bool = False,
        background: bool = False,
        max_pending: int | None = None,
        source: str | None = None,
        trust: TrustClass | None = None,
    ) -> AddResult:
        """Async version of `add`."""
        flow = self._add_flow(
            messages,
            ids=(user_id, agent_id, run_id),
            metadata=metadata,
            infer=infer,
            keep=keep,
            facts_about=facts_about,
            memory_type=memory_type,
            prompt=prompt,
            timestamp=timestamp,
            expiration_date=expiration_date,
            ttl=ttl,
            dry_run=dry_run,
            background=background,
            max_pending=max_pending,
            origin=(source, trust),
        )
        return self._to_version(await self._arun(flow), "add")

    async def aadd_many(
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
        source: str | None = None,
        trust: TrustClass | None = None,
        on_progress: Callable[[int, int | None], None] | None = None,
    ) -> AddManyResult:
        """Async version of `add_many`."""
        flow = self._add_many_flow(
            messages,
            ids=(user_id, agent_id, run_id),
            metadata=metadata,
            infer=infer,
            chunk=chunk,
            key=key,
            origin=(source, trust),
            on_progress=on_progress,
        )
        return await self._arun(flow)

    async def apending(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[JobDict]:
        """Async version of `pending`."""
        return await self._arun(self._pending_flow(ids=(user_id, agent_id, run_id)))

    async def aflush(self, timeout: float | None = None) -> bool:
        """Async version of `flush`."""
        return await self._arun(self._flush_flow(timeout))

    async def aretry(
        self, job_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> None:
        """Async version of `retry`."""
        return await self._arun(self._retry_flow(job_id, ids=(user_id, agent_id, run_id)))

    async def asearch(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        explain: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
        include_superseded: bool = False,
    ) -> SearchResult:
        """Async version of `search`."""
        flow = self._search_flow(
            query,
            ids=(user_id, agent_id, run_id),
            limit=limit,
            top_k=top_k,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            recipe=recipe,
            explain=explain,
            as_of=as_of,
            reference_date=reference_date,
            allow_no_answer=allow_no_answer,
            include_superseded=include_superseded,
        )
        return self._to_version(await self._arun(flow), "search")

    async def aanswer(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> AnswerDict:
        """Async version of `answer`."""
        flow = self._answer_flow(
            question,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            min_trust=min_trust,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self._arun(flow)

    async def aexplain_missing(
        self,
        query: str,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
    ) -> MissingDict:
        """Async version of `explain_missing`."""
        flow = self._explain_missing_flow(
            query,
            memory_id,
            ids=(user_id, agent_id, run_id),
            limit=limit,
            top_k=top_k,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            recipe=recipe,
            as_of=as_of,
            reference_date=reference_date,
            allow_no_answer=allow_no_answer,
        )
        return await self._arun(flow)

    async def acontext(
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
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        exclude: Sequence[str] = (),
        introduction: str = MEMORIES_INTRODUCTION,
        count_tokens: Callable[[str], int] | None = None,
        citations: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> ContextDict:
        """Async version of `context`."""
        flow = self._context_flow(
            query,
            ids=(user_id, agent_id, run_id),
            max_tokens=max_tokens,
            limit=limit,
            recent=recent,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            recipe=recipe,
            exclude=exclude,
            introduction=introduction,
            count_tokens=count_tokens,
            citations=citations,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self._arun(flow)

    async def aget(
        self, memory_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> MemoryDict | None:
        """Async version of `get`."""
        return await self._arun(self._get_flow(memory_id, ids=(user_id, agent_id, run_id)))

    async def aget_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        min_trust: TrustClass | None = None,
        show_expired: bool = False,
    ) -> SearchResult:
        """Async version of `get_all`."""
        flow = self._get_all_flow(
            ids=(user_id, agent_id, run_id),
            filters=filters,
            limit=limit,
            top_k=top_k,
            min_trust=min_trust,
            show_expired=show_expired,
        )
        return self._to_version(await self._arun(flow), "get_all")

    async def ahistory(
        self, memory_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[HistoryDict]:
        """Async version of `history`."""
        return await self._arun(self._history_flow(memory_id, ids=(user_id, agent_id, run_id)))

    async def achanges(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> ChangesDict:
        """Async version of `changes`."""
        return await self._arun(self._changes_flow(after=after, limit=limit, ids=(user_id, agent_id, run_id)))

    async def apin(
        self,
        memory_id: str,
        pinned: bool = True,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Async version of `pin`."""
        return await self._arun(self._pin_flow(memory_id, pinned, ids=(user_id, agent_id, run_id)))

    async def afeedback(
        self,
        memory_id: str,
        useful: bool | None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> FeedbackDict:
        """Async version of `feedback`."""
        return await self._arun(self._feedback_flow(memory_id, useful, ids=(user_id, agent_id, run_id)))

    async def acount_citations(
        self,
        answer: str,
        citations: Mapping[str, str],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[str]:
        """Async version of `count_citations`."""
        return await self._arun(self._count_citations_flow(answer, citations, ids=(user_id, agent_id, run_id)))

    async def arelations(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        ended: bool = False,
        limit: int | None = None,
    ) -> list[RelationDict]:
        """Async version of `relations`."""
        flow = self._relations_flow(ids=(user_id, agent_id, run_id), as_of=as_of, include_ended=ended, limit=limit)
        return await self._arun(flow)

    async def atraverse(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        limit: int = 5,
        depth: int | None = None,
    ) -> list[PathDict]:
        """Async version of `traverse`."""
        flow = self._traverse_flow(question, ids=(user_id, agent_id, run_id), as_of=as_of, limit=limit, depth=depth)
        return await self._arun(flow)

    async def aquery(
        self,
        text: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> QueryResult:
        """Async version of `query`."""
        flow = self._query_flow(text, ids=(user_id, agent_id, run_id), as_of=as_of, parameters=parameters)
        return await self._arun(flow)

    async def avisualize(
        self,
        path: str | Path | None = None,
        *,
        entities: Sequence[str] | None = None,
        depth: int = 2,
        limit: int = 5_000,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> str:
        """Async version of `visualize`."""
        flow = self._visualize_flow(path, ids=(user_id, agent_id, run_id), entities=entities, depth=depth, limit=limit)
        return await self._arun(flow)

    async def amerge(
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
    ) -> MergeResult:
        """Async version of `merge`."""
        flow = self._merge_flow(
            what, ids=(user_id, agent_id, run_id), names=names, into=into, threshold=threshold, dry_run=dry_run
        )
        return await self._arun(flow)

    async def aunmerge(
        self, merge_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> MergeDict:
        """Async version of `unmerge`."""
        return await self._arun(self._unmerge_flow(merge_id, ids=(user_id, agent_id, run_id)))

    async def amerges(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[MergeDict]:
        """Async version of `merges`."""
        return await self._arun(self._merges_flow(ids=(user_id, agent_id, run_id)))

    async def aupdate(
        self,
        memory_id: str,
        data: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Async version of `update`."""
        return await self._arun(self._update_flow(memory_id, data, metadata, ids=(user_id, agent_id, run_id)))

    async def aupdate_by_query(
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
    ) -> ByQueryResult:
        """Async version of `update_by_query`."""
        flow = self._update_by_query_flow(
            query,
            data,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            threshold=threshold,
            limit=limit,
            metadata=metadata,
            dry_run=dry_run,
        )
        return await self._arun(flow)

    async def adelete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> dict[str, Any]:
        """Async version of `delete`."""
        return await self._arun(self._delete_flow(memory_id, ids=(user_id, agent_id, run_id), purge=purge))

    async def adelete_by_query(
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
    ) -> ByQueryResult:
        """Async version of `delete_by_query`."""
        flow = self._delete_by_query_flow(
            query,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            threshold=threshold,
            limit=limit,
            purge=purge,
            dry_run=dry_run,
        )
        return await self._arun(flow)

    async def adelete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None, *, purge: bool = False
    ) -> dict[str, Any]:
        """Async version of `delete_all`."""
        return await self._arun(self._delete_all_flow(ids=(user_id, agent_id, run_id), purge=purge))

    async def areset(self) -> None:
        """Async version of `reset`."""
        return await self._arun(self._reset_flow())

    async def aretract(
        self,
        source: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> RetractResult:
        """Async version of `retract`."""
        return await self._arun(self._retract_flow(source, ids=(user_id, agent_id, run_id), purge=purge))

    async def aerase(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None, *, reason: str
    ) -> ErasureReceipt:
        """Async version of `erase`."""
        return await self._arun(self._erase_flow(ids=(user_id, agent_id, run_id), reason=reason))

    async def aerasures(self) -> list[ErasureReceipt]:
        """Async version of `erasures`."""
        return await self._arun(self._erasures_flow())

    async def averify_receipt(
        self,
        receipt: Mapping[str, Any],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> bool:
        """Async version of `verify_receipt`."""
        return await self._arun(self._verify_receipt_flow(receipt, ids=(user_id, agent_id, run_id)))

    async def arebuild(self, *, on_progress: Callable[[int, int | None], object] | None = None) -> int:
        """Async version of `rebuild`."""
        return await self._arun(self._rebuild_flow(on_progress=on_progress))

    async def abackup(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `backup`."""
        return await self._arun(self._backup_flow(path, overwrite=overwrite, on_progress=on_progress))

    async def adoctor(
        self,
        *,
        repair: bool = True,
        deep: bool = False,
        torn: str | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `doctor`."""
        return await self._arun(self._doctor_flow(repair=repair, deep=deep, torn=torn, on_progress=on_progress))

    async def averify(self) -> VerifyResult:
        """Async version of `verify`."""
        return await self._arun(self._verify_flow())

    async def astats(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Async version of `stats`."""
        return await self._arun(self._stats_flow(ids=(user_id, agent_id, run_id)))

    async def aexport(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        format: Literal["jsonl", "csv", "pam", "mif"] = "jsonl",
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `export`."""
        flow = self._export_flow(
            path, ids=(user_id, agent_id, run_id), format=format, overwrite=overwrite, on_progress=on_progress
        )
        return await self._arun(flow)

    async def aadopt(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]] = (),
        messages: Sequence[Mapping[str, Any]] = (),
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `adopt`."""
        return await self._arun(self._adopt_flow(memories, history=history, messages=messages, on_progress=on_progress))

    # --- End of the generated methods --------------------------------------------------------------------------------


@check_arguments(advise=advise_argument)
class AsyncMemory(SuggestsMethods):
    """`Memory` for asyncio: the same methods as coroutines.

    Takes the arguments of `Memory`, or an open `memory` to share.
    """

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        path: str | Path | None = None,
        memory: Memory | None = None,
        llm: ChatModel | Mapping[str, Any] | str | FrameworkModel | None = None,
        embedder: Embedder | Mapping[str, Any] | str | FrameworkModel | None = None,
        reranker: Reranker | Mapping[str, Any] | str | FrameworkModel | bool | None = None,
        store: MemoryStore | RecordStore | Mapping[str, Any] | str | Path | None = None,
        index: VectorIndex | FrameworkModel | None = None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None = None,
        keys: Keys | None = None,
        policy: Policy | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
    ) -> None:
        parts: dict[str, Any] = {
            "path": path,
            "llm": llm,
            "embedder": embedder,
            "reranker": reranker,
            "store": store,
            "index": index,
            "graph": graph,
            "keys": keys,
            "policy": policy,
            "on_step": on_step,
        }
        if memory is not None and any(part is not None for part in (config, *parts.values())):
            raise ConfigError("memory: pass an open memory or the arguments of a new one, not both")
        self.memory = memory if memory is not None else Memory(config, **parts)

    @classmethod
    def from_config(
        cls,
        config_dict: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
    ) -> Self:
        """Create a memory from mem0's configuration dict, or from a YAML or JSON file that holds one.

        Args:
            config_dict, config: Two names for the same argument; the first is mem0's.
        """
        return cls(choose_config(config_dict, config))

    def __await__(self) -> Generator[Any, None, Self]:
        """Return this memory: mem0's ``await AsyncMemory.from_config(...)`` works too."""
        yield from ()
        return self

    async def close(self) -> None:
        """Async version of `Memory.close`."""
        await self.memory.aclose()

    def __enter__(self) -> NoReturn:
        raise ArgumentError(
            "AsyncMemory is opened by 'async with', not by 'with'; write, for example, 'async with AsyncMemory() as"
            " memory:' in a coroutine, or use Memory"
        )

    def __exit__(self, *_: object) -> None:
        """Python looks for this method before it calls `__enter__`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- Async methods, generated by tools/generate_memory.py: do not edit -------------------------------------------

    async def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        keep: Literal["all", "statements"] = "all",
        facts_about: Literal["auto", "owner", "user", "agent"] = "auto",
        memory_type: str | None = None,
        prompt: str | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        ttl: timedelta | float | None = None,
        dry_run: bool = False,
        background: bool = False,
        max_pending: int | None = None,
        source: str | None = None,
        trust: TrustClass | None = None,
    ) -> AddResult:
        """Async version of `Memory.add`."""
        flow = self.memory._add_flow(
            messages,
            ids=(user_id, agent_id, run_id),
            metadata=metadata,
            infer=infer,
            keep=keep,
            facts_about=facts_about,
            memory_type=memory_type,
            prompt=prompt,
            timestamp=timestamp,
            expiration_date=expiration_date,
            ttl=ttl,
            dry_run=dry_run,
            background=background,
            max_pending=max_pending,
            origin=(source, trust),
        )
        return self.memory._to_version(await self.memory._arun(flow), "add")

    async def add_many(
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
        source: str | None = None,
        trust: TrustClass | None = None,
        on_progress: Callable[[int, int | None], None] | None = None,
    ) -> AddManyResult:
        """Async version of `Memory.add_many`."""
        flow = self.memory._add_many_flow(
            messages,
            ids=(user_id, agent_id, run_id),
            metadata=metadata,
            infer=infer,
            chunk=chunk,
            key=key,
            origin=(source, trust),
            on_progress=on_progress,
        )
        return await self.memory._arun(flow)

    async def pending(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[JobDict]:
        """Async version of `Memory.pending`."""
        return await self.memory._arun(self.memory._pending_flow(ids=(user_id, agent_id, run_id)))

    async def flush(self, timeout: float | None = None) -> bool:
        """Async version of `Memory.flush`."""
        return await self.memory._arun(self.memory._flush_flow(timeout))

    async def retry(
        self, job_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> None:
        """Async version of `Memory.retry`."""
        return await self.memory._arun(self.memory._retry_flow(job_id, ids=(user_id, agent_id, run_id)))

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        explain: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
        include_superseded: bool = False,
    ) -> SearchResult:
        """Async version of `Memory.search`."""
        flow = self.memory._search_flow(
            query,
            ids=(user_id, agent_id, run_id),
            limit=limit,
            top_k=top_k,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            recipe=recipe,
            explain=explain,
            as_of=as_of,
            reference_date=reference_date,
            allow_no_answer=allow_no_answer,
            include_superseded=include_superseded,
        )
        return self.memory._to_version(await self.memory._arun(flow), "search")

    async def answer(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> AnswerDict:
        """Async version of `Memory.answer`."""
        flow = self.memory._answer_flow(
            question,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            min_trust=min_trust,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self.memory._arun(flow)

    async def explain_missing(
        self,
        query: str,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        allow_no_answer: bool = False,
    ) -> MissingDict:
        """Async version of `Memory.explain_missing`."""
        flow = self.memory._explain_missing_flow(
            query,
            memory_id,
            ids=(user_id, agent_id, run_id),
            limit=limit,
            top_k=top_k,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            recipe=recipe,
            as_of=as_of,
            reference_date=reference_date,
            allow_no_answer=allow_no_answer,
        )
        return await self.memory._arun(flow)

    async def context(
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
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        recipe: Recipe | Mapping[str, Any] | str | None = None,
        exclude: Sequence[str] = (),
        introduction: str = MEMORIES_INTRODUCTION,
        count_tokens: Callable[[str], int] | None = None,
        citations: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> ContextDict:
        """Async version of `Memory.context`."""
        flow = self.memory._context_flow(
            query,
            ids=(user_id, agent_id, run_id),
            max_tokens=max_tokens,
            limit=limit,
            recent=recent,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            recipe=recipe,
            exclude=exclude,
            introduction=introduction,
            count_tokens=count_tokens,
            citations=citations,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self.memory._arun(flow)

    async def get(
        self, memory_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> MemoryDict | None:
        """Async version of `Memory.get`."""
        return await self.memory._arun(self.memory._get_flow(memory_id, ids=(user_id, agent_id, run_id)))

    async def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        top_k: int | None = None,
        min_trust: TrustClass | None = None,
        show_expired: bool = False,
    ) -> SearchResult:
        """Async version of `Memory.get_all`."""
        flow = self.memory._get_all_flow(
            ids=(user_id, agent_id, run_id),
            filters=filters,
            limit=limit,
            top_k=top_k,
            min_trust=min_trust,
            show_expired=show_expired,
        )
        return self.memory._to_version(await self.memory._arun(flow), "get_all")

    async def history(
        self, memory_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[HistoryDict]:
        """Async version of `Memory.history`."""
        return await self.memory._arun(self.memory._history_flow(memory_id, ids=(user_id, agent_id, run_id)))

    async def changes(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> ChangesDict:
        """Async version of `Memory.changes`."""
        flow = self.memory._changes_flow(after=after, limit=limit, ids=(user_id, agent_id, run_id))
        return await self.memory._arun(flow)

    async def pin(
        self,
        memory_id: str,
        pinned: bool = True,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        """Async version of `Memory.pin`."""
        return await self.memory._arun(self.memory._pin_flow(memory_id, pinned, ids=(user_id, agent_id, run_id)))

    async def feedback(
        self,
        memory_id: str,
        useful: bool | None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> FeedbackDict:
        """Async version of `Memory.feedback`."""
        return await self.memory._arun(self.memory._feedback_flow(memory_id, useful, ids=(user_id, agent_id, run_id)))

    async def count_citations(
        self,
        answer: str,
        citations: Mapping[str, str],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> list[str]:
        """Async version of `Memory.count_citations`."""
        flow = self.memory._count_citations_flow(answer, citations, ids=(user_id, agent_id, run_id))
        return await self.memory._arun(flow)

    async def relations(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        ended: bool = False,
        limit: int | None = None,
    ) -> list[RelationDict]:
        """Async version of `Memory.relations`."""
        flow = self.memory._relations_flow(
            ids=(user_id, agent_id, run_id), as_of=as_of, include_ended=ended, limit=limit
        )
        return await self.memory._arun(flow)

    async def traverse(
        self,
        question: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        limit: int = 5,
        depth: int | None = None,
    ) -> list[PathDict]:
        """Async version of `Memory.traverse`."""
        flow = self.memory._traverse_flow(
            question, ids=(user_id, agent_id, run_id), as_of=as_of, limit=limit, depth=depth
        )
        return await self.memory._arun(flow)

    async def query(
        self,
        text: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        as_of: int | float | str | datetime | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> QueryResult:
        """Async version of `Memory.query`."""
        flow = self.memory._query_flow(text, ids=(user_id, agent_id, run_id), as_of=as_of, parameters=parameters)
        return await self.memory._arun(flow)

    async def visualize(
        self,
        path: str | Path | None = None,
        *,
        entities: Sequence[str] | None = None,
        depth: int = 2,
        limit: int = 5_000,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> str:
        """Async version of `Memory.visualize`."""
        flow = self.memory._visualize_flow(
            path, ids=(user_id, agent_id, run_id), entities=entities, depth=depth, limit=limit
        )
        return await self.memory._arun(flow)

    async def merge(
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
    ) -> MergeResult:
        """Async version of `Memory.merge`."""
        flow = self.memory._merge_flow(
            what, ids=(user_id, agent_id, run_id), names=names, into=into, threshold=threshold, dry_run=dry_run
        )
        return await self.memory._arun(flow)

    async def unmerge(
        self, merge_id: str, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> MergeDict:
        """Async version of `Memory.unmerge`."""
        return await self.memory._arun(self.memory._unmerge_flow(merge_id, ids=(user_id, agent_id, run_id)))

    async def merges(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> list[MergeDict]:
        """Async version of `Memory.merges`."""
        return await self.memory._arun(self.memory._merges_flow(ids=(user_id, agent_id, run_id)))

    async def update(
        self,
        memory_id: str,
        data: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Async version of `Memory.update`."""
        flow = self.memory._update_flow(memory_id, data, metadata, ids=(user_id, agent_id, run_id))
        return await self.memory._arun(flow)

    async def update_by_query(
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
    ) -> ByQueryResult:
        """Async version of `Memory.update_by_query`."""
        flow = self.memory._update_by_query_flow(
            query,
            data,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            threshold=threshold,
            limit=limit,
            metadata=metadata,
            dry_run=dry_run,
        )
        return await self.memory._arun(flow)

    async def delete(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> dict[str, Any]:
        """Async version of `Memory.delete`."""
        flow = self.memory._delete_flow(memory_id, ids=(user_id, agent_id, run_id), purge=purge)
        return await self.memory._arun(flow)

    async def delete_by_query(
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
    ) -> ByQueryResult:
        """Async version of `Memory.delete_by_query`."""
        flow = self.memory._delete_by_query_flow(
            query,
            ids=(user_id, agent_id, run_id),
            filters=filters,
            threshold=threshold,
            limit=limit,
            purge=purge,
            dry_run=dry_run,
        )
        return await self.memory._arun(flow)

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None, *, purge: bool = False
    ) -> dict[str, Any]:
        """Async version of `Memory.delete_all`."""
        return await self.memory._arun(self.memory._delete_all_flow(ids=(user_id, agent_id, run_id), purge=purge))

    async def reset(self) -> None:
        """Async version of `Memory.reset`."""
        return await self.memory._arun(self.memory._reset_flow())

    async def retract(
        self,
        source: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        purge: bool = False,
    ) -> RetractResult:
        """Async version of `Memory.retract`."""
        return await self.memory._arun(self.memory._retract_flow(source, ids=(user_id, agent_id, run_id), purge=purge))

    async def erase(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None, *, reason: str
    ) -> ErasureReceipt:
        """Async version of `Memory.erase`."""
        return await self.memory._arun(self.memory._erase_flow(ids=(user_id, agent_id, run_id), reason=reason))

    async def erasures(self) -> list[ErasureReceipt]:
        """Async version of `Memory.erasures`."""
        return await self.memory._arun(self.memory._erasures_flow())

    async def verify_receipt(
        self,
        receipt: Mapping[str, Any],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> bool:
        """Async version of `Memory.verify_receipt`."""
        return await self.memory._arun(self.memory._verify_receipt_flow(receipt, ids=(user_id, agent_id, run_id)))

    async def rebuild(self, *, on_progress: Callable[[int, int | None], object] | None = None) -> int:
        """Async version of `Memory.rebuild`."""
        return await self.memory._arun(self.memory._rebuild_flow(on_progress=on_progress))

    async def backup(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `Memory.backup`."""
        return await self.memory._arun(self.memory._backup_flow(path, overwrite=overwrite, on_progress=on_progress))

    async def doctor(
        self,
        *,
        repair: bool = True,
        deep: bool = False,
        torn: str | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `Memory.doctor`."""
        flow = self.memory._doctor_flow(repair=repair, deep=deep, torn=torn, on_progress=on_progress)
        return await self.memory._arun(flow)

    async def verify(self) -> VerifyResult:
        """Async version of `Memory.verify`."""
        return await self.memory._arun(self.memory._verify_flow())

    async def stats(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, Any]:
        """Async version of `Memory.stats`."""
        return await self.memory._arun(self.memory._stats_flow(ids=(user_id, agent_id, run_id)))

    async def export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        format: Literal["jsonl", "csv", "pam", "mif"] = "jsonl",
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `Memory.export`."""
        flow = self.memory._export_flow(
            path, ids=(user_id, agent_id, run_id), format=format, overwrite=overwrite, on_progress=on_progress
        )
        return await self.memory._arun(flow)

    async def adopt(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]] = (),
        messages: Sequence[Mapping[str, Any]] = (),
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> dict[str, Any]:
        """Async version of `Memory.adopt`."""
        flow = self.memory._adopt_flow(memories, history=history, messages=messages, on_progress=on_progress)
        return await self.memory._arun(flow)

    # --- End of the generated methods --------------------------------------------------------------------------------
