"""Validity: the memories that answer a question at the time it asks about, and those that are over.

A question names a slot: a subject and a relation family. `find_slot_answer` follows the chain of a question from slot
to slot ("my sister's husband"), reads everything that was said about the last one, and orders it by time. A question
about the present ranks current values first and ended ones last; a question about a past time ranks the values of that
time first. `date_hits` dates other results: a memory is superseded once every statement in it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from mem0_core._system.records import dataclass
from mem0_core.domain.mention_index import words_of
from mem0_core.domain.records import Hit, MemoryItem, Validity
from mem0_core.flow import Flow
from mem0_core.interfaces import Ports
from mem0_core.language.families import families_of_noun, is_of_other_kind, load_families, with_narrower
from mem0_core.language.question import Question, expand_kinship
from mem0_core.language.statements import MAX_SLOT_TEXT_CHARS, SPEAKER, ending_key, slot_key
from mem0_core.recall._slots import SlotReader, current_time, fold, read_slot_memory, to_slot_memory
from mem0_core.recall._timeline import (
    Period,
    SlotMemory,
    Timeline,
    build_timeline,
    has_value,
    is_same_value,
    related_families,
)

if TYPE_CHECKING:
    from mem0_core.recall._plan import Search

_FIRST_PERSON = frozenset({"i", "me", "my", "we", "our", "us"})
_OWNERS, _OWNERS_OF_FACTS = ("my", "our"), ("my", "our", "her", "his", "their")
_OWNER = "my "  # before the noun of a relative, who may have no name
_MIN_CONFIDENCE = 0.4
_OTHER_SHARE, _OVER_SHARE = 0.7, 0.5  # of the score that other results keep next to an answer
_COMMON_FAMILIES = frozenset({"lives_in", "works_at", "works_as"})
_UNNAMED_SHARE = 0.8  # of the score that a memory keeps if it does not name the end of a chain
_MONTH_DAYS = 30  # periods that overlap a time by as many months are equal


@dataclass(frozen=True, slots=True)
class SlotAnswer:
    """Everything known of the slot that a question asks for.

    Attributes:
        subjects: folded names of the subject; the empty one is the speaker.
        families: names of the families that the question may mean.
        timeline: everything said about the slot.
        periods: the values that answer the question, best first.
        memories: the memories that answer it, best first.
        is_of_other_kind: True if all values are of another kind than the question names: of dogs, not of cats.
        over: keys of the memories with statements that do not hold at the time of the question.
    """

    subjects: tuple[str, ...]
    families: tuple[str, ...]
    timeline: Timeline
    periods: list[Period] = field(default_factory=list)
    memories: list[SlotMemory] = field(default_factory=list)
    is_of_other_kind: bool = False
    over: frozenset[tuple[str, str]] = frozenset()

    @property
    def is_known(self) -> bool:
        """True if anything was ever said about the slot."""
        return bool(self.timeline)


def find_slot_answer(ports: Ports, search: Search, hits: Sequence[Hit]) -> Flow[SlotAnswer | None]:
    """Return the statements of a scope about the slot that a query asks for; None if it asks for no slot."""
    question = search.request.query.question
    if not question.path or not all(question.path) or question.confidence < _MIN_CONFIDENCE:
        return None
    answer, read = yield from _read_asked(SlotReader(ports, search), question)
    return _choose(answer, read, current_time(search), hits)


def _read_asked(reader: SlotReader, question: Question) -> Flow[tuple[SlotAnswer, Question]]:
    """Read the slot of a question, or of one that writes its relatives out, and return the one that was read."""
    answer = yield from _read_slot(reader, question)
    best = None
    for longer in () if answer.is_known else expand_kinship(question):
        found = yield from _read_slot(reader, longer)
        if best is None or found.is_known or _without_owner(found.subjects):  # at least the person is known
            best = found, longer
        if found.is_known:
            break
    return best or (answer, question)


def _read_slot(reader: SlotReader, question: Question) -> Flow[SlotAnswer]:
    """Follow the path of a question, and read its last slot."""
    subjects = yield from reader.find_start(question)
    for place, families in enumerate(question.path[:-1]):
        subjects = yield from reader.follow(subjects, families, question.steps[place : place + 1])
        if not subjects:
            return SlotAnswer((), question.path[-1], Timeline())
    wanted = (*with_narrower(question.path[-1][:1]), *question.path[-1][1:])
    return SlotAnswer(tuple(subjects), wanted, (yield from reader.read_timeline(subjects, wanted)))


# --- choosing the answer -----------------------------------------------------------------------------------------


def _choose(answer: SlotAnswer, question: Question, now: str, hits: Sequence[Hit]) -> SlotAnswer:
    """Return an answer with the values that hold at the time of the question, best first."""
    of_kind = _limit_to_kind(answer.timeline, question)
    if answer.is_known and not of_kind:
        return replace(answer, timeline=of_kind, is_of_other_kind=True)
    timeline = _limit_to_value(of_kind, question)
    scores = {(hit.item.id, hit.item.text): hit.score for hit in hits}
    order = {name: place for place, name in enumerate(answer.families)}
    asked = sorted(
        (one for one in timeline.periods if one.statement.family in order),
        key=lambda one: _rank(one, order, scores, is_list=question.is_list),
    )
    periods, endings = list[Period](), list[Period]()
    if question.anchor is not None:
        periods = _select_by_anchor(question.anchor, asked, hits)
    is_dated = question.anchor is not None and question.anchor[0] == "during" and bool(question.spans)
    if question.anchor is None or (is_dated and not periods):  # "while I was in first year, 2022"
        periods, endings = _select_periods(question, timeline, asked, now)
    memories = list({one.memory.key: one.memory for one in (*endings, *periods)}.values())
    if not memories:
        return replace(answer, timeline=timeline)
    chosen = {one.key for one in memories}
    over = frozenset(one.memory.key for one in (*timeline.periods, *timeline.endings) if one.memory.key not in chosen)
    return replace(answer, timeline=timeline, periods=periods, memories=memories, over=over)


def _limit_to_kind(timeline: Timeline, question: Question) -> Timeline:
    """Return a timeline without values of another kind than the question names: the doctor is not the dentist."""
    noun = question.steps[-1].split()[-1]

    def is_meant(one: Period) -> bool:
        return not is_of_other_kind(one.memory.item.text, one.statement.value, noun, one.statement.family)

    return Timeline(list(filter(is_meant, timeline.periods)), list(filter(is_meant, timeline.endings)))


def _limit_to_value(timeline: Timeline, question: Question) -> Timeline:
    """Return the part of a timeline that concerns the value that a question names, if there is any."""
    if not question.value:
        return timeline
    periods = [one for one in timeline.periods if _concerns(one, question.value)]
    endings = [one for one in timeline.endings if _concerns(one, question.value)]
    return Timeline(periods, endings) if periods or endings else timeline


def _concerns(period: Period, value: str) -> bool:
    return bool(period.statement.value) and is_same_value(period.statement.value, value)


def _rank(
    period: Period, order: Mapping[str, int], scores: Mapping[tuple[str, str], float], *, is_list: bool
) -> tuple[float, ...]:
    """Return a sort key: the family meant first, then the newest value, or the best match where there are several."""
    family = load_families()[period.statement.family]
    newest = -_sortable(period.memory.said_at)
    score = -scores.get(period.memory.key, 0.0)
    first = (order.get(family.name, len(order)), not period.statement.value)
    return (*first, newest, score) if family.is_single and not is_list else (*first, score, newest)


def _sortable(time: str) -> float:
    day = date.fromisoformat(time[:10]).toordinal() if time else 0
    hours = time[11:19].replace(":", "")
    return day + (int(hours) / 1e6 if hours.isdigit() else 0.0)


def _select_periods(
    question: Question, timeline: Timeline, asked: Sequence[Period], now: str
) -> tuple[list[Period], list[Period]]:
    """Return the values that a question asks for, and the endings that answer it."""
    if question.event == "ends":
        return [], list(reversed(timeline.endings))
    if question.event == "begins":
        return [one for one in asked if one.holds_at(now)] or list(asked), []
    if question.spans:
        return _select_by_spans(question, asked), []
    holding = [one for one in asked if one.holds_at(now)]
    if question.tense == "past":
        former = [one for one in asked if not one.holds_at(now)]
        return former or holding, []
    if question.asks == "whether" or not holding:
        last = max((one.first for one in holding), default="")
        able = related_families(one.statement.family for one in (holding[:1] or timeline.endings))  # to end the best
        endings = [one for one in timeline.endings if one.statement.family in able][-1:]
        return holding, [one for one in endings if one.first >= last and not _is_followed(one, holding)]
    return holding, []


def _is_followed(ending: Period, holding: Iterable[Period]) -> bool:
    return any(one.memory is ending.memory or one.memory.said_at > ending.memory.said_at for one in holding)


def _select_by_anchor(anchor: tuple[str, str], asked: Sequence[Period], hits: Sequence[Hit]) -> list[Period]:
    """Return the values before, after or during an event that one of the values or of the results names."""
    relation, words = anchor
    named = [one for one in asked if _mentions(one, words)]
    times = [(one.first, one.last or "9999") for one in named] or [
        (hit.item.said_at, hit.item.said_at) for hit in hits if is_same_value(words, hit.item.text)
    ]
    if not times:
        return []
    first, last = min(begin for begin, _ in times), max(end for _, end in times)
    others = [one for one in asked if one not in named]
    if relation == "before":
        earlier = [one for one in others if one.first < first]
        latest = max((one.first for one in earlier), default="")
        return [one for one in earlier if one.first == latest]
    if relation == "after":
        later = [one for one in others if one.first >= last or one.first > first]
        earliest = min((one.first for one in later), default="")
        return [one for one in later if one.first == earliest]
    return named


def _mentions(period: Period, words: str) -> bool:
    value = period.statement.value
    return (bool(value) and is_same_value(value, words)) or has_value(period.memory.item.text, words)


def _select_by_spans(question: Question, asked: Sequence[Period]) -> list[Period]:
    """Return the values that held in one of the times that a question names; failing that, the first one said."""
    spans = [
        (span.first.isoformat() if span.first else "0001-01-01", span.last.isoformat() if span.last else "9999-12-31")
        for span in question.spans
        if not span.is_yearly
    ]
    found = [one for one in asked if any(one.overlaps(first, last) for first, last in spans)]
    if found or not spans or not asked:
        return sorted(found, key=lambda one: -_overlap_days(one, spans[0]) // _MONTH_DAYS) if spans else list(asked)
    first = min(asked, key=lambda one: one.first)
    return [] if _is_dated(first) and first.first[:10] > spans[0][1] else [first]


def _is_dated(period: Period) -> bool:
    """Return True if a statement names the day from which it holds; else it may have held before it was said."""
    return period.statement.days is not None and period.statement.days.first is not None


def _overlap_days(period: Period, span: tuple[str, str]) -> int:
    first = max(date.fromisoformat(period.first[:10] or "0001-01-01"), date.fromisoformat(span[0]))
    end = date.fromisoformat(period.last[:10]) if period.last else date.max
    return max(0, (min(end, date.fromisoformat(span[1]) + timedelta(days=span[1] != "9999-12-31")) - first).days)


# --- results -----------------------------------------------------------------------------------------------------


def prefer_answers(hits: Sequence[Hit], answer: SlotAnswer) -> list[Hit]:
    """Return hits with those first that answer the question, and those last that are over at its time."""
    if not answer.memories:
        return list(hits)
    by_key = {(hit.item.id, hit.item.text): hit for hit in hits}
    chosen: list[Hit] = []
    highest = 1.0
    for memory in answer.memories:
        hit = by_key.pop(memory.key, None) or Hit(memory.item, 0.0, memory.is_unprocessed)
        highest = min(highest, 0.5 + 0.5 * hit.score)
        chosen.append(replace(hit, score=highest, is_answer=True))
    rest = []
    for key, hit in by_key.items():
        share = _OVER_SHARE if key in answer.over else _OTHER_SHARE
        rest.append(replace(hit, score=min(highest, hit.score) * share))
    return chosen + sorted(rest, key=lambda hit: -hit.score)


def proves_absence(answer: SlotAnswer, question: Question, hits: Sequence[Hit]) -> bool:
    """Return True if a slot without a readable statement was never mentioned.

    That proves nothing of a relative who is mentioned without a name that is known, and little of the speaker's home
    and work: they are nearly always mentioned, often in passing.
    """
    names = [name for name in answer.subjects if not name.startswith(_OWNER)]
    if names:
        return SPEAKER not in names or _COMMON_FAMILIES.isdisjoint(answer.families)
    nouns = {noun for family in question.path[0] for noun in load_families()[family].nouns}
    return all(nouns.isdisjoint(_words_in(hit.item)) for hit in hits)


def prefer_chain_end(ports: Ports, search: Search, hits: Sequence[Hit]) -> Flow[list[Hit]]:
    """Return hits with those higher that mention the person at the end of a chain, if no statement gives the answer.

    "Where does my wife work?" shares no word with "Liisa starts at RHI Magnesita", but the wife is known to be Liisa.
    """
    return _prefer_mentions(hits, (yield from _find_chain_end(SlotReader(ports, search), search)))


def _find_chain_end(reader: SlotReader, search: Search) -> Flow[tuple[str, ...]]:
    """Return the folded names of the person at the end of a chain; none if a statement gives the answer.

    One without a name is "my mum", and has all synonyms.
    """
    question, answer = search.request.query.question, search.slot_answer
    if answer is not None:
        return answer.subjects if len(question.path) > 1 and not answer.memories else ()
    path = [families_of_noun(step.split()[-1]) for step in question.steps]
    if question.path or not path or not all(path) or question.asks_assistant:
        return ()
    subjects = yield from reader.find_start(question)
    for place, families in enumerate(path):
        subjects = yield from reader.follow(subjects, families, question.steps[place : place + 1])
    return tuple(subjects)


def _without_owner(subjects: Iterable[str]) -> list[str]:
    return [name for name in subjects if name and not name.startswith(_OWNER)]


def _prefer_mentions(hits: Sequence[Hit], subjects: Iterable[str]) -> list[Hit]:
    """Return hits with those higher that mention a person, if any does."""
    names = _without_owner(subjects)
    nouns = [] if names else [name.removeprefix(_OWNER) for name in subjects if name]
    if not names and not nouns:
        return list(hits)
    phrases: dict[tuple[str, ...], list[str]] = {
        owners: [" ".join(words_of(one)) for one in names or (f"{owner} {noun}" for noun in nouns for owner in owners)]
        for owners in (_OWNERS, _OWNERS_OF_FACTS)
    }
    is_named = [_mentions_any(_words_in(hit.item), phrases) for hit in hits]
    if not any(is_named):
        return list(hits)
    lowered = [
        hit if named else replace(hit, score=hit.score * _UNNAMED_SHARE)
        for hit, named in zip(hits, is_named, strict=True)
    ]
    return sorted(lowered, key=lambda hit: -hit.score)


def _mentions_any(words: Sequence[str], phrases: Mapping[tuple[str, ...], Sequence[str]]) -> bool:
    """Return True if a text has a phrase; a fact tells of the user, who is the owner, in the third person."""
    is_fact, text = _FIRST_PERSON.isdisjoint(words), f" {' '.join(words)} "
    return any(phrase and f" {phrase} " in text for phrase in phrases[_OWNERS_OF_FACTS if is_fact else _OWNERS])


def _words_in(item: MemoryItem) -> list[str]:
    """Return the words of a memory, up to the length that statements are read from."""
    return words_of(item.text[:MAX_SLOT_TEXT_CHARS])


def date_hits(ports: Ports, search: Search, hits: Sequence[Hit]) -> Flow[list[Hit]]:
    """Return hits with their validity, where their memories make statements that can end."""
    replaced = {(one.item.id, one.item.text): one.replaced_at for one in search.transient if one.replaced_at}
    if not replaced and not any(hit.has_statements for hit in hits):
        return list(hits)
    memories = [_read_hit(search, hit, replaced) if hit.has_statements else None for hit in hits]
    stating = [memory for memory in memories if memory is not None]
    slots = dict.fromkeys(slot for memory in stating for slot in _slots(memory))
    if not slots and not replaced:
        return list(hits)
    families_of: dict[str, list[str]] = {}
    for subject, family in slots:
        families_of.setdefault(subject, []).append(family)
    related = {subject: related_families(families) for subject, families in families_of.items()}
    keys = [_closing_key(subject, family) for subject, families in related.items() for family in families]
    found = yield from SlotReader(ports, search).read_memories(keys)
    everything = {one.key: one for one in (*found, *stating)}.values()
    timelines = {subject: build_timeline(everything, (subject,), families) for subject, families in related.items()}
    now = current_time(search)
    validities = [None if memory is None else _validity_of(memory, timelines, now) for memory in memories]
    return [
        hit if validity is None else replace(hit, validity=validity)
        for hit, validity in zip(hits, validities, strict=True)
    ]


def _read_hit(search: Search, hit: Hit, replaced: Mapping[tuple[str, str], str]) -> SlotMemory:
    end = replaced.get((hit.item.id, hit.item.text))
    return read_slot_memory(search, hit.item) if end is None else to_slot_memory(hit.item, replaced_at=end)


def _closing_key(subject: str, family: str) -> str:
    """Return the key of the statements that can end a value: any of a family with one value or an opposite."""
    details = load_families()[family]
    return slot_key(subject, family) if details.is_single or details.opposite else ending_key(subject, family)


def _slots(memory: SlotMemory) -> list[tuple[str, str]]:
    speaker = memory.item.actor_id or SPEAKER
    return [(fold(one.subject or speaker), one.family) for one in memory.statements]


def _validity_of(memory: SlotMemory, timelines: Mapping[str, Timeline], now: str) -> Validity | None:
    """Return the time in which the statements of a memory hold; None if it makes none that can end."""
    if memory.replaced_at is not None:
        return Validity(memory.said_at, memory.replaced_at, None)
    own = [
        period
        for name in dict.fromkeys(subject for subject, _ in _slots(memory))
        for period in timelines[name].periods
        if period.memory.key == memory.key
    ]
    if not own:
        return None
    first = min(one.first for one in own)
    if any(one.last is None or one.last > now for one in own):
        return Validity(first or None, None, None)
    last = max(own, key=lambda one: one.last or "")
    by = last.ended_by.item.id if last.ended_by is not None and last.ended_by.key != memory.key else None
    return Validity(first or None, last.last, by)
