"""`Mem0PropertyGraphStore`: the graph of one scope as a LlamaIndex property graph store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from mem0_core import AsyncMemory, InputError, Memory
from mem0_core.api.options import unwrap_memory
from mem0_core.domain.records import entity_key
from mem0_core.views import PropertyGraph, PropertyNode, PropertyRelation, ScopedGraph
from mem0_llamaindex.convert import replace_lone_surrogates
from mem0_llamaindex.embedding import Mem0Embedding

__all__ = ["Mem0PropertyGraphStore"]

_QUERY_PROMPT = PromptTemplate(
    "Write one graph query that answers the question. The language is a part of Cypher: MATCH, WHERE, RETURN, ORDER BY,"
    " SKIP and LIMIT. Nodes have the properties name and type, relations are written [:label]. Names compare without"
    " case. Queries only read.\n"
    "Schema:\n{schema}\n\nQuestion: {question}\nReturn only the query."
)


class Mem0PropertyGraphStore(PropertyGraphStore):
    """The graph of a user (an agent, a run) as a property graph: its relations that hold now, and those written here.

    >>> store = Mem0PropertyGraphStore(memory, user_id="maya")
    >>> index = PropertyGraphIndex.from_documents(
    ...     documents, property_graph_store=store, embed_model=store.embed_model, llm=llm
    ... )

    Text chunks are memories with exactly their text, so `Memory.search` finds them. Entities and relations of a chunk
    belong to its memory and go with it; others are memories of their own. `Memory.relations`, `traverse` and `query`
    see written relations, and `get` and `get_triplets` those of conversations. Names are equal in any case.

    `structured_query` accepts the graph query language of `Memory.query`. `vector_query` compares names in the vectors
    of the memory's embedder; embeddings of nodes are not stored, so give the index `embed_model`.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: owner of the graph; give at least one.

    Raises:
        ScopeError: no id is given, or an id is invalid. ConfigError: `memory` is not a memory.

    Raises (by the methods that write):
        InputError: a name, a label or properties cannot be stored; nothing is written.
    """

    supports_structured_queries = True
    supports_vector_queries = True
    text_to_cypher_template = _QUERY_PROMPT

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        self._memory = unwrap_memory(memory)
        self._graph = ScopedGraph(
            self._memory, user_id=user_id, agent_id=agent_id, run_id=run_id, source_key=TRIPLET_SOURCE_KEY
        )
        self._ids: dict[str, Any] = {axis.value: value for axis, value in self._graph.scope.ids.items()}

    @property
    def client(self) -> Memory:
        """Memory of the graph."""
        return self._memory

    @property
    def embed_model(self) -> Mem0Embedding:
        """The memory's embedder as the embedding model of an index."""
        return Mem0Embedding(self._memory)

    # --- Read --------------------------------------------------------------------------------------------------------

    def get(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        """Return the nodes with these ids that have all these properties."""
        return _select_nodes(self._graph.load(), properties, ids)

    async def aget(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        """Async version of `get`."""
        return _select_nodes(await self._graph.aload(), properties, ids)

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the relations that match all given conditions; without a condition, none.

        A relation has a property if it or one of its ends has it.
        """
        return _Conditions(entity_names, relation_names, properties, ids).select_triplets(self._graph.load())

    async def aget_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Async version of `get_triplets`."""
        return _Conditions(entity_names, relation_names, properties, ids).select_triplets(await self._graph.aload())

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the relations up to `depth` steps from some nodes, nearest first.

        Relations with an ignored label are followed and left out.
        """
        return _select_around(self._graph.load(), graph_nodes, depth, limit, ignore_rels or ())

    async def aget_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Async version of `get_rel_map`."""
        return _select_around(await self._graph.aload(), graph_nodes, depth, limit, ignore_rels or ())

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a graph query."""
        return self._memory.query(query, parameters=param_map, **self._ids)["rows"]

    async def astructured_query(self, query: str, param_map: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Async version of `structured_query`."""
        return (await self._memory.aquery(query, parameters=param_map, **self._ids))["rows"]

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Return the entities with the names nearest to a query, and their cosines.

        Args:
            query: its `query_str`, or its `query_embedding` by `embed_model`; `similarity_top_k`.

        Raises:
            InputError: the query has neither, filters, another mode, or a vector of another length.
        """
        return _to_result(self._graph.nearest(_read_query(query), k=query.similarity_top_k))

    async def avector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Async version of `vector_query`."""
        return _to_result(await self._graph.anearest(_read_query(query), k=query.similarity_top_k))

    def get_schema(self, refresh: bool = False) -> dict[str, Any]:
        """Return the types of the entities and the names of the relationships, for a model that writes queries."""
        return _describe(self._memory.relations(**self._ids), self._graph.load())

    async def aget_schema(self, refresh: bool = False) -> dict[str, Any]:  # type: ignore[override]  # declared as text
        """Async version of `get_schema`."""
        return _describe(await self._memory.arelations(**self._ids), await self._graph.aload())

    # --- Write -------------------------------------------------------------------------------------------------------

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Add nodes, or replace the labels, texts and properties of those that exist."""
        self._graph.add([_from_node(node) for node in nodes])

    async def aupsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Async version of `upsert_nodes`."""
        await self._graph.aadd([_from_node(node) for node in nodes])

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Add relations, or replace the properties of those that exist; an unknown end becomes an entity."""
        self._graph.add(relations=[_from_relation(relation) for relation in relations])

    async def aupsert_relations(self, relations: list[Relation]) -> None:
        """Async version of `upsert_relations`."""
        await self._graph.aadd(relations=[_from_relation(relation) for relation in relations])

    async def aupsert_llama_nodes(self, llama_nodes: list[BaseNode]) -> None:
        """Add LlamaIndex nodes as chunks."""
        await self.aupsert_nodes([_to_chunk(node) for node in llama_nodes])

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Delete the nodes that match all given conditions, with their relations.

        With `relation_names`, the relations that match all given conditions are deleted, and no node. A relation that
        conversations state ends, and their memories stay. A chunk takes its entities and relations along.
        """
        conditions = _Conditions(entity_names, relation_names, properties, ids)
        self._graph.delete(*conditions.select_deleted(self._graph.load()))

    async def adelete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Async version of `delete`."""
        conditions = _Conditions(entity_names, relation_names, properties, ids)
        await self._graph.adelete(*conditions.select_deleted(await self._graph.aload()))


# --- Conversion ------------------------------------------------------------------------------------------------------


def _from_node(node: LabelledNode) -> PropertyNode:
    if isinstance(node, ChunkNode):
        text = replace_lone_surrogates(node.text)
        return PropertyNode(_clean(node.id), _clean(node.label), node.properties, text)
    return PropertyNode(_clean(node.id), _clean(node.label), node.properties)


def _from_relation(relation: Relation) -> PropertyRelation:
    ends = _clean(relation.source_id), _clean(relation.label), _clean(relation.target_id)
    return PropertyRelation(*ends, relation.properties)


def _clean(name: str) -> str:
    return replace_lone_surrogates(name)


def _to_chunk(node: BaseNode) -> ChunkNode:
    text, properties = node.get_content(MetadataMode.NONE), node_to_metadata_dict(node, remove_text=True)
    return ChunkNode(text=text, id_=node.node_id, properties=properties)


def _to_node(node: PropertyNode) -> LabelledNode:
    if node.text is not None:
        return ChunkNode(text=node.text, id_=node.id, label=node.label, properties=dict(node.properties))
    return EntityNode(name=node.id, label=node.label, properties=dict(node.properties))


def _to_triplet(graph: PropertyGraph, relation: PropertyRelation) -> Triplet:
    source, target = map(_to_node, graph.ends(relation))
    properties = dict(relation.properties)
    return (
        source,
        Relation(label=relation.label, source_id=source.id, target_id=target.id, properties=properties),
        target,
    )


def _to_result(found: Sequence[tuple[PropertyNode, float]]) -> tuple[list[LabelledNode], list[float]]:
    return [_to_node(node) for node, _ in found], [score for _, score in found]


def _read_query(query: VectorStoreQuery) -> str | list[float]:
    """Return the text or the vector of a query.

    Raises:
        InputError: the query has neither, or a condition that the graph does not know.
    """
    if query.mode != VectorStoreQueryMode.DEFAULT:
        raise InputError(f"a property graph has no query mode {query.mode.value!r}; use 'default'")
    if query.filters is not None and query.filters.filters:
        raise InputError("a query of the graph takes no filters; use structured_query for conditions")
    if query.query_str:
        return replace_lone_surrogates(query.query_str)
    if query.query_embedding is None:
        raise InputError("the query has no text and no vector; set query_str or query_embedding")
    return query.query_embedding


# --- Selection -------------------------------------------------------------------------------------------------------


class _Conditions(NamedTuple):
    """The conditions of `get_triplets` and `delete`, in the order of their arguments."""

    entity_names: list[str] | None
    relation_names: list[str] | None
    properties: dict[str, Any] | None
    ids: list[str] | None

    def select_relations(self, graph: PropertyGraph) -> list[PropertyRelation]:
        """Return the relations that match all conditions; without a condition, none."""
        if not any(self):
            return []
        given = [_keys(names) for names in (self.entity_names, self.ids) if names]
        found = _select_incident(graph, *given) if given else graph.relations
        labels = {label.casefold() for label in self.relation_names or ()}
        return [
            one
            for one in found
            if (not labels or one.label.casefold() in labels)
            and all(
                any(_has_properties(part.properties, {key: value}) for part in (one, *graph.ends(one)))
                for key, value in (self.properties or {}).items()
            )
        ]

    def select_triplets(self, graph: PropertyGraph) -> list[Triplet]:
        """Return the relations that match all conditions as triplets."""
        return [_to_triplet(graph, relation) for relation in self.select_relations(graph)]

    def select_deleted(self, graph: PropertyGraph) -> tuple[list[PropertyNode], list[PropertyRelation]]:
        """Return the nodes and the relations to delete."""
        if self.relation_names:
            return [], self.select_relations(graph)
        if not any(self):
            return [], []
        given = [_named_nodes(graph, names) for names in (self.entity_names, self.ids) if names is not None]
        nodes = given[0] if given else list(graph.nodes.values())
        if len(given) > 1:
            keys = {node.key for node in given[1]}
            nodes = [node for node in nodes if node.key in keys]
        nodes = [node for node in nodes if _has_properties(node.properties, self.properties)]
        return nodes, _select_incident(graph, _keys(node.id for node in nodes))


def _keys(names: Iterable[str]) -> set[bytes]:
    return {entity_key(name) for name in names}


def _select_incident(graph: PropertyGraph, *keys: Iterable[bytes]) -> list[PropertyRelation]:
    """Return the relations with an end among each of some groups of entities."""
    places = [{place for key in group for place in graph.incident.get(key, ())} for group in keys]
    return [graph.relations[place] for place in sorted(set.intersection(*places))]


def _has_properties(found: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(found.get(key) == value for key, value in (wanted or {}).items())


def _named_nodes(graph: PropertyGraph, names: Iterable[str]) -> list[PropertyNode]:
    nodes = (graph.find(name) for name in names)
    return list({node.key: node for node in nodes if node is not None}.values())


def _select_nodes(graph: PropertyGraph, properties: dict[str, Any] | None, ids: list[str] | None) -> list[LabelledNode]:
    nodes = graph.nodes.values() if ids is None else _named_nodes(graph, ids)
    return [_to_node(node) for node in nodes if _has_properties(node.properties, properties)]


def _select_around(
    graph: PropertyGraph, nodes: Iterable[LabelledNode], depth: int, limit: int, ignored: Iterable[str]
) -> list[Triplet]:
    """Return the relations around some nodes, breadth first and in both directions."""
    reached = _keys(node.id for node in nodes)
    frontier, found = set(reached), dict[int, None]()
    for _ in range(depth):
        near = sorted({index for key in frontier for index in graph.incident.get(key, ())} - found.keys())
        found |= dict.fromkeys(near)
        ends = {key for index in near for key in _keys((graph.relations[index].source, graph.relations[index].target))}
        frontier = ends - reached
        reached |= ends
    left_out = {label.casefold() for label in ignored}
    kept = [graph.relations[index] for index in found if graph.relations[index].label.casefold() not in left_out]
    return [_to_triplet(graph, relation) for relation in kept[: max(limit, 0)]]


def _describe(relations: Iterable[Mapping[str, Any]], graph: PropertyGraph) -> dict[str, Any]:
    types = {node.label for node in graph.nodes.values() if node.text is None}
    return {"types": sorted(types), "relationships": sorted({one["relationship"] for one in relations})}
