"""A BERT of a few thousand random weights in a sentence-transformers folder, and its expected vectors in NumPy.

It also has the helpers that the tests of several embedders share.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core.providers._bert import ModelFolder
from tests.support import run_python

__all__ = [
    "SAMPLE_TEXTS",
    "SPECIAL_TOKENS",
    "VOCABULARY",
    "Weights",
    "compute_expected_vectors",
    "embed_in_forked_child",
    "quantize",
    "random_weights",
    "read_weights",
    "stored_variants",
    "tokenize_text",
    "write_exported_network",
    "write_model_folder",
    "write_safetensors",
    "write_shared_folders",
    "write_tokenizer",
]

Weights = dict[str, NDArray[Any]]

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY = ["alice", "bob", "likes", "climbing", "coffee", "paris", "in", "the", "and"]
BERT_CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_size": 24,
    "num_attention_heads": 3,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-6,
    "pad_token_id": 0,
}
SAMPLE_TEXTS = [
    "alice likes climbing",
    "bob",
    "",
    "the coffee in paris and the coffee in the and bob likes alice",
    "words nobody knows",
    "Alice LIKES climbing!",
]


def random_weights(seed: int = 0, *, dims: int = 24, inner: int = 40, layers: int = 2, positions: int = 40) -> Weights:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> NDArray[np.float32]:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    weights: Weights = {
        "embeddings.position_ids": np.arange(positions, dtype=np.int64)[None],
        "embeddings.word_embeddings.weight": normal(len(SPECIAL_TOKENS + VOCABULARY), dims),
        "embeddings.position_embeddings.weight": normal(positions, dims),
        "embeddings.token_type_embeddings.weight": normal(2, dims),
        "pooler.dense.weight": normal(dims, dims),
    }
    norms, denses = ["embeddings"], {}
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}."
        norms += [prefix + "attention.output", prefix + "output"]
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            denses[f"{prefix}attention.{part}"] = (dims, dims)
        denses[f"{prefix}intermediate.dense"] = (inner, dims)
        denses[f"{prefix}output.dense"] = (dims, inner)
    for name in norms:
        weights[f"{name}.LayerNorm.weight"], weights[f"{name}.LayerNorm.bias"] = 1 + normal(dims), normal(dims)
    for name, shape in denses.items():
        weights[f"{name}.weight"], weights[f"{name}.bias"] = normal(*shape), normal(shape[0])
    return weights


def stored_variants(weights: Weights) -> Iterator[tuple[str, Weights, Weights]]:
    """Yield a name, weights in float16, bfloat16 or int8, and their values."""
    floats = {name for name, tensor in weights.items() if tensor.dtype == np.float32}
    half = {name: t.astype(np.float16) if name in floats else t for name, t in weights.items()}
    yield "half", half, half
    # bfloat16 is the upper half of a float32.
    brain = {n: (t.view(np.uint32) >> 16).astype(np.uint16) if n in floats else t for n, t in weights.items()}
    yield "brain", brain, {name: (brain[name].astype(np.uint32) << 16).view(np.float32) for name in floats}
    small, meant = quantize(weights)
    yield "small", small, meant


def quantize(weights: Weights) -> tuple[Weights, Weights]:
    """Return weights whose matrices are of int8 with a scale for each row, and their values."""
    stored, meant = dict(weights), dict(weights)
    for name, tensor in weights.items():
        if tensor.ndim == 2 and tensor.dtype == np.float32:
            scale = np.abs(tensor).max(axis=1) / np.float32(127)
            stored[name] = np.rint(tensor / scale[:, None]).astype(np.int8)
            stored[f"{name}:scale"] = scale
            meant[name] = stored[name] * scale[:, None]
    return stored, meant


def read_weights(folder: ModelFolder) -> Weights:
    """Read the values of the tensors in float32, float16 and int8."""
    assert folder.tensors is not None
    kinds = {"F16": np.float16, "F32": np.float32, "I8": np.int8}
    files = {file: file.read_bytes() for file in folder.files}
    stored = {
        name: np.frombuffer(files[one.file], kinds[one.dtype], math.prod(one.shape), one.offset).reshape(one.shape)
        for name, one in folder.tensors.items()
        if one.dtype in kinds
    }
    scales = {name.removesuffix(":scale"): stored.pop(name) for name in list(stored) if name.endswith(":scale")}
    values = {name: one.astype(np.float32) for name, one in stored.items()}
    return {name: one * scales[name][:, None] if name in scales else one for name, one in values.items()}


def write_shared_folders(path: Path) -> tuple[Path, Weights]:
    """Write a base and a model that has layers of its own and the embeddings of the base.

    Returns:
        The folder of the model, and the weights that it consists of.
    """
    base, own = random_weights(), random_weights(5, layers=1)
    layers = {name: tensor for name, tensor in own.items() if name.startswith("encoder.")}
    write_model_folder(path / "base", base)
    folder = write_model_folder(path / "trained", layers, base="../base/model.safetensors")
    return folder, {name: tensor for name, tensor in base.items() if name.startswith("embeddings.")} | layers


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64", "float64": "F64", "uint16": "BF16", "int8": "I8"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": kinds[str(tensor.dtype)], "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    content = json.dumps(header).encode()
    content += b" " * (-len(content) % 8)
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    path.write_bytes(len(content).to_bytes(8, "little") + content + data)


def write_tokenizer(path: Path, *, markers: bool = True) -> None:
    import tokenizers

    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            {word: at for at, word in enumerate(SPECIAL_TOKENS + VOCABULARY)}, unk_token="[UNK]"
        )
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    if markers:
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    tokenizer.enable_truncation(7)  # as in the folders on the hub, which sentence-transformers overrides too
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(path))


def write_model_folder(folder: Path, weights: Weights | None = None, *, pooling: Any = None, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", random_weights() if weights is None else weights)
    write_tokenizer(folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps({**BERT_CONFIG, **config}))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def write_exported_network(path: Path, *, pooled: bool) -> NDArray[np.float32]:
    """A network that looks words up and adds the type's vector, as someone else might have exported it."""
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(5)
    words = rng.normal(size=(len(SPECIAL_TOKENS + VOCABULARY), 24)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["looked_up"]),
        helper.make_node("Gather", ["types", "token_type_ids"], ["typed"]),
        helper.make_node("Add", ["looked_up", "typed"], ["last_hidden_state"]),
    ]
    outputs: list[tuple[str, list[Any]]] = [("last_hidden_state", ["batch", "tokens", 24])]
    if pooled:
        nodes.append(helper.make_node("ReduceMax", ["last_hidden_state", "axis"], ["sentence_embedding"], keepdims=0))
        outputs.append(("sentence_embedding", ["batch", 24]))
    constants = {"words": words, "types": np.zeros((2, 24), np.float32), "axis": np.array([1])}
    graph = helper.make_graph(
        nodes,
        "foreign",
        [helper.make_tensor_value_info(name, 7, ["batch", "tokens"]) for name in ("input_ids", "token_type_ids")],
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(path))
    return words


# --- the oracle --------------------------------------------------------------------------------------------------


def run_bert(
    weights: Weights, ids: Sequence[int], *, heads: int, eps: float, act: str = "gelu", pooling: str = "mean"
) -> NDArray[np.float64]:
    """BERT on one text, as its paper has it, in double precision and without a thought for speed."""
    w = {name.removeprefix("bert."): np.asarray(tensor, np.float64) for name, tensor in weights.items()}

    def dense(name: str, x: NDArray[np.float64]) -> Any:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name: str, x: NDArray[np.float64]) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return scaled * w[f"{name}.LayerNorm.weight"] + w[f"{name}.LayerNorm.bias"]

    def activate(x: NDArray[np.float64]) -> Any:
        if act == "relu":
            return np.maximum(x, 0)
        if act == "gelu":
            return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
        return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2

    x = w["embeddings.word_embeddings.weight"][list(ids)] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm("embeddings", x + w["embeddings.token_type_embeddings.weight"][0])
    for layer in range(sum(name.endswith("self.query.weight") for name in w)):
        prefix = f"encoder.layer.{layer}."
        query, key, value = (
            np.stack(np.split(dense(f"{prefix}attention.self.{part}", x), heads, axis=1))
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.concatenate(list(shares / shares.sum(-1, keepdims=True) @ value), axis=1)
        x = norm(f"{prefix}attention.output", x + dense(f"{prefix}attention.output.dense", mixed))
        inner = activate(dense(f"{prefix}intermediate.dense", x))
        x = norm(f"{prefix}output", x + dense(f"{prefix}output.dense", inner))
    vector: NDArray[np.float64] = x[0] if pooling == "cls" else x.mean(0)
    return vector / np.linalg.norm(vector)


def tokenize_text(folder: Path, text: str, limit: int) -> list[int]:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    ids: list[int] = tokenizer.encode(text).ids
    return ids


def compute_expected_vectors(
    folder: Path, texts: Sequence[str], weights: Weights | None = None, limit: int = 40, **kwargs: Any
) -> NDArray[Any]:
    weights = random_weights() if weights is None else weights
    kwargs = {"heads": 3, "eps": 1e-6, **kwargs}
    return np.array([run_bert(weights, tokenize_text(folder, text, limit), **kwargs) for text in texts])


def embed_in_forked_child(embedder: type, folder: Path, cache: Path) -> str:
    """Return the exit status of a child forked after its parent embedded texts: 0 if its vectors are equal."""
    code = f"""
import os, signal, sys
from {embedder.__module__} import {embedder.__name__}
embedder = {embedder.__name__}(path=sys.argv[1], cache_dir=sys.argv[2], threads=2)
texts = ["alice likes climbing in paris"] * 200
before = embedder.embed(texts)
child = os.fork()
if child == 0:
    signal.alarm(20)
    sys.exit(0 if (embedder.embed(texts) == before).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    return run_python(code, folder, cache)
