"""Rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Passage(NamedTuple):
    """A text to score, and what is known of it; empty where nothing is.

    Attributes:
        speaker: who said it.
        day: when, as YYYY-MM-DD.
        before, after: what was said just before and after it.
    """

    text: str
    speaker: str = ""
    day: str = ""
    before: str = ""
    after: str = ""


@runtime_checkable
class Reranker(Protocol):
    """A model that reads a query together with each text."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the relevance in [0, 1] of each text to the query, in the given order."""
        ...


@runtime_checkable
class ContextReranker(Reranker, Protocol):
    """A reranker that reads the context of a text too; a search calls it instead of `score`."""

    def score_passages(self, query: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return the relevance in [0, 1] of each passage to the query, in the given order."""
        ...
