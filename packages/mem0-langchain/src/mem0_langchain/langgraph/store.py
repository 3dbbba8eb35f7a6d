"""`Mem0Store`: a memory as LangGraph's `BaseStore`, for ``store=`` of a graph and for tools that use a store.

An item is one memory. Its text is the indexed part of the value; the value itself, its namespace and its key are in
the memory's metadata, as JSON. Its id is derived from namespace and key, so putting an item again is an update with a
history. Namespaces become ``user_id`` values, so the cost of a search depends on the size of its namespace:

=====================  ===========================  =======================================================
``agent_id``           ``user_id``                  contents
=====================  ===========================  =======================================================
``langgraph``          ``langgraph:memories/ana``   items that queries can find
``langgraph plain``    ``langgraph plain:...``      items put with ``index=False``, or without any text
``langgraph names``    none                         the existing namespaces, one memory each
=====================  ===========================  =======================================================

Items therefore share the guarantees of memories: one transaction, one primary store, the memory's recall, and `delete`
and `history` by `Memory`. Items are never mixed with the memories of a conversation.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any, TypeAlias

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from mem0_core import AsyncMemory, InputError, Memory, MemoryDict, NotFoundError, Scope, StoreError
from mem0_core.domain.filters import Condition, Filter, Group
from mem0_core.domain.records import Event, MemoryChange, MemoryItem, content_hash
from mem0_core.flow import Flow, arun, do, run
from mem0_langchain.convert import extract_memories, unwrap_memory

__all__ = ["Mem0Store", "decode_label", "encode_label"]

Namespace: TypeAlias = tuple[str, ...]

_ID_NAMESPACE = uuid.UUID("8f6c2f0e-52b5-4f7b-9d5e-6d656d30676c")
_MEMORY_TYPE = "store_item"
_MAX_WRITE_ATTEMPTS = 20  # attempts to write one item that other processes are writing
_MAX_FILTER_NAMESPACES = 200  # namespaces in one filter
_OVERFETCH_FACTOR = 4  # oversampling factor for searches that filter their results
_AGENT_ID_TEMPLATES: dict[bool, str] = {True: "{name}", False: "{name} plain"}


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
    """An item to be written: its indexed text and its expiry."""

    id: str
    namespace: Namespace
    key: str
    value: str
    text: str | None
    ttl: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class _ItemHit:
    """A found item with its memory id."""

    id: str
    item: SearchItem
    expires: bool


class Mem0Store(BaseStore):
    """A LangGraph `BaseStore` over a memory. The caller closes the memory.

    >>> graph = builder.compile(store=Mem0Store(Memory()))

    Values are JSON objects and come back equal. A query runs the memory's search (its recipe, its reranker);
    items that queries cannot find fill the remaining places. Reads in a batch do not see the puts of the same batch.
    Filters compare as in `InMemoryStore`, except that a missing or incomparable value does not match, where
    `InMemoryStore` raises.

    Args:
        memory: a `mem0_core.Memory`.
        fields: indexed parts of a value unless a put names others: JSON paths as in LangGraph's `IndexConfig`. By
            default the whole value, as JSON. The texts of several parts are indexed as one.
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
        self.ttl_config = ttl
        self._recipe = recipe
        self._name = name
        self._namespaces = _NamespaceCache(self._primary_store, Scope(agent_id=f"{name} names"))
        self._lock = Lock()  # serializes writers: a read-modify-write of an item must not be overtaken
        self._sweeper: Thread | None = None
        self._stop = Signal()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return run(self._run_batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await arun(self._run_batch(list(ops)))

    def _run_batch(self, ops: list[Op]) -> Flow[list[Result]]:
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, GetOp):
                result = yield from do(self._get_item, op)
            elif isinstance(op, SearchOp):
                result = list((yield from self._search_items(op)))
            elif isinstance(op, ListNamespacesOp):
                result = yield from do(self._list_namespaces, op)
            elif isinstance(op, PutOp):
                puts[self._item_id(op.namespace, op.key)] = op  # the last put of a key wins
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
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
        namespaces = self._namespaces.with_prefix(op.namespace_prefix)
        if not namespaces:
            return []
        some, limit = len(namespaces) < self._namespaces.count, wanted
        scope: dict[str, Any] = {"user_id": self._user_id(namespaces[0], True)}
        if len(namespaces) > 1:
            scope = {"agent_id": self._agent_id(True)}
            limit = wanted * _OVERFETCH_FACTOR if some else wanted
        assert op.query is not None
        while True:
            result = yield from do(self._memory.search, op.query, **scope, limit=limit, recipe=self._recipe)
            memories = extract_memories(result)
            living = (_memory_to_hit(memory) for memory in memories if not _is_expired(memory["metadata"]))
            with_prefix = (hit for hit in living if _has_prefix(hit.item.namespace, op.namespace_prefix))
            hits = [hit for hit in with_prefix if _matches_filter(hit.item.value, op.filter)]
            if len(hits) >= wanted or len(memories) < limit:
                return hits[:wanted]
            if 1 < len(namespaces) <= _MAX_FILTER_NAMESPACES and some:  # the filter reads every value, so it runs last
                scope["filters"] = {"namespace": {"in": [_encode_path(namespace) for namespace in namespaces]}}
            limit *= _OVERFETCH_FACTOR  # filtered items and other namespaces used up places

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
        limit, likely = None if filter else wanted, _build_prefilter(filter)
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
            living = (item for item in held if not _is_expired(item.metadata))
            passing = (
                item for item in living if not filter or _matches_filter(json.loads(item.metadata["value"]), filter)
            )
            hits = [_item_to_hit(namespace, item) for item in islice(passing, wanted)]
            if limit is None or len(hits) >= wanted or not more:
                return hits
            limit *= _OVERFETCH_FACTOR  # expired items used up places

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        listed: dict[Namespace, None] = {}
        for namespace in sorted(self._namespaces.with_prefix(())):
            if all(_matches(condition, namespace) for condition in op.match_conditions or ()):
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
        for id in gone:
            with suppress(NotFoundError):
                yield from do(self._memory.delete, id)
        if not written:
            return
        texts = [item.text for item in written if item.text is not None]
        vectors = iter((yield from do(self._memory.embedder.embed, texts)) if texts else ())
        placeholder = self._placeholder()
        ready = [(item, placeholder if item.text is None else next(vectors)) for item in written]
        yield from do(self._write_items, ready)

    def _prepare_item(self, id: str, op: PutOp) -> _PendingItem:
        value = op.value
        if not isinstance(value, Mapping):
            raise InputError(f"the value of {op.namespace} {op.key!r} must be a mapping, not {type(value).__name__}")
        paths = self._paths if op.index is None else _tokenize_paths(op.index or ())
        texts = [text for path in paths for text in get_text_at_path(value, path)]
        try:
            as_json = json.dumps(dict(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"the value of {op.namespace} {op.key!r} is not JSON: {error}") from error
        text = "\n".join(text for text in texts if text.strip()).replace("\0", " ")
        text = text.encode("utf-8", "replace").decode()  # lone surrogates; the value keeps them, as JSON
        return _PendingItem(id, op.namespace, op.key, as_json, text or None, op.ttl)

    def _write_items(self, items: Sequence[tuple[_PendingItem, Any]]) -> None:
        """Write items and their new namespaces in one transaction."""
        embedder = self._memory.embedder
        space = (embedder.name, embedder.dims)
        with self._lock:
            for attempt in range(_MAX_WRITE_ATTEMPTS):
                if attempt:
                    self._namespaces.refresh()
                now = datetime.now(UTC).isoformat()
                changes = [
                    self._namespace_change(namespace, now) for namespace in {item.namespace for item, _ in items}
                ]
                changes += [self._item_change(item, vector, now) for item, vector in items]
                try:
                    done = self._primary_store.commit(
                        changes, scope=self._namespaces.scope, at=now, embedding_space=space
                    )
                except StoreError:
                    if not any(
                        change.event is Event.ADD and self._primary_store.get(change.after.id) for change in changes
                    ):
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

    def _item_change(self, item: _PendingItem, vector: Any, now: str) -> MemoryChange:
        text = item.text if item.text is not None else item.value
        metadata: dict[str, Any] = {"namespace": _encode_path(item.namespace), "key": item.key, "value": item.value}
        if item.ttl is not None:
            metadata |= {"ttl": item.ttl, "expires": time.time() + item.ttl * 60}
        indexed = item.text is not None
        scope = Scope(self._user_id(item.namespace, indexed), self._agent_id(indexed), item.id)
        held = self._primary_store.get(item.id)
        if held is not None and (held.scope != scope or _is_expired(held.metadata)):
            self._memory.delete(item.id)
            held = None
        said = MemoryItem(item.id, text, scope, content_hash(text), now, metadata=metadata, memory_type=_MEMORY_TYPE)
        if held is None:
            return MemoryChange(Event.ADD, said, vector=vector)
        after = dataclasses.replace(said, created_at=held.created_at, updated_at=now, seq=held.seq, pinned=held.pinned)
        return MemoryChange(Event.UPDATE, after, before=held.text, vector=vector)

    def _placeholder(self) -> Any:
        """Return a vector for a memory that is never searched by vectors."""
        vector = np.zeros(self._memory.embedder.dims, np.float32)
        vector[0] = 1
        return vector

    # --- expiry ----------------------------------------------------------------------------------------------------

    def _refresh_ids(self, ids: Sequence[str]) -> None:
        held = [self._primary_store.get(id) for id in ids]
        self._refresh_ttl([item for item in held if item is not None])

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
            self._primary_store.commit(changes, scope=self._namespaces.scope, at=datetime.now(UTC).isoformat())

    def sweep_ttl(self) -> int:
        """Delete expired items and return their number."""
        swept = 0
        for indexed in (True, False):
            for item in self._primary_store.list_memories(Scope(agent_id=self._agent_id(indexed))):
                if _is_expired(item.metadata):
                    with suppress(NotFoundError):
                        self._memory.delete(item.id)
                        swept += 1
        return swept

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> None:
        """Sweep in a thread every `sweep_interval_minutes`; by default as configured, else every five."""
        every = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        if self._sweeper is not None and self._sweeper.is_alive():
            return
        self._stop.clear()

        def sweep() -> None:
            while not self._stop.wait(every * 60):
                self.sweep_ttl()

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
        return str(uuid.uuid5(_ID_NAMESPACE, place))

    def _agent_id(self, indexed: bool) -> str:
        return _AGENT_ID_TEMPLATES[indexed].format(name=self._name)

    def _user_id(self, namespace: Namespace, indexed: bool) -> str:
        return f"{self._agent_id(indexed)}:{_encode_path(namespace)}"


class _NamespaceCache:
    """The namespaces that exist or existed, kept up to date by sequence number like a projection."""

    def __init__(self, truth: Any, scope: Scope) -> None:
        self.scope = scope
        self._primary_store = truth
        self._lock = Lock()
        self._position: Any = None
        self._by_row: dict[int, Namespace] = {}  # by row, so in the order of creation
        self._entries: dict[Namespace, MemoryItem] = {}
        self._by_prefix: dict[Namespace, list[Namespace]] = {}

    @property
    def count(self) -> int:
        return len(self._by_row)

    def cached_entry(self, namespace: Namespace) -> MemoryItem | None:
        """Return the memory of a namespace as last read; None if there is none."""
        if namespace not in self._entries:
            self.refresh()
        return self._entries.get(namespace)

    def with_prefix(self, prefix: Namespace) -> list[Namespace]:
        """Return the namespaces that begin with a prefix, oldest first."""
        held = self.refresh()
        some = self._by_prefix.get(prefix)
        if some is None:
            some = [namespace for namespace in held.values() if _has_prefix(namespace, prefix)]
            if self._by_row is held:
                self._by_prefix[prefix] = some
        return some

    def build_entry(self, namespace: Namespace, now: str) -> MemoryItem:
        path = _encode_path(namespace)
        return MemoryItem(
            id=str(uuid.uuid5(_ID_NAMESPACE, f"{self.scope} {path}")),
            text=path,
            scope=self.scope,
            hash=content_hash(path),
            created_at=now,
            metadata={"namespace": path},
            memory_type=_MEMORY_TYPE,
            actor_id=path,  # keeps namespaces that differ only in case or punctuation apart
        )

    def refresh(self) -> dict[int, Namespace]:
        """Return the current namespaces by row."""
        now = self._primary_store.position(self.scope)
        if self._position == now:
            return self._by_row
        with self._lock:
            after = 0 if self._position is None or self._position.epoch != now.epoch else self._position.seq
            held, entries = ({}, {}) if after == 0 else (dict(self._by_row), dict(self._entries))
            changes = self._primary_store.vector_changes(self.scope, after=after)
            for row in changes.removed.tolist():
                entries.pop(held.pop(row, ()), None)
            for row, item in sorted(
                self._primary_store.memories_by_rows(changes.rows.tolist(), scope=self.scope).items()
            ):
                held[row] = _decode_path(item.metadata["namespace"])
                entries[held[row]] = item
            self._by_row, self._entries, self._position, self._by_prefix = held, entries, now, {}
        return held


# --- namespaces and items ------------------------------------------------------------------------------------------


def _encode_path(namespace: Namespace) -> str:
    return "/".join(label.replace("%", "%25").replace("/", "%2F") for label in namespace)


def _decode_path(path: str) -> Namespace:
    return tuple(label.replace("%2F", "/").replace("%25", "%") for label in path.split("/"))


def _has_prefix(namespace: Namespace, prefix: Namespace) -> bool:
    return namespace[: len(prefix)] == tuple(prefix)


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _memory_to_hit(memory: MemoryDict) -> _ItemHit:
    """Convert a memory that a search found to an item."""
    metadata = memory["metadata"]
    item = SearchItem(
        _decode_path(metadata["namespace"]),
        metadata["key"],
        json.loads(metadata["value"]),
        *_parse_times(memory["created_at"], memory["updated_at"]),
        score=memory["score"],
    )
    return _ItemHit(memory["id"], item, "expires" in metadata)


def _item_to_hit(namespace: Namespace, held: MemoryItem) -> _ItemHit:
    value = json.loads(held.metadata["value"])
    item = SearchItem(namespace, held.metadata["key"], value, *_parse_times(held.created_at, held.updated_at))
    return _ItemHit(held.id, item, "expires" in held.metadata)


def _parse_times(created_at: str, updated_at: str | None) -> tuple[datetime, datetime]:
    created = datetime.fromisoformat(created_at)
    return created, datetime.fromisoformat(updated_at) if updated_at else created


def _is_expired(metadata: Mapping[str, Any]) -> bool:
    expires = metadata.get("expires")
    return expires is not None and expires <= time.time()


def _tokenize_paths(fields: Iterable[str]) -> list[Any]:
    return [path if path == "$" else tokenize_path(path) for path in fields]


# --- filters -------------------------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_MAX_EXACT_INT = 2**53  # up to here integers are exact as floats, and equal numbers have the same digits


def _build_prefilter(filter: Mapping[str, Any] | None) -> Filter | None:
    """Return a filter for the database that every matching item passes, and few others.

    A value is stored as JSON, in which a wanted field appears as ``"key": value`` at some depth. Return None if nothing
    is known, or if the filter is one that only `_matches_filter` rejects.
    """
    operators = _collect_operators(filter)
    parts = (
        tuple(_build_contains_filter(key, wanted) for key, wanted in _equality_terms(filter))
        if operators <= _OPERATORS.keys()
        else ()
    )
    return Group("and", parts) if parts else None


def _collect_operators(filter: Any) -> set[str]:
    if not isinstance(filter, Mapping):
        return set()
    return {key for key in filter if str(key).startswith("$")}.union(*map(_collect_operators, filter.values()))


def _equality_terms(filter: Mapping[str, Any] | None) -> Iterator[tuple[str, list[str]]]:
    """Return the keys that must equal something, with the JSON texts that equal values begin with."""
    for key, wanted in (filter or {}).items():
        if isinstance(wanted, Mapping) and not any(str(part).startswith("$") for part in wanted):
            yield from _equality_terms(wanted)
            continue
        texts = _equal_json_texts(wanted["$eq"] if isinstance(wanted, Mapping) and "$eq" in wanted else wanted)
        if texts and type(key) is str:
            yield key, texts


def _equal_json_texts(value: Any) -> list[str]:
    """Return the JSON beginnings of all values that Python considers equal to `value`; empty if there are too many."""
    if type(value) is str:
        return [json.dumps(value)]
    if type(value) in (int, float, bool) and abs(value) <= _MAX_EXACT_INT:
        whole = value == int(value)  # as 5 and as 5.0
        return [json.dumps(int(value) if whole else value), *{0: ["-0.0", "false"], 1: ["true"]}.get(value, [])]
    return []


def _build_contains_filter(key: str, texts: Sequence[str]) -> Filter:
    found = tuple(Condition("value", False, "contains", f"{json.dumps(key)}: {text}") for text in texts)
    return Group("or", found)


def _matches_filter(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    return all(_matches_value(value.get(key), wanted) for key, wanted in (filter or {}).items())


def _matches_value(value: Any, wanted: Any) -> bool:
    """Return True if a value matches, objects and lists part by part; extra keys of an object are ignored."""
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_compare_operand(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_matches_value(value.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same_length = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return same_length and all(_matches_value(part, other) for part, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compare_operand(value: Any, name: str, operand: Any) -> bool:
    if name not in _OPERATORS:
        raise ValueError(f"Unsupported operator: {name}")
    compare = _OPERATORS[name]
    if name in ("$eq", "$ne"):
        return bool(compare(value, operand))
    try:
        return bool(compare(float(value), float(operand)))
    except (TypeError, ValueError):  # missing, or not a number: not comparable
        return False
