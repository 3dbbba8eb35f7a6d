"""`LocalReranker`: the cross-encoder of mem0-models, and others of its form, on onnxruntime or on numpy alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError
from mem0_core.interfaces import Passage
from mem0_core.providers._bert import ModelFolder, read_model_folder, resolve_cache_folder
from mem0_core.providers._local_embedder import count_processors, find_packaged_model, run_batches
from mem0_core.providers._model_folder import MEM0_RERANKER
from mem0_core.providers._numpy_bert import NumpyBert, load_dense
from mem0_core.providers._wordpiece import WordPiece

_HEAD = "head"
_TEMPERATURE = 2.0  # the model is too sure of itself, as trained models are (Guo et al., 2017)
_QUERY_TOKENS, _TEXT_TOKENS, _LABEL_TOKENS = 40, 80, 6
_BEFORE_TOKENS, _AFTER_TOKENS = 20, 10  # the end of what was said before, and the beginning of what was said after
_MAX_TOKENS = 256
_BATCH_TOKENS = 512  # including padding; the states of more do not stay in the processor's cache

Pair = tuple[list[int], int]
"""The ids of a query and a passage, and the number of those of the query."""


class LocalReranker:
    """Scores passages with a cross-encoder. Safe to share between threads.

    The default model, mem0-reranker, was trained for questions about conversations, in English. It reads
    ``query [SEP] speaker day : text [SEP] before [SEP] after [SEP]``: at most 40 tokens of the query, 80 of the text,
    and 30 of what was said around it. With onnxruntime (extra ``onnx``) it multiplies in int8, which takes a third of
    the time of numpy and changes a score by up to 0.03.

    Args:
        model: a name in the package mem0-models.
        path: a folder with ``tokenizer.json``, ``config.json`` and a ``model.safetensors`` that also holds
            ``head.weight`` and ``head.bias``, as `training.cross_encoder` trains them.
        threads: number of concurrent batches; default: the processors of this process, at most 8.

    Raises (all on first use):
        ConfigError: the weights are missing, or belong to another network.
    """

    def __init__(
        self, model: str = MEM0_RERANKER, *, path: str | os.PathLike[str] | None = None, threads: int | None = None
    ) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        self._model_name = model
        self._path = None if path is None else Path(path).expanduser()
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: _LoadedReranker | None = None

    def __repr__(self) -> str:
        return f"LocalReranker({str(self._path or self._model_name)!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance in [0, 1] of each text to the query; the first call loads the model."""
        return self.score_passages(query, [Passage(text) for text in texts])

    def score_passages(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """Return the relevance in [0, 1] of each passage to the query; the first call loads the model."""
        if not passages:
            return []
        loaded = self._ensure_loaded()
        return loaded.score(self._read_pairs(loaded.encoder, loaded.encode(query, passages)))

    def _read_pairs(self, encoder: PairEncoder, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return the mean of the last states of each pair, (pairs, dims)."""
        vectors = np.empty((len(pairs), encoder.folder.dims), np.float32)

        def fill(rows: NDArray[np.int64]) -> None:
            vectors[rows] = encoder.read([pairs[row] for row in rows])

        lengths = np.array([len(ids) for ids, _ in pairs])
        run_batches(fill, lengths, self._threads or count_processors(), _BATCH_TOKENS)
        return vectors

    def _ensure_loaded(self) -> _LoadedReranker:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._find_folder())
            return self._loaded

    def _find_folder(self) -> Path:
        if self._path is not None:
            return require_folder(self._path)
        if self._model_name != MEM0_RERANKER:
            raise ConfigError(
                f"model: mem0-models has no reranker {self._model_name!r}; pass {MEM0_RERANKER!r}, a folder as path=,"
                " or 'sentence_transformers:NAME' for a model of the hub"
            )
        return find_packaged_reranker(self._model_name)


def _load(folder: Path) -> _LoadedReranker:
    encoder = load_pair_encoder(folder, _MAX_TOKENS)
    weight, bias = load_dense(encoder.folder, _HEAD)
    return _LoadedReranker(encoder, weight[0], float(bias[0]))


class _LoadedReranker(NamedTuple):
    """A cross-encoder and the weights of its output."""

    encoder: PairEncoder
    weight: NDArray[np.float32]
    bias: float

    def encode(self, query: str, passages: Sequence[Passage]) -> list[Pair]:
        """Return the ids of each pair."""
        cut = self.encoder.tokenizer.cut
        first, colon, last = self.encoder.tokenizer.encode(":")
        asked = [first, *cut(query, _QUERY_TOKENS), last]
        pairs = []
        for text, speaker, day, before, after in passages:
            labels = [*cut(speaker, _LABEL_TOKENS), *cut(day, _LABEL_TOKENS), colon]
            around = [*cut(before, _BEFORE_TOKENS, tail=True), last, *cut(after, _AFTER_TOKENS), last]
            ids = [*asked, *labels, *cut(text, _TEXT_TOKENS), last, *around]
            pairs.append((ids[: self.encoder.folder.max_tokens], len(asked)))
        return pairs

    def score(self, vectors: NDArray[np.float32]) -> list[float]:
        """Return the scores of pairs from their states."""
        logits = vectors.astype(np.float64) @ self.weight + self.bias
        scores: list[float] = (1 / (1 + np.exp(-logits / _TEMPERATURE))).tolist()
        return scores


# --- cross-encoders ------------------------------------------------------------------------------------------------


def require_folder(path: Path) -> Path:
    """Return a path that was given for a model.

    Raises:
        ConfigError: it is no folder.
    """
    if not path.is_dir():
        raise ConfigError(f"path: there is no folder {str(path)!r}")
    return path


def find_packaged_reranker(name: str) -> Path:
    """Return the folder of a reranker of mem0-models.

    Raises:
        ConfigError: the package is not installed, or has no such model.
    """
    folder = find_packaged_model(name)
    if folder is None:
        raise ConfigError(f"no weights of {name!r} on this machine: pip install mem0-models")
    return folder


def load_pair_encoder(folder: Path, max_tokens: int) -> PairEncoder:
    """Load the network of a cross-encoder: on onnxruntime if it is installed, else on numpy.

    Raises:
        ConfigError: a file is missing or unreadable, or belongs to another network.
    """
    model = read_model_folder(folder, folder.resolve().name, max_tokens, name=folder.name)
    if model.tensors is None:
        raise ConfigError(f"{folder} has no model.safetensors with the weights of a cross-encoder")
    tokenizer = WordPiece.read(model.tokenizer, max_tokens)
    if tokenizer is None:
        raise ConfigError(f"{model.tokenizer} is not the tokenizer of an uncased BERT")
    if find_spec("onnxruntime") is None:
        return PairEncoder(model, tokenizer, NumpyBert(model))
    from mem0_core.providers.onnx import OnnxCrossEncoder

    return PairEncoder(model, tokenizer, OnnxCrossEncoder(model, resolve_cache_folder(None)))


class _Network(Protocol):
    def average(self, ids: NDArray[np.int64], mask: NDArray[np.int64], kinds: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the mean of the last states of each row's tokens, (batch, dims); `kinds` numbers the segments."""
        ...


class PairEncoder(NamedTuple):
    """A network that reads pairs of a query and a passage, with its tokenizer."""

    folder: ModelFolder
    tokenizer: WordPiece
    network: _Network

    def read(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return the mean of the last states of each pair, (pairs, dims)."""
        width = max(len(ids) for ids, _ in pairs)
        ids, mask, kinds = np.zeros((3, len(pairs), width), np.int64)
        for row, (tokens, start) in enumerate(pairs):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
            kinds[row, start : len(tokens)] = 1
        return self.network.average(ids, mask, kinds)
