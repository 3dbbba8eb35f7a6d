"""Timeline of slots: when each value held, by the statements of memories, and which of them answer a question.

Pure functions over statements. In a family with one value at a time, a new value ends the one before; in the others,
only a statement that says so ends a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import cache

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import DateRange, MemoryItem
from mem0_core.language.families import load_families
from mem0_core.language.statements import SPEAKER, Statement

_WORD = re.compile(r"[^\W_]+")
_NEUTRAL_WORDS = frozenset(
    ["a", "an", "the", "my", "our", "his", "her", "their", "its", "some", "called", "named", "of"]
)
_MIN_STEM_CHARS = 4


@dataclass(frozen=True, slots=True)
class SlotMemory:
    """A memory, or an earlier text of one, with its statements.

    Attributes:
        said_at: ISO 8601 time from which it had this text.
        replaced_at: time at which the text was replaced or deleted; None for a present text.
        is_unprocessed: True for a queued message.
    """

    item: MemoryItem
    said_at: str
    statements: tuple[Statement, ...]
    replaced_at: str | None = None
    is_unprocessed: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The key that tells texts of one memory apart."""
        return self.item.id, self.item.text


@dataclass(slots=True)
class Period:
    """The time in which a slot had a value.

    Attributes:
        first: ISO 8601 time or day from which it held; empty if unknown.
        last: time or day from which it no longer held; None while it holds.
        ended_by: the memory that ended it.
    """

    memory: SlotMemory
    statement: Statement
    first: str
    last: str | None = None
    ended_by: SlotMemory | None = None

    def holds_at(self, time: str) -> bool:
        """Return True if the value held at an ISO 8601 time."""
        return self.first <= time and (self.last is None or time < self.last)

    def overlaps(self, first: str, last: str) -> bool:
        """Return True if the value held on one of the days from `first` to `last`, both inclusive."""
        return self.first[:10] <= last and (self.last is None or self.last[:10] > first)


_LIVING = frozenset({"animal", "person"})  # a death may end either


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything said about some slots.

    Attributes:
        periods: the values, in the order in which they were said.
        endings: statements that something ended, each with its memory and its time, in the order of time.
    """

    periods: list[Period] = field(default_factory=list)
    endings: list[Period] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.periods or self.endings)


def related_families(names: Iterable[str]) -> tuple[str, ...]:
    """Return families, and those with statements that end values of theirs."""
    families = load_families()
    known = [name for name in names if name in families]
    return tuple(dict.fromkeys([*known, *(other for name in known for other in _find_ending_families(name))]))


@cache
def _find_ending_families(name: str) -> tuple[str, ...]:
    """Return the families with statements that end values of a family."""
    families = load_families()
    opposite = families[name].opposite
    return (*((opposite,) if opposite else ()), *(one.name for one in families.values() if name in one.closes))


def build_timeline(memories: Iterable[SlotMemory], subjects: Iterable[str], families: Iterable[str]) -> Timeline:
    """Return the timeline of some slots.

    Args:
        subjects: folded names of one subject; the empty one is the speaker.
        families: names of the families to take into account.
    """
    wanted_subjects, wanted = frozenset(subjects), frozenset(families)
    builder = _TimelineBuilder()
    for memory in sorted(memories, key=lambda one: (one.said_at, one.item.row or 0)):
        for statement in _with_inverses(memory):
            if statement.family in wanted and _fold(statement.subject) in wanted_subjects:
                builder.add(memory, statement)
    builder.timeline.endings.sort(key=lambda ending: ending.first)
    return builder.timeline


class _TimelineBuilder:
    """Adds statements to a timeline, in the order in which they were said."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self._open: dict[str, list[Period]] = {}  # by family

    def add(self, memory: SlotMemory, statement: Statement) -> None:
        days = statement.days or DateRange(None, None)
        if statement.effect == "ends":
            ending = Period(memory, statement, days.last or days.first or memory.said_at)
            self._close_ended(ending)
            if not self._is_of_stranger(ending):
                self.timeline.endings.append(ending)
        elif statement.effect == "past":
            last = _day_after(days.last) or memory.said_at
            first = memory.said_at if last > memory.said_at else ""  # "lives in Rome until June", said in May
            self.timeline.periods.append(Period(memory, statement, days.first or first, last, memory))
        else:
            period = Period(memory, statement, days.first or memory.said_at)
            self._close_replaced(period)
            self.timeline.periods.append(period)
            self._open.setdefault(statement.family, []).append(period)

    def _is_of_stranger(self, ending: Period) -> bool:
        """Return True for "Mama Njeri has passed on", if no pet and no spouse of that name is known."""
        family, value = ending.statement.family, ending.statement.value
        others = (one for one in ending.memory.statements if one.effect == "ends" and one.value == value)
        is_ambiguous = bool(value) and sum(load_families()[one.family].answer in _LIVING for one in others) > 1
        return is_ambiguous and not any(
            one.statement.family == family and is_same_value(value, one.statement.value)
            for one in self.timeline.periods
        )

    def _close_ended(self, ending: Period) -> None:
        """End the values that a statement ends: to leave an employer is to leave the job there."""
        families = load_families()
        family, value = families[ending.statement.family], ending.statement.value
        self._close(family.name, ending, lambda old: is_same_value(value, old))
        for name in family.closes:
            if families[name].answer != family.answer:  # to divorce ends no other love
                self._close(name, ending)

    def _close_replaced(self, period: Period) -> None:
        """End the values that a new one replaces or contradicts."""
        family, value = load_families()[period.statement.family], period.statement.value
        if family.is_single:
            open_ = self._open.get(family.name)
            is_known = open_ and value and is_same_value(value, open_[-1].statement.value)
            if open_ and (open_[-1].statement.is_planned or not is_known):
                self._close(family.name, period)
        for name in family.closes:
            self._close(name, period)
        if family.opposite:
            self._close(family.opposite, period, lambda old: is_same_value(value, old))

    def _close(self, family: str, new: Period, is_meant: Callable[[str], bool] = lambda value: True) -> None:
        remaining, open_ = [], self._open.get(family, [])
        postponed = [old.memory.key for old in open_ if _is_postponed(old, new)]
        for old in open_:
            if old.memory is new.memory or not is_meant(old.statement.value):
                remaining.append(old)
                continue
            if old.ended_by is not None and old.ended_by.key in postponed:
                old.last = None
            is_later = new.first > old.first and old.memory.key not in postponed
            last = new.first if is_later else new.memory.said_at
            if old.last is None or last < old.last:
                old.last, old.ended_by = last, new.memory
            if new.statement.is_planned:  # it may end before the plan comes true
                remaining.append(old)
        self._open[family] = remaining


def _is_postponed(old: Period, new: Period) -> bool:
    """Return True if a plan takes the place of one for the same value whose day has not come."""
    is_planned = old.statement.is_planned and new.statement.is_planned
    has_begun = new.memory.said_at >= old.first
    return is_planned and not has_begun and is_same_value(old.statement.value, new.statement.value)


def add_period(timeline: Timeline, period: Period) -> None:
    """Add a period that the graph knows, or set the end of the same period read from a memory."""
    for known in timeline.periods:
        is_same = known.statement.family == period.statement.family and known.memory.key == period.memory.key
        if is_same and is_same_value(known.statement.value, period.statement.value):
            known.last = known.last if period.last is None else period.last
            return
    timeline.periods.append(period)


def _with_inverses(memory: SlotMemory) -> Iterator[Statement]:
    """Yield the statements of a memory, and their inverses: marriage holds both ways."""
    families = load_families()
    speaker = memory.item.actor_id or SPEAKER
    for statement in memory.statements:
        said = statement if statement.subject else statement._replace(subject=speaker)
        yield said
        inverse = families[said.family].inverse
        if inverse and said.value:
            yield said._replace(subject=said.value, family=inverse, value=said.subject)


def _day_after(day: str | None) -> str | None:
    return None if day is None else f"{day}T24"


def is_same_value(one: str, other: str) -> bool:
    """Return True if all words of one value are among those of the other, or one of both is not named."""
    left, right = _value_words(one), _value_words(other)
    return not left or not right or left <= right or right <= left


def has_value(text: str, value: str) -> bool:
    """Return True if all words of a value, of which there must be one, are in a text."""
    words = _value_words(value)
    return bool(words) and words <= _value_words(text)


@text_cache(16_384)
def _value_words(value: str) -> frozenset[str]:
    words = (word for word in _WORD.findall(value.casefold()) if word not in _NEUTRAL_WORDS)
    return frozenset(
        word.removesuffix("s") if len(word) >= _MIN_STEM_CHARS and not word.endswith("ss") else word for word in words
    )


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())
