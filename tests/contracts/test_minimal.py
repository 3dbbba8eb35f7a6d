"""The contracts of memory records and vectors, run on a store of seven methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from mem0_core.contracts import LexiconContract, RecordsContract, VectorIndexContract, VectorsContract
from mem0_core.domain.filters import Filter, matches
from mem0_core.domain.records import MemoryItem, Scope
from mem0_core.interfaces import MemoryStore, VectorIndex
from mem0_core.stores.minimal import complete_store
from mem0_core.stores.vector.exact import ExactIndex
from mem0_core.stores.vector.faiss import FaissIndex


class DictStore:
    """A `RecordStore` in two dicts."""

    inline = True

    def __init__(self) -> None:
        self.memories: dict[str, MemoryItem] = {}
        self.vectors: dict[str, Any] = {}
        self.space: tuple[str, int] | None = None

    def get(self, memory_id: str) -> MemoryItem | None:
        return self.memories.get(memory_id)

    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> list[MemoryItem]:
        items = sorted(self.memories.copy().values(), key=lambda item: item.created_at)
        found = (item for item in items if (scope is None or scope.contains(item.scope)) and matches(filter, item))
        return list(found)[:limit]

    def vectors_by_id(self, memory_ids: Sequence[str]) -> dict[str, Any]:
        return {memory_id: self.vectors[memory_id] for memory_id in memory_ids if memory_id in self.vectors}

    def embedding_space(self) -> tuple[str, int] | None:
        return self.space

    def write(
        self,
        saved: Sequence[tuple[MemoryItem, Any]],
        deleted_ids: Sequence[str],
        *,
        embedding_space: tuple[str, int] | None,
    ) -> None:
        for memory_id in deleted_ids:
            self.memories.pop(memory_id, None)
            self.vectors.pop(memory_id, None)
        for item, vector in saved:
            self.memories[item.id], self.vectors[item.id] = item, vector
        self.space = embedding_space or self.space

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        pass


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    store = complete_store(DictStore())
    yield store
    store.close()


class TestMinimalStore(RecordsContract, VectorsContract):
    """Everything a small store declares."""


class TestScannedLexicon(LexiconContract):
    """The word index derived from the texts."""


class TestExactIndex(VectorIndexContract):
    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return ExactIndex


class TestFaissOverMinimalStore(VectorIndexContract):
    """A projection that follows a small store."""

    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return FaissIndex
