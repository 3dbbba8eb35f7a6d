"""Namespaces of LangGraph items: their encoding, and those that exist in a store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from threading import Lock
from typing import Any, TypeAlias

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

from mem0_core import InputError, Scope
from mem0_core.domain.records import MemoryItem, content_hash
from mem0_core.domain.suggestions import describe_value
from mem0_langchain.langgraph._values import plain_value

Namespace: TypeAlias = tuple[str, ...]

ID_NAMESPACE = uuid.UUID("8f6c2f0e-52b5-4f7b-9d5e-6d656d30676c")
ITEM_TYPE = "store_item"  # `memory_type` of an item
PART_TYPE = "store_part"  # `memory_type` of a further indexed part of one


def normalize_op(op: Op) -> Op:
    """Return an operation with its namespaces as tuples of valid labels, and its filter as JSON.

    `BaseStore.put` and its like check labels, but `batch` and `abatch` take operations as they come.

    Raises:
        InvalidNamespaceError: a label is empty, is not a string, or contains a period or NUL.
        InputError: the query is no text.
    """
    if isinstance(op, (GetOp, PutOp)):
        return op._replace(namespace=_valid_labels(op.namespace))
    if isinstance(op, SearchOp):
        if op.query is not None and not isinstance(op.query, str):
            raise InputError(
                f"query must be one text, not {describe_value(op.query)}; pass, for example, query='music'"
            )
        return op._replace(namespace_prefix=_valid_labels(op.namespace_prefix), filter=plain_value(op.filter))
    if isinstance(op, ListNamespacesOp):
        conditions = [
            MatchCondition(condition.match_type, _valid_labels(condition.path))
            for condition in op.match_conditions or ()
        ]
        return op._replace(match_conditions=tuple(conditions))
    raise ValueError(f"Unknown operation type: {type(op)}")


def _valid_labels(labels: Iterable[Any]) -> Namespace:
    if isinstance(labels, str):  # its letters would be labels
        raise InvalidNamespaceError(f"a namespace must be a tuple of labels, not {labels!r}; pass ({labels!r},)")
    namespace = tuple(labels)
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label or "\0" in label:
            raise InvalidNamespaceError(
                f"invalid label {label!r} in the namespace {namespace!r}: labels are non-empty strings without periods"
                " and NUL; `encode_label` encodes any text"
            )
    return namespace


def encode_path(namespace: Namespace) -> str:
    return "/".join(label.replace("%", "%25").replace("/", "%2F") for label in namespace)


def decode_path(path: str) -> Namespace:
    return tuple(label.replace("%2F", "/").replace("%25", "%") for label in path.split("/"))


def has_prefix(namespace: Namespace, prefix: Namespace) -> bool:
    return namespace[: len(prefix)] == tuple(prefix)


def matches_condition(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


class NamespaceCache:
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
            some = [namespace for namespace in held.values() if has_prefix(namespace, prefix)]
            if self._by_row is held:
                self._by_prefix[prefix] = some
        return some

    def build_entry(self, namespace: Namespace, now: str) -> MemoryItem:
        path = encode_path(namespace)
        return MemoryItem(
            id=str(uuid.uuid5(ID_NAMESPACE, f"{self.scope} {path}")),
            text=path,
            scope=self.scope,
            hash=content_hash(path),
            created_at=now,
            metadata={"namespace": path},
            memory_type=ITEM_TYPE,
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
                held[row] = decode_path(item.metadata["namespace"])
                entries[held[row]] = item
            self._by_row, self._entries, self._position, self._by_prefix = held, entries, now, {}
        return held
