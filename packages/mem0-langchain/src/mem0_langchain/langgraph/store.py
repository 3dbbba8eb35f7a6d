"""`Mem0Store`: a memory as LangGraph's `BaseStore`, for ``store=`` of a graph and for tools that use a store.

An item is one memory. Its text is the first indexed part of the value; the value itself, its namespace and its key are
in the memory's metadata, as JSON. Further indexed parts are memories that refer to it. Its id is derived from
namespace and key, so putting an item again is an update with a history. Namespaces become ``user_id`` values, so the
cost of a search depends on the size of its namespace:

===================  ===================================  ===============================================
``agent_id``         ``user_id``                          contents
===================  ===================================  ===============================================
``langgraph/items``  ``langgraph/items/memories%2Fana``   items that queries can find
``langgraph/plain``  ``langgraph/plain/...``              items put with ``index=False``, or without text
``langgraph/names``  none                                 the existing namespaces, one memory each
===================  ===================================  ===============================================

Each of these ids begins with ``mem0.internal:``, which `Scope` refuses from callers: an id that a user chooses reaches
no item.

Items therefore share the guarantees of memories: one transaction, one primary store, the memory's recall, and `delete`
and `history` by `Memory`. Items are never mixed with the memories of a conversation.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from math import inf, nan
from numbers import Real
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from mem0_core import AsyncMemory, ConfigError, InputError, Memory, MemoryDict, Scope, StoreError
from mem0_core.api.options import check_constructor, unwrap_memory
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.records import RESERVED_PREFIX, Event, InternalId, MemoryChange, MemoryItem, content_hash
from mem0_core.domain.suggestions import check_inherited, describe_value
from mem0_core.domain.timestamps import utc_now
from mem0_core.flow import Flow, arun, do, run
from mem0_core.recall.embedding import placeholder_vector
from mem0_langchain.convert import extract_memories
from mem0_langchain.langgraph._filters import build_prefilter, matches_filter
from mem0_langchain.langgraph._namespaces import (
    ID_NAMESPACE,
    ITEM_TYPE,
    PART_TYPE,
    Namespace,
    NamespaceCache,
    decode_path,
    encode_path,
    has_prefix,
    matches_condition,
    normalize_op,
)
from mem0_langchain.langgraph._values import plain_value

__all__ = ["Mem0Store", "decode_label", "encode_label"]

logger = logging.getLogger("mem0_langchain")

_MAX_WRITE_ATTEMPTS = 20  # attempts to write one item that other processes are writing
_MAX_FILTER_NAMESPACES = 200  # namespaces in one filter
_OVERFETCH_FACTOR = 4  # oversampling factor for searches that filter their results
_SHELVES = {True: "items", False: "plain"}


def encode_label(text: str) -> str:
    """Encode any text, such as an e-mail address, as a namespace label: labels may not contain a period or NUL.

    >>> encode_label("ana@example.com")
    'ana@example%2Ecom'
    """
    if not text:
        raise InputError("a namespace label must not be empty")
    return text.replace("%", "%25").replace(".", "%2E").replace("\0", "%00")


def decode_label(label: str) -> str:
    """Return the text that `encode_label` encoded."""
    return label.replace("%00", "\0").replace("%2E", ".").replace("%25", "%")


@dataclasses.dataclass(frozen=True, slots=True)
class _PendingItem:
    """An item to be written: its indexed texts, one memory each, and its expiry."""

    id: str
    namespace: Namespace
    key: str
    value: str
    texts: tuple[str, ...]
    ttl: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class _ItemHit:
    """A found item with its memory id."""

    id: str
    item: SearchItem
    expires: bool


@check_constructor
@check_inherited("get", "put", "search", "delete", "list_namespaces")
@check_inherited("aget", "aput", "asearch", "adelete", "alist_namespaces")
class Mem0Store(BaseStore):
    """A LangGraph `BaseStore` over a memory. The caller closes the memory.

    >>> graph = builder.compile(store=Mem0Store(Memory()))

    Values are JSON objects and come back equal. Times, UUIDs, enumerations, dataclasses and pydantic models in them are
    stored in their JSON form. A query runs the memory's search, with a reranker
    that the memory was given; items that queries cannot find fill the remaining places. Reads in a batch do not see the
    puts of the same batch.
    Filters compare as in `InMemoryStore`, except that a missing or incomparable value does not match, where
    `InMemoryStore` raises.

    Args:
        memory: a `mem0_core.Memory`.
        fields: indexed parts of a value unless a put names others: JSON paths as in LangGraph's `IndexConfig`. By
            default the whole value, as JSON. Each part has a vector of its own; an item's score is that of its best
            part.
        ttl: LangGraph's `TTLConfig`. Expired items are never returned; `sweep_ttl` deletes them, and
            `start_ttl_sweeper` does so periodically.
        recipe: the memory's recipe for searches. By default cosines alone, as in LangGraph's own stores; ``"hybrid"``
            also weighs the words of query and item.
        name: separates several stores in one memory.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        recipe: Any = "mem0",
        name: str = "langgraph",
    ) -> None:
        self._memory = unwrap_memory(memory)
        self._primary_store = self._memory.store
        self._paths = _tokenize_paths(fields or ["$"])
        if ttl is not None and not isinstance(ttl, Mapping):
            raise ConfigError(
                f"ttl must be a mapping, not {describe_value(ttl)}; pass, for example, {{'default_ttl': 60}} (minutes)"
            )
        self.ttl_config = ttl
        self._recipe = recipe
        self._name = name
        self._namespaces = NamespaceCache(self._primary_store, Scope(agent_id=_internal_id(name, "names")))
        self._lock = Lock()  # serializes writers: a read-modify-write of an item must not be overtaken
        self._sweeper: Thread | None = None
        self._stop = Signal()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return run(self._run_batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await arun(self._run_batch(list(ops)))

    def erase(self, namespace_prefix: Sequence[str], *, reason: str) -> list[ErasureReceipt]:
        """Erase all items in and below a namespace, as `Memory.erase` does, and return a receipt for each scope.

        `delete` keeps the history of an item; this leaves nothing. If it is interrupted, call it again.

        Args:
            namespace_prefix: labels of the namespace.
            reason: reason for the receipts, such as the number of a request.

        Raises:
            InvalidNamespaceError: a label is invalid.
            InputError: the reason is empty, too long, or quotes the erased data.
            StoreError: the store failed.
        """
        return run(self._erase_items(namespace_prefix, reason))

    async def aerase(self, namespace_prefix: Sequence[str], *, reason: str) -> list[ErasureReceipt]:
        """Async version of `erase`."""
        return await arun(self._erase_items(namespace_prefix, reason))

    def _erase_items(self, prefix: Sequence[str], reason: str) -> Flow[list[ErasureReceipt]]:
        op = normalize_op(SearchOp(tuple(prefix)))
        assert isinstance(op, SearchOp)
        namespaces = yield from do(self._namespaces.with_prefix, op.namespace_prefix)
        receipts: list[ErasureReceipt] = []
        for user_id in [self._user_id(namespace, shelf) for namespace in namespaces for shelf in _SHELVES]:
            counts = yield from do(self._primary_store.maintenance.count_scope, Scope(user_id))
            if any(counts.values()):
                receipts.append((yield from self._memory._erase_flow(ids=(user_id, None, None), reason=reason)))
        # The names are last: an interrupted call finds the namespaces again.
        entries = [self._namespaces.cached_entry(namespace) for namespace in namespaces]
        named = [entry.id for entry in entries if entry is not None]
        if named:
            yield from do(self._primary_store.erase, named, at=utc_now(), purge=True)
        return receipts

    def _run_batch(self, ops: list[Op]) -> Flow[list[Result]]:
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in map(normalize_op, ops):
            result: Result = None
            if isinstance(op, GetOp):
                result = yield from do(self._get_item, op)
            elif isinstance(op, SearchOp):
                result = list((yield from self._search_items(op)))
            elif isinstance(op, ListNamespacesOp):
                result = yield from do(self._list_namespaces, op)
            else:
                puts[self._item_id(op.namespace, op.key)] = op  # the last put of a key wins
            results.append(result)
        if puts:
            yield from self._put_items(puts)
        return results

    # --- reading ---------------------------------------------------------------------------------------------------

    def _get_item(self, op: GetOp) -> Item | None:
        held = self._primary_store.get(self._item_id(op.namespace, op.key))
        if held is None or _is_expired(held.metadata):
            return None
        if op.refresh_ttl:
            self._refresh_ttl([held])
        value = json.loads(held.metadata["value"])
        created, updated = _parse_times(held.created_at, held.updated_at)
        return Item(value=value, key=op.key, namespace=op.namespace, created_at=created, updated_at=updated)

    def _search_items(self, op: SearchOp) -> Flow[list[SearchItem]]:
        if not isinstance(op.limit, int) or not isinstance(op.offset, int):
            raise InputError(
                f"limit and offset must be whole numbers, not {op.limit!r} and {op.offset!r}; pass, for example,"
                " limit=10"
            )
        end = op.offset + op.limit
        hits: list[_ItemHit] = []
        if op.query:
            hits = yield from self._search_nearest(op, end)
        if len(hits) < end:
            hits += yield from do(self._list_items, op, end - len(hits), indexed=not op.query)
        chosen = hits[op.offset : end]
        if op.refresh_ttl and any(hit.expires for hit in chosen):
            yield from do(self._refresh_ids, [hit.id for hit in chosen if hit.expires])
        return [hit.item for hit in chosen]

    def _search_nearest(self, op: SearchOp, wanted: int) -> Flow[list[_ItemHit]]:
        """Return the items in and below a namespace that are nearest to a query and pass the filter."""
        namespaces = yield from do(self._namespaces.with_prefix, op.namespace_prefix)
        if not namespaces:
            return []
        some, limit = len(namespaces) < self._namespaces.count, wanted
        scope: dict[str, Any] = {"user_id": self._user_id(namespaces[0], True)}
        if len(namespaces) > 1:
            scope = {"agent_id": self._agent_id(True)}
            limit = wanted * _OVERFETCH_FACTOR if some else wanted
        assert op.query is not None
        while True:
            options = {"limit": limit, "recipe": self._recipe, "explain": True}
            result = yield from do(self._memory.search, op.query, **scope, **options)
            memories = extract_memories(result)
            hits = yield from do(self._matching_hits, memories, op)
            if len(hits) >= wanted or len(memories) < limit:
                return hits[:wanted]
            if 1 < len(namespaces) <= _MAX_FILTER_NAMESPACES and some:  # the filter reads every value, so it runs last
                scope["filters"] = {"namespace": {"in": [encode_path(namespace) for namespace in namespaces]}}
            limit *= _OVERFETCH_FACTOR  # filtered items and other namespaces used up places

    def _matching_hits(self, memories: Iterable[MemoryDict], op: SearchOp) -> list[_ItemHit]:
        """Return the items of found memories that are in the namespace of a search and pass its filter."""
        return [
            hit
            for hit in self._living_hits(memories)
            if has_prefix(hit.item.namespace, op.namespace_prefix) and matches_filter(hit.item.value, op.filter)
        ]

    def _living_hits(self, memories: Iterable[MemoryDict]) -> Iterator[_ItemHit]:
        """Return the items of found memories, each once, with the score of its best part."""
        seen: set[str] = set()
        for memory in memories:
            id = memory["metadata"].get("item", memory["id"])
            if id in seen:
                continue
            seen.add(id)
            if id == memory["id"]:
                if not _is_expired(memory["metadata"]):
                    yield _memory_to_hit(memory)
            elif (held := self._primary_store.get(id)) is not None and not _is_expired(held.metadata):
                yield _item_to_hit(decode_path(held.metadata["namespace"]), held, _read_score(memory))

    def _list_items(self, op: SearchOp, wanted: int, *, indexed: bool) -> list[_ItemHit]:
        """Return items in insertion order, namespace by namespace, or only those that are not indexed."""
        items: list[_ItemHit] = []
        for namespace in self._namespaces.with_prefix(op.namespace_prefix):
            items += self._find_items(namespace, wanted - len(items), indexed=indexed, filter=op.filter)
            if len(items) >= wanted:
                break
        return items[:wanted]

    def _find_items(
        self, namespace: Namespace, wanted: int, *, indexed: bool, filter: Mapping[str, Any] | None = None
    ) -> list[_ItemHit]:
        limit, likely = None if filter else wanted, build_prefilter(filter)
        while True:
            held: list[MemoryItem] = []
            more = False
            for shelf in (True, False) if indexed else (False,):
                some = self._primary_store.list_memories(
                    Scope(self._user_id(namespace, shelf)), filter=likely, limit=limit
                )
                more = more or len(some) == limit
                held += some
            if indexed:
                held.sort(key=lambda item: item.created_at)
            living = (item for item in held if item.memory_type == ITEM_TYPE and not _is_expired(item.metadata))
            passing = (
                item for item in living if not filter or matches_filter(json.loads(item.metadata["value"]), filter)
            )
            hits = [_item_to_hit(namespace, item) for item in islice(passing, wanted)]
            if limit is None or len(hits) >= wanted or not more:
                return hits
            limit *= _OVERFETCH_FACTOR  # expired items used up places

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        listed: dict[Namespace, None] = {}
        for namespace in sorted(self._namespaces.with_prefix(())):
            if all(matches_condition(condition, namespace) for condition in op.match_conditions or ()):
                short = namespace[: op.max_depth]
                if short not in listed and self._find_items(namespace, 1, indexed=True):
                    listed[short] = None
                if len(listed) >= op.offset + op.limit:
                    break
        return list(listed)[op.offset : op.offset + op.limit]

    # --- writing ---------------------------------------------------------------------------------------------------

    def _put_items(self, puts: Mapping[str, PutOp]) -> Flow[None]:
        gone = [id for id, op in puts.items() if op.value is None]
        written = [self._prepare_item(id, op) for id, op in puts.items() if op.value is not None]
        texts = [text for item in written for text in item.texts]
        vectors = iter((yield from do(self._memory.embedder.embed, texts)) if texts else ())
        placeholder = self._placeholder()
        ready = [(item, [next(vectors) for _ in item.texts] or [placeholder]) for item in written]
        yield from do(self._write_items, ready, gone)

    def _prepare_item(self, id: str, op: PutOp) -> _PendingItem:
        if not isinstance(op.value, Mapping):
            raise InputError(
                f"value of {op.namespace} {op.key!r} must be a mapping, not {describe_value(op.value)}; pass, for"
                " example, {'text': ...}"
            )
        try:
            value = plain_value(op.value)
            as_json = json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"the value of {op.namespace} {op.key!r} is not JSON: {error}") from error
        paths = self._paths if op.index is None else _tokenize_paths(op.index or ())
        texts = [_clean_text(text) for path in paths for text in get_text_at_path(value, path) if text.strip()]
        return _PendingItem(id, op.namespace, op.key, as_json, tuple(dict.fromkeys(texts)), _read_minutes(op.ttl))

    def _write_items(self, items: Sequence[tuple[_PendingItem, Sequence[Any]]], gone: Sequence[str]) -> None:
        """Write items with their new namespaces, and delete others, in one transaction."""
        embedder = self._memory.embedder
        space = (embedder.name, embedder.dims) if items else None
        with self._lock:
            for attempt in range(_MAX_WRITE_ATTEMPTS):
                if attempt:
                    self._namespaces.refresh()
                now = utc_now()
                changes = [
                    self._namespace_change(namespace, now) for namespace in {item.namespace for item, _ in items}
                ]
                changes += [change for item, vectors in items for change in self._item_changes(item, vectors, now)]
                changes += self._deletions(gone)
                if not changes:
                    return
                try:
                    done = self._primary_store.commit(
                        changes, scope=self._namespaces.scope, at=now, embedding_space=space
                    )
                except StoreError:
                    added = [change.after.id for change in changes if change.event is Event.ADD]
                    if not self._primary_store.get_many(added):
                        raise
                    continue  # another process added it first: update it
                if not done.conflicts:
                    return
        keys = [item.key for item, _ in items]
        raise StoreError(f"other processes kept changing these items during the put: {keys}")

    def _namespace_change(self, namespace: Namespace, now: str) -> MemoryChange:
        """Return the change that adds a namespace, or that binds the plan to its continued existence.

        Looking it up first would cost a read, and another process could remove it between that read and the commit.
        """
        held = self._namespaces.cached_entry(namespace)
        if held is None:
            return MemoryChange(Event.ADD, self._namespaces.build_entry(namespace, now), vector=self._placeholder())
        return MemoryChange(Event.NONE, held, before=held.text)

    def _item_changes(self, item: _PendingItem, vectors: Sequence[Any], now: str) -> list[MemoryChange]:
        """Return the changes that write an item and its indexed parts, and delete those that it no longer has."""
        path, indexed = encode_path(item.namespace), bool(item.texts)
        run_id = _internal_id(self._name, "item", item.id)
        scope = Scope(self._user_id(item.namespace, indexed), self._agent_id(indexed), run_id)
        held = self._primary_store.get(item.id)
        changes: list[MemoryChange] = []
        if held is not None and (held.scope != scope or _is_expired(held.metadata)):
            changes, held = self._deletions([item.id]), None
        metadata: dict[str, Any] = {"namespace": path, "key": item.key, "value": item.value}
        if item.ttl is not None:
            metadata |= {"ttl": item.ttl, "expires": time.time() + item.ttl * 60}
        if len(item.texts) > 1:
            metadata["parts"] = len(item.texts) - 1
        texts = item.texts or (item.value,)
        ids = [item.id, *_part_ids(item.id, len(texts) - 1)]
        old_ids = [] if held is None else [held.id, *_part_ids(held.id, held.metadata.get("parts", 0))]
        for index, (id, text, vector) in enumerate(zip(ids, texts, vectors, strict=True)):
            about = metadata if index == 0 else {"namespace": path, "key": item.key, "item": item.id}
            kind = PART_TYPE if index else ITEM_TYPE
            said = MemoryItem(id, text, scope, content_hash(text), now, metadata=about, memory_type=kind)
            changes.append(_write_change(said, self._primary_store.get(id) if id in old_ids else None, vector, now))
        return changes + self._delete_changes(old_ids[len(ids) :])

    def _deletions(self, ids: Iterable[str]) -> list[MemoryChange]:
        """Return the changes that delete items with their parts; unknown items are skipped."""
        held = self._read_existing(ids)
        return self._delete_changes(
            id for item in held for id in (item.id, *_part_ids(item.id, item.metadata.get("parts", 0)))
        )

    def _delete_changes(self, ids: Iterable[str]) -> list[MemoryChange]:
        return [MemoryChange(Event.DELETE, item, before=item.text) for item in self._read_existing(ids)]

    def _read_existing(self, ids: Iterable[str]) -> list[MemoryItem]:
        wanted = list(ids)
        found = self._primary_store.get_many(wanted) if wanted else {}
        return [found[id] for id in wanted if id in found]

    def _placeholder(self) -> Any:
        return placeholder_vector(self._memory.embedder.dims)

    # --- expiry ----------------------------------------------------------------------------------------------------

    def _refresh_ids(self, ids: Sequence[str]) -> None:
        self._refresh_ttl(self._read_existing(ids))

    def _refresh_ttl(self, items: Sequence[MemoryItem]) -> None:
        """Restart the time to live of items, unless that would add less than a hundredth of it."""
        now = time.time()
        changes = []
        for item in items:
            ttl, expires = item.metadata.get("ttl"), item.metadata.get("expires")
            if ttl is not None and expires is not None and now + ttl * 60 - expires > ttl * 0.6:
                after = dataclasses.replace(item, metadata={**item.metadata, "expires": now + ttl * 60})
                changes.append(MemoryChange(Event.UPDATE, after, before=item.text))
        if changes:  # a concurrent writer of an item refreshes it as well
            self._primary_store.commit(changes, scope=self._namespaces.scope, at=utc_now())

    def sweep_ttl(self) -> int:
        """Delete expired items and return their number."""
        swept = 0
        for indexed in (True, False):
            for item in self._primary_store.list_memories(Scope(agent_id=self._agent_id(indexed))):
                if _is_expired(item.metadata):
                    self._write_items([], [item.id])
                    swept += item.memory_type == ITEM_TYPE
        return swept

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> None:
        """Sweep in a thread every `sweep_interval_minutes`; by default as configured, else every five."""
        every = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        if self._sweeper is not None and self._sweeper.is_alive():
            return
        self._stop.clear()

        def sweep() -> None:
            while not self._stop.wait(every * 60):
                try:
                    self.sweep_ttl()
                except StoreError:  # a busy database, for example; expired items are not returned in the meantime
                    logger.exception("expired items could not be deleted; the next sweep tries again")

        self._sweeper = Thread(target=sweep, name="mem0-ttl", daemon=True)
        self._sweeper.start()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; return False if a sweep took longer than `timeout` seconds."""
        self._stop.set()
        if self._sweeper is None:
            return True
        self._sweeper.join(timeout)
        return not self._sweeper.is_alive()

    # --- addresses -------------------------------------------------------------------------------------------------

    def _item_id(self, namespace: Namespace, key: str) -> str:
        place = json.dumps([self._name, *namespace, key])  # as ASCII, for any content
        return str(uuid.uuid5(ID_NAMESPACE, place))

    def _agent_id(self, indexed: bool) -> str:
        return _internal_id(self._name, _SHELVES[indexed])

    def _user_id(self, namespace: Namespace, indexed: bool) -> str:
        return _internal_id(self._name, _SHELVES[indexed], encode_path(namespace))


def _internal_id(*parts: str) -> InternalId:
    """Return an id that no caller can name; different parts give different ids."""
    return InternalId(f"{RESERVED_PREFIX}langgraph/{encode_path(parts)}")


# --- items -----------------------------------------------------------------------------------------------------------


def _memory_to_hit(memory: MemoryDict) -> _ItemHit:
    """Convert a memory that a search found to an item."""
    metadata = memory["metadata"]
    item = SearchItem(
        decode_path(metadata["namespace"]),
        metadata["key"],
        json.loads(metadata["value"]),
        *_parse_times(memory["created_at"], memory["updated_at"]),
        score=_read_score(memory),
    )
    return _ItemHit(memory["id"], item, "expires" in metadata)


def _read_minutes(ttl: Any) -> float | None:
    try:
        minutes = None if ttl is None else float(ttl) if isinstance(ttl, Real) else nan
    except OverflowError:  # an int that no float can hold
        minutes = nan
    if minutes is not None and not 0 <= minutes < inf:
        raise InputError(f"ttl must be a number of minutes, not {describe_value(ttl)}; pass, for example, ttl=60")
    return minutes


def _read_score(memory: MemoryDict) -> float:
    """Return the score of a found memory; by cosines alone it is the cosine, negative ones included."""
    explained = memory["explanation"]
    is_cosine = explained["signals"].keys() == {"dense"} and "before_rerank" not in explained
    return min(memory["score"], explained["signals"]["dense"]["value"]) if is_cosine else memory["score"]


def _item_to_hit(namespace: Namespace, held: MemoryItem, score: float | None = None) -> _ItemHit:
    value, times = json.loads(held.metadata["value"]), _parse_times(held.created_at, held.updated_at)
    item = SearchItem(namespace, held.metadata["key"], value, *times, score=score)
    return _ItemHit(held.id, item, "expires" in held.metadata)


def _part_ids(item_id: str, count: int) -> list[str]:
    """Return the ids of an item's indexed parts after the first, which is the item itself."""
    return [str(uuid.uuid5(ID_NAMESPACE, f"{item_id} {index}")) for index in range(1, count + 1)]


def _write_change(said: MemoryItem, held: MemoryItem | None, vector: Any, now: str) -> MemoryChange:
    """Return the change that adds a memory, or that updates the held one."""
    if held is None:
        return MemoryChange(Event.ADD, said, vector=vector)
    after = dataclasses.replace(said, created_at=held.created_at, updated_at=now, seq=held.seq, pinned=held.pinned)
    return MemoryChange(Event.UPDATE, after, before=held.text, vector=vector)


def _clean_text(text: str) -> str:
    """Return a text without NUL and lone surrogates; the value keeps them, as JSON."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _parse_times(created_at: str, updated_at: str | None) -> tuple[datetime, datetime]:
    created = datetime.fromisoformat(created_at)
    return created, datetime.fromisoformat(updated_at) if updated_at else created


def _is_expired(metadata: Mapping[str, Any]) -> bool:
    expires = metadata.get("expires")
    return expires is not None and expires <= time.time()


def _tokenize_paths(fields: Iterable[str]) -> list[Any]:
    return [path if path == "$" else tokenize_path(path) for path in fields]
