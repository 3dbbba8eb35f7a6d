"""`OpenVinoEmbedder` against a forward pass in NumPy on a tiny random BERT, and `OnnxEmbedder` on real weights."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core import Memory
from mem0_core.components import build_component
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.interfaces import Embedder
from mem0_core.providers.onnx import OnnxEmbedder
from mem0_core.providers.openvino_embedder import OpenVinoEmbedder
from tests.support import run_python
from tests.tiny_bert import (
    SAMPLE_TEXTS,
    VOCABULARY,
    compute_expected_vectors,
    random_weights,
    stored_variants,
    tokenize_text,
    write_exported_network,
    write_model_folder,
    write_shared_folders,
)

HERE = all(importlib.util.find_spec(name) is not None for name in ("openvino", "onnx", "onnxruntime", "tokenizers"))
needs_weights = pytest.mark.skipif(importlib.util.find_spec("mem0_models") is None, reason="no MiniLM here")

# The child asks an embedder of its parent and one of its own.
FORK = """
import os, signal, sys
from mem0_core.errors import ModelError
from mem0_core.providers.openvino_embedder import OpenVinoEmbedder
embedder = OpenVinoEmbedder(path=sys.argv[1], cache_dir=sys.argv[2], threads=2)
before = embedder.embed(["alice likes climbing in paris"] * 200)
child = os.fork()
if child == 0:
    signal.alarm(60)
    for each in (embedder, OpenVinoEmbedder(path=sys.argv[1], cache_dir=sys.argv[2])):
        try:
            each.embed(["alice"])
        except ModelError as error:
            print(error)
    sys.exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
after = embedder.embed(["alice likes climbing in paris"] * 200)
print(f"child {status}, parent {(after == before).all()}")
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_model_folder(tmp_path / "tiny-bert")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def cosines(ours: NDArray[np.float32], theirs: NDArray[Any]) -> NDArray[Any]:
    cosine: NDArray[Any] = (ours * theirs).sum(1)
    return cosine


@pytest.mark.torch
@pytest.mark.skipif(not HERE, reason="openvino is not installed (nox -s tests_torch)")
class TestOpenVino:
    @pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
    @pytest.mark.parametrize("pooling", ["mean", "cls"])
    def test_in_float32_it_agrees_with_the_oracle(self, tmp_path: Path, cache: Path, act: str, pooling: str) -> None:
        folder = write_model_folder(tmp_path / "model", pooling={"pooling_mode": pooling}, hidden_act=act)
        embedder = OpenVinoEmbedder(path=folder, cache_dir=cache, precision="f32")
        assert isinstance(embedder, Embedder)
        vectors = embedder.embed(SAMPLE_TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(SAMPLE_TEXTS), embedder.dims) == (len(SAMPLE_TEXTS), 24)
        np.testing.assert_allclose(
            vectors, compute_expected_vectors(folder, SAMPLE_TEXTS, act=act, pooling=pooling), atol=1e-5
        )
        np.testing.assert_array_equal(embedder.embed(SAMPLE_TEXTS, kind="query"), vectors)
        assert embedder.embed([]).shape == (0, 24)

    @pytest.mark.parametrize("precision", ["auto", "bf16"])
    def test_in_bfloat16_it_is_near(self, tiny: Path, cache: Path, precision: Any) -> None:
        vectors = OpenVinoEmbedder(path=tiny, cache_dir=cache, precision=precision).embed(SAMPLE_TEXTS)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        assert cosines(vectors, compute_expected_vectors(tiny, SAMPLE_TEXTS)).min() > 0.998

    def test_weights_in_half_precision_under_a_prefix_and_behind_a_link(self, tmp_path: Path, cache: Path) -> None:
        weights = {f"bert.{name}": tensor for name, tensor in random_weights().items()}
        for kind, stored, meant in stored_variants(weights):
            folder = write_model_folder(tmp_path / kind, stored)
            shutil.move(folder / "model.safetensors", tmp_path / f"blob-{kind}")
            (folder / "model.safetensors").symlink_to(tmp_path / f"blob-{kind}")
            vectors = OpenVinoEmbedder(path=folder, cache_dir=cache, precision="f32").embed(SAMPLE_TEXTS)
            np.testing.assert_allclose(vectors, compute_expected_vectors(folder, SAMPLE_TEXTS, meant), atol=1e-4)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_results_come_in_input_order_whatever_the_batch(self, tiny: Path, cache: Path, threads: int) -> None:
        embedder = OpenVinoEmbedder(path=tiny, cache_dir=cache, threads=threads, precision="f32")
        rng = np.random.default_rng(3)
        texts = [" ".join(rng.choice(VOCABULARY, rng.integers(0, 60))) for _ in range(150)]
        np.testing.assert_allclose(embedder.embed(texts), compute_expected_vectors(tiny, texts), atol=1e-5)

    def test_more_threads_may_share_it_than_it_has_models(self, tiny: Path, cache: Path) -> None:
        embedder = OpenVinoEmbedder(path=tiny, cache_dir=cache, threads=2, precision="f32")
        rows = [SAMPLE_TEXTS, SAMPLE_TEXTS * 10]
        barrier = threading.Barrier(8)

        def work(n: int) -> NDArray[np.float32]:
            barrier.wait()
            return embedder.embed(rows[n % 2])[: len(SAMPLE_TEXTS)]

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(work, range(8)))
        for result in results:
            np.testing.assert_allclose(result, results[0], atol=1e-6)

    def test_graphs_of_both_embedders_share_a_cache(self, tiny: Path, cache: Path) -> None:
        for _ in range(2):
            onnx = OnnxEmbedder(path=tiny, cache_dir=cache)
            openvino = OpenVinoEmbedder(path=tiny, cache_dir=cache, precision="f32")
            assert (onnx.name, onnx.dims) == (openvino.name, openvino.dims)
            np.testing.assert_allclose(onnx.embed(SAMPLE_TEXTS), openvino.embed(SAMPLE_TEXTS), atol=1e-5)
        assert len(list(cache.iterdir())) == 2

    @pytest.mark.parametrize("how", ["mean", "cls", "pooled"])
    def test_a_folder_with_an_onnx_model_is_run_as_it_is(self, tiny: Path, cache: Path, how: str) -> None:
        (tiny / "model.safetensors").unlink()
        (tiny / "config.json").write_text(json.dumps({"model_type": "mpnet", "hidden_size": 24}))
        if how == "cls":
            (tiny / "1_Pooling").mkdir()
            (tiny / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
        words = write_exported_network(tiny / "model.onnx", pooled=how == "pooled")
        embedder = OpenVinoEmbedder(path=tiny, cache_dir=cache, precision="f32")
        vectors = np.concatenate([embedder.embed([text]) for text in SAMPLE_TEXTS[:3]])
        states = [words[tokenize_text(tiny, text, 256)] for text in SAMPLE_TEXTS[:3]]
        expected = np.array([{"mean": s.mean(0), "cls": s[0], "pooled": s.max(0)}[how] for s in states])
        np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)

    def test_what_is_no_model_is_told_as_such(self, tiny: Path, tmp_path: Path, cache: Path) -> None:
        with pytest.raises(ConfigError, match="no folder"):
            OpenVinoEmbedder(path=tmp_path / "nowhere").embed(["alice"])
        with pytest.raises(ConfigError, match="hidden_act 'swish'"):
            OpenVinoEmbedder(path=write_model_folder(tmp_path / "swish", hidden_act="swish"), cache_dir=cache).embed(
                ["a"]
            )
        (tiny / "model.safetensors").unlink()
        (tiny / "model.onnx").write_bytes(b"garbage")
        with pytest.raises(ModelError, match="OpenVINO failed"):
            OpenVinoEmbedder(path=tiny, cache_dir=cache).embed(["alice"])

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
    def test_a_forked_child_is_refused_and_can_end(self, tiny: Path, cache: Path) -> None:
        told = run_python(FORK, tiny, cache)
        assert told.count("forked after its first use") == 2
        assert told.endswith("child 0, parent True\n")

    @pytest.mark.parametrize(
        "used",
        [
            "from mem0_core.providers.openvino_embedder import OpenVinoEmbedder\n"
            "OpenVinoEmbedder(path=sys.argv[1], cache_dir=sys.argv[2]).embed(['alice'])",
            "from mem0_core.providers.openvino import OpenVinoChat\n"
            "try: OpenVinoChat(sys.argv[1]).complete([{'role': 'user', 'content': 'a'}], task='facts')\n"
            "except ValueError: pass",
        ],
        ids=["embedder", "chat"],
    )
    def test_openvino_does_not_phone_home(self, tiny: Path, cache: Path, tmp_path: Path, used: str) -> None:
        home = tmp_path / "home"
        home.mkdir()
        # In CI the library keeps quiet by itself, and would prove nothing.
        kept = {name: value for name, value in os.environ.items() if name not in ("CI", "TF_BUILD", "JENKINS_URL")}
        code = f"import sys\n{used}\nassert 'openvino' in sys.modules\nprint(sys.modules['openvino_telemetry'])"
        told = run_python(code, tiny, cache, env={**kept, "HOME": str(home)})
        assert told == "None\n"
        assert not list(home.iterdir()), "OpenVINO keeps an id of its user in ~/intel when its telemetry is on"

    def test_a_model_shares_the_embeddings_of_its_base(self, tmp_path: Path, cache: Path) -> None:
        folder, weights = write_shared_folders(tmp_path)
        vectors = OpenVinoEmbedder(path=folder, cache_dir=cache, precision="f32").embed(SAMPLE_TEXTS)
        np.testing.assert_allclose(vectors, compute_expected_vectors(folder, SAMPLE_TEXTS, weights), atol=1e-5)

    @needs_weights
    def test_the_real_weights_agree_with_onnxruntime(self, tmp_path: Path) -> None:
        ours, theirs = OpenVinoEmbedder(cache_dir=tmp_path), OnnxEmbedder(cache_dir=tmp_path)
        exact = OpenVinoEmbedder(cache_dir=tmp_path, precision="f32")
        assert ours.name == theirs.name == "mem0-minilm"
        texts = ["Alice likes climbing.", "Ünïcödé naïve café 😀 我喜欢爬山", "", "climbing " * 1000]
        texts += [f"In {year} {name} moved to {place}." for year in range(1990, 2000) for name in ("Ann", "Bob")
                  for place in ("Porto", "Oslo", "Kyoto")]  # fmt: skip
        expected = theirs.embed(texts)
        assert cosines(ours.embed(texts), expected).min() > 0.999
        assert cosines(exact.embed(texts), expected).min() > 0.99999

    @needs_weights
    def test_the_two_take_turns_over_one_store(self, tmp_path: Path) -> None:
        said = ["I keep bees in the garden.", "My bicycle has a flat tyre.", "On Mondays I teach chemistry."]
        with Memory({"path": tmp_path, "embedder": "onnx"}) as memory:
            memory.add_many(said, user_id="u")
        with Memory({"path": tmp_path, "embedder": "openvino"}) as memory:
            assert memory.search("pupils in a laboratory", user_id="u")["results"][0]["memory"] == said[2]
            memory.add("Our cat sleeps on the piano.", user_id="u")
        with Memory({"path": tmp_path, "embedder": "onnx"}) as memory:
            assert (
                memory.search("a pet and music", user_id="u")["results"][0]["memory"] == "Our cat sleeps on the piano."
            )


# --- without the library -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [{"threads": 0}, {"max_tokens": 2}, {"precision": "f16"}, {"pth": "x"}])
def test_a_wrong_key_is_named_before_anything_is_loaded(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(keys))):
        build_component("embedder", {"provider": "openvino", "config": keys})


def test_nothing_is_imported_until_it_is_used_and_the_missing_library_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    code = (
        "import sys\n"
        "from mem0_core.providers.openvino_embedder import OpenVinoEmbedder\n"
        "embedder = OpenVinoEmbedder(path=sys.argv[1])\n"
        "assert embedder.dims == 24\n"
        "assert not {'openvino', 'onnx', 'tokenizers'} & set(sys.modules)\n"
        "sys.modules['openvino'] = None\n"
        "try: embedder.embed(['a'])\n"
        "except ImportError as error: print(error)"
    )
    told = run_python(code, write_model_folder(tmp_path / "model"))
    assert told.strip() == str(MissingExtraError("openvino", "openvino"))
