"""Texts that a prompt already shows, so that memories do not repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mem0_core.domain.records import fact_opening, same_fact_key

__all__ = ["ShownTexts"]

_SENTENCE_BREAK = re.compile(r"(?<=[.!?…。！？])\s+|(?<=[。！？])|\n+")


class ShownTexts:
    """The texts of a prompt, compared as `same_fact_key` does: case, spacing and punctuation do not count."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        given = [text for text in texts if text.strip()]
        self._count = len(given)
        parts = {part for text in given for part in (text, *_split_sentences(text))}
        self._keys, self._openings = set(map(same_fact_key, parts)), set(map(fact_opening, parts))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, text: object) -> bool:
        """Return True if the prompt shows a text: as it is, or each sentence of it."""
        if not self._keys or not isinstance(text, str) or fact_opening(text) not in self._openings:
            return False
        return same_fact_key(text) in self._keys or all(
            same_fact_key(sentence) in self._keys for sentence in _split_sentences(text)
        )


def _split_sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_BREAK.split(text) if sentence.strip()] or [text]
