"""Checks of the embeddings and scores of other libraries' models, and recognition of refused requests."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, ModelError
from mem0_core.flow import Flow, arun, run

REFUSAL_STATUS_CODES = frozenset({400, 404, 415, 422, 501})
"""Answers of servers that do not support a kind of request (tools, a schema). 404: OpenRouter without a provider."""


def is_unsupported_request(error: Exception) -> bool:
    """Return True if the server or the class does not support this kind of request; a simpler one may work."""
    response = getattr(error, "response", None)
    # Each library stores the HTTP status in another attribute.
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return (status or getattr(error, "code", None)) in REFUSAL_STATUS_CODES or isinstance(error, NotImplementedError)


class MeasuredEmbedder(ABC):
    """Base of embedders that learn the length of their vectors from the first ones.

    Args:
        dims: the configured length; None if the first vectors decide it.
    """

    def __init__(self, dims: int | None) -> None:
        self._declared_dims = self._dims = dims

    @property
    def dims(self) -> int:
        """Length of the vectors. Raises ModelError if the model has to be called and fails."""
        if self._dims is None:
            self.embed(["dimensions"])
        assert self._dims is not None
        return self._dims

    @abstractmethod
    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1."""

    @property
    def _label(self) -> str:
        """Name of the model for errors."""
        return repr(self)

    def _to_unit_vectors(self, rows: Sequence[Sequence[float]] | Any, count: int) -> NDArray[np.float32]:
        """Convert embeddings of `count` texts to (count, dims) float32 with rows of L2 norm 1.

        Raises:
            ModelError: the vectors are unusable.
            ConfigError: their length differs from the configured one.
        """
        try:
            vectors = np.array(rows, np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self._label} gave embeddings that are not lists of numbers of one length") from error
        if vectors.ndim != 2 or len(vectors) != count:
            raise ModelError(f"{self._label} gave embeddings of shape {vectors.shape} for {count} texts")
        if self._dims not in (None, vectors.shape[1]):
            raise (ModelError if self._declared_dims is None else ConfigError)(
                f"the vectors of {self._label} have {vectors.shape[1]} dimensions, not the {self._dims} expected"
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise ModelError(f"{self._label} gave a vector that is zero or not finite")
        self._dims = vectors.shape[1]
        vectors /= norms
        return vectors


class AsyncEmbedder(MeasuredEmbedder):
    """Base of embedders whose models have calls for event loops too."""

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1.

        Raises:
            ModelError: the model failed, or returned unusable vectors.
            ConfigError: the vectors do not have the configured length.
        """
        return run(self._embed_texts(texts, kind))

    async def aembed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> NDArray[np.float32]:
        """Async version of `embed`."""
        return await arun(self._embed_texts(texts, kind))

    @abstractmethod
    def _embed_texts(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Flow[NDArray[np.float32]]: ...


def normalize_scores(scores: Sequence[float], *, logits: bool | None) -> tuple[list[float], bool | None]:
    """Return scores in [0, 1], and True if they were logits, to which a sigmoid is applied.

    If `logits` is None, scores count as logits once one of them is outside [0, 1]. Pass the returned flag with the next
    scores of the same model.
    """
    if logits is None and any(not 0 <= score <= 1 for score in scores):
        logits = True
    return [_sigmoid(score) if logits else score for score in scores], logits


def arrange_scores(
    places: Sequence[Any],
    scores: Sequence[float | None],
    *,
    count: int,
    logits: bool | None,
    model_label: object,
) -> tuple[list[float], bool | None]:
    """Return a score in [0, 1] for each of `count` texts, and the flag of `normalize_scores`.

    Args:
        places: index of each text that a reranker returned, best first; texts that it left out score 0.
        scores: their scores. If one is None, their order counts, as 1, (n - 1) / n, ... for n texts.
        model_label: the model's name for errors.

    Raises:
        ModelError: a text was returned that the reranker did not get, or a score is no number.
    """
    if not all(isinstance(place, int) and 0 <= place < count for place in places):
        raise ModelError(f"{model_label!r} returned texts that it was not given")
    try:
        given = [float(score) for score in scores if score is not None]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{model_label!r} returned a score that is no number: {error}") from error
    if len(given) == len(places):
        given, logits = normalize_scores(given, logits=logits)
    else:
        given = [(count - rank) / count for rank in range(len(places))]
    arranged = [0.0] * count
    for place, score in zip(places, given, strict=True):
        arranged[place] = score
    return arranged, logits


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else 1 - 1 / (1 + math.exp(logit))
