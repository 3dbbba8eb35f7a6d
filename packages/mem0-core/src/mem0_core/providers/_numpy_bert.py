"""BERT on numpy alone: the network of `_bert` without a graph, for environments without onnxruntime.

Loading takes some hundredths of a second, where onnxruntime takes ten times as long to import and to prepare a graph.
Matrix products run on numpy's BLAS and take most of the time, so large batches are only a little slower.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core._system.blas import use_one_blas_thread
from mem0_core.errors import ConfigError
from mem0_core.providers._bert import ModelFolder, TensorSpec, count_heads, map_files, read_activation, require_tensor

Array = NDArray[np.float32]

_CHUNK_VALUES = 32_768  # of an element-wise function at once, so that its steps stay in the processor's cache
_MASKED = np.float32(-1e9)
_COMPARISON_HEADS = 6  # of `NumpyComparison`
_QKV = ("query", "key", "value")
_WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"


class NumpyBert:
    """A loaded BERT with pooling. Several threads may run it at the same time.

    Weights of other types are converted to float32 when they are loaded; only rows of used tokens are converted of the
    word embeddings.

    Args:
        keeps_layers: False converts the layers again in each call, one after the other: two thirds of the time for one
            short text, and 35 MB less.
    """

    inputs = frozenset(("input_ids", "attention_mask"))
    outputs = ("sentence_embedding",)

    def __init__(self, folder: ModelFolder, *, keeps_layers: bool = True) -> None:
        if folder.tensors is None:
            raise ConfigError(f"{folder.weights}: an ONNX model needs onnxruntime: pip install 'mem0-core[onnx]'")
        self._folder = folder
        self._pooling = folder.pooling
        self._epsilon = _read_epsilon(folder)
        self._embeddings = _Embeddings(_Weights(folder, "embeddings."))
        self._layers = list(self._load_layers(_Weights(folder, "encoder."))) if keeps_layers else []

    def _load_layers(self, weights: _Weights, *, reuses_memory: bool = False) -> Iterator[_Layer]:
        """Yield the layers; if memory is reused, each is valid until the next one."""
        for number in range(self._folder.layer_count):
            yield _Layer(weights, f"encoder.layer.{number}.", self._folder, count_heads(self._folder))
            if reuses_memory:
                weights.free()

    def run(self, output: str, feeds: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
        """Embed a batch of token ids: (batch, tokens) to (batch, dims), of norm 1."""
        with use_one_blas_thread():
            return self._run(feeds["input_ids"], feeds["attention_mask"].astype(np.float32))

    def average(self, ids: NDArray[np.int64], mask: NDArray[np.int64], kinds: NDArray[np.int64]) -> Array:
        """Return the mean of the last states of each row's tokens, (batch, dims); `kinds` numbers the segments."""
        weights = mask.astype(np.float32)
        with use_one_blas_thread():
            states = self._compute_states(ids, weights, kinds)
        return _average(states, weights)

    def _run(self, ids: NDArray[np.int64], mask: Array) -> Array:
        return _pool(self._compute_states(ids, mask), mask, self._pooling)

    def _compute_states(self, ids: NDArray[np.int64], mask: Array, kinds: NDArray[np.int64] | None = None) -> Array:
        """Return the last states, (batch, tokens, dims)."""
        states = _normalize(self._embeddings.look_up(ids, kinds), *self._embeddings.norm, self._epsilon)
        padding = None if mask.all() else (mask[:, None, None, :] - np.float32(1)) * -_MASKED
        layers = self._layers or self._load_layers(_Weights(self._folder, "encoder.layer.0."), reuses_memory=True)
        for layer in layers:
            states = layer.run(states, ids.shape, padding)
        return states.reshape(*ids.shape, -1)


class NumpyComparison:
    """Layers of attention between vectors of a list, with heads for the score of each vector and of none of them.

    Its tensors begin with ``list.``: ``enter`` projects a vector, ``features`` its features, ``order`` holds an
    embedding of each place, and ``none`` is the vector of no answer. See `training.list_reranker`.
    """

    def __init__(self, folder: ModelFolder) -> None:
        weights = _Weights(folder, "list.")
        prefix = "list.layer."
        numbers = {name.removeprefix(prefix).split(".")[0] for name in folder.tensors or () if name.startswith(prefix)}
        self._layers = [
            _Layer(weights, f"{prefix}{number}.", folder, _COMPARISON_HEADS) for number in sorted(numbers, key=int)
        ]
        self._enter, self._score = weights.dense("list.enter"), weights.dense("list.score")
        self._features, self._order = weights.dense("list.features"), weights.load("list.order.weight")
        self._none, self._score_none = weights.load("list.none"), weights.dense("list.score_none")

    @property
    def max_vectors(self) -> int:
        """Number of the places that the model knows."""
        return len(self._order) - 1

    def score(self, vectors: Array, features: Array) -> tuple[Array, float]:
        """Return the logit of each vector, (count,), and that of none; vectors are (count, dims), in order."""
        entered = _project(vectors, *self._enter) + _project(features, *self._features)
        entered += self._order[1 : 1 + len(vectors)]
        states = np.concatenate([self._none, entered])
        with use_one_blas_thread():
            for layer in self._layers:
                states = layer.run(states, (1, len(states)), None)
        return _project(states[1:], *self._score)[:, 0], float(_project(states[:1], *self._score_none)[0, 0])


def load_dense(folder: ModelFolder, name: str) -> tuple[Array, Array]:
    """Return the weight and the bias of a dense layer, such as one on top of the network."""
    return _Weights(folder, name).dense(name)


def load_tensor(folder: ModelFolder, name: str) -> Array:
    """Return a tensor of a model in float32."""
    return _Weights(folder, name).load(name)


class _Weights:
    """The tensors of safetensors files, mapped into memory.

    Converted ones share one array, which the system provides in large pages: that halves the time of a first call.

    Args:
        prefix: start of the names of tensors that are loaded before the next call of `free`.
    """

    def __init__(self, folder: ModelFolder, prefix: str) -> None:
        assert folder.tensors is not None
        self._tensors: Mapping[str, TensorSpec] = folder.tensors
        self._file = folder.weights
        self._mappings = map_files(folder, mmap.ACCESS_READ)
        converted = (
            math.prod(tensor.shape)
            for name, tensor in self._tensors.items()
            if name.startswith(prefix) and name != _WORD_EMBEDDINGS
        )
        self._memory: Array = np.empty(sum(converted), np.float32)
        self.free()

    def free(self) -> None:
        """Reuse the memory of the tensors that were loaded."""
        self._unused = self._memory

    def stored(self, name: str) -> NDArray[Any]:
        """Return a tensor in its type: float32, float16, the upper half of a float32 as uint16, or int8."""
        tensor = require_tensor(self._tensors, name, self._file)
        kinds = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I8": np.int8}
        if tensor.dtype not in kinds:
            raise ConfigError(f"{tensor.file}: {name} is of type {tensor.dtype}, not F32, F16, BF16 or I8")
        count = math.prod(tensor.shape)
        mapping = self._mappings[tensor.file]
        return np.frombuffer(mapping, kinds[tensor.dtype], count, tensor.offset).reshape(tensor.shape)

    def load(self, name: str) -> Array:
        stored = self.stored(name)
        return stored if stored.dtype == np.float32 else self._expand(name, stored, self._allocate(stored.shape))

    def stack(self, names: Sequence[str], kind: str) -> Array:
        """Load tensors, one above the other."""
        stored = {f"{name}.{kind}": self.stored(f"{name}.{kind}") for name in names}
        parts = list(stored.values())
        array = self._allocate((sum(map(len, parts)), *parts[0].shape[1:]))
        first = 0
        for name, one in stored.items():
            self._expand(name, one, array[first : first + len(one)])
            first += len(one)
        return array

    def _expand(self, name: str, stored: NDArray[Any], out: Array) -> Array:
        """Convert a tensor to float32; one of int8 has a scale per row, under its name and ``:scale``."""
        if stored.dtype != np.int8:
            return widen(stored, out)
        np.multiply(stored, self.stored(f"{name}:scale")[:, None], out=out)
        return out

    def _allocate(self, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape)
        taken, self._unused = self._unused[:size], self._unused[size:]
        return taken.reshape(shape)

    def dense(self, name: str) -> tuple[Array, Array]:
        return self.load(f"{name}.weight"), self.load(f"{name}.bias")


def widen(values: NDArray[Any], out: Array | None = None) -> Array:
    """Convert half precision to float32, into `out` if it is given; else, float32 is returned as it is."""
    if out is None and values.dtype == np.float32:
        return values
    target = np.empty(values.shape, np.float32) if out is None else out
    if values.dtype == np.uint16:
        np.left_shift(values, 16, out=target.view(np.uint32), dtype=np.uint32, casting="unsafe")
    elif values.dtype == np.float16:
        _widen_half(values, target)
    else:
        np.copyto(target, values)
    return target


_HALF_BITS = np.int32(-0x70002000)  # sign, exponent and fraction of a shifted half: 0x8fffe000
_HALF_MAGNITUDE, _HALF_INFINITY = np.int16(0x7FFF), np.int16(0x7C00)
_HALF_BIAS = np.float32(2.0**112)  # between the biases of the two exponents: 127 - 15


def _widen_half(values: NDArray[np.float16], out: Array) -> None:
    """Convert halves as numpy does, in a third of its time: shift the bits, then correct the exponent by a product."""
    bits, wide = values.view(np.int16).reshape(-1), out.reshape(-1)
    shifted = wide.view(np.int32)
    for start in range(0, bits.size, _CHUNK_VALUES):
        part, target = bits[start : start + _CHUNK_VALUES], shifted[start : start + _CHUNK_VALUES]
        if (part & _HALF_MAGNITUDE).max() >= _HALF_INFINITY:
            wide[start : start + part.size] = part.view(np.float16)
            continue
        np.left_shift(part, 13, out=target, dtype=np.int32, casting="unsafe")
        target &= _HALF_BITS
        wide[start : start + part.size] *= _HALF_BIAS


class _Embeddings:
    def __init__(self, weights: _Weights) -> None:
        self._words = weights.stored(_WORD_EMBEDDINGS)
        self._word_scales = weights.stored(f"{_WORD_EMBEDDINGS}:scale") if self._words.dtype == np.int8 else None
        self._positions = weights.load("embeddings.position_embeddings.weight")
        self._kinds = weights.load("embeddings.token_type_embeddings.weight")
        self.norm = weights.dense("embeddings.LayerNorm")

    def look_up(self, ids: NDArray[np.int64], kinds: NDArray[np.int64] | None) -> Array:
        """Return the sum of the embeddings of words, positions and kinds: (batch * tokens, dims)."""
        kind = self._kinds[0] if kinds is None else self._kinds[kinds]
        words: Array = widen(self._words[ids])
        if self._word_scales is not None:
            words *= self._word_scales[ids][..., None]
        states: Array = words + (self._positions[: ids.shape[1]] + kind)
        return states.reshape(-1, states.shape[-1])


class _Layer:
    """A layer with its weights. Query, key and value are one matrix."""

    def __init__(self, weights: _Weights, prefix: str, folder: ModelFolder, heads: int) -> None:
        self._heads, self._epsilon = heads, _read_epsilon(folder)
        self._activate = _ACTIVATIONS[read_activation(folder)]
        parts = [f"{prefix}attention.self.{part}" for part in _QKV]
        self.attention = weights.stack(parts, "weight"), weights.stack(parts, "bias")
        self.attended = weights.dense(prefix + "attention.output.dense")
        self.attended_norm = weights.dense(prefix + "attention.output.LayerNorm")
        self.inner = weights.dense(prefix + "intermediate.dense")
        self.outer = weights.dense(prefix + "output.dense")
        self.outer_norm = weights.dense(prefix + "output.LayerNorm")

    def run(self, states: Array, shape: tuple[int, ...], padding: Array | None) -> Array:
        """Return the next states; (batch * tokens, dims) for a shape of (batch, tokens)."""
        mixed = _attend(_project(states, *self.attention), shape, self._heads, padding)
        attended = _project(mixed, *self.attended)
        attended += states
        states = _normalize(attended, *self.attended_norm, self._epsilon)
        inner = self._activate(_project(states, *self.inner))
        outer = _project(inner, *self.outer)
        outer += states
        return _normalize(outer, *self.outer_norm, self._epsilon)


def _read_epsilon(folder: ModelFolder) -> np.float32:
    return np.float32(folder.config.get("layer_norm_eps", 1e-12))


def _project(states: Array, weight: Array, bias: Array) -> Array:
    product: Array = states @ weight.T
    product += bias
    return product


def _attend(projected: Array, shape: tuple[int, ...], heads: int, padding: Array | None) -> Array:
    """Mix the values of each text by its attention scores."""
    batch, tokens = shape
    size = projected.shape[1] // 3 // heads
    parts = projected.reshape(batch, tokens, 3, heads, size).transpose(2, 0, 3, 1, 4)
    query, key, value = parts[0] * np.float32(1 / math.sqrt(size)), parts[1], parts[2]
    scores: Array = query @ key.transpose(0, 1, 3, 2)
    if padding is not None:
        scores += padding
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    mixed: Array = (scores @ value).transpose(0, 2, 1, 3)
    return mixed.reshape(batch * tokens, heads * size)


def _normalize(states: Array, scale: Array, shift: Array, epsilon: np.float32) -> Array:
    """Normalize each row to mean 0 and variance 1, in place; then scale and shift it."""
    states -= states.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", states, states)[:, None] / np.float32(states.shape[-1])
    states /= np.sqrt(variance + epsilon)
    states *= scale
    states += shift
    return states


def _average(states: Array, mask: Array) -> Array:
    averages: Array = (mask[:, None, :] @ states)[:, 0] / mask.sum(axis=1, keepdims=True)
    return averages


def _pool(states: Array, mask: Array, pooling: str) -> Array:
    vectors = states[:, 0] if pooling == "cls" else _average(states, mask)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return np.ascontiguousarray(vectors)


# --- activations -------------------------------------------------------------------------------------------------

# A rational approximation of erf on [-4, 4], exact to the last bits of float32: x P(x^2) / Q(x^2), highest power first.
_ERF_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_Q = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def _gelu(values: Array) -> Array:
    """Apply x (1 + erf(x / sqrt 2)) / 2 in place."""
    flat = values.reshape(-1)
    size = min(_CHUNK_VALUES, flat.size)
    scaled, square, upper, lower = (np.empty(size, np.float32) for _ in range(4))
    for start in range(0, flat.size, _CHUNK_VALUES):
        chunk = flat[start : start + _CHUNK_VALUES]
        x, xx, p, q = scaled[: chunk.size], square[: chunk.size], upper[: chunk.size], lower[: chunk.size]
        np.multiply(chunk, np.float32(math.sqrt(0.5)), out=x)
        np.clip(x, np.float32(-4), np.float32(4), out=x)
        np.multiply(x, x, out=xx)
        _evaluate(_ERF_P, xx, p)
        _evaluate(_ERF_Q, xx, q)
        p *= x
        p /= q
        p += np.float32(1)
        p *= np.float32(0.5)
        chunk *= p
    return values


def _evaluate(coefficients: tuple[float, ...], x: Array, out: Array) -> None:
    """Evaluate a polynomial by Horner's rule."""
    np.multiply(x, np.float32(coefficients[0]), out=out)
    for coefficient in coefficients[1:-1]:
        out += np.float32(coefficient)
        out *= x
    out += np.float32(coefficients[-1])


def _gelu_tanh(values: Array) -> Array:
    inner = values + np.float32(0.044715) * values**3
    values *= np.float32(0.5) * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * inner))
    return values


def _relu(values: Array) -> Array:
    return np.maximum(values, np.float32(0), out=values)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"gelu": _gelu, "gelu_tanh": _gelu_tanh, "relu": _relu}
