"""What the pipelines need from the world: narrow protocols that models and stores fulfil.

Every method may have an ``a<method>`` twin (``acomplete``, ``aembed``, ``acommit``, ...) with the same arguments;
`flow.arun` awaits it, and uses a thread where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from mem0_core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel

    from mem0_core.domain.filters import Filter
    from mem0_core.domain.records import (
        DateRange,
        HistoryRow,
        MemoryChange,
        MemoryItem,
        Merge,
        MergeKind,
        Message,
        Node,
        Relation,
        RelationChange,
        Scope,
        Usage,
    )
    from mem0_core.graph.adjacency import AdjacencyIndex
    from mem0_core.interfaces.archive import Archive
    from mem0_core.interfaces.maintenance import StoreMaintenance

__all__ = [
    "ChangePosition",
    "ChatModel",
    "CommitResult",
    "EdgeRow",
    "EmbeddedItem",
    "Embedder",
    "GraphChanges",
    "GraphDelta",
    "GraphIndex",
    "GraphMemory",
    "GraphNeighborhood",
    "GraphOptions",
    "GraphStore",
    "Job",
    "JobKind",
    "JobQueue",
    "Lease",
    "Lexicon",
    "MemoryFeatureSet",
    "MemoryFeatures",
    "MemoryStore",
    "MergeLedger",
    "MergePlan",
    "MessageLog",
    "NodeRow",
    "OnConflict",
    "Ports",
    "QueuedTurn",
    "Reply",
    "Reranker",
    "Summary",
    "Task",
    "Tool",
    "ToolCall",
    "VectorChanges",
    "VectorIndex",
    "VectorSource",
    "check_embedding_space",
    "drop_below_threshold",
]

Task = Literal[
    "facts",
    "operations",
    "entities",
    "relations",
    "outdated",
    "refined",
    "triplets",
    "fused",
    "summary",
    "describe_image",
    "procedural",
    "rerank",
    "repair",
]
"""What a model call is for. Usage is counted by task, and a scripted model knows by it what it is asked."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function a model may call; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Any] | str
    """As the model gave them: a mapping, or the raw string where that was not a JSON object."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a chat model answered."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A language model. Raises ModelError when the call fails for good.

    It may have an attribute ``supports``, a collection of "schema" and "tools", which decides how it is asked, and a
    method ``count_tokens(text) -> int``, by which budgets are kept; without it tokens are estimated.
    """

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """Answer `messages` (OpenAI's role/content form; image parts as ``image_url``).

        `schema` asks for JSON of that shape. A model that cannot promise it answers as well as it can:
        `replies` reads whatever comes.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors. `name` identifies the vector space: two embedders of one name are interchangeable."""

    @property
    def dims(self) -> int: ...
    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed a batch: returns (n, dims) float32, each row of L2 norm 1."""
        ...


@runtime_checkable
class Reranker(Protocol):
    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Relevance in [0, 1] of each text to the query, in the order given."""
        ...


OnConflict = Literal["invalidate", "delete"]
"""What becomes of a relation that no longer holds: it ends and stays in the record, or it is removed (seed 000)."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit did, change by change.

    Attributes:
        applied: for each planned change, the change as it took effect. An ADD of a fact the scope already
            holds comes back as NONE with the memory that holds it.
        relations: the changes to the graph, likewise: an ADD of what already holds is NONE (its weight rose), and
            those that followed from changes to memories are there as well.
        conflicts: positions of UPDATEs and DELETEs whose memory no longer held the text they were planned on.
            When there is one, nothing of the plan was written and `applied` is empty.
        lost: another worker has taken a job of the lease; nothing was written.
    """

    applied: tuple[MemoryChange, ...] = ()
    relations: tuple[RelationChange, ...] = ()
    conflicts: tuple[int, ...] = ()
    lease_lost: bool = False


@dataclass(frozen=True, slots=True)
class EmbeddedItem:
    """Something a store holds a vector of: the memory, past memory, node or relation with this row."""

    kind: Literal["memory", "past", "node", "relation"]
    row: int
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """How far the truth has come in one scope; equal positions mean nothing changed.

    Attributes:
        epoch: changes when the past was rewritten (purge, reset, re-embedding): projections start anew.
        seq: number of the last change in this scope, 0 for none.
    """

    epoch: str
    seq: int


@dataclass(frozen=True, slots=True)
class VectorChanges:
    """What a projection must apply to follow the truth.

    Attributes:
        rows: int64 row numbers that were added or re-embedded, (n,).
        vectors: their embeddings, (n, dims) float32.
        removed: int64 row numbers that are gone.
        upto: sequence number of the last row, where there are more to come; None where these are all.
    """

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    removed: NDArray[np.int64]
    next_after: int | None = None


class VectorSource(Protocol):
    """The side of the truth that vector projections read. Row numbers are the store's own and never reused."""

    def position(self, scope: Scope) -> ChangePosition: ...
    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        """Changes in `scope` with a sequence number above `after`, oldest first; at most `limit` rows at once."""
        ...

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The embeddings of those of `rows` that live, in any order."""
        ...

    def rows(self, scope: Scope) -> NDArray[np.int64]:
        """Row numbers of what lies in a scope."""
        ...


class VectorIndex(Protocol):
    """A projection that finds near vectors within a scope."""

    def nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> list[list[tuple[int, float]]]:
        """For each query (n, dims) up to k (row, cosine), best first; among `allowed_rows`, and of `threshold` or
        more."""
        ...

    def purge_deleted(self, scope: Scope | None) -> None:
        """Keep nothing on disk of what was deleted in a scope (None: anywhere); it may be built again."""
        ...

    def close(self) -> None: ...


def drop_below_threshold(
    found: list[list[tuple[int, float]]], threshold: float | None
) -> list[list[tuple[int, float]]]:
    """Of what `VectorIndex.nearest` finds, what has a cosine of `threshold` or more."""
    if threshold is None:
        return found
    return [[pair for pair in of_query if pair[1] >= threshold] for of_query in found]


class MemoryFeatures(NamedTuple):
    """What ranking needs to know of a memory.

    Attributes:
        row: its number in the store; 0 for what is not in the store as it is ranked (a message that waits to be
            remembered, what a memory said before).
        session: the number of what it was said with, a run or one add; None for said by itself.
        length: how many words it has, those that say nothing included.
        asks: whether it ends with a question.
        terms: `words.Words.terms`, between spaces.
        names: `words.Words.names`, between newlines.
        at: ISO 8601 time the memory is from.
        before, after: rows of the memories said just before and after it in its session.
    """

    row: int
    session: int | None
    word_count: int
    is_question: bool
    terms: str
    names: str
    actor_id: str | None
    role: str | None
    timestamp: str
    previous_row: int | None = None
    next_row: int | None = None


class MemoryFeatureSet(NamedTuple):
    """Memories as ranking sees them.

    Attributes:
        found: each of them.
        beside: the terms, between spaces, of those said just before or after one of them, where they are not found.
        cosines: of all these, by row, to the vector that was asked with; empty where the store would have to read all
            the vectors for it, as an index has them at hand.
    """

    memories: list[MemoryFeatures]
    neighbor_terms: dict[int, str]
    cosines: Mapping[int, float]


class Lexicon(Protocol):
    """The words of memories: what finds them by a term, and what ranking needs of them. See
    `mem0_core.language.terms`."""

    def postings(
        self, scope: Scope, words: Sequence[str], *, kind: Literal["term", "name", "speaker"], limit: int
    ) -> dict[str, NDArray[np.int64]]:
        """For each of `words` that the scope has, the rows of its memories that have it, at most `most`.

        Args:
            kind: whether they are terms of memories, names in them, or words of the names of those who said them.
        """
        ...

    def memory_features(
        self, scope: Scope, rows: Sequence[int], *, today: str, vector: NDArray[np.float32]
    ) -> MemoryFeatureSet:
        """The living memories among `rows` that lie in `scope` and have not expired before `today`.

        Args:
            vector: the query's, (dims,).
        """
        ...


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """What a graph projection must apply to follow the truth: what came or changed, with its vectors, and what went.

    Attributes:
        upto: sequence number these changes reach.
        more: whether there are more to come.
    """

    nodes: tuple[tuple[Node, NDArray[np.float32]], ...]
    relations: tuple[tuple[Relation, NDArray[np.float32]], ...]
    removed_nodes: tuple[int, ...]
    removed_relations: tuple[int, ...]
    last_seq: int
    has_more: bool = False


NodeRow = tuple[int, str | None, bytes, str, str]
"""A node as a plain tuple: row, user_id, `records.entity_key`, name, type."""

EdgeRow = tuple[int, int, str, int, int, str, str | None, str | None, str | None]
"""A relation as a plain tuple: row, row of its source, relationship, row of its destination, weight, valid_from,
valid_to, and the first and last of the days its memories tell of (`records.Relation.days`)."""


@dataclass(frozen=True, slots=True)
class GraphDelta:
    """The graph of one scope without vectors and evidence, as it is at `position`, or what changed of it since another.

    Attributes:
        nodes, edges: those that came or changed, by their rows; edges that ended too.
        removed: rows of edges that are gone.
    """

    position: ChangePosition
    nodes: list[NodeRow]
    edges: list[EdgeRow]
    removed_edges: list[int]


class GraphStore(Protocol):
    """The graph as the truth holds it: all that is shown of it comes from here, whatever found it.

    `as_of` (ISO 8601 in UTC) means what held then; without it, what holds now.
    """

    def store_id(self) -> str:
        """A name no other store has, so that several can share one database of a projection."""
        ...

    @property
    def node_vectors(self) -> VectorSource: ...
    @property
    def relation_vectors(self) -> VectorSource:
        """Of the relations that hold; `vectors` knows those of the others too."""
        ...

    def relations(
        self, scope: Scope, *, as_of: str | None = None, include_ended: bool = False, limit: int | None = None
    ) -> list[Relation]:
        """Relations of a scope, oldest first; with `include_ended` those that no longer hold too."""
        ...

    def relations_by_rows(
        self, rows: Sequence[int], *, scope: Scope, with_evidence: bool = True
    ) -> dict[int, Relation]:
        """Those of `rows` that lie in `scope`, ended ones too; without `with_evidence`, `memories` is left empty."""
        ...

    def nodes_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, Node]: ...

    def nodes_by_names(self, scope: Scope, names: Sequence[str]) -> dict[bytes, tuple[Node, NDArray[np.float32]]]:
        """The nodes of exactly this scope that have one of `names`, with their vectors, by `records.entity_key`."""
        ...

    def incident_relation_rows(
        self, nodes: Sequence[int], *, scope: Scope, limit: int, as_of: str | None = None
    ) -> dict[int, list[int]]:
        """For each node the rows of relations from or to it, the newest first, at most `limit`."""
        ...

    def valid_relation_rows(self, rows: Sequence[int], *, as_of: str | None = None) -> set[int]:
        """Those of the relations that hold."""
        ...

    def supporting_memory_rows(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """For each of the relations the rows of the living memories that say it."""
        ...

    def event_dates(self, memories: Sequence[int]) -> dict[int, list[DateRange]]:
        """For rows of memories the days that the relations they say are told of, whichever memory tells them."""
        ...

    def ended_relation_vectors(self, scope: Scope, *, as_of: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows and embeddings, (n, dims), of the relations that held then and hold no longer."""
        ...

    def position(self) -> ChangePosition:
        """How far the graph of everybody has come."""
        ...

    def delta_since(self, scope: Scope, *, after: int = 0) -> GraphDelta:
        """All nodes and relations of a scope that came or changed after sequence number `after`, read at one moment.

        It is what walks in memory follow: it carries no vectors, so that a hundred thousand rows are read in a moment.
        """
        ...

    def changes(self, *, after: int = 0, limit: int = 500) -> GraphChanges:
        """What changed in the graph of everybody since sequence number `after`, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class GraphNeighborhood:
    """What a graph holds around one entity: (row, cosine), best first; a relation has the cosine of its node."""

    nodes: list[tuple[int, float]]
    relations: list[tuple[int, float]]


class GraphIndex(Protocol):
    """A projection that searches the graph by vectors, within a scope.

    Each search brings the projection to where the truth is before it answers.

    Raises (by every method but `close`):
        StoreError: it cannot be reached. The truth has everything; the next call catches up.
    """

    @property
    def name(self) -> str: ...

    def neighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        """For each vector (n, dims): nodes with a cosine of at least `threshold`, and the relations one hop from them.

        At most `limit` nodes, and for each of them its `limit` newest relations.
        """
        ...

    def nearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        """For each vector up to k (row, cosine) of relations whose sentence is at least that near, best first."""
        ...

    def catch_up(self) -> None:
        """Come to where the truth is."""
        ...

    def relations(self, scope: Scope) -> list[Relation]:
        """All relations of a scope, ended ones too, as the projection holds them; to compare it with the truth."""
        ...

    def purge_deleted(self, scope: Scope | None) -> None:
        """Keep nothing of what was deleted in a scope (None: anywhere)."""
        ...

    def close(self) -> None: ...


JobKind = Literal["remember", "summary"]


@dataclass(frozen=True, slots=True)
class Job:
    """Work put off: messages to be remembered, or a summary to be made anew.

    Attributes:
        options: what else the add was given, as JSON.
        at: ISO 8601 time of the conversation.
        attempts: how often it failed, `error` says why at last.
        state: a parked job is not tried again until it is told to (`JobQueue.retry`).
    """

    row: int
    kind: JobKind
    scope: Scope
    messages: tuple[Message, ...]
    options: Mapping[str, Any]
    timestamp: str
    state: Literal["waiting", "leased", "parked"] = "waiting"
    attempts: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class QueuedTurn:
    """What a job to remember something is put off with; see `Job`."""

    timestamp: str
    messages: tuple[Message, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one worker to do some jobs, until it runs out or another worker takes them."""

    worker: str
    jobs: tuple[int, ...]


class JobQueue(Protocol):
    """Work put off, kept in the truth: nothing is lost or done twice, whoever dies when.

    Jobs of one partition (the first id of a scope) are done in their order, those of several at once.
    """

    def enqueue(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str,
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        max_jobs: int | None = None,
    ) -> int:
        """Keep the messages and the job, in one transaction; returns its number.

        Raises:
            LimitError: `most` jobs of the scope, or more, are there already. Nothing is kept.
        """
        ...

    def enqueue_turns(
        self, scope: Scope, turns: Sequence[QueuedTurn], *, import_checkpoint: tuple[str, int] | None = None
    ) -> list[int]:
        """Keep each turn, and a job to remember it, with the mark of an import, all in one transaction."""
        ...

    def lease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        """Take the oldest job that may be done now, with up to `most` that follow it and can be done with it."""
        ...

    def renew_lease(self, lease: Lease, *, seconds: float) -> bool:
        """Hold a lease for longer; False if another worker has it."""
        ...

    def release_failed(self, lease: Lease, *, error: str, retry_in: float | None) -> None:
        """Give jobs back that failed: to be tried again in so many seconds, or to be parked."""
        ...

    def release_leases(self, worker: str) -> None:
        """Free what a worker that is gone has leased."""
        ...

    def mark_done(self, lease: Lease) -> bool:
        """Remove jobs that left nothing to commit."""
        ...

    def list_jobs(self, scope: Scope | None = None) -> list[Job]: ...

    def unprocessed_messages(self, scope: Scope, *, limit: int) -> list[tuple[Job, Message]]:
        """The last messages that wait to be remembered, oldest first, each with its job, which has none itself."""
        ...

    def has_ready_job(self) -> bool:
        """Whether there is a job that may be leased now."""
        ...

    def retry(self, job: int) -> bool:
        """Let a parked job be tried again; False if there is none."""
        ...

    def next_attempt_at(self) -> float | None:
        """Unix time at which a job may be leased that cannot be now; None where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Summary:
    """What a conversation has been about, up to the message with row `upto`, which is of the time `valid_from`."""

    text: str
    last_message_row: int
    valid_from: str


class MessageLog(Protocol):
    """Conversations: the messages of a scope, oldest first, and the rolling summaries of them."""

    def messages(self, scope: Scope, *, limit: int | None = None) -> list[Message]:
        """The last `limit` messages of a scope, its narrower ones included."""
        ...

    def messages_before(self, scope: Scope, row: int | None, *, limit: int) -> list[Message]:
        """The last `limit` messages of exactly this scope before a row (None: of all)."""
        ...

    def messages_since(self, scope: Scope, row: int, *, limit: int) -> list[Message]:
        """The first `limit` messages of exactly this scope after a row."""
        ...

    def count_messages_since(self, scope: Scope, row: int, *, limit: int) -> int:
        """How many messages of exactly this scope there are after a row, counted up to `most`."""
        ...

    def latest_summary(self, scope: Scope, *, as_of: str | None = None) -> Summary | None:
        """The last summary of exactly this scope, or the last of that time."""
        ...


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What is to be merged.

    Attributes:
        node: the row of the entity that stays; None for relationships.
        nodes: rows of those that go.
        vectors: for the sentence of each relation that goes over, as it will read, its embedding.
    """

    merge: Merge
    kept_node: int | None = None
    merged_nodes: tuple[int, ...] = ()
    vectors: Mapping[str, Any] = field(default_factory=dict)


class MergeLedger(Protocol):
    """The merges of entities and relationships: done, taken back, and on record.

    A merge moves relations to the name that stays: one that is there already gains their weight and evidence, any other
    is made. What they were is kept beside, without texts and vectors, and loses what is erased meanwhile. While a merge
    stands, what a commit adds under a name that went is added under the one that stayed.
    """

    def apply(self, plan: MergePlan, *, at: str, embedding_space: tuple[str, int]) -> Merge | None:
        """Merge; None where the graph is no longer as planned, and nothing was done.

        Raises:
            ConfigError: the store holds the vectors of another embedder.
        """
        ...

    def texts_to_embed(self, merge_id: str) -> list[str]:
        """The names and sentences that come back with `revert`, which needs their vectors."""
        ...

    def revert(
        self, merge_id: str, vectors: Mapping[str, Any], *, at: str, embedding_space: tuple[str, int]
    ) -> Merge | None:
        """Take a merge back; None where it needs other vectors meanwhile, and nothing was done.

        What was erased, ended or withdrawn since stays so; what was added under its names since stays where it is.

        Raises:
            NotFoundError: no standing merge has that id.
            InputError: a later merge builds on it.
        """
        ...

    def list_merges(self, scope: Scope) -> list[Merge]:
        """The merges of a scope, oldest first, those taken back too."""
        ...

    def aliases(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> dict[bytes, str]:
        """`records.entity_key` of each name of a scope (or of `exact`ly this one) that went -> the name that stayed."""
        ...


@runtime_checkable
class MemoryStore(VectorSource, Protocol):
    """The one truth: memories, vectors, history, messages and graph, changed together or not at all.

    Every method raises StoreError when the database fails; what it was writing is then not written.
    """

    @property
    def graph(self) -> GraphStore: ...
    @property
    def merges(self) -> MergeLedger: ...
    @property
    def message_log(self) -> MessageLog: ...
    @property
    def jobs(self) -> JobQueue: ...
    @property
    def lexicon(self) -> Lexicon: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def maintenance(self) -> StoreMaintenance: ...

    def commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        embedding_space: tuple[str, int] | None = None,
        reject_duplicates: bool = False,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        import_checkpoint: tuple[str, int] | None = None,
        distinct_sessions: bool = False,
        replace_relations: bool = False,
    ) -> CommitResult:
        """Write a plan and the messages it came from in one transaction.

        What a memory said before an UPDATE or DELETE stays on record, for searches as of a day gone by; relations that
        only this memory supported, and that its new text no longer names, end with it.

        Args:
            at: ISO 8601 time of the change, for rows that do not carry their own.
            space: (name, dims) of the embedder that made the vectors. The first commit fixes it for the
                store; a later one with another is refused with ConfigError.
            refuse_twins: raise InputError for an UPDATE to what another memory of its scope says already. By
                default such a memory is deleted: its twin stands.
            relations: changes to the graph of `scope`. A node found by the plan and gone meanwhile is made anew; an
                ADD of what holds already raises its weight; a DELETE of what has ended already does nothing.
            on_conflict: what becomes of relations that end.
            lease: jobs that are done with this commit. If another worker has taken one, nothing is written.
            mark: the key of an import into `scope`, and how many of its messages are done with this commit.
            apart: what is added was not said together, unless its run says so.
            rederived: `relations` are all that the memories updated say now: what they said before is taken back first,
                whatever their texts name, and what nothing else says ends. What they say again weighs what it weighed.

        Messages already stored by an identical add are not stored again.
        """
        ...

    def import_checkpoint(self, scope: Scope, key: str) -> int:
        """How many messages of an import into exactly this scope are done; marks are erased with their scope."""
        ...

    def embedding_space(self) -> tuple[str, int] | None:
        """(name, dims) of the embedder whose vectors the store holds, None while it holds none."""
        ...

    def memories_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, MemoryItem]:
        """The living memories among `rows` that lie in `scope`."""
        ...

    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> NDArray[np.int64]:
        """Row numbers of the memories of a scope that pass the filter, and said then already what they say now."""
        ...

    def past_memories(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> tuple[list[MemoryItem], NDArray[np.float32]]:
        """What memories of a scope said then and no longer say, with its vectors, (n, dims)."""
        ...

    def get(self, memory_id: str) -> MemoryItem | None: ...

    def row(self, memory_id: str) -> int | None:
        """The row of a memory, None if there is none with that id."""
        ...

    def find_by_fact_keys(self, scope: Scope, keys: Sequence[bytes]) -> dict[bytes, MemoryItem]:
        """The memories of exactly this scope (no id more, no id less) that have one of `records.same_fact_key`."""
        ...

    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> list[MemoryItem]:
        """Memories of a scope (None: of everybody, for upkeep only), by `created_at`, oldest first."""
        ...

    def history(self, memory_id: str) -> list[HistoryRow]: ...

    def pin(self, memory_id: str, pinned: bool) -> bool:
        """Pin a memory, or let it go; False if there is none."""
        ...

    def pinned_memories(self, scope: Scope) -> list[MemoryItem]:
        """The pinned memories of a scope, oldest first."""
        ...

    def save_summary(self, scope: Scope, summary: Summary, lease: Lease) -> bool:
        """Keep a summary and be done with the jobs of a lease; False, and nothing kept, if another worker has one."""
        ...

    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> int:
        """Delete memories with all they ever said, their vectors, the messages they came from, and the relations
        that nothing else supports; returns how many there were.

        With `purge` their history goes too, and what the database keeps of deleted rows (free pages, a log) is
        scrubbed as far as the store reaches: each says how far.
        """
        ...

    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> int:
        """`erase` for everything in a scope, its messages included; purging reaches what was deleted before."""
        ...

    def embedded_items(self) -> list[EmbeddedItem]:
        """Everything the store holds a vector of."""
        ...

    def replace_vectors(self, vectors: Sequence[tuple[EmbeddedItem, Any]], *, embedding_space: tuple[str, int]) -> None:
        """Replace all vectors, and fix the new space, in one transaction.

        Raises:
            StoreError: something was added, changed or deleted since it was read; nothing is replaced.
        """
        ...

    def reset(self) -> None:
        """Empty the store, history included."""
        ...

    def close(self) -> None: ...


def check_embedding_space(held: tuple[str, int] | None, offered: tuple[str, int]) -> None:
    """Refuse an embedder whose vectors cannot be compared with those a store holds.

    Raises:
        ConfigError: naming both, and the command that re-embeds the store.
    """
    if held is not None and tuple(held) != tuple(offered):
        raise ConfigError(
            f"embedder: this store was embedded with {held[0]!r} ({held[1]} dims), not {offered[0]!r}"
            f" ({offered[1]} dims); open it with that embedder, or re-embed it with memory.rebuild()"
            " or the command `mem0-core rebuild`"
        )


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """How the graph is kept and searched.

    Attributes:
        threshold: t, the cosine from which two names are one node (seed 002: 0.7).
        prompt: instructions added to the relations prompt (mem0's `custom_prompt`).
        strict: give tools their strict structured-output form.
        existing: how many relations around each entity, and near each new one, a model weighs the new against.
        limit: n, how many relations a search returns (seed 002: 5).
        triplet_threshold: the cosine from which a relation's sentence answers a query by itself.
        query_entities: who names the entities of a query, a model (seed 002; one call per search) or rules.
        relations: whether a model finds relations step by step, or by one question (seed 003).
        on_conflict: what becomes of relations that no longer hold.
    """

    threshold: float = 0.7
    prompt: str | None = None
    strict: bool = False
    existing: int = 10
    limit: int = 5
    triplet_threshold: float = 0.4
    query_entities: Literal["model", "rules"] = "model"
    relations: Literal["staged", "triplets"] = "staged"
    on_conflict: OnConflict = "invalidate"


@dataclass(frozen=True, slots=True)
class GraphMemory:
    """Graph memory as one memory is wired with it.

    Attributes:
        index: the projection that is searched.
        embedded: the one that lies beside the truth, and answers where `index` cannot be reached.
        chat: the model that reads entities and relations; None for rules.
    """

    index: GraphIndex
    embedded_index: GraphIndex
    chat: ChatModel | None = None
    options: GraphOptions = GraphOptions()


@dataclass(frozen=True, slots=True)
class Ports:
    """The models and stores one memory is wired with; every pipeline takes it first.

    `adjacency` keeps the graph in memory between walks; without it each walk reads the graph of its scope anew.
    `traversal_weights` are weights of walks that differ from those of `graph.traverse.Weights`.
    """

    store: MemoryStore
    index: VectorIndex
    embedder: Embedder
    chat: ChatModel | None = None
    reranker: Reranker | None = None
    graph: GraphMemory | None = None
    adjacency: AdjacencyIndex | None = None
    traversal_weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def on_conflict(self) -> OnConflict:
        """What becomes of relations that end; memories can end some where graph memory is off now."""
        return self.graph.options.on_conflict if self.graph else "invalidate"
