"""Answers without a model: the value that a question asks for, with its proof, its dates and its certainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Hit
from mem0_core.flow import Flow
from mem0_core.interfaces import Ports
from mem0_core.language.attributes import find_color, find_surnames
from mem0_core.language.families import load_families
from mem0_core.language.question import Question
from mem0_core.recall._absence import (
    describe_empty,
    describe_missing,
    explain_low_chance,
    find_stating,
    find_surname,
    is_likely,
)
from mem0_core.recall._plan import Search, SearchRequest
from mem0_core.recall._timeline import Period, is_same_value
from mem0_core.recall.search import recall
from mem0_core.recall.validity import SlotAnswer

if TYPE_CHECKING:
    from mem0_core.graph.traversal import Path

_CERTAIN, _READ, _SIMILAR = 0.95, 0.8, 0.6  # confidence: plainly stated, read between the lines, found by likeness


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a question, or the fact that there is none.

    Attributes:
        is_known: False if no memory tells the answer.
        values: the values that the question asks for, best first; empty if only a memory answers it as a whole.
        since, until: ISO 8601 days or times from which and until which the first value holds; None if unknown or open.
        confidence: in [0, 1].
        hits: the memories that prove it, best first.
        path: relations that lead to the value, where the graph knows them.
        nearest: the memory nearest to the question, if the answer is unknown.
        note: the reason why the answer is unknown or uncertain.
    """

    is_known: bool
    values: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    confidence: float = 0.0
    hits: Sequence[Hit] = field(default_factory=list)
    path: Path | None = None
    nearest: Hit | None = None
    note: str = ""


def answer(ports: Ports, request: SearchRequest) -> Flow[Answer]:
    """Answer a question from the memories of a scope.

    Where the question asks for a slot ("where does my sister work"), the answer is the value of the slot at the time
    that the question is about. Where it asks for a property ("what color is my car"), a memory has to state it. Any
    other question is answered by its best memory, if that is near enough.

    Raises:
        ConfigError: as `recall` does.
    """
    search = yield from recall(ports, replace(request, allow_no_answer=False, threshold=0.0))
    if request.query.question.asks == "reason":  # no value of a slot is one
        return _answer_from_hits(search, None)
    if request.query.question.attribute and search.hits:
        return _answer_attribute(search)
    path = yield from _find_path(ports, search)
    slot = search.slot_answer
    if slot is not None and slot.memories:
        return _answer_from_slot(search, slot, path)
    if path is not None and not (slot is not None and slot.is_of_other_kind):
        return _answer_from_path(search, path)
    return _answer_from_hits(search, slot)


def _find_path(ports: Ports, search: Search) -> Flow[Path | None]:
    """Return the best path through the graph, for a question that describes one."""
    from mem0_core.recall.exploration import traverse  # imports NumPy, which importing this package must not

    request = search.request
    question = request.query.question
    if ports.graph is None or search.untrusted_relations or not question.steps or question.asks in ("other", "count"):
        return None
    paths = yield from traverse(ports, request.query, request.scope, as_of=request.as_of, limit=1)
    return paths[0] if paths else None


def _answer_attribute(search: Search) -> Answer:
    """Return the memories that state an attribute as the answer, with a surname or a color that is plain."""
    query = search.request.query
    stating = find_stating(search, search.hits)
    if not stating:
        return Answer(False, nearest=search.hits[0], note=describe_missing(query))
    text, value = stating[0].item.text, ""
    if query.question.attribute == "surname":
        value = find_surname(search) or next(iter(find_surnames(text, query.names)), "")
    elif query.question.attribute == "color":
        value = find_color(text)
    note = "" if value else "the best memory; no value was read"
    return Answer(True, (value,) if value else (), confidence=_SIMILAR, hits=stating, note=note)


def _answer_from_slot(search: Search, slot: SlotAnswer, path: Path | None) -> Answer:
    question = search.request.query.question
    hits = [hit for hit in search.hits if hit.is_answer]
    values = _read_values(question, slot)
    if not search.hits[0].is_answer:  # only a message that may replace it comes first: see `recall._current`
        return _answer_in_doubt(search.hits[0], hits, values)
    first = slot.periods[0] if slot.periods else None
    is_proven = path is not None and any(is_same_value(path.end, value) for value in values)
    plain = first is not None and first.statement.is_certain
    return Answer(
        is_known=True,
        values=values,
        since=first.first or None if first else None,
        until=first.last if first else None,
        confidence=_CERTAIN if is_proven or plain else _READ,
        hits=hits,
        path=path if is_proven else None,
        note="" if values else "the memories tell it, and name no value that can be read from them",
    )


def _answer_in_doubt(latest: Hit, former: Sequence[Hit], values: Sequence[str]) -> Answer:
    """Return a later memory as the answer, where no statement was read and which comes before those with values."""
    replaced = f"; it may replace {', '.join(values)}" if values else ""
    note = f"the best memory; no value was read{replaced}"
    return Answer(True, confidence=_SIMILAR, hits=[latest, *former], note=note)


def _read_values(question: Question, slot: SlotAnswer) -> tuple[str, ...]:
    """Return the values that a question asks for: names, dates, a number, or yes and no."""
    if question.asks == "when" and load_families()[slot.families[0]].answer != "date":
        times = [one.first for one in (*slot.periods, *reversed(slot.timeline.endings)) if one.first]
        return (times[0][:10],) if times else ()
    if question.asks == "whether":
        return _read_truth(question, slot)
    values = tuple(dict.fromkeys(one.statement.value for one in slot.periods if one.statement.value))
    if question.asks == "count":
        return (str(len(values)),)
    family = load_families()[slot.families[0]]
    return values if question.is_list or not family.is_single else values[:1]


def _read_truth(question: Question, slot: SlotAnswer) -> tuple[str, ...]:
    """Return yes or no where the named value holds, ended or is contradicted; else the values that are known."""
    if _holds(question, slot):
        return ("yes",)
    said = [*slot.timeline.periods, *slot.timeline.endings]
    if any(is_same_value(one.statement.value, question.value) for one in said):
        return ("no",)
    return tuple(dict.fromkeys(one.statement.value for one in slot.periods if one.statement.value)) or ("no",)


def _holds(question: Question, slot: SlotAnswer) -> bool:
    """Return True if the value that a question names is one of those that hold."""
    return any(_is_meant(period, question, slot) for period in slot.periods) is not question.is_negative


def _is_meant(period: Period, question: Question, slot: SlotAnswer) -> bool:
    return period.statement.family in slot.families and is_same_value(period.statement.value, question.value)


def _answer_from_path(search: Search, path: Path) -> Answer:
    last = path.steps[-1].relation if path.steps else None
    proofs = {memory for step in path.steps for memory in step.relation.memories}
    return Answer(
        is_known=True,
        values=_read_path(search.request.query.question, path),
        since=last.valid_from if last else None,
        until=last.valid_to if last else None,
        confidence=min(_CERTAIN, path.score),
        hits=[hit for hit in search.hits if hit.item.id in proofs],
        path=path,
    )


def _read_path(question: Question, path: Path) -> tuple[str, ...]:
    """Return the end of a path; its date if a question asks when, or yes or no if it asks whether."""
    if question.asks == "when":
        last = path.steps[-1].relation if path.steps else None
        time = last and (last.valid_to if question.event == "ends" else last.valid_from)
        return (time[:10],) if time else ()
    if question.asks == "whether" and question.value and is_same_value(path.end, question.value):
        return ("no",) if question.is_negative else ("yes",)
    return (path.end,)


def _answer_from_hits(search: Search, slot: SlotAnswer | None) -> Answer:
    """Return the best memory as the answer, if the question asks for no slot and the memory is near enough."""
    best = search.hits[0] if search.hits else None
    if best is None:
        return Answer(False, note="there are no memories")
    if slot is not None and not is_likely(search, best):
        return Answer(False, nearest=best, note=describe_empty(slot))
    if explain_low_chance(search, best):
        return Answer(False, nearest=best, note="no memory is near enough to the question")
    return Answer(True, confidence=min(_SIMILAR, best.score), hits=[best], note="the best memory; no value was read")
