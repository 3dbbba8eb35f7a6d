"""Whether two names, or two relationships, mean one thing: a score with its reason, or why they cannot.

Made to be right rather than to find much. Embedders put contrasts near one another (Anna and Anne, works_at and
worked_at), so a near vector alone is never enough: what makes two names one is in their letters and words, and the
cosine has a say only where these leave room.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from mem0_core.normalization import normalize

__all__ = ["DEFAULT", "Likeness", "Name", "compact", "initials", "like_names", "like_relationships"]

DEFAULT = 0.8
"""The score from which two are merged, unless told otherwise: see tests/core/test_likeness.py for what it finds."""


@dataclass(frozen=True, slots=True)
class Name:
    """An entity's name, with its type where that is known."""

    text: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How sure it is that two are one, in [0, 1], and why; `apart` where something says that they are not."""

    score: float
    reason: str
    apart: bool = False


def like_names(one: Name, other: Name, cosine: float) -> Likeness:
    """Compare two names of one scope.

    Args:
        cosine: of the vectors of both, in [-1, 1].
    """
    words, others = _words(one.text), _words(other.text)
    if not words or not others:
        return Likeness(0.0, "no words to compare", apart=True)
    if one.type and other.type and one.type != other.type:
        return Likeness(0.0, f"a {one.type} and a {other.type}", apart=True)
    if _numbers(words) != _numbers(others):
        return Likeness(0.0, "other numbers", apart=True)
    titles = _titles(words), _titles(others)
    if all(titles) and titles[0] != titles[1]:
        return Likeness(0.0, "other titles", apart=True)
    if compact(one.text) == compact(other.text):
        return Likeness(1.0, "the same letters")
    bare, bare_other = _bare(words), _bare(others)
    if bare and bare == bare_other:
        return Likeness(0.95, "the same but for articles, titles and legal forms")
    if bare and sorted(bare) == sorted(bare_other) and "," in one.text + other.text:
        return Likeness(0.9, "the same words in another order")
    if reason := _abbreviates(one.text, other.text, cosine) or _abbreviates(other.text, one.text, cosine):
        return Likeness(0.9, reason)
    return _like_words(bare, bare_other, cosine, one.type or other.type)


def _like_words(words: tuple[str, ...], others: tuple[str, ...], cosine: float, type: str) -> Likeness:
    if len(words) == len(others):
        differing = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
        if len(differing) == 1:
            return _like_but_one(*differing[0], alone=len(words) == 1, cosine=cosine, type=type)
    shorter, longer = sorted((words, others), key=len)
    if shorter and set(shorter) < set(longer):
        rest = [word for word in longer if word not in shorter]
        if type not in ("", "person", "place", "location", "city") and set(rest) <= _KINDS and cosine >= 0.6:
            return Likeness(0.85, f"the same but for {' '.join(rest)!r}")
        return Likeness(min(0.75, max(0.0, cosine)), "one is part of the other")
    if set(words) & set(others):
        return Likeness(0.0, "each has a word of its own", apart=True)
    return Likeness(min(0.7, max(0.0, cosine)), "near by their vectors only")


def _like_but_one(word: str, other: str, *, alone: bool, cosine: float, type: str) -> Likeness:
    """Two names that differ in one word."""
    if _formal(word) & _formal(other):
        return Likeness(0.75 if alone else 0.9, f"{word} is short for {other}, or both for one name")
    if (len(word) == 1 and other.startswith(word)) or (len(other) == 1 and word.startswith(other)):
        return Likeness(0.0 if alone else 0.75, "an initial", apart=alone)
    if _misspelt(word, other):
        return Likeness(0.7 if type == "person" else 0.85, "one letter, as a slip of the pen makes it")
    if word.rstrip("s") == other.rstrip("s"):
        return Likeness(0.7, "singular and plural")
    return (
        Likeness(0.0, "each has a word of its own", apart=True)
        if not alone
        else Likeness(min(0.7, max(0.0, cosine)), "near by their vectors only")
    )


def like_relationships(one: str, other: str, cosine: float) -> Likeness:
    """Compare two relationships, ``snake_case``, of one scope."""
    label, label_other = _Label.read(one), _Label.read(other)
    if label.past != label_other.past:
        return Likeness(0.0, "one is over, the other is not", apart=True)
    if label.negated != label_other.negated:
        return Likeness(0.0, "one denies the other", apart=True)
    if label.words == label_other.words:
        return Likeness(0.95 if one != other else 1.0, "the same words but for their form")
    group = _GROUP.get(" ".join(label.words))
    if group is not None and group == _GROUP.get(" ".join(label_other.words)):
        return Likeness(0.9, "said of the same thing")
    if _links(label.words) != _links(label_other.words):
        return Likeness(0.0, "another direction or another place of the same word", apart=True)
    return Likeness(min(0.75, max(0.0, cosine)), "near by their vectors only")


# --- names -------------------------------------------------------------------------------------------------------


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[a-z]\.(?:[a-z]\.)+|[^\W_]+(?:'s\b)?[+#]*")
_TITLES = {
    "mr": "mr", "mister": "mr", "mrs": "mrs", "ms": "mrs", "miss": "mrs", "dr": "dr", "doctor": "dr", "prof": "prof",
    "professor": "prof", "sir": "sir",
}  # fmt: skip
_LEGAL = _set("inc incorporated ltd limited llc llp gmbh ag sa plc corp corporation co kg bv oy spa srl")
_ARTICLES = _set("the a an")
_KINDS = _set("university company group holding holdings bank technologies systems software labs airlines")
_SMALL = _set("of the and for in de la le du des di")
_NICKNAMES = """
robert: bob bobby rob robbie bert
william: bill billy will willy liam
elizabeth: liz lizzie beth betty eliza lisbeth
richard: rick ricky dick richie
james: jim jimmy jamie
john: johnny jack
michael: mike mikey mick
thomas: tom tommy
katherine: kate katie kathy kat catherine kathryn
margaret: maggie meg peggy greta
edward: ed eddie ted ned
charles: charlie chuck
joseph: joe joey
daniel: dan danny
matthew: matt
anthony: tony
andrew: andy drew
christopher: chris
samuel: sam sammy
benjamin: ben benny
alexander: alex sasha
alexandra: alex sandra sasha
nicholas: nick nicky
jennifer: jen jenny
patricia: pat patty trish
rebecca: becky becca
susan: sue susie
steven: steve stephen
timothy: tim timmy
david: dave davey
gregory: greg
frederick: fred freddy
victoria: vicky tori
deborah: debbie deb
"""
_FORMAL: dict[str, set[str]] = {}
for _line in _NICKNAMES.strip().splitlines():
    _whole, _, _short = _line.partition(": ")
    for _one in (_whole, *_short.split()):
        _FORMAL.setdefault(_one, set()).add(_whole)


def compact(name: str) -> str:
    """The letters and digits of a name, without case, accents and punctuation; + and # count, as in C++."""
    plain = normalize("NFKD", name.casefold())
    return "".join(mark for mark in plain if mark.isalnum() or mark in "+#")


def initials(name: str) -> str:
    """The first letters of the words of a name, small words left out; empty where there is one word only."""
    words = [word for word in re.findall(r"[^\W_]+", name) if word.casefold() not in _SMALL]
    return "".join(word[0] for word in words).upper() if len(words) > 1 else ""


@lru_cache(maxsize=8192)
def _words(name: str) -> tuple[str, ...]:
    plain = normalize("NFKD", name.casefold().replace("’", "'"))
    plain = "".join(mark for mark in plain if not unicodedata.combining(mark))
    return tuple(word.replace(".", "") for word in _WORD.findall(plain))


def _numbers(words: tuple[str, ...]) -> list[str]:
    return sorted(number for word in words for number in re.findall(r"\d+", word)) + sorted(
        word for word in words if word in _ROMAN
    )


_ROMAN = _set("ii iii iv vi vii viii ix xi xii")


def _titles(words: tuple[str, ...]) -> str:
    return _TITLES.get(words[0], "") if len(words) > 1 else ""


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    left = words[1:] if len(words) > 1 and (words[0] in _ARTICLES or words[0] in _TITLES) else words
    while len(left) > 1 and left[-1] in _LEGAL:
        left = left[:-1]
    return left if left else words


def _abbreviates(short: str, name: str, cosine: float) -> str | None:
    letters = short.replace(".", "").strip()
    if not (letters.isupper() and letters.isalpha() and 2 <= len(letters) <= 6):
        return None
    if any(word[:1].islower() for word in name.split() if word.casefold() not in _SMALL):
        return None
    if letters != initials(name) or (len(letters) == 2 and cosine < 0.6):
        return None
    return f"{short} are its initials"


def _formal(name: str) -> set[str]:
    return _FORMAL.get(name, set())


def _misspelt(word: str, other: str) -> bool:
    """Whether two words differ by a slip: a letter doubled, two exchanged, or one left out, inside of a long word."""
    shorter, longer = sorted((word, other), key=len)
    if len(shorter) < 5 or word[0] != other[0] or not (word.isalpha() and other.isalpha()):
        return False
    at = next(
        (place for place, pair in enumerate(zip(shorter, longer, strict=False)) if pair[0] != pair[1]), len(shorter)
    )
    if len(longer) == len(shorter):
        swapped = shorter[:at] + shorter[at + 1 : at + 2] + shorter[at : at + 1] + shorter[at + 2 :]
        return swapped == longer and at < len(shorter) - 2
    if len(longer) != len(shorter) + 1 or shorter[at:] != longer[at + 1 :]:
        return False
    doubled = at > 0 and longer[at] == longer[at - 1]
    return doubled or (len(shorter) >= 8 and 0 < at < len(shorter) - 1)


# --- relationships -----------------------------------------------------------------------------------------------

_FILLERS = _set("is are am be being currently now the a an has have does do who")
_PAST = _set("was were had did used formerly former previously ex once")
_NOT = _set("not no never isnt doesnt dont dislikes hates avoids")
_LINKS = _set("to from of in at for with as by on near into about under over after before against")
_GROUPS = (
    "work at|work for|employ by|employ at|have job at|be employee of|employee of",
    "live in|reside in|dwell in|live at|home in",
    "marry to|spouse of|wed to",
    "friend of|friend with|friends with|friends of",
    "study at|student at|student of|attend|enrol at|enroll at|enroll in|enrol in",
    "bear in|born in|birthplace",
    "own|owner of|possess",
    "colleague of|colleague with|coworker of|coworker with|work with",
    "like|enjoy|fond of",
    "dislike|hate|not like|not enjoy",
    "allergic to|allergy to",
    "come from|hail from|from|originate from",
    "sibling of|sibling with",
    "call|name|nickname",
    "interest in|interested in",
)
_GROUP = {words: place for place, group in enumerate(_GROUPS) for words in group.split("|")}
_STEMS = {
    "has": "have", "does": "do", "lives": "live", "resides": "reside", "living": "live", "residing": "reside",
    "married": "marry", "employed": "employ", "employs": "employ", "studies": "study", "studying": "study",
    "wedded": "wed", "enrolled": "enroll", "attends": "attend", "attending": "attend", "called": "call",
    "named": "name", "allergies": "allergy", "interests": "interest",
}  # fmt: skip
_NO_PAST = _set("married employed born named called interested allergic located based enrolled related wed")
_IRREGULAR = _set("lived went met saw ate drank wrote taught left lost sold bought made ran sang drove knew")


@dataclass(frozen=True, slots=True)
class _Label:
    """A relationship: its words in their plain form, whether it is over, and whether it says no."""

    words: tuple[str, ...]
    past: bool
    negated: bool

    @classmethod
    def read(cls, relationship: str) -> _Label:
        words = [word for word in re.split(r"[\W_]+", relationship.casefold()) if word]
        meant = [word for word in words if word not in _FILLERS | _PAST] or words
        over = "born" not in words and any(
            word in _PAST or word in _IRREGULAR or (word.endswith("ed") and word not in _NO_PAST and len(word) > 4)
            for word in words
        )
        return cls(tuple(map(_plain, meant)), over, any(word in _NOT for word in words))


def _plain(word: str) -> str:
    if word in _STEMS:
        return _STEMS[word]
    if word.endswith("ing") and len(word) > 5:
        stem = word[:-3]
        return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "ls" else stem
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("es") and word[:-2].endswith(("sh", "ch", "ss", "x")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def _links(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word in _LINKS)
