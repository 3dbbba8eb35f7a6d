"""The graph of one scope as nodes and relations with properties: the core of the frameworks' property graph stores.

>>> graph = ScopedGraph(memory, user_id="maya")
>>> graph.add([PropertyNode("Ana", "person", {"age": 41})], [PropertyRelation("Ana", "WORKS_AT", "Initech")])
>>> graph.load().relations
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from mem0_core._system.records import dataclass
from mem0_core.api._arguments import utc_now
from mem0_core.domain.filters import Condition
from mem0_core.domain.records import MemoryItem, Relation, Triplet, entity_key, same_fact_key
from mem0_core.errors import InputError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import search_neighborhoods, self_name
from mem0_core.ingest.stated_relations import StatedMemory, end_relations, write_stated_memories
from mem0_core.language.messages import check_metadata
from mem0_core.llm.graph_replies import build_triplet
from mem0_core.memory import AsyncMemory, Memory
from mem0_core.recall.embedding import embed_texts
from mem0_core.views._scoped import MAX_ATTEMPTS, ScopedView
from mem0_core.views.documents import GRAPH_KEY, ID_KEY, NAMED_KEY

__all__ = ["PropertyGraph", "PropertyNode", "PropertyRelation", "ScopedGraph"]

DEFAULT_LABEL = "entity"

RelationKey: TypeAlias = tuple[bytes, str, bytes]


@dataclass(frozen=True, slots=True)
class PropertyNode:
    """A node of a property graph.

    Attributes:
        id: the name of an entity, or the id of a chunk.
        properties: JSON values.
        text: content of a chunk of text; None for an entity.
    """

    id: str
    label: str = DEFAULT_LABEL
    properties: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def key(self) -> bytes:
        """Key of the node: the exact id of a chunk; the name of an entity, without case and spacing."""
        return entity_key(self.id) if self.text is None else _chunk_key(self.id)


@dataclass(frozen=True, slots=True)
class PropertyRelation:
    """A relation of a property graph.

    Attributes:
        source, target: ids of nodes.
        properties: JSON values; of a relation that a conversation states: ``valid_from``, ``weight`` and ``memories``.
    """

    source: str
    label: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PropertyGraph:
    """The nodes and relations of a scope at one time, oldest first; `nodes` holds both ends of each relation."""

    nodes: Mapping[bytes, PropertyNode]
    relations: Sequence[PropertyRelation]

    def find(self, id: str) -> PropertyNode | None:
        """Return the node with an id: a chunk with exactly this id, else the entity with this name."""
        return self.nodes.get(_chunk_key(id)) or self.nodes.get(entity_key(id))

    def ends(self, relation: PropertyRelation) -> tuple[PropertyNode, PropertyNode]:
        """Return the source and the target of a relation."""
        source, target = self.find(relation.source), self.find(relation.target)
        assert source is not None
        assert target is not None
        return source, target


class ScopedGraph(ScopedView):
    """The graph of a user (an agent, a run), with the relations of conversations and those that a caller writes.

    A chunk is a memory with exactly its text. Entities and relations with the id of a chunk under `source_key` of their
    properties are kept with its memory, which is the evidence of the relations; the others are memories of their own. A
    deleted memory takes them along. Names are equal in any case. A relation that no longer holds is not read, and a
    relation between chunks, or of a node with itself, is none of `Memory.relations`.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user_id, agent_id, run_id: owner of the graph; give at least one.
        source_key: property with the id of the chunk that a node or relation was found in.

    Raises:
        ScopeError: no id is given, or an id is invalid.

    Raises (by the methods that write):
        InputError: a name, a label or properties cannot be stored, or the policy refuses them; nothing is written.
        CapabilityError: the memory has no graph. LimitError, ModelError, StoreError: as `Memory.add`.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        source_key: str = "source",
    ) -> None:
        super().__init__(memory, user_id=user_id, agent_id=agent_id, run_id=run_id)
        self._source_key = source_key

    # --- Sync and async methods --------------------------------------------------------------------------------------

    def load(self) -> PropertyGraph:
        """Return the graph."""
        return self._memory._run(self._load_flow())

    async def aload(self) -> PropertyGraph:
        """Async version of `load`."""
        return await self._memory._arun(self._load_flow())

    def add(self, nodes: Sequence[PropertyNode] = (), relations: Sequence[PropertyRelation] = ()) -> None:
        """Add nodes and relations, or replace the labels, texts and properties of those that exist."""
        self._memory._run(self._add_flow(nodes, relations))

    async def aadd(self, nodes: Sequence[PropertyNode] = (), relations: Sequence[PropertyRelation] = ()) -> None:
        """Async version of `add`."""
        await self._memory._arun(self._add_flow(nodes, relations))

    def delete(self, nodes: Sequence[PropertyNode] = (), relations: Sequence[PropertyRelation] = ()) -> None:
        """Delete nodes with their relations, and relations.

        A relation that conversations state ends, and their memories stay.
        """
        self._memory._run(self._delete_flow(nodes, relations))

    async def adelete(self, nodes: Sequence[PropertyNode] = (), relations: Sequence[PropertyRelation] = ()) -> None:
        """Async version of `delete`."""
        await self._memory._arun(self._delete_flow(nodes, relations))

    def nearest(self, query: str | Sequence[float], *, k: int) -> list[tuple[PropertyNode, float]]:
        """Return the entities with relations and with the names nearest to a text or a vector, and their cosines."""
        return self._memory._run(self._nearest_flow(query, k))

    async def anearest(self, query: str | Sequence[float], *, k: int) -> list[tuple[PropertyNode, float]]:
        """Async version of `nearest`."""
        return await self._memory._arun(self._nearest_flow(query, k))

    # --- Flows -------------------------------------------------------------------------------------------------------

    def _load_records(self) -> Flow[_Records]:
        items = yield from self._memory._list_items_flow(self._scope, Condition(GRAPH_KEY, False, "exists"))
        return _Records([item for item in items if item.scope == self._scope], self._source_key, self_name(self._scope))

    def _load_flow(self) -> Flow[PropertyGraph]:
        records = yield from self._load_records()
        graph = self._memory.store.graph
        current = yield from do(graph.relations, self._scope)
        rows = list({row for one in current for row in (one.source_node, one.destination_node)})
        found = (yield from do(graph.nodes_by_rows, rows, scope=self._scope)) if rows else {}
        return _combine(records, current, {entity_key(one.entity.name): one.entity.type for one in found.values()})

    def _add_flow(self, nodes: Sequence[PropertyNode], relations: Sequence[PropertyRelation]) -> Flow[None]:
        checked = [_check_node(node) for node in nodes]
        stated = [_check_relation(relation) for relation in relations]
        for _ in range(MAX_ATTEMPTS):
            records = yield from self._load_records()
            for node in checked:
                records.put_node(node)
            for relation in stated:
                records.put_relation(relation)
            if (yield from self._write(records)):
                return
        raise StoreError(f"other writers changed the graph {MAX_ATTEMPTS} times; try again")

    def _delete_flow(self, nodes: Sequence[PropertyNode], relations: Sequence[PropertyRelation]) -> Flow[None]:
        gone = {node.key for node in nodes}
        names = {entity_key(node.id) for node in nodes if node.text is None}
        triplets = {triplet.key for one in relations if (triplet := _to_triplet(one, self_name(self._scope)))}
        current = yield from do(self._memory.store.graph.relations, self._scope)
        ended = [
            one
            for one in current
            if one.triplet.key in triplets or not names.isdisjoint((one.triplet.key[0], one.triplet.key[2]))
        ]
        for _ in range(MAX_ATTEMPTS):
            records = yield from self._load_records()
            records.remove(gone, relations)
            if (yield from self._write(records)):
                break
        else:
            raise StoreError(f"other writers changed the graph {MAX_ATTEMPTS} times; try again")
        if not ended:
            return
        rows = [one.row for one in ended]
        left = yield from do(self._memory.store.graph.relations_by_rows, rows, scope=self._scope)
        if stated := [one for one in left.values() if one.valid_to is None]:
            yield from end_relations((yield from self._memory._ports()), stated, at=utc_now())

    def _write(self, records: _Records) -> Flow[bool]:
        """Write the changed memories; return False if another writer changed one of them."""
        written = [carrier for carrier in records.carriers if carrier.is_changed and not carrier.is_empty]
        emptied = [carrier.item for carrier in records.carriers if carrier.is_empty and carrier.item is not None]
        texts = yield from self._choose_texts(written)
        memories = [carrier.to_memory(text, records) for carrier, text in zip(written, texts, strict=True)]
        if memories:
            self._memory._rates.record_add(self._scope)
            ports = yield from self._memory._ports()
            is_written = yield from write_stated_memories(
                ports, memories, scope=self._scope, types=records.types(), at=utc_now()
            )
            if not is_written:
                return False
        if emptied:
            yield from self._memory._delete_items_flow(emptied)
        return True

    def _choose_texts(self, carriers: Sequence[_Carrier]) -> Flow[list[str]]:
        """Return the texts of memories; one that is blank, or that another memory has, follows its id."""
        wanted = [carrier.text() for carrier in carriers]
        for carrier, text in zip(carriers, wanted, strict=True):
            if text.strip() and self._memory._allowed_text(text, self._scope) != text:
                raise InputError(f"the policy rewrites {carrier.id!r}; a property graph stores texts unchanged")
        keys = [same_fact_key(text) for text in wanted]
        known = yield from do(self._memory.store.find_by_fact_keys, self._scope, list(dict.fromkeys(keys)))
        owners = {key: item.id for key, item in known.items()}
        chosen = []
        for carrier, key, text in zip(carriers, keys, wanted, strict=True):
            own = carrier.item.id if carrier.item is not None else carrier.id
            is_free = bool(text.strip()) and owners.setdefault(key, own) == own
            chosen.append(text if is_free else f"{carrier.id}\n\n{text}")
        return chosen

    def _nearest_flow(self, query: str | Sequence[float], k: int) -> Flow[list[tuple[PropertyNode, float]]]:
        import numpy as np

        ports = yield from self._memory._ports()
        if ports.graph is None:
            return []
        if isinstance(query, str):
            vectors = yield from embed_texts(ports, [query])
        else:
            vectors = _unit_vector(query, ports.embedder.dims).reshape(1, -1)
        (around,) = yield from search_neighborhoods(
            ports.graph, self._scope, np.ascontiguousarray(vectors, np.float32), threshold=-1.0, limit=k
        )
        rows = [row for row, _ in around.nodes]
        held = (yield from do(ports.store.graph.nodes_by_rows, rows, scope=self._scope)) if rows else {}
        graph = yield from self._load_flow()
        named = [(graph.find(held[row].entity.name), cosine) for row, cosine in around.nodes if row in held]
        return [(node, cosine) for node, cosine in named if node is not None][:k]


# --- Memories that hold nodes and relations --------------------------------------------------------------------------


class _Carrier:
    """A memory with nodes and relations in its metadata: a chunk, or one entity, or one relation."""

    def __init__(self, id: str, item: MemoryItem | None = None) -> None:
        self.id = id
        self.item = item
        self.nodes: dict[bytes, PropertyNode] = {}
        self.relations: dict[RelationKey, PropertyRelation] = {}
        self.chunk: PropertyNode | None = None
        self.is_changed = False
        self.has_changed_relations = False

    @property
    def is_empty(self) -> bool:
        return self.chunk is None and not self.nodes and not self.relations

    def text(self) -> str:
        """Return the text of the memory."""
        if self.chunk is not None:
            return self.chunk.text or ""
        for relation in self.relations.values():
            return Triplet(relation.source, relation.label.casefold(), relation.target).sentence
        (node,) = self.nodes.values()
        details = [f"{key}: {value}" for key, value in node.properties.items() if isinstance(value, (str, int, float))]
        label = "" if node.label == DEFAULT_LABEL else f" ({node.label})"
        return f"{node.id}{label}" + ("; " if details else "") + "; ".join(details)

    def to_memory(self, text: str, records: _Records) -> StatedMemory:
        """Return the memory to write."""
        held = {
            "nodes": [{"id": one.id, "label": one.label, "properties": one.properties} for one in self.nodes.values()],
            "relations": [dataclasses.asdict(one) for one in self.relations.values()],
        }
        metadata: dict[str, Any] = {ID_KEY: self.id, GRAPH_KEY: held}
        if self.chunk is not None:
            metadata = {**self.chunk.properties, **metadata}
            held["chunk"] = [{"label": self.chunk.label}]
        if text.startswith(f"{self.id}\n\n"):
            metadata[NAMED_KEY] = True
        triplets = None
        if self.has_changed_relations or self.item is None:
            found = (records.to_triplet(one) for one in self.relations.values())
            triplets = list({one.key: one for one in found if one is not None}.values())
        item = None if self.item is None else dataclasses.replace(self.item, metadata=metadata)
        return StatedMemory(text, item, metadata, triplets)

    @classmethod
    def from_item(cls, item: MemoryItem) -> _Carrier:
        """Read a memory."""
        held = item.metadata[GRAPH_KEY]
        carrier = cls(str(item.metadata.get(ID_KEY, item.id)), item)
        for one in held["nodes"]:
            node = PropertyNode(one["id"], one["label"], one["properties"])
            carrier.nodes[node.key] = node
        for one in held["relations"]:
            relation = PropertyRelation(one["source"], one["label"], one["target"], one["properties"])
            carrier.relations[_relation_key(relation)] = relation
        if "chunk" in held:
            is_named = item.metadata.get(NAMED_KEY) is True
            text = item.text.removeprefix(f"{carrier.id}\n\n") if is_named else item.text
            own = {key: value for key, value in item.metadata.items() if key not in (ID_KEY, NAMED_KEY, GRAPH_KEY)}
            carrier.chunk = PropertyNode(carrier.id, held["chunk"][0]["label"], own, text)
        return carrier


class _Records:
    """The nodes and relations that memories of a scope hold, to be read or changed."""

    def __init__(self, items: Sequence[MemoryItem], source_key: str, self_name: str) -> None:
        self.carriers = [_Carrier.from_item(item) for item in items]
        self._source_key = source_key
        self._self_name = self_name
        self._chunks = {carrier.id: carrier for carrier in self.carriers if carrier.chunk is not None}
        self._by_node = {key: carrier for carrier in self.carriers for key in carrier.nodes}
        self._by_relation = {key: carrier for carrier in self.carriers for key in carrier.relations}

    def nodes(self) -> Iterable[PropertyNode]:
        """Return all nodes, chunks first in their memory."""
        for carrier in self.carriers:
            if carrier.chunk is not None:
                yield carrier.chunk
            yield from carrier.nodes.values()

    def relations(self) -> Iterable[PropertyRelation]:
        """Return all relations."""
        return (relation for carrier in self.carriers for relation in carrier.relations.values())

    def types(self) -> dict[bytes, str]:
        """Return the labels of the entities."""
        every = [node for carrier in self.carriers for node in carrier.nodes.values()]
        return {node.key: node.label for node in every if node.label != DEFAULT_LABEL}

    def to_triplet(self, relation: PropertyRelation) -> Triplet | None:
        """Return a relation as the graph holds it; None for one that the graph does not hold."""
        if relation.source in self._chunks or relation.target in self._chunks:
            return None
        return _to_triplet(relation, self._self_name)

    def put_node(self, node: PropertyNode) -> None:
        """Add or replace a node."""
        if node.text is not None:
            carrier = self._chunks.get(node.id) or self._create(node.id)
            self._chunks[node.id] = carrier
            carrier.is_changed = carrier.is_changed or carrier.chunk != node
            carrier.chunk = node
            return
        carrier = self._by_node.get(node.key) or self._home(node.properties) or self._create(f"entity {node.id}")
        self._by_node[node.key] = carrier
        carrier.is_changed = carrier.is_changed or carrier.nodes.get(node.key) != node
        carrier.nodes[node.key] = node

    def put_relation(self, relation: PropertyRelation) -> None:
        """Add or replace a relation."""
        key = _relation_key(relation)
        id = f"relation {json.dumps([relation.source, relation.label, relation.target], ensure_ascii=False)}"
        carrier = self._by_relation.get(key) or self._home(relation.properties) or self._create(id)
        self._by_relation[key] = carrier
        carrier.is_changed = carrier.has_changed_relations = True  # stated again: one that has ended holds again
        carrier.relations[key] = relation

    def remove(self, nodes: set[bytes], relations: Iterable[PropertyRelation]) -> None:
        """Remove nodes with their relations, and relations."""
        gone = {_relation_key(relation) for relation in relations}
        names = nodes | {entity_key(id) for id in self._chunks if _chunk_key(id) in nodes}
        for carrier in self.carriers:
            if carrier.chunk is not None and carrier.chunk.key in nodes:
                carrier.chunk, carrier.nodes, carrier.relations = None, {}, {}
            for node in [key for key in carrier.nodes if key in nodes]:
                del carrier.nodes[node]
                carrier.is_changed = True
            for key in [key for key in carrier.relations if key in gone or key[0] in names or key[2] in names]:
                del carrier.relations[key]
                carrier.is_changed = carrier.has_changed_relations = True

    def _home(self, properties: Mapping[str, Any]) -> _Carrier | None:
        source = properties.get(self._source_key)
        return self._chunks.get(source) if isinstance(source, str) else None

    def _create(self, id: str) -> _Carrier:
        self.carriers.append(_Carrier(id))
        return self.carriers[-1]


def _combine(records: _Records, current: Sequence[Relation], types: Mapping[bytes, str]) -> PropertyGraph:
    """Return the nodes and relations of memories, and the relations that only conversations state."""
    holding = {one.triplet.key: one for one in current}
    triplets = [(relation, records.to_triplet(relation)) for relation in records.relations()]
    relations = [relation for relation, triplet in triplets if triplet is None or triplet.key in holding]
    written = {triplet.key for _, triplet in triplets if triplet is not None}
    for key, one in holding.items():
        if key not in written:
            stated = {"valid_from": one.valid_from, "weight": one.weight, "memories": list(one.memories)}
            source, label, target = one.triplet.source, one.triplet.relationship, one.triplet.destination
            relations.append(PropertyRelation(source, label, target, stated))
    nodes = {node.key: node for node in records.nodes()}
    for relation in relations:
        for name in (relation.source, relation.target):
            name_key = entity_key(name)
            if _chunk_key(name) not in nodes and name_key not in nodes:
                nodes[name_key] = PropertyNode(name, types.get(name_key) or DEFAULT_LABEL)
    return PropertyGraph(nodes, relations)


def _chunk_key(id: str) -> bytes:
    return b"chunk:" + id.encode(errors="surrogatepass")


def _relation_key(relation: PropertyRelation) -> RelationKey:
    return entity_key(relation.source), relation.label, entity_key(relation.target)


def _to_triplet(relation: PropertyRelation, self_name: str) -> Triplet | None:
    triplet = build_triplet(relation.source, relation.label, relation.target, self_name=self_name)
    return triplet if isinstance(triplet, Triplet) else None


def _check_node(node: PropertyNode) -> PropertyNode:
    _check_name(node.id, "the id of a node")
    _check_name(node.label, f"the label of {node.id!r}")
    return dataclasses.replace(node, properties=check_metadata(node.properties, f"the node {node.id!r}"))


def _check_relation(relation: PropertyRelation) -> PropertyRelation:
    for name in ("source", "label", "target"):
        _check_name(getattr(relation, name), f"the {name} of a relation")
    place = f"the relation {relation.source!r} {relation.label} {relation.target!r}"
    return dataclasses.replace(relation, properties=check_metadata(relation.properties, place))


def _check_name(value: object, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be a non-empty text, not {value!r}")
    check_metadata({"name": value}, what)


def _unit_vector(vector: Sequence[float], dims: int) -> Any:
    import numpy as np

    given = np.asarray(vector, np.float32)
    if given.shape != (dims,):
        raise InputError(
            f"the query vector has shape {given.shape}, and the memory's embedder makes vectors of {dims} dimensions;"
            " embed queries with the memory's embedder"
        )
    length = float(np.linalg.norm(given))
    return given / length if length else given
