"""Introductions: the name that speakers give themselves, as in "My name is Maya", "I'm Maya" and "call me Maya".

High precision comes first: "I'm Danish", "I'm OK" and "I'm Maya's sister" introduce no one, and neither do questions,
suppositions and quotations. Each sentence is matched by a few anchored patterns, so the time taken is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.language.naming import NAME, NICKNAME


@dataclass(frozen=True, slots=True)
class Introduction:
    """A name that a speaker goes by.

    Attributes:
        label: `NAME` or `NICKNAME`.
        replaces: True if it is said in place of an earlier name: "actually my name is Maja".
    """

    name: str
    label: str
    replaces: bool = False


_MAX_TEXT_CHARS = 4_000  # introductions come early
_MAX_NAME_WORDS = 4
_SENTENCE = re.compile(r"[^.!?\n]*(?:(?:(?<=\b[DMS]r)|(?<=\bMrs)|(?<=\b[MS]t)|(?<=\b[A-Z]))\.[^.!?\n]*)*[.!?\n]?")
_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»")
_LEAD = (
    r"(?:^|[.,;:(—–-]\s*"
    r"|\b(?:and|so|but|hi|hello|hey|well|oh|ok|okay|yes|no|sorry|actually|btw|also|please|just)[,!]?\s+)"
)
_FROM_NOW = r"(?:by the way[,:]?\s+|btw[,:]?\s+|actually[,:]?\s+|in fact[,:]?\s+)?"
_IS = r"(?:\s+is|['’]s|\s+was changed to|\s+changed to)"
_ADVERBS = r"(?:\s+(?:actually|really|in fact|now))?"
_NAMED = re.compile(
    rf"{_LEAD}{_FROM_NOW}my (?:(?:full|first|given|real|own|new) )?name{_IS}{_ADVERBS}\s+(?P<name>.+)", re.I
)
_CALLED = re.compile(
    rf"{_LEAD}(?:(?:you (?:can|may|could)|feel free to|everyone|everybody|people|they|(?:my )?friends|most people)\s+"
    r"(?:just\s+|also\s+)?calls? me|call me|i go by|i['’]?m (?:usually |also )?called|i am (?:usually |also )?called"
    rf"|i prefer to be called|i prefer){_ADVERBS}\s+(?P<name>.+)",
    re.I,
)
_BEING = re.compile(rf"{_LEAD}(?:i am|i['’]m|im|this is)\s+(?P<name>.+)", re.I)
_UNREAL = re.compile(
    r"\b(?:if|wish|imagine|pretend|suppose|unless|would|could have|as if|like i['’]?m|say that)\b", re.I
)
_CORRECTS = re.compile(r"\b(?:actually|in fact|real name|changed|not|now|sorry|correction|new name|instead)\b", re.I)
_WORD = re.compile(r"[^\W\d_](?:[^\W_]|['’-](?!s\b)(?=\w))*\.?", re.UNICODE)
_ENDS_AFTER_BEING = re.compile(
    r"\s*(?:$|[,.!;)—–]|-\s|and\b|but\b|from\b|by the way\b|btw\b|your\b|speaking\b|here\b|the\b|an?\s|i\b"
    r"|nice\b|again\b)",
    re.I,
)
_ENDS_AFTER_NAMING = re.compile(
    r"\s*(?:$|[,.!;)—–(]|-\s|and\b|but\b|from\b|by the way\b|btw\b|not\b|in\b|at\b|i\b|so\b|for short\b|please\b|now\b"
    r"|instead\b|too\b|as well\b|like\b|because\b|since\b|after\b|though\b|with\b)",
    re.I,
)


def _split_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NOT_NAMES = _split_set("""
a an the not no so very too really just also still always never here there back home fine good great well ok okay sure
sorry glad happy sad tired sick busy ready done late early new old young single married vegan vegetarian pregnant trying
going doing looking working living thinking feeling getting having being in on at from to with for by about of off out
up down into over under around between my your his her their our its this that these those what who when where why how
it he she they we you me him them us if whether as like later tomorrow today tonight yesterday anytime maybe perhaps
asap soon now again crazy lazy old-fashioned names whatever anything something nothing everything unique common
hard easy long short spelled pronounced mud changed different important private secret unknown irrelevant
""")
_NOT_BEING = _split_set("""
mon monday tue tuesday wed wednesday thu thursday fri friday saturday sunday
january february march july september october november december
aries taurus gemini cancer virgo libra scorpio sagittarius capricorn aquarius pisces
christian catholic protestant orthodox muslim jewish hindu buddhist sikh atheist agnostic mormon quaker lutheran
democrat republican liberal conservative socialist libertarian green labour tory
african american british english french german italian spanish portuguese dutch belgian swiss austrian russian ukrainian
norwegian danish swedish finnish icelandic irish scottish welsh polish czech slovak hungarian romanian bulgarian serbian
croatian slovenian bosnian albanian greek turkish israeli palestinian lebanese syrian iraqi iranian persian afghan saudi
egyptian moroccan algerian tunisian libyan nigerian ghanaian kenyan ethiopian somali ugandan tanzanian rwandan congolese
indian pakistani bangladeshi nepali nepalese chinese japanese korean taiwanese thai vietnamese cambodian indonesian
malaysian filipino singaporean australian canadian mexican brazilian argentinian argentine chilean peruvian colombian
venezuelan ecuadorian bolivian cuban dominican jamaican haitian latino latina hispanic asian european
arab kurdish armenian georgian azeri kazakh uzbek mongolian tibetan hawaiian texan californian
estonian latvian lithuanian belarusian moldovan maltese cypriot luxembourgish catalan basque galician parisian londoner
madam captain senior junior chief head lead vice president director manager
ceo cto cfo coo vp hr pm qa it dj mc phd md rn id ai bot gen type team group batman superman spiderman god
lactose gluten celiac diabetic asthmatic autistic dyslexic adhd bipolar introvert extrovert introverted extroverted
allergic interested afraid scared excited curious worried sure able unable unsure aware certain confident
""")
_ABBREVIATED = frozenset({"dr.", "mr.", "mrs.", "ms.", "st.", "prof."})
_ENDINGS_OF_PEOPLES = ("ish", "ese")


@text_cache(1_024, max_chars=_MAX_TEXT_CHARS)  # read for conflicts, for relations and for the names of the speaker
def read_introductions(text: str) -> tuple[Introduction, ...]:
    """Return the names that the speaker of a text goes by, in the order of the text."""
    return tuple(_iter_introductions(_QUOTATION.sub('""', text[:_MAX_TEXT_CHARS])))


def _iter_introductions(text: str) -> Iterator[Introduction]:
    has_capitals = any(map(str.isupper, text))
    for sentence in _SENTENCE.findall(text):
        plain = " ".join(sentence.split())
        if not plain or plain.endswith("?") or _UNREAL.search(plain):
            continue
        if found := _NAMED.search(plain):
            if name := _read_name(found["name"], _ENDS_AFTER_NAMING, needs_capital=False):
                yield Introduction(name, NAME, replaces=True)
        elif found := _CALLED.search(plain):
            if name := _read_name(found["name"], _ENDS_AFTER_NAMING, needs_capital=has_capitals):
                yield Introduction(name, NICKNAME)
        elif (found := _BEING.search(plain)) and not plain.isupper():
            is_third = found.group().lower().lstrip(" ,;:(-").startswith("this is")
            name = _read_name(found["name"], _ENDS_AFTER_BEING, needs_capital=True, is_announced=is_third)
            if name and not any(map(_is_description, name.split())):
                yield Introduction(name, NAME, replaces=bool(_CORRECTS.search(plain)))


def _read_name(text: str, ends: re.Pattern[str], *, needs_capital: bool, is_announced: bool = False) -> str:
    """Return the name that a text begins with; empty if other words follow it, or it is none.

    Args:
        is_announced: the name needs "speaking" or "here" after it: "This is Maya speaking".
    """
    words: list[str] = []
    at = 0
    while len(words) < _MAX_NAME_WORDS and (found := _WORD.match(text, at)):
        word = found.group()
        is_first_lower = not words and not needs_capital and word.islower()
        if not (word[0].isupper() or is_first_lower) or (words and words[-1].islower()):
            break
        is_abbreviated = word.endswith(".") and (len(word) == 2 or word.casefold() in _ABBREVIATED)
        stripped = word if is_abbreviated and text[found.end() : found.end() + 1] == " " else word.removesuffix(".")
        words.append(stripped)
        at = found.start() + len(stripped)
        if text[at : at + 1] != " ":
            break
        at += 1
    rest = text[at - 1 :] if words and text[at - 1 : at] == " " else text[at:]
    if not words or not ends.match(rest) or not all(map(_may_be_name, words)):
        return ""
    if is_announced and not re.match(r"\s*,?\s*(?:speaking|here)\b", rest, re.I):
        return ""
    return " ".join(words)


def _may_be_name(word: str) -> bool:
    is_acronym = word.isupper() and 1 < len(word) <= 4 and word.isalpha()
    return word.casefold() not in _NOT_NAMES and not is_acronym


def _is_description(word: str) -> bool:
    """Return True for words that "I'm" joins to a speaker without naming them: peoples, beliefs, positions."""
    low = word.casefold()
    return low in _NOT_BEING or low.endswith(_ENDINGS_OF_PEOPLES)
