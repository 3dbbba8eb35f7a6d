"""Fusing: facts, operations, entities and relations by one question, over the memories and relations nearest to it.

The answer goes the way of the staged pipelines from there: `facts.plan` and `relate.merge` make the changes. One call
in place of five (six with both of step 4), for models that keep a long form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from mem0_core import rules
from mem0_core.flow import Flow, do
from mem0_core.graph_prompts import fused_messages
from mem0_core.graph_replies import Fused, FusedReply, fused_key, read_fused, split_fused
from mem0_core.pipelines.ask import ask, unread
from mem0_core.pipelines.called import called
from mem0_core.pipelines.facts import facts_of, plan, similar, with_vectors
from mem0_core.pipelines.merge import ends_of
from mem0_core.pipelines.near import embed_texts
from mem0_core.pipelines.relate import carried_out, look, self_name, surroundings
from mem0_core.pipelines.request import Learnt, Request
from mem0_core.ports import Graph, Ports
from mem0_core.prompts import NO_CONTEXT, Context
from mem0_core.records import MemoryItem, Relation, RelationChange, Skipped
from mem0_core.text import transcript

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["fuse"]


def fuse(ports: Ports, request: Request, context: Context = NO_CONTEXT) -> Flow[Learnt]:
    """What one answer makes of a conversation.

    Raises:
        ModelError: the call failed. ReplyError: with ``bad_reply="raise"``, part of the answer stayed unreadable.
    """
    text = transcript(request.messages)
    if not text:
        return Learnt()
    vectors = yield from embed_texts(ports, [text])
    memories = yield from similar(ports, request, vectors)
    relations = (yield from _nearest(ports, ports.graph, request, text, vectors)) if ports.graph else ()
    found, skipped = yield from _ask(ports, request, context, text, memories, relations)
    facts = facts_of(found.facts, request)
    said = facts or facts_of([text], request)  # operations without facts still come from these messages
    planned = plan(found.operations, said, {item.id: item for item in memories}, request)
    changes = yield from with_vectors(ports, planned, {})
    related = (yield from _relate(ports, ports.graph, request, found, relations)) if ports.graph else ()
    return Learnt(facts, changes, related, skipped)


def _nearest(
    ports: Ports, graph: Graph, request: Request, text: str, vectors: NDArray[np.float32]
) -> Flow[tuple[Relation, ...]]:
    """The relations around what the text names, so far as rules can tell, and those near the text itself, by turns."""
    known = yield from surroundings(ports, graph, request.scope, [entity.name for entity in rules.entities(text)], ())
    (near,) = yield from look(graph, "triplets", request.scope, vectors, graph.options.existing, threshold=0.0)
    rows = [row for row, _ in near]
    held = yield from do(ports.store.graph.relations_by_rows, rows, scope=request.scope, evidence=False)
    own = [held[row] for row in rows if row in held and held[row].scope.user_id == request.scope.user_id]
    by_turns = (relation for pair in zip_longest(own, known.relations) for relation in pair if relation)
    distinct = {relation.row: relation for relation in by_turns}
    return tuple(distinct.values())[: graph.options.existing]


def _ask(
    ports: Ports,
    request: Request,
    context: Context,
    text: str,
    memories: Sequence[MemoryItem],
    relations: Sequence[Relation],
) -> Flow[tuple[Fused, tuple[Skipped, ...]]]:
    assert ports.chat is not None
    texts = {str(number): item.text for number, item in enumerate(memories)}
    ids = {str(number): item.id for number, item in enumerate(memories)}
    triplets = {f"r{number}": relation.triplet for number, relation in enumerate(relations)}
    itself = self_name(request.scope)
    reading = yield from ask(
        ports.chat,
        fused_messages(
            text,
            memories=list(texts.items()),
            relations=list(triplets.items()),
            today=request.at[:10],
            self_name=itself,
            for_agent=request.is_about_agent,
            custom_facts=request.prompts.facts,
            custom_update=request.prompts.update,
            custom_graph=ports.graph.options.prompt if ports.graph else None,
            instructions=request.prompts.call,
            context=context,
        ),
        task="fused",
        schema=FusedReply,
        read=lambda reply: read_fused(reply, ids=ids, texts=texts, relations=triplets, self_name=itself),
        key=fused_key,
    )
    return split_fused(reading.items), unread(reading, "fused", request.bad_reply)


def _relate(
    ports: Ports, graph: Graph, request: Request, found: Fused, shown: Sequence[Relation]
) -> Flow[tuple[RelationChange, ...]]:
    """The graph part of the answer, merged as the staged one is."""
    stated = (yield from called(ports, request.scope)).triplets(found.relations)
    known = yield from surroundings(ports, graph, request.scope, ends_of(stated), ())
    known = dataclasses.replace(known, relations=tuple(shown))
    return (yield from carried_out(ports, request.told(), known, found.entities, stated, found.outdated, found.refined))
