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


class Candidate(NamedTuple):
    """A memory that a search found, to be compared with the others.

    Attributes:
        role: the speaker, ``user`` or ``assistant``.
        day: the date, YYYY-MM-DD.
        days_ago: its age at the time of the question.
        score: its first score, in [0, 1].
        is_answer: True if a statement that rules read in it answers the question.
        cosine: its cosine to the query.
    """

    text: str
    role: str = "user"
    day: str = ""
    days_ago: int = 0
    score: float = 0.0
    is_answer: bool = False
    cosine: float = 0.0


@runtime_checkable
class ListwiseReranker(Reranker, Protocol):
    """A reranker that compares the memories that a search found with one another."""

    def compare(self, query: str, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Return the probability of each candidate that it is the answer; the rest is that of no answer among them."""
        ...
