"""`LocalListReranker`: the rerankers of mem0-models, one of which compares a person's messages with one another."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, InputError
from mem0_core.interfaces import Candidate
from mem0_core.providers._model_folder import MEM0_LIST_RERANKER
from mem0_core.providers._numpy_bert import NumpyComparison, load_dense, load_tensor
from mem0_core.providers._wordpiece import WordPiece
from mem0_core.providers.local_reranker import (
    LocalReranker,
    Pair,
    PairEncoder,
    find_packaged_reranker,
    load_pair_encoder,
    require_folder,
)

_QUERY_TOKENS, _LABEL_TOKENS, _TEXT_TOKENS = 40, 8, 41  # as in training, where ten messages had to fit into 512
MAX_TOKENS = 128
_MONTH_CHARS = len("2024-05")
_AGE_SCALE = 8.0  # of the logarithm of an age in days: 1 for eight years


class LocalListReranker(LocalReranker):
    """mem0-reranker, which also compares the messages that a search found. Safe to share between threads.

    For `compare` a second model, mem0-list-reranker, reads ``query [SEP] month role : text [SEP]`` of each message: at
    most 40 tokens of the query and 41 of the text. Two layers of attention then compare the messages (set attention:
    Lee et al., "Set Transformer", ICML 2019, section 3.1, with the order in time added), so that one that reports a
    change may win over an older one that states the answer outright. It was trained on what people write of
    themselves to an assistant, in English.

    Args:
        model: the name of the second model in the package mem0-models.
        path: a folder with such a model instead; `training.list_reranker` trains it.
        threads: number of concurrent batches; default: the processors of this process, at most 8.

    Raises (all on first use):
        ConfigError: the weights are missing, or belong to another network.
    """

    def __init__(
        self,
        model: str = MEM0_LIST_RERANKER,
        *,
        path: str | os.PathLike[str] | None = None,
        threads: int | None = None,
    ) -> None:
        if model != MEM0_LIST_RERANKER:
            raise ConfigError(f"model: mem0-models has no listwise reranker {model!r}; pass {MEM0_LIST_RERANKER!r}")
        super().__init__(threads=threads)
        self._list_path = None if path is None else Path(path).expanduser()
        self._list_model: _ListModel | None = None

    def __repr__(self) -> str:
        return f"LocalListReranker({str(self._list_path or MEM0_LIST_RERANKER)!r})"

    def compare(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return the probability of each candidate that it is the answer; the rest is that of no answer among them.

        Raises:
            InputError: there are more candidates than the model compares.
        """
        if not candidates:
            return []
        model = self._ensure_list_model()
        if len(candidates) > model.comparison.max_vectors:
            limit = model.comparison.max_vectors
            raise InputError(f"candidates: {len(candidates)} were given; the model compares at most {limit}")
        pairs = encode_candidates(model.encoder.tokenizer, query, candidates, model.encoder.folder.max_tokens)
        return model.compare(self._read_pairs(model.encoder, pairs), candidates)

    def _ensure_list_model(self) -> _ListModel:
        with self._lock:
            if self._list_model is None:
                path = self._list_path
                folder = find_packaged_reranker(MEM0_LIST_RERANKER) if path is None else require_folder(path)
                self._list_model = _load(folder)
            return self._list_model


def _load(folder: Path) -> _ListModel:
    encoder = load_pair_encoder(folder, MAX_TOKENS)
    model = encoder.folder
    weight, bias = load_dense(model, "head")
    return _ListModel(
        encoder, NumpyComparison(model), weight[0], float(bias[0]), load_tensor(model, "signals.weight")[0]
    )


class _ListModel(NamedTuple):
    """The network that reads pairs, and the layers that compare what it read.

    Attributes:
        weight, bias: of the score of a pair alone.
        signals: weights of the features, which are added to it.
    """

    encoder: PairEncoder
    comparison: NumpyComparison
    weight: NDArray[np.float32]
    bias: float
    signals: NDArray[np.float32]

    def compare(self, vectors: NDArray[np.float32], candidates: Sequence[Candidate]) -> list[float]:
        """Return the probability of each candidate, from the states of the pairs."""
        features = describe_candidates(candidates)
        order = np.array(sorted(range(len(candidates)), key=lambda index: candidates[index].day))
        logits = np.empty(len(candidates), np.float32)
        logits[order], none = self.comparison.score(vectors[order], features[order])
        logits += vectors @ self.weight + self.bias + features @ self.signals
        shares = np.exp(np.append(logits, none) - max(float(logits.max()), none))
        probabilities: list[float] = (shares[:-1] / shares.sum()).tolist()
        return probabilities


def encode_candidates(tokenizer: WordPiece, query: str, candidates: Sequence[Candidate], max_tokens: int) -> list[Pair]:
    """Return the ids of each pair of the query and a candidate, at most `max_tokens`."""
    first, colon, last = tokenizer.encode(":")
    asked = [first, *tokenizer.cut(query, _QUERY_TOKENS), last]
    pairs = []
    for one in candidates:
        month = one.day[:_MONTH_CHARS]
        label = month if one.role == "user" else f"{month} {one.role}"
        said = [*tokenizer.cut(label, _LABEL_TOKENS), colon, *tokenizer.cut(one.text, _TEXT_TOKENS)]
        pairs.append(([*asked, *said, last][:max_tokens], len(asked)))
    return pairs


def describe_candidates(candidates: Sequence[Candidate]) -> NDArray[np.float32]:
    """Return the features of candidates, (count, 6)."""
    scores = [max(0.0, one.score) for one in candidates]
    first = scores.index(max(scores))
    best = scores[first] or 1.0
    rows = [
        (score, score / best, index == first, one.is_answer, one.cosine, _scale_age(one.days_ago))
        for index, (one, score) in enumerate(zip(candidates, scores, strict=True))
    ]
    return np.array(rows, np.float32)


def _scale_age(days: int) -> float:
    return math.log1p(max(0, days)) / _AGE_SCALE
