"""The nouns of the system: plain, immutable values that know nothing of stores or models."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NotRequired, TypedDict

from mem0_core.domain.mention_index import words_of
from mem0_core.domain.normalization import normalize
from mem0_core.errors import ScopeError

__all__ = [
    "AddManyResult",
    "AddResult",
    "AddedMemory",
    "Axis",
    "ByQueryResult",
    "ContextDict",
    "DateRange",
    "DistinctNamesDict",
    "Entity",
    "Event",
    "Fact",
    "HistoryDict",
    "HistoryRow",
    "Hit",
    "JobDict",
    "LaggingProjection",
    "MatchedMemory",
    "MemoryChange",
    "MemoryDict",
    "MemoryItem",
    "Merge",
    "MergeDict",
    "MergeKind",
    "MergeResult",
    "Message",
    "Node",
    "Operation",
    "PathDict",
    "QueryResult",
    "Relation",
    "RelationChange",
    "RelationChangesDict",
    "RelationDict",
    "Scope",
    "SearchResult",
    "SkippedItem",
    "StepDict",
    "Triplet",
    "Usage",
    "UsageDict",
    "content_hash",
    "drops_mention",
    "entity_key",
    "expires_later",
    "is_expired",
    "is_valid_text",
    "mentions_name",
    "new_id",
    "same_fact_key",
]


class Event(StrEnum):
    """What happens to a memory (seed 000, step 4). The paper's NOOP is called NONE."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


class Axis(StrEnum):
    """The three kinds of id a memory is addressed by, in the order that decides its partition."""

    USER = "user_id"
    AGENT = "agent_id"
    RUN = "run_id"


@dataclass(frozen=True, slots=True)
class Scope:
    """The address of a memory: at least one of user, agent and run.

    An id is any non-empty string but ``"*"`` (a wildcard in filters, never an id). An axis left out
    does not restrict: a search in ``Scope(user_id="u")`` sees all runs and agents of u.

    Raises:
        ScopeError: no id, an empty one, ``"*"``, one that is not a string or is no valid Unicode.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        for axis in Axis:
            _check_id(axis, getattr(self, axis))
        if not self.ids:
            raise ScopeError("give at least one of user_id, agent_id, run_id")

    @property
    def ids(self) -> dict[Axis, str]:
        """The ids that are given, in the order user, agent, run."""
        every = ((Axis.USER, self.user_id), (Axis.AGENT, self.agent_id), (Axis.RUN, self.run_id))
        return {axis: value for axis, value in every if value is not None}

    @property
    def partition(self) -> tuple[Axis, str]:
        """The first given id: vectors of one partition lie together."""
        return next(iter(self.ids.items()))

    @property
    def partition_scope(self) -> Scope:
        """The scope of its partition: itself, where it has one id."""
        if len(self.ids) == 1:
            return self
        axis, value = self.partition
        return Scope(**{axis.value: value})

    @property
    def partition_scopes(self) -> list[Scope]:
        """A scope for each of its ids: those of the partitions that what it holds lies in."""
        return [Scope(**{axis.value: value}) for axis, value in self.ids.items()]

    def contains(self, other: Scope) -> bool:
        """Return True if `other` has every id of this scope; it may have more."""
        return (
            (self.user_id is None or self.user_id == other.user_id)
            and (self.agent_id is None or self.agent_id == other.agent_id)
            and (self.run_id is None or self.run_id == other.run_id)
        )


def _check_id(axis: Axis, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise ScopeError(f"{axis} must be a string, not {type(value).__name__}: {value!r}")
    if not value.strip():
        raise ScopeError(f"{axis} is empty")
    if value == "*":
        raise ScopeError(f'{axis}="*" is a wildcard, not an id: a call always names whose memories it means')
    if not is_valid_text(value):
        raise ScopeError(f"{axis} is not valid Unicode (it holds a lone surrogate): {value!r}")


def is_valid_text(text: str) -> bool:
    """Whether `text` can be written as UTF-8, that is, holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        content: the text, after image parts were described or dropped.
        name: who spoke, where the caller knows it; becomes the memory's `actor_id`.
        images: URLs (or data URLs) of image parts, for a model that can see.
        metadata: the caller's own JSON about this message (for instance a turn id).
        timestamp: ISO 8601 time of the message, or None for the time of the add.
        row: its number in the store, once it is kept there.
    """

    role: str
    content: str
    name: str | None = None
    images: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timestamp: str | None = None
    row: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement worth remembering, before it is weighed against what is known."""

    text: str
    actor_id: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timestamp: str | None = None
    """ISO 8601 time the fact is from, or None for the time of the add."""
    sources: tuple[int, ...] = ()
    """Positions, in the messages of the add, of those it was learnt from."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What the model decided (seed 000, step 4), with memory ids already mapped back from small integers."""

    event: Event
    text: str = ""
    memory_id: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory as the store of truth holds it.

    Attributes:
        hash: hex MD5 of the text, as mem0 computes it (a fingerprint, not a safeguard).
        created_at, updated_at: ISO 8601 with offset; `created_at` is the `timestamp` of the add where given.
        seq: position in the store's order of changes; projections follow it.
        pinned: always part of `Memory.context`, whatever is asked; it does not age.
        row: its number in the store, where it was read from there as it is now.
    """

    id: str
    text: str
    scope: Scope
    hash: str
    created_at: str
    updated_at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    actor_id: str | None = None
    role: str | None = None
    memory_type: str | None = None
    expiration_date: str | None = None
    seq: int = 0
    pinned: bool = False
    row: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One planned change to one memory; a plan is a sequence of them, committed at once.

    Attributes:
        event: ADD, UPDATE or DELETE as planned; the store answers NONE for an ADD of what is already there.
        after: the memory as it shall be (ADD, UPDATE), or as it was (DELETE, NONE).
        before: the text it replaces or removes, None for ADD. A store applies UPDATE and DELETE only while
            the memory still has this text and the `seq` of `after`, so that concurrent writers cannot overwrite
            one another. A NONE that has it changes nothing, and holds the whole plan to that memory being there.
        vector: float32 embedding of `after.text`, L2-normalised; None for DELETE and NONE.
        sources: positions, in the messages committed with the plan, that this change was learnt from.
    """

    event: Event
    after: MemoryItem
    before: str | None = None
    vector: Any = None
    message_indexes: tuple[int, ...] = ()


# --- the graph ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entity:
    """Someone or something a conversation names (seed 000 part 2, step 1); `type` is empty where it is not known."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Triplet:
    """A statement of two entities (seed 001): ``(alice, works_at, MIT)``. Relationships are ``snake_case``."""

    source: str
    relationship: str
    destination: str

    def __str__(self) -> str:
        """As seed 000 writes it: ``alice -- works_at -- MIT``."""
        return f"{self.source} -- {self.relationship} -- {self.destination}"

    @property
    def sentence(self) -> str:
        """What is embedded of it, and searched by words: ``alice works at MIT``."""
        return f"{self.source} {self.relationship.replace('_', ' ')} {self.destination}"

    @property
    def key(self) -> tuple[bytes, str, bytes]:
        """Equal for triplets that differ only in case and spacing."""
        return entity_key(self.source), self.relationship.casefold(), entity_key(self.destination)


@dataclass(frozen=True, slots=True)
class Node:
    """An entity in a store. A row number is the store's own and never reused."""

    row: int
    entity: Entity
    scope: Scope


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days that something is told of, ``YYYY-MM-DD``, both inclusive; None where they are open at that end."""

    first: str | None
    last: str | None

    @property
    def iso_interval(self) -> str:
        """As an interval of ISO 8601: ``2025-05-01/2025-05-31``, with ``..`` for an open end."""
        return f"{self.first or '..'}/{self.last or '..'}"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation in a store: a triplet, and the interval in which it held.

    Attributes:
        weight: how often it was said.
        valid_from, valid_to: ISO 8601 in UTC; it held from the first until before the second, None for still.
        invalidated_at: when we learnt that it no longer holds.
        source, destination: rows of its nodes.
        memories: ids of the memories it came from.
        days: what these tell of it took place on, from the first of the days that one of them names to the last.
    """

    row: int
    triplet: Triplet
    scope: Scope
    valid_from: str
    valid_to: str | None = None
    invalidated_at: str | None = None
    weight: int = 1
    source_node: int = 0
    destination_node: int = 0
    memories: tuple[str, ...] = ()
    event_dates: DateRange | None = None


@dataclass(frozen=True, slots=True)
class RelationChange:
    """One planned change to the graph, committed with the changes to the memories it was learnt with.

    Attributes:
        event: ADD (said once more, where the scope holds it already) or DELETE (it no longer holds).
        triplet: what is added or ended; the names of nodes that were found are those of the nodes.
        relation: the row that a DELETE ends, and that a refined ADD takes weight and evidence from.
        source, destination: rows of the nodes found for an ADD, None for new ones.
        types: types of source and destination, for nodes that are new.
        vectors: float32 embeddings of source, destination and `triplet.sentence`, for an ADD.
        memories: positions, in the plan committed with it, of the changes whose memories support it.
        days: for each of `memories` the days that it tells of where it says the relation, None where it names none.
        messages: positions, in the messages committed with it, of those it was learnt from.
        at: ISO 8601 time since when it holds, or does not; None for the time of the commit.
    """

    event: Event
    triplet: Triplet
    relation_row: int | None = None
    source_node: int | None = None
    destination_node: int | None = None
    types: tuple[str, str] = ("", "")
    vectors: tuple[Any, Any, Any] = (None, None, None)
    change_indexes: tuple[int, ...] = ()
    event_dates: tuple[DateRange | None, ...] = ()
    message_indexes: tuple[int, ...] = ()
    effective_at: str | None = None


MergeKind = Literal["entity", "relationship"]


@dataclass(frozen=True, slots=True)
class Merge:
    """Names of one scope that were made one, or that shall be.

    Attributes:
        name: what they are called since; `merged` are the names that went.
        score: of the weakest link between two of them, in [0, 1]; None where the caller named them.
        relations: how many relations went over.
        undone: when it was taken back.
    """

    kind: MergeKind
    scope: Scope
    name: str
    merged_names: tuple[str, ...]
    score: float | None = None
    reasons: tuple[str, ...] = ()
    relations: int = 0
    id: str | None = None
    merged_at: str | None = None
    undone_at: str | None = None


@lru_cache(maxsize=4096)  # the names of one graph come up again and again
def entity_key(name: str) -> bytes:
    """Equal for names that differ only in case and spacing. Returns 16 bytes."""
    folded = " ".join(normalize("NFC", name).casefold().split())
    return hashlib.blake2b(folded.encode(), digest_size=16).digest()


def mentions_name(text: str, name: str) -> bool:
    """Whether a text has the words of a name in a row, in any case; what has no words is looked for as it stands."""
    words = words_of(name)
    if not words:
        return bool(name.strip()) and name in text
    return f" {' '.join(words)} " in f" {' '.join(words_of(text))} "


def drops_mention(before: str, after: str, triplet: Triplet) -> bool:
    """Whether a text named one of two related entities, and after its change no longer does."""
    return any(
        mentions_name(before, name) and not mentions_name(after, name) for name in (triplet.source, triplet.destination)
    )


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A row of the history table, with exactly the columns of seed 004."""

    id: str
    memory_id: str
    old_memory: str | None
    new_memory: str | None
    event: str
    created_at: str | None
    updated_at: str | None
    is_deleted: bool
    actor_id: str | None
    role: str | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that a search found, with its score in [0, 1]; or a message that is not remembered yet.

    Attributes:
        pending: it is such a message.
        signals, weights: what the score was made of, see `recipes.Weights`.
        before_rerank: the score before a reranker had its part, None where there was none.
    """

    item: MemoryItem
    score: float
    is_unprocessed: bool = False
    signals: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    before_rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens one model call took, as the server counts them; zero where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0


def new_id() -> str:
    """A new UUID, version 7: random, and ordered by time, so that new rows of an index lie together."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10))
    version, variant = 0x7 << 76, 0x2 << 62
    return str(
        uuid.UUID(int=milliseconds << 80 | version | (noise >> 68 & 0xFFF) << 64 | variant | noise & (1 << 62) - 1)
    )


def content_hash(text: str) -> str:
    """mem0's `hash` of a memory: hex MD5 of its text."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def is_expired(item: MemoryItem, today: str) -> bool:
    """Whether the last day of `item` lies before `today` (both ``YYYY-MM-DD``)."""
    return item.expiration_date is not None and item.expiration_date < today


def expires_later(new: str | None, old: str | None) -> bool:
    """Whether an expiration date is later than another; None is never."""
    return old is not None and (new is None or new > old)


_QUOTE_TRANSLATION = {ord(mark): "'" for mark in "‘’‚‛"} | {ord(mark): '"' for mark in "“”„«»"}
_PUNCTUATION = ".,!?;:'\"()[]{}…¡¿、。！，：；？।؟،「」『』"
_PAUSE_MARKS = frozenset(".,!?;…。！？")


@lru_cache(maxsize=2048)  # what is shown once is mostly shown, and compared, again
def same_fact_key(text: str, actor_id: str | None = None) -> bytes:
    """Equal for texts that differ only in case, spacing and punctuation, and were said by the same actor.

    Punctuation is what stands at the edges of words: ``"Tea!"`` is ``"tea"``, but C++ is not C, -5 is not 5, and
    1.5 is not 15. Signs, currencies and emoji always count. Returns 16 bytes.
    """
    folded = normalize("NFC", text).translate(_QUOTE_TRANSLATION).casefold()
    words = (word for token in folded.split() if (word := _strip_punctuation(token)))
    return hashlib.blake2b(f"{actor_id or ''}\0{' '.join(words)}".encode(), digest_size=16).digest()


def _strip_punctuation(token: str) -> str:
    """A word without the punctuation around it; what holds no letter or digit (an emoticon) stays as it is."""
    if token.isalnum():  # as nearly all are
        return token
    if not any(map(str.isalnum, token)):
        return "" if _PAUSE_MARKS.issuperset(token) else token
    bare = token.rstrip(_PUNCTUATION)
    start = len(bare) - len(bare.lstrip(_PUNCTUATION))
    if start and bare[start].isdigit() and bare[start - 1] in ".,:":
        start -= 1  # .5 is not 5
    return bare[start:]


# --- what the front door returns -------------------------------------------------------------------------------


class AddedMemory(TypedDict):
    id: str
    memory: str
    event: str
    previous_memory: NotRequired[str]
    actor_id: NotRequired[str]
    role: NotRequired[str]


class MatchedMemory(AddedMemory):
    """What happened to a memory that a query or a filter found; `score` is its cosine to the query."""

    score: NotRequired[float]


class RelationChangesDict(TypedDict):
    added_entities: list[str]
    deleted_entities: list[str]


class SkippedItem(TypedDict):
    """Something a model said, or a change it asked for, that could not be used."""

    reason: str
    item: Any


class JobDict(TypedDict):
    """Work put off: a conversation that is not remembered yet, or a summary that is not made yet."""

    id: str
    kind: str
    state: str
    attempts: int
    error: str | None
    messages: list[dict[str, Any]]
    created_at: str
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    run_id: NotRequired[str]


class LaggingProjection(TypedDict):
    """A projection that could not be told of the change yet. The change is safe; the next call or open tells it."""

    store: str
    reason: str


class UsageDict(TypedDict):
    llm_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


class AddResult(TypedDict):
    results: list[AddedMemory]
    relations: RelationChangesDict
    skipped: list[SkippedItem]
    usage: UsageDict
    pending: NotRequired[list[LaggingProjection]]
    job_id: NotRequired[str]


class AddManyResult(TypedDict):
    """What an import did: `resumed` is how many of the messages an earlier call with its key had done."""

    added: int
    known: int
    skipped: list[SkippedItem]
    jobs: int
    resumed: int
    pending: NotRequired[list[LaggingProjection]]


class RelationDict(TypedDict):
    source: str
    relationship: str
    destination: str
    weight: int
    valid_from: str
    valid_to: str | None
    invalidated_at: str | None
    memories: list[str]
    date: NotRequired[str]
    time_window: NotRequired[str]
    score: NotRequired[float]
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    run_id: NotRequired[str]


class StepDict(RelationDict):
    """A relation on a path, and whether the path goes along its arrow."""

    forward: bool


class PathDict(TypedDict):
    """Where a question led to in the graph, and how."""

    start: str
    end: str
    score: float
    steps: list[StepDict]


class QueryResult(TypedDict):
    """What a query of the graph gives; `plan` for EXPLAIN."""

    columns: list[str]
    rows: list[dict[str, Any]]
    note: NotRequired[str]
    plan: NotRequired[list[str]]


class ByQueryResult(TypedDict):
    """What `update_by_query` and `delete_by_query` did, or (`dry_run`) would do."""

    results: list[MatchedMemory]
    relations: RelationChangesDict
    skipped: list[SkippedItem]
    dry_run: bool
    pending: NotRequired[list[LaggingProjection]]


class MergeDict(TypedDict):
    """Names that were made one, or would be: `merged` are called `name` since.

    `id` is None, and `at` too, where it is only proposed; `undone` is when it was taken back.
    """

    id: str | None
    kind: str
    name: str
    merged: list[str]
    score: float | None
    reasons: list[str]
    relations: int
    at: str | None
    undone: str | None
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    run_id: NotRequired[str]


class DistinctNamesDict(TypedDict):
    """Names that are near one another and stay apart, and why."""

    names: list[str]
    reason: str


class MergeResult(TypedDict):
    """What `merge` did, or (`dry_run`) would do."""

    merges: list[MergeDict]
    apart: list[DistinctNamesDict]
    dry_run: bool
    pending: NotRequired[list[LaggingProjection]]


class MemoryDict(TypedDict):
    id: str
    memory: str
    hash: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str | None
    score: NotRequired[float]
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    run_id: NotRequired[str]
    actor_id: NotRequired[str]
    role: NotRequired[str]
    memory_type: NotRequired[str]
    expiration_date: NotRequired[str]
    explanation: NotRequired[dict[str, Any]]
    pending: NotRequired[bool]
    pinned: NotRequired[bool]


class ContextDict(TypedDict):
    """What an agent should see now; `text` holds all of it but the messages.

    With ``citations=True``, `citations` maps the numbers in it to ids of memories.
    """

    text: str
    summary: str
    memories: list[MemoryDict]
    relations: list[RelationDict]
    messages: list[dict[str, Any]]
    tokens: int
    citations: NotRequired[dict[str, str]]


class SearchResult(TypedDict):
    results: list[MemoryDict]
    relations: list[RelationDict]
    note: NotRequired[str]


class MissingDict(TypedDict):
    """What became of a memory in a search; see `pipelines.missing.SearchDiagnosis`."""

    id: str
    reason: str
    detail: str
    rank: int | None
    ranks: dict[str, int | None]
    score: float | None
    signals: dict[str, SignalDict]


class SignalDict(TypedDict):
    """A signal of a score, in [0, 1]; its weight, and what it added to the weighted sum."""

    value: float
    weight: float
    contribution: float


class HistoryDict(TypedDict):
    id: str
    memory_id: str
    old_memory: str | None
    new_memory: str | None
    event: str
    created_at: str | None
    updated_at: str | None
    is_deleted: bool
    actor_id: str | None
    role: str | None


Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What `add` takes: a text (a user's message), one message, or a list of them."""
