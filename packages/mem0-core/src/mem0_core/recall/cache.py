"""Scopes that are searched again and again: their ranking features and vectors in memory, and what was asked of them.

The first search of a scope reads the features of all its memories into the columns of an `ActiveScope`. Every later
one compares the version of the store, which changes with every commit of any process. If it is another one, the search
compares the state of the scope, which changes with each commit that concerns it. If that has changed, it reads the
changes since the last one, and drops what they may have changed. A search during which the scope changes does without
it. So no search returns what a search without a cache would not, but for slips of the keyboard, which the words of a
scope in memory correct.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast

from mem0_core._system.locks import SignalSafeLock
from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import clear_for_epoch
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports, ScopeState, VectorReader, VersionedLexicon
from mem0_core.language.terms import split_words
from mem0_core.recall._columns import MemoryColumns, to_objects

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import Hit, MemoryItem, Scope
    from mem0_core.interfaces import FeatureChanges, MemoryStore, VectorIndex
    from mem0_core.recall._plan import Search, SearchRequest
    from mem0_core.recall._timeline import SlotMemory

T = TypeVar("T")

_MAX_SCOPE_MEMORIES = 2_048  # of a larger scope, the candidates alone are read
_MAX_MEMORIES = 20_000  # of all active scopes: about 3 kB each, without `reads` and `results`
_PRODUCT_NUMBERS = 1 << 18  # of one matrix product: for more, BLAS wakes a second thread, and may wait a time slice
_MAX_SCOPES = 4_096  # that were searched, active or not
_MAX_RESULTS = 64  # of one scope
_MAX_RECORDS = 50_000  # that `reads` and `results` of all active scopes hold: about 2 kB each
_RESULT_RECORDS = 12  # as large as a result without hits
_MAX_READ_ITEMS = 256  # memories of a scope that are read at once when it is searched again
_MAX_READS = 64  # of one scope, other than of its memories
_MAX_READ_ROWS = 512  # of one scope, and one such read
_MAX_EMBEDDINGS = 1_024
_UNREAD = object()
_MAX_QUERY_CHARS = 4_000  # longer queries, and their results, are not kept


def open_scope(ports: Ports, scope: Scope) -> Flow[ActiveScope | None]:
    """Return a scope as it is now if it is kept in memory, else None."""
    if ports.cache is None:
        return None
    opened: ActiveScope | None = yield from do(ports.cache.open, ports.store, ports.index, scope)
    return opened


def find_result(ports: Ports, request: SearchRequest) -> Flow[Search | None]:
    """Return the search of a request if it is kept in memory, and is what a new search would return."""
    if ports.cache is None:
        return None
    kept: Search | None = yield from do(ports.cache.find_result, ports.store, request)
    return kept


def is_current(ports: Ports, scope: Scope, active: ActiveScope) -> Flow[bool]:
    """Return True if nothing of a scope was changed since it was opened."""
    return ports.cache is not None and (yield from do(ports.cache.is_current, ports.store, scope, active))


def read_once(active: ActiveScope | None, key: Hashable, read: Callable[[], Flow[T]]) -> Flow[T]:
    """Return the result of a read of the graph, kept with a scope in memory, if there is one, until either changes.

    Args:
        key: the read and its arguments, of which its result must depend alone.
    """
    if active is None:
        return (yield from read())
    reads = active.reads
    if (kept := reads.get(key, _UNREAD)) is not _UNREAD:
        return cast("T", kept)
    result = reads[key] = yield from read()
    for oldest in list(reads)[:-_MAX_READS]:
        reads.pop(oldest, None)
    return result


def read_rows(
    active: ActiveScope | None, name: str, rows: Sequence[int], read: Callable[[Sequence[int]], Flow[dict[int, T]]]
) -> Flow[dict[int, T]]:
    """Return the results of a read by row, those that exist in the order of `rows`; see `read_once`.

    The first search of a scope since it changed keeps none: the next one may be just as far away.
    """
    if active is None or not active.items:
        return (yield from read(rows))
    kept = cast("dict[int, T]", active.reads.setdefault(name, {}))
    if missing := [row for row in rows if row not in kept]:
        found = yield from read(missing)
        if len(kept) + len(found) > _MAX_READ_ROWS:
            kept = {**kept, **found}  # for this search alone
        else:
            kept.update(found)
    return {row: kept[row] for row in rows if row in kept}


class SearchCache:
    """Active scopes and embedded queries of one memory, the least recently used of which are dropped.

    Safe to share between threads: an active scope is replaced, never changed.
    """

    inline = True  # see `flow`

    def __init__(self) -> None:
        self._scopes: OrderedDict[Scope, _Kept] = OrderedDict()
        self._embeddings: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._lock = SignalSafeLock()
        self._loading = SignalSafeLock()  # of the spare capacity that the versions of a scope share
        self._supported: bool | None = None
        self._memories = self._records = 0  # of all active scopes
        self._epoch = ""  # of the scopes
        self._compared_version: object = None  # of the store with that epoch, when a large scope was searched
        self._counts = dict.fromkeys(("loaded", "updated", "unchanged", "results", "embeddings"), 0)

    def open(self, store: MemoryStore, index: VectorIndex, scope: Scope) -> ActiveScope | None:
        """Return a scope as it is now; None if it is too large, or if the store or the index do not support it."""
        if self._supported is None:  # by their methods: the test of a protocol takes as long as two statements
            is_versioned = all(hasattr(store.lexicon, name) for name in ("state", "version", "feature_changes"))
            self._supported = is_versioned and hasattr(index, "read_vectors")
        if not self._supported:
            return None
        lexicon = cast("VersionedLexicon", store.lexicon)
        version = lexicon.version()
        if (kept := self._find(scope, version)) is None:
            with self._loading:  # another thread may have loaded the scope meanwhile
                version = lexicon.version()
                if (kept := self._find(scope, version)) is None:
                    kept = self._load(store, cast("VectorReader", index), lexicon, scope, version)
        if kept.active is None and version != self._compared_version:
            self._forget_erased(lexicon.state(scope).epoch)
            self._compared_version = version
        return kept.active

    def _load(
        self, store: MemoryStore, index: VectorReader, lexicon: VersionedLexicon, scope: Scope, version: object
    ) -> _Kept:
        """Read a scope, whole or what has changed, and keep it."""
        # The version and the state are read first: whatever is committed meanwhile is read again by the next search.
        before, state = self._scopes.get(scope, _UNKNOWN), lexicon.state(scope)
        if before.active is not None and before.active.state == state:
            kept, counted = before._replace(active=before.active.at_version(version)), "unchanged"
        else:
            kept = _Kept(_load(index, lexicon, scope, version, state, before.active))
            counted = "loaded" if before.active is None else "updated"
        if kept.active is not None:
            self._forget_erased(state.epoch)
        self._keep(scope, kept, counted)
        return kept

    def refresh(self, store: MemoryStore, index: VectorIndex, scope: Scope) -> None:
        """Read what has changed in the scopes in memory that hold a scope, so that their next searches need not."""
        with self._lock:
            held = [other for other, kept in self._scopes.items() if kept.active is not None and other.contains(scope)]
        for other in held:
            if (active := self.open(store, index, other)) is not None and (unread := active.find_unread_rows()):
                _prepare(active, store.memories_by_rows(unread, scope=other))

    def find_result(self, store: MemoryStore, request: SearchRequest) -> Search | None:
        """Return the search of a request if it is kept, and nothing was committed since."""
        with self._lock:
            kept = self._scopes.get(request.scope, _UNKNOWN).active
        found = None if kept is None else kept.find_result(request)
        if kept is None or found is None or cast("VersionedLexicon", store.lexicon).version() != kept.version:
            return None
        with self._lock:
            if request.scope in self._scopes:
                self._scopes.move_to_end(request.scope)
            self._counts["unchanged"] += 1
            self._counts["results"] += 1
        return found

    async def afind_result(self, store: MemoryStore, request: SearchRequest) -> Search | None:
        """Do the same on the event loop: a thread would take longer than the look-up, which waits for nothing."""
        return self.find_result(store, request)

    def is_current(self, store: MemoryStore, scope: Scope, active: ActiveScope) -> bool:
        """Return True if the store still has a scope in the state in which it is kept."""
        lexicon = cast("VersionedLexicon", store.lexicon)
        return lexicon.version() == active.version or lexicon.state(scope) == active.state

    def _find(self, scope: Scope, version: object) -> _Kept | None:
        """Return a scope that is kept at this version of the store, or that is too large for every version."""
        with self._lock:
            kept = self._scopes.get(scope)
            if kept is None or not (kept.active is None or kept.active.version == version):
                return None
            self._scopes.move_to_end(scope)
            self._counts["unchanged"] += kept.active is not None
            return kept

    def _keep(self, scope: Scope, kept: _Kept, counted: str) -> None:
        """Make a scope the one that was used last, and drop those that were not used for longest."""
        with self._lock:
            self._counts[counted] += 1
            self._replace(scope, kept)
            self._scopes.move_to_end(scope)
            while self._memories > _MAX_MEMORIES or len(self._scopes) > _MAX_SCOPES:
                self._replace(next(iter(self._scopes)), None)

    def _replace(self, scope: Scope, kept: _Kept | None) -> None:
        """Keep something else of a scope, in its order; None for nothing."""
        replaced, after = self._scopes.get(scope, _UNKNOWN), kept or _UNKNOWN
        self._memories += after.size - replaced.size
        self._records += after.records - replaced.records
        if (results := replaced.results) is not None and results is not after.results:
            results.clear()  # they refer to the scope: a cycle, which only the garbage collector would free
        if kept is None:
            del self._scopes[scope]
        else:
            self._scopes[scope] = kept

    def limit_records(self, scope: Scope, active: ActiveScope) -> None:
        """Count what a scope has read and found; if there is too much, drop that of the scopes not used for longest."""
        with self._lock:
            if self._scopes.get(scope, _UNKNOWN).active is not active:
                return  # replaced meanwhile
            self._replace(scope, _Kept(active, active.count_records()))
            if self._records <= _MAX_RECORDS:
                return
            for other, kept in list(self._scopes.items()):  # to the half, so that few searches do it
                if kept.active is not None and kept.records:
                    self._replace(other, _Kept(replace(kept.active, items={}, slot_memories={}, reads={}, results={})))
                if self._records <= _MAX_RECORDS // 2:
                    break

    def embedding(self, embedder: str, text: str) -> NDArray[np.float32] | None:
        """Return the embedding of a query by the embedder of this name, (1, dims), if it is known."""
        with self._lock:
            vectors = self._embeddings.get((embedder, text))
            if vectors is not None:
                self._embeddings.move_to_end((embedder, text))
                self._counts["embeddings"] += 1
            return vectors

    def keep_embedding(self, embedder: str, text: str, vectors: NDArray[np.float32]) -> None:
        """Keep the embedding of a query."""
        if len(text) > _MAX_QUERY_CHARS:
            return
        kept = vectors.copy()
        kept.setflags(write=False)
        with self._lock:
            self._embeddings[embedder, text] = kept
            if len(self._embeddings) > _MAX_EMBEDDINGS:
                self._embeddings.popitem(last=False)

    def forget(self, scope: Scope | None) -> None:
        """Drop what is kept of the memories of a scope, as they must not stay in memory; None for everything."""
        with self._lock:
            for kept in [kept for kept in self._scopes if scope is None or kept.contains(scope)]:
                self._replace(kept, None)
            if scope is None:
                self._embeddings.clear()

    def _forget_erased(self, epoch: str) -> None:
        """Drop all scopes and texts if an erasure, perhaps of another process, has begun a new epoch.

        The first search does too: this process may have added texts before the erasure.
        """
        before, self._epoch = self._epoch, epoch
        if before != epoch:
            self.forget(None)
            clear_for_epoch(before, epoch)

    def count(self, name: str) -> None:
        """Count a use of what is kept, for `statistics`."""
        with self._lock:
            self._counts[name] += 1

    def statistics(self) -> dict[str, int]:
        """Return the numbers of kept scopes and memories, and how often what was kept was used."""
        with self._lock:
            active = sum(kept.active is not None for kept in self._scopes.values())
            held = {"active_memories": self._memories, "records": self._records}
            return {"active_scopes": active, **held, **self._counts}


class _Kept(NamedTuple):
    """A scope that was searched; None if it is too large, or its vectors are searched by a graph.

    Attributes:
        records: those of its reads and results, as counted after the last search.
    """

    active: ActiveScope | None
    records: int = 0

    @property
    def size(self) -> int:
        return 0 if self.active is None else self.active.size

    @property
    def results(self) -> dict[Hashable, tuple[Search, list[Hit], list[str]]] | None:
        return None if self.active is None else self.active.results


_UNKNOWN = _Kept(None)


@dataclass(frozen=True, eq=False)
class ActiveScope:
    """All memories of one scope at one version of the store, by columns in the order of their rows.

    Attributes:
        version: of the store, at which the scope was compared last.
        state: of the scope; nothing here is older.
        memories: their features, expired memories included.
        previous, following: positions, from 1, of the memories said just before and after; 0 for none, (n,).
        vectors: embeddings, (n, dims).
        term_owners, terms: index of the memory and number of the term, for each term of each memory.
        vocabulary: number of each term; it grows, and the versions of a scope share it.
        lengths: number of terms of each memory, (n,).
        slots: keys of the slots of each memory, separated by newlines, (n,).
        statements: statements of each memory, as `pack_statements` writes them; empty if they are not stored, (n,).
        expiration_dates: ``YYYY-MM-DD`` or None, (n,).
        items: memories by row that were read.
        slot_memories: those of them whose statements were read, see `_slots`.
        reads: results of reads of the graph, see `read_once`.
        results: searches, with their hits and notes.
    """

    version: object
    state: ScopeState
    memories: MemoryColumns
    previous: NDArray[np.int64]
    following: NDArray[np.int64]
    vectors: NDArray[np.float32]
    term_owners: NDArray[np.int64]
    terms: NDArray[np.int64]
    vocabulary: dict[str, int]
    lengths: NDArray[np.int64]
    slots: NDArray[np.object_]
    statements: NDArray[np.object_]
    expiration_dates: NDArray[np.object_]
    items: dict[int, MemoryItem]
    slot_memories: dict[int, SlotMemory]
    reads: dict[Hashable, object]
    results: dict[Hashable, tuple[Search, list[Hit], list[str]]]

    def find_result(self, request: SearchRequest) -> Search | None:
        """Return the search of this request, if it is kept."""
        if request.filter is not None or (kept := self.results.get(request)) is None:  # a filter has no hash
            return None
        search, hits, notes = kept
        return replace(search, hits=list(hits), notes=list(notes))

    def keep_result(self, request: SearchRequest, search: Search) -> None:
        """Keep a search, and drop the oldest if too many are kept."""
        if request.filter is not None or len(request.query.text) > _MAX_QUERY_CHARS:
            return
        self.results[request] = search, list(search.hits), list(search.notes)
        for oldest in list(self.results)[:-_MAX_RESULTS]:
            self.results.pop(oldest, None)

    def count_records(self) -> int:
        """Return the number of rows, vectors and hits that reads and results hold."""
        hits = sum(_RESULT_RECORDS + len(hits) for _, hits, _ in list(self.results.values()))
        return hits + sum(len(read) for read in list(self.reads.values()) if isinstance(read, Sized))

    def at_version(self, version: object) -> ActiveScope:
        """Return the scope at another version of the store, in which nothing of it was changed."""
        same = copy(self)
        object.__setattr__(same, "version", version)
        return same

    @property
    def size(self) -> int:
        """The number of memories."""
        return len(self.lengths)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Positions of all memories, from 1, (n,)."""
        import numpy as np

        return np.arange(1, self.size + 1)

    @cached_property
    def _expiring(self) -> list[tuple[int, str]]:
        return [(index, day) for index, day in enumerate(self.expiration_dates) if day is not None]

    @cached_property
    def _term_postings(self) -> tuple[NDArray[np.int64], list[int]]:
        """Indexes of the memories that have a term, term by term, and where those of each term begin, by its number."""
        import numpy as np

        order = np.argsort(self.terms, kind="stable")
        counts = np.bincount(self.terms)
        return self.term_owners[order], [0, *np.cumsum(counts).tolist()]

    @cached_property
    def speaker_words(self) -> frozenset[str]:
        """Words of the names of all speakers."""
        return frozenset(word for name in set(self.memories.actor_ids) if name for word in split_words(name))

    @cached_property
    def _rows_by_name(self) -> dict[str, list[int]]:
        return _group_rows(self.memories.rows, self.memories.names)

    @cached_property
    def _rows_by_slot(self) -> dict[str, list[int]]:
        return _group_rows(self.memories.rows, self.slots)

    def find_unread_rows(self) -> list[int]:
        """Return the rows of memories to read at once: the unread ones of a small scope that was searched before."""
        if not self.items or self.size > _MAX_READ_ITEMS:
            return []
        return [row for row in self.memories.rows.tolist() if row not in self.items]

    def derive(self) -> None:
        """Compute what the next search would compute of the memories."""
        _ = self.positions, self._expiring, self._term_postings, self.speaker_words
        _ = self._rows_by_name, self._rows_by_slot

    def postings(
        self, words: Iterable[str], *, kind: Literal["name", "slot"], limit: int
    ) -> dict[str, NDArray[np.int64]]:
        """Return the rows of the memories that have each name or slot, see `interfaces.Lexicon`."""
        import numpy as np

        rows = self._rows_by_name if kind == "name" else self._rows_by_slot
        return {word: np.array(rows[word][:limit], dtype=np.int64) for word in dict.fromkeys(words) if word in rows}

    def count_terms(self, terms: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
        """Return those of `terms` that memories have or had, and how often each memory has them, (terms, n)."""
        import numpy as np

        owners, starts = self._term_postings
        last = len(starts) - 1  # the vocabulary may have more: the versions of a scope share it
        numbers = {term: number for term in terms if (number := self.vocabulary.get(term, last)) < last}
        counts = np.empty((len(numbers), self.size), dtype=np.int64)
        for row, number in zip(counts, numbers.values(), strict=True):
            row[:] = np.bincount(owners[starts[number] : starts[number + 1]], minlength=self.size)
        return list(numbers), counts

    @cached_property
    def present_terms(self) -> list[str]:
        """The terms that memories have; `vocabulary` keeps those of former ones."""
        return [term for term in list(self.vocabulary) if self.find_term(term) is not None]

    def find_term(self, term: str) -> int | None:
        """Return the row of a memory that has a term; None if there is none."""
        owners, starts = self._term_postings
        number = self.vocabulary.get(term, len(starts))
        found = number + 1 < len(starts) and starts[number] < starts[number + 1]
        return int(self.memories.rows[owners[starts[number]]]) if found else None

    def cosines(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of each memory to a query's vector, (n,)."""
        import numpy as np

        if not self.size:
            return np.zeros(0, dtype=np.float32)
        size = max(1, _PRODUCT_NUMBERS // len(vector))
        blocks = [self.vectors[start : start + size] @ vector for start in range(0, self.size, size)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def find(self, rows: Sequence[int], today: str | None = None) -> NDArray[np.int64]:
        """Return the indexes of those of `rows` that exist, and that have not expired before a day."""
        import numpy as np

        wanted = np.array(rows, dtype=np.int64)
        indexes = np.searchsorted(self.memories.rows, wanted)
        indexes = indexes[self.memories.rows.take(indexes, mode="clip") == wanted] if self.size else indexes[:0]
        expired = [] if today is None else self.find_expired(today)
        return indexes[~np.isin(indexes, expired)] if expired else indexes

    def find_statements(self, row: int) -> str:
        """Return the statements of a memory, as they are stored; empty if they are not."""
        index = int(self.memories.rows.searchsorted(row))
        return self.statements[index] if index < self.size and self.memories.rows[index] == row else ""

    def find_expired(self, today: str) -> list[int]:
        """Return the indexes of the memories that expired before a day."""
        return [index for index, day in self._expiring if day < today]


def _load(
    index: VectorReader,
    lexicon: VersionedLexicon,
    scope: Scope,
    version: object,
    state: ScopeState,
    kept: ActiveScope | None,
) -> ActiveScope | None:
    """Return a scope in a state, read whole or from the changes since; None if it is too large."""
    if kept is not None and kept.state.epoch != state.epoch:
        kept = None
    changes = lexicon.feature_changes(scope, after=0 if kept is None else kept.state.seq, limit=_MAX_SCOPE_MEMORIES + 1)
    changed_rows = [*changes.removed, *(memory.row for memory in changes.memories)]
    unchanged = _Content.of(kept, changed_rows)
    if len(changes.memories) + len(unchanged.memories.rows) > _MAX_SCOPE_MEMORIES:
        return None
    content = unchanged.join(changes, index, scope)
    if content is None:
        return None
    active = content.build(version, state)
    if kept is not None:
        active.items.update(kept.items.copy())
        active.slot_memories.update(kept.slot_memories.copy())
        for row in changed_rows:
            active.items.pop(row, None)
            active.slot_memories.pop(row, None)
        # A memory that changed may have been evidence, or have named somebody who was merged.
        has_additions_only = len(unchanged.memories.rows) == kept.size
        if has_additions_only and state == kept.state._replace(seq=state.seq, queued=state.queued):
            active.reads.update(kept.reads.copy())
    return active


def _prepare(active: ActiveScope, items: Mapping[int, MemoryItem]) -> None:
    """Keep memories with a scope, and compute what its next search would: a turn of an agent waits for that one."""
    from mem0_core.recall._slots import read_kept_memory  # imports this module

    active.items.update(items)
    for row in active.memories.rows[active.memories.has_slots].tolist():
        if row in items:
            read_kept_memory(active, items[row])
    active.derive()


class _Content(NamedTuple):
    """The part of an active scope that its versions share."""

    memories: MemoryColumns
    vectors: NDArray[np.float32]
    term_owners: NDArray[np.int64]
    terms: NDArray[np.int64]
    vocabulary: dict[str, int]
    slots: NDArray[np.object_]
    statements: NDArray[np.object_]
    expiration_dates: NDArray[np.object_]

    @classmethod
    def of(cls, kept: ActiveScope | None, changed_rows: Sequence[int]) -> _Content:
        """Return the content of a scope without some rows; empty if there is none."""
        import numpy as np

        gone = np.zeros(0, dtype=np.int64) if kept is None else kept.find(changed_rows)
        if kept is not None and not len(gone):
            return cls(*(getattr(kept, name) for name in cls._fields))
        if kept is None:
            numbers, nothing = np.zeros(0, dtype=np.int64), to_objects(())
            empty = np.zeros((0, 0), dtype=np.float32)
            return cls(MemoryColumns.of(()), empty, numbers, numbers, {}, nothing, nothing, nothing)
        is_kept = np.ones(kept.size, dtype=np.bool_)
        is_kept[gone] = False
        has_kept_owner = is_kept[kept.term_owners]
        places = np.cumsum(is_kept) - 1
        return cls(
            kept.memories.take(is_kept),
            kept.vectors[is_kept],
            places[kept.term_owners[has_kept_owner]],
            kept.terms[has_kept_owner],
            kept.vocabulary,
            kept.slots[is_kept],
            kept.statements[is_kept],
            kept.expiration_dates[is_kept],
        )

    def join(self, changes: FeatureChanges, index: VectorReader, scope: Scope) -> _Content | None:
        """Return the content with new and changed memories, in the order of rows; None if no vectors can be read."""
        import numpy as np

        if not changes.memories:
            return self
        found = index.read_vectors(scope, np.array([memory.row for memory in changes.memories], dtype=np.int64))
        if found is None:
            return None
        place_of = {row: place for place, row in enumerate(found[0].tolist())}
        added = [
            (memory, day)
            for memory, day in zip(changes.memories, changes.expiration_dates, strict=True)
            if memory.row in place_of  # else it was deleted meanwhile
        ]
        memories, count = [memory for memory, _ in added], len(self.memories.rows)
        texts = [memory.terms for memory in memories if memory.terms]
        terms = " ".join(texts).split(" ") if texts else []
        for term in dict.fromkeys(terms):
            self.vocabulary.setdefault(term, len(self.vocabulary))
        numbers = list(map(self.vocabulary.__getitem__, terms))
        counts = [memory.terms.count(" ") + 1 if memory.terms else 0 for memory in memories]
        owners = np.repeat(np.arange(count, count + len(memories)), counts)
        places = [place_of[memory.row] for memory in memories]
        vectors = found[1] if places == list(range(len(found[1]))) else found[1][places]
        return _Content(
            self.memories.join(MemoryColumns.of(memories)),
            _append(self.vectors, vectors),
            np.concatenate([self.term_owners, owners]),
            np.concatenate([self.terms, np.array(numbers, dtype=np.int64)]),
            self.vocabulary,
            np.concatenate([self.slots, to_objects(memory.slots for memory in memories)]),
            np.concatenate([self.statements, to_objects(memory.statements for memory in memories)]),
            np.concatenate([self.expiration_dates, to_objects(day for _, day in added)]),
        )._sort()

    def _sort(self) -> _Content:
        """Return the content in the order of rows; nearly always new rows are the highest."""
        import numpy as np

        rows = self.memories.rows
        if (rows[1:] > rows[:-1]).all():
            return self
        order = np.argsort(rows)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return self._replace(
            memories=self.memories.take(order),
            vectors=self.vectors[order],
            term_owners=places[self.term_owners],
            slots=self.slots[order],
            statements=self.statements[order],
            expiration_dates=self.expiration_dates[order],
        )

    def build(self, version: object, state: ScopeState) -> ActiveScope:
        """Return the scope in a state, with the neighbors of each memory."""
        import numpy as np

        rows, sessions = self.memories.rows, self.memories.sessions
        previous, following = np.zeros((2, len(rows)), dtype=np.int64)
        order = np.lexsort((rows, sessions))
        is_next = sessions[order][1:] == sessions[order][:-1]
        before, after = order[:-1][is_next], order[1:][is_next]
        previous[after], following[before] = before + 1, after + 1
        padded = np.concatenate([[0], rows])
        return ActiveScope(
            version=version,
            state=state,
            memories=self.memories._replace(previous_rows=padded[previous], next_rows=padded[following]),
            previous=previous,
            following=following,
            vectors=self.vectors,
            term_owners=self.term_owners,
            terms=self.terms,
            vocabulary=self.vocabulary,
            lengths=np.bincount(self.term_owners, minlength=len(rows)),
            slots=self.slots,
            statements=self.statements,
            expiration_dates=self.expiration_dates,
            items={},
            slot_memories={},
            reads={},
            results={},
        )


def _group_rows(rows: NDArray[np.int64], texts: NDArray[np.object_]) -> dict[str, list[int]]:
    """Return for each line of the texts the rows that have it."""
    grouped: dict[str, list[int]] = {}
    has_lines = texts != ""
    for row, text in zip(rows[has_lines].tolist(), texts[has_lines].tolist(), strict=True):
        for line in text.split("\n"):
            grouped.setdefault(line, []).append(row)
    return grouped


def _append(kept: NDArray[np.float32], added: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return an array with more rows; it shares the memory of `kept`, which has spare capacity from then on."""
    import numpy as np

    first, count = len(kept), len(kept) + len(added)
    if not first:
        return added
    buffer = kept.base
    if not isinstance(buffer, np.ndarray) or len(buffer) < count or buffer.shape[1:] != added.shape[1:]:
        buffer = np.empty((count * 5 // 4, added.shape[1]), dtype=np.float32)
        buffer[:first] = kept
    buffer[first:count] = added
    return buffer[:count]
