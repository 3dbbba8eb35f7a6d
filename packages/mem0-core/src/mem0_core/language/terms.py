"""Terms and names of a text, by which memories are found without a model.

Terms are words in lower case, without accents and vowel points. They are stemmed where the script decides which stemmer
is safe: Snowball's English one for the Latin alphabet (it leaves other languages alone, or treats query and memory
alike), Russian for Cyrillic, Greek, Arabic. Scripts without spaces become pairs of characters. English stop words are
dropped; those of other languages are so common that they weigh little.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.bounds import MAX_NAME_TEXT_CHARS, MAX_NAMES
from mem0_core.domain.normalization import normalize
from mem0_core.domain.records import Entity
from mem0_core.language import rule_extractor as rules
from mem0_core.language.statements import slots_of

_ANALYZER_VERSION = 2  # to be raised by every change of this module that changes the terms of a text
_MAX_CACHED_CHARS = 4_000  # of a text
_MAX_TERM_CHARS = 40  # longer words are links, keys or noise, which differ in their first characters

# Some scripts write vowels as separate marks, which belong to the word: Indic ones, Thai, Lao, Khmer, Myanmar.
_WORD = re.compile(
    r"(?:[^\W_]|[\u0900-\u0dff\u0e31\u0e34-\u0e4e\u0eb1-\u0ecd\u0f71-\u0fbc\u102b-\u103e\u17b4-\u17d3])+"
)
# Thai, Lao, Myanmar, Khmer; kana, Han, Hangul (which has spaces, but joins particles to its words).
_UNSPACED = (  # as text: most programs never need it compiled
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+|[\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
    r"\U00020000-\U0003134f]+"
)
# Accents, Hebrew points, Arabic vowel signs and the stroke that only lengthens a word.
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
    """Features of a text that search needs.

    Attributes:
        terms: in the order of the text, repeated as often as they occur.
        names: distinct names, folded by `fold_names`.
        word_count: number of words, stop words included.
        is_question: True if the text ends with a question.
        slots: distinct keys of the slots that the text makes statements about, see `language.statements`.
    """

    terms: tuple[str, ...]
    names: tuple[str, ...]
    word_count: int
    is_question: bool
    slots: tuple[str, ...] = ()


def analyze_text(text: str, speaker: str | None = None, role: str | None = None) -> TextTerms:
    """Return the features of a memory; the words of its speaker's name are terms of it too.

    Args:
        role: role of the message it comes from; an assistant without a name makes no statements about the user.
    """
    words = split_words(text)
    speaker_terms = [term for word in split_words(speaker or "") for term in _word_terms(word)]
    terms = (*speaker_terms, *(term for word in words for term in _word_terms(word)))
    is_question = _QUESTION_END.search(text[-16:]) is not None
    slots = () if role == "assistant" and speaker is None else slots_of(text, speaker)
    return TextTerms(terms, extract_names(text), len(words), is_question, slots)


def extract_terms(text: str) -> list[str]:
    """Return the terms of a query, in the order of the text."""
    return [term for word in split_words(text) for term in _word_terms(word)]


@text_cache(1024, max_chars=_MAX_CACHED_CHARS)  # a fact meets each message, each operation and each shown memory
def term_set(text: str) -> frozenset[str]:
    """Return the distinct terms of a text."""
    return frozenset(extract_terms(text))


def split_words(text: str) -> list[str]:
    """Return the words of a text, folded but neither stemmed nor cut."""
    if not text.isascii():
        text = normalize("NFC", _DIACRITICS.sub("", normalize("NFKD", text)))
    return _WORD.findall(text.casefold())


def is_stop_word(word: str) -> bool:
    """Return True for an English word without meaning of its own."""
    return word in _STOP


def extract_names(text: str) -> tuple[str, ...]:
    """Return the distinct names in a text, folded by `fold_names`."""
    return fold_names(rules.entities(text[:MAX_NAME_TEXT_CHARS]))


def fold_names(entities: Iterable[Entity]) -> tuple[str, ...]:
    """Return the distinct names of entities in a form in which two spellings of one name are equal."""
    folded = (" ".join(split_words(entity.name)) for entity in entities)
    return tuple(name[:_MAX_TERM_CHARS] for name in dict.fromkeys(folded) if name)[:MAX_NAMES]


@text_cache(65_536)  # the words of a language recur, and stemming one takes microseconds
def _word_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one word: none for a stop word, several for a script without spaces."""
    if word in _STOP:
        return ()
    if not word.isascii() and re.search(_UNSPACED, word):
        return tuple(_split_unspaced(word))
    for script, language in _STEMMERS:
        if script.fullmatch(word):
            return (_stem(language, word[:_MAX_TERM_CHARS]),)
    return (word[:_MAX_TERM_CHARS],)


def _split_unspaced(word: str) -> list[str]:
    """Return runs without spaces as pairs of characters, and the parts between such runs as terms."""
    terms, end = list[str](), 0
    for run in re.finditer(_UNSPACED, word):
        terms += _word_terms(word[end : run.start()]) if run.start() > end else ()
        characters, end = run.group(), run.end()
        terms += [characters[index : index + 2] for index in range(max(1, len(characters) - 1))]
    return [*terms, *(_word_terms(word[end:]) if end < len(word) else ())]


def get_analyzer_version() -> str:
    """Return the version of this analysis; terms of different versions may not match."""
    from Stemmer import version

    return f"{_ANALYZER_VERSION}/{version()}"


_THREAD_LOCAL = threading.local()


def _stem(language: str, word: str) -> str:
    """Return the stem of a word. Stemmers are not thread-safe, so each thread has its own."""
    stemmers: dict[str, Any] = _THREAD_LOCAL.__dict__
    if language not in stemmers:
        from Stemmer import Stemmer

        stemmers[language] = Stemmer(language, 0)  # without its own cache: `_word_terms` has one, which can be cleared
    stem: str = stemmers[language].stemWord(word)
    return stem
