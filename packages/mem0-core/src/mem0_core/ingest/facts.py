"""Facts: what a conversation says that is worth remembering, and what it does to the memories there are.

Seed 000 part 1 and seed 004: `extract_facts` facts (step 2) -> the memories `find_similar_memories` to each (3) ->
`decide_operations` what happens to them (4) -> `plan_changes` the changes (pure). The paper's update phase (seed 001)
is the same with s = 10 neighbours per fact.

Without a chat model, or with ``infer=False``, messages are kept as they were said, and only what the scope
already holds (up to case, spacing and punctuation) is NONE.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mem0_core.domain.records import (
    Event,
    Fact,
    MemoryChange,
    MemoryItem,
    Message,
    Operation,
    SkippedItem,
    content_hash,
    expires_later,
    is_expired,
    new_id,
    same_fact_key,
)
from mem0_core.errors import ConfigError, ReplyError
from mem0_core.flow import Flow, do
from mem0_core.ingest.request import PROCEDURAL_MEMORY, AddRequest, stored_messages
from mem0_core.interfaces import ChatModel, Ports
from mem0_core.language.messages import KNOWN_ROLES, SPEAKER_ROLES, format_transcript
from mem0_core.llm.ask import ask_with_repair, collect_skipped
from mem0_core.llm.prompts import (
    NO_CONTEXT,
    Context,
    facts_messages,
    operations_messages,
    operations_tools,
    procedural_messages,
)
from mem0_core.llm.replies import FactsReply, OperationsReply, Reading, operation_key, read_facts, read_operations
from mem0_core.recall.embedding import embed_texts, find_nearest_items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "build_facts",
    "build_verbatim_facts",
    "decide_operations",
    "embed_changes",
    "extract_facts",
    "find_similar_memories",
    "plan_changes",
    "reconcile",
]


def extract_facts(
    chat: ChatModel | None, request: AddRequest, context: Context = NO_CONTEXT
) -> Flow[tuple[tuple[Fact, ...], tuple[SkippedItem, ...]]]:
    """The facts of the messages: the model's, or the messages themselves.

    Raises:
        ConfigError: a procedural memory is asked for, which only a model can write.
    """
    if request.memory_type == PROCEDURAL_MEMORY:
        if chat is None:
            raise ConfigError('llm: memory_type="procedural_memory" needs a chat model')
        return (yield from _extract_procedure(chat, request))
    if chat is None or not request.infer:
        return build_verbatim_facts(request.messages), ()
    return (yield from _extract_with_model(chat, request, context))


def build_verbatim_facts(messages: Sequence[Message]) -> tuple[Fact, ...]:
    """Each message of a user or assistant as it was said, with its role and speaker."""
    return tuple(
        Fact(
            message.content,
            actor_id=message.name,
            role=message.role,
            metadata=message.metadata,
            timestamp=message.timestamp,
            sources=(place,),
        )
        for place, message in enumerate(stored_messages(messages))
        if message.role in SPEAKER_ROLES
    )


def _extract_with_model(
    chat: ChatModel, request: AddRequest, context: Context
) -> Flow[tuple[tuple[Fact, ...], tuple[SkippedItem, ...]]]:
    spoken = format_transcript(request.messages)
    if not spoken:
        return (), ()
    reading = yield from ask_with_repair(
        chat,
        facts_messages(
            spoken,
            today=request.at[:10],
            for_agent=request.is_about_agent,
            custom=request.prompts.facts,
            instructions=request.prompts.instructions,
            context=context,
        ),
        task="facts",
        schema=FactsReply,
        read=read_facts,
        key=same_fact_key,
    )
    return build_facts(reading.items, request), collect_skipped(reading, "facts", request.bad_reply)


def build_facts(texts: Sequence[str], request: AddRequest) -> tuple[Fact, ...]:
    """What a model found in the messages, with who said it and where."""
    role = "assistant" if request.is_about_agent else "user"
    messages = stored_messages(request.messages)
    names = {message.name for message in messages if message.role in SPEAKER_ROLES and message.name}
    actor = names.pop() if len(names) == 1 else None  # of two speakers we cannot tell whose fact it is
    sources = tuple(place for place, message in enumerate(messages) if message.role in SPEAKER_ROLES)
    return tuple(Fact(text, actor_id=actor, role=role, sources=sources) for text in texts)


def _extract_procedure(chat: ChatModel, request: AddRequest) -> Flow[tuple[tuple[Fact, ...], tuple[SkippedItem, ...]]]:
    asked = procedural_messages(
        format_transcript(request.messages, KNOWN_ROLES - {"system", "developer"}),
        today=request.at[:10],
        custom=None,
        instructions=request.prompts.instructions,
    )
    reply = yield from do(chat.complete, asked, task="procedural")
    if not reply.text.strip():
        raise ReplyError("the model answered the request for a procedural memory with nothing", raw=reply.text)
    sources = tuple(range(len(stored_messages(request.messages))))
    return (Fact(reply.text.strip(), role="assistant", sources=sources),), ()


# --- weighing ----------------------------------------------------------------------------------------------------


def reconcile(
    ports: Ports, request: AddRequest, facts: Sequence[Fact]
) -> Flow[tuple[tuple[MemoryChange, ...], tuple[SkippedItem, ...]]]:
    """The changes that `facts` bring about, with their vectors."""
    if not facts:
        return (), ()
    decided = ports.chat is not None and request.infer and request.memory_type != PROCEDURAL_MEMORY
    if not decided:
        return (yield from _reconcile_verbatim(ports, request, facts)), ()
    assert ports.chat is not None
    statements = [fact.text for fact in facts]
    vectors = yield from embed_texts(ports, statements)
    memories = yield from find_similar_memories(ports, request, vectors)
    operations, skipped = yield from decide_operations(ports.chat, request, facts, memories)
    changes = plan_changes(operations, facts, {item.id: item for item in memories}, request)
    return (yield from embed_changes(ports, changes, dict(zip(statements, vectors, strict=True)))), skipped


def _reconcile_verbatim(ports: Ports, request: AddRequest, facts: Sequence[Fact]) -> Flow[tuple[MemoryChange, ...]]:
    """Every fact is an ADD, but for those the scope holds: they cost no embedding."""
    keys = [same_fact_key(fact.text, fact.actor_id) for fact in facts]
    known = yield from do(ports.store.find_by_fact_keys, request.scope, list(dict.fromkeys(keys)))
    changes = [
        MemoryChange(Event.NONE, known[key], message_indexes=fact.sources)
        if key in known and not expires_later(request.expiration_date, known[key].expiration_date)
        else MemoryChange(Event.ADD, _new_item(fact, request), message_indexes=fact.sources)
        for key, fact in zip(keys, facts, strict=True)
    ]
    return (yield from embed_changes(ports, changes, {}))


def find_similar_memories(
    ports: Ports, request: AddRequest, vectors: NDArray[np.float32]
) -> Flow[tuple[MemoryItem, ...]]:
    """The s memories nearest to each fact, each memory once (seed 002: different facts may retrieve the same).

    Memories of another user are left out, where a scope of an agent or a run alone would reach them: they are not
    this conversation's to see or to change. Expired ones are left out as well.
    """

    def eligible(item: MemoryItem) -> bool:
        return item.scope.user_id == request.scope.user_id and not is_expired(item, request.today)

    found = yield from find_nearest_items(ports, request.scope, vectors, request.neighbours, eligible)
    return tuple({item.id: item for of_fact in found for item in of_fact}.values())


def decide_operations(
    chat: ChatModel, request: AddRequest, facts: Sequence[Fact], memories: Sequence[MemoryItem]
) -> Flow[tuple[tuple[Operation, ...], tuple[SkippedItem, ...]]]:
    """Ask the model what the facts do to the memories, which it knows by small integers (seed 002)."""
    texts = {str(number): item.text for number, item in enumerate(memories)}
    ids = {str(number): item.id for number, item in enumerate(memories)}
    statements = [fact.text for fact in facts]
    by_tools = request.operations == "tools" or (request.operations == "auto" and _calls_tools_only(chat))
    reading: Reading[Operation] = yield from ask_with_repair(
        chat,
        operations_messages(list(texts.items()), statements, custom=request.prompts.update, by_tools=by_tools),
        task="operations",
        schema=None if by_tools else OperationsReply,
        tools=operations_tools() if by_tools else (),
        read=lambda reply: read_operations(reply, ids=ids, texts=texts, facts=statements),
        key=operation_key,
    )
    return reading.items, collect_skipped(reading, "operations", request.bad_reply)


def _calls_tools_only(chat: ChatModel) -> bool:
    """Whether a model says of itself that it calls tools and keeps to no schema; few do say."""
    supports = getattr(chat, "supports", ())
    return "tools" in supports and "schema" not in supports


def plan_changes(
    operations: Sequence[Operation], facts: Sequence[Fact], memories: Mapping[str, MemoryItem], request: AddRequest
) -> tuple[MemoryChange, ...]:
    """The changes that carry out `operations`; pure, so that a dry run is free.

    A NONE that names no memory (the model finds a fact not worth keeping) changes nothing.
    """
    return tuple(
        _plan_change(operation, facts, memories, request)
        for operation in operations
        if operation.memory_id is not None or operation.event is Event.ADD
    )


def _plan_change(
    operation: Operation, facts: Sequence[Fact], memories: Mapping[str, MemoryItem], request: AddRequest
) -> MemoryChange:
    # Speaker and sources are the same for all facts of one extraction.
    fact = dataclasses.replace(facts[0], text=operation.text)
    if operation.memory_id is None:
        return MemoryChange(Event.ADD, _new_item(fact, request), message_indexes=fact.sources)
    item = memories[operation.memory_id]
    if operation.event is Event.UPDATE:
        after = dataclasses.replace(
            item,
            text=operation.text,
            hash=content_hash(operation.text),
            metadata={**item.metadata, **request.metadata},
            updated_at=request.at,
            expiration_date=request.expiration_date or item.expiration_date,
        )
        return MemoryChange(Event.UPDATE, after, before=item.text, message_indexes=fact.sources)
    if operation.event is Event.DELETE:
        return MemoryChange(Event.DELETE, item, before=item.text)
    said_again = same_fact_key(item.text) in {same_fact_key(fact.text) for fact in facts}
    return MemoryChange(Event.NONE, item, message_indexes=fact.sources if said_again else ())


def _new_item(fact: Fact, request: AddRequest) -> MemoryItem:
    return MemoryItem(
        id=new_id(),
        text=fact.text,
        scope=request.scope,
        hash=content_hash(fact.text),
        created_at=fact.timestamp or request.at,
        metadata={**request.metadata, **fact.metadata},
        actor_id=fact.actor_id,
        role=fact.role,
        memory_type=request.memory_type,
        expiration_date=request.expiration_date,
    )


def embed_changes(
    ports: Ports, changes: Sequence[MemoryChange], ready: Mapping[str, NDArray[np.float32]]
) -> Flow[tuple[MemoryChange, ...]]:
    """The changes with the embeddings of their texts; what `ready` lacks (a merged text) is embedded in one batch."""
    texts = [change.after.text if change.event in (Event.ADD, Event.UPDATE) else None for change in changes]
    missing = [text for text in dict.fromkeys(texts) if text is not None and text not in ready]
    fresh = (yield from embed_texts(ports, missing)) if missing else ()
    vectors = {**ready, **dict(zip(missing, fresh, strict=True))}
    return tuple(
        MemoryChange(change.event, change.after, change.before, vectors[text], change.message_indexes)
        if text is not None
        else change
        for change, text in zip(changes, texts, strict=True)
    )
