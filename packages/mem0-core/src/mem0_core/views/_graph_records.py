"""Parts of a property graph, the memories that hold it, and the state that a view keeps between reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from mem0_core._system.records import dataclass
from mem0_core.domain.filters import Condition
from mem0_core.domain.records import MemoryItem, Relation, Scope, Triplet, entity_key, is_expired
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import self_name
from mem0_core.ingest.stated_relations import StatedMemory
from mem0_core.interfaces import ChangePosition, MemoryStore
from mem0_core.llm.graph_replies import build_triplet
from mem0_core.views.documents import GRAPH_KEY, ID_KEY, NAMED_KEY

_DEFAULT_LABEL = "entity"

_MAX_CHANGED = 2_000  # changed memories or relations; with more, everything is read again

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
    label: str = _DEFAULT_LABEL
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
    """The nodes and relations of a scope at one time, oldest first; `nodes` holds both ends of each relation.

    Attributes:
        incident: for the `records.entity_key` of each name the indexes of the relations from or to it, ascending.
    """

    nodes: Mapping[bytes, PropertyNode]
    relations: Sequence[PropertyRelation]
    incident: Mapping[bytes, Sequence[int]]

    def find(self, id: str) -> PropertyNode | None:
        """Return the node with an id: a chunk with exactly this id, else the entity with this name."""
        return self.nodes.get(_chunk_key(id)) or self.nodes.get(entity_key(id))

    def ends(self, relation: PropertyRelation) -> tuple[PropertyNode, PropertyNode]:
        """Return the source and the target of a relation."""
        source, target = self.find(relation.source), self.find(relation.target)
        assert source is not None
        assert target is not None
        return source, target


class Carrier:
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
        label = "" if node.label == _DEFAULT_LABEL else f" ({node.label})"
        return f"{node.id}{label}" + ("; " if details else "") + "; ".join(details)

    def to_memory(self, text: str, records: Records) -> StatedMemory:
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

    def copy(self) -> Carrier:
        """Return a copy to be changed."""
        copied = Carrier(self.id, self.item)
        copied.nodes, copied.relations, copied.chunk = dict(self.nodes), dict(self.relations), self.chunk
        return copied

    @classmethod
    def from_item(cls, item: MemoryItem) -> Carrier:
        """Read a memory."""
        held = item.metadata[GRAPH_KEY]
        carrier = cls(str(item.metadata.get(ID_KEY, item.id)), item)
        for one in held["nodes"]:
            node = PropertyNode(one["id"], one["label"], one["properties"])
            carrier.nodes[node.key] = node
        for one in held["relations"]:
            relation = PropertyRelation(one["source"], one["label"], one["target"], one["properties"])
            carrier.relations[relation_key(relation)] = relation
        if "chunk" in held:
            is_named = item.metadata.get(NAMED_KEY) is True
            text = item.text.removeprefix(f"{carrier.id}\n\n") if is_named else item.text
            own = {key: value for key, value in item.metadata.items() if key not in (ID_KEY, NAMED_KEY, GRAPH_KEY)}
            carrier.chunk = PropertyNode(carrier.id, held["chunk"][0]["label"], own, text)
        return carrier


class Records:
    """The nodes and relations that memories of a scope hold, to be read or changed."""

    def __init__(self, carriers: Iterable[Carrier], source_key: str, self_name: str) -> None:
        self.carriers = list(carriers)
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
        return {node.key: node.label for node in every if node.label != _DEFAULT_LABEL}

    def to_triplet(self, relation: PropertyRelation) -> Triplet | None:
        """Return a relation as the graph holds it; None for one that the graph does not hold."""
        if relation.source in self._chunks or relation.target in self._chunks:
            return None
        return to_triplet(relation, self._self_name)

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
        key = relation_key(relation)
        id = f"relation {json.dumps([relation.source, relation.label, relation.target], ensure_ascii=False)}"
        carrier = self._by_relation.get(key) or self._home(relation.properties) or self._create(id)
        self._by_relation[key] = carrier
        carrier.is_changed = carrier.has_changed_relations = True  # stated again: one that has ended holds again
        carrier.relations[key] = relation

    def remove(self, nodes: set[bytes], relations: Iterable[PropertyRelation]) -> None:
        """Remove nodes with their relations, and relations."""
        gone = {relation_key(relation) for relation in relations}
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

    def _home(self, properties: Mapping[str, Any]) -> Carrier | None:
        source = properties.get(self._source_key)
        return self._chunks.get(source) if isinstance(source, str) else None

    def _create(self, id: str) -> Carrier:
        self.carriers.append(Carrier(id))
        return self.carriers[-1]


def _combine(records: Records, current: Sequence[Relation], types: Mapping[bytes, str]) -> PropertyGraph:
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
    incident: dict[bytes, list[int]] = {}
    for index, relation in enumerate(relations):
        for name in dict.fromkeys((relation.source, relation.target)):
            name_key = entity_key(name)
            if (places := incident.setdefault(name_key, []))[-1:] != [index]:  # two spellings are one name
                places.append(index)
            if _chunk_key(name) not in nodes and name_key not in nodes:
                nodes[name_key] = PropertyNode(name, types.get(name_key) or _DEFAULT_LABEL)
    return PropertyGraph(nodes, relations, incident)


def _chunk_key(id: str) -> bytes:
    return b"chunk:" + id.encode(errors="surrogatepass")


def relation_key(relation: PropertyRelation) -> RelationKey:
    return entity_key(relation.source), relation.label, entity_key(relation.target)


def to_triplet(relation: PropertyRelation, self_name: str) -> Triplet | None:
    triplet = build_triplet(relation.source, relation.label, relation.target, self_name=self_name)
    return triplet if isinstance(triplet, Triplet) else None


# --- The state between reads -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphState:
    """The graph of a scope as last read, which the next read brings up to date by sequence number.

    Attributes:
        today: ``YYYY-MM-DD`` of the read; memories that expired before it are left out.
        carriers: the memories that hold nodes and relations, by row; they are copied to be changed.
        current: the relations that hold, by row.
        types: the types of entities, by `records.entity_key`.
    """

    position: ChangePosition
    graph_position: ChangePosition
    today: str
    carriers: Mapping[int, Carrier]
    current: Mapping[int, Relation]
    types: Mapping[bytes, str]
    graph: PropertyGraph


def read_state(
    store: MemoryStore, scope: Scope, known: GraphState | None, *, source_key: str, today: str
) -> Flow[GraphState]:
    """Return the graph of exactly this scope, from the changes since a known state if they are few."""
    position = yield from do(store.position, scope)
    graph_position = yield from do(store.graph.position)
    if known is not None and (position.epoch, graph_position.epoch, today) != (
        known.position.epoch,
        known.graph_position.epoch,
        known.today,
    ):
        known = None
    if known is not None and (position, graph_position) == (known.position, known.graph_position):
        return known
    carriers = yield from _read_carriers(store, scope, known, position, today)
    current, types = yield from _read_relations(store, scope, known, graph_position)
    if known is not None and carriers is known.carriers and current is known.current:
        graph = known.graph
    else:
        records = Records(in_order(carriers), source_key, self_name(scope))
        graph = _combine(records, sorted(current.values(), key=lambda one: (one.valid_from, one.row)), types)
    return GraphState(position, graph_position, today, carriers, current, types, graph)


def _read_carriers(
    store: MemoryStore, scope: Scope, known: GraphState | None, position: ChangePosition, today: str
) -> Flow[Mapping[int, Carrier]]:
    if known is not None and known.position == position:
        return known.carriers
    if known is not None:
        changes = yield from do(store.vector_changes, scope, after=known.position.seq, limit=_MAX_CHANGED)
        if changes.next_after is None:
            changed = changes.rows.tolist()
            items = yield from do(store.memories_by_rows, changed, scope=scope)
            gone = {*changed, *changes.removed.tolist()}
            kept = {row: carrier for row, carrier in known.carriers.items() if row not in gone}
            added = _carriers_of(items.values(), scope, today)
            return {**kept, **added} if added or len(kept) < len(known.carriers) else known.carriers
    listed = yield from do(store.list_memories, scope, filter=Condition(GRAPH_KEY, False, "exists"))
    return _carriers_of(listed, scope, today)


def _carriers_of(items: Iterable[MemoryItem], scope: Scope, today: str) -> dict[int, Carrier]:
    return {
        item.row: Carrier.from_item(item)
        for item in items
        if item.row is not None and item.scope == scope and GRAPH_KEY in item.metadata and not is_expired(item, today)
    }


def in_order(carriers: Mapping[int, Carrier]) -> list[Carrier]:
    """Return memories oldest first."""
    return [carriers[row] for row in sorted(carriers, key=lambda row: (_created_at(carriers[row]), row))]


def _created_at(carrier: Carrier) -> str:
    return "" if carrier.item is None else carrier.item.created_at


def _read_relations(
    store: MemoryStore, scope: Scope, known: GraphState | None, position: ChangePosition
) -> Flow[tuple[Mapping[int, Relation], Mapping[bytes, str]]]:
    if known is not None and known.graph_position == position:
        return known.current, known.types
    if known is not None and position.seq - known.graph_position.seq <= _MAX_CHANGED:
        delta = yield from do(store.graph.delta_since, scope, after=known.graph_position.seq)
        if not (delta.nodes or delta.edges or delta.removed_edges):
            return known.current, known.types
        rows = [edge[0] for edge in delta.edges]
        read = (yield from do(store.graph.relations_by_rows, rows, scope=scope)) if rows else {}
        gone = {*rows, *delta.removed_edges}
        current = {row: one for row, one in known.current.items() if row not in gone}
        current |= {row: one for row, one in read.items() if one.valid_to is None}
        return current, {**known.types, **{key: kind for _, _, key, _, kind in delta.nodes}}
    relations = yield from do(store.graph.relations, scope)
    rows = list({row for one in relations for row in (one.source_node, one.destination_node)})
    nodes = (yield from do(store.graph.nodes_by_rows, rows, scope=scope)) if rows else {}
    types = {entity_key(node.entity.name): node.entity.type for node in nodes.values()}
    return {one.row: one for one in relations}, types
