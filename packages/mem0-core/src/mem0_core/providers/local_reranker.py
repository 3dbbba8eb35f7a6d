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
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN, MEM0_RERANKER
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
        pairs = loaded.encode(query, passages)
        scores = np.empty(len(pairs))

        def fill(rows: NDArray[np.int64]) -> None:
            scores[rows] = loaded.score([pairs[row] for row in rows])

        lengths = np.array([len(ids) for ids, _ in pairs])
        run_batches(fill, lengths, self._threads or count_processors(), _BATCH_TOKENS)
        return [float(score) for score in scores]

    def _ensure_loaded(self) -> _LoadedReranker:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._find_folder())
            return self._loaded

    def _find_folder(self) -> Path:
        if self._path is not None:
            if not self._path.is_dir():
                raise ConfigError(f"path: there is no folder {str(self._path)!r}")
            return self._path
        if self._model_name != MEM0_RERANKER:
            raise ConfigError(
                f"model: mem0-models has no reranker {self._model_name!r}; pass {MEM0_RERANKER!r}, a folder as path=,"
                " or 'sentence_transformers:NAME' for a model of the hub"
            )
        folder = find_packaged_model(self._model_name)
        if folder is None:
            raise ConfigError(f"no weights of {self._model_name!r} on this machine: pip install mem0-models")
        return folder


def _load(folder: Path) -> _LoadedReranker:
    model = read_model_folder(folder, folder.resolve().name, _MAX_TOKENS, name=folder.name)
    if model.tensors is None:
        raise ConfigError(f"{folder} has no model.safetensors with the weights of a cross-encoder")
    tokenizer = WordPiece.read(model.tokenizer, _MAX_TOKENS)
    if tokenizer is None:
        raise ConfigError(f"{model.tokenizer} is not the tokenizer of an uncased BERT")
    weight, bias = load_dense(model, _HEAD)
    return _LoadedReranker(tokenizer, _load_network(model), weight[0], float(bias[0]), model.max_tokens)


def _load_network(model: ModelFolder) -> _Network:
    if find_spec("onnxruntime") is None:
        return NumpyBert(model)
    from mem0_core.providers.onnx import OnnxCrossEncoder

    return OnnxCrossEncoder(model, resolve_cache_folder(None))


class _Network(Protocol):
    def average(self, ids: NDArray[np.int64], mask: NDArray[np.int64], kinds: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the mean of the last states of each row's tokens, (batch, dims); `kinds` numbers the segments."""
        ...


class _LoadedReranker(NamedTuple):
    """A tokenizer, a network, and the weights of its output."""

    tokenizer: WordPiece
    network: _Network
    weight: NDArray[np.float32]
    bias: float
    max_tokens: int

    def encode(self, query: str, passages: Sequence[Passage]) -> list[Pair]:
        """Return the ids of each pair."""
        first, colon, last = self.tokenizer.encode(":")
        asked = [first, *self._cut(query, _QUERY_TOKENS), last]
        pairs = []
        for text, speaker, day, before, after in passages:
            labels = [*self._cut(speaker, _LABEL_TOKENS), *self._cut(day, _LABEL_TOKENS), colon]
            around = [*self._cut(before, _BEFORE_TOKENS, tail=True), last, *self._cut(after, _AFTER_TOKENS), last]
            ids = [*asked, *labels, *self._cut(text, _TEXT_TOKENS), last, *around]
            pairs.append((ids[: self.max_tokens], len(asked)))
        return pairs

    def _cut(self, text: str, limit: int, *, tail: bool = False) -> list[int]:
        """Return the first `limit` ids of a text, or the last ones; a text cannot contain the markers."""
        if not text:
            return []
        chars = limit * MAX_CHARS_PER_TOKEN
        first, *ids, last = self.tokenizer.encode(text[-chars:] if tail else text[:chars])
        ids = [one for one in ids if one not in (first, last)]
        return ids[-limit:] if tail else ids[:limit]

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """Return the score of each pair."""
        width = max(len(ids) for ids, _ in pairs)
        ids, mask, kinds = np.zeros((3, len(pairs), width), np.int64)
        for row, (tokens, start) in enumerate(pairs):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
            kinds[row, start : len(tokens)] = 1
        logits = self.network.average(ids, mask, kinds).astype(np.float64) @ self.weight + self.bias
        scores: NDArray[np.float64] = 1 / (1 + np.exp(-logits / _TEMPERATURE))
        return scores
