"""Relation families: the canonical relationships, and the words and labels by which people and models refer to them.

`families.toml` holds one table for each family. Rules, questions, traversal and validity share it, so that "work at",
"employer", "job" and ``employed_by`` mean the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.language._tables import load_tables
from mem0_core.language._word_forms import plurals_of, verb_forms

_AUXILIARIES = frozenset({"is", "are", "was", "were", "has", "have", "been", "currently", "now"})
_OVER = frozenset({"ex", "former", "previous", "formerly", "previously"})
_CHANGES = frozenset({"law", "step", "foster", "god", "half", "future", "not", "never", "no", "want", "wants", "plans"})
_FILLERS = {
    *("a", "an", "the", "my", "s", "own", "owns", "keeps", "has", "have", "had", "named", "called", "name"),
    *(
        "current",
        "present",
        "older",
        "younger",
        "elder",
        "eldest",
        "youngest",
        "oldest",
        "little",
        "big",
        "best",
        "good",
    ),
    *("close", "dear", "twin", "new", "old", "first", "second", "main", "favorite"),
}
_PREPOSITIONS = frozenset(["at", "in", "for", "as", "with", "to", "from", "on", "by", "under", "of"])


_CLAUSE_ENDS = re.compile(r"[.;!?]|,? \b(?:who|that|which|and|but|while)\b")
_NEAR_WORDS = 4


@dataclass(frozen=True, slots=True)
class Family:
    """A canonical relationship.

    Attributes:
        name: its label, such as ``lives_in``.
        answer: the kind of its value: person, place, organization, job, animal, thing, activity, date, number or name.
        is_single: True if a subject has one value at a time.
        nouns, verbs, asks: words and phrases that ask for the value; `asks` has * for the subject.
        labels: other labels that mean the same.
        inverse: name of the family of the opposite direction; empty if there is none.
        opposite: name of the family that contradicts it for the same value; empty if there is none.
        closes: names of other families of which a new value here ends the values: a new employer ends a job.
        broader: name of the family that includes it, as siblings include sisters; empty if there is none.
        value_verbs: verbs by which the value acts on the subject ("which bank employs me").
        female, male: nouns for a value of one sex.
        kinds: groups of synonymous nouns; nouns of two groups exclude each other.
        chains: families that lead to the same person one after the other, each with the noun that it holds for, or "".
    """

    name: str
    answer: str
    is_single: bool = False
    nouns: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    inverse: str = ""
    opposite: str = ""
    closes: tuple[str, ...] = ()
    broader: str = ""
    value_verbs: tuple[str, ...] = ()
    female: tuple[str, ...] = ()
    male: tuple[str, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    chains: tuple[tuple[str, tuple[str, ...]], ...] = ()


@lru_cache(maxsize=1)
def load_families() -> Mapping[str, Family]:
    """Return all families by name."""
    tables = load_tables("families")
    return {
        name: Family(
            name=name,
            answer=table["answer"],
            is_single=table.get("single", False),
            nouns=tuple(table.get("nouns", "").split()),
            verbs=_split_phrases(table.get("verbs", "")),
            asks=_split_phrases(table.get("asks", "")),
            labels=tuple(table.get("labels", "").split()),
            inverse=table.get("inverse", ""),
            opposite=table.get("opposite", ""),
            closes=tuple(table.get("closes", "").split()),
            broader=table.get("broader", ""),
            value_verbs=_split_phrases(table.get("value_verbs", "")),
            female=tuple(table.get("female", "").split()),
            male=tuple(table.get("male", "").split()),
            kinds=tuple(tuple(kind.split()) for kind in _split_phrases(table.get("kinds", ""))),
            chains=tuple(map(_read_chain, _split_phrases(table.get("chains", "")))),
        )
        for name, table in tables.items()
    }


def _split_phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(",") if phrase.strip())


def _read_chain(text: str) -> tuple[str, tuple[str, ...]]:
    noun, _, chain = text.rpartition(":")
    return noun.strip(), tuple(chain.split())


class LabelSense(NamedTuple):
    """Meaning of a relation's label.

    Attributes:
        family: name of its family.
        noun: the noun of the family in the label, if it has one: ``older_sister`` has "sister".
        is_reversed: True if the label points from the value to the subject: ``anna is_sister_of alice``.
        is_over: True for what was: ``ex_wife``.
    """

    family: str
    noun: str = ""
    is_reversed: bool = False
    is_over: bool = False


def family_of_label(label: str) -> Family | None:
    """Return the family of a relation's label, such as ``employed_by``; None for a label that no family knows."""
    sense = read_label(label)
    return None if sense is None or sense.is_over or sense.is_reversed else load_families()[sense.family]


@text_cache(4096)
def read_label(label: str) -> LabelSense | None:
    """Return the meaning of a relation's label in any of the forms that models write; None if no family knows it."""
    words = label.casefold().replace("-", "_").replace(" ", "_").split("_")
    words = [word for word in words if word]
    known = _exact_sense(words)
    if known is not None:
        return known
    words = [word for word in words if word not in ("a", "an", "the")]
    while len(words) > 1 and words[0] in _AUXILIARIES:
        known = _exact_sense(words)
        if known is not None:
            return known
        words = words[1:]
    known = _exact_sense(words)
    if known is not None or not words:
        return known
    is_over = bool(_OVER.intersection(words))
    plain = [word for word in words if word not in _OVER]
    if _CHANGES.intersection(plain):
        return None
    sense = (_exact_sense(plain) if is_over else None) or _noun_sense(plain) or _verb_sense(plain)
    return None if sense is None else sense._replace(is_over=is_over)


def _exact_sense(words: Sequence[str]) -> LabelSense | None:
    """Return the meaning of a label that a family lists."""
    name = _families_by_label().get("_".join(words))
    if name is None:
        return None
    nouns = load_families()[name].nouns
    noun = next((word for word in reversed(words) if name in families_of_noun(word)), "")
    noun = noun or next((one for one in nouns if one.replace("-", "_") == "_".join(words)), "")
    return LabelSense(name, noun, is_reversed=len(words) == 2 and words[1] == "of" and bool(noun))


def _noun_sense(words: Sequence[str]) -> LabelSense | None:
    """Return the meaning of a label that is a noun with adjectives, such as ``has_older_sister``."""
    if len(words) > 1 and words[-1] in ("in", "at", "is", "with"):
        words = words[:-1]
    is_reversed = len(words) > 1 and words[-1] in ("of", "to")
    kept = [
        word for word in (words[:-1] if is_reversed else words) if word not in _FILLERS and word not in _AUXILIARIES
    ]
    if len(kept) != 1:
        return None
    families = families_of_noun(kept[0])
    return LabelSense(families[0], kept[0], is_reversed) if families else None


def _verb_sense(words: Sequence[str]) -> LabelSense | None:
    """Return the meaning of a label that begins with a verb: ``works_as_professor_at`` is "work at"."""
    phrases = list(find_verbs(words[0]))
    if len(words) > 1 and words[-1] in _PREPOSITIONS:
        fitting = [one for one in phrases if one.words[1:] == (words[-1],) and not one.is_turned]
        if not fitting and words[-1] in ("in", "at"):
            places = ("place", "organization")
            fitting = [one for one in phrases if len(one.words) == 1 and load_families()[one.family].answer in places]
        return LabelSense(fitting[0].family) if fitting else None
    for phrase in phrases:
        if len(phrase.words) > 1 and tuple(words[1 : len(phrase.words)]) == phrase.words[1:] and not phrase.is_turned:
            return LabelSense(phrase.family)
    if len(words) == 1:
        return next((LabelSense(one.family, is_reversed=one.is_turned) for one in phrases if len(one.words) == 1), None)
    return None


@lru_cache(maxsize=1)
def _families_by_label() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, family in load_families().items():
        for label in family.labels:
            found.setdefault(label, name)
    return found | {name: name for name in load_families()}


# --- nouns and verbs -----------------------------------------------------------------------------------------------


class VerbPhrase(NamedTuple):
    """A verb with the words that follow it.

    Attributes:
        words: base form, then prepositions and the like; without "be".
        family: name of the family whose value it asks for.
        has_be: True if a form of "be" goes before it ("be based").
        is_turned: True if the value is its subject ("which bank employs me").
    """

    words: tuple[str, ...]
    family: str
    has_be: bool = False
    is_turned: bool = False


@lru_cache(maxsize=1)
def all_nouns() -> Mapping[str, tuple[str, ...]]:
    """Return the families of each noun, in the order of the families; plurals included."""
    found: dict[str, tuple[str, ...]] = {}
    for name, family in load_families().items():
        for noun in family.nouns:
            for form in dict.fromkeys((noun, *plurals_of(noun))):
                if name not in found.get(form, ()):
                    found[form] = (*found.get(form, ()), name)
    return found


@lru_cache(maxsize=256)
def with_narrower(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return families and, after them, those of persons that they include: a son is a child."""
    narrower = (one.name for one in load_families().values() if one.answer == "person" and one.broader in names)
    return tuple(dict.fromkeys([*names, *narrower]))


def families_of_noun(noun: str) -> tuple[str, ...]:
    """Return the names of the families of a noun; "hobbies" has those of "hobby"."""
    return all_nouns().get(noun, ())


def is_of_other_kind(text: str, value: str, noun: str, family: str) -> bool:
    """Return True if a text gives a value of a family another noun than a question: "my dog Rex", not "my cat".

    A noun for all values, such as "doctor", is another one than "dentist"; but a pet may be a cat.
    """
    found = load_families()[family]
    wanted = next((kind for kind in found.kinds if noun in kind or noun.removesuffix("s") in kind), ())
    if not wanted or not value:
        return False
    nouns = {one for kind in found.kinds for one in kind}
    if found.answer == "person":
        nouns.update(found.nouns)
    near = (word for word in _words_near(text, value) if word in nouns)
    return next(near, wanted[0]) not in wanted


def _words_near(text: str, value: str) -> Iterator[str]:
    """Yield the words of a value and those around it in its clause, nearest first: ``my dog is called Rex``."""
    place = text.casefold().find(value.casefold())
    if place >= 0:
        before, after = text[:place], text[place + len(value) :]
        clause = _CLAUSE_ENDS.split(before)[-1].split()[-_NEAR_WORDS:]
        for word in (*value.split(), *reversed(clause), *_CLAUSE_ENDS.split(after)[0].split()[:_NEAR_WORDS]):
            yield word.casefold().strip(",:'\"").removesuffix("'s").removesuffix("s")


@lru_cache(maxsize=1)
def _verbs() -> Mapping[str, tuple[VerbPhrase, ...]]:
    """Return the phrases that begin with each verb, the longest first."""
    found: dict[str, list[VerbPhrase]] = {}
    for name, family in load_families().items():
        phrases = [(phrase, False) for phrase in family.verbs] + [(phrase, True) for phrase in family.value_verbs]
        for phrase, is_turned in phrases:
            words = tuple(phrase.replace("can't", "not").replace("cannot", "not").split())
            has_be = words[0] == "be" and len(words) > 1
            verb = VerbPhrase(words[has_be:], name, has_be, is_turned)
            found.setdefault(verb.words[0], []).append(verb)
    return {first: tuple(sorted(some, key=lambda verb: -len(verb.words))) for first, some in found.items()}


def all_verb_phrases() -> Iterator[VerbPhrase]:
    """Yield the verb phrases of all families."""
    for phrases in _verbs().values():
        yield from phrases


def find_verbs(first: str) -> Iterator[VerbPhrase]:
    """Yield the phrases that a word in any form can begin, the longest first for each base form."""
    for lemma in dict.fromkeys((first, *lemmas_of(first))):
        yield from _verbs().get(lemma, ())


@lru_cache(maxsize=1)
def all_verb_forms() -> Mapping[str, tuple[str, ...]]:
    """Return the base forms of each form of a verb that begins a phrase, or is common."""
    phrases = [phrase.words for phrase in all_verb_phrases() if not phrase.has_be]
    return verb_forms({words[words[0] == "not"] for words in phrases})


def lemmas_of(form: str) -> tuple[str, ...]:
    """Return the base forms of a verb's form; empty for a word that is no known verb."""
    return all_verb_forms().get(form, ())
