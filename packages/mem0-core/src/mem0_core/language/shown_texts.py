"""Texts that a prompt already shows, so that memories do not repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from mem0_core.domain.records import fact_opening, same_fact_key

_SENTENCE_BREAK = re.compile(r"(?<=[.!?…。！？])\s+|(?<=[。！？])|\n+")


class ShownTexts:
    """The texts of a prompt, compared as `same_fact_key` does: case, spacing and punctuation do not count."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        given = [text for text in texts if text.strip()]
        self._count = len(given)
        self._parts = {part for text in given for part in (text, *_split_sentences(text))}
        self._openings = set(map(fact_opening, self._parts))

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _keys(self) -> set[bytes]:  # seldom needed: few memories open as a shown text does
        return set(map(same_fact_key, self._parts))

    def __contains__(self, text: object) -> bool:
        """Return True if the prompt shows a text: as it is, or each sentence of it."""
        if not self._count or not isinstance(text, str) or fact_opening(text) not in self._openings:
            return False
        return same_fact_key(text) in self._keys or all(
            same_fact_key(sentence) in self._keys for sentence in _split_sentences(text)
        )


def _split_sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_BREAK.split(text) if sentence.strip()] or [text]
