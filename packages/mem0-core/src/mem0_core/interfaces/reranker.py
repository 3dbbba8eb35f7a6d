"""Rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["Reranker"]


@runtime_checkable
class Reranker(Protocol):
    """A model that reads a query together with each text."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the relevance in [0, 1] of each text to the query, in the given order."""
        ...
