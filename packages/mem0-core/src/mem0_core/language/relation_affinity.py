"""How well the word of a question fits the label of a relation, or the type of a node: pure, from words alone.

Labels are read with their direction. ``alice -- sister -- anna`` and ``anna -- is_sister_of -- alice`` both lead from
Alice to her sister, and not from a boss to whom they are boss of; ``carol -- daughter -- alice`` leads from Alice to
her mother.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Fit", "affinity", "contrasts", "kind_affinity", "possessive"]


class Fit(NamedTuple):
    """In [0, 1]: how well a label fits a term along its arrow, and against it."""

    forward: float
    backward: float


_NONE = Fit(0.0, 0.0)

# names of a class: members that mean the same | members that mean another thing
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
_HELPERS = frozenset({"is", "are", "was", "were", "has", "have", "been", "currently", "now"})


def _plain(label: str) -> str:
    """A label without the helping words it begins with: IS_MARRIED_TO is married_to."""
    words = re.findall(r"[^\W_]+", label.casefold())
    while len(words) > 1 and words[0] in _HELPERS:
        words.pop(0)
    return "_".join(words)


# terms = labels that answer them along their arrow; < against it
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
_SENSES: dict[str, tuple[str, int]] = {}
"""Word -> its class, and its place in it; 0 is the class itself."""
for _line in _CLASSES.strip().splitlines():
    _names, _, _groups = _line.partition(":")
    _class_name = _names.split()[0]
    for _place, _group in enumerate((_names, *_groups.split("|"))):
        _SENSES |= dict.fromkeys(_group.split(), (_class_name, _place))
_OPPOSITE: dict[str, str] = {}
for _pair in _INVERSES.replace("\n", " ").split(","):
    _one, _other = _pair.split()
    _OPPOSITE |= {_one: _other, _other: _one}
_ANSWERS: dict[str, dict[str, Fit]] = {}
"""Term -> the labels that answer it."""
for _line in _PHRASES.strip().splitlines():
    _terms, _, _labels = _line.partition("=")
    for _term in _terms.split():
        for _label in _labels.split():
            _along, _against = _ANSWERS.setdefault(_term, {}).get(_plain(_label.lstrip("<")), _NONE)
            _fit = Fit(_along, 0.95) if _label.startswith("<") else Fit(0.95, _against)
            _ANSWERS[_term][_plain(_label.lstrip("<"))] = _fit

_LISTS = """
fillers: has have had is are was were be been a an the named called name s to
turns: of by for
changes: law ex former step foster god half future not never no
owning: has have had own owns owned keeps pet adopted bought got named called with belongs
"""
_FILLERS, _TURNS, _CHANGES, _OWNING = (
    frozenset(line.partition(":")[2].split()) for line in _LISTS.strip().splitlines()
)
# A label that ends in one of `turns` points the other way: anna is_sister_of alice.
_SYMMETRIC = frozenset(one for one, other in _OPPOSITE.items() if one == other)
_WORD = re.compile(r"[^\W_]+")
_WEAKEST = 0.5  # what fits less does not fit


@dataclass(frozen=True, slots=True)
class _Label:
    """A label or a term: its words without fillers and endings, and whether its arrow points the other way."""

    words: tuple[str, ...]
    turned: bool


@lru_cache(maxsize=65_536)
def affinity(term: str, label: str) -> Fit:
    """How well a relation's label fits a term: 1 for the same words, less for words of the same sense, 0 for none."""
    answers = _ANSWERS.get(_head(_read(term)), {})
    if (answer := answers.get(_plain(label))) is not None:
        return answer
    asked, said = _read(term), _read(label)
    if not asked.words or not said.words:
        return _NONE
    same = _same(asked, said)
    opposite = _opposite(asked, said)
    symmetric = _class(_head(asked)) in _SYMMETRIC
    against = max(opposite, 0.85 * same if symmetric else 0.0)
    fit = Fit(against, same) if said.turned else Fit(same, against)
    return Fit(*(score if score >= _WEAKEST else 0.0 for score in fit))


def kind_affinity(term: str, kind: str) -> float:
    """How well the type or the name of a node fits a term, in [0, 1]: "dog" for a node of the type dog."""
    asked, said = _read(term), _read(kind)
    if not asked.words or not said.words:
        return 0.0
    score = _same(asked, said)
    return score if score >= _WEAKEST else 0.0


def possessive(label: str) -> bool:
    """Whether a label says that one has the other, so that the other's type alone tells what it is."""
    return not _OWNING.isdisjoint(_WORD.findall(label.casefold()))


def contrasts(term: str, label: str) -> bool:
    """Whether both are of one class and mean different things: embedders put cats near dogs."""
    asked, senses = _sense(_head(_read(term))), [_sense(word) for word in _read(label).words]
    return asked is not None and any(
        sense is not None and sense != asked and 0 not in (sense[1], asked[1]) for sense in senses
    )


def _same(asked: _Label, said: _Label) -> float:
    """How well the words of a label say what a term asks for."""
    if not _CHANGES.isdisjoint({*asked.words, *said.words}) and set(asked.words) != set(said.words):
        return 0.0
    head = _head(asked)
    if head in said.words:
        score = 1.0 if len(said.words) == 1 or set(said.words) <= set(asked.words) else 0.9
    else:
        score = max((_akin(head, word) for word in said.words), default=0.0)
    others = asked.words[:-1]
    missing = sum(word not in said.words for word in others) / len(others) if others else 0.0
    return score * (1 - 0.2 * missing)


def _akin(term: str, word: str) -> float:
    """How near two words are that differ: synonyms, a class and one of it, one and its class."""
    asked, said = _sense(term), _sense(word)
    if asked is None or said is None or asked[0] != said[0]:
        return 0.0
    if asked[1] == said[1]:
        return 0.95
    return 0.85 if asked[1] == 0 else 0.65 if said[1] == 0 else 0.0


def _opposite(asked: _Label, said: _Label) -> float:
    """A mother is who has a daughter or a son."""
    sense = _sense(_head(asked))
    if sense is None or not _CHANGES.isdisjoint({*asked.words, *said.words}):
        return 0.0
    wanted = _OPPOSITE.get(sense[0])
    return 0.8 if wanted and any(_class(word) == wanted for word in said.words) else 0.0


@lru_cache(maxsize=65_536)
def _read(text: str) -> _Label:
    words = _WORD.findall(text.casefold())
    kept = tuple(_stem(word) for word in words if word not in _FILLERS and word not in _TURNS)
    return _Label(kept, bool(words) and words[-1] in _TURNS and len(words) > 1)


def _stem(word: str) -> str:
    word = re.sub("our(?=$|ite)", "or", word)  # favourite colour
    if word in _SENSES or len(word) < 4 or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") else word


def _head(label: _Label) -> str:
    return label.words[-1] if label.words else ""


def _sense(word: str) -> tuple[str, int] | None:
    return _SENSES.get(word)


def _class(word: str) -> str:
    return _SENSES.get(word, ("", 0))[0]
