"""`NumpyEmbedder` against a forward pass in NumPy and `OnnxEmbedder`; its tokenizer against the library tokenizers."""

from __future__ import annotations

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from mem0_core import Memory
from mem0_core._system.blas import use_one_blas_thread
from mem0_core.errors import ConfigError
from mem0_core.interfaces import Embedder
from mem0_core.providers import numpy_embedder
from mem0_core.providers._numpy_bert import widen
from mem0_core.providers._wordpiece import CompactVocabulary, WordPiece
from mem0_core.providers.numpy_embedder import BriefNumpyEmbedder, NumpyEmbedder, create_local_embedder
from mem0_core.providers.onnx import OnnxEmbedder
from tests.support import run_python
from tests.tiny_bert import (
    SAMPLE_TEXTS,
    VOCABULARY,
    compute_expected_vectors,
    embed_in_forked_child,
    random_weights,
    stored_variants,
    write_exported_network,
    write_model_folder,
)

PACKAGE = importlib.util.find_spec("mem0_models")
needs_weights = pytest.mark.skipif(PACKAGE is None, reason="mem0-models is not installed")
ODD_TEXTS = (
    *("", " ", "\x00", "\ud800", "naïve CAFÉ", "don't [SEP] [MASK]x [CLS", "ΣΑΣ İstanbul", "我是 한국어 हिन्दी ไทย"),
    *("3.14 1,000 U.S.A. e.g.", "a" * 101, "x\u0301" * 60, "ﬁ ß ẞ ǅ ŉ", "\u200b\ufeff\u00a0 \t\r\n", "😀 👩‍👩‍👧"),
)


def weights_folder() -> Path:
    assert PACKAGE is not None
    assert PACKAGE.origin is not None
    return Path(PACKAGE.origin).parent / "all_minilm_l6_v2"


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize(("pooling", "kind"), [("mean", "mean"), ("cls", "cls")])
def test_it_agrees_with_the_oracle(tmp_path: Path, act: str, pooling: str, kind: str) -> None:
    folder = write_model_folder(
        tmp_path / "model", pooling={"pooling_mode": pooling}, hidden_act=act, num_attention_heads=4
    )
    embedder = NumpyEmbedder(path=folder)
    assert isinstance(embedder, Embedder)
    vectors = embedder.embed(SAMPLE_TEXTS)
    assert vectors.dtype == np.float32
    assert embedder.dims == vectors.shape[1] == 24
    expected = compute_expected_vectors(folder, SAMPLE_TEXTS, act=act, pooling=kind, heads=4)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_weights_in_half_precision(tmp_path: Path) -> None:
    for kind, stored, meant in stored_variants(random_weights()):
        folder = write_model_folder(tmp_path / kind, stored)
        expected = compute_expected_vectors(folder, SAMPLE_TEXTS, meant)
        np.testing.assert_allclose(NumpyEmbedder(path=folder).embed(SAMPLE_TEXTS), expected, atol=1e-5)


def test_an_embedder_that_keeps_no_weights_returns_the_same_vectors_in_every_call_and_thread(tmp_path: Path) -> None:
    for kind, stored, _ in stored_variants(random_weights()):
        folder = write_model_folder(tmp_path / kind, stored)
        expected = NumpyEmbedder(path=folder).embed(SAMPLE_TEXTS)
        brief = BriefNumpyEmbedder(path=folder)
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(brief.embed, [SAMPLE_TEXTS] * 8):
                assert np.array_equal(vectors, expected)
        assert brief.name == NumpyEmbedder(path=folder).name


def test_every_half_becomes_the_float_that_numpy_makes_of_it() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    assert np.array_equal(widen(halves), halves.astype(np.float32), equal_nan=True)
    finite = halves[np.isfinite(halves)].reshape(2, -1)
    out = np.full((3, finite.shape[1]), 7, np.float32)
    widen(finite, out[1:])
    assert np.array_equal(out[1:].view(np.int32), finite.astype(np.float32).view(np.int32))
    assert (out[0] == 7).all()


def test_results_come_in_input_order_from_several_threads(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "model")
    embedder = NumpyEmbedder(path=folder, threads=2)
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(VOCABULARY, rng.integers(0, 60))) for _ in range(150)]
    expected = compute_expected_vectors(folder, texts)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(embedder.embed, [texts] * 8):
            np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_it_imports_no_library_of_an_extra(tmp_path: Path) -> None:
    code = """
import sys
from mem0_core.providers.numpy_embedder import NumpyEmbedder
NumpyEmbedder(path=sys.argv[1]).embed(["alice"])
heavy = {"faiss", "onnx", "onnxruntime", "tokenizers", "torch", "huggingface_hub", "sentence_transformers"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    run_python(code, write_model_folder(tmp_path / "model"))


def test_a_forked_child_embeds(tmp_path: Path) -> None:
    assert embed_in_forked_child(NumpyEmbedder, write_model_folder(tmp_path / "tiny"), tmp_path / "cache") == "0\n"


def test_an_exported_network_needs_onnxruntime(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    write_exported_network(folder / "model.onnx", pooled=True)
    with pytest.raises(ConfigError, match=r"pip install 'mem0-core\[onnx\]'"):
        NumpyEmbedder(path=folder).embed(["alice"])


@pytest.mark.parametrize("installed", [True, False])
def test_the_default_is_onnxruntime_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    monkeypatch.setattr(numpy_embedder, "find_spec", lambda name: object() if installed else None)
    assert type(create_local_embedder()) is (OnnxEmbedder if installed else NumpyEmbedder)
    with pytest.raises(ConfigError, match="modle"):
        Memory({"path": "unused"}, embedder={"provider": "local", "config": {"modle": "x"}})


def blas_threads() -> list[int]:
    """Return the threads of numpy's own BLAS; libraries that other tests loaded may bring another one."""
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return [library["num_threads"] for library in found if "numpy" in library["filepath"]]


def test_the_limit_of_threads_ends_with_its_last_user() -> None:
    before = blas_threads()
    first, second = use_one_blas_thread(), use_one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) <= {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


# --- the tokenizer and the real weights -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizers() -> tuple[WordPiece, Any]:
    """Ours, and the one of the library with the same limit."""
    library = pytest.importorskip("tokenizers")
    file = weights_folder() / "tokenizer.json"
    ours, theirs = WordPiece.read(file, 64), library.Tokenizer.from_file(str(file))
    assert ours is not None
    theirs.no_padding()
    theirs.enable_truncation(max_length=64)
    return ours, theirs


@needs_weights
@pytest.mark.parametrize("text", [text for text in ODD_TEXTS if text != "\ud800"], ids=ascii)
def test_odd_texts_have_the_ids_of_the_library(tokenizers: tuple[WordPiece, Any], text: str) -> None:
    ours, theirs = tokenizers
    assert ours.encode(text) == theirs.encode(text).ids


# Unicode 9 is what the library knows: these blocks have not changed since.
KNOWN = st.characters(max_codepoint=0x5FF, exclude_categories=("Cs", "Cn"))


@needs_weights
@settings(max_examples=200, deadline=None)
@given(st.lists(KNOWN | st.sampled_from([*"#[]' -", "中", "한", "[SEP]", "the ", "😀"]), max_size=80))
def test_any_text_has_the_ids_of_the_library(tokenizers: tuple[WordPiece, Any], parts: list[str]) -> None:
    ours, theirs = tokenizers
    text = "".join(parts)
    assert ours.encode(text) == theirs.encode(text).ids


PIECES = ["{", "}", ",", ":", '"', "\\", "1", "##}", "é", "中", "a", "b", "ab", "##b", "##ab", "", "\x7f"]


@needs_weights
@pytest.mark.parametrize("layout", [{"separators": (",", ":")}, {}, {"indent": 1}], ids=["compact", "spaced", "lines"])
@pytest.mark.parametrize("escapes", [False, True])
def test_a_vocabulary_is_read_in_any_layout_before_and_after_it_is_parsed(
    tmp_path: Path, layout: dict[str, Any], escapes: bool
) -> None:
    content = json.loads((weights_folder() / "tokenizer.json").read_text(encoding="utf-8"))
    special = {token["content"]: token["id"] for token in content["added_tokens"]}
    content["model"]["vocab"] = special | {piece: 200 + place for place, piece in enumerate(PIECES)}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(content, ensure_ascii=escapes, **layout), encoding="utf-8")
    read = WordPiece.read(file, 64)
    assert read is not None
    for _ in range(10):  # more look-ups than are made in the text
        for piece, number in content["model"]["vocab"].items():
            assert read._vocabulary.get(piece) == number
        assert not [piece for piece in ("c", "##a", '","', "a,", '":', "\ud800") if read._vocabulary.get(piece)]


@needs_weights
def test_the_packaged_vocabulary_is_searched_before_it_is_parsed() -> None:
    read = WordPiece.read(weights_folder() / "tokenizer.json", 64)
    assert read is not None
    assert isinstance(read._vocabulary, CompactVocabulary)
    assert len(read.encode("Maya lives in Lisbon.")) == 7
    assert read._vocabulary._parsed is None
    read.encode(" ".join(f"word{number}" for number in range(100)))
    assert read._vocabulary._parsed == json.loads((weights_folder() / "tokenizer.json").read_bytes())["model"]["vocab"]


@needs_weights
def test_the_real_weights_give_the_vectors_of_onnxruntime(tmp_path: Path) -> None:
    texts = [*ODD_TEXTS, "climbing " * 400, "The weather is lovely today.", "It's so sunny outside!"]
    for model in ("mem0-minilm", "all-MiniLM-L6-v2"):
        ours = NumpyEmbedder(model).embed(texts)
        np.testing.assert_allclose(ours, OnnxEmbedder(model, cache_dir=tmp_path).embed(texts), atol=2e-6)
    assert abs(ours[-1] @ ours[-2] - 0.6660) < 5e-3  # as its authors publish, for weights that are not rounded
