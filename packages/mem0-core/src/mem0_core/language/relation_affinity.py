"""Affinity of a term of a question to the label of a relation, or to the type of a node, by words alone.

Labels have a direction. ``alice -- sister -- anna`` and ``anna -- is_sister_of -- alice`` both lead from Alice to her
sister; ``tom -- boss_of -- anna`` leads from Anna to her boss, and not the other way. ``carol -- daughter -- alice``
leads from Alice to her mother.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Fit", "are_opposed", "is_possessive", "kind_affinity", "label_affinity"]


class Fit(NamedTuple):
    """Affinity of a label to a term in the direction of the relation and against it, each in [0, 1]."""

    forward: float
    backward: float


_NO_FIT = Fit(0.0, 0.0)

# names of a class: synonyms in it | other synonyms in it
_CLASSES = """
parent: mother mom mum mommy mummy mama | father dad daddy papa
child kid: daughter | son
sibling: sister sis | brother bro
spouse: wife | husband | fiancé fiancée
partner: girlfriend | boyfriend
grandparent: grandmother grandma granny | grandfather grandpa granddad
grandchild: granddaughter | grandson
parentsibling: aunt auntie | uncle
siblingchild: niece | nephew
cousin:
friend buddy pal:
colleague coworker workmate teammate:
boss manager supervisor:
employee subordinate:
neighbor neighbour:
roommate flatmate housemate:
teacher professor tutor instructor:
student pupil:
doctor physician:
patient:
mentor coach:
mentee protégé:
landlord landlady:
tenant renter:
owner:
pet: dog puppy | cat kitten | rabbit bunny | hamster | parrot | horse pony | turtle | bird | fish
"""
_INVERSES = """
parent child, grandparent grandchild, parentsibling siblingchild, sibling sibling, spouse spouse, partner partner,
cousin cousin, friend friend, colleague colleague, neighbor neighbor, roommate roommate, boss employee, teacher student,
doctor patient, mentor mentee, landlord tenant, owner pet
"""
_AUXILIARIES = frozenset({"is", "are", "was", "were", "has", "have", "been", "currently", "now"})


def _strip_auxiliaries(label: str) -> str:
    """Return a label without its leading auxiliaries: IS_MARRIED_TO is married_to."""
    words = re.findall(r"[^\W_]+", label.casefold())
    while len(words) > 1 and words[0] in _AUXILIARIES:
        words.pop(0)
    return "_".join(words)


# terms = labels that answer them; < those that answer them against their direction
_PHRASES = """
employer company workplace = works_at works_for employed_by employed_at working_at
job occupation profession role = works_as is_a occupation_is
home city town residence address place = lives_in resides_in located_in based_in lives_at
birthplace = born_in
hometown = is_from comes_from born_in
country origin nationality = is_from comes_from
school university college = studies_at studied_at attends attended graduated_from
language = speaks
allergy = allergic_to
spouse wife husband = married_to <married_to
partner girlfriend boyfriend = dating <dating in_relationship_with <in_relationship_with
sport instrument game = plays
pet = owns_pet adopted
owner = <owns <has_pet <adopted
employee = <works_at <works_for <employed_by
author writer = <wrote <authored written_by
founder = <founded founded_by
mentor advisor = advised_by mentored_by <mentors <advises
car vehicle = drives
boss manager supervisor = reports_to works_under managed_by <manages <supervises
employee report = <reports_to <works_under manages supervises
"""


def _build_senses() -> dict[str, tuple[str, int]]:
    senses: dict[str, tuple[str, int]] = {}
    for line in _CLASSES.strip().splitlines():
        names, _, groups = line.partition(":")
        for number, group in enumerate((names, *groups.split("|"))):
            senses |= dict.fromkeys(group.split(), (names.split()[0], number))
    return senses


def _build_answers() -> dict[str, dict[str, Fit]]:
    answers: dict[str, dict[str, Fit]] = {}
    for line in _PHRASES.strip().splitlines():
        terms, _, labels = line.partition("=")
        for term in terms.split():
            fits = answers.setdefault(term, {})
            for label in labels.split():
                name = _strip_auxiliaries(label.lstrip("<"))
                forward, backward = fits.get(name, _NO_FIT)
                fits[name] = Fit(forward, 0.95) if label.startswith("<") else Fit(0.95, backward)
    return answers


_SENSES = _build_senses()
"""Word -> its class, and the number of its synonyms in the class; 0 for the names of the class itself."""
_INVERSE_CLASSES = {
    name: inverse
    for pair in _INVERSES.replace("\n", " ").split(",")
    for name, inverse in (pair.split(), pair.split()[::-1])
}
_ANSWERS = _build_answers()
"""Head of a term -> the labels that answer it."""

_LISTS = """
fillers: has have had is are was were be been a an the named called name s to
turns: of by for
changes: law ex former step foster god half future not never no
owning: has have had own owns owned keeps pet adopted bought got named called with belongs
"""
# A label that ends in a turn points the other way: anna is_sister_of alice.
_FILLERS, _TURNS, _CHANGES, _OWNING = (
    frozenset(line.partition(":")[2].split()) for line in _LISTS.strip().splitlines()
)
_SYMMETRIC = frozenset(name for name, inverse in _INVERSE_CLASSES.items() if name == inverse)
_WORD = re.compile(r"[^\W_]+")
_MIN_AFFINITY = 0.5


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A label or a term: its words without fillers and endings; True if it points the other way."""

    words: tuple[str, ...]
    is_reversed: bool

    @property
    def head(self) -> str:
        return self.words[-1] if self.words else ""


@lru_cache(maxsize=65_536)
def label_affinity(term: str, label: str) -> Fit:
    """Return the affinity of a relation's label to a term: 1 for the same words, less for related words, 0 for none."""
    wanted, given = _parse_phrase(term), _parse_phrase(label)
    answers = _ANSWERS.get(wanted.head, {})
    if (answer := answers.get(_strip_auxiliaries(label))) is not None:
        return answer
    if not wanted.words or not given.words:
        return _NO_FIT
    same = _compute_similarity(wanted, given)
    inverse = _compute_inverse_similarity(wanted, given)
    is_symmetric = _class_of(wanted.head) in _SYMMETRIC
    against = max(inverse, 0.85 * same if is_symmetric else 0.0)
    fit = Fit(against, same) if given.is_reversed else Fit(same, against)
    return Fit(*(score if score >= _MIN_AFFINITY else 0.0 for score in fit))


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


def are_opposed(term: str, label: str) -> bool:
    """Return True for two members of a class that differ in meaning: embedders put cats near dogs."""
    wanted = _SENSES.get(_parse_phrase(term).head)
    senses = [_SENSES.get(word) for word in _parse_phrase(label).words]
    return wanted is not None and any(
        sense is not None and sense != wanted and 0 not in (sense[1], wanted[1]) for sense in senses
    )


def _compute_similarity(wanted: _Phrase, given: _Phrase) -> float:
    """Return how close the words of a label are to those of a term."""
    if _has_change_word(wanted, given) and set(wanted.words) != set(given.words):
        return 0.0
    if wanted.head in given.words:
        score = 1.0 if len(given.words) == 1 or set(given.words) <= set(wanted.words) else 0.9
    else:
        score = max((_compare_words(wanted.head, word) for word in given.words), default=0.0)
    modifiers = wanted.words[:-1]
    missing = sum(word not in given.words for word in modifiers) / len(modifiers) if modifiers else 0.0
    return score * (1 - 0.2 * missing)


def _compare_words(term: str, word: str) -> float:
    """Return the similarity of two different words: synonyms, a class and its member, a member and its class."""
    wanted, given = _SENSES.get(term), _SENSES.get(word)
    if wanted is None or given is None or wanted[0] != given[0]:
        return 0.0
    if wanted[1] == given[1]:
        return 0.95
    return 0.85 if wanted[1] == 0 else 0.65 if given[1] == 0 else 0.0


def _compute_inverse_similarity(wanted: _Phrase, given: _Phrase) -> float:
    """Return the similarity to the inverse of a label: the mother of a person has that person as daughter or son."""
    if wanted.head not in _SENSES or _has_change_word(wanted, given):
        return 0.0
    inverse = _INVERSE_CLASSES.get(_class_of(wanted.head))
    return 0.8 if inverse and any(_class_of(word) == inverse for word in given.words) else 0.0


def _has_change_word(wanted: _Phrase, given: _Phrase) -> bool:
    """Return True if a word such as "ex" or "step" may make the two differ."""
    return not _CHANGES.isdisjoint({*wanted.words, *given.words})


@lru_cache(maxsize=65_536)
def _parse_phrase(text: str) -> _Phrase:
    words = _WORD.findall(text.casefold())
    kept = tuple(_stem(word) for word in words if word not in _FILLERS and word not in _TURNS)
    return _Phrase(kept, len(words) > 1 and words[-1] in _TURNS)


def _stem(word: str) -> str:
    word = re.sub("our(?=$|ite)", "or", word)  # favourite colour
    if word in _SENSES or len(word) < 4 or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") else word


def _class_of(word: str) -> str:
    return _SENSES.get(word, ("", 0))[0]
