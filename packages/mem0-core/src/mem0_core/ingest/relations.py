"""Relations: extract entities and relations, and merge them into the graph (Mem0 paper, section 2.2).

`extract_entities` (step 1) -> `_relate_entities` (2) -> `load_neighborhood` (3) -> `_find_outdated` (4A) and
`_find_refined` (4B) -> `plan_graph_changes` (5). The changes are committed with the memories.

Steps 1, 2, 4A and 4B ask a model. Without one, rules read the messages, and their endings take the index of step 4A.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mem0_core._system.records import dataclass
from mem0_core.domain.bounds import MAX_NEW_NAMES, MAX_RELATIONS, MAX_RULE_TEXT_CHARS, MAX_STATEMENTS
from mem0_core.domain.records import (
    Entity,
    Event,
    LaggingProjection,
    MemoryItem,
    Message,
    Relation,
    RelationChange,
    Scope,
    SkippedItem,
    Triplet,
    entity_key,
)
from mem0_core.errors import StoreError
from mem0_core.flow import Flow, both, do
from mem0_core.graph.lookup import extract_entities, search_neighborhoods, search_relations, self_name
from mem0_core.ingest._node_matching import (
    Mentions,
    find_contradiction,
    find_only_match,
    match_nodes,
    single_family,
)
from mem0_core.ingest._open_relations import (
    OpenRelations,
    TripletKey,
    begins_later,
    destination_key,
    ending_key,
    plan_later_endings,
)
from mem0_core.ingest._relation_plan import (
    KnownGraph,
    collect_entity_names,
    collect_entity_types,
    merge_relations,
)
from mem0_core.ingest.request import RelationInput, stored_messages
from mem0_core.interfaces import GraphMemory, Ports
from mem0_core.language import rule_extractor as rules
from mem0_core.language.families import families_of_noun, load_families
from mem0_core.language.introductions import read_introductions
from mem0_core.language.messages import SPEAKER_ROLES, format_transcript, join_contents
from mem0_core.language.name_similarity import is_part_of
from mem0_core.language.naming import NAME, NICKNAME, is_naming
from mem0_core.llm.ask import ask_with_repair, collect_skipped
from mem0_core.llm.graph_prompts import (
    outdated_messages,
    outdated_tool,
    refined_messages,
    refined_tool,
    relations_messages,
    relations_tool,
    triplets_messages,
)
from mem0_core.llm.graph_replies import (
    Refinement,
    read_outdated,
    read_refined,
    read_relations,
    refinement_key,
    triplet_key,
)
from mem0_core.llm.triplet_lines import read_triplets, to_third_person
from mem0_core.recall.aliases import load_aliases
from mem0_core.recall.embedding import embed_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CUT = (
    f"relations: of one message, rules read the first {MAX_RULE_TEXT_CHARS:,} characters, {MAX_STATEMENTS} statements"
    f" and {MAX_RELATIONS} relations; add it in parts to keep the rest"
)
_MANY_NAMES = (
    f"relations: of the new names of one add, the first {MAX_NEW_NAMES:,} are compared with one another; add the"
    " messages in parts to unite the spellings of the rest"
)
_CLOSE_FAMILIES = frozenset(
    {
        "sister",
        "brother",
        "mother",
        "father",
        "son",
        "daughter",
        "married_to",
        "engaged_to",
        "partner",
        "boss",
        "landlord",
    }
)
_MIN_RELATION_COSINE = 0.5  # an existing relation is compared with a new one from this cosine on

RelationPlan = tuple[tuple[RelationChange, ...], tuple[SkippedItem, ...]]


def extract_relations(ports: Ports, graph: GraphMemory, relation_input: RelationInput) -> Flow[RelationPlan]:
    """Return the graph changes of a conversation, and the unusable parts of the model's answers.

    Raises:
        ModelError: a model call failed. ReplyError: with ``bad_reply="raise"``, part of an answer was not readable.
    """
    if graph.chat is None:
        return (yield from _relate_by_rules(ports, graph, relation_input))
    if graph.options.relations == "triplets":
        return (yield from _relate_in_one_shot(ports, graph, relation_input))
    entities, unnamed = yield from extract_entities(
        graph, relation_input.text, relation_input.scope, relation_input.bad_reply, relation_input.context
    )
    if not entities and not _introduce_speaker(relation_input.messages, relation_input.scope).relations:
        return (), unnamed
    stated, unconnected = (yield from _relate_entities(graph, relation_input, entities)) if entities else ((), ())
    statements = yield from resolve_statements(ports, relation_input, stated)
    names = [*(entity.name for entity in entities), *collect_entity_names(statements.triplets)]
    known = yield from load_neighborhood(
        ports, graph, relation_input.scope, statements.mentions(names, entities), statements.sentences
    )
    (outdated, unclear), (refined, unrefined) = yield from _find_superseded(
        graph, relation_input, statements.triplets, known
    )
    changes = yield from plan_graph_changes(ports, relation_input, statements, known, entities, outdated, refined)
    return changes, (*unnamed, *unconnected, *unclear, *unrefined, *_report_cuts(statements.read, relation_input))


def extract_memory_relations(ports: Ports, item: MemoryItem) -> Flow[tuple[RelationChange, ...]]:
    """Return the graph changes of one memory, for a plan that changes only this memory.

    The relations are valid from the time of the memory.

    Raises:
        ModelError: a model call failed.
    """
    if ports.graph is None:
        return ()
    at = item.said_at
    message = Message(item.role or "user", item.text, name=item.actor_id, timestamp=at)
    changes, _ = yield from extract_relations(ports, ports.graph, RelationInput(item.scope, stored_messages([message])))
    return tuple(
        dataclasses.replace(change, change_indexes=(0,), message_indexes=(), effective_at=change.effective_at or at)
        for change in changes
    )


# --- one shot ----------------------------------------------------------------------------------------------------


def _relate_in_one_shot(ports: Ports, graph: GraphMemory, relation_input: RelationInput) -> Flow[RelationPlan]:
    """Extract all relations by one model call that does not see the graph; steps 3 and 5 follow.

    Rules find ended relations and the types of entities, where the text states them plainly.
    """
    stated, unread_lines = yield from _extract_triplets(graph, relation_input)
    statements = yield from resolve_statements(ports, relation_input, stated)
    triplets, endings = statements.triplets, statements.endings
    skipped = (*unread_lines, *_report_cuts(statements.read, relation_input))
    if not triplets and not endings:
        return (), skipped
    names = [*collect_entity_names(triplets), *(ending.source for ending in endings)]
    entities = [entity for _, found in statements.read for entity in found.entities]
    known = yield from load_neighborhood(
        ports, graph, relation_input.scope, statements.mentions(names, entities), statements.sentences
    )
    outdated = [
        one.triplet
        for one in known.relations
        if not is_naming(one.triplet.relationship) and any(_is_ended_by(one.triplet, ending) for ending in endings)
    ]
    return (yield from plan_graph_changes(ports, relation_input, statements, known, entities, outdated, ())), skipped


def _extract_triplets(
    graph: GraphMemory, relation_input: RelationInput
) -> Flow[tuple[tuple[Triplet, ...], tuple[SkippedItem, ...]]]:
    assert graph.chat is not None
    speaker = self_name(relation_input.scope)
    messages = to_third_person(relation_input.messages, speaker)
    transcript, text = format_transcript(messages), join_contents(messages)
    if not transcript:
        return (), ()
    reading = yield from ask_with_repair(
        graph.chat,
        triplets_messages(transcript, custom=graph.options.prompt, context=relation_input.context),
        task="triplets",
        form="lines",
        read=lambda reply: read_triplets(reply, text=text, self_name=speaker),
        key=triplet_key,
    )
    return reading.items, collect_skipped(reading, "triplets", relation_input.bad_reply)


# --- statements of a conversation --------------------------------------------------------------------------------

_ReadMessages = list[tuple[int, rules.RuleExtraction]]


@dataclass(frozen=True, slots=True)
class _Statements:
    """The relations of a conversation, under the names that their entities have now.

    Attributes:
        introduced: names that the speaker gives; they are among the relations.
        read: extractions by rules, with the indexes of their messages.
    """

    triplets: Sequence[Triplet]
    introduced: rules.RuleExtraction
    read: _ReadMessages

    @property
    def endings(self) -> list[rules.EndedRelation]:
        """Relations that the messages end, by rules."""
        return [ending for _, found in self.read for ending in found.ended]

    @property
    def sentences(self) -> list[str]:
        return [triplet.sentence for triplet in self.triplets]

    def mentions(self, names: Sequence[str], entities: Iterable[Entity]) -> Mentions:
        """Return the names with the statements about them; `entities` have their types."""
        return Mentions(names, self.triplets, collect_entity_types(entities), _find_changed(self.endings))


def resolve_statements(ports: Ports, relation_input: RelationInput, stated: Sequence[Triplet]) -> Flow[_Statements]:
    """Return the relations that a model found, those that rules read, and the names that the speaker gives."""
    introduced = _introduce_speaker(relation_input.messages, relation_input.scope)
    aliases = yield from load_aliases(ports, relation_input.scope, introduced.relations)
    read = [(index, aliases.resolve_extraction(found)) for index, found in _read_messages(relation_input)]
    return _Statements(aliases.resolve_triplets(_add_names(stated, introduced)), introduced, read)


# --- names of the speaker ----------------------------------------------------------------------------------------


def _add_names(stated: Sequence[Triplet], introduced: rules.RuleExtraction) -> tuple[Triplet, ...]:
    """Return relations with the names that the speaker introduces, unless a relation gives them already."""
    given = {(one.key[0], one.key[2]) for one in stated if is_naming(one.relationship)}
    return (*stated, *(one for one in introduced.relations if (one.key[0], one.key[2]) not in given))


def _find_replaced_names(known: Sequence[Relation], introduced: rules.RuleExtraction) -> list[Triplet]:
    """Return the relations that give the speaker a name which a new one replaces."""
    if not introduced.ended:
        return []
    speaker = entity_key(introduced.ended[0].source)
    kept = {*_find_kept_names(known, introduced), *(triplet.key for triplet in introduced.relations)}
    return [
        one.triplet
        for one in known
        if one.triplet.key[0] == speaker
        and is_naming(one.triplet.relationship)
        and one.triplet.relationship != NICKNAME
        and one.triplet.key not in kept
    ]


def _find_kept_names(known: Sequence[Relation], introduced: rules.RuleExtraction) -> set[TripletKey]:
    """Return the keys of the relations that give the speaker a name which a new one shortens or completes."""
    names = [triplet.destination for triplet in introduced.relations]
    return {
        one.triplet.key
        for one in known
        if is_naming(one.triplet.relationship) and any(is_part_of(one.triplet.destination, name) for name in names)
    }


# --- step 1 and 2: entities, relations ---------------------------------------------------------------------------


def _relate_entities(
    graph: GraphMemory, relation_input: RelationInput, entities: Sequence[Entity]
) -> Flow[tuple[tuple[Triplet, ...], tuple[SkippedItem, ...]]]:
    """Step 2: return the relations between the entities."""
    assert graph.chat is not None
    speaker = self_name(relation_input.scope)
    reading = yield from ask_with_repair(
        graph.chat,
        relations_messages(
            relation_input.text,
            entities,
            self_name=speaker,
            custom=graph.options.prompt,
            context=relation_input.context,
        ),
        task="relations",
        tools=[relations_tool(strict=graph.options.strict)],
        read=lambda reply: read_relations(reply, self_name=speaker),
        key=triplet_key,
    )
    return reading.items, collect_skipped(reading, "relations", relation_input.bad_reply)


# --- step 3: known graph -----------------------------------------------------------------------------------------


def load_neighborhood(
    ports: Ports, graph: GraphMemory, scope: Scope, mentions: Mentions, sentences: Sequence[str]
) -> Flow[KnownGraph]:
    """Step 3: return the nodes of some names, the relations one hop from them, and the relations near `sentences`.

    A name without a node takes the nearest node with the same name. The hop shows only the newest relations of a node
    with very many; the sentences then find those that may be contradicted. Relations of other users are left out,
    although a scope of only an agent or a run covers them.
    """
    store, options = ports.store.graph, graph.options
    distinct = {entity_key(name): name for name in reversed(mentions.names)}
    named = yield from do(store.nodes_by_names, scope, list(distinct.values()))
    nodes = {key: node for key, (node, _) in named.items()}
    vectors = {distinct[key]: vector for key, (_, vector) in named.items()}
    unknown = [key for key in distinct if key not in named]
    vectors |= yield from _embed_distinct(ports, [*(distinct[key] for key in unknown), *sentences])
    rows: dict[int, None] = {}  # ordered and distinct
    if sentences:
        wanted = _stack_vectors(vectors, sentences)
        near = yield from search_relations(graph, scope, wanted, options.existing, threshold=_MIN_RELATION_COSINE)
        rows |= dict.fromkeys(row for found in near for row, _ in found)
    if nodes:
        own = [node.row for node in nodes.values()]
        hop = yield from do(store.incident_relation_rows, own, scope=scope, limit=options.existing)
        rows |= dict.fromkeys(row for found in hop.values() for row in found)
    if unknown:
        wanted = _stack_vectors(vectors, (distinct[key] for key in unknown))
        arounds = yield from search_neighborhoods(
            graph, scope, wanted, threshold=options.threshold, limit=options.existing
        )
        rows |= dict.fromkeys(row for around in arounds for row, _ in around.relations)
        nodes |= yield from match_nodes(ports, scope, mentions, distinct, dict(zip(unknown, arounds, strict=True)))
    by_row = (yield from do(store.relations_by_rows, list(rows), scope=scope, with_evidence=False)) if rows else {}
    relations = [by_row[row] for row in rows if row in by_row]
    eligible = (one for one in relations if one.valid_to is None and one.scope.user_id == scope.user_id)
    return KnownGraph(nodes, tuple(eligible), vectors)


def _embed_distinct(ports: Ports, texts: Sequence[str]) -> Flow[dict[str, NDArray[np.float32]]]:
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    return dict(zip(distinct, (yield from embed_texts(ports, distinct)), strict=True))


def sync_projections(ports: Ports) -> Flow[tuple[LaggingProjection, ...]]:
    """Bring the graph's projection up to date; an unreachable one is reported as lagging."""
    if ports.graph is None:
        return ()
    try:
        yield from do(ports.graph.index.catch_up)
    except StoreError as error:
        return (LaggingProjection(store=ports.graph.index.name, reason=str(error)),)
    return ()


# --- step 4: outdated, refined -----------------------------------------------------------------------------------

_Outdated = tuple[tuple[Triplet, ...], tuple[SkippedItem, ...]]
_Refined = tuple[tuple[Refinement, ...], tuple[SkippedItem, ...]]


def _find_superseded(
    graph: GraphMemory, relation_input: RelationInput, new: Sequence[Triplet], known: KnownGraph
) -> Flow[tuple[_Outdated, _Refined]]:
    """Run steps 4A and 4B at once, as far as there are relations to compare."""
    existing = [relation.triplet for relation in known.relations]
    if not existing:
        return ((), ()), ((), ())
    if not new:
        return (yield from _find_outdated(graph, relation_input, existing, new)), ((), ())
    return (
        yield from both(
            _find_outdated(graph, relation_input, existing, new), _find_refined(graph, relation_input, existing, new)
        )
    )


def _find_outdated(
    graph: GraphMemory, relation_input: RelationInput, existing: Sequence[Triplet], new: Sequence[Triplet]
) -> Flow[_Outdated]:
    """Step 4A: return the relations that the text contradicts."""
    assert graph.chat is not None
    speaker = self_name(relation_input.scope)
    reading = yield from ask_with_repair(
        graph.chat,
        outdated_messages(relation_input.text, existing, new, self_name=speaker),
        task="outdated",
        tools=[outdated_tool(strict=graph.options.strict)],
        read=lambda reply: read_outdated(reply, existing=existing, self_name=speaker),
        key=triplet_key,
    )
    return reading.items, collect_skipped(reading, "outdated", relation_input.bad_reply)


def _find_refined(
    graph: GraphMemory, relation_input: RelationInput, existing: Sequence[Triplet], new: Sequence[Triplet]
) -> Flow[_Refined]:
    """Step 4B: return the relations that the new ones make more specific."""
    assert graph.chat is not None
    speaker = self_name(relation_input.scope)
    reading = yield from ask_with_repair(
        graph.chat,
        refined_messages(relation_input.text, existing, new, self_name=speaker),
        task="refined",
        tools=[refined_tool(strict=graph.options.strict)],
        read=lambda reply: read_refined(reply, existing=existing, new=new, self_name=speaker),
        key=refinement_key,
    )
    return reading.items, collect_skipped(reading, "refined", relation_input.bad_reply)


# --- step 5: merge ----------------------------------------------------------------------------------------------


def plan_graph_changes(
    ports: Ports,
    relation_input: RelationInput,
    statements: _Statements,
    known: KnownGraph,
    entities: Sequence[Entity],
    outdated: Sequence[Triplet],
    refined: Sequence[Refinement],
) -> Flow[tuple[RelationChange, ...]]:
    """Step 5: return the changes of `merge_relations`, then those by later messages, with the vectors of new texts."""
    known = _leave_out_later(known, relation_input)
    changes = merge_relations(
        statements.triplets,
        (*outdated, *_find_replaced_names(known.relations, statements.introduced)),
        refined,
        known,
        types=collect_entity_types(entities),
        messages=relation_input.speaker_positions,
    )
    later = plan_later_endings(statements.triplets, statements.read, relation_input.messages, known.nodes)
    return (yield from embed_changes(ports, (*changes, *later), known.vectors))


def _leave_out_later(known: KnownGraph, relation_input: RelationInput) -> KnownGraph:
    """Return the graph without relations that begin on days after all messages, which cannot end or refine them."""
    times = [relation_input.time_of(index) for index in range(len(relation_input.messages))]
    until = [time for time in times if time is not None]
    if not until or len(until) < len(times):
        return known
    kept = tuple(relation for relation in known.relations if not begins_later(relation, max(until)))
    return dataclasses.replace(known, relations=kept)


def embed_changes(
    ports: Ports, changes: Sequence[RelationChange], ready: Mapping[str, NDArray[np.float32]]
) -> Flow[tuple[RelationChange, ...]]:
    """Return the changes with the vectors of their ends and sentences; missing ones are embedded in one batch."""
    parts = [
        (change.triplet.source, change.triplet.destination, change.triplet.sentence)
        if change.event is Event.ADD
        else None
        for change in changes
    ]
    missing = [text for some in parts for text in some or () if text not in ready]
    vectors = {**ready, **(yield from _embed_distinct(ports, missing))}
    return tuple(
        dataclasses.replace(change, vectors=(vectors[some[0]], vectors[some[1]], vectors[some[2]])) if some else change
        for change, some in zip(changes, parts, strict=True)
    )


def _stack_vectors(vectors: Mapping[str, NDArray[np.float32]], texts: Iterable[str]) -> NDArray[np.float32]:
    import numpy as np

    return np.stack([vectors[text] for text in texts])


# --- without a model ---------------------------------------------------------------------------------------------


def _read_messages(relation_input: RelationInput) -> _ReadMessages:
    """Return the extractions by rules from the messages, with the indexes of the messages."""
    return [
        (index, extract_from_message(message, relation_input.scope, relation_input.time_of(index)))
        for index, message in enumerate(relation_input.messages)
    ]


def _report_cuts(read: _ReadMessages, relation_input: RelationInput) -> tuple[SkippedItem, ...]:
    """Return an item for each message that holds more relations than are read."""
    return tuple(
        SkippedItem(reason=_CUT, item=relation_input.messages[index].content[:100])
        for index, found in read
        if found.is_cut
    )


def _relate_by_rules(ports: Ports, graph: GraphMemory, relation_input: RelationInput) -> Flow[RelationPlan]:
    """Return the graph changes that rules find in the messages of users and of named speakers.

    An assistant without a name speaks of the user or of itself, and rules cannot tell which.
    """
    read = _read_messages(relation_input)
    skipped = _report_cuts(read, relation_input)
    read = yield from _name_relatives(ports, relation_input, read)
    read = [(index, found) for index, found in read if found.relations or found.ended]
    changes, uncompared = (yield from _plan_by_rules(ports, graph, relation_input, read)) if read else ((), ())
    return changes, (*skipped, *uncompared)


def _name_relatives(ports: Ports, relation_input: RelationInput, read: _ReadMessages) -> Flow[_ReadMessages]:
    """Give relatives without a name ("my sister moved to Oslo") their name, if just one is known.

    It is the one that an earlier of the messages gives, or that the graph has.
    """
    named: _ReadMessages = []
    for index, found in read:
        speaker = relation_input.messages[index].name or self_name(relation_input.scope)
        own: list[Triplet | rules.EndedRelation] = []
        for source in dict.fromkeys(one.source for one in found.of_relatives):
            labels = _label_relative(source.removeprefix("my "))
            said = {
                one.destination
                for _, each in read[: len(named) + 1]
                for one in each.relations
                if one.source == speaker and one.relationship in labels
            }
            if labels and not said:
                said = set((yield from do(ports.store.graph.destinations, relation_input.scope, speaker, labels)))
            if len(said) == 1:
                name = said.pop()
                own += [dataclasses.replace(one, source=name) for one in found.of_relatives if one.source == source]
        relations = (*found.relations, *(one for one in own if isinstance(one, Triplet)))
        ended = (*found.ended, *(one for one in own if isinstance(one, rules.EndedRelation)))
        named.append((index, dataclasses.replace(found, relations=relations, ended=ended)))
    return named


def _label_relative(noun: str) -> tuple[str, ...]:
    """Return the labels of relations to a relative of a kind; none for pets, friends and the like.

    People have several of those, so that a noun alone does not tell which one is meant.
    """
    families = [load_families()[name] for name in families_of_noun(noun) if name in _CLOSE_FAMILIES]
    return tuple(dict.fromkeys(label for family in families for label in (family.name, *family.labels)))


def _plan_by_rules(
    ports: Ports, graph: GraphMemory, relation_input: RelationInput, read: _ReadMessages
) -> Flow[RelationPlan]:
    """Return the changes for the relations and endings of some messages, and a note on names beyond the bound."""
    introduced = _introduce_speaker(relation_input.messages, relation_input.scope)
    aliases = yield from load_aliases(ports, relation_input.scope, introduced.relations)
    read = [(index, aliases.resolve_extraction(found)) for index, found in read]
    statements = _Statements([triplet for _, found in read for triplet in found.relations], introduced, read)
    endings = statements.endings
    names = [
        *collect_entity_names(statements.triplets),
        *(name for ending in endings for name in (ending.source, ending.destination) if name),
    ]
    sentences = [Triplet(end.source, end.relationship, end.destination or "").sentence for end in endings]
    mentions = statements.mentions(names, (entity for _, found in read for entity in found.entities))
    known = yield from load_neighborhood(
        ports, graph, relation_input.scope, mentions, [*statements.sentences, *sentences]
    )
    named, left = _unify_new_names(read, mentions, known, graph.options.threshold)
    open_relations = OpenRelations(known.relations)
    new_only = dataclasses.replace(known, relations=())
    changes: list[RelationChange] = []
    for index, found in read:
        at = relation_input.messages[index].timestamp  # the graph of any day holds the relations stated by then
        planned = _plan_message(new_only, open_relations, named[index], index, found, relation_input.time_of(index))
        changes += [dataclasses.replace(change, effective_at=change.effective_at or at) for change in planned]
    uncompared = (SkippedItem(reason=_MANY_NAMES, item=left[0][:100]),) if left else ()
    return (yield from embed_changes(ports, changes, known.vectors)), uncompared


def _plan_message(
    known: KnownGraph,
    open_relations: OpenRelations,
    stated: Sequence[Triplet],
    index: int,
    found: rules.RuleExtraction,
    at: str | None,
) -> list[RelationChange]:
    """Return the changes of one message, after those of the messages before it."""
    added = merge_relations(stated, (), (), known, types=collect_entity_types(found.entities), messages=[index])
    ended = open_relations.close(found.ended, [*found.relations, *(change.triplet for change in added)], at)
    open_relations.state(change.triplet for change in added)
    return [*added, *(dataclasses.replace(change, message_indexes=(index,)) for change in ended)]


def _unify_new_names(
    read: Sequence[tuple[int, rules.RuleExtraction]], mentions: Mentions, known: KnownGraph, threshold: float
) -> tuple[dict[int, list[Triplet]], list[str]]:
    """Return the relations of each message; a new name takes the form in which an earlier message introduced it.

    The result is the same as if the earlier message had been stored before. Names of one message stay distinct. Names
    beyond `MAX_NEW_NAMES` keep their form; they are returned, too.
    """
    first_indexes = {
        entity_key(name): index for index, found in reversed(read) for name in collect_entity_names(found.relations)
    }
    names_by_key = {
        entity_key(name): name for _, found in reversed(read) for name in collect_entity_names(found.relations)
    }
    new_keys = [key for key in reversed(names_by_key) if key not in known.nodes]
    left = [names_by_key[key] for key in new_keys[MAX_NEW_NAMES:]]
    new_keys = new_keys[:MAX_NEW_NAMES]
    stated: dict[bytes, list[Triplet]] = {}
    for triplet in mentions.triplets:
        if (entity_key(triplet.source), single_family(triplet.relationship)) not in mentions.changed:
            stated.setdefault(entity_key(triplet.source), []).append(triplet)
    names: dict[bytes, str] = {}
    if len(set(map(first_indexes.__getitem__, new_keys))) > 1:
        vectors = _stack_vectors(known.vectors, (names_by_key[key] for key in new_keys))
        for key, vector in zip(new_keys, vectors, strict=True):
            near = vectors @ vector
            earlier = [
                (float(near[other]), mentions.get_entity(names_by_key[new_keys[other]]))
                for other in (near >= threshold).nonzero()[0].tolist()
                if first_indexes[new_keys[other]] < first_indexes[key] and new_keys[other] not in names
            ]
            earlier.sort(key=lambda pair: -pair[0])
            name = find_only_match(mentions.get_entity(names_by_key[key]), earlier)
            if name and not find_contradiction(stated.get(entity_key(name), ()), stated.get(key, ())):
                names[key] = name
    return {index: [_rename_ends(triplet, names) for triplet in found.relations] for index, found in read}, left


def _find_changed(endings: Iterable[rules.EndedRelation]) -> frozenset[tuple[bytes, str]]:
    """Return the single-valued relations that endings make room for, by entity key and family."""
    return frozenset((entity_key(ending.source), single_family(ending.relationship)) for ending in endings)


def _rename_ends(triplet: Triplet, names: Mapping[bytes, str]) -> Triplet:
    source = names.get(entity_key(triplet.source), triplet.source)
    destination = names.get(entity_key(triplet.destination), triplet.destination)
    if entity_key(source) == entity_key(destination):
        return triplet
    return Triplet(source, triplet.relationship, destination)


def extract_from_message(message: Message, scope: Scope, at: str | None) -> rules.RuleExtraction:
    """Return the entities and relations that rules find in a message; none for an assistant without a name.

    Plans with a day that is still to come are left out: they are not true yet.

    Args:
        at: time of the message; None for now.
    """
    if not (message.role == "user" or (message.name and message.role in SPEAKER_ROLES)):
        return rules.RuleExtraction()
    speaker = message.name or self_name(scope)
    said_on = (datetime.fromisoformat(at) if at else datetime.now(UTC)).date()
    found = rules.extract_by_rules(message.content, speaker=speaker, said_on=said_on)
    introduced = _extract_introductions(message.content, speaker)
    if not introduced.relations:
        return found
    stated = {triplet.key for triplet in found.relations}
    added = (triplet for triplet in introduced.relations if triplet.key not in stated)
    return dataclasses.replace(
        found,
        entities=(*found.entities, *introduced.entities),
        relations=(*found.relations, *added),
        ended=(*found.ended, *introduced.ended),
    )


def _extract_introductions(text: str, speaker: str) -> rules.RuleExtraction:
    """Return the names that a speaker goes by, as relations from the speaker, and the end of the names before."""
    found = [one for one in read_introductions(text) if entity_key(one.name) != entity_key(speaker)]
    return rules.RuleExtraction(
        tuple(Entity(one.name, "person") for one in found),
        tuple(Triplet(speaker, one.label, one.name) for one in found),
        tuple(rules.EndedRelation(speaker, NAME, None) for one in found if one.replaces)[:1],
    )


def _introduce_speaker(messages: Sequence[Message], scope: Scope) -> rules.RuleExtraction:
    """Return the names that the speaker of a scope gives in some messages, the later ones in place of the earlier."""
    speaker = self_name(scope)
    own = [message for message in messages if message.role == "user" and message.name in (None, "", speaker)]
    found = [_extract_introductions(message.content, speaker) for message in own]
    found = [one for one in found if one.relations]
    last = max((index for index, one in enumerate(found) if one.ended), default=0)
    nicknames = [triplet for one in found[:last] for triplet in one.relations if triplet.relationship != NAME]
    kept = dict.fromkeys([*nicknames, *(triplet for one in found[last:] for triplet in one.relations)])
    return rules.RuleExtraction(
        tuple(entity for one in found for entity in one.entities if any(entity.name == t.destination for t in kept)),
        tuple(kept),
        tuple(ending for one in found for ending in one.ended)[:1],
    )


class StatementLog:
    """Relations that some messages state and end; detects a message that contradicts an earlier one.

    Contradicting messages without a time get separate commits, so that the earlier relation holds for a while.
    """

    def __init__(self) -> None:
        self._stated: dict[tuple[bytes, str], set[TripletKey]] = {}
        self._ended: dict[tuple[bytes, str], dict[bytes | None, list[set[TripletKey]]]] = {}

    def add(self, found: rules.RuleExtraction) -> None:
        stated = {triplet.key for triplet in found.relations}
        for key in stated:
            self._stated.setdefault(key[:2], set()).add(key)
        for ending in found.ended:
            self._ended.setdefault(ending_key(ending), {}).setdefault(destination_key(ending), []).append(stated)

    def conflicts_with(self, found: rules.RuleExtraction) -> bool:
        if found.of_relatives and self._stated:
            return True  # the names of relatives are looked up in what is stored
        stated = {triplet.key for triplet in found.relations}
        return any(self._takes_back(ending, stated) for ending in found.ended) or any(map(self._is_taken_back, stated))

    def _takes_back(self, ending: rules.EndedRelation, stated: set[TripletKey]) -> bool:
        """Return True if an ending ends an earlier relation that its own message does not restate."""
        earlier = self._stated.get(ending_key(ending), set())
        destination = destination_key(ending)
        if destination is None:
            return not earlier <= stated
        key = (*ending_key(ending), destination)
        return key in earlier and key not in stated

    def _is_taken_back(self, key: TripletKey) -> bool:
        """Return True if an earlier message ended a relation without stating it."""
        ended = self._ended.get(key[:2], {})
        return any(key not in kept for destination in (None, key[2]) for kept in ended.get(destination, ()))


def _is_ended_by(triplet: Triplet, ending: rules.EndedRelation) -> bool:
    return triplet.key[:2] == ending_key(ending) and destination_key(ending) in (None, triplet.key[2])
