"""Look up many names in one text that is split into words once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WORDS = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Return the words of a text as names are compared: without case and punctuation."""
    return _WORDS.findall(text.casefold())


class MentionIndex:
    """The words of some segments and their positions.

    A lookup takes as long as the rarest word of the name is frequent, so that many names cost no more than the text.
    """

    def __init__(self, segments: Sequence[str]) -> None:
        self._segments = segments
        self._words: list[str] = []
        self._segment_of: list[int] = []
        for number, segment in enumerate(segments):
            words = words_of(segment)
            self._words += [*words, ""]  # no name goes on from one segment to the next
            self._segment_of += [number] * (len(words) + 1)
        self._positions: dict[str, list[int]] = {}
        for position, word in enumerate(self._words):
            self._positions.setdefault(word, []).append(position)

    def segments(self, name: str) -> list[int]:
        """Return the numbers of the segments that mention a name, see `records.mentions_name`."""
        return list(dict.fromkeys(self._mentioning(name)))

    def mentions_name(self, name: str) -> bool:
        """Return True if any segment mentions a name."""
        return any(True for _ in self._mentioning(name))

    def _mentioning(self, name: str) -> Iterator[int]:
        words = words_of(name)
        if not words:
            yield from (number for number, text in enumerate(self._segments) if name.strip() and name in text)
            return
        rarest = min(range(len(words)), key=lambda at: len(self._positions.get(words[at], ())))
        for position in self._positions.get(words[rarest], ()):
            start = position - rarest
            if start >= 0 and self._words[start : start + len(words)] == words:
                yield self._segment_of[start]
