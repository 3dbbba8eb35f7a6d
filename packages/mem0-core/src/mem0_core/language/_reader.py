"""Reader of statements: clauses of a text, matched with the patterns of a grammar.

A clause counts only if its subject is plain: the speaker, a name, a relative, or a pronoun for a person that the text
has just named. Questions, wishes, suppositions, commands, hearsay and quotations state nothing. Each token is the start
of a bounded number of attempts of bounded length, so the time taken is linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from mem0_core.domain.bounds import MAX_STATEMENTS
from mem0_core.domain.records import DateRange
from mem0_core.language._grammar import INDIRECT, Element, Grammar, Kin, Meaning, Pattern
from mem0_core.language._slots import Found, SlotReader, Value
from mem0_core.language._tokens import MAX_NAME_WORDS, TokenizedText
from mem0_core.language.families import load_families

_ARRANGED = frozenset({"lives_in", "works_at", "works_as", "studies_at"})
"""Families that change on a day agreed before."""
SPEAKER = ""
"""The subject of a statement about the speaker."""

Effect = Literal["holds", "begins", "ends", "past"]
"""``holds``: true when said; ``begins``: new, so it ends an earlier value; ``ends``: no longer true; ``past``: was true
once, and is over ("I used to live in Rome", "I lived in Rome until 2020")."""

MAX_AUXILIARIES = 8
MAX_CLAUSE_WORDS = 24  # words of a clause that may say when it held
MAX_ADJUNCT_WORDS = 9  # words after a value among which a place, an employer or the like may follow
_MAX_NOUN_PHRASE = 5
_MAX_PLAIN_WORDS = 1  # unknown words before the noun of a relative
_MAX_TIME_WORDS = 5
_MAX_REQUEST = 5  # words before the verb of a command
_MAX_COMMAND = 12  # words up to its colon
_MAX_LIST_WORDS = 30  # words before a relative in a list
_MAX_WISH_WORDS = 4  # of a clause, among which a wish stands
_MAX_GAPPED = 4  # clauses that leave out their verb, after one that has it
_NO_PROGRESS = frozenset({"likes", "dislikes", "prefers", "owns", "has_pet", "kin", "speaks", "name", "age", "diet"})
_OPEN = frozenset({"love", "hate", "adore", "prefer", "can", "loathe", "detest", "dislike"})
_SILENT = frozenset({"REST", "TIME", "DEPARTMENT", "FREQUENTLY"})  # slots that are passed over
_CONTRASTS = (
    [",", "not"],
    ["but", "not"],
    [",", "previously", "in"],
    [",", "previously"],
    [",", "formerly"],
    ["instead", "of"],
    ["and", "not"],
    [",", "no", "longer"],
    ["rather", "than"],
)
_FINDS = frozenset({"says", "said"})  # of a doctor: a finding, no hearsay
_MINE = frozenset({"my", "our"})
_MORTAL = frozenset({"has_pet", "married_to", "partner", "engaged_to"})  # families that a death ends
_INVERSE_EFFECTS: dict[str, Effect] = {"present": "holds", "over": "ends"}
_ORIGINS = frozenset({"at", "from", "across", "down", "next", "in", "on", "upstairs", "downstairs", "opposite"})
_SINGULAR = frozenset({"is", "isn't", "has", "hasn't", "does", "doesn't"})
_REFLEXIVES = frozenset({"myself", "himself", "herself", "ourselves", "themselves"})
_SHARED = frozenset({"lives_in"})  # families of which "Kate and I" says the same of both
_WHERE_AUXILIARIES = frozenset({"was", "were", "is", "are", "am", "'s", "both", "still", "now", "have", "has", "been"})
_GAP_LEADS = frozenset({",", "and", "while", "but", ";"})
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "prof", "professor"})
_CESSATION = frozenset({"anymore", "longer", "more"})
_BEFORE = frozenset({"before", "previously", "formerly", "beforehand"})
_CLAUSE_END = frozenset({"$"})  # element of a pattern that ends with its clause
_MAX_KNOWN = 16  # people that a departure may be from, the last ones mentioned
_MIN_REGULAR = 4  # letters of a regular verb in the past
_FORMER_BY_AGE = frozenset({"boss", "landlord", "colleague", "lives_with", "teacher", "employee"})  # of "my old boss"
_CLOSE_FAMILIES = frozenset({"married_to", "engaged_to", "partner", "child", "son", "daughter"})
_BARE_SLOTS = frozenset({"JOB", "DIET", "AILING"})  # of "to be", if it is left out
_PLAIN_ROLES = frozenset({"not", "now", "adverb", "partly"})
# Form of a verb -> the auxiliaries before it -> the tense of both.
_TENSES: dict[str, dict[str, str]] = {
    "base": {
        "": "present",
        "do": "present",
        "did": "past",
        "used": "used",
        "must": "past",
        "will": "future",
        "start": "start",
        "have start": "start",
    },
    "s": {"": "present"},
    "past": {"": "past"},
    "done": {"have": "perfect", "'s": "perfect"},
    "ing": {
        "be": "progress",
        "'s": "progress",
        "was": "past",
        "have been": "present",
        "'s been": "present",
        "been": "present",
        "start": "start",
        "have start": "start",
        "'s start": "start",
        "must start": "start",
        "stop": "stop",
        "have stop": "stop",
        "'s stop": "stop",
        "must stop": "stop",
        "must": "past",
        "will be": "future",
    },
    "be": {
        "be": "present",
        "'s": "present",
        "was": "past",
        "have been": "present",
        "'s been": "present",
        "used be": "used",
        "will be": "future",
        "must be": "past",
        "been": "present",
    },
    "bare": {"": "present"},
}


class Statement(NamedTuple):
    """A statement about one slot: a subject and a relation family.

    Attributes:
        subject: a name as written; `SPEAKER` for the speaker; ``my sister`` for a relative without a name.
        family: name of a `Family`.
        value: the value as written; empty if the text names none.
        days: the days from which it holds, ends or in which it held, if `when` and the day of the text tell them.
        is_certain: True if subject, value and effect are plainly stated, so that it can become a relation.
        relation: label of the relation, where it says more than the family (``boyfriend`` of ``partner``).
        when: the words that say when it holds; empty if there are none.
        is_planned: True for a home, job or school to come: "I'm moving to Oslo", "I'll join Galp".
    """

    subject: str
    family: str
    value: str
    effect: Effect
    days: DateRange | None = None
    is_certain: bool = True
    relation: str = ""
    when: str = ""
    is_planned: bool = False


class _Subject(NamedTuple):
    """Subject of a clause.

    Attributes:
        names: the people or things that the clause is about.
        others: those who share in it with the first ("Duarte and I").
        stop: index after it.
        person: ``first``, ``third``, ``plural`` or ``left out``.
        kin: family of the noun that named it ("my dog Rex"); empty for a name or a pronoun.
        owner: the person that the relative belongs to.
        is_left_out: True if the clause before has it.
    """

    names: tuple[str, ...]
    others: tuple[str, ...]
    stop: int
    person: str
    kin: str = ""
    owner: str = SPEAKER
    is_left_out: bool = False


class _Mention(NamedTuple):
    """A relative or a pet in the text, with or without a name.

    Attributes:
        names: its names.
        subject: its name as a subject without those, such as ``my sister``.
        noun: index of the noun.
        kin: the relation that the noun names.
        is_clause: True if a clause gives the names ("my sister is called Anna").
    """

    names: tuple[str, ...]
    subject: str
    stop: int
    noun: int
    owner: str
    kin: Kin
    is_clause: bool = False

    @property
    def family(self) -> str:
        return self.kin.family

    @property
    def label(self) -> str:
        return self.kin.label


class _Clause(NamedTuple):
    """A pattern that a text matches, with its tense and its values."""

    start: int
    stop: int
    pattern: Pattern
    tense: str
    is_negative: bool
    is_new: bool
    values: tuple[tuple[Value, ...], ...]


class StatementReader:
    """One pass over a text.

    Attributes:
        statements: in the order of the text.
    """

    def __init__(self, text: TokenizedText, grammar: Grammar) -> None:
        self.statements: list[Statement] = []
        self._text, self._grammar = text, grammar
        self._clauses = grammar.clauses
        self._words, self._lows = grammar.words, text.lows
        self._slots = SlotReader(text, grammar, self._mentioned_name)
        self._people: list[tuple[str, str]] = []  # name and gender, the last one mentioned last
        self._group: tuple[str, ...] = ()
        self._subject: _Subject | None = None
        self._last_subject: _Subject | None = None
        self._last_tense = ""
        self._unnamed: tuple[int, ...] = ()  # indexes of statements with a value that has no name yet
        self._unnamed_gender = ""
        self._starts = frozenset(text.starts)
        self._housemates: dict[str, str] = {}  # person -> their new housemate
        self._mentioned: dict[int, _Mention | None] = {}
        self._is_fact = self._has_no_speaker()
        distinct = set(text.lows)  # readers that need one of these words are left out without it
        self._has_it, self._has_colon, self._has_possessive = "it" in distinct, ":" in distinct, "'s" in distinct
        self._has_favorite = not self._words["favorites"].isdisjoint(distinct)
        self._has_opener = False
        self._carried: _Subject | None = None  # subject of the sentence before
        self._labels_stop = -1  # index after the last label of a relative

    def read(self) -> list[Statement]:
        """Return the statements of the text; no further ones once there are `MAX_STATEMENTS`.

        A text after ``Translate this:`` is to be worked on, and states nothing.
        """
        for start, end in self._text.sentences():
            if len(self.statements) >= MAX_STATEMENTS or self._is_command(start):
                break
            self._introduce(start, end)
            if end > start:
                self._sentence(start, self._question_start(start, end))
        del self._slots  # it refers to this reader: a cycle, which only the garbage collector would free
        return self.statements

    def _introduce(self, start: int, end: int) -> None:
        """Read ``Remember Pete?``, after which "he" is Pete."""
        if self._text.low(start) in {"remember", "know"} and self._text.words[end : end + 1] == ["?"]:
            stop = self._text.name_end(start + 1, end)
            if stop == end > start + 1:
                self._add_person(self._text.join(start + 1, end))

    def _has_no_speaker(self) -> bool:
        """Return True for a text as models write facts: about the user, without a subject."""
        return {"i", "me", "my", "we", "our", "us"}.isdisjoint(self._lows[:60])

    def _is_command(self, start: int) -> bool:
        """Return True if a sentence asks for work on a text that follows a colon."""
        if not self._has_colon:
            return False
        low, requests = self._text.low, self._words["requests"]
        after = range(start, start + _MAX_REQUEST)
        first = next((i for i in after if low(i) != "," and low(i) not in requests), start)
        if low(first) in self._words["notes"] and low(first + 1) == ":":  # "Edit: I live in Bari, not in Rome"
            return False
        return low(first) in self._words["commands"] and ":" in self._lows[first : first + _MAX_COMMAND]

    def _question_start(self, start: int, end: int) -> int:
        """Return the end of the statements of a sentence: of a question, only the part before ", how ..."."""
        if self._text.words[end : end + 1] != ["?"]:
            return end
        asks = self._words["asks"]
        return next((at for at in range(start, end - 1) if self._lows[at] == "," and self._lows[at + 1] in asks), start)

    # Sentences

    def _sentence(self, start: int, end: int) -> None:
        after_name = self._text.name_end(start, min(end, start + 3))
        is_kin = self._lows[start] in self._grammar.kin if start < end else False
        if after_name > start and self._text.low(after_name) == ":" and after_name < end and not is_kin:
            return  # "Anna: I live in Paris" is Anna's
        said = self._lows[max(0, start - MAX_CLAUSE_WORDS) : start]
        has_child = not {"had", "having", "expecting", "twins"}.isdisjoint(said)
        self._last_subject, self._last_tense = self._subject if has_child else None, ""
        self._carried = self._subject or self._carried
        self._subject, self._has_opener = None, False
        index, can_begin, is_first = start, True, True
        notable, is_name = self._grammar.notable, self._text.is_name
        while index < end and len(self.statements) < MAX_STATEMENTS:
            low = self._lows[index]
            if not can_begin and low not in notable and not is_name(index):
                is_first = is_first and not low[:1].isalnum()
                index += 1
                continue
            if low == "once" and self._begins_condition(index):
                return
            if low in self._words["unreal"] and self._text.low(index + 1) not in {"of", "about"}:
                if low not in _FINDS or self._text.low(index - 1) not in self._words["medics"]:
                    return
                index, can_begin = index + 1, True
                continue
            if low == "it" and self._text.low(index + 1) in {"is", "'s"} and self._text.low(index + 2) in _MINE:
                index, can_begin = index + 2, True  # "it's my last day at Galp"
                continue
            if low == "where" and not is_first:
                self._where_clause(index, end)
            if low == "," and self._text.low(index + 1) in {"a", "an"}:
                self._job_aside(index, end)
            stop = index
            if low == "who":
                stop = self._relative_clause(index, end)
            elif can_begin or (self._has_opener and low in self._words["first"] | self._words["third"]):
                stop = self._clause(index, end, is_first)
            if stop == index and low in self._clauses.speaker_heads:
                stop = self._about_speaker(index, end)
            if stop == index and (mention := self._mention(index, end)) is not None:
                stop = mention.stop
            if stop > index:
                self._mention_within(index + 1, stop, end)
                index, can_begin, is_first = stop, False, False
                continue
            is_lead = low in self._words["leads"]
            is_first = is_first and (is_lead or not low[:1].isalnum())
            can_begin = is_lead or low in self._words["links"] or low in self._words["clause_starts"]
            index += 1

    def _begins_condition(self, at: int) -> bool:
        """Return True for a condition that is still to come: ``once I get a car``."""
        if self._text.low(at + 1) not in self._words["first"] | self._words["third"]:
            return False
        return any(form in {"base", "s"} for _, form in self._clauses.heads.get(self._text.low(at + 2), ()))

    def _mention_within(self, at: int, stop: int, end: int) -> None:
        """Read the named relatives of a clause that was read as a whole: "moved in with my brother Tariq in Dubai"."""
        for index in range(at, stop):
            if self._lows[index] in self._words["own"]:
                self._mention(index, end)

    def _clause(self, at: int, end: int, is_first: bool) -> int:
        """Read a clause; return the index after it, or `at`."""
        low = self._lows[at]
        if not low[:1].isalpha() and low != "'s":
            return at
        for reader in self._clause_readers(low, is_first):
            if (stop := reader(at, end)) > at:
                return stop
        if low in self._words["openers"]:
            self._has_opener = True
        left_out = self._left_out(at, end, is_first)
        if left_out is not None and (self._is_verb(at) or self._is_bare_head(at)):
            stop = self._predicate(left_out, at, at, end)
            if stop > at:
                return stop
        mention = self._mention(at, end)
        if mention is not None and mention.is_clause:
            self._subject = _Subject(mention.names, (), mention.stop, "third")
            return mention.stop
        subject = self._read_subject(at, end)
        if subject is None:
            if is_first and self._is_unknown_verb(at):  # "took the plunge and adopted a dog"
                self._subject, self._last_tense = _Subject((SPEAKER,), (), at, "left out"), "past"
                return at
            if low in self._words["determiners"] or self._text.is_name(at) or low in self._words["pronouns"]:
                self._subject = None
            return at
        self._subject, self._last_tense = subject, ""
        inner = self._apposition(subject, end)
        stop = self._predicate(subject, at, inner, end)
        if stop == inner and (after := self._after_origin(subject, end)) > inner:
            stop = self._predicate(subject, at, after, end)
            inner = after if stop > after else inner
        if stop > inner:
            return stop
        return max(inner, subject.stop)

    def _clause_readers(self, low: str, is_first: bool) -> Iterator[Callable[[int, int], int]]:
        """Yield the readers that may read a clause that begins with a word, in their order."""
        if self._unnamed:
            yield self._name_for_unnamed
        if self._has_it:
            yield self._choice
            yield self._successor
        if self._is_fact:
            yield self._role
        if is_first:
            yield self._fragment
        if low in self._grammar.kin:
            yield self._labeled_relative
        yield self._noun_clause
        if low in self._words["third"] or low in {"that", "this"}:
            yield self._identified

    def _role(self, at: int, end: int) -> int:
        """Read ``Boss is Ann``, ``Team lead at Galp is Petra``, in a text about the user."""
        if not self._is_fact or at not in self._starts:
            return at
        text, is_compound = self._text, self._text.low(at) in self._words["role_compounds"]
        _, last, kin, is_over = self._find_relative(at + is_compound, end)
        if kin is None or kin.is_plural:
            return at
        index = last + 1
        if text.low(index) in {"at", "of", "in"}:
            index = text.name_end(index + 1, end)
        if text.low(index) not in {"is", "'s"}:
            return at
        index += 1 + (text.low(index + 1) in {"called", "named"})
        stop = text.name_end(index, end)
        if stop == index or text.low(stop) == "'s" or text.low(index) in self._words["peoples"]:
            return at
        name = text.join(index, stop)
        self._say(SPEAKER, kin.family, name, "ends" if is_over else "holds", label=kin.label)
        self._add_person(name, kin.gender)
        self._subject = _Subject((name,), (), stop, "third")
        return stop

    def _choice(self, at: int, end: int) -> int:
        """Read ``swimming it is``, ``Dublin it is``."""
        stop = self._text.name_end(at, end)
        stop = stop if stop > at else at + 1
        if self._text.low(stop) != "it" or self._text.low(stop + 1) not in {"is", "'s"} or stop + 1 >= end:
            return at
        value = self._text.join(at, stop)
        if value.lower() in self._words["pastimes"]:
            self._say(SPEAKER, "hobby", value.lower(), "begins")
        elif any(said.family == "plans_trip_to" for said in self.statements):
            self._say(SPEAKER, "plans_trip_to", value, "begins")
        else:
            return at
        return stop + 2

    def _successor(self, at: int, end: int) -> int:
        """Read ``it's Da Nang`` of ``now it's Da Nang``, ``it's Totnes now``, after where one lived."""
        text = self._text
        if self._lows[at] != "it" or text.low(at + 1) not in {"is", "'s"} or at + 2 >= end:
            return at
        stop = text.name_end(at + 2, end)
        is_now = text.low(at - 1) == "now" or text.low(stop) in {"now", "these"}
        is_whole = stop > at + 2 and self._slots.is_break(stop, end)
        return (is_now and is_whole and self._succeed(text.join(at + 2, stop), True, stop)) or at

    def _fragment(self, at: int, end: int) -> int:
        """Read a sentence without a verb: ``Pescatarian.``, ``Slipped disc.``, ``Two girls, Ira and Isha.``."""
        low = self._lows[at]
        after = self._text.low(at + 1) if at + 1 < end else ""
        if low in self._words["diets"] and (not after[:1].isalnum() or after in self._words["goes_on"]):
            self._say(SPEAKER, "diet", self._text.words[at], "holds")
            return at + 1
        if low in self._words["numbers"] or low.isdecimal():
            found = self._slots.read("KIN", at, end, False)
            for value in found.values if found else ():
                owner = self._parent()
                self._say(owner, value.family, value.text, "holds", label=value.label)
                self._add_person(value.text, value.gender)
            return found.stop if found else at
        if (stop := self._fragment_of_group(at, end)) > at:
            return stop
        is_short = end - at <= _MAX_NOUN_PHRASE
        if (
            is_short
            and not self._words["conditions"].isdisjoint(self._lows[at:end])
            and self._slots.phrase_end(at, end) == end
        ):
            self._say(SPEAKER, "has_condition", self._text.join(at, end), "holds", is_certain=False)
            return end
        return at

    def _fragment_of_group(self, at: int, end: int) -> int:
        """Read ``As a vegan, I ...``, ``Kids: Ida (8) and Otto``, ``Now Madrid.`` after where one lived."""
        low, text = self._lows[at], self._text
        if low == "as" and text.low(at + 1) in {"a", "an"} and at + 2 < end:
            for slot, family in (("DIET", "diet"), ("JOB", "works_as")):
                found = self._slots.read(slot, at + 1, end, False)
                if found is not None and text.low(found.stop + (text.low(found.stop) == ",")) == "i":
                    self._say(SPEAKER, family, found.values[0].text, "holds")
                    return found.stop
            return at
        is_next = text.low(at - 1) in {"now", "then"} and bool(self.statements) and at - 1 in self._starts
        if is_next and text.name_end(at, end) == end:
            return self._succeed(text.join(at, end), text.low(at - 1) == "now", end) or at
        return at

    def _labeled_relative(self, at: int, end: int) -> int:
        """Read ``Kids: Ida (8) and Otto``, ``wife Ewa.``, ``Wife = Liisa``, ``Daughter update: Aino``."""
        text, kin = self._text, self._grammar.kin.get(self._lows[at])
        if kin is None or not (at in self._starts or self._follows_own_relatives(at)):
            return at
        first = at + 1 + (text.low(at + 1) in {"update", "news"})
        is_marked = text.low(first) in {":", "="}
        if kin.family not in _CLOSE_FAMILIES and not (is_marked and kin.is_plural):
            return at
        if not is_marked and (first > at + 1 or (text.words[at][0].isupper() and kin.family != "married_to")):
            return at
        names = self._slots.list_of_names(first + is_marked, end, is_plural=kin.is_plural)
        is_clause = first > at + 1 and self._is_verb(names.stop)
        ends = names.stop >= end or text.low(names.stop) in {",", ".", ";", ")", "("} or is_clause
        is_business = is_marked and self._lows[at] in {"partner", "partners"}  # "Partner: Accenture"
        if not names.values or not ends or is_business:
            return at
        for value in names.values if kin.is_plural else names.values[:1]:
            self._say(SPEAKER, kin.family, value.text, "holds", label=kin.label)
            self._add_person(value.text, kin.gender)
        self._labels_stop = names.stop if kin.family in _CLOSE_FAMILIES else -1
        return names.stop

    def _follows_own_relatives(self, at: int) -> bool:
        """Return True for a relative in a list, if no other person was named in its sentence: ``married, wife Ewa``."""
        if self._text.low(at - 1) not in {",", ";", "(", "&", "and"}:
            return False
        if self._labels_stop == at - 1:
            return True
        start = max((start for start in self._starts if start <= at), default=0)
        kin, third = self._grammar.kin, self._words["third"]
        return not any(
            self._text.is_name(index) or self._lows[index] in kin or self._lows[index] in third
            for index in range(max(start, at - _MAX_LIST_WORDS), at)
        )

    def _succeed(self, value: str, is_now: bool, stop: int) -> int:
        """Give the last home that was named a successor (``I lived in Rome. Now it's Oslo``); 0 if there is none."""
        before = self.statements[-1] if self.statements else None
        if before is None or before.family != "lives_in" or not before.value:
            return 0
        if is_now and before.effect == "holds":
            return 0
        if is_now and before.effect == "past":
            self.statements[-1] = before._replace(is_certain=True)
        self._say(before.subject, "lives_in", value, "begins" if is_now else "past", "", is_now)
        return stop

    def _parent(self) -> str:
        """Return the subject of the sentence before, if it says that they had children; else the speaker."""
        before = self._last_subject
        return before.names[0] if before is not None and before.person == "third" else SPEAKER

    def _identified(self, at: int, end: int) -> int:
        """Read ``she's my sister`` of a person that no word before names; return the index after it, or `at`."""
        low, text = self._lows[at], self._text
        is_person = low in self._words["third"] or low in {"that", "this"}
        if not is_person or text.low(at + 1) not in {"is", "'s"} or at + 2 >= end or self._resolve(low):
            return at
        mention = self._mention(at + 2, end) if text.low(at + 2) in _MINE else None
        if mention is None or mention.is_clause or not self._slots.is_break(mention.stop, end):
            return at
        if mention.kin.is_plural or text.low(mention.stop) == "'s":
            return at
        names = mention.names or (mention.subject,)
        self._subject = _Subject(names, (), mention.stop, "third", mention.family, mention.owner)
        return mention.stop

    def _closing_subject(self, at: int, end: int) -> _Subject | None:
        """Return the subject after the last comma: ``Lives in Gdansk, my cousin Ola``, ``works there, my dad does``."""
        last = max(at, end - MAX_ADJUNCT_WORDS)
        comma = next((i for i in range(end - 2, last, -1) if self._lows[i] in {",", "-", "–"}), -1)
        mention = self._mention(comma + 1, end) if comma >= 0 else None
        if mention is None or mention.is_clause or mention.stop < end - 2 or mention.kin.is_plural:
            return None
        rest = self._lows[mention.stop : end]
        if rest not in ([], ["does"], ["is"], ["did"], ["has"], ["was"], ["i", "mean"], ["that", "is"]):
            return None
        names = mention.names or (mention.subject,)
        return _Subject(names, (), at, "third", mention.family, mention.owner)

    def _third_left_out(self, at: int, end: int) -> _Subject | None:
        """Return the subject of a verb in the third person that opens a sentence (``Works at Zara``).

        It is the one after the verb, the one of the sentence before, the last person mentioned, or in a text without a
        word for the speaker the user.
        """
        closing = self._closing_subject(at, end)
        if closing is not None:
            return closing
        carried = self._carried
        if carried is not None and carried.person in {"third", "left out"}:
            return carried._replace(stop=at, is_left_out=False)
        if self._is_fact:
            return _Subject((SPEAKER,), (), at, "left out") if not self._has_stranger(at, end) else None
        if self._people and carried is None:
            return _Subject((self._people[-1][0],), (), at, "third")
        return None

    def _has_stranger(self, at: int, end: int) -> bool:
        """Return True for a subject at the end that is no relative: ``comes from Nokia, our new CTO``."""
        last = max(at, end - MAX_ADJUNCT_WORDS)
        comma = next((i for i in range(end - 2, last, -1) if self._lows[i] == ","), -1)
        return comma >= 0 and self._lows[comma + 1] in {*_MINE, "the", "that"}

    def _is_third_form(self, low: str) -> bool:
        """Return True for a verb that only a third person has (``works``)."""
        if low in {"is", "has", "'s"}:
            return True
        forms = {form for _, form in self._clauses.heads.get(low, ())}
        return forms == {"s"}

    def _is_bare_head(self, at: int) -> bool:
        """Return True for a word that opens a clause without its "am": ``allergic to cats``, ``line cook at Galp``."""
        low = self._lows[at]
        if low in self._words["diets"] or low in self._words["ailing"]:
            after = self._text.low(at + 1)
            return not after or after in self._words["job_ends"] or after in self._words["goes_on"]
        if low == "type":
            return self._text.low(at + 2) in self._words["ailing"]
        return self._slots.is_job_title(at)

    def _left_out(self, at: int, end: int, is_first: bool) -> _Subject | None:
        if is_first and self._is_third_form(self._lows[at]):
            return self._third_left_out(at, end)
        if is_first:
            return _Subject((SPEAKER,), (), at, "left out")
        if self._subject is not None and self._lows[at] in _SINGULAR and SPEAKER in self._subject.names:
            self._subject = None  # in "the company I work for, Initech, is based in Oslo" the company is, not I
        return self._subject._replace(stop=at, is_left_out=True) if self._subject is not None else None

    def _relative_clause(self, at: int, end: int) -> int:
        """Read ``Anna, who works at Galp``: its subject is the name before."""
        last = at - 1 if self._text.low(at - 1) != "," else at - 2
        is_place = self._text.low(last - 1) in {"from", "in", "at", "of", "near"}
        person = self._people[-1][0] if self._people else ""
        is_known = bool(person) and last >= 0 and (is_place or self._text.words[last] == person.split()[-1])
        if not is_known:
            name = self._text.words[last] if last >= 0 and self._text.is_name(last) else ""
            if not name:
                self._subject = None
                return at
            self._add_person(name)
        before, self._subject = self._subject, _Subject((self._people[-1][0],), (), at + 1, "third")
        stop = self._predicate(self._subject, at, at + 1, end)
        self._subject = before or self._subject
        return stop if stop > at + 1 else at

    def _where_clause(self, at: int, end: int) -> None:
        """Read ``Sapporo, where she was born``, ``Bath, where my sister lives``: the place is the name before."""
        text, words = self._text, self._words
        last = at - 1 if text.low(at - 1) == "," else at
        first = last
        while first > 0 and last - first < MAX_NAME_WORDS and text.is_name(first - 1):
            first -= 1
        subject = self._read_subject(at + 1, end) if first < last and at + 1 < end else None
        if subject is None:
            return
        verb = subject.stop
        while verb < min(end, subject.stop + 3) and text.low(verb) in _WHERE_AUXILIARIES:
            verb += 1
        is_plain = verb == subject.stop or text.low(verb - 1) in {"still", "now", "'s", "is", "are", "am", "been"}
        family = "is_from" if text.low(verb) in words["where_from"] else ""
        if text.low(verb) in words["where_home"] and is_plain and text.low(verb + 1) not in {"with", "when", "until"}:
            family = "lives_in"
        if family and text.low(verb + 1) != "to":
            for name in subject.names:
                self._say(name, family, text.join(first, last), "holds")

    def _apposition(self, subject: _Subject, end: int) -> int:
        """Read ``, who works at Galp,``, ``, a dentist,`` after a subject; return where its verb is."""
        at = subject.stop
        mark = {",": ",", "(": ")"}.get(self._text.low(at), "")
        if not mark or at + 1 >= end or subject.person != "third":
            return at
        close = next((i for i in range(at + 2, min(end, at + 12)) if self._lows[i] == mark), -1)
        if close < 0 or close + 1 >= end:
            return at
        first = at + 1
        if self._lows[first] == "who":
            self._predicate(subject, first, first + 1, close)
            return close + 1
        if self._lows[first] in self._words["articles"]:
            found = self._slots.read("JOB", first, close, False)
            if found is not None:
                self._say_job(subject, found, first, close)
                return close + 1
        people = self._people
        self._people = [each for each in people if each[0] not in subject.names]
        mention = self._mention(first, close)
        self._people = people
        if mention is not None and not mention.names:
            self._say(mention.owner, mention.family, subject.names[0], "holds", label=mention.label)
            return close + 1
        return close + 1 if self._is_verb(close + 1) and self._lows[first] in {"my", "our", "the", "a"} else at

    def _job_aside(self, at: int, end: int) -> None:
        """Read ``, a marine biologist from Bergen`` after a name."""
        first = at
        while first > 0 and at - first < MAX_NAME_WORDS and self._text.is_name(first - 1):
            first -= 1
        name = self._text.join(first, at)
        is_place = self._text.low(first - 1) in {"in", "at", "to", "from", "near", "of"}
        if first == at or (is_place and all(name != person for person, _ in self._people)):
            return
        found = self._slots.read("JOB", at + 1, end, False)
        if found is not None:
            subject = _Subject((name,), (), at, "third")
            self._say_job(subject, found, at, min(end, found.stop + MAX_ADJUNCT_WORDS))

    def _say_job(self, subject: _Subject, found: Found, start: int, end: int) -> None:
        for name in subject.names:
            self._say(name, "works_as", found.values[0].text, "holds")
        self._adjuncts("works_as", "holds", subject.names, found.stop, end, "")

    def _after_origin(self, subject: _Subject, end: int) -> int:
        """Return the index of the verb after ``from HR``, ``at the gym`` behind a subject; its end if there is none."""
        at = subject.stop
        if self._text.low(at) not in {"from", "at"} or subject.person != "third":
            return at
        last = min(end, at + _MAX_NOUN_PHRASE)
        verb = next((i for i in range(at + 2, last) if self._is_verb(i) or not self._lows[i][:1].isalnum()), at)
        return verb if verb < last and self._is_verb(verb) else at

    def _is_unknown_verb(self, at: int) -> bool:
        """Return True for a verb in the past that opens a sentence and that no pattern reads."""
        low = self._lows[at]
        is_regular = (
            low.endswith("ed") and len(low) > _MIN_REGULAR and not self._slots.is_break(at + 1, len(self._lows))
        )
        return not self._text.is_name(at) and (low in self._words["past_starts"] or is_regular)

    def _is_verb(self, index: int) -> bool:
        low = self._text.low(index)
        return low in self._clauses.heads or low in self._grammar.roles

    # Subjects

    def _read_subject(self, at: int, end: int) -> _Subject | None:
        """Return the subject that begins at `at`: one or several joined by "and"."""
        names: list[str] = []
        kin, owner, person, index = "", SPEAKER, "", at
        while index < end:
            element = self._subject_element(index, end, bool(names))
            if element is None:
                if names:
                    return None
                break
            found, stop, person_of_one, kin, owner = element
            names += found
            for name in found:
                if name:
                    self._add_person(name)
            person = person_of_one if not person else "plural"
            index = stop
            if self._text.low(index) in {"and", "&", "n"} and index + 1 < end and len(names) < 4:
                index += 1
                continue
            if self._text.low(index) == "or":
                return None
            break
        if not names:
            return None
        return self._combine(names, index, person, kin, owner)

    def _combine(self, names: list[str], stop: int, person: str, kin: str, owner: str) -> _Subject | None:
        others = tuple(name for name in dict.fromkeys(names) if name != SPEAKER)
        for name in others:
            self._add_person(name)
        if SPEAKER in names:
            self._group = (SPEAKER, *others)
            return _Subject((SPEAKER,), others, stop, "first")
        self._group = others if len(others) > 1 else self._group
        return _Subject(others, others[1:], stop, person, kin if len(others) == 1 else "", owner)

    def _subject_element(self, at: int, end: int, has_before: bool) -> tuple[list[str], int, str, str, str] | None:
        low, text = self._lows[at], self._text
        if low in self._words["first"]:
            return [SPEAKER], at + 1, "first", "", SPEAKER
        if low in {"me", "myself"}:
            joined = has_before or text.low(at + 1) in {"and", "&", "n"}
            return ([SPEAKER], at + 1, "first", "", SPEAKER) if joined else None
        if low in self._words["third"]:
            people = self._resolve(low)
            if not people and low in {"he", "she"} and (closing := self._closing_subject(at, end)) is not None:
                people = list(closing.names)
            return (people, at + 1, "plural" if low == "they" else "third", "", SPEAKER) if people else None
        mention = self._mention(at, end)
        if mention is None and has_before and low in self._grammar.kin:
            mention = self._read_relative(SPEAKER, at, end)  # "my aunt Greta and uncle Hans"
        if mention is not None:
            if text.low(mention.stop) == "'s" and mention.stop < end and not self._is_be(mention.stop):
                return None
            subjects = list(mention.names) or [mention.subject]
            person = "plural" if len(subjects) > 1 or self._is_plural(mention) else "third"
            return subjects, mention.stop, person, mention.family, mention.owner
        stop = text.name_end(at, end)
        if stop > at and (low in self._words["medics"] or (at in self._starts and self._is_no_name(low))):
            return None
        if stop > at:
            if text.low(stop) == "'s" and stop < end and not self._is_be(stop):
                return None
            return [text.join(at, stop)], stop, "third", "", SPEAKER
        is_casual = text.is_casual and has_before and self._is_verb(at + 1) and self._is_plain_word(at)
        is_casual |= (
            text.is_casual
            and text.low(at + 1) in {"and", "n"}
            and text.low(at + 2) in {"me", "i"}
            and self._is_plain_word(at)
        )
        if text.is_casual and self._is_plain_word(at):
            stop = at + 1 + self._is_plain_word(at + 1) if at + 1 < end else at + 1
            if text.low(stop) in {"'s", "is"} and text.low(stop + 1) in {"off", "cancelled", "canceled"}:
                return [text.join(at, stop)], stop, "third", "", SPEAKER
        return ([text.words[at]], at + 1, "third", "", SPEAKER) if is_casual else None

    def _is_no_name(self, low: str) -> bool:
        """Return True for a word that a capital at the start of a sentence does not make a name."""
        return low in self._clauses.heads or low in self._words["someone"]

    def _is_plain_word(self, at: int) -> bool:
        low = self._lows[at]
        return len(low) > 1 and low.isalpha() and low not in self._grammar.no_names and low not in self._clauses.heads

    def _is_plural(self, mention: _Mention) -> bool:
        return mention.kin.is_plural

    def _is_be(self, index: int) -> bool:
        """Return True if the 's at `index` is a verb: an article, a participle, a number or the like follows."""
        low = self._text.low(index + 1)
        words = self._words
        return (
            low in self._grammar.roles
            or low in words["articles"]
            or low in words["after_is"]
            or (
                low in self._clauses.heads
                and any(form in {"be", "ing", "done"} for _, form in self._clauses.heads[low])
            )
            or not low[:1].isalpha()
        )

    def _resolve(self, pronoun: str, but: str = SPEAKER) -> list[str]:
        """Return the people that a pronoun refers to; none if the text names none."""
        if pronoun == "it":
            return []
        if pronoun in {"they", "their"}:
            group = [name for name in self._group if name]
            return group if group else [self._people[-1][0]] if self._people else []
        wanted = "m" if pronoun in {"he", "his"} else "f"
        for index in range(len(self._people) - 1, max(-1, len(self._people) - 6), -1):
            name, gender = self._people[index]
            if gender in ("", wanted) and name != but:
                self._people.pop(index)
                self._people.append((name, wanted))
                return [name]
        return [SPEAKER] if self._is_fact and not self._people and self.statements else []

    def _add_person(self, name: str, gender: str = "") -> None:
        for index in range(len(self._people) - 1, max(-1, len(self._people) - 8), -1):
            if self._people[index][0] == name:
                gender = gender or self._people.pop(index)[1]
                break
        self._people.append((name, gender))

    # Relatives and pets

    def _mentioned_name(self, at: int, end: int) -> tuple[str, int] | None:
        mention = self._mention(at, end)
        return (mention.names[0], mention.stop) if mention is not None and mention.names else None

    def _mention(self, at: int, end: int) -> _Mention | None:
        """Read a relative or a pet at `at`, once: ``my sister Anna``, ``Bob's dog``, ``her husband's boss``."""
        if not self._can_be_mention(at, self._lows[at]):
            return None
        if at not in self._mentioned:
            self._mentioned[at] = self._read_mention(at, end)
        mention = self._mentioned[at]
        return mention if mention is None or mention.stop <= end else None

    def _can_be_mention(self, at: int, low: str) -> bool:
        words = self._words
        return (
            low in words["own"]
            or low in words["owns_third"]
            or low in self._grammar.kin
            or low in INDIRECT
            or (self._has_possessive and self._text.is_name(at))
        )

    def _read_mention(self, at: int, end: int) -> _Mention | None:
        low, text = self._lows[at], self._text
        if low in self._words["own"]:
            owner, index = SPEAKER, at + 1
        elif low in self._words["owns_third"]:
            people = self._resolve(low)
            is_user = self._is_fact and not self._people and (low != "their" or at in self._starts)
            if not people and not is_user:
                return None
            owner, index = people[0] if people else SPEAKER, at + 1
        elif low == "the":
            return self._read_partner(at, end)
        elif low in {"a", "an", "one"}:
            return self._read_of_mine(at, end)
        elif self._is_bare_relative(at, low):
            owner, index = SPEAKER, at
        else:
            stop = text.name_end(at, min(end, at + 4))
            if stop == at or text.low(stop) != "'s":
                return None
            owner, index = text.join(at, stop), stop + 1
        return self._read_relative(owner, index, end)

    def _read_partner(self, at: int, end: int) -> _Mention | None:
        """Read ``the guy I'm seeing``, ``the eldest``."""
        low = self._text.low
        noun = at + 1
        if low(noun) in self._words["eldest"] and low(noun + 1) == "," and self._text.is_name(noun + 2):
            return self._read_relative(SPEAKER, noun, end)
        if low(noun) in self._words["the_kin"] and at in self._starts and self._is_verb(noun + 1):
            return self._read_relative(SPEAKER, noun, end)
        if low(noun) not in self._words["someone"]:
            return None
        index = noun + 1 + (low(noun + 1) in {"who", "that", "whom"})
        if low(index) != "i" or low(index + 1) != "am" or low(index + 2) not in {"dating", "seeing"}:
            return None
        gender = "m" if low(noun) in self._words["male"] else "f" if low(noun) in self._words["female"] else ""
        label = {"m": "boyfriend", "f": "girlfriend"}.get(gender, "partner")
        kin = Kin("partner", label, gender, is_plural=False)
        names, stop = self._relative_names(index + 3, end, is_plural=False)
        for name in names:
            self._say(SPEAKER, kin.family, name, "holds", label=kin.label)
            self._add_person(name, gender)
        return _Mention(tuple(names), f"my {label}", stop, noun, SPEAKER, kin)

    def _read_of_mine(self, at: int, end: int) -> _Mention | None:
        """Read ``a friend of mine``, ``one of my cousins``, with or without a name."""
        low = self._text.low
        if low(at) == "one":
            is_one = low(at + 1) == "of" and low(at + 2) in self._words["own"]
            return self._read_relative(SPEAKER, at + 3, end) if is_one and at + 3 < end else None
        noun = next(
            (i for i in range(at + 1, min(end, at + 5)) if low(i) == "of" and low(i + 1) in {"mine", "ours"}), -1
        )
        if noun < 0 or noun + 1 >= end:
            return None
        kin = self._grammar.kin.get(low(noun - 1))
        if kin is None:
            return None
        names, stop = self._relative_names(noun + 2, end, is_plural=False)
        for name in names:
            self._say(SPEAKER, kin.family, name, "holds", label=kin.label)
            self._add_person(name, kin.gender)
        if not names:
            self._add_person(f"my {low(noun - 1)}", kin.gender)
        return _Mention(tuple(names), f"my {low(noun - 1)}", stop, noun - 1, SPEAKER, kin)

    def _is_bare_relative(self, at: int, low: str) -> bool:
        """Return True for a relative without "my" that opens a sentence: ``Mum lives in Leeds``, ``dogs are ...``."""
        kin = self._grammar.kin.get(low)
        if kin is None or kin.family in self._words["friend_families"]:
            return False
        is_start = at in self._starts or self._text.low(at - 1) == "and"
        if self._text.is_name(at + 1):
            is_close = kin.family in _CLOSE_FAMILIES and not kin.is_plural  # not "Father Ted", "Kids Menu"
            is_plain = self._text.words[at][0].islower() or is_close or low in self._words["titled_kin"]
            after = self._text.name_end(at + 1, min(len(self._lows), at + 1 + MAX_NAME_WORDS))
            return is_start and is_plain and (self._is_verb(after) or self._text.low(after) in {"in", "at", "'s"})
        is_start |= self._text.words[at][0].isupper() and self._text.low(at - 1) in {",", "then", "now", "but", "so"}
        return is_start and (self._is_verb(at + 1) or self._text.low(at + 1) == "'s")

    def _read_relative(self, owner: str, at: int, end: int) -> _Mention | None:
        noun, last, kin, is_over = self._find_relative(at, end)
        if kin is None:
            return None
        low = " ".join(self._lows[noun : last + 1])
        names, stop = self._relative_names(last + 1, end, kin.is_plural)
        unnamed = f"my {low}" if owner == SPEAKER else f"{owner}'s {low}"
        for name in names:
            self._say(owner, kin.family, name, "ends" if is_over else "holds", label=kin.label)
            self._add_person(name, kin.gender)
        if not names:
            self._add_person(unnamed, kin.gender)
        elif len(names) > 1:
            self._group = tuple(names)
        mention = _Mention(tuple(names), unnamed, stop, noun, owner, kin)
        if not names:
            return self._naming(mention, end) or self._next_relative(mention, end) or mention
        return mention

    def _find_relative(self, at: int, end: int) -> tuple[int, int, Kin | None, bool]:
        """Return the first and last index of the noun for a relative, its relation, and if it is over.

        "Other half", "mother in law" and "my eldest" are nouns; one unknown word may be before a noun
        ("my running buddy").
        """
        words, kin, noun, is_over, unknown = self._words, self._grammar.kin, at, False, 0
        while noun < min(end, at + 4):
            low = self._lows[noun]
            for last in (noun + 2, noun + 1):
                joined = kin.get("-".join(self._lows[noun : last + 1])) if last < end else None
                if joined is not None:
                    return noun, last, joined, is_over
            if low in kin or low.removeprefix("ex-") in kin:
                found = kin[low.removeprefix("ex-")]
                if unknown and found.family not in words["described"]:
                    break
                is_over |= low in words["over"]
                is_over |= found.family in _FORMER_BY_AGE and self._text.low(noun - 1) == "old"
                return noun, noun, found, is_over
            is_over |= low in words["over"]
            if low not in words["adjectives"]:
                unknown += 1
                if unknown > _MAX_PLAIN_WORDS or not self._can_describe(noun):
                    break
            noun += 1
        if noun > at and self._lows[noun - 1] in words["eldest"] and unknown <= 1:
            return noun - 1, noun - 1, kin["child"], False
        return at, at, None, False

    def _can_describe(self, index: int) -> bool:
        """Return True for a plain word in lower case that may be before a noun."""
        low = self._lows[index]
        is_plain = self._text.words[index].islower() and low.replace("-", "").isalpha()
        return is_plain and not (
            low in self._grammar.breaks
            or low in self._grammar.roles
            or low in self._words["joins"]
            or low in self._words["vague"]
            or low in self._words["favorites"]
        )

    def _next_relative(self, mention: _Mention, end: int) -> _Mention | None:
        """Read ``husband`` of ``my sister's husband``."""
        at = mention.stop
        if self._text.low(at) != "'s" or at + 1 >= end:
            return None
        return self._read_relative(mention.subject, at + 1, end)

    def _relative_names(self, at: int, end: int, is_plural: bool) -> tuple[list[str], int]:
        text = self._text
        index = at + (text.low(at) in {"called", "named"} and at < end)
        if text.low(at) == "of" and text.low(at + 2) in {"years", "months", "yrs"}:
            index = at + 3  # "my boyfriend of two years, Theo"
        is_aside = text.low(at) in {",", "("} and at < end
        index += is_aside
        if is_plural:
            found = self._slots.list_of_names(index, end, is_plural=True)
            names, stop = [value.text for value in found.values], found.stop
        else:
            stop = text.name_end(index, end)
            names = [text.join(index, stop)] if stop > index else []
        if names and text.low(index) in self._words["peoples"]:
            names = []
        if names and is_aside:
            if text.low(stop) not in {",", ")"} or stop + 1 >= end or not text.words[stop + 1][:1].islower():
                return [], at
            return names, stop + (text.low(stop + 1) not in {"a", "an"})
        if not names and text.is_casual and index < end and not is_plural:
            last = index + (text.low(index) in _TITLES and index + 1 < end)
            if self._is_plain_word(last) and self._is_verb(last + 1):
                return [text.join(index, last + 1)], last + 1
        return names, stop if names else at

    def _naming(self, mention: _Mention, end: int) -> _Mention | None:
        """Read ``'s name is Anna``, ``is called Anna``, ``is Anna`` after a relative without a name."""
        at, lows = mention.stop, self._lows
        index = at + 2 if lows[at : at + 2] == ["'s", "name"] else at
        is_aside = self._text.low(at) == "that" and self._text.low(at + 1) in {"is", "'s"} and at < end
        index += is_aside  # "our oldest that's Travis he's in San Antonio"
        if lows[index : index + 2] == ["is", "not"] and lows[index + 2 : index + 3] in (["called"], ["named"]):
            wrong = self._slots.list_of_names(index + 3, end)
            for value in wrong.values:
                self._say(mention.owner, mention.family, value.text, "ends", label=mention.label)
            return mention._replace(stop=max(wrong.stop, index + 3), is_clause=True, names=(mention.subject,))
        if self._text.low(index) in _ORIGINS and index == at:
            last = min(end, at + _MAX_NOUN_PHRASE)
            index = next(
                (
                    i
                    for i in range(at + 2, last)
                    if self._text.low(i) not in self._words["articles"] and self._is_verb(i)
                ),
                last,
            )
        if self._text.low(index) not in {"is", "are", "'s", "was"} or index + 1 >= end:
            return None
        index += 1
        is_called = self._text.low(index) in {"called", "named"} or index == at + 3 or is_aside
        index += self._text.low(index) in {"called", "named"}
        found = self._slots.list_of_names(index, end)
        names = [value.text for value in found.values]
        if not names and is_called and (one := self._slots.read("NAME", index, end, False)) is not None:
            names, found = [one.values[0].text], one
        if not names and self._text.low(index) in self._words["articles"]:
            one = self._slots.read("PERSON", index, end, False)
            if one is not None and one.values[0].text:
                names, found, is_called = [one.values[0].text], one, True
        is_whole = is_called or self._slots.is_break(found.stop, end)
        if not names or not is_whole or self._text.low(index) in self._words["peoples"]:
            return None
        gender = mention.kin.gender
        for name in names:
            self._say(mention.owner, mention.family, name, "holds", label=mention.label)
            self._add_person(name, gender)
        return mention._replace(names=tuple(names), stop=found.stop, is_clause=True)

    # A person or thing with a name that follows

    def _name_for_unnamed(self, at: int, end: int) -> int:
        """Read ``her name's Bica``, ``called him Bobby``, ``it's called Maré Alta``, ``Henrik,`` for an unnamed one."""
        if not self._unnamed:
            return at
        lows, index = self._lows, at
        if lows[at] in {"called", "named", "call", "name", "naming", "calling"}:
            index = at + 2 if self._text.low(at + 1) in {"him", "her", "it", "them"} else at + 1
        elif (
            lows[at] in self._words["owns_third"]
            and self._text.low(at + 1) == "name"
            and self._text.low(at + 2) in {"is", "'s"}
        ) or (
            lows[at] in self._words["third"]
            and self._text.low(at + 1) in {"is", "'s"}
            and self._text.low(at + 2) in {"called", "named"}
        ):
            index = at + 3
        elif lows[at] in {"it", "we", "i"} and self._text.low(at + 1) in {"called", "named"}:
            index = at + 2 + (self._text.low(at + 2) in {"him", "her", "it", "them"})
        elif self._text.is_name(at) and self._text.low(self._text.name_end(at, end)) in {",", "."}:
            index = at
            if at not in self._text.starts:
                return at
        else:
            return at
        if index >= end:
            return at
        found = self._slots.list_of_names(index, end)
        if not found.values:
            found = self._slots.read("NAME", index, end, False) or found
        if not found.values:
            return at
        self._fill_unnamed([value.text for value in found.values])
        return found.stop

    def _fill_unnamed(self, names: list[str]) -> None:
        for index in self._unnamed:
            said = self.statements[index]
            relation = said.relation
            if said.family == "partner" and self._unnamed_gender:
                relation = "boyfriend" if self._unnamed_gender == "m" else "girlfriend"
            named = [said._replace(value=name, is_certain=True, relation=relation) for name in names]
            self.statements[index] = named[0]
            self.statements += named[1:]
        self._add_person(names[0], self._unnamed_gender)
        self._unnamed = ()

    # Predicates

    def _predicate(self, subject: _Subject, start: int, at: int, end: int) -> int:
        """Read the verb phrase at `at`; return the index after it, or `at`."""
        if at >= end:
            return at
        chain = self._auxiliaries(at, end)
        for count in range(len(chain), -1, -1):
            index = chain[count - 1][0] if count else at
            roles = tuple(role for _, role in chain[:count])
            if index >= end:
                continue
            stop = self._try_patterns(subject, start, index, end, roles)
            if stop > index:
                return stop
        return at

    def _auxiliaries(self, at: int, end: int) -> list[tuple[int, str]]:
        """Return the words between subject and verb: the index after each, and its role."""
        chain: list[tuple[int, str]] = []
        index = at
        while index < min(end, at + MAX_AUXILIARIES):
            low, after = self._lows[index], self._text.low(index + 1)
            role, count = self._grammar.roles.get(low, ""), 1
            if low == "used":
                role, count = ("used", 2) if after == "to" else ("", 1)
            elif low == "no" and after == "longer":
                role, count = "not", 2
            elif low in {"had", "managed", "got"} and after == "to":
                role, count = "must", 2
            elif low in {"have", "has", "need", "needs"} and after == "to":
                role, count = "would", 2
            elif low in {"end", "ended", "ends"} and after == "up":
                role, count = "must", 2
            elif low == "going" and after == "to" and not self._text.is_name(index + 2):
                role, count = "plan", 2
            elif role == "plan":
                count = 2 if after in {"to", "of", "on", "about"} else 1
            elif role == "start" and after == "to":
                count = 2
            elif low == "be":
                role = "be"
            if not role:
                break
            index += count
            chain.append((index, role))
        return chain

    def _try_patterns(self, subject: _Subject, start: int, at: int, end: int, roles: tuple[str, ...]) -> int:
        low = self._lows[at]
        core = " ".join(role for role in roles if role not in _PLAIN_ROLES)
        stop = self._try_verbs(subject, start, (at, at + 1), end, roles, core)
        if stop > at:
            return stop
        first = self._skip_adverbs(at + 1, end) if low in self._clauses.heads else at + 1
        first += first == at + 1 < end and self._text.low(first) in _REFLEXIVES
        if first > at + 1 and (stop := self._try_verbs(subject, start, (at, first), end, roles, core)) > at:
            return stop
        tense = _TENSES["be"].get(core, "plan" if core.endswith("plan be") else "")
        if not tense and not core and subject.person == "left out" and self._is_bare_head(at):
            return self._try_bare(subject, start, at, end, roles)
        if not tense:
            return at
        stop = self._inverse(subject, at, end, "over" if "not" in roles else tense)
        if stop > at:
            return stop
        for pattern in self._clauses.copular_slots:
            stop = self._try(subject, start, at, end, pattern, tense, roles)
            if stop > at:
                return stop
        return at

    def _try_bare(self, subject: _Subject, start: int, at: int, end: int, roles: tuple[str, ...]) -> int:
        """Read ``vegan for ten years``, ``line cook at Galp``, which lack "I am"."""
        for pattern in self._clauses.copular_slots:
            if len(pattern.rest) == 1 and pattern.rest[0].slot in _BARE_SLOTS:
                stop = self._try(subject, start, at, end, pattern, "present", roles)
                if stop > at:
                    return stop
        return at

    def _try_verbs(
        self, subject: _Subject, start: int, verb: tuple[int, int], end: int, roles: tuple[str, ...], core: str
    ) -> int:
        """Try the patterns of the verb at the first index with the words from the second; return the index after."""
        at, first = verb
        low, after = self._lows[at], self._text.low(first)
        is_apart = first > at + 1 and self._text.low(at + 1) not in _REFLEXIVES
        tenses: dict[str, str] = {}
        for pattern, form in self._clauses.heads.get(low, ()):
            if pattern.group == "me" or not pattern.can_follow(after) or (is_apart and not pattern.has_preposition):
                continue
            if form not in tenses:
                is_placed = form == "be" and not core and bool(roles) and subject.person == "left out"
                is_placed &= low in self._words["placed_heads"]  # "still in Bari", "not at Galp anymore"
                tenses[form] = "present" if is_placed else self._tense(core, form, subject, low)
            if tenses[form]:
                stop = self._try(subject, start, first, end, pattern, tenses[form], roles)
                if stop > at:
                    return stop
        return at

    def _skip_adverbs(self, at: int, end: int) -> int:
        """Return the index after adverbs and a time (``now``, ``happily``, ``in 2019``, ``for three years``)."""
        index, words = at, self._words
        while index < min(end, at + 2) and (
            self._lows[index] in words["after_verb"]
            or (self._lows[index].endswith("ly") and len(self._lows[index]) > 4)
        ):
            index += 1
        first = index
        is_time = self._text.low(index) in words["time_leads"]
        index += is_time
        while is_time and index < min(end, first + _MAX_TIME_WORDS) and self._is_time_word(index):
            index += 1
        return index if index > first + 1 else first

    def _is_time_word(self, index: int) -> bool:
        low = self._lows[index]
        return low.isdecimal() or low in self._words["time_words"] or low in self._words["months"]

    def _tense(self, core: str, form: str, subject: _Subject, low: str) -> str:
        if core == "was plan":
            return ""  # "I was going to move to Oslo"
        if core.endswith("plan"):
            return "plan" if form in {"base", "ing"} else ""
        tense = _TENSES[form].get(core, "")
        person = subject.person
        if form == "be" and not core:
            return "present" if person == "left out" and low in self._words["bare_heads"] else ""
        if form == "base" and not core and subject.is_left_out and self._last_tense != "present":
            return ""
        if form == "base" and not core:
            is_open = low in _OPEN or (not subject.is_left_out and low in self._words["open_heads"])
            is_fine = person in {"first", "plural"} or (person == "left out" and is_open) or low == "can"
            return tense if is_fine else ""
        if form == "s":
            return tense if person in {"third", "left out"} else ""
        if (person == "left out" or subject.is_left_out) and not core:
            tense = {"ing": "progress", "done": "past", "bare": "present"}.get(form, tense)
        elif form == "bare":
            return ""
        return tense

    def _try(
        self, subject: _Subject, start: int, at: int, end: int, pattern: Pattern, tense: str, roles: tuple[str, ...]
    ) -> int:
        """Match the rest of a pattern at `at` and make its statements; return the index after it, or -1."""
        is_negative = "not" in roles
        if pattern.is_habit and (tense != "present" or subject.person == "left out"):
            return -1
        found = self._match(pattern.rest, at, end, is_negative or tense in {"used", "stop"})
        if found is None:
            return -1
        values, stop = found
        if not self._is_complete(subject, pattern, stop, end):
            return -1
        if self._is_gerund_subject(subject, start, stop, end):
            return -1
        clause = _Clause(start, stop, pattern, tense, is_negative, "now" in roles, values)
        if is_negative and "partly" in roles:
            return stop
        return self._state(subject, clause, end)

    def _is_gerund_subject(self, subject: _Subject, start: int, stop: int, end: int) -> bool:
        """Return True for "Losing my job was hard", which is about the loss."""
        if not (subject.person == "left out" and self._lows[start].endswith("ing")):
            return False
        close = min(end, stop + 5)
        close = next((i for i in range(stop, close) if self._lows[i] in {",", ";", "-", "–"}), close)
        after = self._lows[stop:close]
        return not {"is", "was", "'s", "were", "helps", "makes", "has", "gives", "can"}.isdisjoint(after)

    def _is_complete(self, subject: _Subject, pattern: Pattern, stop: int, end: int) -> bool:
        """Return True if the words after a pattern do not give it another meaning ("I'm over the moon")."""
        after = self._text.low(stop) if stop < end else ""
        if pattern.rest and pattern.rest[-1].slot:
            return True
        if after in {"up", "off", "down", "out", "from", "with", "the"} and not pattern.rest:
            return False
        is_pair = pattern.is_copular and any(meaning.slot == "&" for meaning in pattern.meanings)
        is_end = self._slots.is_break(stop, end) or bool(pattern.rest)
        is_end |= after.isdecimal() or after in self._words["numbers"]
        return is_end and not (is_pair and not subject.others)

    def _match(
        self, elements: tuple[Element, ...], at: int, end: int, strict: bool
    ) -> tuple[tuple[tuple[Value, ...], ...], int] | None:
        values: list[tuple[Value, ...]] = []
        index = at
        for number, element in enumerate(elements):
            if not element.slot:
                if element.words == _CLAUSE_END:
                    if index < end and self._lows[index] not in self._words["full_stops"]:
                        return None
                elif self._text.low(index) in element.words and index < end:
                    index += 1
                elif not element.is_optional:
                    return None
                continue
            limit = self._limit(elements[number + 1 :], index, end)
            if limit < 0:
                return None
            found = self._slots.read(element.slot, index, limit, strict and limit == end)
            if found is None:
                return None
            if element.slot not in _SILENT:
                values.append(found.values)
            index = found.stop
            if limit < end:
                index = limit
        return tuple(values), index

    def _limit(self, rest: tuple[Element, ...], at: int, end: int) -> int:
        """Return where the next fixed word of a pattern is, which ends the slot before; -1 if it is not there."""
        if not rest or rest[0].slot:
            return end
        last = min(end, at + MAX_CLAUSE_WORDS // 2)
        for index in range(at + 1, last):
            low = self._lows[index]
            if low in rest[0].words:
                return index
            goes_on = low == "and" and self._begins_noun(index + 1)
            if low in {",", "and", "but", ";", "because"} and rest[0].words != {","} and not goes_on:
                return -1
        return -1

    def _begins_noun(self, index: int) -> bool:
        """Return True for a word that begins another noun of a list, not a clause: ``my cat and his dog``."""
        words = self._words
        return self._text.low(index) in words["own"] | words["owns_third"] | words["articles"] | words["numbers"]

    def _inverse(self, subject: _Subject, at: int, end: int, tense: str) -> int:
        """Read ``my boss`` of ``Karen is my boss``, ``my favorite food`` of ``Lasagna is my favorite food``."""
        low = self._lows[at]
        if subject.person == "first" or not (
            low in self._words["own"] or low in self._words["owns_third"] or low in INDIRECT or self._text.is_name(at)
        ):
            return at
        names = [name for name in subject.names if name and not name.startswith("my ")]
        favorite = self._favorite_noun(at, end)
        if favorite is not None and names and tense == "present":
            self._say(favorite[0], "favorite", names[0], "holds", label=favorite[2])
            return favorite[1]
        people = self._people
        self._people = [each for each in people if each[0] not in names]
        mention = self._mention(at, end)
        self._people = people
        if mention is None or mention.names or not self._slots.is_break(mention.stop, end):
            return at
        if self._people and self._people[-1][0] == mention.subject:
            self._people.pop()
        for name in names:
            self._add_person(name)
            self._say(mention.owner, mention.family, name, _INVERSE_EFFECTS.get(tense, "past"), label=mention.label)
        return mention.stop

    # Clauses about nouns

    def _favorite_noun(self, at: int, end: int) -> tuple[str, int, str] | None:
        """Return owner, index after, and label of ``my favorite food``."""
        low, text = self._lows[at], self._text
        if not self._has_favorite and low not in self._words["owns_third"]:  # which names a person, even in vain
            return None
        owner, index = SPEAKER, at
        if low in self._words["own"]:
            index = at + 1
        elif low in self._words["owns_third"]:
            people = self._resolve(low)
            if not people and not (self._is_fact and not self._people):
                return None
            owner, index = people[0] if people else SPEAKER, at + 1
        elif (stop := text.name_end(at, end)) > at and text.low(stop) == "'s":
            owner, index = text.join(at, stop), stop + 1
        elif low not in self._words["favorites"]:
            return None
        while index < min(end, at + 4) and self._lows[index] in {
            "all-time",
            "absolute",
            "new",
            "current",
            "all",
            "time",
            "-",
        }:
            index += 1
        if text.low(index) not in self._words["favorites"]:
            return None
        stop = index + 1
        while (
            stop < min(end, index + 4)
            and self._lows[stop].isalpha()
            and not self._is_verb(stop)
            and self._lows[stop] not in self._grammar.breaks
        ):
            stop += 1
        if stop == index + 1:  # "Wingspan is my favorite"
            return (owner, stop, "favorite") if at > 0 and self._slots.is_break(stop, end) else None
        return owner, stop, "favorite_" + "_".join(self._lows[index + 1 : stop])

    def _noun_clause(self, at: int, end: int) -> int:
        """Read a clause with a noun as its subject: ``my name is ...``, ``the divorce ...``."""
        stop = self._favorite(at, end)
        if stop > at:
            return stop
        owner, first = self._owner_of_noun(at, end)
        if first < 0:
            return at
        for index in range(first, min(end, first + _MAX_NOUN_PHRASE)):
            low = self._lows[index]
            for pattern in self._clauses.nouns.get(low, ()):
                stop = self._try_noun(owner, at, first, index, end, pattern)
                if stop > at:
                    return stop
            if not (low[:1].isalnum() and low not in self._grammar.roles and low not in self._grammar.breaks):
                break
        return at

    def _favorite(self, at: int, end: int) -> int:
        found = self._favorite_noun(at, end)
        if found is None or self._text.low(found[1]) not in {"is", "'s", "are"}:
            return at
        index = found[1] + 1
        while index < end and self._lows[index] in self._grammar.roles and self._lows[index] not in {"not", "been"}:
            index += 1
        value = self._slots.read("THINGS", index, end, False) if index < end else None
        if value is None:
            value = self._slots.read("NAMED", index, end, False) if index < end else None
        if value is None:
            return at
        for one in value.values:
            self._say(found[0], "favorite", one.text, "holds", label=found[2])
        return value.stop

    def _owner_of_noun(self, at: int, end: int) -> tuple[str, int]:
        """Return the owner of the noun phrase at `at`, and where it goes on; -1 if it has no plain owner."""
        low, text = self._lows[at], self._text
        if low in self._words["own"] or low == "the":
            mention = self._mention(at, end) if low != "the" else None
            if mention is not None:
                is_owner = text.low(mention.stop) == "'s" and mention.stop < end
                name = mention.names[0] if mention.names else mention.subject
                return (name, mention.stop + 1) if is_owner else (SPEAKER, at + 1)
            return SPEAKER, at + 1
        if low in self._words["owns_third"]:
            people = self._resolve(low)
            is_user = self._is_fact and not self._people and text.low(at + 1) not in {"name", "age"}
            if people or is_user:
                return people[0] if people else SPEAKER, at + 1
            return SPEAKER, -1
        stop = text.name_end(at, end)
        if stop > at and text.low(stop) == "'s" and low not in self._clauses.nouns:
            return text.join(at, stop), stop + 1
        return SPEAKER, at

    def _try_noun(self, owner: str, start: int, first: int, index: int, end: int, pattern: Pattern) -> int:
        rest = pattern.rest
        lead: tuple[Value, ...] = ()
        if rest[0].slot:
            if not self._is_lead(rest[0].slot, first, index):
                return -1
            lead, rest = (Value(self._text.join(first, index)),), rest[1:]
        elif any(low not in self._words["adjectives"] for low in self._lows[first:index]):
            return -1
        found = self._match_noun(rest, index, end)
        if found is None:
            return -1
        values, stop = found
        clause = _Clause(start, stop, pattern, "present", False, False, (lead, *values))
        return self._state(_Subject((owner,), (), first, "third"), clause, end)

    def _is_lead(self, slot: str, first: int, index: int) -> bool:
        """Return True for words that can be before the noun of a pattern."""
        said = self._lows[first:index]
        if slot == "CONDITION":
            return not self._words["conditions"].isdisjoint(said)
        if slot == "VEHICLE":
            return any(self._slots.is_vehicle(place) for place in range(first, index))
        return bool(said) and self._words["pronouns"].isdisjoint(said)

    def _match_noun(
        self, rest: tuple[Element, ...], at: int, end: int
    ) -> tuple[tuple[tuple[Value, ...], ...], int] | None:
        """Match a noun pattern, in which adverbs may be before the words that follow a verb."""
        index, values = at, list[tuple[Value, ...]]()
        for element in rest:
            while (
                index < end and index > at and self._grammar.roles.get(self._lows[index]) in {"now", "adverb", "partly"}
            ):
                index += 1
            if element.slot:
                found = self._slots.read(element.slot, index, end, False)
                if found is None:
                    return None
                values.append(found.values)
                index = found.stop
            elif index < end and self._lows[index] in element.words:
                index += 1
            elif not element.is_optional:
                return None
        return tuple(values), index

    def _about_speaker(self, at: int, end: int) -> int:
        """Read a clause about the speaker: ``(Doc) put me on lisinopril``."""
        for pattern, form in self._clauses.heads.get(self._lows[at], ()):
            if pattern.group != "me" or not pattern.can_follow(self._text.low(at + 1)) or form in {"ing", "base", "be"}:
                continue
            if not self._can_be_medical(pattern, at):
                continue
            found = self._match(pattern.rest, at + 1, end, False)
            if found is not None:
                clause = _Clause(at, found[1], pattern, "past", False, False, found[0])
                return self._state(_Subject((SPEAKER,), (), at, "first"), clause, end)
        return at

    def _can_be_medical(self, pattern: Pattern, at: int) -> bool:
        """Return False for a pattern that needs a doctor as its subject ("put me on REST"), if none is in front."""
        names_speaker = any("me" in element.words or "my" in element.words for element in pattern.rest)
        takes_any_word = any(element.slot == "DRUGS" for element in pattern.rest) and pattern.head != "prescribe"
        if names_speaker and not takes_any_word:
            return True
        medics = self._words["medics"] - {"they"} if names_speaker else self._words["medics"]
        return not medics.isdisjoint(self._lows[max(0, at - 3) : at])

    # Meaning

    def _state(self, subject: _Subject, clause: _Clause, end: int) -> int:
        """Make the statements of a clause; return the index after it and its adjuncts, or -1 if it means nothing."""
        clause_end = self._clause_end(clause.stop, end)
        tail = self._lows[clause.stop : clause_end]
        group = clause.pattern.group
        if group == "trip" and not self._is_trip(clause, tail):
            return -1
        when = self._when(clause.start, self._skip_start(clause_end, end))
        subjects = subject.names
        has_employer = any(meaning.family == "works_at" for meaning in clause.pattern.meanings)
        said = False
        first, stop = len(self.statements), clause.stop
        for meaning in clause.pattern.meanings:
            effect, is_certain = self._effect(meaning, subject, clause, tail)
            if effect is None or (meaning.family.startswith("works_") and self._leaves_place(clause, tail)):
                continue
            said = True
            self._say_values(meaning, subject, clause, effect, is_certain, when)
            if effect != "ends" and is_certain and meaning.slot == "1":
                after = self._adjuncts(meaning.family, effect, subjects, clause.stop, end, when, has_employer)
                stop = max(stop, after)
        if said:
            if self._is_ahead(clause):
                said_now = self.statements[first:]
                self.statements[first:] = [one._replace(is_planned=one.family in _ARRANGED) for one in said_now]
            self._subject, self._last_tense = subject, clause.tense
            stop = max(stop, self._contrast(subject, clause, end))
            stop = self._gapped(clause, stop, end)
        if group == "refusal" and not said:
            return -1
        return stop if said or clause.is_negative or clause.tense in {"past", "plan", "future"} else -1

    def _leaves_place(self, clause: _Clause, tail: list[str]) -> bool:
        """Return True for ``we left Rome at 6``, ``I left Anna``, which end no job."""
        if clause.pattern.head != "leave" or len(clause.pattern.rest) != 1 or not clause.values:
            return False
        known = {name for name, _ in self._people[-_MAX_KNOWN:]}
        is_person = any(value.text in known for value in clause.values[0])
        said = self._lows[max(0, clause.start - MAX_CLAUSE_WORDS) : clause.stop + MAX_CLAUSE_WORDS]
        is_work = not self._words["work_words"].isdisjoint(said)
        is_other = bool(tail) and tail[0] in self._words["after_left"]
        return is_person or is_other or ("we" in self._lows[max(0, clause.start) : clause.stop] and not is_work)

    def _gapped(self, clause: _Clause, at: int, end: int) -> int:
        """Read ``and Isaac at Barclays`` after ``Dan works at Lloyds``; return the index after the last one."""
        rest, meaning = clause.pattern.rest, clause.pattern.meanings[0]
        fixed = [element.words for element in rest[:-1]]
        is_plain = clause.tense == "present" and not clause.is_negative and len(clause.pattern.meanings) == 1
        if not (is_plain and rest and rest[-1].slot and fixed and all(fixed)) or clause.pattern.group != "state":
            return at
        for _ in range(_MAX_GAPPED):
            first = at
            while first < min(end, at + 2) and self._lows[first] in _GAP_LEADS:
                first += 1
            subject = self._read_subject(first, end) if at < first < end else None
            if subject is None or subject.person not in {"third", "plural"}:
                return at
            value = subject.stop + len(fixed)
            if value >= end or any(self._lows[subject.stop + i] not in each for i, each in enumerate(fixed)):
                return at
            found = self._slots.read(rest[-1].slot, value, end, False)
            if found is None:
                return at
            for name in subject.names:
                for one in found.values:
                    self._say(name, meaning.family, one.text, "holds", "", meaning.is_certain, meaning.label)
            at = found.stop
        return at

    def _contrast(self, subject: _Subject, clause: _Clause, end: int) -> int:
        """Read ``, not Leicester`` after ``I live in Leeds``; return the index after it."""
        at, last = clause.stop, clause.pattern.rest[-1:]
        first = next((at + len(words) for words in _CONTRASTS if self._lows[at : at + len(words)] == words), -1)
        if first < 0 or first >= end or not last or not last[0].slot:
            return at
        found = self._slots.read(last[0].slot, first, end, False)
        if found is None or clause.is_negative or clause.pattern.group not in ("state", "change"):
            return at
        family = clause.pattern.meanings[0].family
        known = clause.values[-1][0].text[:1].isupper() if clause.values and clause.values[-1] else False
        for name in subject.names:
            for value in found.values:
                if value.text[:1].isupper() == known:
                    self._say(name, family, value.text, "ends")
        return found.stop

    def _clause_end(self, at: int, end: int) -> int:
        """Return the end of the words that say when a clause held."""
        for index in range(at, min(end, at + MAX_CLAUSE_WORDS)):
            if self._lows[index] in self._words["clause_ends"]:
                return index
        return min(end, at + MAX_CLAUSE_WORDS)

    def _skip_start(self, at: int, end: int) -> int:
        """Return the end of ``, starting in May`` or ``and start on Monday`` at an index, or the index."""
        is_start = self._text.low(at) in {",", "and"} and self._text.low(at + 1) in self._words["start_dates"]
        return self._clause_end(at + 1, end) if is_start else at

    def _is_trip(self, clause: _Clause, tail: list[str]) -> bool:
        if clause.tense not in {"plan", "future", "progress", "present"}:
            return False
        if clause.is_negative:
            return clause.tense != "present"
        if clause.pattern.head == "do" and any(self._is_language(value) for value in clause.values[0]):
            return False  # "doing Greek instead"
        tail = [*tail, *self._lows[max(0, clause.start - _MAX_NOUN_PHRASE) : clause.start]]
        is_timely = not self._words["timely"].isdisjoint(tail) or not self._words["months"].isdisjoint(tail)
        is_timely |= any(
            low[:1].isdigit() or low in {"holiday", "vacation", "honeymoon", "instead", "trip"} for low in tail
        )
        is_known = any(said.family == "plans_trip_to" for said in self.statements)
        if clause.tense == "plan":
            return "always" not in self._lows[max(0, clause.start - 1) : clause.stop]
        return is_timely or is_known

    def _is_language(self, value: Value) -> bool:
        return value.text.lower() in self._words["languages"] | self._words["peoples"]

    def _when(self, start: int, end: int) -> str:
        """Return the words of a clause, and those just before it, if some of them may say when."""
        first = max(0, start - 4)
        said = self._lows[first:end]
        is_dated = any(low[:1].isdigit() for low in said)
        if not is_dated and self._words["timely"].isdisjoint(said) and self._words["months"].isdisjoint(said):
            return ""
        first = next(
            (i + 1 for i in range(start - 1, first - 1, -1) if self._lows[i] in {".", "!", "?", ";", "\n"}), first
        )
        return self._text.join(first, end)

    def _effect(
        self, meaning: Meaning, subject: _Subject, clause: _Clause, tail: list[str]
    ) -> tuple[Effect | None, bool]:
        """Return the effect of a meaning in a clause, and if it is certain; None if it says nothing."""
        if clause.tense == "plan" and clause.pattern.group != "trip" and self._is_wish(clause):
            return None, False
        if clause.pattern.group == "state":
            return self._state_effect(meaning, subject, clause, tail)
        if clause.pattern.group == "refusal":
            return self._refusal_effect(meaning, clause, tail)
        if clause.pattern.group == "trip" and clause.is_negative:
            return "ends", meaning.is_certain
        if clause.is_negative and clause.pattern.head != "can":
            return None, False
        sign: Effect = "ends" if meaning.sign == "-" else "begins"
        if meaning.sign == "~":
            return ("past", True) if clause.tense in {"past", "perfect", "present"} else (None, False)
        if not meaning.sign:
            sign = "holds"
        if clause.tense in {"past", "perfect", "present"} or clause.pattern.group == "trip":
            return sign, meaning.is_certain
        if clause.tense in {"progress"}:
            begins = any(other.sign == "+" for other in clause.pattern.meanings)
            is_ending = sign == "ends" and not begins
            is_sure = (
                is_ending or meaning.is_firm or "third" in subject.person or not self._words["future"].isdisjoint(tail)
            )
            return sign, meaning.is_certain and is_sure
        if clause.tense in {"future", "plan"}:
            is_near = not self._words["future"].isdisjoint(tail)
            return sign, clause.tense == "future" and meaning.is_firm and is_near
        if clause.tense == "start" and sign == "begins":
            return sign, meaning.is_certain
        return None, False

    def _is_ahead(self, clause: _Clause) -> bool:
        """Return True for ``I'll join Galp``, ``we're moving to Oslo``, which are not true yet."""
        return clause.tense in {"plan", "future"} or (clause.tense == "progress" and clause.pattern.group == "change")

    def _is_wish(self, clause: _Clause) -> bool:
        """Return True for ``I want to live in Oslo``, ``thinking of renting in Leith``, which may never come true."""
        return not self._words["wishes"].isdisjoint(self._lows[clause.start : clause.start + _MAX_WISH_WORDS])

    def _refusal_effect(self, meaning: Meaning, clause: _Clause, tail: list[str]) -> tuple[Effect | None, bool]:
        """Return the effect of a clause that says something only if it is negated (``I don't eat meat``)."""
        if not clause.is_negative or clause.tense not in {"present", "perfect", "progress"}:
            return None, False
        is_over = "longer" in self._lows[clause.start : clause.stop] or not _CESSATION.isdisjoint(tail)
        if meaning.family == "avoids":
            return ("begins" if is_over else "holds"), True
        if meaning.family == "works_at":
            return ("ends", True) if is_over else (None, False)
        if is_over:  # to like something no more is not to dislike it
            return None, False
        return ("ends" if meaning.sign == "-" else "holds"), True

    def _state_effect(
        self, meaning: Meaning, subject: _Subject, clause: _Clause, tail: list[str]
    ) -> tuple[Effect | None, bool]:
        tense, family = clause.tense, meaning.family
        is_new = (
            clause.is_new
            or not self._words["now"].isdisjoint(tail)
            or self._text.low(subject.stop - 2) in {"now", "nowadays"}
        )
        is_new |= "since" in tail or self._text.low(clause.start - 1) in {"now", "nowadays"}
        if clause.start > 0 and self._lows[clause.start - 1] in {
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "tomorrow",
        }:
            is_new = True
        if clause.is_negative and clause.pattern.head != "can":
            is_lasting = tense == "perfect" and family == "likes"
            return ("ends", meaning.is_certain) if tense in {"present", "progress"} or is_lasting else (None, False)
        is_stay = family == "lives_in" and clause.pattern.is_copular
        if is_stay and not self._words["transient"].isdisjoint(tail):
            return None, False
        if tense == "progress" and family in _NO_PROGRESS:
            return None, False
        if tense in {"present", "perfect", "progress"}:
            if {"until", "till"} & set(tail):
                return "past", True
            return "begins" if is_new else "holds", meaning.is_certain
        if tense == "past":
            if family in {"is_from", "birthday"}:
                return "holds", meaning.is_certain
            if family == "kin":
                return "holds", meaning.is_certain
            if family in {"likes", "dislikes", "prefers", "age", "name"}:
                return None, False
            if family == "works_at" and not meaning.is_certain:
                return None, False  # "I fixed the boiler at the Royal Oak"
            is_over = family in {"works_as", "works_at"} and (tail[:1] == ["for"] or not _BEFORE.isdisjoint(tail))
            return "past", is_over or bool({"until", "till"} & set(tail))
        if tense == "used":
            return "past", True
        if tense in {"start", "stop"}:
            return "begins" if tense == "start" else "ends", meaning.is_certain
        return "begins", meaning.is_firm

    def _say_values(
        self,
        meaning: Meaning,
        subject: _Subject,
        clause: _Clause,
        effect: Effect,
        is_certain: bool,
        when: str,
    ) -> None:
        if clause.pattern.group == "death":
            self._say_death(subject, when)
            return
        if meaning.slot == "S":
            for name in subject.names:
                if name and not name.startswith("my "):
                    self._say(SPEAKER, meaning.family, name, effect, when, is_certain)
            return
        names = subject.names[:1] if meaning.slot == "&" else subject.names
        if meaning.family in _SHARED and subject.person == "first" and meaning.slot != "&":
            names = (*names, *subject.others)
        for name in names:
            for value in self._values(meaning, subject, clause):
                self._say_value(name, meaning, value, effect, is_certain, when)

    def _values(self, meaning: Meaning, subject: _Subject, clause: _Clause) -> Iterable[Value]:
        if meaning.slot == "&":
            return [Value("" if name.startswith("my ") else name) for name in subject.others] or [Value("")]
        if meaning.slot.startswith("="):
            return [Value(meaning.slot[1:].replace("_", " "))]
        if meaning.slot == "_":
            return [Value("")]
        if meaning.slot == "0" and clause.pattern.group != "noun":
            injured = self._grammar.injuries.get(clause.pattern.head, "")
            return [Value(f"{injured} {value.text}") for value in clause.values[0]]
        place, _, noun = meaning.slot.partition("+")
        number = int(place) - (clause.pattern.group != "noun")
        values = clause.values[number] if number < len(clause.values) else (Value(""),)
        return [value._replace(text=f"{value.text} {noun}") for value in values] if noun else values

    def _names_another(self, name: str, family: str, value: str) -> bool:
        """Return True for the name of another; a relative gets it: ``my granny ... her name is Ernestine``."""
        if family != "name" or not name:
            return False
        owner, _, noun = name.rpartition("'s ") if "'s " in name else (SPEAKER, "", name.removeprefix("my "))
        kin = self._grammar.kin.get(noun) if noun != name else None
        if kin is not None:
            self._say(owner, kin.family, value, "holds", label=kin.label)
            self._add_person(value, kin.gender)
        return True

    def _say_value(
        self, name: str, meaning: Meaning, value: Value, effect: Effect, is_certain: bool, when: str
    ) -> None:
        family, label = (value.family, value.label) if meaning.family == "kin" else (meaning.family, meaning.label)
        is_loss = meaning.family == "kin" and effect == "ends"
        if not family or self._names_another(name, family, value.text) or (is_loss and family not in _MORTAL):
            return
        if family == "partner" and value.gender and effect != "ends":
            label = "boyfriend" if value.gender == "m" else "girlfriend"
        index = self._say(
            name, family, value.text, effect, when, is_certain and (bool(value.text) or effect == "ends"), label
        )
        if value.is_unnamed and index >= 0 and effect != "ends":
            self._unnamed = (
                *(i for i in self._unnamed if self.statements[i].family == family and i == index - 1),
                index,
            )
            self._unnamed_gender = value.gender
        elif load_families()[family].answer == "person" and value.text:
            self._add_person(value.text, value.gender)
            if name and family != "kin":
                self._add_person(name)
            self._group = tuple(each for each in (name, value.text) if each)
        elif family == "owns" and index >= 0 and effect != "ends" and not value.text[:1].isupper():
            self._unnamed = (index,)

    def _say_death(self, subject: _Subject, when: str) -> None:
        for name in subject.names:
            if not name:
                continue
            families = [subject.kin] if subject.kin else ["has_pet", "married_to"]
            for family in families:
                if family in _MORTAL:
                    value = "" if name.startswith("my ") else name
                    self._say(subject.owner, family, value, "ends", when, bool(value) or family != "has_pet")

    def _adjuncts(
        self,
        family: str,
        effect: Effect,
        subjects: tuple[str, ...],
        at: int,
        end: int,
        when: str,
        has_employer: bool = False,
    ) -> int:
        """Read more values after the first: the employer of a job, the place of a home.

        Args:
            has_employer: True if the clause names one, so that a place is where it is, and not a home.
        """
        table, last = self._grammar.adjuncts.get(family), at
        if table is None:
            return at
        index, stop = at, min(end, at + MAX_ADJUNCT_WORDS)
        is_placed = has_employer
        while index < stop:
            low = self._lows[index]
            if low in {"and", "but", ";", "because", "who", "so"}:
                break
            if family == "name" and low not in table and index > at:
                break
            if low == "," and self._ends_adjuncts(family, index, table):
                break
            step = index + 1
            for slot, other, sign, fixed in table.get(low, ()):
                first = index + 1 + len(fixed)
                if low == "," and index > at:
                    continue
                if (is_placed and other == "lives_in") or tuple(self._lows[index + 1 : first]) != fixed:
                    continue
                found = self._slots.read(slot, first, end, False) if first < end else None
                if found is None:
                    continue
                is_placed |= other == "works_at"
                for name in subjects:
                    for value in found.values:
                        if value.text:
                            self._say(name, other, value.text, "ends" if sign == "-" else effect, when, sign != "?")
                last = step = found.stop
                break
            index = step
        return last

    def _ends_adjuncts(self, family: str, comma: int, table: Mapping[str, object]) -> bool:
        """Return True if no further value of a clause follows a comma."""
        return "," not in table and (family == "works_as" or self._text.low(comma + 1) not in table)

    def _say(
        self,
        subject: str,
        family: str,
        value: str,
        effect: Effect,
        when: str = "",
        is_certain: bool = True,
        label: str = "",
    ) -> int:
        """Add a statement; return its index, or -1 for one that says nothing."""
        if value and value.casefold() == subject.casefold():
            return -1
        label = "" if label == family else label
        if family == "lives_with" and effect == "begins":
            self._housemates[value] = subject
        elif family == "lives_in" and subject in self._housemates and effect in ("holds", "begins"):
            self._say(self._housemates.pop(subject), family, value, "begins", when, is_certain)
        self.statements.append(Statement(subject, family, value, effect, None, is_certain, label, when))
        return len(self.statements) - 1
