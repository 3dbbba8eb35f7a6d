"""Chains of possessives anywhere in a text: the entity where a chain starts, and the relations to follow from there.

They serve texts that are not understood as a question. Every token is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Entity
from mem0_core.language import rule_extractor as rules
from mem0_core.language._question_tokens import TOKEN
from mem0_core.language.messages import mentions_speaker


class Chain(NamedTuple):
    """Start of a chain (None for the speaker) and the terms of its relations, nearest first."""

    start: str | None
    steps: tuple[str, ...] = ()


_MAX_TEXT_CHARS = 2_000  # characters that are searched for steps
_MAX_NESTING = 8  # of noun phrases joined by "of"

_LISTS = """
self: my our
asks: who what where when why how which whose
helps: do does did can could will would has have had is are was were be been may might should
no_entity: that it he she there here let this one everyone everybody someone
adjectives: older younger elder eldest youngest oldest little big best good close dear twin new old former first second
 late favorite favourite next current previous
ends: is are was were be been being am do does did has have had can could will would may might should must not in on at
 by from to with for before after during since until and or but if when while as than then that who which where whose
 what how why called named live lives lived work works worked like likes liked now today yesterday tomorrow again last
 this i you we they he she it me him us them of about into near
not_owners: his her their its your the a an this that
openers: tell show find give please and or but so then the i
"""
_WORDS = {name: frozenset(words.split()) for name, words in re.findall(r"^(\w+): (.*(?:\n .*)*)", _LISTS, re.MULTILINE)}
_SELF, _HELPS, _ADJECTIVES, _ENDS = (_WORDS[name] for name in ("self", "helps", "adjectives", "ends"))
_NO_ENTITY = _WORDS["asks"] | _WORDS["no_entity"]
_NOT_NAMES = _NO_ENTITY | _HELPS | _SELF | _WORDS["openers"]
_LEADS_TO_STEPS = _SELF | {"of"}
_DROPPED = frozenset({"name", "names", "full name", "first name", "last name"})


def find_chain(text: str, entities: Callable[[], Sequence[Entity]] | None = None) -> Chain:
    """Return the best chain of possessives in a text.

    Of several chains, one that starts at a quoted name is preferred, then one at a capitalized name, then one at the
    speaker; among those, the longest. Without a chain, the same order chooses the entity that the text is about.

    Args:
        entities: returns the entities of `text`, for a caller that has them. Called only if the text has no quoted or
            capitalized name.
    """
    reader = _ChainReader(text[:_MAX_TEXT_CHARS])
    phrases = [phrase for phrase in reader.iter_phrases() if phrase.steps]
    if phrases:
        best = min(phrases, key=lambda phrase: (phrase.rank, -len(phrase.steps)))
        return Chain(best.start, best.steps)
    subject = reader.find_subject()
    if subject is None and not mentions_speaker(text):
        found = rules.entities(text) if entities is None else entities()
        subject = found[0].name if found else None
    return Chain(subject)


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A noun phrase of a question.

    Attributes:
        start, steps: as in `Chain`.
        end: the position after its last token.
        rank: 0 if a quoted name starts it, 1 for a capitalized one, 2 for the speaker.
    """

    start: str | None
    end: int
    rank: int
    steps: tuple[str, ...] = ()

    def extend(self, terms: Sequence[str], end: int) -> _Phrase:
        """Return the phrase with more steps; "name" and the like add none, as every path ends at a name."""
        return replace(self, end=end, steps=(*self.steps, *(term for term in terms if term not in _DROPPED)))


class _ChainReader:
    """The tokens of one text."""

    def __init__(self, text: str) -> None:
        found = [(match.lastgroup or "", match.group()) for match in TOKEN.finditer(text)]
        self.kinds = [kind for kind, _ in found]
        self.words = [word for _, word in found]
        self.lows = [word.lower().replace("’", "'") for word in self.words]
        self.has_auxiliary = bool(_HELPS.intersection(self.lows[:3]) - {"is", "are", "was", "were"})

    def iter_phrases(self) -> Iterator[_Phrase]:
        """Yield the phrases of a text that has any with steps, from its start; none from within one with steps."""
        if "owns" not in self.kinds and _LEADS_TO_STEPS.isdisjoint(self.lows):
            return  # no phrase has steps
        index = 0
        while index < len(self.words):
            phrase = self._phrase_at(index)
            if phrase is not None:
                yield phrase
            index = phrase.end if phrase is not None and phrase.steps else index + 1

    def find_subject(self) -> str | None:
        """Return the first quoted name of the text, else the first capitalized one."""
        for kind, word in zip(self.kinds, self.words, strict=True):
            if kind == "quoted":
                return word[1:-1].strip()
        names = (self._name_at(index)[0] for index, kind in enumerate(self.kinds) if kind == "word")
        return next((name for name in names if name), None)

    def _phrase_at(self, index: int, *, depth: int = 0) -> _Phrase | None:
        """Return the noun phrase that begins at a token, if it leads to an entity."""
        if index >= len(self.words) or depth > _MAX_NESTING:
            return None
        low, kind = self.lows[index], self.kinds[index]
        if kind == "quoted":
            return self._follow_owner(_Phrase(self.words[index][1:-1].strip(), index + 1, 0))
        if kind != "word":
            return None
        if low in _SELF:
            return self._follow_owner(_Phrase(None, index + 1, 2), is_possessive=True)
        name, end = self._name_at(index)
        if name:
            return self._follow_owner(_Phrase(name, end, 1))
        if self._is_lowercase_owner(index):
            return self._follow_owner(_Phrase(self.words[index], index + 1, 1))
        return self._of_phrase_at(index, depth)

    def _is_lowercase_owner(self, index: int) -> bool:
        """Return True for a lowercase name before an 's: "alice_123's boss"."""
        low = self.lows[index]
        return (
            self.kinds[index + 1 : index + 2] == ["owns"]
            and low not in _NO_ENTITY
            and low not in _WORDS["not_owners"]
            and self.lows[index - 1 : index] not in (["'s"], ["the"])
        )

    def _of_phrase_at(self, index: int, depth: int) -> _Phrase | None:
        """Return the phrase of ``the boss of NOUN PHRASE``."""
        first = index + 1 if self.lows[index] in {"the", "a", "an"} else index
        if first == index and self.lows[max(0, index - 1) : index] not in (["is"], ["are"], ["was"], ["'s"]):
            return None
        end = first
        while end < min(len(self.words), first + 4) and self._is_term_word(end):
            end += 1
        if end == first or self.lows[end : end + 1] != ["of"]:
            return None
        inner = self._phrase_at(end + 1, depth=depth + 1)
        return None if inner is None else inner.extend([" ".join(self.lows[first:end])], inner.end)

    def _follow_owner(self, owner: _Phrase, *, is_possessive: bool = False) -> _Phrase:
        """Extend an owner by the terms after its 's; after a possessive such as "my" the first follows at once."""
        terms: list[str] = []
        index = owner.end
        while is_possessive or self.kinds[index : index + 1] == ["owns"]:
            first = index if is_possessive else index + 1
            end = first
            while end < min(len(self.words), first + 5) and self._is_term_word(end, allow_capital=end == first):
                end += 1
            if self.kinds[end : end + 1] != ["owns"]:
                end = self._noun_end(first, end)
            if end == first:
                break
            terms.append(" ".join(self.lows[first:end]))
            index, is_possessive = end, False
        return owner.extend(terms, index)

    def _noun_end(self, first: int, end: int) -> int:
        """Return the end of the last noun of a chain: in "did Alice's sister buy" a verb follows it."""
        noun = first
        while noun < end - 1 and self.lows[noun] in _ADJECTIVES:
            noun += 1
        return min(end, noun + 1) if self.has_auxiliary else end

    def _is_term_word(self, index: int, *, allow_capital: bool = False) -> bool:
        """Return True if a token can be a word of a term."""
        if self.kinds[index] != "word" or self.lows[index] in _ENDS:
            return False
        return allow_capital or not self.words[index][0].isupper()

    def _name_at(self, index: int) -> tuple[str, int]:
        """Return the capitalized name that begins at a token ("" for none), and its end."""
        end = index
        while end < min(len(self.words), index + 6) and self.kinds[end] == "word":
            if not (self._is_name_word(end) or (end > index and self.words[end].isdigit())):
                break
            end += 1
            if self.lows[end : end + 1] == ["of"] and end + 1 < len(self.words) and self._is_name_word(end + 1):
                end += 1  # University of Oxford
        return " ".join(self.words[index:end]), end

    def _is_name_word(self, index: int) -> bool:
        word, low = self.words[index], self.lows[index]
        return word[0].isupper() and low not in _NOT_NAMES and not low.startswith("i'")
