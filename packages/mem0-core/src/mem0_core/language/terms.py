"""What a text is found by without a model: its terms, the names in it, and whether it asks.

Terms are words in lower case, without accents and vowel points, and stemmed where a script tells which stemmer is
safe: Snowball's English one for the Latin alphabet (it leaves words of other languages alone, or treats question and
answer alike), Russian for Cyrillic, Greek, Arabic. Scripts that write no spaces become pairs of characters. English
words that say nothing by themselves are left out; those of other languages weigh little for being common.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any, NamedTuple

from mem0_core.domain.normalization import normalize
from mem0_core.language import rule_extractor as rules

__all__ = ["TextTerms", "extract_names", "get_analyzer_version", "is_stop_word", "read", "split_words", "terms"]

_ANALYZER_VERSION = 1  # raised when this module changes what it makes of a text
_MAX_TERM_CHARS = 40  # characters of a term: what is longer is a link, a key or noise, and its beginning tells it apart
_MAX_NAME_TEXT_CHARS = 4_000  # characters in which names are looked for
_MAX_NAMES = 64  # names of one text

# Some scripts write vowels as marks of their own, which belong to the word: Indic ones, Thai, Lao, Khmer, Myanmar.
_WORD = re.compile(
    r"(?:[^\W_]|[\u0900-\u0dff\u0e31\u0e34-\u0e4e\u0eb1-\u0ecd\u0f71-\u0fbc\u102b-\u103e\u17b4-\u17d3])+"
)
# Thai, Lao, Myanmar, Khmer; kana, Han, Hangul (which has spaces, yet glues particles to its words).
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+|[\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
    r"\U00020000-\U0003134f]+"
)
# Accents, Hebrew points, Arabic vowel signs and the stroke that only stretches a word.
_DIACRITICS = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
_QUESTION_END = re.compile(r"[?？؟]['\")\]»”]*\s*$")  # the third is Arabic's

_STEMMERS = (
    (re.compile(r"[a-z]+"), "english"),
    (re.compile(r"[а-яё]+"), "russian"),
    (re.compile(r"[\u0370-\u03ff]+"), "greek"),
    (re.compile(r"[\u0600-\u06ff]+"), "arabic"),
)

_STOP_WORDS = """
a an and are as at be been being but by can could did do does for from had has have he her hers him his how i if in
into is it its me my of on or our ours she should so than that the their theirs them then there these they this those
to us was we were what when where which who whom whose why will with would you your yours about am not no any all also
just s t d ll m re ve don
"""
_STOP = frozenset(_STOP_WORDS.split())


class TextTerms(NamedTuple):
    """What a search needs to know of a text.

    Attributes:
        terms: in the order of the text; a term comes as often as it is there.
        names: what the text names, as `names` gives it.
        length: how many words there are, those that say nothing included.
        asks: whether it ends with a question, and so tells little.
    """

    terms: tuple[str, ...]
    names: tuple[str, ...]
    length: int
    asks: bool


def read(text: str, speaker: str | None = None) -> TextTerms:
    """The words of a memory; the name of who said it is one of its terms."""
    spoken = _tokenize(text)
    said = [word for name in _tokenize(speaker or "") for word in _extract_word_terms(name)]
    asks = _QUESTION_END.search(text[-16:]) is not None
    return TextTerms(
        (*said, *(part for word in spoken for part in _extract_word_terms(word))),
        extract_names(text),
        len(spoken),
        asks,
    )


def terms(text: str) -> list[str]:
    """What is looked for when `text` is the query."""
    return [part for word in _tokenize(text) for part in _extract_word_terms(word)]


def split_words(text: str) -> list[str]:
    """The words of a text as they are compared before anything is cut from them."""
    return _tokenize(text)


def is_stop_word(word: str) -> bool:
    return word in _STOP


def extract_names(text: str) -> tuple[str, ...]:
    """The distinct names in a text (`rules.entities`), so that two spellings of one are equal."""
    found = (" ".join(_tokenize(entity.name)) for entity in rules.entities(text[:_MAX_NAME_TEXT_CHARS]))
    return tuple(name[:_MAX_TERM_CHARS] for name in dict.fromkeys(found) if name)[:_MAX_NAMES]


def _tokenize(text: str) -> list[str]:
    if not text.isascii():
        bare = _DIACRITICS.sub("", normalize("NFKD", text))
        text = normalize("NFC", bare)
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=65_536)  # the words of one language come up again and again, and stemming takes microseconds
def _extract_word_terms(word: str) -> tuple[str, ...]:
    """The terms of one word: none where it says nothing, several where the script writes no spaces."""
    if word in _STOP:
        return ()
    if not word.isascii() and _UNSPACED.search(word):
        return tuple(_split_unspaced(word))
    for script, language in _STEMMERS:
        if script.fullmatch(word):
            return (_stem(language, word[:_MAX_TERM_CHARS]),)
    return (word[:_MAX_TERM_CHARS],)


def _split_unspaced(word: str) -> list[str]:
    """A run without spaces as pairs of characters, and what stands between such runs as it is."""
    terms, end = list[str](), 0
    for run in _UNSPACED.finditer(word):
        terms += _extract_word_terms(word[end : run.start()]) if run.start() > end else ()
        characters, end = run.group(), run.end()
        terms += [characters[at : at + 2] for at in range(max(1, len(characters) - 1))]
    return [*terms, *(_extract_word_terms(word[end:]) if end < len(word) else ())]


def get_analyzer_version() -> str:
    """The name of the way in which texts are read: terms that were read in another way may not match."""
    from Stemmer import version

    return f"{_ANALYZER_VERSION}/{version()}"


_THREAD_LOCAL = threading.local()


def _stem(language: str, word: str) -> str:
    """A stemmer keeps what it works on: each thread has its own."""
    stemmers: dict[str, Any] = _THREAD_LOCAL.__dict__
    if language not in stemmers:
        from Stemmer import Stemmer

        stemmers[language] = Stemmer(language)
    stem: str = stemmers[language].stemWord(word)
    return stem
