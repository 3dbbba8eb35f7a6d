"""Words and clauses of a language, from its data file, compiled for the statement reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from mem0_core._system.records import dataclass
from mem0_core.language._tables import load_tables
from mem0_core.language.families import load_families

_MEANING = (
    r"(?P<mark>[?!])?(?P<sign>[+~-]?)(?P<family>\w+)(?:/(?P<label>\w+))?(?: (?P<slot>[0-9]\+\w+|[0-9_&S]|=[\w-]+))?$"
)
_SLOT = re.compile(r"[A-Z]+$")
_COPULA = "be"
INDIRECT = frozenset({"the", "a", "an", "one"})
"""First words of "the guy I'm seeing", "a friend of mine"."""
_NOTABLE = frozenset({"once", "it", "where", ",", "who"})


class Meaning(NamedTuple):
    """A statement that a clause makes: a sign, a family, and where its value comes from.

    Attributes:
        is_firm: True if a plan is as good as done ("I'm starting at Galp").
    """

    sign: str
    family: str
    label: str
    slot: str
    is_certain: bool
    is_firm: bool


class Element(NamedTuple):
    """A part of a pattern: words of which one is taken as it is, or a slot."""

    words: frozenset[str]
    slot: str = ""
    is_optional: bool = False


class Pattern(NamedTuple):
    """A clause without its subject.

    Attributes:
        group: ``state`` or ``change`` (verb phrases), ``me`` (verb phrases about the speaker) or ``noun``.
        is_copular: True if a form of "to be" is before its first element.
        rest: elements after the head.
    """

    group: str
    meanings: tuple[Meaning, ...]
    head: str
    is_copular: bool
    rest: tuple[Element, ...]

    @property
    def has_preposition(self) -> bool:
        """True if a fixed word is between the head and the first slot."""
        return bool(self.rest) and bool(self.rest[0].words) and not self.rest[0].is_optional

    @property
    def is_habit(self) -> bool:
        """True for a verb without an object, which says something of a habit only in the present ("I run")."""
        return len(self.rest) == 1 and "$" in self.rest[0].words

    def can_follow(self, after: str) -> bool:
        """Return True if the word after the head can be the first of the rest."""
        if not self.rest:
            return True
        first = self.rest[0]
        return bool(first.slot) or first.is_optional or after in first.words or "$" in first.words


class Adjunct(NamedTuple):
    """A value that may follow another one: the words after its first, a slot, and the family and sign of its value."""

    slot: str
    family: str
    sign: str
    words: tuple[str, ...]


class Kin(NamedTuple):
    """A noun for a relative, another person of a known role, or a pet."""

    family: str
    label: str
    gender: str
    is_plural: bool


@dataclass(frozen=True)
class Clauses:
    """The patterns of a language.

    Attributes:
        heads: form of a word -> the patterns that it can begin, longest first, each with the form of the verb.
        copular_slots: patterns of "to be" that begin with a slot.
        speaker_heads: heads of patterns about the speaker.
        nouns: first word of a noun pattern -> the patterns.
    """

    heads: Mapping[str, tuple[tuple[Pattern, str], ...]]
    copular_slots: tuple[Pattern, ...]
    speaker_heads: frozenset[str]
    nouns: Mapping[str, tuple[Pattern, ...]]


@dataclass(frozen=True)
class Grammar:
    """A language.

    Attributes:
        words: lists of words by name.
        roles: role of each word between subject and verb.
        slips: words that stand for several, with those.
        kin: noun -> the relation that it names.
        adjuncts: family -> first word -> the values that may follow.
        no_names: words that are no names even if capitalized.
        breaks: words that end a noun phrase.
        casual: words that only a text in lower case has.
        slurred: finds nouns with an "s" that lacks its apostrophe ("my dads a postman").
        slurred_ends: finds the end of any word where `slurred` may match; few texts have one, so it is tried first.
        injuries: verb -> how it leaves a part of the body.
        tables: the data file.
    """

    words: Mapping[str, frozenset[str]]
    roles: Mapping[str, str]
    slips: Mapping[str, tuple[str, ...]]
    kin: Mapping[str, Kin]
    adjuncts: Mapping[str, Mapping[str, tuple[Adjunct, ...]]]
    no_names: frozenset[str]
    breaks: frozenset[str]
    casual: frozenset[str]
    injuries: Mapping[str, str]
    slurred: re.Pattern[str]
    slurred_ends: re.Pattern[str]
    tables: Mapping[str, Any]

    @cached_property
    def clauses(self) -> Clauses:
        """Patterns of clauses, compiled at the first statement: the names of a query need none."""
        forms = _read_forms(self.tables["forms"]["irregular"])
        patterns = [
            _inflect_words(pattern, forms) if group == "noun" else pattern
            for group, text in self.tables["clauses"].items()
            for pattern in _read_patterns(group, text)
        ]
        verbs = [pattern for pattern in patterns if pattern.group != "noun"]
        heads = _index_heads(verbs, forms)
        return Clauses(
            heads=heads,
            copular_slots=tuple(p for p in verbs if not p.head),
            speaker_heads=frozenset(head for head, each in heads.items() if any(one.group == "me" for one, _ in each)),
            nouns=_index_nouns(patterns),
        )

    @cached_property
    def notable(self) -> frozenset[str]:
        """Words at which a sentence is read on, even if no clause can begin there."""
        lists = ("unreal", "own", "owns_third", "leads", "links", "clause_starts", "first", "third")
        return INDIRECT.union(*(self.words[name] for name in lists), self.kin, self.clauses.speaker_heads, _NOTABLE)

    def endings(self, name: str) -> tuple[str, ...]:
        """Return a list of word endings."""
        return tuple(self.words[name])


@lru_cache(maxsize=8)
def load_grammar(language: str) -> Grammar:
    """Return the grammar of a language, such as ``english``."""
    table = load_tables(language)
    words = {name: frozenset(text.split()) for name, text in table["words"].items()}
    roles = {word: role for role, text in table["roles"].items() for word in text.split()}
    breaks = words["breaks"] | words["goes_on"]
    kin = _read_kin(words)
    slurred, slurred_ends = _compile_slurred(kin, words)
    return Grammar(
        words=words,
        roles=roles,
        slips={word: tuple(text.split()) for word, text in table["slips"].items()},
        kin=kin,
        adjuncts={family: _read_adjuncts(text) for family, text in table["adjuncts"].items()},
        no_names=words["stop"]
        | words["vague"]
        | words["unreal"]
        | words["leads"]
        | words["asks"]
        | breaks
        | set(roles),
        breaks=breaks,
        casual=words["casual"],
        injuries=table.get("injuries", {}),
        slurred=slurred,
        slurred_ends=slurred_ends,
        tables=table,
    )


def _compile_slurred(
    kin: Mapping[str, Kin], words: Mapping[str, frozenset[str]]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return `Grammar.slurred` and `Grammar.slurred_ends`."""
    nouns = [noun for noun, each in kin.items() if not each.is_plural and noun.isalpha()]
    owners, after = "|".join(sorted(words["own"] | words["owns_third"])), "|".join(sorted(words["after_slurred"]))
    slurred = re.compile(
        rf"\b((?:{'|'.join(sorted(nouns))})(?=s (?:{after})\b)|(?:{owners}) (?:name|birthday)(?=s (?!are\b)))s",
        re.IGNORECASE,
    )
    return slurred, re.compile(rf"s (?:{after})\b|(?:name|birthday)s ", re.IGNORECASE)


def _read_patterns(group: str, text: str) -> Iterator[Pattern]:
    for line in re.sub(r",\s*\n\s*", ", ", text.strip()).splitlines():
        about, _, phrases = line.partition(": ")
        meanings = tuple(_read_meaning(part.strip()) for part in about.split(";") if part.strip())
        for phrase in phrases.split(","):
            words = phrase.replace("'s", " 's").split()
            if not words:
                continue
            is_copular = words[0] == _COPULA
            words = words[is_copular:]
            if group != "noun" and words and not _SLOT.match(words[0]) and not words[0].startswith("("):
                head, words = words[0], words[1:]
            else:
                head = ""
            for each in head.split("/"):
                yield Pattern(group, meanings, each, is_copular, tuple(map(_read_element, words)))


def _inflect_words(pattern: Pattern, forms: Mapping[str, list[tuple[str, str, str]]]) -> Pattern:
    """Return a pattern in which a verb of the list matches in all its forms."""
    elements = [
        element._replace(
            words=element.words | {form for word in element.words if word in forms for form in _all_forms(word, forms)}
        )
        for element in pattern.rest
    ]
    return pattern._replace(rest=tuple(elements))


def _all_forms(word: str, forms: Mapping[str, list[tuple[str, str, str]]]) -> set[str]:
    more = {"is", "are", "'s", "has", "have"} if word in ("be", "have") else set[str]()
    return {form for form, _ in _inflect(word, forms)} | more


def _read_meaning(text: str) -> Meaning:
    match = re.match(_MEANING, text)
    assert match is not None, text
    slot = match["slot"] or "1"
    return Meaning(
        match["sign"], match["family"], match["label"] or "", slot, match["mark"] != "?", match["mark"] == "!"
    )


@lru_cache(maxsize=4_096)  # most elements are in several patterns
def _read_element(word: str) -> Element:
    if _SLOT.match(word):
        return Element(frozenset(), word)
    if word.startswith("("):
        return Element(frozenset(word.strip("()").replace("comma", ",").split("/")), is_optional=True)
    return Element(frozenset(word.split("/")))


def _read_forms(text: str) -> dict[str, list[tuple[str, str, str]]]:
    """Base form -> past, perfect participle and present participle, of irregular verbs."""
    forms: dict[str, list[tuple[str, str, str]]] = {}
    for part in text.split(";"):
        if words := part.split():
            base, past, done, doing = words
            forms.setdefault(base, []).append((past, done, doing))
    return forms


def _inflect(base: str, irregular: Mapping[str, list[tuple[str, str, str]]]) -> Iterator[tuple[str, str]]:
    """Yield the forms of a verb, each with its name: base, s, past, done or ing."""
    yield base, "base"
    if base == "have":
        yield "has", "s"
    elif base.endswith("y") and base[-2:-1] not in "aeiou":
        yield f"{base[:-1]}ies", "s"
    else:
        yield base + ("es" if base.endswith(("s", "sh", "ch", "x", "z", "o")) else "s"), "s"
    stem = base.removesuffix("e")
    regular = (f"{stem}ed", f"{stem}ed", f"{stem if base[-2:] != 'ee' else base}ing")
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        regular = (f"{base[:-1]}ied", f"{base[:-1]}ied", f"{base}ing")
    for past, done, doing in irregular.get(base, [regular]):
        yield past, "past"
        yield done, "done"
        yield doing, "ing"


def _index_heads(
    patterns: list[Pattern], irregular: Mapping[str, list[tuple[str, str, str]]]
) -> dict[str, tuple[tuple[Pattern, str], ...]]:
    unique = list(dict.fromkeys(sorted(patterns, key=lambda each: -len(each.rest))))
    found: dict[str, dict[tuple[int, str], None]] = {}  # by number: the hash of a pattern is slow
    inflected: dict[str, tuple[tuple[str, str], ...]] = {}
    for number, pattern in enumerate(unique):
        if not pattern.head:
            continue
        if pattern.head.startswith("^"):
            found.setdefault(pattern.head[1:], {})[number, "bare"] = None
        elif pattern.is_copular:
            found.setdefault(pattern.head, {})[number, "be"] = None
        else:
            if pattern.head not in inflected:
                inflected[pattern.head] = tuple(_inflect(pattern.head, irregular))
            for word, form in inflected[pattern.head]:
                found.setdefault(word, {})[number, form] = None
    return {word: tuple((unique[number], form) for number, form in each) for word, each in found.items()}


def _index_nouns(patterns: list[Pattern]) -> dict[str, tuple[Pattern, ...]]:
    found: dict[str, list[Pattern]] = {}
    for pattern in patterns:
        if pattern.group == "noun":
            first = next(element for element in pattern.rest if not element.slot)
            for word in first.words:
                found.setdefault(word, []).append(pattern)
    return {word: tuple(sorted(each, key=lambda one: -len(one.rest))) for word, each in found.items()}


def _read_kin(words: Mapping[str, frozenset[str]]) -> dict[str, Kin]:
    kin: dict[str, Kin] = {}
    for family in load_families().values():
        if family.answer not in ("person", "animal"):
            continue
        for noun in family.nouns:
            if noun in words["not_kin"]:
                continue
            gender = "m" if noun in words["male"] else "f" if noun in words["female"] else ""
            label = noun if noun in words["keeps"] else family.name
            is_plural = noun in words["plural_kin"] or (noun.endswith("s") and noun[:-1] in family.nouns)
            kin.setdefault(noun, Kin(family.name, label, gender, is_plural))
            if not noun.endswith("s"):
                plural = (
                    noun + "es"
                    if noun.endswith("ss")
                    else f"{noun[:-1]}ies"
                    if noun[-2:] in ("py", "ny")
                    else f"{noun}s"
                )
                kin.setdefault(plural, Kin(family.name, label, gender, is_plural=True))
    for breed in words["breeds"]:
        kin.setdefault(breed, Kin("has_pet", "has_pet", "", is_plural=False))
        kin.setdefault(f"{breed}s", Kin("has_pet", "has_pet", "", is_plural=True))
    return kin


def _read_adjuncts(text: str) -> dict[str, tuple[Adjunct, ...]]:
    found: dict[str, list[Adjunct]] = {}
    for part in text.split(";"):
        preposition, *fixed, slot, family = part.split()
        sign = family[0] if family[0] in "-?" else ""
        found.setdefault(preposition, []).append(Adjunct(slot, family.removeprefix(sign), sign, tuple(fixed)))
    return {preposition: tuple(each) for preposition, each in found.items()}
