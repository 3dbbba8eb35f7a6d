"""Compile a question, in plain English: the entity it starts at, the relations to follow, and the answer it wants.

"Where does my sister's husband work?" starts at the speaker and follows sister, then husband, then work. The words of
the last step are the verb, or the noun after "which". A text that is not understood keeps its chain of possessives.

The text is read from left to right, each token a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import islice, product
from typing import Literal

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Entity
from mem0_core.language._question_chains import find_chain
from mem0_core.language._question_subjects import NounPhrase, Step, SubjectReader, is_relative, match_verb
from mem0_core.language._question_tokens import Anchor, PreparedText, Tense, Token, correct_slips, prepare, read_tokens
from mem0_core.language._question_words import BE, LISTS, base_of_word, is_known, templates
from mem0_core.language._word_forms import is_plural
from mem0_core.language.attributes import asks_amount, find_attribute
from mem0_core.language.families import VerbPhrase, families_of_noun, find_verbs, lemmas_of, load_families
from mem0_core.language.temporal import TimeSpan

__all__ = ["Anchor", "Asks", "Question", "Tense", "compile_question", "expand_kinship"]

Asks = Literal["value", "when", "whether", "count", "reason", "other"]
Change = Literal["begins", "ends", ""]

_MAX_TEXT_CHARS = 4_000
_MAX_KIN_READINGS = 6


@dataclass(frozen=True, slots=True)
class Question:
    """Query compiled to a path through the graph and the kind of answer that it wants.

    Attributes:
        start: name of the entity where the path starts; None for the speaker.
        steps: terms of the relations to follow from there, in lower case, nearest first, the wanted one last.
        path: for each step the names of the families that it may mean, best first; empty for a step that no family
            knows. Without any step, or if only a chain of possessives is understood, `path` is empty.
        over: indexes of the steps whose relation has ended ("my ex-husband").
        asks_identity: True for questions of identity, such as "who is Anna".
        asks_state: True for a question word with a form of "be", as in "where was Tunde in May".
        asks: the kind of answer: ``when`` for a date, ``whether`` for yes or no, ``value`` for most questions.
        attribute: the property that is wanted, such as ``color`` in "what color is my car"; see `find_attribute`.
        value: the value that the question names ("sardines" in "Do I like sardines?"), or the noun that limits the
            answer ("pizza" in "Which pizza do I like?").
        is_list: True if several values are wanted.
        tense: ``now`` also for "these days" and "still", ``past`` also for "used to" and "my ex-husband".
        is_negative: True if the wanted relation is denied and no family says its opposite.
        spans: the times that the question names.
        anchor: the event to which the time is relative: ``("before", "Oslo")``; the event is empty in "before?".
        event: the change that is asked about: "when did I stop running" asks when a relation ends.
        asks_assistant: True if the question asks for words of the assistant ("What did you tell me about stains?").
        confidence: in [0, 1]; 0 if the question is not understood.
    """

    start: str | None
    steps: tuple[str, ...] = ()
    path: tuple[tuple[str, ...], ...] = ()
    over: frozenset[int] = frozenset()
    asks_identity: bool = False
    asks_state: bool = False
    asks: Asks = "other"
    attribute: str = ""
    value: str = ""
    is_list: bool = False
    tense: Tense = "any"
    is_negative: bool = False
    spans: tuple[TimeSpan, ...] = ()
    anchor: Anchor | None = None
    event: Change = ""
    asks_assistant: bool = False
    confidence: float = 0.0


def reaches_back(question: Question) -> bool:
    """Return True if a question is about the past, or about a change."""
    is_dated = bool(question.spans or question.anchor or question.event)
    return is_dated or question.asks == "when" or question.tense == "past"


def compile_question(
    text: str,
    *,
    spans: Callable[[], tuple[TimeSpan, ...]] = tuple,
    entities: Callable[[], Sequence[Entity]] | None = None,
) -> Question:
    """Compile a question; one that is not understood has no path.

    Args:
        spans: returns the times that `text` names. Called only if it may name one.
        entities: returns the entities of `text`, for a caller that has them. Called only if the text is not understood
            and has no quoted or capitalized name.
    """
    head = text[:_MAX_TEXT_CHARS]
    tokens = read_tokens(head)
    prepared = prepare(tokens, head)
    reading = _ClauseReader(prepared).read()
    if reading is None or not reading.is_known:
        corrected = correct_slips(tokens)
        again = prepare(corrected, head) if corrected != tokens else None
        other = None if again is None else _ClauseReader(again).read()
        if again is not None and other is not None and (reading is None or other.is_known):
            reading, prepared = other, again
    about = spans() if prepared.has_time or prepared.anchor is not None or not prepared.tokens else ()
    if reading is None or (reading.subject is None and not reading.asks_assistant):
        chain, lows = find_chain(head, entities), [token.low for token in prepared.tokens]
        return Question(
            chain.start,
            chain.steps,
            asks_identity=_asks_identity(prepared.tokens),
            asks_state=_asks_state(prepared.tokens),
            asks="other",
            attribute="amount" if asks_amount(lows) else find_attribute(lows),
            tense=prepared.tense,
            spans=about,
            anchor=prepared.anchor,
        )
    return _to_question(reading, prepared, about)


def expand_kinship(question: Question) -> Iterator[Question]:
    """Yield a question with relatives as chains: a niece is a sibling's daughter, a sister-in-law in two ways."""
    if question.over:
        return
    choices = [
        [chain for name in families for chain in _chains_of(name, term)] or [()]
        for term, families in zip(question.steps, question.path, strict=True)
    ]
    for chains in islice(product(*choices), _MAX_KIN_READINGS):
        if any(chains):
            steps = [part for chain, term in zip(chains, question.steps, strict=True) for part in chain or (term,)]
            path = [
                part
                for chain, families in zip(chains, question.path, strict=True)
                for part in (((name,) for name in chain) if chain else (families,))
            ]
            yield replace(question, steps=tuple(steps), path=tuple(path))


def _chains_of(family: str, term: str) -> Iterator[tuple[str, ...]]:
    """Yield the chains of families that lead to the same person as a term."""
    noun = term.split()[-1]
    for wanted, chain in load_families()[family].chains:
        if not wanted or noun in (wanted, f"{wanted}s"):
            yield chain


def _asks_identity(tokens: Sequence[Token]) -> bool:
    return _asks_state(tokens) and tokens[0].low in ("who", "what")


def _asks_state(tokens: Sequence[Token]) -> bool:
    return len(tokens) > 1 and tokens[0].low in LISTS["wh"] and tokens[1].low in BE


@dataclass(slots=True)
class _Reading:
    """A question that is understood in part: its subject and what is asked of it."""

    subject: NounPhrase | None = None
    wanted: Step | None = None
    asks: Asks = "value"
    value: str = ""
    is_list: bool = False
    event: Change = ""
    asks_identity: bool = False
    asks_assistant: bool = False
    is_negative: bool = False
    is_past: bool = False
    is_vague: bool = False

    @property
    def is_known(self) -> bool:
        """True if each step is of a known family."""
        steps = [] if self.subject is None else self.subject.steps
        return all(step.families for step in steps)


def _to_question(reading: _Reading, prepared: PreparedText, spans: tuple[TimeSpan, ...]) -> Question:
    if reading.asks_assistant or reading.subject is None:
        return Question(None, asks="other", asks_assistant=True, spans=spans, confidence=0.9)
    steps = [*reading.subject.steps, *([reading.wanted] if reading.wanted is not None else [])]
    if steps and steps[-1].families == ("works_as",):
        steps[-1] = replace(steps[-1], families=("works_as", "works_at"))  # the employer says something of the job
    families, is_negative = _deny(steps, reading)
    over = frozenset(index for index, step in enumerate(steps) if step.is_over)
    is_past = bool(over) or reading.is_past
    tense = prepared.tense
    if steps and steps[-1].is_lasting and tense == "past":
        tense = "any"
    is_favorite = bool(steps) and steps[-1].families == ("favorite",)  # a favorite color is a value
    return Question(
        start=reading.subject.start,
        steps=tuple(step.term for step in steps),
        path=tuple(families),
        over=over,
        asks_identity=reading.asks_identity,
        asks=reading.asks,
        attribute="" if is_favorite else find_attribute([token.low for token in prepared.tokens]),
        value=reading.value,
        is_list=reading.is_list,
        tense="past" if is_past and tense in ("any", "now") else tense,
        is_negative=is_negative,
        spans=spans,
        anchor=prepared.anchor,
        event=reading.event,
        confidence=_compute_confidence(reading, families),
    )


def _compute_confidence(reading: _Reading, families: Sequence[tuple[str, ...]]) -> float:
    if reading.is_vague or not families:
        return 0.3
    return 0.9 if all(families) else 0.5


def _deny(steps: Sequence[Step], reading: _Reading) -> tuple[list[tuple[str, ...]], bool]:
    """Return the families of each step, and True if the last is denied; "not like" means ``dislikes``."""
    families = [step.families for step in steps]
    if not reading.is_negative or not families:
        return families, reading.is_negative
    opposites = tuple(load_families()[name].opposite for name in families[-1] if load_families()[name].opposite)
    if not opposites:
        return families, True
    return [*families[:-1], opposites], False


# --- clauses ---------------------------------------------------------------------------------------------------------

_EVENTS = """
stop | ends | hobby
quit | ends | works_at hobby
give up | ends | hobby
leave | ends | works_at lives_in
lose | ends | works_at owns
retire | ends | works_as
graduate | ends | studies_at
sell | ends | owns drives
divorce | ends | married_to
get divorced | ends | married_to
separate | ends | married_to partner
split up | ends | partner married_to
break up | ends | partner
finish | ends | studies_at
die | ends |
start at | begins | works_at
begin at | begins | works_at
start with | begins | works_at
start | begins | hobby
begin | begins | hobby
become | begins | works_as
take up | begins | hobby
join | begins | works_at member_of
move in with | begins | lives_with
move | begins | lives_in
relocate | begins | lives_in
get married | begins | married_to
marry | begins | married_to
get engaged | begins | engaged_to
adopt | begins | has_pet
buy | begins | owns drives
get | begins | has_pet owns drives
"""
_EventPhrase = tuple[tuple[str, ...], Change, tuple[str, ...]]


def _read_events() -> dict[str, list[_EventPhrase]]:
    found: dict[str, list[_EventPhrase]] = {}
    for line in _EVENTS.strip().splitlines():
        words, change, families = (part.strip() for part in line.split("|"))
        first, *rest = words.split()
        event: Change = "ends" if change == "ends" else "begins"
        found.setdefault(first, []).append((tuple(rest), event, tuple(families.split())))
    return {first: sorted(some, key=lambda one: -len(one[0])) for first, some in found.items()}


_EVENT_PHRASES = _read_events()


@dataclass(slots=True)
class _Opening:
    """Start of a question: its question word, the noun after "which", and the position of the clause."""

    word: str = ""
    noun: list[str] = field(default_factory=list)
    index: int = 0
    is_list: bool = False

    @property
    def head(self) -> str:
        return self.noun[-1] if self.noun else ""


_NEW_JOB = re.compile(r"^(?:i|he|she|they) (?:retired|became|started at|joined|quit|got the job)\b")
"""Start of an event that ended a job, as in "what did he do before he retired"."""


class _ClauseReader:
    """Reads the one clause of a prepared question."""

    def __init__(self, prepared: PreparedText) -> None:
        tokens = prepared.tokens
        self.is_negative = any(token.low in ("not", "never") for token in tokens)
        self.tokens = [token for token in tokens if token.low not in ("not", "never")] if self.is_negative else tokens
        self.subjects = SubjectReader(self.tokens)
        self.lows = self.subjects.lows
        self.is_change = False
        self.is_asked = prepared.is_asked
        self.has_anchor = prepared.anchor is not None
        self.is_before_job = prepared.anchor is not None and bool(_NEW_JOB.search(prepared.anchor[1]))

    def read(self) -> _Reading | None:
        """Return the question; None if it is not understood."""
        if not self.tokens:
            return None
        if self._asks_assistant():
            return _Reading(asks_assistant=True)
        opening = self._read_opening()
        reading = self._read_clause(opening)
        if reading is None:
            return None
        reading.is_negative = self.is_negative
        self._read_answer(opening, reading)
        return reading

    def _asks_assistant(self) -> bool:
        """Return True for "what did you suggest", "your tip", "the cream recommended", "was hast du mir empfohlen"."""
        lows = self.lows
        words = frozenset(lows)
        if words & LISTS["assistant_past"] or any(
            words & LISTS[f"{language}_you"] and words & LISTS[f"{language}_advice"]
            for language in ("german", "spanish", "french")
        ):
            return True
        if lows[:2] == ["what", "to"] and LISTS["assistant_verbs"].intersection(lows[2:3]):
            return True
        for index, low in enumerate(lows[:-1]):
            follows = lows[index + 1]
            if f"{low}_{follows}" in LISTS["assistant_pairs"] and not self._is_other(index + 2):
                return True
            if low in LISTS["assistant_participles"] and not self._is_subject(index - 1) and "by" not in lows:
                return True
            is_past = index and (lows[index - 1] in LISTS["past"] or follows not in LISTS["assistant_verbs"])
            if low == "you" and is_past and LISTS["assistant_verbs"].intersection(lemmas_of(follows)):
                return True  # "did you say", "you said", but not "can you say"
            if low in LISTS["assistant_owners"] and follows in LISTS["assistant_nouns"]:
                return True
        return False

    def _is_other(self, index: int) -> bool:
        """Return True if another person is named there, who may have said it: "¿Qué me dijo el médico?"."""
        is_inside = index < len(self.lows)
        return is_inside and (self.lows[index] in LISTS["other_leads"] or self.tokens[index].text[:1].isupper())

    def _is_subject(self, index: int) -> bool:
        """Return True for a pronoun or a name, which may have said what follows."""
        return index >= 0 and (self.lows[index] in LISTS["subjects"] or self.tokens[index].text[:1].isupper())

    # --- the opening -------------------------------------------------------------------------------------------------

    def _read_opening(self) -> _Opening:
        lows = self.lows
        if lows[:2] == ["since", "when"] or lows[:2] == ["how", "long"]:
            return _Opening("since", index=2)
        if lows[:2] == ["how", "old"]:
            return _Opening("age", index=2)
        if lows[:2] in (["how", "many"], ["how", "much"]):
            end = self._noun_end(2)
            return _Opening("count", lows[2:end], end)
        if lows[0] in ("what", "which", "whose"):
            end = self._noun_end(1)
            noun = [low for low in lows[1:end] if low not in {"kind", "kinds", "type", "types", "sort", "sorts", "of"}]
            if noun and noun[-1] in LISTS["calendar"] and LISTS["adjectives"].issuperset(noun[:-1]):
                return _Opening("when", index=end)
            if noun and noun[-1] in {"thing", "things", "stuff"} and len(noun) == 1:
                return _Opening("what", index=end, is_list=noun != ["thing"])
            return _Opening("which" if noun else lows[0], noun, end)
        if lows[0] in LISTS["wh"]:
            return _Opening("who" if lows[0] == "whom" else lows[0], index=1)
        if lows[0] in LISTS["aux"] and len(lows) > 2:
            return _Opening("whether", index=0)
        return _Opening("", index=1 if lows[0] == "all" and len(lows) > 1 else 0)

    def _noun_end(self, index: int) -> int:
        """Return the end of the noun after "which"."""
        end = index
        while end < min(len(self.lows), index + 6):
            low, token = self.lows[end], self.tokens[end]
            if token.kind != "word" or low in _CLAUSE_OPENERS or (token.text[0].isupper() and end > index):
                break
            if end > index and (self._is_turned_verb(end) or self._is_verb_after_noun(end)):
                break
            if end > index and families_of_noun(self.lows[end - 1]) and self._begins_subject(end):
                break
            end += 1
        return end

    def _is_turned_verb(self, index: int) -> bool:
        return match_verb(self.lows, index, is_turned=True) is not None

    def _is_verb_after_noun(self, index: int) -> bool:
        """Return True for "went" in "which brother went to Oslo"."""
        low = self.lows[index]
        return bool(families_of_noun(self.lows[index - 1])) and bool(lemmas_of(low)) and not families_of_noun(low)

    def _begins_subject(self, index: int) -> bool:
        """Return True if a lowercase name and a verb follow: "which team jordan plays for"."""
        low = self.lows[index]
        follows = self.lows[index + 1 : index + 2]
        return not families_of_noun(low) and follows[:1] != ["has"] and find_any_verb(follows)

    # --- the clause --------------------------------------------------------------------------------------------------

    def _read_clause(self, opening: _Opening) -> _Reading | None:
        index, lows = opening.index, self.lows
        if opening.word in ("which", "what") and lows[1:2] == ["of"]:
            return self._read_choice()
        if index >= len(lows) or lows[index] in LISTS["supposing"]:
            return None
        if opening.word == "how":
            return self._read_manner(opening, index)
        is_having = opening.word == "who" and lows[index] in _HAVING and lows[index + 1 : index + 2] in (["the"], ["a"])
        if lows[index] in LISTS["aux"] and opening.word and not is_having:
            return self._read_inverted(opening, index)
        turned = match_verb(lows, index, is_turned=True) if opening.word in ("who", "what", "which") else None
        if turned is not None:
            return self._read_turned(*turned)
        if opening.word == "who" or (opening.word == "which" and is_relative(opening.head)):
            chosen = self._read_subject_question(opening, index)
            if chosen is not None:
                return chosen
        subject = self.subjects.read(index, is_subject=bool(opening.word))
        if subject is None and not opening.word:
            subject = self._read_ownerless(index)
        if subject is None:
            return None
        if not opening.word:
            return self._read_noun_phrase(subject)
        return self._read_predicate(opening, subject, has_be=False)

    def _read_manner(self, opening: _Opening, index: int) -> _Reading | None:
        """Read "how does my brother earn his living", which asks for a value."""
        if self.lows[index] not in LISTS["aux"]:
            return None
        subject = self.subjects.read(index + 1, is_subject=True)
        after = 0 if subject is None else self._skip_leads(subject.end)
        if subject is None or after >= len(self.lows):
            return None
        if self.lows[index] in BE and self.lows[after:] == ["called"]:
            opening.word = "what"
            return self._read_copula(opening, subject)
        template = self._match_template(opening, subject, after)
        if template is None:
            return None
        opening.word = "what"
        return _Reading(subject, template)

    def _read_ownerless(self, index: int) -> NounPhrase | None:
        """Read a noun without its owner, the speaker: "current job?", "favorite food", "name?"."""
        is_marked = self.is_asked or not LISTS["bare_leads"].isdisjoint(self.lows[index : index + 1])
        first = self.lows[index : index + 1]
        if not is_marked or not (LISTS["adjectives"].intersection(first) or any(map(families_of_noun, first))):
            return None
        phrase = self.subjects.read_possessed(NounPhrase(None, index), index)
        is_known_noun = phrase.start is None and phrase.steps and all(step.families for step in phrase.steps)
        return phrase if is_known_noun else None

    def _read_choice(self) -> _Reading | None:
        """Read "which of my friends is a doctor"."""
        subject = self.subjects.read(2)
        if subject is None or subject.is_plain or subject.end >= len(self.lows):
            return None
        return _Reading(subject, value=self._value_from(subject.end + 1))

    def _read_inverted(self, opening: _Opening, index: int) -> _Reading | None:
        """Read an auxiliary, the subject and the predicate: "does my sister work"."""
        lows = self.lows
        has_be = lows[index] in BE
        if has_be and opening.word == "who":
            turned = match_verb(lows, index + 1, has_be=True)
            if turned is not None and not families_of_noun(lows[index + 1]):
                inner = self.subjects.read(turned[1], is_subject=True)
                if inner is not None and inner.end == len(lows) and turned[0][0].family in _SYMMETRIC:
                    return _Reading(inner, _to_step(turned[0]))
        subject = self.subjects.read(index + 1, is_subject=True)
        if subject is None and has_be and opening.word == "where":
            subject = self._read_ownerless(index + 1)
        if subject is None:
            return None
        return self._read_predicate(opening, subject, has_be=has_be)

    def _read_subject_question(self, opening: _Opening, index: int) -> _Reading | None:
        """Read "who has the farmhouse" and "which brother went to Oslo", where the subject of the verb is wanted."""
        if self.lows[index] in LISTS["self"] | LISTS["owners"] or not lemmas_of(self.lows[index]):
            return None
        if opening.word == "which":
            step = Step(" ".join(opening.noun), families_of_noun(opening.head), opening.head)
            return _Reading(NounPhrase(None, index), step, value=self._value_from(index + 1))
        verb = "own" if self.lows[index] in {"has", "have", "had"} else self.lows[index]
        matched = match_verb([verb, *self.lows[index + 1 :]], 0)
        if matched is None:
            return None
        inverses = tuple(dict.fromkeys(load_families()[verb.family].inverse for verb in matched[0]))
        end = index + matched[1]
        if not all(inverses) or end >= len(self.lows):
            return None
        subject = self.subjects.read(end, is_subject=True)
        if subject is None or subject.end < len(self.lows):
            subject = NounPhrase(self._value_from(end), len(self.lows))
        return _Reading(subject, Step(inverses[0], inverses), is_vague=not self.tokens[end].text[0].isupper())

    def _read_turned(self, verbs: Sequence[VerbPhrase], end: int) -> _Reading | None:
        """Read "which bank employs me": the value is the subject of the verb."""
        subject = self.subjects.read(end, is_subject=True)
        rest = [] if subject is None else self.lows[subject.end :]
        if subject is None or len(rest) > _MAX_TURNED_WORDS or (rest and rest[0] not in _TURNED_ENDS):
            return None
        if subject.steps and subject.steps[-1].noun in LISTS["pay"]:
            subject.steps.pop()  # "who pays my wages"
        if subject.steps and not any(load_families()[name].answer == "person" for name in subject.steps[-1].families):
            return None  # "who pays my bills"
        return _Reading(subject, _to_step(verbs), value=self._value_from(subject.end))

    def _read_noun_phrase(self, subject: NounPhrase) -> _Reading | None:
        """Read a noun phrase without a question: "my sister's employer", "Luca's mother's job now"."""
        if subject.is_plain or subject.end < len(self.lows):
            return None
        is_list = self.lows[0] in LISTS["every"] or is_plural(subject.steps[-1].noun)
        last = subject.steps[-1]
        value = last.noun if last.families == ("favorite",) and last.noun not in families_of_noun("favorite") else ""
        return _Reading(subject, is_list=is_list, value=value)

    # --- the predicate -----------------------------------------------------------------------------------------------

    def _read_predicate(self, opening: _Opening, subject: NounPhrase, *, has_be: bool) -> _Reading | None:
        index, lows = subject.end, self.lows
        index = self._skip_leads(index)
        has_be = has_be or bool(BE.intersection(lows[subject.end : index]))
        is_bare = index == subject.end and lows[index:] in ([], ["at"]) and opening.word in ("who", "what", "where")
        is_copula = has_be and (index >= len(lows) or lows[index] in _STATES or lows[index:] == ["for"])
        if is_bare or is_copula:
            return self._read_copula(opening, subject)
        presence = self._read_presence(opening, subject, index) if has_be else None
        if presence is not None:
            return presence
        template = self._match_template(opening, subject, index)
        if template is not None:
            return _Reading(subject, template)
        reading = self._read_event(opening, subject, index)
        if reading is not None:
            return reading
        light = self._read_light_verb(opening, subject, index)
        if light is not None:
            return light
        return self._read_verb(opening, subject, index, has_be=has_be)

    def _read_presence(self, opening: _Opening, subject: NounPhrase, index: int) -> _Reading | None:
        """Read "since when am I at Galp", "am I still in Oslo", where a name is where one works or lives."""
        rest = self.lows[index:]
        families = _PRESENCES.get(rest[0], ()) if opening.word in ("since", "whether") and len(rest) > 1 else ()
        if not families or len(rest) > _MAX_PLACE_WORDS or any(map(families_of_noun, rest)):
            return None
        if not (self.tokens[index + 1].text[0].isupper() or (opening.word == "since" and not is_known(rest[1]))):
            return None
        return _Reading(subject, Step(rest[0], families), value=self._value_from(index + 1))

    def _skip_leads(self, index: int) -> int:
        lows = self.lows
        while index < len(lows) and lows[index] in _LEADS and not (lows[index] in _HAVING and index + 1 >= len(lows)):
            if lows[index] in _HAVING and lows[index + 1] not in ("to", "been") and not lemmas_of(lows[index + 1]):
                break
            if lows[index] in {"used", "use"}:
                if lows[index + 1 : index + 2] != ["to"]:
                    break
                self.is_change = True
            index += 1
        return index

    def _read_copula(self, opening: _Opening, subject: NounPhrase) -> _Reading | None:
        """Read "who is my boss", "what is Anna's cat called", "which city is my home"."""
        if opening.word == "age":
            return _Reading(subject, Step("age", ("age",), "age"))
        if subject.is_plain and self.lows[-1] in ("name", "surname", "nickname", "called") and opening.word == "what":
            return _Reading(subject, Step("name", ("name",), "name"))
        if subject.is_plain:
            return _Reading(subject, asks_identity=True) if opening.word == "who" and subject.start else None
        if opening.word not in ("who", "what", "which", "when", "where"):
            return None if opening.word != "whether" else _Reading(subject)
        if opening.word == "where" and is_relative(subject.steps[-1].noun):
            return _Reading(subject, Step("home", ("lives_in",), "home"))
        last = subject.steps[-1]
        is_list = is_plural(last.noun)
        if last.families == ("favorite",):
            return _Reading(subject, value=last.noun, is_list=is_list)
        return _Reading(subject, asks_identity=opening.word in ("who", "what"), is_list=is_list)

    def _match_template(self, opening: _Opening, subject: NounPhrase, index: int) -> Step | None:
        """Return the step of a question that has a form of its own: "what does * do for a living"."""
        after = tuple(base_of_word(low) for low in self.lows[index:])
        before = tuple(base_of_word(low) for low in self.lows[: opening.index])
        first = self.lows[opening.index] if self.lows[opening.index] in LISTS["aux"] else "".join(self.lows[index:])
        is_job = self.is_before_job or (not self.has_anchor and first in ("do", "does"))
        if after == ("do",) and not is_job:
            return None  # "what did Tom do after lunch" asks for no job
        for one in templates():
            is_named = one.before[:1] == ("what",) and one.family in families_of_noun(opening.head)
            if one.after == after and ((is_named and after != ("do",)) or one.before[: len(before)] == before):
                return Step(" ".join(one.after) or " ".join(one.before[1:]), (one.family,))
        return None

    def _read_event(self, opening: _Opening, subject: NounPhrase, index: int) -> _Reading | None:
        """Read "did I stop surfing" and "did I leave Galp", of a question for a date or a reason."""
        if opening.word not in ("when", "why", "which"):
            return None
        for lemma in lemmas_of(self.lows[index]) if index < len(self.lows) else ():
            for rest, event, families in _EVENT_PHRASES.get(lemma, ()):
                end = index + 1 + len(rest)
                if tuple(self.lows[index + 1 : end]) != rest:
                    continue
                if opening.word == "which":
                    return self._read_change_of_noun(opening, subject, end, event)
                return self._read_event_value(subject, end, event, families, " ".join((lemma, *rest)))
        return None

    def _read_change_of_noun(
        self, opening: _Opening, subject: NounPhrase, index: int, event: Change
    ) -> _Reading | None:
        """Read "which sport have I given up"."""
        families = families_of_noun(opening.head)
        if index < len(self.lows) or not families:
            return None
        step = Step(" ".join(opening.noun), families, opening.head, is_over=event == "ends")
        return _Reading(subject, step, event=event, value=_modifiers(opening))

    def _read_event_value(
        self, subject: NounPhrase, index: int, event: Change, families: tuple[str, ...], term: str
    ) -> _Reading:
        gerund = (
            match_verb(self.lows, index) if self.lows[index : index + 1] and self.lows[index].endswith("ing") else None
        )
        verbs = [verb for verb in gerund[0] if verb.family not in ("owns", "runs")] if gerund is not None else []
        owned = self.subjects.read(index)
        if gerund is not None and verbs:
            step = _to_step(verbs)
            index = gerund[1]
        elif owned is not None and owned.steps and owned.end == len(self.lows):
            noun = owned.steps[-1]
            first = ("works_at",) if "works_as" in noun.families else noun.families
            families = tuple(dict.fromkeys((*first, *families)))
            return _Reading(subject, Step(noun.noun, families, noun.noun), event=event)
        else:
            noun_families = families_of_noun(self.lows[-1]) if index < len(self.lows) else ()
            step = Step(term, tuple(dict.fromkeys((*noun_families, *families))) if noun_families else families)
            if "works_at" in families and "job" in self.lows[index:]:
                step = Step(term, ("works_at",))
            if "studies_at" in families and index < len(self.lows) and "studies_at" not in noun_families:
                step = Step(term, ())
        wanted = step if step.families else None
        value = self._value_from(index)
        is_vague = len(step.families) > 1 and not value[:1].isupper()
        is_vague = is_vague or (step.families[:1] == ("hobby",) and len(value.split()) > _MAX_HOBBY_WORDS)
        return _Reading(subject, wanted, event=event, value=value, is_vague=is_vague)

    def _read_light_verb(self, opening: _Opening, subject: NounPhrase, index: int) -> _Reading | None:
        """Read "which pets do I have" and "do I have a dog", where a noun says what is wanted."""
        lows = self.lows
        rest = lows[index:]
        lemma = next((one for low in rest[:1] for one in lemmas_of(low) if one in LISTS["light"]), "")
        if not lemma:
            return None
        is_bare = rest[1:] in ([], ["to"], ["at"], ["in"], ["on"])
        families = families_of_noun(opening.head)
        verbs = {verb.family for verb in find_verbs(lemma) if len(verb.words) == 1}
        families = tuple(name for name in families if name in verbs) or families
        if lemma == "go" and "studies_at" in families:
            families = ("studies_at",)
        answer = _LIGHT_ANSWERS.get(lemma, "")
        if answer and all(load_families()[name].answer != answer for name in families):
            return None
        if opening.noun and families and (is_bare or not find_exact_verb(lows, index)):
            if not is_bare and not self._is_place(index + 1):
                return None
            return _Reading(subject, Step(" ".join(opening.noun), families, opening.head), value=_modifiers(opening))
        if opening.word == "what" and lemma == "have" and rest[1:2] in ([], ["in"], ["at"]):
            return _Reading(subject, Step(lemma, ("owns",)), value=self._value_from(index + 1))
        if opening.word == "where" and lemma == "go" and "studies_at" in families_of_noun(lows[-1]):
            return _Reading(subject, Step(f"go to {lows[-1]}", ("studies_at",)))
        if opening.word == "whether" and lemma in {"have", "get"} and rest[1:]:
            value = self._value_from(index + 1)
            nouns = families_of_noun(value.lower().split()[-1]) if value else ()
            return _Reading(subject, Step(lemma, (*nouns, "owns") if "owns" not in nouns else nouns), value=value)
        return None

    def _read_verb(
        self, opening: _Opening, subject: NounPhrase, index: int, *, has_be: bool, max_words: int = 9
    ) -> _Reading | None:
        matched = match_verb(
            self.lows,
            index,
            has_be=has_be,
            answers=_ANSWERS.get(opening.word),
            is_where=opening.word in ("where", "which"),
            is_negative=self.is_negative,
            max_words=max_words,
        )
        if matched is None and max_words == 1:
            return None
        if matched is None:
            return self._read_unknown_verb(opening, subject, index, has_be=has_be)
        verbs, end = matched
        if verbs[0].words[0] == "not":
            self.is_negative = False
        step = _to_step(verbs)
        if opening.word == "what" and len(step.families) > 1:
            step = replace(step, families=tuple(sorted(step.families, key=_is_located)))
        families = families_of_noun(opening.head)
        value = self._value_from(end)
        if opening.noun and verbs[0].family == "likes" and self.lows[end:] in (["best"], ["most"], ["the", "most"]):
            return _Reading(subject, Step("favorite", ("favorite",), opening.head), value=" ".join(opening.noun))
        if opening.word == "whether" and not value:
            value = " ".join(low for low in self.lows[index + 1 : end] if low not in LISTS["prepositions"])
        if opening.noun and families:
            is_bare = has_be and self.lows[index:] in (["in"], ["with"], ["at"]) and verbs[0].has_be
            step = replace(step, families=families if is_bare else _join_families(families, step.families))
            value = _modifiers(opening) if set(step.families) <= set(families) else " ".join(opening.noun)
        if not self._is_whole(opening, verbs, end, has_be=has_be):
            return None if max_words == 1 else self._read_verb(opening, subject, index, has_be=has_be, max_words=1)
        if self.lows[end:] == ["from"] and "lives_in" in step.families:
            step = replace(step, is_over=True)  # "where did I move from"
        if verbs[0].words[0] in {"marry", "wed", "adopt"} and not self.is_change:
            step = replace(step, is_lasting=True)
        is_vague = opening.word in ("when", "why") and bool(value)
        if opening.noun and not families:
            value = " ".join(low for low in opening.noun if low not in LISTS["generic"])
        return _Reading(subject, step, value=value, is_vague=is_vague)

    def _is_whole(self, opening: _Opening, verbs: Sequence[VerbPhrase], end: int, *, has_be: bool) -> bool:
        """Return True if a verb, with the noun in front and the words after it, asks for the value of its family."""
        verb = verbs[0]
        is_base = verb.words[0] in _ADJECTIVES and self.lows[end - len(verb.words)] == verb.words[0]
        if has_be and not verb.has_be and is_base:
            return False  # "be open" is no form of "open"
        is_named = bool(opening.noun) and not families_of_noun(opening.head)
        if is_named and (opening.word == "count" or any(one.family in _LOOSE_FAMILIES for one in verbs)):
            return False
        answers = {load_families()[one.family].answer for one in verbs}
        if is_named and answers == {"person"} and opening.head not in _PERSONS:
            return False  # "which bank am I with"
        rest = self.lows[end:]
        if opening.word in ("whether", "when", "why", "since") or not rest:
            return True
        if len(rest) == 1 and rest[0].endswith("ing") and verb.family in ("likes", "dislikes", "hobby"):
            return True  # "what do I hate eating"
        return rest in (["from"], ["at"], ["in"], ["to"], ["for"], ["as"]) or self._is_place(end)

    def _is_place(self, index: int) -> bool:
        """Return True if a short phrase such as "in Whitby" ends the question."""
        rest = self.lows[index:]
        return 1 < len(rest) <= _MAX_PLACE_WORDS and rest[0] in {"in", "at", "for", "as", "near"}

    def _read_unknown_verb(
        self, opening: _Opening, subject: NounPhrase, index: int, *, has_be: bool
    ) -> _Reading | None:
        """Read a predicate that no family knows, by the nouns around it."""
        rest = self.lows[index:]
        if not rest:
            return None
        families = families_of_noun(opening.head)
        if opening.word in ("which", "count") and families and len(rest) <= 1 + bool(lemmas_of(rest[0])):
            step = Step(" ".join(opening.noun), families, opening.head)
            return _Reading(subject, step, value=_modifiers(opening), is_vague=True)
        if has_be and opening.word in ("what", "who") and subject.steps and rest[0] in LISTS["prepositions"]:
            return _Reading(subject, value=self._value_from(index)) if len(rest) > 1 else None
        if opening.word == "where" and rest in (["leave"], ["leaving"]):
            return _Reading(subject, Step("live", ("lives_in",)))  # a common slip
        return self._read_state(opening, subject, index) if has_be else None

    def _read_state(self, opening: _Opening, subject: NounPhrase, index: int) -> _Reading | None:
        """Read what a form of "be" says of the subject: "is my father still alive", "is Anna my sister"."""
        if opening.word != "whether":
            return None
        other = self.subjects.read(index)
        if other is not None and other.steps and other.end == len(self.lows) and subject.start:
            return _Reading(other, value=subject.start)
        value = self._value_from(index)
        if self.lows[index : index + 1] and self.lows[index] in ("a", "an"):
            return _Reading(subject, Step(value.lower(), ("works_as",)), value=value)
        return _Reading(subject, value=value if subject.is_plain else "") if subject.steps else None

    def _value_from(self, index: int) -> str:
        """Return the text from a position on, without articles and prepositions before it."""
        tokens = self.tokens[index:]
        while tokens and tokens[0].low in _VALUE_LEADS:
            tokens = tokens[1:]
        words = [token.text.strip("\"“”«»'") for token in tokens if token.kind != "stop"]
        return " ".join(words).replace(" 's", "'s")

    # --- the answer --------------------------------------------------------------------------------------------------

    def _read_answer(self, opening: _Opening, reading: _Reading) -> None:
        """Note the kind of answer, and whether several values are wanted."""
        asks: dict[str, Asks] = {
            "when": "when",
            "since": "when",
            "whether": "whether",
            "why": "reason",
            "count": "count",
        }
        reading.asks = asks.get(opening.word, "value")
        if opening.word == "since" and not reading.event:
            reading.event = "begins"
        if opening.word == "how":
            reading.asks = "other"
        reading.is_past = reading.is_past or self.is_change
        if opening.is_list or (opening.noun and is_plural(opening.head)):
            reading.is_list = True


_LOOSE_FAMILIES = {"runs", "takes", "hobby", "member_of", "visited", "studies_at", "owns", "has_condition"}
"""Families with verbs that take any object, so that a noun which no family knows makes another meaning likely."""
_PERSONS = LISTS["generic"] | {"guy", "girl", "man", "woman", "boy", "lady", "bloke", "lad", "lass", "friend", "one"}
_ADJECTIVES = frozenset({"open", "own", "like", "found"})  # "where's Tom live" is said, but "is Tom open" has no verb
_STATES = frozenset({"called", "named", "located", "situated"})
_MAX_PLACE_WORDS = 4
_MAX_TURNED_WORDS = 2
_TURNED_ENDS = LISTS["prepositions"] | LISTS["adverbs"]
_MAX_HOBBY_WORDS = 3
_CLAUSE_OPENERS = LISTS["aux"] | LISTS["self"] | LISTS["owners"] | LISTS["clause_openers"]
_LEADS = LISTS["aux"] | LISTS["adverbs"] | frozenset({"used", "use", "to", "all"})
_HAVING = frozenset({"have", "has", "had", "do", "does", "did"})
_VALUE_LEADS = LISTS["articles"] | LISTS["prepositions"] | LISTS["owners"]
_LIGHT_ANSWERS = {"see": "person", "hold": "job", "attend": "organization", "follow": "thing"}
_PRESENCES = {"at": ("works_at", "studies_at"), "in": ("lives_in", "member_of")}
_ANSWERS = {"where": {"place", "organization"}, "who": {"person", "organization"}, "when": {"date"}}
_SYMMETRIC = frozenset(name for name, family in load_families().items() if family.inverse == name)


def _to_step(verbs: Sequence[VerbPhrase]) -> Step:
    return Step(" ".join(verbs[0].words), tuple(dict.fromkeys(verb.family for verb in verbs)))


def _is_located(family: str) -> bool:
    """Return True for a family that "where" asks for rather than "what"."""
    return load_families()[family].answer in ("place", "organization")


def _join_families(nouns: tuple[str, ...], verbs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the families of "which NOUN do I VERB", best first."""
    both = tuple(name for name in verbs if name in nouns)
    if both:
        return both
    narrower = tuple(name for name in nouns if load_families()[name].broader in verbs)
    if not narrower and verbs and all(load_families()[name].answer == "place" for name in (*nouns, *verbs)):
        return verbs  # "which city was I born in" asks for no home
    return narrower or (*verbs, *(name for name in nouns if name not in verbs))


def _modifiers(opening: _Opening) -> str:
    return " ".join(low for low in opening.noun[:-1] if low not in LISTS["generic"] | LISTS["adjectives"])


def find_any_verb(lows: Sequence[str]) -> bool:
    """Return True if the first of some words is a form of a verb that a family knows."""
    return bool(lows) and any(True for _ in find_verbs(lows[0]))


def find_exact_verb(lows: Sequence[str], index: int) -> bool:
    """Return True if a phrase of more than one word is matched: "go to university"."""
    matched = match_verb(lows, index)
    return matched is not None and matched[1] - index > 1
