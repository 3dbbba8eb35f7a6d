"""Fused extraction: facts, operations, entities and relations from one model call.

The prompt shows the memories and relations nearest to the conversation. The answer is then processed like that of the
staged pipeline (`_facts.plan_changes`, `relations.plan_graph_changes`). One call replaces five or six, for models that
follow a long output format.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from mem0_core.domain.records import MemoryItem, Relation, RelationChange, SkippedItem
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import search_relations, self_name
from mem0_core.ingest._facts import (
    build_facts,
    embed_changes,
    find_similar_memories,
    limit_facts,
    plan_changes,
)
from mem0_core.ingest._node_matching import Mentions
from mem0_core.ingest._relation_plan import collect_entity_names, collect_entity_types
from mem0_core.ingest.relations import load_neighborhood, plan_graph_changes, resolve_statements
from mem0_core.ingest.request import AddRequest, IngestResult
from mem0_core.interfaces import GraphMemory, Ports, Reply
from mem0_core.language import rule_extractor as rules
from mem0_core.language.messages import format_transcript, join_contents
from mem0_core.llm._json_replies import Reading
from mem0_core.llm.ask import ask_with_repair, check_usable, collect_skipped
from mem0_core.llm.graph_prompts import fused_messages
from mem0_core.llm.graph_replies import Fused, FusedItem, FusedReply, fused_key, read_fused, split_fused
from mem0_core.llm.prompts import NO_CONTEXT, Context
from mem0_core.recall.embedding import embed_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def plan_fused_ingest(ports: Ports, request: AddRequest, context: Context = NO_CONTEXT) -> Flow[IngestResult]:
    """Return the planned changes of a conversation from one model call.

    Raises:
        ModelError: the call failed.
        ReplyError: with ``bad_reply="raise"``, part of the answer was not readable; `UnusableReplyError` if it has
            neither facts nor operations.
    """
    transcript, text = format_transcript(request.messages), join_contents(request.messages)
    if not transcript:
        return IngestResult()
    vectors = yield from embed_texts(ports, [text])
    memories = yield from find_similar_memories(ports, request, vectors)
    relations = (yield from _find_nearest_relations(ports, ports.graph, request, text, vectors)) if ports.graph else ()
    reply, skipped = yield from _ask_fused(ports, request, context, transcript, memories, relations)
    facts = build_facts(reply.facts, request)
    planned, unsettled = plan_changes(reply.operations, facts, {item.id: item for item in memories}, request)
    changes = yield from embed_changes(ports, planned, {})
    related = (yield from _plan_relations(ports, ports.graph, request, reply, relations)) if ports.graph else ()
    return IngestResult(facts, changes, related, skipped + unsettled)


def _find_nearest_relations(
    ports: Ports, graph: GraphMemory, request: AddRequest, text: str, vectors: NDArray[np.float32]
) -> Flow[tuple[Relation, ...]]:
    """Return, alternating, relations around the names in the text and relations with a sentence near the text."""
    known = yield from load_neighborhood(
        ports, graph, request.scope, Mentions([entity.name for entity in rules.entities(text)]), ()
    )
    (near,) = yield from search_relations(graph, request.scope, vectors, graph.options.existing, threshold=0.0)
    rows = [row for row, _ in near]
    by_row = yield from do(ports.store.graph.relations_by_rows, rows, scope=request.scope, with_evidence=False)
    own = [by_row[row] for row in rows if row in by_row and by_row[row].scope.user_id == request.scope.user_id]
    by_turns = (relation for pair in zip_longest(own, known.relations) for relation in pair if relation)
    distinct = {relation.row: relation for relation in by_turns}
    return tuple(distinct.values())[: graph.options.existing]


def _ask_fused(
    ports: Ports,
    request: AddRequest,
    context: Context,
    transcript: str,
    memories: Sequence[MemoryItem],
    relations: Sequence[Relation],
) -> Flow[tuple[Fused, tuple[SkippedItem, ...]]]:
    assert ports.chat is not None
    texts = {str(number): item.text for number, item in enumerate(memories)}
    ids = {str(number): item.id for number, item in enumerate(memories)}
    triplets = {f"r{number}": relation.triplet for number, relation in enumerate(relations)}
    speaker = self_name(request.scope)
    numbered: dict[Hashable, int] = {}

    def read(reply: Reply) -> Reading[FusedItem]:
        found = read_fused(reply, ids=ids, texts=texts, relations=triplets, self_name=speaker, numbered=numbered)
        return limit_facts(found, request)

    reading = yield from ask_with_repair(
        ports.chat,
        fused_messages(
            transcript,
            memories=list(texts.items()),
            relations=list(triplets.items()),
            today=request.at[:10],
            self_name=speaker,
            for_agent=request.is_about_agent,
            custom_facts=request.prompts.facts,
            custom_update=request.prompts.update,
            custom_graph=ports.graph.options.prompt if ports.graph else None,
            instructions=request.prompts.instructions,
            context=context,
        ),
        task="fused",
        schema=FusedReply,
        read=read,
        key=fused_key,
    )
    skipped = collect_skipped(reading, "fused", request.bad_reply)
    fused = split_fused(reading.items)
    check_usable(Reading((*fused.facts, *fused.operations), reading.problems, reading.raw), "fused")
    return fused, skipped


def _plan_relations(
    ports: Ports, graph: GraphMemory, request: AddRequest, reply: Fused, shown: Sequence[Relation]
) -> Flow[tuple[RelationChange, ...]]:
    """Return the changes of the graph, merged as in the staged pipeline."""
    relation_input = request.to_relation_input()
    statements = yield from resolve_statements(ports, relation_input, reply.relations)
    mentions = Mentions(
        collect_entity_names(statements.triplets), statements.triplets, collect_entity_types(reply.entities)
    )
    known = yield from load_neighborhood(ports, graph, request.scope, mentions, ())
    known = dataclasses.replace(known, relations=tuple(dict.fromkeys((*shown, *known.relations))))
    return (
        yield from plan_graph_changes(
            ports, relation_input, statements, known, reply.entities, reply.outdated, reply.refined
        )
    )
