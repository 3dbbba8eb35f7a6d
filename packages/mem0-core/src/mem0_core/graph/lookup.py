"""Look up a graph: its projection by vectors, and the entities that a text names by a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from mem0_core.domain.records import Entity, Scope, SkippedItem
from mem0_core.errors import StoreError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import GraphIndex, GraphMemory, GraphNeighborhood
from mem0_core.llm.prompts import NO_CONTEXT, Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


def self_name(scope: Scope) -> str:
    """Return the entity that "I" denotes: the user of a scope, else its agent, else its run."""
    return scope.partition[1]


def search_neighborhoods(
    graph: GraphMemory,
    scope: Scope,
    vectors: NDArray[np.float32],
    *,
    threshold: float,
    limit: int,
    as_of: str | None = None,
) -> Flow[list[GraphNeighborhood]]:
    """Search the nodes near each vector, with their relations; see `GraphIndex.neighborhoods`.

    Where the projection cannot be reached, the primary store's own index answers.
    """

    def search(index: GraphIndex) -> Flow[list[GraphNeighborhood]]:
        return do(index.neighborhoods, scope, vectors, threshold=threshold, limit=limit, as_of=as_of)

    return (yield from _search_index(graph, search))


def search_relations(
    graph: GraphMemory,
    scope: Scope,
    vectors: NDArray[np.float32],
    limit: int,
    *,
    threshold: float,
    as_of: str | None = None,
) -> Flow[list[list[tuple[int, float]]]]:
    """Search the relations near each vector; see `GraphIndex.nearest_relations`.

    Where the projection cannot be reached, the primary store's own index answers.
    """

    def search(index: GraphIndex) -> Flow[list[list[tuple[int, float]]]]:
        return do(index.nearest_relations, scope, vectors, limit, threshold=threshold, as_of=as_of)

    return (yield from _search_index(graph, search))


def _search_index(graph: GraphMemory, search: Callable[[GraphIndex], Flow[T]]) -> Flow[T]:
    """Search the projection, or the primary store's own index where the projection fails."""
    try:
        return (yield from search(graph.index))
    except StoreError:
        if graph.index is graph.embedded_index:
            raise
    return (yield from search(graph.embedded_index))


def extract_entities(
    graph: GraphMemory,
    text: str,
    scope: Scope,
    bad_reply: Literal["skip", "raise"] = "skip",
    context: Context = NO_CONTEXT,
) -> Flow[tuple[tuple[Entity, ...], tuple[SkippedItem, ...]]]:
    """Ask the model for the entities of a text, be it a conversation or a query; "I", "me" and "my" are `self_name`.

    Raises:
        ModelError: the call failed.
        ReplyError: with ``bad_reply="raise"``, part of the answer stayed unreadable.
    """
    # A search that no model reads needs none of these modules.
    from mem0_core.llm.ask import ask_with_repair, collect_skipped
    from mem0_core.llm.graph_prompts import entities_messages, entities_tool
    from mem0_core.llm.graph_replies import entity_name_key, read_entities

    assert graph.chat is not None
    speaker = self_name(scope)
    reading = yield from ask_with_repair(
        graph.chat,
        entities_messages(text, self_name=speaker, context=context),
        task="entities",
        tools=[entities_tool(strict=graph.options.strict)],
        read=lambda reply: read_entities(reply, self_name=speaker),
        key=entity_name_key,
    )
    return reading.items, collect_skipped(reading, "entities", bad_reply)
