"""The baseline: one flat FAISS index for all users, saved whole after every insert, filtered after the search.

This is the simplest way to use FAISS for a memory, and mem0's FAISS store works like it (it fetches twice as many
results as requested, then filters). The documents are JSON here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

__all__ = ["FlatStore"]


class FlatStore:
    """All users' memories in one index."""

    def __init__(self, folder: Path, dims: int) -> None:
        self._folder = folder
        self._index: Any = faiss.IndexFlatIP(dims)
        self._documents: list[dict[str, str]] = []

    def insert(
        self, texts: Sequence[str], vectors: NDArray[np.float32], users: Sequence[str], *, save: bool = True
    ) -> None:
        self._index.add(np.ascontiguousarray(vectors))
        self._documents += [
            {"id": str(uuid.uuid4()), "data": text, "user_id": user} for text, user in zip(texts, users, strict=True)
        ]
        if save:
            faiss.write_index(self._index, str(self._folder / "memories.faiss"))
            with (self._folder / "documents.json").open("w", encoding="utf-8") as file:
                json.dump(self._documents, file)

    def search(self, query: NDArray[np.float32], user: str, k: int) -> list[int]:
        """Return positions of the user's memories among the 2k nearest of all users, k at most."""
        _, (places,) = self._index.search(query[None], 2 * k)
        return [int(place) for place in places if place >= 0 and self._documents[place]["user_id"] == user][:k]
