"""The data types of the system: immutable values, independent of stores and models; and the dicts `Memory` returns."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.mention_index import words_of
from mem0_core.domain.normalization import normalize
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import ScopeError


class Event(StrEnum):
    """A change of a memory (Mem0 paper, section 2.1). The paper's NOOP is called NONE."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


class RetractionEvent(StrEnum):
    """A change of a memory by a retraction, in its history: it left with its source, or has an earlier text again."""

    RETRACT = "RETRACT"
    RESTORE = "RESTORE"


HistoryEvent: TypeAlias = Event | RetractionEvent


class Trust(IntEnum):
    """Class of the origin of a message or memory, from the least to the most trusted."""

    IMPORT = 0
    TOOL = 1
    ASSISTANT = 2
    USER = 3


class Axis(StrEnum):
    """The three kinds of id a memory is addressed by, in the order that decides its partition."""

    USER = "user_id"
    AGENT = "agent_id"
    RUN = "run_id"


_AXES = tuple(Axis)


@dataclass(frozen=True, slots=True)
class Scope:
    """The address of a memory: at least one of user, agent and run.

    An id is any non-empty string but ``"*"`` (a wildcard in filters, never an id). An omitted id matches everything: a
    search in ``Scope(user_id="u")`` sees all runs and agents of u.

    Raises:
        ScopeError: no id is given, or one is empty, ``"*"``, reserved, not a string, or not valid Unicode.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        values = (self.user_id, self.agent_id, self.run_id)
        for axis, value in zip(_AXES, values, strict=True):
            if value is None:
                continue
            if isinstance(value, str) and type(value) not in (str, InternalId, SpaceId):  # its methods may be others
                value = str.__str__(value)
                object.__setattr__(self, axis.value, value)
            _check_id(axis, value)
        if values == (None, None, None):
            raise ScopeError(
                "give at least one of user_id, agent_id, run_id: none was given; pass, for example, user_id='alice'"
            )

    @classmethod
    def from_stored(cls, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Scope:
        """Return the scope of ids that a store holds, which may be reserved ones; never pass ids of a caller."""
        return cls(_restore_id(user_id), _restore_id(agent_id), _restore_id(run_id))

    @property
    def ids(self) -> dict[Axis, str]:
        """The given ids, in the order user, agent, run."""
        every = ((Axis.USER, self.user_id), (Axis.AGENT, self.agent_id), (Axis.RUN, self.run_id))
        return {axis: value for axis, value in every if value is not None}

    @property
    def partition(self) -> tuple[Axis, str]:
        """The first given id; vectors of one partition are stored together."""
        return next(iter(self.ids.items()))

    @property
    def partition_scope(self) -> Scope:
        """The scope of the partition; the scope itself if it has one id."""
        ids = self.ids
        if len(ids) == 1:
            return self
        axis, value = next(iter(ids.items()))
        return Scope(**{axis.value: value})

    @property
    def partition_scopes(self) -> list[Scope]:
        """One scope per id: the partitions that may hold memories of this scope."""
        return [Scope(**{axis.value: value}) for axis, value in self.ids.items()]

    def contains(self, other: Scope) -> bool:
        """Return True if `other` has every id of this scope; it may have more."""
        return (
            (self.user_id is None or self.user_id == other.user_id)
            and (self.agent_id is None or self.agent_id == other.agent_id)
            and (self.run_id is None or self.run_id == other.run_id)
        )


RESERVED_PREFIX = "mem0.internal:"
"""Beginning of the ids of the library's own data, such as the items of LangGraph's store."""


class InternalId(str):
    """An id of the library's own data. `Scope` refuses such an id as a plain string, so no caller can name it."""

    __slots__ = ()


class SpaceId(InternalId):
    """User id of a space's memories, and the member on whose behalf it is used; without one, the library itself."""

    __slots__ = ("member",)

    member: str

    def __new__(cls, value: str, member: str = "") -> SpaceId:
        """Make the id for one member."""
        space = super().__new__(cls, value)
        space.member = member
        return space


def _restore_id(value: Any) -> Any:
    return InternalId(value) if isinstance(value, str) and value.startswith(RESERVED_PREFIX) else value


def _check_id(axis: Axis, value: object) -> None:
    if not isinstance(value, str):
        given, example = describe_value(value), str(value) if isinstance(value, (int, float)) else "maya"
        raise ScopeError(
            f"{axis} must be a string, not {type(value).__name__}: {given}; pass, for example, {axis}={example!r}"
        )
    if not value.strip():
        raise ScopeError(f"{axis} must be a non-empty text, not {value!r}; pass, for example, {axis}='alice'")
    if value.startswith(RESERVED_PREFIX) and not isinstance(value, InternalId):
        raise ScopeError(f"{axis} begins with {RESERVED_PREFIX!r}, which is reserved: choose another id")
    if value == "*":
        raise ScopeError(f'{axis}="*" is a wildcard, not an id: name one user, agent or run')
    if not is_valid_text(value):
        raise ScopeError(f"{axis} is not valid Unicode (it holds a lone surrogate): {value!r}")


def is_valid_text(text: str) -> bool:
    """Return True if `text` can be encoded as UTF-8 (it has no lone surrogate)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        content: the text; image parts are already described or dropped.
        name: the speaker, if known; becomes the memory's `actor_id`.
        images: URLs (or data URLs) of image parts, for a model that can see.
        metadata: the caller's own JSON about this message (for instance a turn id).
        timestamp: ISO 8601 time of the message, or None for the time of the add.
        key: identifies the message in its scope, made from the caller's id and the content; None without an id.
        source: the document, tool, agent or chat that it comes from, as the caller names it.
        trust: class of its origin; None for the class of its role.
        row: row in the store, None before it is stored.
    """

    role: str
    content: str
    name: str | None = None
    images: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timestamp: str | None = None
    key: str | None = field(default=None, compare=False)
    source: str | None = None
    trust: Trust | None = None
    row: int | None = field(default=None, compare=False)

    @property
    def trust_class(self) -> Trust:
        """Class of its origin: the given one, else that of its role."""
        return trust_of_role(self.role) if self.trust is None else self.trust


_TRUST_OF_ROLES = {"user": Trust.USER, "assistant": Trust.ASSISTANT}


def trust_of_role(role: str) -> Trust:
    """Return the class of a message without a class of its own."""
    return _TRUST_OF_ROLES.get(role, Trust.TOOL)


@dataclass(frozen=True, slots=True)
class Fact:
    """An extracted statement, before it is reconciled with known memories."""

    text: str
    actor_id: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timestamp: str | None = None
    """ISO 8601 time of the fact, or None for the time of the add."""
    sources: tuple[int, ...] = ()
    """Indexes of its source messages in the add."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A decision of the model (Mem0 paper, section 2.1), with small integers mapped back to memory ids.

    Attributes:
        facts: indexes of the facts that it settles, as far as the model names them.
    """

    event: Event
    text: str = ""
    memory_id: str | None = None
    facts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory as the primary store holds it.

    Attributes:
        hash: hex MD5 of the text, as mem0 computes it (a fingerprint, not a safeguard).
        created_at, updated_at: ISO 8601 with offset; `created_at` is the `timestamp` of the add where given.
        seq: sequence number of its last change; projections follow it.
        trust: least trusted class of the messages that it was learned from.
        pinned: part of every `Memory.context`; a pinned memory does not age.
        useful, useless: number of times that the memory was marked so, or cited; see `Memory.feedback`.
        row: row in the store, None for a memory that was not read from it or for an earlier text.
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
    trust: Trust = Trust.USER
    pinned: bool = False
    useful: int = 0
    useless: int = 0
    row: int | None = field(default=None, compare=False)

    @property
    def said_at(self) -> str:
        """Time from which the memory has its text."""
        return self.updated_at or self.created_at

    @property
    def is_said(self) -> bool:
        """True if a person or a named speaker said it, and not an assistant without a name."""
        return self.role != "assistant" or self.actor_id is not None


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One planned change to one memory; a plan is a sequence of changes committed together.

    Attributes:
        event: ADD, UPDATE or DELETE as planned; the store returns NONE for an ADD of an existing fact.
        after: the new state of the memory (ADD, UPDATE), or its old state (DELETE, NONE).
        before: the text that is replaced or deleted, None for ADD. A store applies UPDATE and DELETE only if the
            memory still has this text and the `seq` of `after`, so that concurrent writers cannot overwrite each
            other. A NONE with `before` changes nothing; the plan fails if that memory is missing.
        vector: float32 embedding of `after.text`, L2-normalised; None for DELETE and NONE.
        message_indexes: indexes of its source messages among those committed with the plan.
    """

    event: Event
    after: MemoryItem
    before: str | None = None
    vector: Any = None
    message_indexes: tuple[int, ...] = ()


# --- the graph ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entity:
    """A person or thing named in a conversation (Mem0 paper, section 2.2); an unknown `type` is empty."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Triplet:
    """A statement about two entities: ``(alice, works_at, MIT)``. Relationships are ``snake_case``."""

    source: str
    relationship: str
    destination: str

    def __str__(self) -> str:
        """Return mem0's notation: ``alice -- works_at -- MIT``."""
        return f"{self.source} -- {self.relationship} -- {self.destination}"

    @property
    def sentence(self) -> str:
        """The text that is embedded and indexed: ``alice works at MIT``."""
        return f"{self.source} {self.relationship.replace('_', ' ')} {self.destination}"

    @property
    def key(self) -> tuple[bytes, str, bytes]:
        """A key that is equal for triplets that differ only in case and spacing."""
        return entity_key(self.source), self.relationship.casefold(), entity_key(self.destination)


@dataclass(frozen=True, slots=True)
class Node:
    """An entity in a store; row numbers are never reused."""

    row: int
    entity: Entity
    scope: Scope


@dataclass(frozen=True, slots=True)
class DateRange:
    """A range of days, ``YYYY-MM-DD``, both inclusive; None for an open end."""

    first: str | None
    last: str | None

    @property
    def iso_interval(self) -> str:
        """The range as an ISO 8601 interval, ``2025-05-01/2025-05-31``, with ``..`` for an open end."""
        return f"{self.first or '..'}/{self.last or '..'}"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation in a store: a triplet, and the interval in which it is valid.

    Attributes:
        weight: number of times it was stated.
        valid_from, valid_to: ISO 8601 in UTC; half-open interval, `valid_to` is None while it holds.
        invalidated_at: time at which the store learned that it no longer holds.
        source_node, destination_node: rows of its nodes.
        memories: ids of the memories that support it.
        event_dates: the earliest to the latest event date that these memories name for it.
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
    """One planned change to the graph, committed together with its memories.

    Attributes:
        event: ADD (stated again if the scope already has it) or DELETE (it no longer holds).
        triplet: the relation; existing nodes keep the spelling of their names.
        relation_row: row that a DELETE ends, or that a refined ADD takes weight and evidence from; None for a DELETE of
            the relation that an earlier ADD of the same plan and triplet states.
        source_node, destination_node: rows of existing nodes for an ADD, None for new nodes.
        types: types of source and destination, for new nodes.
        vectors: float32 embeddings of source, destination and `triplet.sentence`, for an ADD.
        change_indexes: indexes of the changes, in the plan committed with it, that support it.
        event_dates: the event dates named by each of these memories, None for a memory without a date.
        message_indexes: indexes of its source messages among those committed with it.
        effective_at: ISO 8601 time from which it holds, or no longer holds; None for the time of the commit.
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
    """A merge of several names of one scope into one, planned or applied.

    Attributes:
        name: the remaining name.
        merged_names: the names merged into it.
        score: score of the weakest link between two of them, in [0, 1]; None if the caller named them.
        relations: number of relations moved.
        undone_at: time at which the merge was reverted.
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


@text_cache(4096)  # the names of one graph come up again and again
def entity_key(name: str) -> bytes:
    """Return a 16-byte key that is equal for names that differ only in case and spacing."""
    folded = " ".join(normalize("NFC", name).casefold().split())
    return hashlib.blake2b(folded.encode(), digest_size=16).digest()


def mentions_name(text: str, name: str) -> bool:
    """Return True if a text has the words of a name in sequence, in any case; a name without words must occur as is."""
    words = words_of(name)
    if not words:
        return bool(name.strip()) and name in text
    return f" {' '.join(words)} " in f" {' '.join(words_of(text))} "


def drops_mention(before: str, after: str, triplet: Triplet) -> bool:
    """Return True if a text named an end of the relation and its new version does not."""
    return any(
        mentions_name(before, name) and not mentions_name(after, name) for name in (triplet.source, triplet.destination)
    )


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A row of the history table, with mem0's columns."""

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
class Validity:
    """The time in which all that a memory states holds.

    Attributes:
        valid_from: ISO 8601 time or day from which it holds, None if unknown.
        valid_to: the first time or day at which nothing of it holds any more, None while something does.
        superseded_by: id of the memory that ended it, None if none did or the memory's own text was replaced.
    """

    valid_from: str | None = None
    valid_to: str | None = None
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result with its score in [0, 1]: a memory, or an unprocessed message.

    Attributes:
        has_statements: False if its text is known to make no statements that can end.
        is_answer: True if it states the value that the query asks for, at the time it asks about.
        validity: the time in which it holds, for a memory that states something that can end.
        is_unprocessed: True for a message.
        signals, weights: components of the score, see `recipes.Weights`.
        before_rerank: the score before reranking, None without a reranker.
        around: rows of the memories said just before and after it; 0 for none.
    """

    item: MemoryItem
    score: float
    is_unprocessed: bool = False
    signals: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    before_rerank: float | None = None
    has_statements: bool = True
    is_answer: bool = False
    validity: Validity | None = None
    around: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, as the server reports them; zero if it does not."""

    input_tokens: int = 0
    output_tokens: int = 0


def new_id() -> str:
    """Return a new UUID version 7. It is ordered by time, so that new rows of an index are adjacent."""
    milliseconds = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10))
    version, variant = 0x7 << 76, 0x2 << 62
    value = milliseconds << 80 | version | (noise >> 68 & 0xFFF) << 64 | variant | noise & (1 << 62) - 1
    digits = f"{value:032x}"  # importing `uuid` would take 5 ms
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def content_hash(text: str) -> str:
    """Return mem0's `hash` of a memory: the hex MD5 of its text."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def is_expired(item: MemoryItem, today: str) -> bool:
    """Return True if the expiration date of `item` is before `today` (both ``YYYY-MM-DD``)."""
    return item.expiration_date is not None and item.expiration_date < today


def expires_later(new: str | None, old: str | None) -> bool:
    """Return True if expiration date `new` is later than `old`; None means never."""
    return old is not None and (new is None or new > old)


_MAX_CACHED_CHARS = 4_000  # of a text
_QUOTE_TRANSLATION = {ord(mark): "'" for mark in "‘’‚‛"} | {ord(mark): '"' for mark in "“”„«»"}
_PUNCTUATION = ".,!?;:'\"()[]{}…¡¿、。！，：；？।؟،「」『』"
_PAUSE_MARKS = frozenset(".,!?;…。！？")
_WORD = re.compile(r"[^\W_]+")


@text_cache(2048, max_chars=_MAX_CACHED_CHARS)  # texts shown once are mostly shown, and compared, again
def same_fact_key(text: str, actor_id: str | None = None) -> bytes:
    """Return a 16-byte key, equal for texts of one actor that differ only in case, spacing and punctuation.

    Only punctuation at the edges of words is ignored: ``"Tea!"`` is ``"tea"``, but C++ is not C, -5 is not 5, and
    1.5 is not 15. Signs, currencies and emoji always count.
    """
    return hashlib.blake2b(f"{actor_id or ''}\0{_fold_fact(text)}".encode(), digest_size=16).digest()


@text_cache(2048, max_chars=_MAX_CACHED_CHARS)  # an add needs the key of a text with its speaker and without
def _fold_fact(text: str) -> str:
    folded = (text if text.isascii() else normalize("NFC", text).translate(_QUOTE_TRANSLATION)).casefold()
    words = (token if token.isalnum() else _strip_punctuation(token) for token in folded.split())  # nearly all are
    return " ".join(filter(None, words))


def fact_opening(text: str) -> str:
    """Return the first word of a text; texts with equal `same_fact_key` share it, at a tenth of the time of the key."""
    # Of the usual text, which needs no normalization, only that word is folded.
    first = _WORD.search(text if text.isascii() else normalize("NFC", text).casefold())
    return "" if first is None else first[0].casefold()


def _strip_punctuation(token: str) -> str:
    """Return a word without surrounding punctuation; a token without letters and digits (an emoticon) is unchanged."""
    if not any(map(str.isalnum, token)):
        return "" if _PAUSE_MARKS.issuperset(token) else token
    bare = token.rstrip(_PUNCTUATION)
    start = len(bare) - len(bare.lstrip(_PUNCTUATION))
    if start and bare[start].isdigit() and bare[start - 1] in ".,:":
        start -= 1  # .5 is not 5
    return bare[start:]


# --- dicts returned by `Memory` -----------------------------------------------------------------------------------


class AddedMemory(TypedDict):
    """One change in the result of `Memory.add`."""

    id: str
    memory: str
    event: str
    previous_memory: NotRequired[str]
    actor_id: NotRequired[str]
    role: NotRequired[str]


class MatchedMemory(AddedMemory):
    """The change of a memory matched by a query or a filter; `score` is its cosine to the query."""

    score: NotRequired[float]


class RelationChangesDict(TypedDict):
    """Relations that began and ended, as ``source -- relationship -- destination``."""

    added_entities: list[str]
    deleted_entities: list[str]


class SkippedItem(TypedDict):
    """A part of a model's reply, or a requested change, that could not be used."""

    reason: str
    item: Any


class JobDict(TypedDict):
    """A queued job: messages to extract memories from, or a summary to update."""

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
    """A projection that is behind the primary store. The change is safe; the next call catches up."""

    store: str
    reason: str


class UsageDict(TypedDict):
    """Model calls, tokens and seconds of one call."""

    llm_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


class AddResult(TypedDict):
    """Result of `Memory.add`."""

    results: list[AddedMemory]
    relations: RelationChangesDict
    skipped: list[SkippedItem]
    usage: UsageDict
    unchanged: NotRequired[list[AddedMemory]]
    pending: NotRequired[list[LaggingProjection]]
    job_id: NotRequired[str]


def list_added(result: Mapping[str, Any]) -> list[Any]:
    """Return the changes of an add, then the memories that it left unchanged."""
    return [*result["results"], *result.get("unchanged", ())]


class AddManyResult(TypedDict):
    """The outcome of an import; `resumed` is the number of messages done by earlier calls with the same key."""

    added: int
    known: int
    skipped: list[SkippedItem]
    jobs: int
    resumed: int
    pending: NotRequired[list[LaggingProjection]]


class RelationDict(TypedDict):
    """A relation, as `Memory.relations` returns it."""

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
    space: NotRequired[str | None]
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    run_id: NotRequired[str]


class StepDict(RelationDict):
    """A relation on a path; `forward` is True if the path follows its direction."""

    forward: bool


class PathDict(TypedDict):
    """A path through the graph that a question led to."""

    start: str
    end: str
    score: float
    steps: list[StepDict]


class QueryResult(TypedDict):
    """The result of a graph query; `plan` is set for EXPLAIN."""

    columns: list[str]
    rows: list[dict[str, Any]]
    note: NotRequired[str]
    plan: NotRequired[list[str]]


class ByQueryResult(TypedDict):
    """The changes of `update_by_query` and `delete_by_query`, planned only if `dry_run`."""

    results: list[MatchedMemory]
    relations: RelationChangesDict
    skipped: list[SkippedItem]
    dry_run: bool
    pending: NotRequired[list[LaggingProjection]]


class RetractResult(TypedDict):
    """Counts of `Memory.retract`, see there."""

    messages: int
    memories: int
    restored: int
    kept: int
    relations: int
    relations_restored: int
    summaries: int
    jobs: int
    pending: NotRequired[list[LaggingProjection]]


class VerifyItem(TypedDict):
    """An item that differs, or that cannot be derived."""

    part: str
    item: str
    reason: str


class VerifyResult(TypedDict):
    """Result of `Memory.verify`."""

    agrees: bool
    digest: str
    derived: str
    counts: dict[str, int]
    differences: list[VerifyItem]
    underivable: list[VerifyItem]


class MergeDict(TypedDict):
    """A merge of the names in `merged` into `name`.

    `id` and `at` are None for a proposal; `undone` is the time at which it was reverted.
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
    """Similar names that were not merged, and the reason."""

    names: list[str]
    reason: str


class SameAsDict(TypedDict):
    """Two names that may mean the same; ``merge(names=...)`` joins them."""

    kind: str
    names: list[str]
    score: float
    reason: str
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    run_id: NotRequired[str]


class MergeResult(TypedDict):
    """The merges of `merge`, planned only if `dry_run`.

    `same_as` are pairs of names that may mean the same, and `apart` similar names that stay distinct.
    """

    merges: list[MergeDict]
    same_as: list[SameAsDict]
    apart: list[DistinctNamesDict]
    dry_run: bool
    pending: NotRequired[list[LaggingProjection]]


class MemoryDict(TypedDict):
    """A memory, as `Memory.get` returns it."""

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
    trust: NotRequired[str]
    pinned: NotRequired[bool]
    useful: NotRequired[int]
    useless: NotRequired[int]
    space: NotRequired[str | None]
    valid_from: NotRequired[str]
    valid_to: NotRequired[str]
    superseded_by: NotRequired[str]


class AnswerDict(TypedDict):
    """The answer to a question, with its proof.

    `answer` is None if nothing is known; `nearest` is then the memory nearest to the question. `values` are empty where
    a memory answers as a whole. `since` and `until` are the ISO 8601 days or times between which the first value holds.
    """

    answer: str | None
    values: list[str]
    confidence: float
    memories: list[MemoryDict]
    since: NotRequired[str]
    until: NotRequired[str]
    path: NotRequired[PathDict]
    nearest: NotRequired[MemoryDict]
    note: NotRequired[str]
    space: NotRequired[str | None]


class FeedbackDict(TypedDict):
    """The feedback on a memory: the number of times that it was marked useful, or cited, and useless."""

    id: str
    useful: int
    useless: int


class ContextDict(TypedDict):
    """The context of an agent's next turn; `text` holds everything but the messages.

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
    """Result of `Memory.search` and `Memory.get_all`."""

    results: list[MemoryDict]
    relations: list[RelationDict]
    note: NotRequired[str]


class MissingDict(TypedDict):
    """The reason why a memory was found or not; see `recall.explain.SearchDiagnosis`."""

    id: str
    reason: str
    detail: str
    rank: int | None
    ranks: dict[str, int | None]
    score: float | None
    signals: dict[str, SignalDict]


class SignalDict(TypedDict):
    """A signal of a score, in [0, 1] or [-1, 1], with its weight and its contribution to the weighted sum."""

    value: float
    weight: float
    contribution: float


class HistoryDict(TypedDict):
    """One change of a memory, as `Memory.history` returns it."""

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
"""Input of `add`: a text (a user's message), one message, or a list of messages."""
