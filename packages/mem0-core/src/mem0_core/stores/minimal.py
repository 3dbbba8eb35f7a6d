"""A whole `MemoryStore` on top of a `RecordStore`: each missing capability is derived, empty, or refused.

Derived from the records: commits with duplicate and conflict checks, the word index, ranking features, and vector
search by an exact scan. Empty: messages, summaries and jobs. Refused with CapabilityError: everything else.

Sequence numbers and rows are kept in the records. Deletions are remembered in this process only, so every store object
starts a new epoch, and projections start over with it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, cast

from mem0_core._system.boundary import describe_error
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.filters import Filter
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    MemoryChange,
    MemoryItem,
    Message,
    RelationChange,
    Scope,
    is_expired,
    new_id,
    same_fact_key,
)
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import CapabilityError, ConfigError, InputError, Mem0Error, StoreError
from mem0_core.interfaces import (
    ChangePosition,
    CommitResult,
    EmbeddedItem,
    Job,
    JobKind,
    Lease,
    Lexicon,
    MemoryFeatures,
    MemoryFeatureSet,
    MemoryStore,
    OnConflict,
    PlannedUpdate,
    QueuedTurn,
    RecordStore,
    RetractionResult,
    Summary,
    VectorChanges,
    WordKind,
    check_embedding_space,
)
from mem0_core.language.terms import TextTerms, analyze_text, split_words
from mem0_core.stores.sql.rows import (
    is_plan_current,
    resolve_duplicate_add,
    session_number,
    to_stored_vector,
    write_order,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_RECORD_STORE_METHODS = ("get", "list_memories", "vectors_by_id", "embedding_space", "write", "reset", "close")
_ROWS_PER_SESSION = 1 << 20
"""Rows reserved for each add: the upper bits of a row say which add a memory came with, across restarts."""

_FEATURES_OF = {
    "queue": "add(background=True) and summaries",
    "graph": "graph memory (graph=...)",
    "merges": "merge, unmerge and merges",
    "history": "history() and as_of=...",
    "import checkpoints": "add_many() with a key",
    "change feed": "changes()",
    "spaces": "Principal",
    "feedback": "feedback() and count_citations()",
    "sources": "retract",
    "maintenance": "doctor, stats, backup, export and adopt",
    "archive": "backup and migrate",
}
"""Capability -> the features that need it, for error texts."""

_read_terms = text_cache(16_384)(analyze_text)


def complete_store(store: MemoryStore | RecordStore) -> MemoryStore:
    """Return `store` itself if it is a `MemoryStore`, else a `MinimalMemoryStore` over it.

    Raises:
        ConfigError: the object is neither; names the methods it lacks.
    """
    if callable(getattr(store, "commit", None)):
        return cast(MemoryStore, store)
    missing = [name for name in _RECORD_STORE_METHODS if not callable(getattr(store, name, None))]
    if missing:
        raise ConfigError(
            f"store: {describe_value(store)} lacks {', '.join(missing)}; pass a URL such as postgresql://host/database,"
            " the path of a SQLite file, or an object with these methods: mem0_core.interfaces.RecordStore"
            " (docs/how-to/write-a-store.md)"
        )
    return MinimalMemoryStore(cast(RecordStore, store))


class _GuardedRecords:
    """The methods of a caller's store, with its errors raised as StoreError."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._records, name)
        return functools.partial(self._call, name, method) if callable(method) else method

    def _call(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except (Mem0Error, MemoryError):
            raise
        except Exception as error:
            raise StoreError(f"{type(self._records).__name__}.{name} failed: {describe_error(error)}") from error


class MinimalMemoryStore:
    """A `MemoryStore` that keeps everything in a `RecordStore`.

    Args:
        records: the store to complete. Its attributes ``lexicon``, ``maintenance`` and ``archive`` are used if present.
    """

    vector_provider = "exact"
    has_graph = False

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._guarded_records = cast(RecordStore, _GuardedRecords(records))
        self.where = self.name = type(records).__name__
        self.inline = getattr(records, "inline", False)  # see `flow`
        self._lock = RLock()  # held while a write is planned and done
        self._closed = False
        self._epoch = new_id()
        self._removed: list[tuple[int, int, Scope]] = []  # seq, row and scope of deletions in this epoch
        self._ids: dict[int, str] | None = None  # row -> memory id; read at the first use
        self._last_seq = self._last_session = 0
        self.jobs = _NoJobs(self.name)
        self.message_log = _NoMessages()
        self.lexicon: Lexicon = getattr(records, "lexicon", None) or _ScannedLexicon(self, inline=self.inline)
        self.feed: Any = _MissingCapability(self.name, "change feed")
        self.spaces: Any = _MissingCapability(self.name, "spaces")
        self.graph: Any = _MissingCapability(self.name, "graph")
        self.merges: Any = _MissingCapability(self.name, "merges")
        self.maintenance: Any = self._offered("maintenance")
        self.archive: Any = self._offered("archive")

    def _offered(self, capability: str) -> Any:
        return getattr(self._records, capability, None) or _MissingCapability(self.name, capability)

    # --- writing -----------------------------------------------------------------------------------------------------

    def commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        embedding_space: tuple[str, int] | None = None,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        import_checkpoint: tuple[str, int] | None = None,
        distinct_sessions: bool = False,
    ) -> CommitResult:
        for given, capability in ((relations, "graph"), (lease, "queue"), (import_checkpoint, "import checkpoints")):
            if given:
                _refuse(self.name, capability)
        return self._commit(changes, embedding_space, distinct_sessions=distinct_sessions)

    def commit_updates(
        self,
        updates: Sequence[PlannedUpdate],
        *,
        at: str,
        embedding_space: tuple[str, int] | None = None,
        on_conflict: OnConflict = "invalidate",
    ) -> CommitResult:
        """Write all updates by one call of the store's `write`, which is all or nothing."""
        if any(update.relations for update in updates):
            _refuse(self.name, "graph")
        return self._commit([update.change for update in updates], embedding_space, rejects_duplicates=True)

    def _commit(
        self,
        changes: Sequence[MemoryChange],
        embedding_space: tuple[str, int] | None,
        *,
        distinct_sessions: bool = False,
        rejects_duplicates: bool = False,
    ) -> CommitResult:
        with self._lock:
            records = self._open()
            self._load_rows()
            if embedding_space is not None:
                check_embedding_space(records.embedding_space(), embedding_space)
            targets = [self._find_target(change) for change in changes]
            conflicts = tuple(i for i, change in enumerate(changes) if change.before is not None and not targets[i])
            if conflicts:
                return CommitResult(conflicts=conflicts)
            plan = _WritePlan(records, embedding_space[1] if embedding_space else 0, rejects_duplicates)
            applied = list(changes)
            for place in write_order(changes):
                session = self._last_session + 1 + (place if distinct_sessions else 0)
                row = session * _ROWS_PER_SESSION + (0 if distinct_sessions else place)
                applied[place] = plan.apply(changes[place], targets[place], self._last_seq + 1 + place, row)
            self._last_seq += len(changes)
            self._last_session += len(changes) if distinct_sessions else 1
            self._write(plan.saved.values(), plan.removed.values(), embedding_space)
            return CommitResult(applied=tuple(applied))

    def _find_target(self, change: MemoryChange) -> MemoryItem | None:
        """Return the memory an UPDATE or DELETE was planned on, or None if it has changed since."""
        if change.before is None:
            return None
        found = self._open().get(change.after.id)
        return found if is_plan_current(change, found) else None

    def _write(
        self,
        saved: Iterable[tuple[MemoryItem, Any]],
        removed: Iterable[MemoryItem],
        embedding_space: tuple[str, int] | None = None,
    ) -> None:
        """Write items with their vectors (None to keep the stored one), and remember the deletions."""
        saved, removed, ids = list(saved), list(removed), self._load_rows()
        if not saved and not removed:
            return
        kept = self._open().vectors_by_id([item.id for item, vector in saved if vector is None])
        pairs = [(item, kept[item.id] if vector is None else vector) for item, vector in saved]
        self._open().write(pairs, [item.id for item in removed], embedding_space=embedding_space)
        ids.update((_row(item), item.id) for item, _ in saved)
        for item in removed:
            ids.pop(_row(item), None)
            self._last_seq += 1
            self._removed.append((self._last_seq, _row(item), item.scope))

    def pin(self, memory_id: str, pinned: bool) -> bool:
        with self._lock:
            item = self._open().get(memory_id)
            if item is None:
                return False
            self._write([(dataclasses.replace(item, pinned=pinned), None)], [])
            return True

    def mark(self, memory_ids: Sequence[str], *, useful: int = 0, useless: int = 0, clear: bool = False) -> int:
        _refuse(self.name, "feedback")

    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> int:
        with self._lock:
            found = [item for memory_id in dict.fromkeys(memory_ids) if (item := self._open().get(memory_id))]
            self._write([], found)
            return len(found)

    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> int:
        with self._lock:
            found = self.list_memories(scope)
            self._write([], found)
            if purge:
                self._begin_epoch()
            return len(found)

    def retract(
        self, source: str, scope: Scope | None, *, at: str, relearn: bool = False, purge: bool = False
    ) -> RetractionResult:
        _refuse(self.name, "sources")

    def replace_vectors(self, vectors: Mapping[EmbeddedItem, Any], *, embedding_space: tuple[str, int]) -> bool:
        with self._lock:
            items = {(_row(item), item.seq): item for item in self.list_memories(None)}
            if items.keys() != {(part.row, part.seq) for part in vectors}:
                return False
            dims = embedding_space[1]
            saved = [(items[part.row, part.seq], to_stored_vector(vector, dims)) for part, vector in vectors.items()]
            self._open().write(saved, [], embedding_space=embedding_space)
            self._begin_epoch()
            return True

    def reset(self) -> None:
        with self._lock:
            self._load_rows()
            self._open().reset()
            self._ids = {}
            self._begin_epoch()

    def save_summary(self, scope: Scope, summary: Summary, lease: Lease) -> bool:
        _refuse(self.name, "queue")

    def _begin_epoch(self) -> None:
        self._epoch = new_id()
        self._removed.clear()

    # --- reading -----------------------------------------------------------------------------------------------------

    def embedding_space(self) -> tuple[str, int] | None:
        return self._open().embedding_space()

    def get(self, memory_id: str) -> MemoryItem | None:
        return self._open().get(memory_id)

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, MemoryItem]:
        return {id: item for id in dict.fromkeys(memory_ids) if (item := self.get(id)) is not None}

    def row(self, memory_id: str) -> int | None:
        item = self.get(memory_id)
        return None if item is None else item.row

    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> list[MemoryItem]:
        return self._open().list_memories(scope, filter=filter, limit=limit)

    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> NDArray[np.int64]:
        import numpy as np

        if as_of is not None:
            _refuse(self.name, "history")
        return np.sort(np.array([item.row for item in self.list_memories(scope, filter=filter)], dtype=np.int64))

    def memories_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, MemoryItem]:
        ids = self._load_rows()
        found = {row: self.get(ids[row]) for row in rows if row in ids}
        return {row: item for row, item in found.items() if item is not None and scope.contains(item.scope)}

    def find_by_fact_keys(self, scope: Scope, keys: Sequence[bytes]) -> dict[bytes, MemoryItem]:
        known = _by_fact_key(self._open(), scope)
        return {key: known[key] for key in keys if key in known}

    def pinned_memories(self, scope: Scope) -> list[MemoryItem]:
        return [item for item in self.list_memories(scope) if item.pinned]

    def embedded_items(self) -> list[EmbeddedItem]:
        items = sorted(self.list_memories(None), key=_row)
        return [EmbeddedItem("memory", _row(item), item.seq, item.text) for item in items]

    def history(self, memory_id: str) -> list[HistoryRow]:
        """Return nothing for an unknown id.

        Raises:
            CapabilityError: the memory exists, but its changes were not recorded.
        """
        if self.get(memory_id) is None:
            return []
        _refuse(self.name, "history")

    def owner(self, memory_id: str) -> Scope | None:
        """Return the scope of an existing memory."""
        item = self.get(memory_id)
        return None if item is None else item.scope

    def past_memories(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> tuple[list[MemoryItem], NDArray[np.float32]]:
        _refuse(self.name, "history")

    def replaced_texts(
        self, scope: Scope, *, filter: Filter | None = None, limit: int
    ) -> tuple[list[tuple[MemoryItem, str]], NDArray[np.float32]]:
        import numpy as np

        return [], np.zeros((0, 0), dtype=np.float32)

    def import_checkpoint(self, scope: Scope, key: str) -> int:
        _refuse(self.name, "import checkpoints")

    # --- vectors -----------------------------------------------------------------------------------------------------

    def position(self, scope: Scope) -> ChangePosition:
        with self._lock:
            added = [item.seq for item in self.list_memories(scope)]
            removed = [seq for seq, _, where in self._removed if scope.contains(where)]
            return ChangePosition(self._epoch, max(added + removed, default=0))

    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        import numpy as np

        with self._lock:
            changed = sorted(
                (item for item in self.list_memories(scope) if item.seq > after), key=lambda item: item.seq
            )
            some = changed[:limit]
            rows, vectors = self.vectors([_row(item) for item in some])
            removed = [row for seq, row, where in self._removed if seq > after and scope.contains(where)]
            upto = some[-1].seq if len(some) < len(changed) else None
            return VectorChanges(rows, vectors, np.array(removed, dtype=np.int64), upto)

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        import numpy as np

        ids = self._load_rows()
        wanted = {ids[row]: row for row in rows if row in ids}
        found = self._open().vectors_by_id(list(wanted))
        numbers = np.array([wanted[memory_id] for memory_id in found], dtype=np.int64)
        return numbers, np.stack(list(found.values())) if found else np.empty((0, 0), dtype=np.float32)

    # --- the records -------------------------------------------------------------------------------------------------

    def _load_rows(self) -> dict[int, str]:
        """Return row -> memory id; the first call also reads the last sequence number and session."""
        with self._lock:
            if self._ids is None:
                items = self._open().list_memories(None)
                self._ids = {_row(item): item.id for item in items}
                self._last_seq = max((item.seq for item in items), default=0)
                self._last_session = max(self._ids, default=0) // _ROWS_PER_SESSION
            return self._ids

    def _open(self) -> RecordStore:
        if self._closed:
            raise StoreError(f"{self.name} is closed")
        return self._guarded_records

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._records.close()


class _WritePlan:
    """The writes of one commit; later changes of the commit see the earlier ones.

    Attributes:
        saved: memory id -> the memory and its new vector (None to keep the stored one).
        removed: memory id -> the deleted memory.
    """

    def __init__(self, records: RecordStore, dims: int, reject_duplicates: bool) -> None:
        self.saved: dict[str, tuple[MemoryItem, Any]] = {}
        self.removed: dict[str, MemoryItem] = {}
        self._records, self._dims, self._reject_duplicates = records, dims, reject_duplicates
        self._known: dict[Scope, dict[bytes, MemoryItem]] = {}

    def apply(self, change: MemoryChange, target: MemoryItem | None, seq: int, row: int) -> MemoryChange:
        """Plan one change. Returns the change as it takes effect."""
        if change.event is Event.NONE:
            return change
        if target is None:
            return self._add(change, seq, row)
        duplicate = self._scope_facts(target.scope).get(_fact_key(change.after))
        if change.event is Event.UPDATE and (duplicate is None or duplicate.id == target.id):
            return self._update(change, target, seq)
        if change.event is Event.UPDATE and self._reject_duplicates:
            raise InputError(f"another memory of this scope says this already: delete {target.id!r} instead")
        self._remove(target)
        return dataclasses.replace(change, event=Event.DELETE, after=target)

    def _add(self, change: MemoryChange, seq: int, row: int) -> MemoryChange:
        item = dataclasses.replace(change.after, seq=seq, row=row)
        duplicate = self._scope_facts(item.scope).get(_fact_key(item))
        if duplicate is not None:
            done = resolve_duplicate_add(change, duplicate, seq)
            if done.event is Event.UPDATE:
                _, vector = self.saved.get(duplicate.id, (None, None))
                self._save(done.after, vector)
            return done
        if item.id in self.saved or (item.id not in self.removed and self._records.get(item.id) is not None):
            raise StoreError(f"a memory with the id {item.id!r} exists already")
        self._save(item, to_stored_vector(change.vector, self._dims))
        return dataclasses.replace(change, after=item, vector=None)

    def _update(self, change: MemoryChange, target: MemoryItem, seq: int) -> MemoryChange:
        changed = ("text", "hash", "metadata", "actor_id", "role", "updated_at", "expiration_date")
        values = {name: getattr(change.after, name) for name in changed}
        vector = None if change.vector is None else to_stored_vector(change.vector, self._dims)
        self._scope_facts(target.scope).pop(_fact_key(target), None)
        self._save(dataclasses.replace(target, seq=seq, **values), vector)
        return change

    def _save(self, item: MemoryItem, vector: Any) -> None:
        self.saved[item.id] = item, vector
        self._scope_facts(item.scope)[_fact_key(item)] = item

    def _remove(self, item: MemoryItem) -> None:
        self.removed[item.id] = item
        self._scope_facts(item.scope).pop(_fact_key(item), None)

    def _scope_facts(self, scope: Scope) -> dict[bytes, MemoryItem]:
        if scope not in self._known:
            self._known[scope] = _by_fact_key(self._records, scope)
        return self._known[scope]


def _by_fact_key(records: RecordStore, scope: Scope) -> dict[bytes, MemoryItem]:
    """Return the memories of exactly this scope by `same_fact_key`."""
    return {_fact_key(item): item for item in records.list_memories(scope) if item.scope == scope}


def _fact_key(item: MemoryItem) -> bytes:
    return same_fact_key(item.text, item.actor_id)


def _row(item: MemoryItem) -> int:
    """Return the row of a stored memory.

    Raises:
        StoreError: the store returned a memory without the row it was saved with.
    """
    if item.row is None:
        raise StoreError(f"the store lost the row of memory {item.id!r}: save and return every field of MemoryItem")
    return item.row


# --- derived, empty and missing capabilities ---------------------------------------------------------------------


class _ScannedLexicon:
    """A `Lexicon` that reads the texts of the scope on every call; parsed texts are cached."""

    def __init__(self, store: MinimalMemoryStore, *, inline: bool) -> None:
        self._store = store
        self.inline = inline

    def postings(
        self, scope: Scope, words: Sequence[str], *, kind: WordKind, limit: int
    ) -> dict[str, NDArray[np.int64]]:
        import numpy as np

        found: dict[str, list[int]] = {}
        for item in self._store.list_memories(scope):
            for word in _index_words(item, kind).intersection(words):
                found.setdefault(word, []).append(_row(item))
        return {word: np.array(rows[:limit], dtype=np.int64) for word, rows in found.items()}

    def memory_features(
        self, scope: Scope, rows: Sequence[int], *, today: str, vector: NDArray[np.float32]
    ) -> MemoryFeatureSet:
        items = {_row(item): item for item in self._store.list_memories(scope)}
        neighbors = _session_neighbors(items)
        wanted = [row for row in rows if row in items and not is_expired(items[row], today)]
        features = [_features(items[row], *neighbors[row]) for row in wanted]
        beside = {row for one in features for row in (one.previous_row, one.next_row)} - {None, *wanted}
        return MemoryFeatureSet(features, {row: " ".join(_terms_of(items[row]).terms) for row in beside if row}, {})


def _index_words(item: MemoryItem, kind: WordKind) -> frozenset[str]:
    if kind == "speaker":
        return frozenset(split_words(item.actor_id or ""))
    words = _terms_of(item)
    return frozenset(words.terms if kind == "term" else words.slots if kind == "slot" else words.names)


def _terms_of(item: MemoryItem) -> TextTerms:
    return _read_terms(item.text, item.actor_id, item.role)


def _session_of(row: int, scope: Scope) -> int:
    return session_number(scope.user_id, scope.agent_id, scope.run_id, row // _ROWS_PER_SESSION)


def _session_neighbors(items: Mapping[int, MemoryItem]) -> dict[int, tuple[int, int | None, int | None]]:
    """Return for each row its session and the rows of its neighbors there."""
    sessions: dict[int, list[int]] = {}
    for row in sorted(items):
        sessions.setdefault(_session_of(row, items[row].scope), []).append(row)
    return {
        row: (session, previous, following)
        for session, rows in sessions.items()
        for previous, row, following in zip([None, *rows], rows, [*rows[1:], None], strict=False)
    }


def _features(item: MemoryItem, session: int, previous: int | None, following: int | None) -> MemoryFeatures:
    terms = _terms_of(item)
    return MemoryFeatures(
        row=_row(item),
        session=session,
        word_count=terms.word_count,
        is_question=terms.is_question,
        terms=" ".join(terms.terms),
        names="\n".join(terms.names),
        actor_id=item.actor_id,
        role=item.role,
        timestamp=item.created_at,
        previous_row=previous,
        next_row=following,
        slots="\n".join(terms.slots),
    )


class _NoMessages:
    """A `MessageLog` that is always empty: the store keeps memories only."""

    inline = True

    def messages(self, scope: Scope, *, limit: int | None = None) -> list[Message]:
        return []

    def messages_before(self, scope: Scope, row: int | None, *, limit: int) -> list[Message]:
        return []

    def messages_since(self, scope: Scope, row: int, *, limit: int) -> list[Message]:
        return []

    def count_unsummarized(self, scope: Scope, *, limit: int) -> int:
        return 0

    def are_stored(self, scope: Scope, messages: Sequence[Message]) -> list[bool]:
        return [False] * len(messages)

    def latest_summary(self, scope: Scope, *, as_of: str | None = None) -> Summary | None:
        return None


class _NoJobs:
    """A `JobQueue` that is always empty and refuses new jobs."""

    inline = True

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def enqueue(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str | Callable[[str | None], str],
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        max_jobs: int | None = None,
        error: str | None = None,
    ) -> int | None:
        _refuse(self._store_name, "queue")

    def enqueue_turns(
        self, scope: Scope, turns: Sequence[QueuedTurn], *, import_checkpoint: tuple[str, int] | None = None
    ) -> list[int]:
        _refuse(self._store_name, "queue")

    def lease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        return []

    def renew_lease(self, lease: Lease, *, seconds: float) -> bool:
        return False

    def release_failed(self, lease: Lease, *, error: str, retry_in: float | None) -> None:
        pass

    def release_leases(self, worker: str) -> None:
        pass

    def mark_done(self, lease: Lease) -> bool:
        return False

    def list_jobs(self, scope: Scope | None = None) -> list[Job]:
        return []

    def unprocessed_messages(self, scope: Scope, *, limit: int) -> list[tuple[Job, Message]]:
        return []

    def has_ready_job(self) -> bool:
        return False

    def retry(self, job: int) -> bool:
        return False

    def next_attempt_at(self) -> float | None:
        return None


class _MissingCapability:
    """A capability the store does not have: using any part of it raises CapabilityError."""

    def __init__(self, store_name: str, capability: str) -> None:
        self._store_name, self._capability = store_name, capability

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # copying and inspection ask for these
            raise AttributeError(name)
        _refuse(self._store_name, self._capability)


def _refuse(store_name: str, capability: str) -> NoReturn:
    raise CapabilityError(store_name, capability, _FEATURES_OF[capability])
