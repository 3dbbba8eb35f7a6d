"""`OnnxEmbedder` against a forward pass in NumPy, on a tiny random BERT made here and on the real weights."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.interfaces import Embedder
from mem0_core.providers import _bert, _local_embedder
from mem0_core.providers._bert import ModelFolder, read_model_folder
from mem0_core.providers._local_embedder import LocalEmbedder
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN, MINILM_INT8_SHA256, compute_sha256
from mem0_core.providers.numpy_embedder import BriefNumpyEmbedder, NumpyEmbedder
from mem0_core.providers.onnx import OnnxEmbedder
from tests.support import run_python
from tests.tiny_bert import (
    SAMPLE_TEXTS,
    VOCABULARY,
    compute_expected_vectors,
    embed_in_forked_child,
    random_weights,
    read_weights,
    stored_variants,
    tokenize_text,
    write_exported_network,
    write_model_folder,
    write_safetensors,
    write_shared_folders,
    write_tokenizer,
)

pytest.importorskip("tokenizers")
pytest.importorskip("onnxruntime")

PACKAGE = importlib.util.find_spec("mem0_models")
REAL = (
    Path(PACKAGE.submodule_search_locations[0]) / "all_minilm_l6_v2"
    if PACKAGE and PACKAGE.submodule_search_locations
    else None
)
needs_weights = pytest.mark.skipif(REAL is None, reason="mem0-models is not installed")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_model_folder(tmp_path / "tiny-bert")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


# --- vectors --------- --------------------------------------------------------------------------------------------


def test_it_agrees_with_the_oracle(tiny: Path, cache: Path) -> None:
    embedder = OnnxEmbedder(path=tiny, cache_dir=cache)
    assert isinstance(embedder, Embedder)
    vectors = embedder.embed(SAMPLE_TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(SAMPLE_TEXTS), embedder.dims) == (len(SAMPLE_TEXTS), 24)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(vectors, compute_expected_vectors(tiny, SAMPLE_TEXTS), atol=1e-5)
    np.testing.assert_array_equal(embedder.embed(SAMPLE_TEXTS, kind="query"), vectors)


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize(
    ("pooling", "kind"),
    [
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "cls", "embedding_dimension": 24}, "cls"),
    ],
)
def test_what_a_folder_says_of_its_network_is_followed(
    tmp_path: Path, cache: Path, act: str, pooling: dict[str, Any], kind: str
) -> None:
    folder = write_model_folder(tmp_path / "model", pooling=pooling, hidden_act=act, num_attention_heads=4)
    vectors = OnnxEmbedder(path=folder, cache_dir=cache).embed(SAMPLE_TEXTS)
    np.testing.assert_allclose(
        vectors, compute_expected_vectors(folder, SAMPLE_TEXTS, act=act, pooling=kind, heads=4), atol=1e-5
    )


def test_weights_under_a_prefix_in_half_precision_and_without_a_config(tmp_path: Path, cache: Path) -> None:
    weights = {f"bert.{name}": tensor for name, tensor in random_weights().items()}
    for kind, stored, meant in stored_variants(weights):
        folder = write_model_folder(tmp_path / kind, stored)
        (folder / "config.json").unlink()
        vectors = OnnxEmbedder(path=folder, cache_dir=cache).embed(SAMPLE_TEXTS)
        np.testing.assert_allclose(
            vectors, compute_expected_vectors(folder, SAMPLE_TEXTS, meant, heads=12, eps=1e-12), atol=1e-4
        )


@pytest.mark.parametrize("make", [OnnxEmbedder, NumpyEmbedder, BriefNumpyEmbedder])
def test_a_model_shares_the_embeddings_of_its_base(
    tmp_path: Path, cache: Path, make: Callable[..., LocalEmbedder]
) -> None:
    folder, weights = write_shared_folders(tmp_path)
    embedder = make(path=folder, cache_dir=cache)
    expected = compute_expected_vectors(folder, SAMPLE_TEXTS, weights)
    np.testing.assert_allclose(embedder.embed(SAMPLE_TEXTS), expected, atol=1e-5)
    name = embedder.name
    write_safetensors(tmp_path / "base" / "model.safetensors", random_weights(7))
    assert make(path=folder).name != name
    (tmp_path / "base" / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"base in .*config.json names .*, which does not exist"):
        make(path=folder).embed(["alice"])


def test_results_come_in_input_order_whatever_the_batch(tiny: Path, cache: Path) -> None:
    embedder = OnnxEmbedder(path=tiny, cache_dir=cache)
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(VOCABULARY, rng.integers(0, 60))) for _ in range(150)]
    vectors = embedder.embed(texts)
    np.testing.assert_allclose(vectors, compute_expected_vectors(tiny, texts), atol=1e-5)
    for at in (0, 70, 149):
        np.testing.assert_allclose(embedder.embed([texts[at]])[0], vectors[at], atol=1e-5)


def test_no_texts_and_odd_texts(tiny: Path, cache: Path) -> None:
    embedder = OnnxEmbedder(path=tiny, cache_dir=cache)
    assert embedder.embed([]).shape == (0, 24)
    assert embedder.embed([]).dtype == np.float32
    vectors = embedder.embed(["", " ", "\x00", "\ud800", "😀", "\n" * 5000])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_a_tokenizer_that_gives_nothing_for_an_empty_text(tiny: Path, cache: Path) -> None:
    write_tokenizer(tiny / "tokenizer.json", markers=False)
    vectors = OnnxEmbedder(path=tiny, cache_dir=cache).embed(["", "alice"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("folder_limit", "asked", "limit"),
    [({}, 256, 40), ({"max_seq_length": 16}, 256, 16), ({"max_seq_length": 16}, 9, 9)],
)
def test_texts_are_cut_at_the_lowest_limit(
    tiny: Path, cache: Path, folder_limit: dict[str, int], asked: int, limit: int
) -> None:
    (tiny / "sentence_bert_config.json").write_text(json.dumps(folder_limit))
    (tiny / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30}))
    text = " ".join(VOCABULARY * 20)
    vectors = OnnxEmbedder(path=tiny, cache_dir=cache, max_tokens=asked).embed([text])
    np.testing.assert_allclose(vectors, compute_expected_vectors(tiny, [text], limit=limit), atol=1e-5)


def test_ten_megabytes_are_cut_before_they_are_tokenized(
    tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    class RecordingTokenizer:
        def __init__(self, folder: ModelFolder) -> None:
            self._tokenizer = load_tokenizer(folder)

        def encode(self, text: str) -> Any:
            lengths.append(len(text))
            return self._tokenizer.encode(text)

    load_tokenizer = _local_embedder._load_tokenizer
    monkeypatch.setattr(_local_embedder, "_load_tokenizer", RecordingTokenizer)
    embedder = OnnxEmbedder(path=tiny, cache_dir=cache)
    for text in ("alice likes climbing " * 500_000, "x" * 10_000_000, " " * 9_000_000 + "alice", "é" * 5_000_000):
        assert np.linalg.norm(embedder.embed([text])) == pytest.approx(1, rel=1e-5)
    assert max(lengths) <= 256 * MAX_CHARS_PER_TOKEN
    long, cut = embedder.embed(["alice likes climbing " * 500_000, "alice likes climbing " * 30])
    np.testing.assert_array_equal(long, cut)


# --- loading -----------------------------------------------------------------------------------------------------


def test_nothing_is_imported_or_written_until_it_is_used_and_torch_never(tiny: Path, cache: Path) -> None:
    code = """
import sys
from pathlib import Path
heavy = {"onnx", "onnxruntime", "tokenizers", "torch", "huggingface_hub", "sentence_transformers"}
from mem0_core.providers.onnx import OnnxEmbedder
default = OnnxEmbedder(cache_dir=sys.argv[2])
embedder = OnnxEmbedder(path=sys.argv[1], cache_dir=sys.argv[2])
assert (default.name, default.dims) == ("mem0-minilm", 384)
assert embedder.name.startswith("tiny-bert-") and embedder.dims == 24
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert not Path(sys.argv[2]).exists()
embedder.embed(["alice"])
assert not (heavy - {"onnxruntime"}) & set(sys.modules), heavy & set(sys.modules)
"""
    run_python(code, tiny, cache)


def test_the_graph_is_small_and_cached_once(tiny: Path, cache: Path) -> None:
    OnnxEmbedder(path=tiny, cache_dir=cache).embed(SAMPLE_TEXTS)
    (file,) = cache.iterdir()
    assert file.stat().st_size < 50_000


@pytest.mark.parametrize("damage", ["empty", "half", "byte", "tail", "flipped", "folder"])
def test_a_torn_cache_file_is_built_anew(tiny: Path, cache: Path, damage: str) -> None:
    expected = OnnxEmbedder(path=tiny, cache_dir=cache).embed(SAMPLE_TEXTS)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    torn = {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "byte": whole[:-1],
        "tail": whole[:-32],
        "flipped": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
    }
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(torn[damage])
    np.testing.assert_array_equal(OnnxEmbedder(path=tiny, cache_dir=cache).embed(SAMPLE_TEXTS), expected)
    assert [entry.name for entry in cache.iterdir()] == [file.name]
    if damage != "folder":
        assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert OnnxEmbedder(path=tiny, cache_dir=tmp_path / "file" / "cache").embed(["alice"]).shape == (1, 24)


def test_the_cache_lies_where_the_platform_keeps_them(tiny: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    OnnxEmbedder(path=tiny).embed(["alice"])
    assert len(list((tmp_path / "xdg" / "mem0-core").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _bert.resolve_cache_folder(None).is_relative_to(Path.home())


def test_other_weights_get_another_name_and_other_settings_another_graph_too(tmp_path: Path, cache: Path) -> None:
    folders = [
        write_model_folder(tmp_path / "a" / "model"),
        write_model_folder(tmp_path / "b" / "model"),
        write_model_folder(tmp_path / "c" / "model", random_weights(1)),
        write_model_folder(tmp_path / "d" / "model", pooling={"pooling_mode": "cls"}),
    ]
    embedders = [OnnxEmbedder(path=folder, cache_dir=cache) for folder in folders]
    names = [embedder.name for embedder in embedders]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all(name.startswith("model-") for name in names)
    vectors = [embedder.embed(["alice"]) for embedder in embedders]
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert len(list(cache.iterdir())) == 2
    assert np.abs(vectors[0] - vectors[2]).max() > 0.01 < np.abs(vectors[0] - vectors[3]).max()


def test_weights_behind_a_symbolic_link_as_the_hub_keeps_them(tiny: Path, tmp_path: Path, cache: Path) -> None:
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    shutil.move(tiny / "model.safetensors", blobs / "0123abcd")
    (tiny / "model.safetensors").symlink_to(Path("..") / "blobs" / "0123abcd")
    vectors = OnnxEmbedder(path=tiny, cache_dir=cache).embed(SAMPLE_TEXTS)
    np.testing.assert_allclose(vectors, compute_expected_vectors(tiny, SAMPLE_TEXTS), atol=1e-5)


def test_many_threads_load_it_once_and_agree(tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    load = _local_embedder._load_tokenizer

    def count_loads(folder: Any) -> Any:
        loads.append(1)
        return load(folder)

    monkeypatch.setattr(_local_embedder, "_load_tokenizer", count_loads)
    embedder = OnnxEmbedder(path=tiny, cache_dir=cache, threads=2)
    rows = [SAMPLE_TEXTS, SAMPLE_TEXTS * 10]
    barrier = threading.Barrier(8)

    def work(n: int) -> NDArray[np.float32]:
        barrier.wait()
        return embedder.embed(rows[n % 2])[: len(SAMPLE_TEXTS)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert len(loads) == 1
    for result in results:
        np.testing.assert_allclose(result, results[0], atol=1e-6)


def test_many_embedders_share_a_cold_cache(tiny: Path, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: OnnxEmbedder(path=tiny, cache_dir=cache).embed(SAMPLE_TEXTS), range(8)))
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    assert len(list(cache.iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_can_embed_and_end(tiny: Path, cache: Path) -> None:
    assert embed_in_forked_child(OnnxEmbedder, tiny, cache) == "0\n"


def test_onnxruntime_does_not_phone_home(tiny: Path, tmp_path: Path) -> None:
    code = """
import os, sys
from mem0_core.providers.onnx import OnnxEmbedder
OnnxEmbedder(path=sys.argv[1]).embed(["alice"])
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""
    home = tmp_path / "home"
    home.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY")
    }
    assert run_python(code, tiny, env={**kept, "HOME": str(home)}) == "1\n"
    written = {path.relative_to(home).parts[:2] for path in home.rglob("*") if path.is_file()}
    assert len(written) == 1, "onnxruntime keeps an id of the device in ~/.cache/Microsoft when its telemetry is on"
    assert "mem0-core" in str(*home.rglob("*.graph"))


# --- folders with a ready ONNX model -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
@pytest.mark.parametrize("how", ["mean", "cls", "pooled"])
def test_a_folder_with_an_onnx_model_is_run_as_it_is(tiny: Path, cache: Path, place: str, how: str) -> None:
    (tiny / "model.safetensors").unlink()
    (tiny / "config.json").write_text(json.dumps({"model_type": "mpnet", "hidden_size": 24}))
    if how == "cls":
        (tiny / "1_Pooling").mkdir()
        (tiny / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    words = write_exported_network(tiny / place, pooled=how == "pooled")
    embedder = OnnxEmbedder(path=tiny, cache_dir=cache)
    assert embedder.dims == 24
    texts = SAMPLE_TEXTS[:3]
    single = np.concatenate([embedder.embed([text]) for text in texts])
    states = [words[tokenize_text(tiny, text, 256)] for text in texts]
    expected = np.array([{"mean": s.mean(0), "cls": s[0], "pooled": s.max(0)}[how] for s in states])
    np.testing.assert_allclose(single, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    if how != "pooled":
        np.testing.assert_allclose(embedder.embed(texts), single, atol=1e-5)
    assert not cache.exists()


# --- invalid models ----------------------------------------------------------------------------------------------


def test_folders_that_cannot_be_used(tmp_path: Path, cache: Path) -> None:
    def assert_refused(folder: Path, match: str, error: type[Exception] = ConfigError) -> None:
        with pytest.raises(error, match=match):
            OnnxEmbedder(path=folder, cache_dir=cache).embed(["alice"])

    assert_refused(tmp_path / "nowhere", "no folder")
    folder = write_model_folder(tmp_path / "no-tokenizer")
    (folder / "tokenizer.json").unlink()
    assert_refused(folder, r"no tokenizer\.json")
    folder = write_model_folder(tmp_path / "bad-tokenizer")
    (folder / "tokenizer.json").write_text("{}")
    assert_refused(folder, r"tokenizer\.json cannot be read")
    folder = write_model_folder(tmp_path / "no-weights")
    (folder / "model.safetensors").unlink()
    assert_refused(folder, r"neither model\.safetensors nor model\.onnx")
    assert_refused(write_model_folder(tmp_path / "mpnet", model_type="mpnet"), "'mpnet' and no ONNX model")
    assert_refused(write_model_folder(tmp_path / "relative", position_embedding_type="relative_key"), "no ONNX model")
    assert_refused(write_model_folder(tmp_path / "swish", hidden_act="swish"), "hidden_act 'swish'")
    assert_refused(write_model_folder(tmp_path / "heads", num_attention_heads=5), "between 5 attention heads")
    assert_refused(write_model_folder(tmp_path / "max", pooling={"pooling_mode_max_tokens": True}), "'max_tokens'")
    assert_refused(
        write_model_folder(
            tmp_path / "two", pooling={"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
        ),
        "pools by",
    )
    folder = write_model_folder(tmp_path / "dense")
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]')
    assert_refused(folder, "unsupported modules: Dense")
    folder = write_model_folder(tmp_path / "bad-config")
    (folder / "config.json").write_text("[]")
    assert_refused(folder, "not contain a JSON dict")
    (folder / "config.json").write_text("{")
    assert_refused(folder, "cannot be read")
    folder = write_model_folder(tmp_path / "double", {k: v.astype(np.float64) for k, v in random_weights().items()})
    assert_refused(folder, "type F64")
    incomplete = random_weights()
    del incomplete["encoder.layer.1.output.dense.bias"]
    assert_refused(
        write_model_folder(tmp_path / "incomplete", incomplete), r"has no encoder\.layer\.1\.output\.dense\.bias"
    )
    assert_refused(write_model_folder(tmp_path / "other", {"x": np.zeros(3, np.float32)}), "not a BERT network")
    folder = write_model_folder(tmp_path / "garbage-onnx")
    (folder / "model.safetensors").unlink()
    (folder / "model.onnx").write_bytes(b"garbage")
    assert_refused(folder, "onnxruntime failed", ModelError)


@pytest.mark.parametrize("keep", [0, 4, 8, 100, -1])
def test_weights_that_were_cut_short(tiny: Path, cache: Path, keep: int) -> None:
    file = tiny / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ConfigError, match=r"truncated|unreadable|not a BERT"):
        OnnxEmbedder(path=tiny, cache_dir=cache).embed(["alice"])


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="threads"):
        OnnxEmbedder(threads=0)
    with pytest.raises(ConfigError, match="max_tokens"):
        OnnxEmbedder(max_tokens=2)


def fake_package(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
    spec = None
    if folder is not None:
        spec = ModuleSpec("mem0_models", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def test_a_package_without_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match="pip install --upgrade --force-reinstall mem0-models"):
        OnnxEmbedder(cache_dir=tmp_path).embed(["alice"])


def test_without_weights_nothing_is_downloaded_unless_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    fake_package(monkeypatch, None)
    asked: list[tuple[str, bool]] = []

    def snapshot_download(repository: str, *, allow_patterns: list[str], local_files_only: bool) -> str:
        asked.append((repository, local_files_only))
        if repository == "someone/else" or local_files_only:
            raise FileNotFoundError("not in the cache")
        return str(write_model_folder(tmp_path / "snapshots" / "0123"))

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    monkeypatch.delenv("MEM0_CORE_DOWNLOAD", raising=False)
    with pytest.raises(ConfigError, match=r"no weights of 'mem0-minilm' .* pip install mem0-models"):
        OnnxEmbedder(download=True).embed(["alice"])
    with pytest.raises(ConfigError, match=r"pip install mem0-models .*MEM0_CORE_DOWNLOAD=1"):
        OnnxEmbedder("all-MiniLM-L6-v2").embed(["alice"])
    with pytest.raises(ModelError, match="the hub gave no model 'someone/else'"):
        OnnxEmbedder("someone/else").embed(["alice"])
    with pytest.raises(ConfigError, match="no weights of 'someone/tiny'"):
        OnnxEmbedder("someone/tiny", download=False).embed(["alice"])
    minilm = "sentence-transformers/all-MiniLM-L6-v2"
    assert asked == [(minilm, True), ("someone/else", False), ("someone/tiny", True)]
    embedder = OnnxEmbedder("someone/tiny")
    assert embedder.name.startswith("tiny-")
    assert embedder.embed(["alice"]).shape == (1, 24)
    assert len(OnnxEmbedder("all-MiniLM-L6-v2", download=True).embed(["alice"])) == 1
    monkeypatch.setenv("MEM0_CORE_DOWNLOAD", "1")
    assert len(OnnxEmbedder("all-MiniLM-L6-v2").embed(["alice"])) == 1
    assert asked[-2:] == [(minilm, False), (minilm, False)]


def test_without_the_library_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(monkeypatch, None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delenv("MEM0_CORE_DOWNLOAD", raising=False)
    with pytest.raises(MissingExtraError, match="huggingface-hub"):
        OnnxEmbedder("someone/tiny").embed(["alice"])
    with pytest.raises(ConfigError, match="no weights of 'paraphrase-x'"):
        OnnxEmbedder("paraphrase-x").embed(["alice"])
    with pytest.raises(ConfigError, match="pip install mem0-models"):
        OnnxEmbedder().embed(["alice"])


# --- the real weights --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    return OnnxEmbedder("all-MiniLM-L6-v2", cache_dir=tmp_path_factory.mktemp("minilm"))


@needs_weights
def test_the_similarities_that_its_authors_publish(minilm: OnnxEmbedder) -> None:
    vectors = minilm.embed(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    expected = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, expected, atol=5e-3)  # the packaged weights are rounded


@needs_weights
def test_the_real_weights_agree_with_the_oracle(minilm: OnnxEmbedder) -> None:
    assert REAL is not None
    weights = read_weights(read_model_folder(REAL, "", 256))
    texts = ["Alice likes climbing.", "Ünïcödé naïve café 😀 我喜欢爬山", ""]
    expected = compute_expected_vectors(REAL, texts, weights, limit=256, heads=12, eps=1e-12)
    np.testing.assert_allclose(minilm.embed(texts), expected, atol=1e-5)


@needs_weights
def test_a_folder_with_the_known_weights_is_the_same_space(minilm: OnnxEmbedder, tmp_path: Path) -> None:
    assert REAL is not None
    folder = tmp_path / "copy"
    folder.symlink_to(REAL, target_is_directory=True)
    copy = OnnxEmbedder(path=folder, cache_dir=tmp_path / "cache")
    assert (copy.name, copy.dims) == (minilm.name, minilm.dims) == ("all-MiniLM-L6-v2", 384)
    np.testing.assert_array_equal(copy.embed(["alice"]), minilm.embed(["alice"]))
    named = OnnxEmbedder("sentence-transformers/all-MiniLM-L6-v2", cache_dir=tmp_path / "cache")
    np.testing.assert_array_equal(named.embed(["alice"]), minilm.embed(["alice"]))
    assert compute_sha256(REAL / "model.safetensors") == MINILM_INT8_SHA256


@needs_weights
def test_the_default_model_agrees_with_the_oracle(tmp_path: Path) -> None:
    assert REAL is not None
    folder = REAL.parent / "mem0_minilm"
    weights = read_weights(read_model_folder(folder, "", 256))
    texts = ["Alice likes climbing.", "Ünïcödé naïve café 😀 我喜欢爬山", ""]
    embedder = OnnxEmbedder(cache_dir=tmp_path)
    expected = compute_expected_vectors(REAL, texts, weights, limit=256, heads=12, eps=1e-12)
    np.testing.assert_allclose(embedder.embed(texts), expected, atol=1e-5)
    linked = tmp_path / "copy"
    linked.symlink_to(folder, target_is_directory=True)
    copy = OnnxEmbedder(path=linked, cache_dir=tmp_path)
    assert (copy.name, copy.dims) == (embedder.name, embedder.dims) == ("mem0-minilm", 384)
    np.testing.assert_array_equal(copy.embed(texts), embedder.embed(texts))


@needs_weights
def test_real_texts_are_cut_at_256_tokens(minilm: OnnxEmbedder) -> None:
    long, as_long, shorter = minilm.embed(["climbing " * 1000, "climbing " * 254, "climbing " * 253])
    np.testing.assert_array_equal(long, as_long)
    assert np.abs(long - shorter).max() > 1e-5
