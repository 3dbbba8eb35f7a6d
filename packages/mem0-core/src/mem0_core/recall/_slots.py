"""Everything that the memories and the graph of a scope say about slots; a slot is a subject and a relation family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from mem0_core.domain.records import MemoryItem, Relation, is_expired, mentions_name
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import self_name
from mem0_core.interfaces import Ports
from mem0_core.language.families import family_of_label, load_families
from mem0_core.language.question import Question
from mem0_core.language.statements import MAX_SLOT_TEXT_CHARS, SPEAKER, Statement, read_statements, slot_key
from mem0_core.language.terms import extract_terms
from mem0_core.recall._plan import find_items, find_postings
from mem0_core.recall._timeline import (
    Period,
    SlotMemory,
    Timeline,
    add_period,
    build_timeline,
    is_same_value,
    related_families,
)

if TYPE_CHECKING:
    from mem0_core.recall._plan import Search
    from mem0_core.recall.cache import ActiveScope

_MAX_SLOT_ROWS = 1024  # memories of one slot that the index returns
_MAX_SLOT_MEMORIES = 96  # of these the newest that are read
_MAX_SUBJECTS = 8
_MAX_REPLACED_TEXTS = 500  # earlier texts that are searched for a name that no present text has


def current_time(search: Search) -> str:
    """Return the time that the query calls now: the end of its reference day, or the time it is asked as of."""
    if search.request.as_of is not None:
        return search.request.as_of
    return f"{search.request.query.reference.isoformat()}T24"


class SlotReader:
    """Reads the memories of slots in one scope."""

    def __init__(self, ports: Ports, search: Search) -> None:
        self._ports, self._search = ports, search

    def find_start(self, question: Question) -> Flow[tuple[str, ...]]:
        """Return the folded names of the subject at which a question starts."""
        if question.start is None:
            return (SPEAKER,)
        name = fold(question.start)
        names = yield from self._find_full_names(question.start)
        own = yield from self.read_timeline((SPEAKER,), ("name",))
        is_speaker = name in {fold(value) for value in self._search.request.scope.ids.values()} or any(
            is_same_value(period.statement.value, name) for period in own.periods if period.statement.value
        )
        return (name, SPEAKER) if is_speaker else (name, *names)

    def _find_full_names(self, name: str) -> Flow[list[str]]:
        """Return the folded longer names in the graph that begin with a name; none if the graph has the name itself."""
        if self._ports.graph is None:
            return []
        from mem0_core.recall.exploration import load_adjacency  # imports NumPy

        adjacency = yield from load_adjacency(self._ports, self._search.request.scope, self._search.active)
        vertices = () if adjacency.find_vertices(name) else adjacency.find_longer_names(name)
        return [fold(adjacency.names[vertex]) for vertex in vertices][:_MAX_SUBJECTS]

    def follow(self, subjects: Sequence[str], families: Sequence[str], step: Sequence[str]) -> Flow[tuple[str, ...]]:
        """Return the folded names of the values of some slots: those that hold, else those that held."""
        timeline = yield from self.read_timeline(subjects, families)
        found = [one for one in timeline.periods if one.statement.family in families]
        if not any(one.statement.value for one in found):
            found = yield from self._read_replaced_periods(subjects, families)
        now = current_time(self._search)
        is_former = bool(step) and step[0].split("-")[0].split()[0] in {"ex", "former", "late"}
        chosen = [one for one in found if one.holds_at(now) is not is_former] or found
        names = dict.fromkeys(fold(one.statement.value) for one in reversed(chosen) if one.statement.value)
        if SPEAKER in subjects and not is_former:
            names |= dict.fromkeys(f"my {noun}" for name in families for noun in load_families()[name].nouns)
        first_names = [name.split()[0] for name in names if " " in name and not name.startswith("my ")]
        own = [name for name in names if not name.startswith("my ")][:_MAX_SUBJECTS]
        return tuple(dict.fromkeys([*own, *first_names[:_MAX_SUBJECTS], *(n for n in names if n.startswith("my "))]))

    def _read_replaced_periods(self, subjects: Sequence[str], families: Sequence[str]) -> Flow[list[Period]]:
        """Return the values in earlier texts: an update of "Her sister Ingrid lives in Malmö" may drop the sister."""
        request = self._search.request
        if request.as_of is not None:
            return []
        replaced, _ = yield from do(
            self._ports.store.replaced_texts, request.scope, filter=request.filter, limit=_MAX_REPLACED_TEXTS
        )
        texts = [to_slot_memory(item, replaced_at=end) for item, end in replaced]
        return build_timeline(texts, subjects, families).periods

    def read_timeline(self, subjects: Sequence[str], families: Sequence[str]) -> Flow[Timeline]:
        """Return the timeline of some slots."""
        wanted = related_families(families)
        memories = yield from self.read_memories([slot_key(name, family) for name in subjects for family in wanted])
        past = [
            to_slot_memory(one.item, replaced_at=one.replaced_at)
            for one in self._search.transient
            if one.replaced_at is not None
        ]
        timeline = build_timeline([*memories, *past], subjects, wanted)
        yield from self._add_relations(timeline, subjects, wanted, past)
        return timeline

    def _add_relations(
        self, timeline: Timeline, subjects: Sequence[str], families: Sequence[str], past: Sequence[SlotMemory]
    ) -> Flow[None]:
        """Add the relations of the graph to a timeline; they know better when a value began and ended."""
        if self._ports.graph is None or self._search.untrusted_relations:
            return
        from mem0_core.recall.exploration import load_incident_relations  # imports NumPy

        scope = self._search.request.scope
        names = [self_name(scope) if name == SPEAKER else name for name in subjects if not name.startswith("my ")]
        incident = yield from load_incident_relations(
            self._ports, names, scope, lambda label, is_forward: _family_of(label, is_forward) in families
        )
        found = [(one, _family_of(one.triplet.relationship, is_forward), is_forward) for one, is_forward in incident]
        ids = list(dict.fromkeys(memory for relation, _, _ in found for memory in relation.memories))[
            :_MAX_SLOT_MEMORIES
        ]
        items = yield from self._read_items(ids)
        for relation, family, is_forward in found:
            value = relation.triplet.destination if is_forward else relation.triplet.source
            memory = _find_proof(relation, value, items, past)
            if memory is not None:
                statement = Statement(SPEAKER, family, value, "holds")
                add_period(timeline, Period(memory, statement, relation.valid_from, relation.valid_to))

    def _read_items(self, ids: Sequence[str]) -> Flow[dict[str, MemoryItem]]:
        """Return memories by id, without those that the search may not find."""
        found, search = (yield from do(self._ports.store.get_many, ids)), self._search
        return {
            id: item
            for id in ids
            if (item := found.get(id)) is not None
            and not is_expired(item, search.request.today)
            and (item.row is None or search.filter_rows([item.row]))
        }

    def read_memories(self, slots: Sequence[str]) -> Flow[list[SlotMemory]]:
        """Return the newest memories that make statements about some slots, by their keys."""
        search, ports = self._search, self._ports
        postings = yield from find_postings(ports, search, slots, kind="slot", limit=_MAX_SLOT_ROWS)
        newest = sorted({row for rows in postings.values() for row in rows.tolist()})[-_MAX_SLOT_MEMORIES:]
        rows = search.filter_rows(newest)
        items = yield from find_items(ports, search, rows)
        known = [items[row] for row in rows if row in items]
        found = [read_slot_memory(search, item) for item in known if not is_expired(item, search.request.today)]
        queued = (one.item for one in search.transient if one.is_unprocessed)
        return found + [to_slot_memory(item, is_unprocessed=True) for item in queued]


def _family_of(label: str, is_forward: bool) -> str:
    """Return the family of a relation's label as seen from one of its ends; empty for none."""
    family = family_of_label(label)
    if family is None:
        return ""
    return family.name if is_forward is not label.endswith("_of") else family.inverse


def _find_proof(
    relation: Relation, value: str, items: Mapping[str, MemoryItem], past: Sequence[SlotMemory]
) -> SlotMemory | None:
    """Return the memory, or the earlier text of one, that states a relation best.

    It was said before the relation ended ("gave up rugby" ends it), names the value, or has most words of the relation.
    """
    found = (items[memory] for memory in relation.memories if memory in items)
    supporting = [SlotMemory(item, item.said_at, ()) for item in found]  # the relation is their statement
    earlier = [memory for memory in past if memory.item.id in relation.memories]
    named = [memory for memory in past if mentions_name(memory.item.text, value)]
    words = frozenset(extract_terms(f"{relation.triplet.relationship} {value}"))

    def rank(memory: SlotMemory) -> tuple[bool, bool, int]:
        text, end = memory.item.text, relation.valid_to
        common = len(words.intersection(extract_terms(text)))
        return end is None or memory.said_at < end, mentions_name(text, value), common

    return max([*supporting, *earlier] or named, key=rank, default=None)


def read_slot_memory(search: Search, item: MemoryItem) -> SlotMemory:
    """Return a memory in its present text with its statements, which are kept with a scope in memory."""
    return to_slot_memory(item) if search.active is None else read_kept_memory(search.active, item)


def read_kept_memory(active: ActiveScope, item: MemoryItem) -> SlotMemory:
    """Do the same for a scope in memory."""
    if item.row is None:
        return to_slot_memory(item)
    kept = active.slot_memories.get(item.row)
    if kept is None or kept.item is not item:
        kept = active.slot_memories[item.row] = to_slot_memory(item, packed=active.find_statements(item.row))
    return kept


def to_slot_memory(
    item: MemoryItem, *, replaced_at: str | None = None, is_unprocessed: bool = False, packed: str = ""
) -> SlotMemory:
    said: tuple[Statement, ...] = ()
    if item.is_said and len(item.text) <= MAX_SLOT_TEXT_CHARS:
        said = read_statements(item.text, said_on=date.fromisoformat(item.said_at[:10]), packed=packed)
    return SlotMemory(item, item.said_at, said, replaced_at, is_unprocessed)


def fold(name: str) -> str:
    return " ".join(name.casefold().split())
