"""Properties that a question asks for, such as a color, a size or a surname, and texts that state one.

"What color is my car" asks for no car. A memory of the car answers it only if it states a color.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import groupby

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
_MAX_NOUN = 5  # words of a noun phrase after "which"
_NOUN_WORDS = (1, 2)  # of the noun of an attribute
_MEASURES = frozenset({"tall", "high", "heavy", "wide", "deep", "old"})
_PRICES = frozenset({"cost", "pay", "paid", "spend", "spent", "earn", "weigh", "owe", "charge"})
_BE = frozenset({"is", "was", "are", "were"})
_NOUN_ENDS = LISTS["aux"] | LISTS["self"] | LISTS["owners"]
_AFTER_NOUN = frozenset({"of", "on", "for", "at", "in", "where", "that", "who"})  # "the number on our door"


@dataclass(frozen=True, slots=True)
class _Attribute:
    """The nouns of an attribute, each with its words, and the words and endings of words that state it."""

    nouns: tuple[tuple[str, ...], ...]
    words: frozenset[str]
    endings: tuple[str, ...]


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


@cache
def _attributes_of_nouns() -> Mapping[tuple[str, ...], str]:
    return {noun: name for name, one in _load_attributes().items() for noun in one.nouns}


def find_attribute(lows: Sequence[str]) -> str:
    """Return the name of the attribute that a question names, such as "color"; empty for none.

    It is the last noun of "which NOUN" or "what is NOUN": a "road bike" is no road. A position is one of a player, and
    the year of a thing is an amount; "what year did I move" asks for a date.

    Args:
        lows: its words in lower case, as `prepare` splits them; a possessive is a word of its own.
    """
    if lows[:1] not in (["what"], ["which"]):
        return ""
    asked = tuple(_find_asked(lows))
    found = (_attributes_of_nouns().get(asked[-count:], "") for count in _NOUN_WORDS)
    name = next(filter(None, found), "")
    if name == "year":
        return "amount" if lows[2:3] == ["is"] and lows[3:4] != ["it"] else ""
    return "" if name == "position" and not {"play", "plays", "played"}.intersection(lows) else name


def _find_asked(lows: Sequence[str]) -> Sequence[str]:
    """Return the noun phrase after "which", or the noun that is wanted in "what is my shoe size"."""
    end = 1
    while end < min(len(lows), 1 + _MAX_NOUN) and lows[end] not in _NOUN_ENDS:
        end += 1
    if end > 1:
        return lows[1:end]
    if lows[1:2] and lows[1] in _BE:
        return lows[2 : next((at for at in range(2, len(lows)) if lows[at] in _AFTER_NOUN), len(lows))]
    return ()


def asks_amount(lows: Sequence[str]) -> bool:
    """Return True for "how tall is he" and "what did the car cost", which want a number and name no attribute."""
    if len(lows) < 2:
        return False
    if lows[0] == "what" and lows[1] in LISTS["aux"]:
        at = next((index for index, low in enumerate(lows[: _MAX_SUBJECT + 3]) if low in _PRICES), 0)
        is_verb = at > 0 and lows[at - 1] != "to"
        return is_verb and (at == len(lows) - 1 or (lows[at + 1] == "for" and at + 2 < len(lows)))
    is_price = lows[1] in ("much", "many") and not _PRICES.isdisjoint(lows)
    return lows[0] == "how" and (is_price or lows[1] in _MEASURES)


def states_attribute(attribute: str, text: str, names: Collection[str] = ()) -> bool:
    """Return True if a text states an attribute of what it is about, or names it: "my dress size is M".

    Args:
        attribute: as `find_attribute` returns it.
        names: of the people whose surname is wanted.
    """
    if attribute == "amount" and names_amount(text):
        return True
    if attribute == "surname" and (text == text.lower() or find_surnames(text, names)):
        return True  # without capitals it cannot be seen
    words = f" {' '.join(_WORDS.findall(text.lower()))} "
    is_named = any(f" {' '.join(noun)} " in words for noun in _load_attributes()[attribute].nouns)
    return is_named or bool(_find_words(attribute, text))


def find_color(text: str) -> str:
    """Return the color that a text states, such as "sage green"; empty if there are several, or none."""
    known = _load_attributes()["color"].words
    runs = [
        " ".join(run) for is_color, run in groupby(_WORDS.findall(text), lambda word: word.lower() in known) if is_color
    ]
    return runs[0] if len(runs) == 1 else ""


def find_surnames(text: str, names: Collection[str]) -> list[str]:
    """Return the capitalized words that follow some names in a text."""
    if not names:
        return []
    first = "|".join(re.escape(name.split()[-1]) for name in names)
    return re.findall(rf"\b(?i:{first}) (?!(?:I|I'm)\b)([A-Z][\w'’-]+)", text)


def _find_words(attribute: str, text: str) -> list[str]:
    known, endings = _load_attributes()[attribute].words, _load_attributes()[attribute].endings
    found = [word for word in _WORDS.findall(text) if (low := word.lower()) in known or low.endswith(endings)]
    return [word for word in found if word[0].isupper()] if attribute == "street" else found


def find_nouns(attribute: str) -> str:
    """Return the words that ask for an attribute, in one text."""
    nouns = (" ".join(noun) for noun in _load_attributes()[attribute].nouns)
    return " ".join((*nouns, *((*_MEASURES, *_PRICES) if attribute == "amount" else ())))


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
