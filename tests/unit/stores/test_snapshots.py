"""FAISS snapshots on disk: damage to a snapshot never changes search results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mem0_core.contracts import AT, COSINE_TOLERANCE, SPACE, assert_nearest, make_changes, unit_vectors
from mem0_core.contracts import make_item as memory_from_row
from mem0_core.domain.records import Scope
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector._tables import HnswIndex
from mem0_core.stores.vector.faiss import FaissIndex

ALICE = Scope("alice")
COUNT = 400


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "store.db", durability="process")


def fill(store: SQLiteStore, count: int = COUNT, seed: int = 1) -> np.ndarray:
    items = [memory_from_row(f"fact {seed} {index}") for index in range(count)]
    store.commit(make_changes(items, seed=seed), scope=ALICE, at=AT, embedding_space=SPACE)
    return unit_vectors(count, seed=seed)


def open_index(store: SQLiteStore, tmp_path: Path) -> FaissIndex:
    return FaissIndex(store, folder=tmp_path / "faiss", exact_limit=100)


def built(store: SQLiteStore, tmp_path: Path) -> FaissIndex:
    index = open_index(store, tmp_path)
    index.nearest(ALICE, unit_vectors(1), 1)
    index.wait_for_builds()
    return index


def finds_all(index: FaissIndex, vectors: np.ndarray) -> bool:
    return all(found[0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE) for found in index.nearest(ALICE, vectors, 1))


def was_loaded(caplog: pytest.LogCaptureFixture, index: FaissIndex) -> bool:
    (partition,) = index._loaded_partitions()
    return isinstance(partition._index, HnswIndex) and partition._builder is None


def test_a_snapshot_is_loaded_and_catches_up(
    store: SQLiteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = fill(store)
    built(store, tmp_path).close()
    late = fill(store, 5, seed=2)
    gone = store.list_memories(ALICE)[0]
    store.erase([gone.id], at=AT)
    index = open_index(store, tmp_path)
    assert finds_all(index, vectors[1:])
    assert was_loaded(caplog, index)
    assert finds_all(index, late)
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] < 1 - COSINE_TOLERANCE


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garbage(path: Path) -> None:
    path.write_bytes(b"\x80\x04not an index")


@pytest.mark.parametrize("damage", [flip_a_byte, truncate, garbage, Path.unlink])
@pytest.mark.parametrize("kind", ["hnsw", "rows", "json"])
def test_a_damaged_snapshot_is_built_again(
    store: SQLiteStore, tmp_path: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    vectors = fill(store)
    built(store, tmp_path).close()
    (path,) = (tmp_path / "faiss").glob(f"*.{kind}")
    damage(path)
    index = open_index(store, tmp_path)
    assert finds_all(index, vectors)
    index.wait_for_builds()
    index.close()
    again = open_index(store, tmp_path)
    assert finds_all(again, vectors)


def test_a_snapshot_of_another_time_is_not_used(store: SQLiteStore, tmp_path: Path) -> None:
    fill(store)
    built(store, tmp_path).close()
    store.erase_scope(ALICE, at=AT, purge=True)
    vectors = fill(store, 150, seed=3)
    index = open_index(store, tmp_path)
    assert finds_all(index, vectors)
    assert len(index.nearest(ALICE, vectors[:1], 1000)[0]) == 150


def test_a_half_written_snapshot_does_not_count(store: SQLiteStore, tmp_path: Path) -> None:
    """A crash between the files and the seal leaves the former snapshot in force."""
    vectors = fill(store)
    built(store, tmp_path).close()
    (tmp_path / "faiss" / "user_id-0-half.hnsw").write_bytes(b"half")
    index = open_index(store, tmp_path)
    assert finds_all(index, vectors)


def test_an_unwritable_folder_costs_the_snapshot_not_the_search(
    store: SQLiteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "faiss").write_text("a file where the folder should be")
    vectors = fill(store)
    index = built(store, tmp_path)
    assert finds_all(index, vectors)
    assert "could not write the vector snapshot" in caplog.text
    index.close()


def test_old_files_are_swept(store: SQLiteStore, tmp_path: Path) -> None:
    fill(store)
    built(store, tmp_path).close()
    fill(store, 3, seed=2)
    index = built(store, tmp_path)
    index.close()
    assert sorted(path.suffix for path in (tmp_path / "faiss").iterdir()) == [".hnsw", ".json", ".rows"]
    (seal,) = (tmp_path / "faiss").glob("*.json")
    assert json.loads(seal.read_text())["dims"] == unit_vectors(1).shape[1]


def test_too_many_removed_vectors_start_a_new_graph(store: SQLiteStore, tmp_path: Path) -> None:
    vectors = fill(store)
    index = built(store, tmp_path)
    for item in store.list_memories(ALICE)[:200]:
        store.erase([item.id], at=AT)
    assert finds_all(index, vectors[200:])
    index.wait_for_builds()
    assert finds_all(index, vectors[200:])
    (partition,) = index._loaded_partitions()
    assert partition._index is not None
    assert partition._index.live_count == 200
    assert isinstance(partition._index, HnswIndex)
    assert partition._index.dead_share == 0


def test_a_large_scope_is_found_well_and_filtered_exactly(store: SQLiteStore, tmp_path: Path) -> None:
    vectors = fill(store, 3000)
    index = built(store, tmp_path)
    rows = store.rows(ALICE)
    queries = unit_vectors(50, seed=9)
    hits = 0
    for query, found in zip(queries, index.nearest(ALICE, queries, 10), strict=True):
        exact = set(rows[np.argsort(-(vectors @ query))[:10]].tolist())
        hits += len(exact & {row for row, _ in found})
    assert hits / 500 >= 0.99
    only = rows[::100]
    for query, found in zip(queries, index.nearest(ALICE, queries, 10, allowed_rows=only), strict=True):
        assert_nearest(found, only, vectors[::100], query, 10)


def test_closing_stops_a_builder(store: SQLiteStore, tmp_path: Path) -> None:
    fill(store, 3000)
    index = open_index(store, tmp_path)
    index.nearest(ALICE, unit_vectors(1), 1)
    index.close()
    assert index._loaded_partitions() == []
    with pytest.raises(StoreError, match="closed"):
        index.nearest(ALICE, unit_vectors(1), 1)


def test_what_was_deleted_does_not_survive_in_a_snapshot(store: SQLiteStore, tmp_path: Path) -> None:
    vectors = fill(store)
    index = built(store, tmp_path)
    assert any((tmp_path / "faiss").iterdir())
    item = store.list_memories(ALICE)[0]
    store.erase([item.id], at=AT)
    index.purge_deleted(item.scope)
    assert list((tmp_path / "faiss").iterdir()) == []
    assert finds_all(index, vectors[1:])
    index.close()
    assert any((tmp_path / "faiss").iterdir())
    store.erase_scope(ALICE, at=AT, purge=True)
    index = open_index(store, tmp_path)
    assert index.nearest(ALICE, vectors[:1], 1) == [[]]
    assert list((tmp_path / "faiss").iterdir()) == []


def test_ids_without_memories_take_no_room(store: SQLiteStore, tmp_path: Path) -> None:
    index = open_index(store, tmp_path)
    for number in range(50):
        index.nearest(Scope(f"nobody {number}"), unit_vectors(1), 1)
    assert index._loaded_partitions() == []
