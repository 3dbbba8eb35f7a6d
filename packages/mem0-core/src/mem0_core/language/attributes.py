"""Properties that a question asks for, such as a color, a size or a surname, and texts that state one.

"What color is my car" asks for no car. A memory of the car answers it only if it states a color.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from mem0_core._system.records import dataclass
from mem0_core.language._grammar import load_grammar
from mem0_core.language._question_words import LISTS
from mem0_core.language._tables import load_tables

_WORDS = re.compile(r"[^\W\d_]+")
_QUANTITIES = frozenset(
    ["half", "twice", "once", "dozen", "couple", "hundred", "thousand", "million", "billion", "zero", "nothing", "free"]
)
_DATE = (
    r"\b(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:MONTH)\b\.?(?: \d{1,2}(?:st|nd|rd|th)?\b)?(?:,? (?:19|20)\d\d\b)?"
    r"|\b(?:in|since|by|until|early|mid|late|spring|summer|autumn|fall|winter)[ -](?:19|20)\d\d\b"
    r"(?=\W*$|[.,;:!?)]| (?:and|but|when|with|for|at|to|the|a|I|we|he|she|they)\b)"
)
_MAX_SUBJECT = 4  # words between the auxiliary and the verb of "What did the red car cost?"
_MAX_NOUN = 4  # words of a noun phrase after "which"
_MEASURES = frozenset({"tall", "high", "heavy", "wide", "deep", "old"})
_PRICES = frozenset({"cost", "pay", "paid", "spend", "spent", "earn", "weigh", "owe", "charge"})
_FEELINGS = frozenset({"like", "love", "hate", "miss", "enjoy", "care"})  # "how much do I like it"
_BE = frozenset({"is", "was", "are", "were"})
_AFTER_NOUN = frozenset({"of", "on", "for", "at", "in", "where", "that", "who"})  # "the number on our door"


@dataclass(frozen=True, slots=True)
class _Attribute:
    """The nouns of an attribute, each with its words, and the words and endings of words that state it."""

    nouns: tuple[tuple[str, ...], ...]
    words: frozenset[str]
    endings: tuple[str, ...]

    def is_in(self, lows: Sequence[str]) -> bool:
        return any(tuple(lows[at : at + len(noun)]) == noun for noun in self.nouns for at in range(len(lows)))


@cache
def _load_attributes() -> Mapping[str, _Attribute]:
    return {
        name: _Attribute(
            nouns=tuple(tuple(noun.split()) for noun in table["nouns"].split(",")),
            words=frozenset(table.get("words", "").split()),
            endings=tuple(table.get("endings", "").split()),
        )
        for name, table in load_tables("attributes").items()
    }


def find_attribute(lows: Sequence[str]) -> str:
    """Return the name of the attribute that a question names; empty for none.

    Args:
        lows: its words in lower case, as `prepare` splits them; a possessive is a word of its own.
    """
    if lows[:1] not in (["what"], ["which"]):
        return ""
    asked = _find_asked(lows)
    name = next((name for name, one in _load_attributes().items() if one.is_in(asked)), "")
    if name == "year":  # "what year did I move" asks for a date
        return "amount" if lows[2:3] == ["is"] and lows[3:4] != ["it"] else ""
    return name


def _find_asked(lows: Sequence[str]) -> Sequence[str]:
    """Return the noun phrase after "which", or the noun that is wanted in "what is my shoe size"."""
    end = 1
    while end < min(len(lows), 1 + _MAX_NOUN) and lows[end] not in LISTS["aux"] | LISTS["self"] | LISTS["owners"]:
        end += 1
    if end > 1:
        return lows[1:end]
    if lows[1:2] and lows[1] in _BE:
        stop = next((at for at in range(2, len(lows)) if lows[at] in _AFTER_NOUN), len(lows))
        return lows[max(2, stop - 2) : stop]
    return ()


def asks_amount(lows: Sequence[str]) -> bool:
    """Return True for "how tall is he" and "what did the car cost", which want a number and name no attribute."""
    if len(lows) < 2:
        return False
    if lows[0] == "what" and lows[1] in LISTS["aux"]:
        at = next((index for index, low in enumerate(lows[: _MAX_SUBJECT + 3]) if low in _PRICES), 0)
        is_verb = at > 0 and lows[at - 1] != "to"
        return is_verb and (at == len(lows) - 1 or (lows[at + 1] == "for" and at + 2 < len(lows)))
    is_number = lows[1] in _MEASURES or (lows[1] in ("much", "many") and _FEELINGS.isdisjoint(lows))
    return lows[0] == "how" and is_number


def states_attribute(attribute: str, text: str, names: Collection[str] = ()) -> bool:
    """Return True if a text states an attribute of what it is about.

    Args:
        attribute: as `find_attribute` returns it.
        names: of the people whose surname is wanted; without any, two words with a capital in a row are one.
    """
    if attribute == "amount":
        return names_amount(text)
    if attribute == "surname" and (text == text.lower() or "surname" in text):
        return True  # without capitals a name cannot be seen
    return bool(find_words(attribute, text, names))


def find_words(attribute: str, text: str, names: Collection[str] = ()) -> list[str]:
    """Return the words of a text that state an attribute, such as its colors or a surname; none for amounts."""
    if attribute == "surname":
        first = "|".join(re.escape(name.split()[-1]) for name in names)
        first = f"(?i:{first})" if first else r"[A-Z][\w'’-]+"
        return re.findall(rf"\b{first} (?!(?:I|I'm)\b)([A-Z][\w'’-]+)", text)
    known, endings = _load_attributes()[attribute].words, _load_attributes()[attribute].endings
    found = [word for word in _WORDS.findall(text) if (low := word.lower()) in known or low.endswith(endings)]
    return [word for word in found if word[0].isupper()] if attribute == "street" else found


def find_nouns(attribute: str) -> str:
    """Return the nouns that name an attribute, in one text."""
    return " ".join(" ".join(noun) for noun in _load_attributes()[attribute].nouns)


def names_amount(text: str) -> bool:
    """Return True if a text names a number, in figures or in English words, other than that of a date."""
    text = _date_pattern().sub(" ", text)
    return any(char.isnumeric() for char in text) or not _number_words().isdisjoint(_WORDS.findall(text.lower()))


@cache
def _date_pattern() -> re.Pattern[str]:
    """Return a pattern of dates with a month in capitals, and of years that something else shows to be one."""
    months = map(str.capitalize, load_grammar("english").words["months"])
    return re.compile(_DATE.replace("MONTH", "|".join(sorted(months))))


@cache
def _number_words() -> frozenset[str]:
    return frozenset(load_grammar("english").words["numbers"]) | _QUANTITIES
