"""`SentenceTransformerEmbedder` on a tiny random model; needs torch, so it runs in an environment of its own."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mem0_core.components import build_component
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.interfaces import Embedder
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN
from mem0_core.providers.sentence_transformers import SentenceTransformerEmbedder
from tests.support import run_python
from tests.tiny_models import byte_tokenizer

HERE = importlib.util.find_spec("sentence_transformers") is not None
needs_library = pytest.mark.skipif(not HERE, reason="sentence-transformers is not installed (nox -s tests_torch)")

MARKERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["alice", "bob", "likes", "hiking", "coffee", "paris", "query", "document", "and", "the"]
VOCABULARY = [*MARKERS, *WORDS, *"abcdefghijklmnopqrstuvwxyz"]
TEXTS = ["alice likes hiking", "bob", "", "the coffee and the paris and bob likes coffee", "unknown words here"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder of a random BERT, with a query prompt of its own."""
    import torch
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("weights")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    transformer = models.Transformer(str(folder), max_seq_length=32)
    model = SentenceTransformer(modules=[transformer, models.Pooling(32), models.Normalize()], device="cpu")
    model.prompts = {"query": "query ", "document": ""}
    saved = tmp_path_factory.mktemp("tiny-bert")
    model.save(str(saved))
    return saved


def save_jina(folder: Path) -> Path:
    import torch
    from sentence_transformers import SentenceTransformer, models
    from transformers import Qwen3Config, Qwen3Model

    torch.manual_seed(3)
    tokenizer = byte_tokenizer(template=None)  # with one, the library would make turns of prompt and text
    tokenizer.add_special_tokens({"pad_token": "<unk>"})
    shape = {"hidden_size": 1024, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    network = Qwen3Model(Qwen3Config(vocab_size=len(tokenizer), num_key_value_heads=1, head_dim=8, **shape))
    network.save_pretrained(folder / "network")
    tokenizer.save_pretrained(folder / "network")
    transformer = models.Transformer(str(folder / "network"), max_seq_length=64)
    pooling = models.Pooling(1024, pooling_mode="lasttoken")
    model = SentenceTransformer(modules=[transformer, pooling, models.Normalize()], device="cpu")
    model.prompts = {"query": "Query: ", "document": "Document: "}
    model.save(str(folder))
    return folder


@pytest.fixture
def embedder(tiny: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(tiny, device="cpu")


@pytest.mark.torch
@needs_library
class TestWithTheLibrary:
    def test_it_is_an_embedder_with_normalised_rows_in_input_order(self, embedder: Embedder) -> None:
        assert isinstance(embedder, Embedder)
        vectors = embedder.embed(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.dims) == (len(TEXTS), 32)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        for text, vector in zip(TEXTS, vectors, strict=True):
            np.testing.assert_allclose(embedder.embed([text])[0], vector, atol=1e-5)
        assert embedder.embed([]).shape == (0, 32)

    def test_queries_get_the_prompt_of_the_model_or_the_given_one(self, tiny: Path, embedder: Embedder) -> None:
        plain = embedder.embed(["alice", "query alice", "document alice"])
        np.testing.assert_allclose(embedder.embed(["alice"], kind="query")[0], plain[1], atol=1e-5)
        given = SentenceTransformerEmbedder(tiny, device="cpu", query_prompt="document ")
        np.testing.assert_allclose(given.embed(["alice"], kind="query")[0], plain[2], atol=1e-5)
        none = SentenceTransformerEmbedder(tiny, device="cpu", query_prompt="")
        np.testing.assert_allclose(none.embed(["alice"], kind="query")[0], plain[0], atol=1e-5)

    def test_a_model_in_the_shape_of_jinas_by_name_or_folder(self, tmp_path: Path) -> None:
        """A causal network of 1024 dimensions, pooled at its last token, with prompts for texts and queries."""
        folder = save_jina(tmp_path / "jina")
        prompted = build_component("embedder", f"jina:{folder}")
        assert prompted.dims == 1024
        plain = SentenceTransformerEmbedder(folder, device="cpu", query_prompt="", document_prompt="")
        by_hand = plain.embed(["Document: alice", "Query: alice"])
        np.testing.assert_allclose(prompted.embed(["alice"]), by_hand[:1], atol=1e-4)
        np.testing.assert_allclose(prompted.embed(["alice"], kind="query"), by_hand[1:], atol=1e-4)
        assert prompted.name != plain.name  # vectors of the two cannot be compared
        assert prompted.name == SentenceTransformerEmbedder(folder, document_prompt="Document: ").name
        assert repr(build_component("embedder", "jina")).endswith("('jinaai/jina-embeddings-v5-text-small-retrieval')")

    def test_the_name_is_cheap_and_follows_the_weights(self, tiny: Path, embedder: SentenceTransformerEmbedder) -> None:
        assert embedder.name.startswith(f"{tiny.name}-")
        assert embedder._model is None
        hub = SentenceTransformerEmbedder("sentence-transformers/all-MiniLM-L6-v2")
        assert hub.name == "all-MiniLM-L6-v2"

    def test_onnx_gives_the_same_folder_the_same_name_and_vectors(self, tiny: Path, tmp_path: Path) -> None:
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        from mem0_core.providers.onnx import OnnxEmbedder

        ours, theirs = OnnxEmbedder(path=tiny, cache_dir=tmp_path), SentenceTransformerEmbedder(tiny, device="cpu")
        assert (ours.name, ours.dims) == (theirs.name, theirs.dims)
        texts = [*TEXTS, "the coffee " * 100]
        np.testing.assert_allclose(ours.embed(texts), theirs.embed(texts), atol=2e-5)

    def test_a_long_text_is_cut_before_it_is_tokenized(
        self, embedder: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "alice likes hiking " * 500_000
        model = embedder._ensure_loaded()
        encode, lengths = model.encode, list[int]()

        def record(texts: list[str], **options: Any) -> Any:
            lengths.extend(map(len, texts))
            return encode(texts, **options)

        monkeypatch.setattr(model, "encode", record)
        vector = embedder.embed([text, "\ud800"])[0]
        assert max(lengths) == model.max_seq_length * MAX_CHARS_PER_TOKEN
        np.testing.assert_allclose(vector, embedder.embed(["alice likes hiking " * 100])[0], atol=1e-5)

    def test_threads_may_share_it(self, embedder: Embedder) -> None:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(embedder.embed, [TEXTS] * 8))
        for result in results:
            np.testing.assert_allclose(result, results[0], atol=1e-5)

    def test_declared_dims_are_checked(self, tiny: Path) -> None:
        wrong = SentenceTransformerEmbedder(tiny, device="cpu", embedding_dims=384)
        assert wrong.dims == 384
        with pytest.raises(ConfigError, match=r"embedding_dims is 384, but .* have 32"):
            wrong.embed(["a"])

    def test_a_model_that_is_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ModelError, match="cannot be loaded"):
            SentenceTransformerEmbedder(tmp_path / "empty", device="cpu").embed(["a"])

    def test_further_arguments_reach_the_library(self, tiny: Path) -> None:
        short = SentenceTransformerEmbedder(tiny, device="cpu", model_kwargs={"truncate_dim": 8})
        assert short.embed(["alice"]).shape == (1, 8)


def test_nothing_is_imported_until_it_is_used_and_a_missing_library_is_named() -> None:
    code = (
        "import sys\n"
        "from mem0_core.providers.sentence_transformers import SentenceTransformerEmbedder\n"
        "embedder = SentenceTransformerEmbedder('sentence-transformers/all-MiniLM-L6-v2')\n"
        "assert not {'torch', 'sentence_transformers'} & set(sys.modules)\n"
        "sys.modules['sentence_transformers'] = None\n"
        "try: embedder.embed(['a'])\n"
        "except ImportError as error: print(error)"
    )
    told = run_python(code)
    assert str(MissingExtraError("sentence-transformers", "sentence-transformers")) in told
