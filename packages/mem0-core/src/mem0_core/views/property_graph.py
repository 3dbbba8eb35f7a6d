"""The graph of one scope as nodes and relations with properties: the core of the frameworks' property graph stores.

>>> graph = ScopedGraph(memory, user_id="maya")
>>> graph.add([PropertyNode("Ana", "person", {"age": 41})], [PropertyRelation("Ana", "WORKS_AT", "Initech")])
>>> graph.load().relations
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mem0_core.domain.records import entity_key, same_fact_key
from mem0_core.domain.timestamps import utc_now, utc_today
from mem0_core.errors import InputError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import search_neighborhoods, self_name
from mem0_core.ingest.stated_relations import end_relations, write_stated_memories
from mem0_core.language.messages import check_metadata
from mem0_core.memory import AsyncMemory, Memory
from mem0_core.recall.embedding import embed_texts
from mem0_core.views._graph_records import (
    Carrier,
    GraphState,
    PropertyGraph,
    PropertyNode,
    PropertyRelation,
    Records,
    in_order,
    read_state,
    to_triplet,
)
from mem0_core.views._scoped import MAX_ATTEMPTS, ScopedView, unit_vector

__all__ = ["PropertyGraph", "PropertyNode", "PropertyRelation", "ScopedGraph"]


_MAX_KEPT = 200_000  # memories and relations of a state that is kept between reads, some 200 MB


class ScopedGraph(ScopedView):
    """The graph of a user (an agent, a run), with the relations of conversations and those that a caller writes.

    A chunk is a memory with exactly its text. Entities and relations with the id of a chunk under `source_key` of their
    properties are kept with its memory, which is the evidence of the relations; the others are memories of their own. A
    deleted memory takes them along. Names are equal in any case. A relation that no longer holds is not read, and a
    relation between chunks, or of a node with itself, is none of `Memory.relations`.

    The graph is read once; later reads add the changes since, of this process and of others.

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
        self._state: GraphState | None = None

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

    def _read_state(self) -> Flow[GraphState]:
        state = yield from read_state(
            self._memory.store, self._scope, self._state, source_key=self._source_key, today=utc_today()
        )
        self._state = state if len(state.carriers) + len(state.current) <= _MAX_KEPT else None
        return state

    def _load_records(self) -> Flow[Records]:
        """Return the memories with nodes and relations, to be changed."""
        state = yield from self._read_state()
        return Records(
            [carrier.copy() for carrier in in_order(state.carriers)], self._source_key, self_name(self._scope)
        )

    def _load_flow(self) -> Flow[PropertyGraph]:
        return (yield from self._read_state()).graph

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
        triplets = {triplet.key for one in relations if (triplet := to_triplet(one, self_name(self._scope)))}
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

    def _write(self, records: Records) -> Flow[bool]:
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

    def _choose_texts(self, carriers: Sequence[Carrier]) -> Flow[list[str]]:
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
            vectors = unit_vector(query, ports.embedder.dims).reshape(1, -1)
        (around,) = yield from search_neighborhoods(
            ports.graph, self._scope, np.ascontiguousarray(vectors, np.float32), threshold=-1.0, limit=k
        )
        rows = [row for row, _ in around.nodes]
        held = (yield from do(ports.store.graph.nodes_by_rows, rows, scope=self._scope)) if rows else {}
        graph = yield from self._load_flow()
        named = [(graph.find(held[row].entity.name), cosine) for row, cosine in around.nodes if row in held]
        return [(node, cosine) for node, cosine in named if node is not None][:k]


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
