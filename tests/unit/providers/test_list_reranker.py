"""`LocalListReranker`: the packaged listwise reranker, and folders of its form."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from mem0_core import Memory
from mem0_core.errors import ConfigError, InputError
from mem0_core.interfaces import Candidate, ContextReranker, ListwiseReranker
from mem0_core.providers.list_reranker import LocalListReranker
from mem0_core.providers.local_reranker import LocalReranker
from tests.tiny_bert import Weights, quantize, random_weights, write_model_folder, write_safetensors

real = pytest.mark.skipif(importlib.util.find_spec("mem0_models") is None, reason="mem0-models is not installed")

CANDIDATES = [
    Candidate("alice likes climbing in paris", "user", "2024-05-08", 30, 0.7, False, 0.4),
    Candidate("coffee", "user", "2024-05-09", 29, 0.6, True, 0.3),
    Candidate("bob and the coffee", "assistant", "2023-05-09", 394, 0.5, False, 0.2),
    Candidate("the " * 200, "user", "2024-06-01", 6, 0.1, False, 0.1),
]


def list_weights(dims: int = 24) -> Weights:
    """The tensors of a comparison of random weights, and of its heads."""
    rng = np.random.default_rng(7)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    layers = random_weights(9, dims=dims, inner=2 * dims, layers=2)
    found = {f"list.{name[8:]}": one for name, one in layers.items() if name.startswith("encoder.layer.")}
    for name, size in (("enter", dims), ("features", 6), ("score", dims), ("score_none", dims)):
        rows = 1 if name.startswith("score") else dims
        found[f"list.{name}.weight"], found[f"list.{name}.bias"] = normal(rows, size), normal(rows)
    found |= {"list.order.weight": normal(16, dims), "list.none": normal(1, dims)}
    return found | {"head.weight": normal(1, dims), "head.bias": normal(1), "signals.weight": normal(1, 6)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = write_model_folder(tmp_path / "list", random_weights(3))
    write_safetensors(model / "model.safetensors", {**random_weights(3), **list_weights()})
    return model


def test_probabilities_leave_a_share_for_none_and_do_not_depend_on_the_order(folder: Path) -> None:
    reranker = LocalListReranker(path=folder, threads=2)
    shares = reranker.compare("who likes climbing", CANDIDATES)
    assert all(0 < share < 1 for share in shares)
    assert 0 < sum(shares) < 1
    assert len({round(share, 4) for share in shares}) == len(CANDIDATES)
    places = random.Random(1).sample(range(len(CANDIDATES)), len(CANDIDATES))
    shuffled = reranker.compare("who likes climbing", [CANDIDATES[place] for place in places])
    assert shuffled == pytest.approx([shares[place] for place in places], abs=1e-5)
    assert reranker.compare("who", []) == []


def test_a_probability_depends_on_the_other_candidates(folder: Path) -> None:
    reranker = LocalListReranker(path=folder)
    first, second, *_ = reranker.compare("who likes climbing", CANDIDATES)
    pair = reranker.compare("who likes climbing", CANDIDATES[:2])
    assert pair[0] / pair[1] != pytest.approx(first / second, rel=1e-3)


def test_both_runtimes_give_nearly_the_same_probabilities(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    stored, _ = quantize({**random_weights(3), **list_weights()})
    write_safetensors(folder / "model.safetensors", stored)
    rounded = LocalListReranker(path=folder).compare("who likes climbing", CANDIDATES)
    monkeypatch.setattr("mem0_core.providers.local_reranker.find_spec", lambda name: None)
    exact = LocalListReranker(path=folder).compare("who likes climbing", CANDIDATES)
    assert rounded == pytest.approx(exact, abs=0.02)


def test_lower_layers_may_be_those_of_the_base(folder: Path, tmp_path: Path) -> None:
    whole = LocalListReranker(path=folder).compare("who likes climbing", CANDIDATES)
    weights = {**random_weights(3), **list_weights()}
    upper = {name: one for name, one in weights.items() if not name.startswith(("embeddings.", "encoder.layer.0."))}
    write_model_folder(tmp_path / "first", random_weights(3))
    write_model_folder(tmp_path / "second", {"encoder.layer.0.attention.self.query.bias": np.zeros(24, np.float32)})
    lower = {name: one for name, one in weights.items() if name.startswith("encoder.layer.0.")}
    write_model_folder(tmp_path / "second", lower, base="../first/model.safetensors")
    (tmp_path / "second" / "tokenizer.json").unlink()
    shared = write_model_folder(tmp_path / "shared", upper, base="../second/model.safetensors")
    (shared / "tokenizer.json").unlink()
    assert LocalListReranker(path=shared).compare("who likes climbing", CANDIDATES) == pytest.approx(whole)


def test_a_folder_without_the_layers_of_a_comparison_is_refused(tmp_path: Path) -> None:
    plain = write_model_folder(tmp_path / "plain", random_weights(3))
    with pytest.raises(ConfigError, match=r"head\.weight"):
        LocalListReranker(path=plain).compare("who", CANDIDATES)
    with pytest.raises(ConfigError, match="no folder"):
        LocalListReranker(path=tmp_path / "missing").compare("who", CANDIDATES)


def test_too_many_candidates_are_refused_and_odd_ones_are_read(folder: Path) -> None:
    reranker = LocalListReranker(path=folder)
    with pytest.raises(InputError, match="16 were given"):
        reranker.compare("who", CANDIDATES * 4)
    odd = [Candidate(""), Candidate("\ud800", "tool", "", -5, -0.2), Candidate("bob", score=0.0)]
    assert 0 < sum(reranker.compare("", odd)) < 1


def test_it_is_named_and_can_be_chosen_by_name(folder: Path, tmp_path: Path) -> None:
    assert repr(LocalListReranker(path=folder)) == f"LocalListReranker({str(folder)!r})"
    with Memory({"path": tmp_path / "data"}, reranker="mem0-list-reranker") as memory:
        assert repr(memory._reranker) == "LocalListReranker('mem0-list-reranker')"
    with pytest.raises(ConfigError, match="no listwise reranker 'other'"):
        LocalListReranker("other")


def test_it_is_a_reranker_of_texts_and_of_lists() -> None:
    assert isinstance(LocalListReranker(), ListwiseReranker)
    assert isinstance(LocalListReranker(), ContextReranker)
    assert not isinstance(LocalReranker(), ListwiseReranker)


@real
@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("what car do I drive?", "I drive a Ford Ranger.", "Ranger failed its MOT, a mate found me an Isuzu"),
        ("who is my dentist?", "Dr Lind is my dentist, she is gentle", "the new dentist, Dr Okafor, plays jazz"),
        ("where do I work?", "I work at the bakery on Mill Road", "handed in my apron, Monday I start at the library"),
    ],
)
def test_the_packaged_model_prefers_the_message_that_reports_a_change(query: str, old: str, new: str) -> None:
    candidates = [
        Candidate(old, "user", "2021-03-02", 700, 0.6, False, 0.6),
        Candidate(new, "user", "2022-09-12", 140, 0.45, False, 0.45),
        Candidate("we had soup", "user", "2022-10-01", 121, 0.1, False, 0.05),
    ]
    shares = LocalListReranker().compare(query, candidates)
    assert shares.index(max(shares)) == 1
