"""Replay: derive memories, words, vectors and relations from the history and the messages, and compare.

Both sides are reduced to one digest each. The digests are equal if and only if nothing differs. Items that cannot be
derived, such as relations that a model extracted, are left out of both and listed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import MemoryItem, Message, Scope, Triplet, VerifyItem, VerifyResult
from mem0_core.flow import Flow, do
from mem0_core.ingest.relations import extract_from_message
from mem0_core.interfaces import EmbeddedItem, MemoryFeatures
from mem0_core.language.terms import analyze_text
from mem0_core.recall.embedding import check_embedder, embed_texts

if TYPE_CHECKING:
    from mem0_core.interfaces import Ports
    from mem0_core.interfaces.maintenance import StoreMaintenance

_BATCH_ROWS = 256
_SAME_TEXT_COSINE = 0.999  # minimum cosine of two embeddings of one text
_NEVER_EXPIRED = "0001-01-01"


@dataclass(slots=True)
class Verification:
    """The outcome of a replay.

    Attributes:
        counts: number of compared items by part.
    """

    counts: dict[str, int] = field(default_factory=dict)
    differences: list[VerifyItem] = field(default_factory=list)
    underivable: list[VerifyItem] = field(default_factory=list)
    _stored: list[bytes] = field(default_factory=list)
    _derived: list[bytes] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Digest of the stored items."""
        return _digest(self._stored)

    @property
    def derived_digest(self) -> str:
        """Digest of the derived items."""
        return _digest(self._derived)

    def as_dict(self) -> VerifyResult:
        return VerifyResult(
            agrees=not self.differences,
            digest=self.digest,
            derived=self.derived_digest,
            counts=self.counts,
            differences=self.differences,
            underivable=self.underivable,
        )

    def compare(self, part: str, item: str, stored: str | None, derived: str | None, reason: str) -> None:
        """Count an item, and note it if its stored form is not the derived one; None for none."""
        self.counts[part] = self.counts.get(part, 0) + 1
        for value, lines in ((stored, self._stored), (derived, self._derived)):
            if value is not None:
                lines.append("\0".join((part, item, value)).encode(errors="surrogatepass"))
        if stored != derived:
            self.differences.append(VerifyItem(part=part, item=item, reason=reason))

    def skip(self, part: str, item: str, reason: str) -> None:
        self.underivable.append(VerifyItem(part=part, item=item, reason=reason))


def _digest(lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(len(line).to_bytes(8) + line)
    return digest.hexdigest()


@dataclass(slots=True)
class _Records:
    """The exported records of a store.

    Attributes:
        memories: by id.
        deleted: last row of the history of each memory that is gone, by its id.
        messages: with their scopes, by row.
    """

    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleted: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: dict[int, tuple[Message, Scope]] = field(default_factory=dict)
    relations: list[dict[str, Any]] = field(default_factory=list)


def verify(ports: Ports) -> Flow[Verification]:
    """Derive the contents of a store again, and compare them with the stored ones.

    Raises:
        CapabilityError: the store has no maintenance.
        ModelError: the embedder failed.
    """
    yield from check_embedder(ports)
    found = Verification()
    records = yield from do(_load, ports.store.maintenance)
    _verify_memories(records, found)
    yield from _verify_words(ports, found)
    yield from _verify_vectors(ports, found)
    _verify_relations(records, (yield from do(ports.store.maintenance.has_merges)), found)
    return found


def _load(maintenance: StoreMaintenance) -> _Records:
    records = _Records()
    for one in maintenance.iter_records(None):
        match one["kind"]:
            case "memory":
                records.memories[one["id"]] = one
            case "history":
                records.deleted[one["memory_id"]] = one
            case "message":
                message = Message(one["role"], one["content"], name=one.get("name"), timestamp=one["created_at"])
                records.messages[one["id"]] = message, _scope_of(one)
            case "relation":
                records.relations.append(one)
    return records


def _scope_of(record: Mapping[str, Any]) -> Scope:
    return Scope(record.get("user_id"), record.get("agent_id"), record.get("run_id"))


# --- memories ----------------------------------------------------------------------------------------------------


def _verify_memories(records: _Records, found: Verification) -> None:
    """Compare each memory with the last entry of its history."""
    for memory_id, memory in records.memories.items():
        if not memory["history"]:
            found.skip("memories", memory_id, "it has no history")
            continue
        last = memory["history"][-1]
        text = None if last["is_deleted"] else last.get("new_memory")
        reason = "its history says that it was deleted" if text is None else "its history has another text"
        found.compare("memories", memory_id, memory["memory"], text, reason)
    for memory_id, last in records.deleted.items():
        if not last["is_deleted"]:
            found.compare("memories", memory_id, None, last.get("new_memory"), "it is missing; its history has it")


# --- words and vectors -------------------------------------------------------------------------------------------


def _verify_words(ports: Ports, found: Verification) -> Flow[None]:
    """Analyze each text again, and compare its ranking features."""
    import numpy as np

    by_scope: dict[Scope, list[MemoryItem]] = {}
    for item in (yield from do(ports.store.list_memories, None)):
        by_scope.setdefault(item.scope, []).append(item)
    vector = np.zeros(ports.embedder.dims, dtype=np.float32)
    for scope, items in by_scope.items():
        for batch in _batches(items):
            rows = [item.row for item in batch if item.row is not None]
            features, *_ = yield from do(
                ports.store.lexicon.memory_features, scope, rows, today=_NEVER_EXPIRED, vector=vector
            )
            stored = {one.row: _describe(one) for one in features}
            for item in batch:
                assert item.row is not None
                found.compare("words", item.id, stored.get(item.row), _analyze(item), "its words differ from its text")


def _describe(features: MemoryFeatures) -> str:
    return "\0".join((features.terms, features.names, features.slots, str(features.word_count)))


def _analyze(item: MemoryItem) -> str:
    words = analyze_text(item.text, item.actor_id, item.role)
    return "\0".join((" ".join(words.terms), "\n".join(words.names), "\n".join(words.slots), str(words.word_count)))


def _verify_vectors(ports: Ports, found: Verification) -> Flow[None]:
    """Embed everything again, and compare the directions of the vectors."""
    store = ports.store
    sources: dict[str, Any] = {"memory": getattr(store, "memory_vectors", store)}
    if ports.graph is not None:
        sources |= {"node": store.graph.node_vectors, "relation": store.graph.relation_vectors}
    items: list[EmbeddedItem] = yield from do(store.embedded_items)
    for kind, source in sources.items():
        for batch in _batches([item for item in items if item.kind == kind]):
            fresh = yield from embed_texts(ports, [item.text for item in batch])
            rows, vectors = yield from do(source.vectors, [item.row for item in batch])
            stored = dict(zip(rows.tolist(), vectors, strict=True))
            for item, vector in zip(batch, fresh, strict=True):
                is_there = item.row in stored
                is_same = is_there and float(stored[item.row] @ vector) >= _SAME_TEXT_COSINE
                present = "same" if is_same else "other" if is_there else None
                reason = "its vector is not that of its text" if is_there else "it has no vector"
                found.compare("vectors", f"{kind} {item.row}", present, "same", reason)


def _batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    for start in range(0, len(items), _BATCH_ROWS):
        yield items[start : start + _BATCH_ROWS]


# --- relations ---------------------------------------------------------------------------------------------------


def _verify_relations(records: _Records, has_merges: bool, found: Verification) -> None:
    """Read the relations of each message by rules again, and compare them with those that name it as their source."""
    stated = {row: _read_relations(*said) for row, said in records.messages.items()}
    linked: dict[int, list[Triplet]] = {}
    for one in records.relations:
        triplet = Triplet(one["source"], one["relationship"], one["destination"])
        sources = [row for row in one["messages"] if row in stated]
        for row in sources:
            linked.setdefault(row, []).append(triplet)
        texts = [records.memories[memory] for memory in one["evidence"] if memory in records.memories]
        read = [known for row in sources for known in stated[row]]
        read += [known for memory in texts for known in _read_relations(_as_message(memory), _scope_of(memory))]
        if any(known.key == triplet.key for known in read):
            found.compare("relations", f"{one['id']}: {triplet}", "stated", "stated", "")
        else:
            reason = "no rule reads it from its messages: a model, an update, a merge or another name made it"
            found.skip("relations", f"{one['id']}: {triplet}", reason)
    if has_merges:
        found.skip("relations", "all", "names were merged, so a missing relation cannot be told from a merged one")
        return
    for row, triplets in linked.items():
        for triplet in stated[row]:
            if not any(_is_meant(triplet, known) for known in triplets):
                found.compare("relations", f"message {row}: {triplet}", None, "stated", "its message states it")


def _read_relations(message: Message, scope: Scope) -> Sequence[Triplet]:
    return extract_from_message(message, scope, message.timestamp).relations


def _as_message(memory: Mapping[str, Any]) -> Message:
    at = memory.get("updated_at") or memory["created_at"]
    return Message(memory.get("role") or "user", memory["memory"], name=memory.get("actor_id"), timestamp=at)


def _is_meant(triplet: Triplet, known: Triplet) -> bool:
    """Return True if a stored relation is the stated one; one of its entities may have an earlier name."""
    one, other = triplet.key, known.key
    return one[1] == other[1] and (one[0] == other[0] or one[2] == other[2])
