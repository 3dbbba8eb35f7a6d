"""The contract suites, run on the stores that ship."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mem0_core.contracts import MemoryStoreContract, VectorIndexContract
from mem0_core.interfaces import MemoryStore, VectorIndex
from mem0_core.providers.keyring import Keyring, new_key
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector.embedded import NumpyIndex
from mem0_core.stores.vector.faiss import FaissIndex


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "store.db", durability="process")
    yield store
    store.close()


class TestSQLiteFile(MemoryStoreContract):
    @pytest.fixture
    def store(self, file_store: SQLiteStore) -> MemoryStore:
        return file_store


class TestEncryptedSQLite(MemoryStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[MemoryStore]:
        pytest.importorskip("cryptography")
        keyring = Keyring(tmp_path / "keys", master_key=new_key())
        store = SQLiteStore(tmp_path / "store.db", durability="process", keys=keyring)
        yield store
        store.close()


class TestSQLiteInMemory(MemoryStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[MemoryStore]:
        store = SQLiteStore(":memory:")
        yield store
        store.close()


class TestFaissExact(VectorIndexContract):
    @pytest.fixture
    def store(self, file_store: SQLiteStore) -> MemoryStore:
        return file_store

    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: FaissIndex(store, folder=tmp_path / "faiss")


class TestFaissTinyCache(TestFaissExact):
    """Partitions are dropped and read again all the time."""

    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: FaissIndex(store, folder=tmp_path / "faiss", cache_bytes=1)


class TestNumpyExact(TestFaissExact):
    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: NumpyIndex(store, folder=tmp_path / "faiss")


class TestFaissGraph(TestFaissExact):
    """Every partition of more than four vectors becomes an HNSW graph; such small ones it finds exactly."""

    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: FaissIndex(store, folder=tmp_path / "faiss", exact_limit=4)
