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
from mem0_core.errors import MissingExtraError
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector import embedded, faiss
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
        monkeypatch.setattr(module, "find_spec", lambda name: object() if installed else None)
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
