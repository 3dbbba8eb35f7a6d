"""Timeline of slots: when each value held, by the statements of memories, and which of them answer a question.

Pure functions over statements. In a family with one value at a time, a new value ends the one before; in the others,
only a statement that says so ends a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from mem0_core.domain.records import DateRange, MemoryItem
from mem0_core.language.families import Family, load_families
from mem0_core.language.statements import SPEAKER, Statement

__all__ = ["Period", "SlotMemory", "Timeline", "add_period", "build_timeline", "is_same_value", "related_families"]

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
    wanted = dict.fromkeys(name for name in names if name in families)
    for name in tuple(wanted):
        wanted |= dict.fromkeys([families[name].opposite] if families[name].opposite else [])
        wanted |= dict.fromkeys(other.name for other in families.values() if name in other.closes)
    return tuple(wanted)


def build_timeline(memories: Iterable[SlotMemory], subjects: Iterable[str], families: Iterable[str]) -> Timeline:
    """Return the timeline of some slots.

    Args:
        subjects: folded names of one subject; the empty one is the speaker.
        families: names of the families to take into account.
    """
    wanted_subjects, wanted = frozenset(subjects), frozenset(families)
    timeline = Timeline()
    for memory in sorted(memories, key=lambda one: (one.said_at, one.item.row or 0)):
        for statement in _with_inverses(memory):
            if statement.family in wanted and _fold(statement.subject) in wanted_subjects:
                _add_statement(timeline, memory, statement)
    timeline.endings.sort(key=lambda ending: ending.first)
    return timeline


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


def _add_statement(timeline: Timeline, memory: SlotMemory, statement: Statement) -> None:
    days = statement.days or DateRange(None, None)
    if statement.effect == "ends":
        time = days.last or days.first or memory.said_at
        ending = Period(memory, statement, time)
        _close(timeline.periods, ending)
        timeline.endings.append(ending)
        return
    if statement.effect == "past":
        timeline.periods.append(
            Period(memory, statement, days.first or "", _day_after(days.last) or memory.said_at, memory)
        )
        return
    period = Period(memory, statement, days.first or memory.said_at)
    _close(timeline.periods, period)
    timeline.periods.append(period)


def _day_after(day: str | None) -> str | None:
    return None if day is None else f"{day}T24"


def _close(periods: Sequence[Period], new: Period) -> None:
    """End the periods that a later statement ends."""
    for old in periods:
        if old.last is not None or old.memory is new.memory or not _ends(old, new):
            continue
        old.last = new.first if new.first > old.first else new.memory.said_at
        old.ended_by = new.memory


def _ends(old: Period, new: Period) -> bool:
    said, before = new.statement, old.statement
    family: Family = load_families()[said.family]
    is_same = is_same_value(said.value, before.value)
    if said.effect == "ends":
        if before.family == said.family:
            return is_same  # to leave an employer is to leave the job there; to divorce ends no other love
        return before.family in family.closes and load_families()[before.family].answer != family.answer
    if before.family == said.family:
        return family.is_single and not (is_same and bool(said.value))
    return before.family in family.closes or (before.family == family.opposite and is_same)


def is_same_value(one: str, other: str) -> bool:
    """Return True if all words of one value are among those of the other, or one of both is not named."""
    left, right = _value_words(one), _value_words(other)
    return not left or not right or left <= right or right <= left


@lru_cache(maxsize=16_384)
def _value_words(value: str) -> frozenset[str]:
    words = (word for word in _WORD.findall(value.casefold()) if word not in _NEUTRAL_WORDS)
    return frozenset(
        word.removesuffix("s") if len(word) >= _MIN_STEM_CHARS and not word.endswith("ss") else word for word in words
    )


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())
