"""Reading a question for traversal: whom it begins at, and which relations to follow from there, in plain English.

"Alice's sister's dog" begins at Alice and follows sister, then dog; so do "the dog of Alice's sister" and "my sister's
dog", which begins at whoever asks. Every token is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mem0_core.language import rule_extractor as rules
from mem0_core.language.messages import mentions_speaker

__all__ = ["Question", "read_question"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a question asks of a graph.

    Attributes:
        seed: the name it begins at; None for whoever asks.
        chain: the terms to follow from there, in lower case, nearest first.
        who: whether it asks who somebody is ("who is Anna").
    """

    seed: str | None
    chain: tuple[str, ...] = ()
    who: bool = False


_TOKEN = re.compile(
    r"(?P<quoted>\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»)"
    r"|(?P<owns>(?<=[\w\"”»])['’]s\b|(?<=s)['’](?=\s))"
    r"|(?P<word>\w+(?:['’.&+-](?!s\b)\w+)*)|(?P<stop>\S)"
)
_LONGEST = 2_000  # characters of a question that are read

_LISTS = """
self: my our
asks: who what where when why how which whose
helps: do does did can could will would has have had is are was were be been may might should
nobody: that it he she there here let this one everyone everybody someone
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
_NOBODY = _WORDS["asks"] | _WORDS["nobody"]
_NOT_NAMES = _NOBODY | _HELPS | _SELF | _WORDS["openers"]
_DROPPED = frozenset({"name", "names", "full name", "first name", "last name"})  # the end of a path is a name anyway


def read_question(text: str) -> Question:
    """The chain a question asks for, and where it begins.

    Of several chains, one that begins at a quoted name goes first, then at a capitalised one, then at the asker's own
    (seed 003, part 6); of those the longest. Where there is no chain, the same order chooses whom it is about.
    """
    reader = _Reader(text[:_LONGEST])
    who = reader.asks_who()
    chains = [found for found in reader.phrases() if found.question.chain]
    if chains:
        best = min(chains, key=lambda found: (found.kind, -len(found.question.chain)))
        return Question(best.question.seed, best.question.chain, who)
    return Question(reader.subject(text), (), who)


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A noun phrase: what it asks for, where it ends, and how surely its first word names someone (least is best)."""

    question: Question
    stop: int
    kind: int


class _Reader:
    def __init__(self, text: str) -> None:
        found = [(match.lastgroup or "", match.group()) for match in _TOKEN.finditer(text)]
        self.kinds = [kind for kind, _ in found]
        self.words = [word for _, word in found]
        self.lows = [word.lower().replace("’", "'") for word in self.words]
        self.asked = _HELPS.intersection(self.lows[:3]) - {"is", "are", "was", "were"}

    def asks_who(self) -> bool:
        start = self.lows[:2]
        return (start[:1] == ["who"] and start[1:] != ["'s"] and start[1:2] != [] and start[1] in _HELPS | {"'s"}) or (
            start in (["who", "'s"], ["what", "is"], ["whats"], ["whos"])
        )

    def phrases(self) -> Iterator[_Phrase]:
        """Every chain of the text, each from where it begins; none from within another."""
        at = 0
        while at < len(self.words):
            found = self._phrase(at)
            if found is not None:
                yield found
            at = found.stop if found is not None and found.question.chain else at + 1

    def subject(self, text: str) -> str | None:
        """Whom a text without a chain is about."""
        quoted = next((word[1:-1] for kind, word in zip(self.kinds, self.words, strict=True) if kind == "quoted"), None)
        if quoted is not None:
            return quoted.strip()
        named = [self._name(at) for at in range(len(self.words)) if self.kinds[at] == "word"]
        first = next((name for name, _ in named if name), None)
        if first is not None:
            return first
        entities = rules.entities(text)
        return entities[0].name if entities and not mentions_speaker(text) else None

    def _phrase(self, at: int, *, depth: int = 0) -> _Phrase | None:
        """The noun phrase that begins at a token, if it leads to somebody."""
        if at >= len(self.words) or depth > 8:
            return None
        low, kind = self.lows[at], self.kinds[at]
        if kind == "quoted":
            return self._owned(_Phrase(Question(self.words[at][1:-1].strip()), at + 1, 0))
        if kind != "word":
            return None
        if low in _SELF:
            return self._owned(_Phrase(Question(None), at + 1, 2), first=True)
        name, stop = self._name(at)
        if name:
            return self._owned(_Phrase(Question(name), stop, 1))
        owned = self.kinds[at + 1 : at + 2] == ["owns"]
        if (
            owned
            and low not in _NOBODY
            and low not in _WORDS["not_owners"]
            and self.lows[at - 1 : at] not in (["'s"], ["the"])
        ):
            return self._owned(_Phrase(Question(self.words[at]), at + 1, 1))
        return self._of(at, depth)

    def _of(self, at: int, depth: int) -> _Phrase | None:
        """``the boss of NOUN PHRASE``."""
        first = at + 1 if self.lows[at] in {"the", "a", "an"} else at
        if first == at and self.lows[max(0, at - 1) : at] not in (["is"], ["are"], ["was"], ["'s"]):
            return None
        stop = first
        while stop < min(len(self.words), first + 4) and self._plain(stop):
            stop += 1
        if stop == first or self.lows[stop : stop + 1] != ["of"]:
            return None
        inner = self._phrase(stop + 1, depth=depth + 1)
        if inner is None:
            return None
        return _extended(inner, [" ".join(self.lows[first:stop])], inner.stop)

    def _owned(self, owner: _Phrase, *, first: bool = False) -> _Phrase:
        """An owner with what follows its 's; after "my" it follows at once."""
        terms: list[str] = []
        at = owner.stop
        while first or self.kinds[at : at + 1] == ["owns"]:
            start = at if first else at + 1
            stop = start
            while stop < min(len(self.words), start + 5) and self._plain(stop, capital=stop == start):
                stop += 1
            if self.kinds[stop : stop + 1] != ["owns"]:
                stop = self._noun_end(start, stop)
            if stop == start:
                break
            terms.append(" ".join(self.lows[start:stop]))
            at, first = stop, False
        return _extended(owner, terms, at)

    def _noun_end(self, start: int, stop: int) -> int:
        """Where the last noun of a chain ends: in "did Alice's sister buy" a verb follows."""
        noun = start
        while noun < stop - 1 and self.lows[noun] in _ADJECTIVES:
            noun += 1
        return min(stop, noun + 1) if self.asked else stop

    def _plain(self, at: int, *, capital: bool = False) -> bool:
        """Whether a token can be a word of a term."""
        if self.kinds[at] != "word" or self.lows[at] in _ENDS:
            return False
        return capital or not self.words[at][0].isupper()

    def _name(self, at: int) -> tuple[str, int]:
        """The capitalised name that begins at a token and where it ends; empty where none does."""
        stop = at
        while stop < min(len(self.words), at + 6) and self.kinds[stop] == "word":
            if not (self._is_name(stop) or (stop > at and self.words[stop].isdigit())):
                break
            stop += 1
            if self.lows[stop : stop + 1] == ["of"] and stop + 1 < len(self.words) and self._is_name(stop + 1):
                stop += 1  # University of Oxford
        return " ".join(self.words[at:stop]), stop

    def _is_name(self, at: int) -> bool:
        word, low = self.words[at], self.lows[at]
        return word[0].isupper() and low not in _NOT_NAMES and not low.startswith("i'")


def _extended(phrase: _Phrase, terms: list[str], stop: int) -> _Phrase:
    kept = tuple(term for term in terms if term not in _DROPPED)
    return _Phrase(Question(phrase.question.seed, (*phrase.question.chain, *kept)), stop, phrase.kind)
