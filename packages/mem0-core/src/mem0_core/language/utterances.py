"""Tell statements from questions, greetings and acknowledgements, without a model.

A text is cut into sentences, and these into clauses. A sentence is a question by its mark or, as in hurried messages,
by its first words ("what does ...", "is my ...", "tell me ..."); a clause such as "I'm vegan" makes it a statement
anyway. Everything else is a statement, unless it consists of phrases such as "hi" or "that helped a lot".
The rules are for English; question marks and common greetings count in other languages too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from mem0_core.language._tables import load_tables
from mem0_core.language._utterance_patterns import (
    ASSERTION,
    COURTESY,
    EXCLAMATION,
    INVERSION_WITH_NAME,
    JUDGEMENT,
    NAMED_ASSERTION,
    QUESTION,
)

_MAX_CHARS = 1_000  # a longer text has something to say
_MAX_QUESTION_WORDS = 40  # a longer question tells its circumstances too, and one with figures does sooner
_MAX_WORDS_WITH_FIGURES = 24
_MAX_PHRASE_WORDS = 6
_MAX_NAME_WORDS = 2
_APOSTROPHES = str.maketrans("’‘`´ʼ？！。؟", "'''''?!.?")
_QUOTED_QUESTION = re.compile(r"[\"“«][^\"“”«»]{0,300}\?[^\"“”«»]{0,300}[\"”»]")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z]\.)(?<!\b[DMS][rst]\.)(?<!\bMrs\.)(?<=[.!?…])[\"')\]]*\s+|\n+")
_CLAUSE_END = re.compile(
    r"[,;:()]\s+|\s[-–—]+\s|[–—]"
    r"|(?<=[\w'])\s+(?=(?:because|considering|given|now that|since (?:i'm|i am|i have|we're|my))\b)"
)
_EDGES = re.compile(r"^[^\w'¿]+|[^\w']+$")
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")


def is_statement(text: str) -> bool:
    """Return True if a text states something, so that it is worth a memory.

    Questions, requests for an answer, greetings, thanks and acknowledgements state nothing; a text of which one
    sentence is a statement is one.
    """
    if len(text) > _MAX_CHARS or "```" in text:
        return True
    plain = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    plain = _QUOTED_QUESTION.sub(" ", plain)
    return any(_states(sentence) for sentence in _SENTENCE_END.split(plain))


def is_question(text: str) -> bool:
    """Return True if a text states nothing and asks something: a question, or a request for an answer."""
    sentences = [] if is_statement(text) else _SENTENCE_END.split(text.translate(_APOSTROPHES))
    return any("?" in one[-4:] or any(map(_asks, _CLAUSE_END.split(one))) for one in sentences)


def _states(sentence: str) -> bool:
    """Return True if one sentence states something."""
    clauses = [clause for one in _CLAUSE_END.split(sentence) if (clause := _clean(one))]
    clauses = [clause for clause in clauses if not _is_phrase(clause)]
    if not clauses:
        return False
    words = _words(sentence)
    has_figures = any(word[0].isdigit() for word in words)
    if len(words) > (_MAX_WORDS_WITH_FIGURES if has_figures else _MAX_QUESTION_WORDS):
        return True
    if "?" in sentence[-4:]:
        is_confirmation = len(clauses) > 1 and clauses[-1].casefold() in _phrases()["tags"]
        return not is_confirmation and any(map(_asserts, clauses))
    first, *others = clauses
    return not _asks(first) or any(map(_asserts, others))


def _clean(clause: str) -> str:
    """Return a clause without the marks around it."""
    return _EDGES.sub("", clause)


# --- phrases ---------------------------------------------------------------------------------------------------------


def _is_phrase(clause: str) -> bool:
    """Return True if a clause only greets, thanks, agrees or judges."""
    words = _words(clause)
    text, rest = " ".join(words), _without_phrases(words)
    if not rest or _phrases()["fillers"].issuperset(words) or JUDGEMENT.fullmatch(text) or COURTESY.match(text):
        return True
    is_greeted = len(words) - len(rest) > 0 and " ".join(words[: len(words) - len(rest)]) in _phrases()["greetings"]
    return is_greeted and len(rest) <= _MAX_NAME_WORDS and not set(rest) & _phrases()["subjects"]


def _without_phrases(words: list[str]) -> list[str]:
    """Return the words after the phrases at the start."""
    start = 0
    while start < len(words):
        for end in range(min(len(words), start + _MAX_PHRASE_WORDS), start, -1):
            if " ".join(words[start:end]) in _phrases()["all"]:
                start = end
                break
        else:
            if not (start and words[start] in _phrases()["fillers"]):
                break
            start += 1
    return words[start:]


def _words(clause: str) -> list[str]:
    return _WORD.findall(clause.casefold())


# --- questions -------------------------------------------------------------------------------------------------------


def _asks(clause: str) -> bool:
    """Return True if a clause without a question mark is a question or a request for an answer."""
    text = " ".join(_without_openers(_words(clause)))
    if EXCLAMATION.match(text):
        return False
    named = INVERSION_WITH_NAME.search(clause)
    return named is not None or QUESTION.match(text) is not None


def _asserts(clause: str) -> bool:
    """Return True if a clause in or next to a question states something by itself: "I'm vegan, what can I eat?"."""
    text = " ".join(_without_openers(_words(clause)))
    if QUESTION.match(text):
        return False
    return ASSERTION.match(text) is not None or NAMED_ASSERTION.match(clause) is not None


def _without_openers(words: list[str]) -> list[str]:
    """Return the words without conjunctions and greetings at the start: "ok and what about Tom" is "what about Tom"."""
    while words:
        start = 1 if words[0] in _phrases()["openers"] else 2 if " ".join(words[:2]) in _phrases()["greetings"] else 0
        if not 0 < start < len(words):
            break
        words = words[start:]
    return words


@lru_cache(maxsize=1)
def _phrases() -> Mapping[str, frozenset[str]]:
    """Return the lists of phrases by name; "all" are greetings and replies."""
    tables = load_tables("phrases")
    lists = {name: frozenset(" ".join(one.split()) for one in text.split(",")) for name, text in tables.items()}
    return {**lists, "all": lists["greetings"] | lists["replies"]}
