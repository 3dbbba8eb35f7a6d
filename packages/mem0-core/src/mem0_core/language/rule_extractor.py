"""Rule-based extraction of entities and relations: the certain statements of a text, with high precision.

`_reader` reads the statements by the tables of a language; questions, wishes, suppositions, commands, hearsay and
quotations state nothing. A relation needs a subject with a name; "my sister lives in Rome" waits for that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import islice

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.bounds import MAX_NAMES, MAX_RELATIONS, MAX_RULE_TEXT_CHARS, MAX_STATEMENTS
from mem0_core.domain.records import Entity, Triplet
from mem0_core.language._reader import Statement
from mem0_core.language._tokens import tokenize
from mem0_core.language.families import load_families
from mem0_core.language.statements import find_days, read_all_statements

_CACHED_TEXTS = 1_024  # an import reads each text of a chunk for conflicts, for relations and for the word index
_MAX_CACHED_CHARS = 4_000
_NAMING = re.compile(r"[^\x00-\x40\x5b-\x7f]|\"")  # a capital, a quotation mark, any other alphabet
_TYPES = {"person": "person", "place": "place", "organization": "organization", "animal": "animal"}


@dataclass(frozen=True, slots=True)
class EndedRelation:
    """A relation that no longer holds; a `destination` of None means any but those that the same text states."""

    source: str
    relationship: str
    destination: str | None


@dataclass(frozen=True, slots=True)
class RuleExtraction:
    """Statements of a text.

    Attributes:
        entities: named entities, and both ends of `relations`.
        ended: relations that the text says are over.
        of_relatives: statements about relatives of the speaker that the text does not name, with a source like
            ``my sister``; they are relations once the name is known.
        is_cut: True if the text holds more than the bounds of `domain.bounds` allow to be read.
    """

    entities: tuple[Entity, ...] = ()
    relations: tuple[Triplet, ...] = ()
    ended: tuple[EndedRelation, ...] = ()
    of_relatives: tuple[Triplet | EndedRelation, ...] = ()
    is_cut: bool = False


@text_cache(_CACHED_TEXTS, max_chars=_MAX_CACHED_CHARS)
def entities(text: str) -> tuple[Entity, ...]:
    """Return the entities that a text names: quoted, then capitalized spans.

    A span that only opens a sentence counts if the text states a relation of it. Of a long text, only the first names
    are returned, see `domain.bounds`.
    """
    text = text[:MAX_RULE_TEXT_CHARS]
    if not _NAMING.search(text):
        return ()
    return tuple(islice(_Extraction(text, "").names(), MAX_NAMES))


@text_cache(_CACHED_TEXTS, max_chars=_MAX_CACHED_CHARS)
def extract_by_rules(text: str, *, speaker: str, said_on: date | None = None) -> RuleExtraction:
    """Return the entities of a text and its plain statements, see `domain.bounds` for their number.

    Args:
        speaker: the name for I, me and my.
        said_on: the day of the text. What it names a later day for is left out: it is not true yet.
    """
    extraction = _Extraction(text[:MAX_RULE_TEXT_CHARS], speaker.strip(), said_on)
    extraction.read()
    found = {entity.name.casefold(): entity for entity in entities(text)}
    said = [each for of_one in extraction.said.values() for each in of_one.values()]
    of_relatives = tuple(each for each in said if each.source.startswith("my "))[:MAX_RELATIONS]
    said = [each for each in said if not each.source.startswith("my ")]
    relations = tuple(each for each in said if isinstance(each, Triplet))
    ended = tuple(each for each in said if isinstance(each, EndedRelation))
    is_cut = extraction.is_cut or len(text) > MAX_RULE_TEXT_CHARS or max(len(relations), len(ended)) > MAX_RELATIONS
    relations, ended = relations[:MAX_RELATIONS], ended[:MAX_RELATIONS]
    for key, name in [(name.casefold(), name) for each in relations for name in (each.source, each.destination)]:
        found[key] = Entity(found.get(key, Entity(name)).name, extraction.types.get(key, ""))
    return RuleExtraction(tuple(found.values()), relations, ended, of_relatives, is_cut)


class _Extraction:
    """Relations and endings of a text: the last word on each counts."""

    def __init__(self, text: str, speaker: str, said_on: date | None = None) -> None:
        self._source, self._said_on = text, said_on
        self._text = tokenize(text, "english")
        self._speaker = speaker
        self.types = {speaker.casefold(): "person"}
        self.said: dict[tuple[str, str], dict[str, Triplet | EndedRelation]] = {}
        self._subjects: set[str] = set()
        self._has_read = False
        self.is_cut = False

    def read(self) -> None:
        """Read the text, once."""
        if self._has_read:
            return
        self._has_read = True
        statements = read_all_statements(self._source, tokens=self._text)
        self.is_cut = len(statements) >= MAX_STATEMENTS
        for statement in statements:
            subject = statement.subject or self._speaker
            self._subjects.add(statement.subject.casefold())
            if subject and statement.is_certain and not self._is_ahead(statement):
                self._record(subject, statement)

    def _is_ahead(self, statement: Statement) -> bool:
        """Return True if what a statement begins or ends has a day that is still to come."""
        is_change = statement.effect in ("begins", "ends") and statement.family != "plans_trip_to"
        if self._said_on is None or not statement.when or not is_change:
            return False
        days = find_days(statement.when, self._said_on, is_planned=statement.is_planned)
        return days is not None and (days.first or days.last or "") > self._said_on.isoformat()

    def _record(self, subject: str, statement: Statement) -> None:
        family = load_families()[statement.family]
        if statement.value.casefold() == subject.casefold():
            return
        relation = statement.relation or family.name
        for label in dict.fromkeys((relation, *self._same_labels(family.name))):
            if statement.effect == "begins" and family.is_single:
                self.said[subject.casefold(), label] = {"": EndedRelation(subject, label, None)}
            elif statement.effect == "begins":
                self._end(subject, label, statement.value) if label != relation else None
        if statement.effect == "ends" or (statement.effect == "past" and not statement.relation):
            for label in dict.fromkeys((relation, *self._same_labels(family.name))):
                self._end(subject, label, statement.value)
            return
        if not statement.value:
            return
        if family.opposite:
            self._end(subject, family.opposite, statement.value)
        of_one = self.said.setdefault((subject.casefold(), relation), {})
        of_one[statement.value.casefold()] = Triplet(subject, relation, statement.value)
        self._add_type(statement, family.answer)

    def _add_type(self, statement: Statement, answer: str) -> None:
        self.types.setdefault(statement.subject.casefold(), "person" if answer == "person" else "")
        key = statement.value.casefold()
        self.types[key] = _TYPES.get(answer, "") or self.types.get(key, "")

    def _end(self, subject: str, relation: str, value: str) -> None:
        of_one = self.said.setdefault((subject.casefold(), relation), {})
        of_one[value.casefold()] = EndedRelation(subject, relation, value or None)

    def _same_labels(self, family: str) -> tuple[str, ...]:
        """Return the other labels under which rules keep relations of a family."""
        return _LABELS.get(family, ())

    def names(self) -> Iterator[Entity]:
        """Yield the distinct named entities, quoted ones first."""
        text, seen = self._text, set(self._text.titles)
        yield from text.titles.values()
        starts, is_long = set(text.starts), len(text.words) > 2
        for start, stop in text.name_spans():
            name = text.join(start, stop)
            is_lone = start in starts and stop == start + 1 and is_long and text.low(stop) != "'s"
            if name.casefold() not in seen and (not is_lone or self._is_subject(name.casefold())):
                seen.add(name.casefold())
                yield Entity(name)

    def _is_subject(self, folded: str) -> bool:
        """Return True if the text states a relation of a name."""
        self.read()
        return folded in self._subjects


_LABELS = {"partner": ("boyfriend", "girlfriend"), "engaged_to": ("fiancé", "fiancée")}
"""Labels that say more than their family, which end with it."""
