"""BERT as an ONNX graph, built over the weights of a sentence-transformers folder.

The graph has some 20 kB and refers to the weights in ``model.safetensors``. So nothing is converted, loading takes a
fraction of a second, and processes share the pages of the file. A model may share the embeddings of another one, in a
second file that ``base`` in its ``config.json`` names. `OnnxEmbedder` and `OpenVinoEmbedder` run the graph;
`NumpyBert` computes the same network without one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import mmap
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from mem0_core._system.files import replace_atomically
from mem0_core._system.records import dataclass
from mem0_core.errors import ConfigError
from mem0_core.providers import _onnx_format as onnx
from mem0_core.providers._model_folder import (
    find_base,
    name_embedding_space,
    read_json,
    read_max_tokens,
    read_modules,
    read_pooling_mode,
)

log = logging.getLogger(__name__)

GRAPH_VERSION = 3
"""Part of the cache key: increase it whenever `_BertGraph` changes."""
OPSET = 20  # the first with Gelu
IR_VERSION = 10  # onnxruntime reads it since 1.18


# --- model folders -----------------------------------------------------------------------------------------------


class TensorSpec(NamedTuple):
    """Type, shape and position of a tensor in a safetensors file; `offset` and `length` in bytes."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The metadata of a sentence-transformers folder.

    Attributes:
        tokenizer: its ``tokenizer.json``, or that of its base.
        weights: the safetensors or ONNX file, with symbolic links resolved (onnxruntime refuses those of the hub).
        tensors: the tensors by name, of the safetensors file and of that of its base; None for an ONNX file.
    """

    path: Path
    tokenizer: Path
    name: str
    dims: int
    weights: Path
    tensors: Mapping[str, TensorSpec] | None
    config: Mapping[str, Any]
    pooling: str
    max_tokens: int
    pad_token_id: int

    @property
    def files(self) -> list[Path]:
        """The files with the tensors."""
        return sorted({tensor.file for tensor in (self.tensors or {}).values()} or {self.weights})

    @property
    def root(self) -> Path:
        """The folder that contains all `files`."""
        return Path(os.path.commonpath([file.parent for file in self.files]))

    @property
    def layer_count(self) -> int:
        """Number of layers of a safetensors file."""
        found = map(_read_layer, self.tensors or ())
        return 1 + max((number for number in found if number is not None), default=-1)


def read_model_folder(path: Path, label: str, max_tokens: int, *, name: str | None = None) -> ModelFolder:
    """Read a folder's metadata.

    Args:
        path: the folder.
        label: the begin of the name of its space, see `name_embedding_space`.
        max_tokens: maximum tokens of a text; the model's own limit applies too.
        name: the name of its space if it is known, so that the weights need not be hashed.

    Raises:
        ConfigError: a file is missing or unreadable, or describes an unsupported network.
    """
    config = read_json(path / "config.json")
    tokenizer = _find_tokenizer(path)
    pooling = _read_pooling(path)
    weights = _find_weights(path, config)
    tensors = _read_tensors(path, weights) if weights.suffix != ".onnx" else None
    limits = [max_tokens, read_max_tokens(path)]
    if tensors is None:
        dims = config.get("hidden_size")
        if not isinstance(dims, int):
            raise ConfigError(f"{path / 'config.json'} has no hidden_size")
    else:
        dims = require_tensor(tensors, "embeddings.word_embeddings.weight", weights).shape[1]
        limits.append(require_tensor(tensors, "embeddings.position_embeddings.weight", weights).shape[0])
    return ModelFolder(
        path=path,
        tokenizer=tokenizer,
        name=name or name_embedding_space(path, label),
        dims=dims,
        weights=weights,
        tensors=tensors,
        config=config,
        pooling=pooling,
        max_tokens=min(limits),
        pad_token_id=int(config.get("pad_token_id") or 0),
    )


def _find_tokenizer(path: Path) -> Path:
    """Find the tokenizer of a model: a model that shares the embeddings of another one may share its tokenizer too."""
    if (file := path / "tokenizer.json").is_file():
        return file
    if (base := find_base(path)) is None:
        raise ConfigError(f"{path} has no tokenizer.json")
    return _find_tokenizer(base.parent)


def _find_weights(path: Path, config: Mapping[str, Any]) -> Path:
    """Find the safetensors file if the graph can be built from it, else an existing ONNX model."""
    bert = config.get("model_type", "bert") == "bert" and (
        config.get("position_embedding_type", "absolute") == "absolute"
    )
    names = ["model.onnx", "onnx/model.onnx"]
    if bert:
        names.insert(0, "model.safetensors")
    for name in names:
        if (file := path / name).is_file():
            return file.resolve() if name.endswith(".safetensors") else file
    if not bert:
        raise ConfigError(
            f"{path} has a network of type {config.get('model_type')!r} and no ONNX model of it; only BERT "
            "can be built here (SentenceTransformerEmbedder runs other networks)"
        )
    raise ConfigError(f"{path} has neither model.safetensors nor model.onnx")


def _read_pooling(path: Path) -> str:
    """Read the pooling of token vectors: ``mean`` or ``cls``."""
    if unknown := read_modules(path).keys() - {"Transformer", "Pooling", "Normalize"}:
        raise ConfigError(f"{path} has unsupported modules: {', '.join(sorted(unknown))}")
    mode = read_pooling_mode(path)
    if mode not in ("mean", "cls"):
        raise ConfigError(f"{path} pools by {mode!r}; only mean and cls are supported")
    return mode


def _read_tensors(path: Path, weights: Path) -> dict[str, TensorSpec]:
    """Read the tensors of `weights`, and those that the model shares with its base, if it has one.

    These are the embeddings, and the layers below the first one of `weights`.
    """
    own, base = _read_safetensors(weights), find_base(path)
    if base is None:
        return own
    first = min((number for name in own if (number := _read_layer(name)) is not None), default=0)
    shared = _read_tensors(base.parent, base)
    is_lower = {name: (number := _read_layer(name)) is not None and number < first for name in shared}
    return {name: one for name, one in shared.items() if name.startswith("embeddings.") or is_lower[name]} | own


def _read_layer(name: str) -> int | None:
    """Return the number of the layer of a tensor."""
    match = re.match(r"encoder\.layer\.(\d+)\.", name)
    return None if match is None else int(match[1])


def _read_safetensors(path: Path) -> dict[str, TensorSpec]:
    """Read the header of a safetensors file: 8 bytes of header length, the header in JSON, the raw data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ConfigError(f"{path} is not a safetensors file, or is truncated")
        header = file.read(length)
    start = 8 + length
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        tensors = {
            # A model saved with a head prefixes the network's tensors.
            name.removeprefix("bert."): TensorSpec(
                path, entry["dtype"], tuple(entry["shape"]), start + begin, end - begin
            )
            for name, entry in entries.items()
            for begin, end in [entry["data_offsets"]]
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{path} has an unreadable header: {error!r}") from error
    if any(tensor.offset + tensor.length > size for tensor in tensors.values()):
        raise ConfigError(f"{path} is truncated")
    return tensors


def map_files(folder: ModelFolder, access: int) -> dict[Path, mmap.mmap]:
    """Map the files with the tensors into memory."""
    mappings = {}
    for path in folder.files:
        with path.open("rb") as file:
            mappings[path] = mmap.mmap(file.fileno(), 0, access=access)
    return mappings


def require_tensor(tensors: Mapping[str, TensorSpec], name: str, weights: Path) -> TensorSpec:
    try:
        return tensors[name]
    except KeyError:
        raise ConfigError(f"{weights} has no {name}: it is not a BERT network") from None


# --- the graph and its cache -------------------------------------------------------------------------------------


def resolve_cache_folder(given: str | os.PathLike[str] | None) -> Path:
    """Return the folder of built graphs: `given`, else ``mem0-core`` in the platform's cache folder."""
    if given is not None:
        return Path(given).expanduser()
    if root := os.environ.get("XDG_CACHE_HOME"):
        return Path(root) / "mem0-core"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "mem0-core" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mem0-core"
    return Path.home() / ".cache" / "mem0-core"


WeightStorage = Literal["external", "inputs"]
"""Weights of a graph: references into ``model.safetensors``, or inputs named like the tensors."""
Integers = Literal["signed", "unsigned"]
"""The type of matrices in products of integers: int8, or uint8 with the zero point 128."""


def load_or_build_graph(
    folder: ModelFolder, cache: Path, weights: WeightStorage = "external", *, integers: Integers | None = None
) -> bytes:
    """Return the graph over `folder`'s weights, from the cache or built and cached.

    It is a serialized ONNX model. The graph of an embedder has the inputs ``input_ids`` and ``attention_mask``,
    (batch, tokens) int64, and the output ``sentence_embedding``, (batch, dims) float32, pooled over the mask and of L2
    norm 1. That of a cross-encoder, with `integers`, has the input ``token_type_ids`` too, and the output ``average``:
    the mean of the last states. It multiplies matrices of int8 as such, with states rounded to 8 bits by token
    (dynamic quantization by token as in ZeroQuant, Yao et al., 2022, section 4.1), so that a score does not depend on
    the other rows of its batch. That needs operators of onnxruntime.

    A cache file is the graph followed by its SHA-256, so that a truncated one is detected and rebuilt.
    """
    config = {key: folder.config.get(key) for key in ("num_attention_heads", "layer_norm_eps", "hidden_act")}
    assert folder.tensors is not None
    # Where each tensor is stored; its values are no part of the graph.
    layout = [(name, one.file.relative_to(folder.root).as_posix(), *one[1:]) for name, one in folder.tensors.items()]
    key = repr((GRAPH_VERSION, sorted(layout), sorted(config.items()), folder.pooling, weights, integers))
    file = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.graph"
    try:
        content = file.read_bytes()
    except OSError:
        content = b""
    graph, digest = content[:-32], content[-32:]
    if graph and hashlib.sha256(graph).digest() == digest:
        return graph
    graph = _build_graph(folder, weights, integers)
    try:
        with replace_atomically(file) as unfinished:
            unfinished.write_bytes(graph + hashlib.sha256(graph).digest())
    except OSError as error:
        log.debug("the graph of %s is not cached: %s", folder.name, error)
    return graph


def _build_graph(folder: ModelFolder, weights: WeightStorage, integers: Integers | None) -> bytes:
    graph = _BertGraph(folder, weights, integers)
    states = graph.add_embeddings()
    for layer in range(folder.layer_count):
        states = graph.add_layer(f"encoder.layer.{layer}.", states)
    if integers is not None:
        return graph.serialize(graph.add_average(states), "average")
    return graph.serialize(graph.add_pooling(states, folder.pooling), "sentence_embedding")


class _BertGraph:
    """Builder of a BERT graph. Token states are (batch * tokens, dims), so that each dense layer is one Gemm.

    Each ``add`` method adds nodes and returns the name of the value that they compute.
    """

    def __init__(self, folder: ModelFolder, weights: WeightStorage, integers: Integers | None) -> None:
        assert folder.tensors is not None
        self._tensors = folder.tensors
        self._weights = folder.weights
        self._root = folder.root
        self._dims = folder.dims
        self._heads = count_heads(folder)
        self._epsilon = float(folder.config.get("layer_norm_eps", 1e-12))
        self._activation = _ACTIVATION_NODES[read_activation(folder)]
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}
        self._weight_inputs: dict[str, bytes] | None = {} if weights == "inputs" else None
        self._integers = integers
        self._rounded: dict[str, tuple[str, str]] = {}
        self._shape = self._add_node("Shape", "input_ids")
        self._mask = self._add_node("Cast", "attention_mask", to=onnx.FLOAT)
        # 0 for tokens and -1e9 for padding, added to the attention scores of all heads and queries.
        masked = self._add_node(
            "Sub", self._add_node("Unsqueeze", self._mask, self._add_ints(1, 2)), self._add_scalar(1.0)
        )
        self._padding_bias = self._add_node("Mul", masked, self._add_scalar(1e9))
        self._flat_shape = self._add_ints(-1, self._dims)
        self._head_shape = self._add_node(
            "Concat", self._shape, self._add_ints(self._heads, self._dims // self._heads), axis=0
        )

    def add_embeddings(self) -> str:
        tokens = self._add_node("Slice", self._shape, self._add_ints(1), self._add_ints(2))
        positions = self._add_node(
            "Slice",
            self._add_weight("embeddings.position_embeddings.weight"),
            self._add_ints(0),
            tokens,
            self._add_ints(0),
        )
        kinds = self._add_weight("embeddings.token_type_embeddings.weight")
        if self._integers is None:
            kind = self._add_node("Slice", kinds, self._add_ints(0), self._add_ints(1), self._add_ints(0))
        else:
            kind = self._add_node("Gather", kinds, "token_type_ids")
        words = self._add_weight("embeddings.word_embeddings.weight", rows="input_ids")
        summed = self._add_node("Add", words, self._add_node("Add", positions, kind))
        return self._add_node("Reshape", self._add_layer_norm("embeddings", summed), self._flat_shape)

    def add_layer(self, prefix: str, states: str) -> str:
        attended = self._add_dense(
            prefix + "attention.output.dense", self._add_attention(prefix + "attention.self.", states)
        )
        states = self._add_layer_norm(prefix + "attention.output", self._add_node("Add", attended, states))
        inner = self._add_activation(self._add_dense(prefix + "intermediate.dense", states))
        outer = self._add_dense(prefix + "output.dense", inner)
        return self._add_layer_norm(prefix + "output", self._add_node("Add", outer, states))

    def _add_attention(self, prefix: str, states: str) -> str:
        query, key, value = (
            self._add_node(
                "Transpose",
                self._add_node("Reshape", self._add_dense(prefix + part, states), self._head_shape),
                perm=perm,
            )
            for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )  # (batch, heads, tokens, size), the key with its last two axes swapped
        scaled = self._add_node("Mul", query, self._add_scalar(1 / math.sqrt(self._dims // self._heads)))
        scores = self._add_node("Add", self._add_node("MatMul", scaled, key), self._padding_bias)
        mixed = self._add_node("MatMul", self._add_node("Softmax", scores, axis=-1), value)
        return self._add_node("Reshape", self._add_node("Transpose", mixed, perm=[0, 2, 1, 3]), self._flat_shape)

    def add_pooling(self, states: str, pooling: str) -> str:
        if pooling == "cls":
            # A scalar index selects one position and removes the axis.
            vector = self._add_node("Gather", self._add_rows(states), self._add_constant(np.int64(0)), axis=1)
        else:
            vector = self.add_average(states)
        length = self._add_node("ReduceL2", vector, self._add_ints(1), keepdims=1)
        return self._add_node("Div", vector, self._add_node("Max", length, self._add_scalar(1e-12)))

    def add_average(self, states: str) -> str:
        weights = self._add_node("Unsqueeze", self._mask, self._add_ints(2))
        weighted = self._add_node("Mul", self._add_rows(states), weights)
        total, count = (
            self._add_node("ReduceSum", part, self._add_ints(1), keepdims=0) for part in (weighted, weights)
        )
        return self._add_node("Div", total, count)

    def _add_rows(self, states: str) -> str:
        """Add the split of states into (batch, tokens, dims)."""
        shape = self._add_node("Concat", self._shape, self._add_ints(self._dims), axis=0)
        return self._add_node("Reshape", states, shape)

    def serialize(self, result: str, output: str) -> bytes:
        self._nodes.append(onnx.node("Identity", [result], [output]))
        names = ["input_ids", "attention_mask", *([] if self._integers is None else ["token_type_ids"])]
        inputs = [onnx.value_info(name, onnx.INT64, ["batch", "tokens"]) for name in names]
        inputs += (self._weight_inputs or {}).values()
        outputs = [onnx.value_info(output, onnx.FLOAT, ["batch", self._dims])]
        constants = self._constants.values()
        domains = [] if self._integers is None else [onnx.MICROSOFT]
        return onnx.model(self._nodes, constants, inputs, outputs, opset=OPSET, ir_version=IR_VERSION, domains=domains)

    def _add_dense(self, name: str, states: str) -> str:
        weight, bias = f"{name}.weight", self._add_weight(f"{name}.bias")
        if self._integers is None or require_tensor(self._tensors, weight, self._weights).dtype != "I8":
            return self._add_node("Gemm", states, self._add_weight(weight), bias, transB=1)
        return self._add_node("Add", self._add_integer_product(weight, states), bias)

    def _add_integer_product(self, weight: str, states: str) -> str:
        """Add the product of rounded states with a matrix of int8, and of its scales."""
        rounded, steps = self._rounded.get(states) or self._rounded.setdefault(states, self._add_rounding(states))
        matrix, scales = self._add_reference(weight), self._add_weight(f"{weight}:scale")
        zero = self._add_constant(np.uint8(128))
        zeros = [zero]
        if self._integers == "unsigned":
            raised = self._add_node("Add", self._add_node("Cast", matrix, to=onnx.FLOAT), self._add_scalar(128))
            matrix = self._add_node("Cast", raised, to=onnx.UINT8)
            zeros.append(zero)
        matrix = self._add_node("Transpose", matrix, perm=[1, 0])
        operands = [rounded, matrix, self._add_scalar(1), scales, *zeros]
        return self._add_node("Mul", self._add_node("MatMulIntegerToFloat", *operands, domain=onnx.MICROSOFT), steps)

    def _add_rounding(self, states: str) -> tuple[str, str]:
        """Add the rounding of each row to integers between -127 and 127, stored with 128 added, and its step."""
        largest = self._add_node("ReduceMax", self._add_node("Abs", states), self._add_ints(1), keepdims=1)
        steps = self._add_node("Div", largest, self._add_scalar(127))
        steps = self._add_node("Max", steps, self._add_scalar(1e-12))
        flat = self._add_node("Squeeze", steps, self._add_ints(1))
        zeros = self._add_node("Expand", self._add_constant(np.uint8(128)), self._add_node("Shape", flat))
        return self._add_node("QuantizeLinear", states, flat, zeros, axis=0), steps

    def _add_layer_norm(self, name: str, states: str) -> str:
        scale, shift = self._add_weight(f"{name}.LayerNorm.weight"), self._add_weight(f"{name}.LayerNorm.bias")
        return self._add_node("LayerNormalization", states, scale, shift, axis=-1, epsilon=self._epsilon)

    def _add_activation(self, states: str) -> str:
        kind, attributes = self._activation
        return self._add_node(kind, states, **attributes)

    def _add_node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self._nodes)}"
        self._nodes.append(onnx.node(kind, inputs, [output], **attributes))
        return output

    def _add_weight(self, name: str, rows: str | None = None) -> str:
        """Add a tensor, or `rows` of it, as float32; the runtime converts constants when it loads the graph."""
        value = self._add_reference(name, rows)
        kind = require_tensor(self._tensors, name, self._weights).dtype
        if kind != "F32":
            value = self._add_node("Cast", value, to=onnx.FLOAT)
        if kind == "I8":
            scales = self._add_node("Unsqueeze", self._add_reference(f"{name}:scale", rows), self._add_ints(-1))
            value = self._add_node("Mul", value, scales)
        return value

    def _add_reference(self, name: str, rows: str | None = None) -> str:
        """Add a tensor, or `rows` of it, in its type."""
        tensor = require_tensor(self._tensors, name, self._weights)
        kind = _TYPES.get(tensor.dtype)
        if kind is None:
            raise ConfigError(f"{tensor.file}: {name} is of type {tensor.dtype}, not one of {', '.join(_TYPES)}")
        if self._weight_inputs is not None:
            self._weight_inputs[name] = onnx.value_info(name, kind, tensor.shape)
        elif name not in self._constants:
            file = tensor.file.relative_to(self._root).as_posix()
            self._constants[name] = onnx.external_tensor(name, kind, tensor.shape, file, tensor.offset, tensor.length)
        return name if rows is None else self._add_node("Gather", name, rows)

    def _add_ints(self, *values: int) -> str:
        return self._add_constant(np.array(values, np.int64))

    def _add_scalar(self, value: float) -> str:
        return self._add_constant(np.float32(value))

    def _add_constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = onnx.tensor(name, value)
        return name


_TYPES = {"F32": onnx.FLOAT, "F16": onnx.FLOAT16, "BF16": onnx.BFLOAT16, "I8": onnx.INT8}


def count_heads(folder: ModelFolder) -> int:
    """Return the number of attention heads from the configuration; the default is MiniLM's."""
    heads = int(folder.config.get("num_attention_heads", 12))
    if folder.dims % heads:
        raise ConfigError(f"{folder.path}: {folder.dims} dimensions cannot be split between {heads} attention heads")
    return heads


Activation = Literal["gelu", "gelu_tanh", "relu"]

_ACTIVATION_NODES: dict[Activation, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {}),
    "gelu_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}


def read_activation(folder: ModelFolder) -> Activation:
    """Return the activation between the dense layers, by default MiniLM's."""
    name = folder.config.get("hidden_act", "gelu")
    known: dict[str, Activation] = {
        "gelu": "gelu",
        "gelu_new": "gelu_tanh",
        "gelu_pytorch_tanh": "gelu_tanh",
        "relu": "relu",
    }
    if name not in known:
        raise ConfigError(f"{folder.path}: hidden_act {name!r} is not supported; supported: {', '.join(known)}")
    return known[name]
