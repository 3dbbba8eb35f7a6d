"""What adapters of frameworks share: reading what models of other people answer, and how they refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, ModelError

__all__ = ["REFUSAL_STATUS_CODES", "is_unsupported_request", "normalize_scores", "to_unit_vectors"]

REFUSAL_STATUS_CODES = frozenset({400, 404, 415, 422, 501})
"""How servers answer a request form (tools, a schema) that they do not know. 404: OpenRouter, where nobody has it."""


def is_unsupported_request(error: Exception) -> bool:
    """Whether a model's server, or its class, has no such form of request: a simpler one may do."""
    response = getattr(error, "response", None)
    # Each provider's library keeps the HTTP status in its own place.
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return (status or getattr(error, "code", None)) in REFUSAL_STATUS_CODES or isinstance(error, NotImplementedError)


def to_unit_vectors(
    rows: Sequence[Sequence[float]] | Any, *, count: int, dims: int | None, dims_declared: bool, model_label: object
) -> NDArray[np.float32]:
    """Embeddings as (count, dims) float32 with rows of L2 norm 1.

    Args:
        dims: how long they must be, None where nobody knows yet.
        declared: whether the caller said so, and not an earlier answer.
        whose: names the model in errors.

    Raises:
        ModelError: they are no usable vectors. ConfigError: they are not as long as was declared.
    """
    try:
        vectors = np.array(rows, np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{model_label!r} gave embeddings that are not lists of numbers of one length") from error
    if vectors.ndim != 2 or len(vectors) != count:
        raise ModelError(f"{model_label!r} gave embeddings of shape {vectors.shape} for {count} texts")
    if dims is not None and vectors.shape[1] != dims:
        raise (ConfigError if dims_declared else ModelError)(
            f"the vectors of {model_label!r} have {vectors.shape[1]} dimensions, not the {dims} expected"
        )
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        raise ModelError(f"{model_label!r} gave a vector that is zero or not finite")
    unit: NDArray[np.float32] = vectors / norms
    return unit


def normalize_scores(scores: Sequence[float], *, logits: bool | None) -> tuple[list[float], bool | None]:
    """Scores in [0, 1], and whether they were logits, of which a sigmoid makes such.

    Where nobody said (None), they are taken for logits as soon as one lies outside [0, 1]; give the answer back with
    the next scores of the same model.
    """
    if logits is None and any(not 0 <= score <= 1 for score in scores):
        logits = True
    return [_sigmoid(score) if logits else score for score in scores], logits


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else 1 - 1 / (1 + math.exp(logit))
