"""`NumpyIndex` against `FaissIndex`, and the choice between them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mem0_core import Memory
from mem0_core.domain.records import Scope
from mem0_core.errors import MissingExtraError, StoreError
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector import _tables, embedded, faiss
from mem0_core.stores.vector._tables import FlatIndex, SmallIndex, round_to_half
from mem0_core.stores.vector.embedded import NumpyIndex, create_embedded_index
from mem0_core.stores.vector.faiss import FaissIndex
from tests.support import run_python


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    with Memory({"path": str(tmp_path)}, embedder="hash") as memory:
        for number in range(60):
            memory.add(f"fact number {number} about {number * 7 % 11}", user_id=f"u{number % 2}", infer=False)
    store = SQLiteStore(tmp_path / "memory.db")
    yield store
    store.close()


def test_both_find_the_same(store: SQLiteStore) -> None:
    ours, theirs = NumpyIndex(store), FaissIndex(store)
    rng = np.random.default_rng(5)
    for scope in (Scope(user_id="u0"), Scope(user_id="u1"), Scope(user_id="nobody")):
        rows = store.rows(scope)
        queries = rng.normal(size=(3, 384)).astype(np.float32)
        if len(rows):
            queries = store.vectors(rows[:3].tolist())[1] + queries * np.float32(0.01)
        for k in (1, 5, 100):
            for allowed in (None, rows[::3], rows[:1]):
                found = ours.nearest(scope, queries, k, allowed_rows=allowed)
                expected = theirs.nearest(scope, queries, k, allowed_rows=allowed)
                for one, other in zip(found, expected, strict=True):
                    assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=2e-3)
                    assert len({row for row, _ in one}) == len(one)


def test_removed_vectors_are_not_found_while_the_table_shrinks(tmp_path: Path) -> None:
    rng = random.Random(4)
    with Memory({"path": str(tmp_path), "vector_store": {"provider": "numpy"}}, embedder="hash") as memory:
        ids = [memory.add(f"tea of kind {n}", user_id="ana", infer=False)["results"][0]["id"] for n in range(40)]
        rng.shuffle(ids)
        while ids:
            memory.delete(ids.pop())
            found = memory.search("tea of kind", user_id="ana", limit=100, threshold=0)["results"]
            assert {hit["id"] for hit in found} <= set(ids)
            assert len(found) == len(ids)


@pytest.mark.parametrize("installed", [True, False])
def test_the_default_is_faiss_where_it_is_installed(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    for module in (embedded, faiss):
        monkeypatch.setattr(module, "is_faiss_installed", lambda: installed)
    assert type(create_embedded_index(store, exact_limit=10)) is (FaissIndex if installed else NumpyIndex)
    if not installed:
        with pytest.raises(MissingExtraError, match=r"pip install 'mem0-core\[faiss\]'"):
            FaissIndex(store)


def test_a_memory_works_without_the_libraries_of_the_extras(tmp_path: Path) -> None:
    if importlib.util.find_spec("mem0_models") is None:
        pytest.skip("mem0-models is not installed")
    code = """
import importlib.util, sys
missing = {"faiss", "onnx", "onnxruntime", "tokenizers", "huggingface_hub", "httpx", "openai", "yaml", "rich"}

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in missing else find(name, package)
sys.meta_path.insert(0, Hidden())
from mem0_core import Memory
with Memory(sys.argv[1]) as memory:
    memory.add("I moved to Porto last week.", user_id="maya")
    memory.add("I can't stand coriander.", user_id="maya")
    print(memory.search("What should I leave out of the soup?", user_id="maya")["results"][0]["memory"])
assert not missing & set(sys.modules), missing & set(sys.modules)
"""
    assert run_python(code, tmp_path / "home") == "I can't stand coriander.\n"


# --- few vectors ------------------------------------------------------------------------------------------------------


def test_few_vectors_have_the_values_that_faiss_returns() -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(0, 0.05, size=(60, 384)).astype(np.float32)
    vectors[1] *= 1e-4
    vectors[2] = np.arange(384) * 2.0**-25  # below the normal numbers of half precision, half of them ties
    vectors[3], vectors[4] = 0.0, -vectors[2]
    vectors[5] = 1 + np.arange(384) * 2.0**-12
    rows = np.arange(60)
    small, flat = SmallIndex(384), FlatIndex(384)
    for index in (small, flat):
        index.replace(rows, vectors, ())
    assert np.array_equal(small.vectors(rows)[1], flat.vectors(rows)[1])
    assert np.array_equal(round_to_half(vectors), flat.vectors(rows)[1])
    assert np.array_equal(round_to_half(round_to_half(vectors)), round_to_half(vectors))


def test_few_vectors_are_found_with_the_scores_of_faiss() -> None:
    rng = np.random.default_rng(8)
    vectors = np.repeat(rng.normal(0, 0.05, size=(12, 384)).astype(np.float32), 5, axis=0)  # equal ones too
    small, flat = SmallIndex(384), FlatIndex(384)
    for index in (small, flat):
        index.replace(np.arange(100, 160), vectors, [103, 140])
    for k in (1, 3, 7, 60):
        for allowed in (None, np.arange(100, 160, 3)):
            found = small.search(vectors[::7], k, allowed, None)
            expected = flat.search(vectors[::7], k, allowed, None)
            for one, other in zip(found, expected, strict=True):
                assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-6)
                assert k < 60 or {row for row, _ in one} == {row for row, _ in other}


def test_a_partition_moves_to_faiss_when_its_vectors_are_no_longer_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tables, "_SMALL_NUMBERS", 40 * 384)
    with Memory({"path": str(tmp_path)}, embedder="hash") as memory:
        index, scope = FaissIndex(memory.store), Scope(user_id="u")
        kinds = []
        for count in (30, 8, 9, 2):
            texts = [f"fact {count} {number} about {number * 7 % 11}" for number in range(count)]
            memory.add_many(texts, user_id="u")
            rows = memory.store.rows(scope)
            for row, vector in zip(*memory.store.vectors(rows.tolist()), strict=True):
                ((nearest, score),) = index.nearest(scope, vector[None], 1)[0]
                assert nearest == row
                assert score == pytest.approx(1, abs=2e-3)
            kinds.append(type(index._partitions[scope]._index))
        assert kinds == [SmallIndex, SmallIndex, FlatIndex, FlatIndex]


def test_a_search_of_few_memories_imports_no_faiss(tmp_path: Path) -> None:
    code = """
import sys
from mem0_core import Memory
for number in range(2):
    with Memory(sys.argv[1], embedder="hash") as memory:
        memory.add([{"role": "user", "content": f"I live in Porto, at number {number}. My sister Anna likes tea."}],
            user_id="maya")
        print(len(memory.search("Where does Anna live?", user_id="maya")["results"]))
assert "faiss" not in sys.modules
"""
    assert run_python(code, tmp_path / "home") == "1\n2\n"


def test_rows_are_read_without_a_partition_until_it_is_searched(store: SQLiteStore) -> None:
    index, scope = FaissIndex(store), Scope(user_id="u0")
    rows = store.rows(scope)
    read = index.read_vectors(scope, rows[::2])
    assert read is not None
    assert index._loaded_partitions() == []
    index.nearest(scope, read[1][:1], 1)
    again = index.read_vectors(scope, rows[::2])
    assert again is not None
    order, order_again = np.argsort(read[0]), np.argsort(again[0])
    assert np.array_equal(read[0][order], again[0][order_again])
    assert np.array_equal(read[1][order], again[1][order_again])
    assert index.read_vectors(scope, np.array([10**6])) is not None  # of a loaded partition: none of the rows
    assert index.read_vectors(Scope(user_id="nobody"), np.array([10**6])) is None
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.read_vectors(Scope(user_id="u1"), rows)


def test_a_read_of_another_user_drops_the_partitions_of_an_earlier_epoch(store: SQLiteStore) -> None:
    index, scope = FaissIndex(store), Scope(user_id="u0")
    rows = store.rows(scope)
    index.nearest(scope, store.vectors(rows[:1].tolist())[1], 1)
    assert index._loaded_partitions()
    store.erase_scope(scope, at="2026-01-01T00:00:00+00:00", purge=True)
    assert index.read_vectors(Scope(user_id="u1"), store.rows(Scope(user_id="u1"))) is not None
    assert index._loaded_partitions() == []
