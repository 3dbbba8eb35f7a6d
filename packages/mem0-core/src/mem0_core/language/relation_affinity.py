"""Affinity of a term of a question to the label of a relation, or to the type of a node, by words and families.

Labels have a direction. ``alice -- sister -- anna`` and ``anna -- is_sister_of -- alice`` both lead from Alice to her
sister; ``tom -- boss_of -- anna`` leads from Anna to her boss, and not the other way. ``carol -- daughter -- alice``
leads from Alice to her mother.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.language.families import LabelSense, families_of_noun, load_families, read_label

Sex = Literal["female", "male", ""]


class Fit(NamedTuple):
    """Affinity of a label to a term in the direction of the relation and against it, each in [0, 1]."""

    forward: float
    backward: float


_NO_FIT = Fit(0.0, 0.0)
_SAME_FAMILY = 0.95
_NARROWER = 0.85  # a sister for "sibling"
_BROADER = 0.65  # a sibling for "sister"
_INVERSE = 0.8
_LATER_FAMILY = 0.03  # lost for each family that fits the term better
_SAME_SEX = 0.5  # anna -- wife -- eve, for Eve's wife

_LISTS = """
fillers: has have had is are was were be been a an the named called name s to
turns: of by for
changes: law ex former step foster god half future not never no
owning: has have had own owns owned keeps pet adopted bought got named called with belongs
favorites: favorite favourite fave
"""
_FILLERS, _TURNS, _CHANGES, _OWNING, _FAVORITES = (
    frozenset(line.partition(":")[2].split()) for line in _LISTS.strip().splitlines()
)
_WORD = re.compile(r"[^\W_]+")
_MIN_AFFINITY = 0.5
_OVER_TERM = re.compile(r"^(?:ex|former|previous)[- ]")


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A label or a term: its words without fillers and endings; True if it points the other way."""

    words: tuple[str, ...]
    is_reversed: bool

    @property
    def head(self) -> str:
        return self.words[-1] if self.words else ""


@text_cache(65_536)
def label_affinity(term: str, label: str, families: tuple[str, ...] = ()) -> Fit:
    """Return the affinity of a relation's label to a term: 1 for the same words, less for related words, 0 for none.

    Args:
        families: names of the families that the term may mean, best first; by default those of its noun.
    """
    wanted, given = _parse_phrase(term), _parse_phrase(label)
    families = families or _families_of_term(term)
    sense = read_label(label)
    if families and sense is not None:
        fit = _compare_families(term, families, sense, given)
        return Fit(*(score if score >= _MIN_AFFINITY else 0.0 for score in fit))
    if not wanted.words or not given.words:
        return _NO_FIT
    score = _compute_similarity(wanted, given)
    score = score if score >= _MIN_AFFINITY else 0.0
    return Fit(0.0, score) if given.is_reversed else Fit(score, 0.0)


def kind_affinity(term: str, kind: str) -> float:
    """Return the affinity of the type or the name of a node to a term, in [0, 1]: "dog" for a node of the type dog."""
    wanted, given = _parse_phrase(term), _parse_phrase(kind)
    if not wanted.words or not given.words:
        return 0.0
    score = _compute_similarity(wanted, given)
    return score if score >= _MIN_AFFINITY else 0.0


def is_possessive(label: str) -> bool:
    """Return True for a label that only says "has", so that the type of the node at its end identifies the thing."""
    return not _OWNING.isdisjoint(_WORD.findall(label.casefold()))


def are_opposed(term: str, label: str, families: tuple[str, ...] = ()) -> bool:
    """Return True if the families of a term and a label differ: embedders put cats near dogs."""
    families, sense = families or _families_of_term(term), read_label(label)
    if sense is None or not families:
        return False
    if sense.family in families:
        return _exclude_each_other(_noun_of(term), sense.noun)
    related = {load_families()[name].broader for name in families} | {load_families()[sense.family].broader}
    return sense.family not in related and related.isdisjoint(families)


def sex_of_term(term: str) -> Sex:
    """Return the sex of the persons that a term means; empty if it does not say."""
    return _sexes().get(_noun_of(term), "")


def sex_of_label(label: str) -> tuple[Sex, Sex]:
    """Return the sex that a label states of the source and of the destination of its relations."""
    sense = read_label(label)
    sex = "" if sense is None else _sexes().get(sense.noun or sense.family, "")
    return (sex, "") if sense is not None and sense.is_reversed else ("", sex)


# --- families --------------------------------------------------------------------------------------------------------


def _compare_families(term: str, families: Sequence[str], sense: LabelSense, given: _Phrase) -> Fit:
    if sense.is_over and not _OVER_TERM.match(term):
        return _NO_FIT
    noun, known = _noun_of(term), load_families()
    ahead = _compare_ahead(term, noun, families, sense, given)
    inverse = known[sense.family].inverse or _inverse_of(known[sense.family].broader)
    against = 0.0
    for place, name in enumerate(families):
        if inverse and inverse in (name, known[name].broader):
            is_same_sex = bool(sense.noun) and _sexes().get(noun, "") == _sexes().get(sense.noun, "-")
            score = _SAME_SEX if sense.family == name and is_same_sex else _INVERSE
            against = max(against, score - _LATER_FAMILY * place)
    return Fit(against, ahead) if sense.is_reversed else Fit(ahead, against)


def _inverse_of(name: str) -> str:
    return load_families()[name].inverse if name else ""


def _compare_ahead(term: str, noun: str, families: Sequence[str], sense: LabelSense, given: _Phrase) -> float:
    """Return how well a label fits a term in the direction from the subject to the value."""
    known = load_families()
    best = 0.0
    for place, name in enumerate(families):
        if sense.family == name:
            score = _compare_nouns(term, noun, name, sense, given)
        elif known[sense.family].broader == name:
            score = _NARROWER
        elif known[name].broader == sense.family and known[name].answer in ("person", "organization"):
            score = _BROADER
        else:
            continue
        best = max(best, score - _LATER_FAMILY * place if score else 0.0)
    return best


def _compare_nouns(term: str, noun: str, family: str, sense: LabelSense, given: _Phrase) -> float:
    """Return how well a label of the very family of a term fits it, by their nouns and adjectives."""
    wanted = _parse_phrase(term)
    if wanted.words == given.words:
        return 1.0
    if family == "favorite":
        what = [word for word in given.words if word not in _FAVORITES]
        return (0.98 if wanted.head in what else 0.0) if what else _BROADER
    if _exclude_each_other(noun, sense.noun):
        return 0.0
    score = _SAME_FAMILY
    groups = load_families()[family].kinds
    if any(noun in group for group in groups) and sense.noun != noun:
        score = _BROADER
    elif any(sense.noun in group for group in groups) and sense.noun != noun:
        score = _NARROWER
    missing = _miss_share(wanted, given)
    extra = 0.02 * (len(given.words) > 1)
    return (score - extra) * (1 - 0.2 * missing)


def _exclude_each_other(noun: str, other: str) -> bool:
    """Return True for nouns of one family that name different things: wife and husband, dog and cat."""
    one = _groups().get(noun)
    two = _groups().get(other)
    return one is not None and two is not None and one != two


@lru_cache(maxsize=1)
def _groups() -> Mapping[str, tuple[str, int]]:
    """Return the family and the number of the group of each noun that excludes others."""
    found: dict[str, tuple[str, int]] = {}
    for name, family in load_families().items():
        for number, group in enumerate((family.female, family.male, *family.kinds)):
            found |= dict.fromkeys(group, (name, number))
    return found


@lru_cache(maxsize=1)
def _sexes() -> Mapping[str, Sex]:
    """Return the sex of each noun that says it, and of the families of which all values have one."""
    found: dict[str, Sex] = {}
    for name, family in load_families().items():
        sexes: list[tuple[Sex, tuple[str, ...]]] = [("female", family.female), ("male", family.male)]
        for sex, nouns in sexes:
            found |= dict.fromkeys(nouns, sex)
        if bool(family.female) != bool(family.male):
            found[name] = "female" if family.female else "male"
    return found


@text_cache(4096)
def _families_of_term(term: str) -> tuple[str, ...]:
    words = term.split()
    if _FAVORITES.intersection(words):
        return ("favorite",)
    changed = not _CHANGES.isdisjoint(words) and not _OVER_TERM.match(term)
    return () if changed else families_of_noun(_noun_of(term))


def _noun_of(term: str) -> str:
    """Return the noun at the head of a term: "husband" of "ex-husband"; "sister" of "older sisters"."""
    words = term.split()
    noun = words[-1].removeprefix("ex-") if words else ""
    singular = _stem(noun)
    return noun if noun in _groups() or not families_of_noun(singular) else singular


# --- words -----------------------------------------------------------------------------------------------------------


def _compute_similarity(wanted: _Phrase, given: _Phrase) -> float:
    """Return how close the words of a label are to those of a term."""
    if _has_change_word(wanted, given) and set(wanted.words) != set(given.words):
        return 0.0
    if wanted.head in given.words:
        score = 1.0 if len(given.words) == 1 or set(given.words) <= set(wanted.words) else 0.9
    elif _are_synonyms(wanted.head, given.words):
        score = 0.9
    else:
        score = 0.0
    return score * (1 - 0.2 * _miss_share(wanted, given))


def _miss_share(wanted: _Phrase, given: _Phrase) -> float:
    """Return the share of the modifiers of a term that a label lacks."""
    modifiers, said = wanted.words[:-1], set(given.words)
    return sum(word not in said for word in modifiers) / len(modifiers) if modifiers else 0.0


def _are_synonyms(noun: str, words: Sequence[str]) -> bool:
    """Return True if one of some words is of the same group as a noun: a puppy is a dog."""
    group = _groups().get(noun)
    return group is not None and any(_groups().get(word) == group for word in words)


def _has_change_word(wanted: _Phrase, given: _Phrase) -> bool:
    """Return True if a word such as "ex" or "step" may make the two differ."""
    return not _CHANGES.isdisjoint({*wanted.words, *given.words})


@text_cache(65_536)
def _parse_phrase(text: str) -> _Phrase:
    words = _WORD.findall(text.casefold())
    kept = tuple(_stem(word) for word in words if word not in _FILLERS and word not in _TURNS)
    return _Phrase(kept, len(words) > 1 and words[-1] in _TURNS)


def _stem(word: str) -> str:
    word = re.sub("our(?=$|ite)", "or", word)  # favourite colour
    if len(word) < 4 or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") else word
