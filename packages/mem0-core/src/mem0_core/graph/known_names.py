"""Names of a graph in a question: found without regard to case, and written as the graph has them.

"where does karen work" becomes "where does Karen work", so that a reader of questions sees the name. A name of the
speaker becomes the first person: once Maya has introduced herself, "Where does Maya live?" means "Where do I live?".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mem0_core.domain.records import entity_key
from mem0_core.graph.adjacency import Adjacency, name_opening
from mem0_core.language.terms import is_stop_word

_MAX_TEXT_CHARS = 2_000  # characters of a question in which names are looked for
_MAX_NAME_WORDS = 6
_WORD = re.compile(r"\w+(?:[.&+-]\w+|['’](?!s\b)\w+)*")
_LETTERS = re.compile(r"\w+")
_QUOTED = re.compile(r"(?<!\w)['‘]([^'‘’\n]{1,80})['’](?!\w)|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»")


def _split_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COMMON_WORDS = _split_set(
    "will may mark art bill rose grace hope joy faith drew rob sue pat frank gene dot june april august summer china"
    " turkey polish reading nice bath mobile orange target gap shell cliff dale dean earl guy jack miles penny ray rich"
    " sandy wade ward young long short brown green white black grey gray good best west north south east price king"
    " page park hall hill wood field stone ford lane may march early late angel chance chase heath ivy lily daisy iris"
    " ruby amber pearl jade ginger basil sage olive poppy violet hazel holly heather robin jay martin drake finch"
)
"""First names and surnames that are words as well: in lower case they are read as words."""
_DETERMINERS = _split_set("a an the my your his her its our their this that these those some any no which what to")


def restore_names(adjacency: Adjacency, text: str) -> str:
    """Return a question with the names of a graph as the graph has them; the rest is unchanged.

    Names of the speaker become "I", "me" and "my". A name in single quotes gets double quotes. Words that are names
    as well ("will", "rose") are left alone in lower case, and so are names in double quotes.
    """
    if not adjacency.vertices:
        return text
    head = text[:_MAX_TEXT_CHARS]
    if head.isascii() and not adjacency.find_openings({"", *_LETTERS.findall(head.lower())}):
        return text  # as most questions; an accent after a word would change it
    spans = list(_find_names(adjacency, head))
    for start, end, name in reversed(spans):
        head = head[:start] + name + head[end:]
    return head + text[_MAX_TEXT_CHARS:]


def _find_names(adjacency: Adjacency, text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start and end of each known name in another spelling, and its known form."""
    quoted = {match.start(): match for match in _QUOTED.finditer(text)}
    skipped_until = 0
    words = list(_WORD.finditer(text))
    openings = adjacency.find_openings({name_opening(word.group()) for word in words}) if text.isascii() else None
    index = 0
    while index < len(words):
        start = words[index].start()
        quotation = next((match for match in quoted.values() if match.start() <= start < match.end()), None)
        if quotation is not None and start >= skipped_until:
            skipped_until = quotation.end()
            inner = quotation[1]
            if inner is not None and (name := next(_iter_known(adjacency, inner), "")):
                yield quotation.start(), quotation.end(), f'"{name}"'
        if start < skipped_until or (openings is not None and name_opening(words[index].group()) not in openings):
            index += 1
            continue
        if size := _count_own_words(adjacency, text, words, index):
            yield _to_first_person(text, words, index, size)
            index += size
            continue
        size, name = _match_words(adjacency, text, words, index)
        end = words[index + size - 1].end() if size else start
        if name and text[start:end] != name:
            yield start, end, name
        index += max(1, size)


_FIRST_PERSON = {"does": "do", "is": "am", "has": "have"}
_BEFORE_SUBJECTS = _split_set(
    "do did was will can could should would had may might must where what who whom when why how which that because if"
    " whether and since than"
)


def _count_own_words(adjacency: Adjacency, text: str, words: Sequence[re.Match[str]], index: int) -> int:
    """Return the number of words of the longest name of the speaker that begins at a word; 0 for none."""
    if not adjacency.own_names:
        return 0
    sizes = range(min(_MAX_NAME_WORDS, len(words) - index), 0, -1)
    start = words[index].start()
    keys = ((size, entity_key(text[start : words[index + size - 1].end()])) for size in sizes)
    return next((size for size, key in keys if key in adjacency.own_names and size < len(words)), 0)


def _to_first_person(text: str, words: Sequence[re.Match[str]], index: int, size: int) -> tuple[int, int, str]:
    """Return the start and end of a name of the speaker, with the verb before it, and the first person for them."""
    start, end = words[index].start(), words[index + size - 1].end()
    if text[end : end + 2] in ("'s", "’s"):
        return start, end + 2, "my"
    before = words[index - 1].group().casefold() if index else ""
    if before in _FIRST_PERSON:
        return words[index - 1].start(), end, f"{_FIRST_PERSON[before]} I"
    return start, end, "I" if not before or before in _BEFORE_SUBJECTS else "me"


def _iter_known(adjacency: Adjacency, name: str) -> Iterator[str]:
    """Yield the names that the graph has for a name: its spelling, and the name that it was merged into."""
    return (adjacency.names[vertex] for vertex in adjacency.find_vertices(name))


def _get_proper(adjacency: Adjacency, name: str) -> str:
    """Return the first known form of a name that begins with a capital; empty if there is none."""
    return next((known for known in _iter_known(adjacency, name) if known[:1].isupper()), "")


def _match_words(adjacency: Adjacency, text: str, words: Sequence[re.Match[str]], index: int) -> tuple[int, str]:
    """Return the number of words of the longest known name that begins at a word, and its known form."""
    first = words[index].group().casefold()
    before = words[index - 1].group().casefold() if index else ""
    for size in range(min(_MAX_NAME_WORDS, len(words) - index), 1, -1):
        end = words[index + size - 1].end()
        if known := _get_proper(adjacency, text[words[index].start() : end]):
            return size, known
    is_typed_as_word = words[index].group().islower() and (first in _COMMON_WORDS or before in _DETERMINERS)
    if is_typed_as_word or is_stop_word(first):
        return 0, ""
    known = _get_proper(adjacency, first) or adjacency.find_first_word(first)
    return (1, known) if known else (0, "")
