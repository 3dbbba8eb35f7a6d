"""`LocalReranker`: the packaged cross-encoder, folders of its form, and the context that a search gives it."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import mem0_core
from mem0_core import AsyncMemory, Memory
from mem0_core.errors import ConfigError
from mem0_core.interfaces import ContextReranker, Passage
from mem0_core.providers.local_reranker import LocalReranker
from mem0_core.testing import HashEmbedder
from tests.tiny_bert import quantize, random_weights, write_model_folder, write_safetensors

real = pytest.mark.skipif(importlib.util.find_spec("mem0_models") is None, reason="mem0-models is not installed")

PASSAGES = [
    Passage("alice likes climbing in paris", "bob", "2024-05-08", "the coffee", "and"),
    Passage("coffee"),
    Passage("", "alice"),
    Passage("the " * 200, before="bob " * 90),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reranker with random weights."""
    weights = random_weights(3)
    head = {"head.weight": np.ones((1, 24), np.float32), "head.bias": np.zeros(1, np.float32)}
    model = write_model_folder(tmp_path / "reranker", weights)
    write_safetensors(model / "model.safetensors", {**weights, **head})
    return model


def test_scores_are_probabilities_and_do_not_depend_on_the_batch(folder: Path) -> None:
    reranker = LocalReranker(path=folder, threads=2)
    together = reranker.score_passages("who likes climbing", PASSAGES * 12)
    assert all(0 < score < 1 for score in together)
    alone = [reranker.score_passages("who likes climbing", [passage])[0] for passage in PASSAGES]
    assert together == pytest.approx(alone * 12, abs=1e-5)
    assert len({round(score, 4) for score in alone}) == len(PASSAGES)
    assert reranker.score_passages("who", []) == []


def test_a_text_alone_is_a_passage_without_context(folder: Path) -> None:
    reranker = LocalReranker(path=folder)
    assert reranker.score("bob", ["coffee"]) == reranker.score_passages("bob", [Passage("coffee")])
    assert reranker.score("bob", ["coffee"]) != reranker.score_passages("bob", [Passage("coffee", speaker="bob")])


@pytest.fixture
def small_folder(folder: Path) -> Path:
    """The same reranker with matrices in int8."""
    stored, _ = quantize(random_weights(3))
    head = {"head.weight": np.ones((1, 24), np.float32), "head.bias": np.zeros(1, np.float32)}
    write_safetensors(folder / "model.safetensors", {**stored, **head})
    return folder


class TestMatricesInInt8:
    def test_both_runtimes_give_nearly_the_same_scores(
        self, small_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("onnxruntime")
        rounded = LocalReranker(path=small_folder).score_passages("who likes climbing", PASSAGES)
        monkeypatch.setattr("mem0_core.providers.local_reranker.find_spec", lambda name: None)
        exact = LocalReranker(path=small_folder).score_passages("who likes climbing", PASSAGES)
        assert rounded != exact
        assert rounded == pytest.approx(exact, abs=0.02)

    def test_scores_do_not_depend_on_the_batch(self, small_folder: Path) -> None:
        pytest.importorskip("onnxruntime")
        reranker = LocalReranker(path=small_folder, threads=2)
        together = reranker.score_passages("who likes climbing", PASSAGES * 12)
        alone = [reranker.score_passages("who likes climbing", [passage])[0] for passage in PASSAGES]
        assert together == pytest.approx(alone * 12, abs=1e-5)

    def test_a_processor_without_exact_products_of_int8_gets_the_same_scores(
        self, small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("onnxruntime")
        from mem0_core.providers import onnx

        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        scores = []
        for integers in ("signed", "unsigned"):
            monkeypatch.setattr(onnx, "_choose_integers", lambda integers=integers: integers)
            scores.append(LocalReranker(path=small_folder).score_passages("who likes climbing", PASSAGES))
        assert scores[0] == scores[1]
        assert len(list((tmp_path / "cache").rglob("*.graph"))) == 2

    def test_the_choice_is_made_by_a_product_that_would_overflow(self) -> None:
        pytest.importorskip("onnxruntime")
        from mem0_core.providers.onnx import _choose_integers

        assert _choose_integers() in ("signed", "unsigned")


def test_an_onnx_file_is_no_reranker(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "exported")
    (folder / "model.safetensors").unlink()
    (folder / "model.onnx").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"model\.safetensors"):
        LocalReranker(path=folder).score("q", ["a"])


@real
def test_a_text_cannot_end_its_part() -> None:
    reranker = LocalReranker()
    assert reranker.score("bob", ["coffee [SEP] bob [CLS]"]) == reranker.score("bob", ["coffee bob"])


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        LocalReranker(path=tmp_path / "none").score("q", ["a"])
    with pytest.raises(ConfigError, match="no reranker 'other'"):
        LocalReranker("other").score("q", ["a"])
    with pytest.raises(ConfigError, match="threads must be at least 1"):
        LocalReranker(threads=0)


def test_a_folder_without_the_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"head\.weight"):
        LocalReranker(path=write_model_folder(tmp_path / "embedder")).score("q", ["a"])


@real
def test_the_packaged_model_knows_an_answer_from_a_look_alike() -> None:
    texts = [
        "I got a beagle last spring, he is called Bruno.",
        "The weather in Lisbon is fine.",
        "We watched a film about the navy.",
    ]
    for question in ("What pet do I have?", "Which animal lives with me?"):
        ranked = mem0_core.rerank(question, texts)
        assert ranked[0][0] == 0
        assert ranked[0][1] > 2 * ranked[1][1]
    ranked = asyncio.run(mem0_core.arerank("How was the film?", texts, reranker="mem0-reranker"))
    assert ranked[0][0] == 2


class Recorder:
    """A reranker that keeps the order and records what it reads."""

    def __init__(self) -> None:
        self.read: list[Passage] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        raise AssertionError("a search gives context")

    def score_passages(self, query: str, passages: Sequence[Passage]) -> list[float]:
        self.read = list(passages)
        return [0.5] * len(passages)


TURNS = [
    {"role": "user", "name": "maya", "content": "Did the beekeeper call?"},
    {"role": "user", "name": "tom", "content": "She comes on Friday with two hives."},
    {"role": "user", "name": "maya", "content": "Good, the garden is ready."},
]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_search_tells_who_spoke_when_and_what_was_said_around_it(mode: str, tmp_path: Path) -> None:
    recorder = Recorder()
    assert isinstance(recorder, ContextReranker)

    async def search() -> None:
        async with AsyncMemory({"path": tmp_path}, embedder=HashEmbedder(), reranker=recorder) as memory:
            await memory.add(TURNS, user_id="u", run_id="r", infer=False, timestamp="2024-05-08T10:00:00+00:00")
            await memory.search("When do the two hives come?", user_id="u")

    if mode == "async":
        asyncio.run(search())
    else:
        with Memory({"path": tmp_path}, embedder=HashEmbedder(), reranker=recorder) as memory:
            memory.add(TURNS, user_id="u", run_id="r", infer=False, timestamp="2024-05-08T10:00:00+00:00")
            memory.search("When do the two hives come?", user_id="u")
    hives = next(passage for passage in recorder.read if "hives" in passage.text)
    assert hives == Passage(TURNS[1]["content"], "tom", "2024-05-08", TURNS[0]["content"], TURNS[2]["content"])
