"""`FastEmbedEmbedder`: the models of the fastembed library, on onnxruntime."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import MissingExtraError, ModelError
from mem0_core.providers.adapters import MeasuredEmbedder


class FastEmbedEmbedder(MeasuredEmbedder):
    """Embeds text with fastembed. Safe to share between threads: one call runs at a time.

    Args:
        model: a name that fastembed lists; downloaded on first use. The default is mem0's.
        embedding_dims: length of the vectors, as in mem0's configurations; checked against the result.
        cache_dir: folder of downloaded models; default: chosen by the library.
        threads: threads of one call; default: chosen by the library.
        batch_size: texts per step.

    Raises (all on first use):
        MissingExtraError: fastembed is not installed.
        ModelError: the model does not exist, or failed.
        ConfigError: the length of the vectors differs from `embedding_dims`.
    """

    def __init__(
        self,
        model: str = "thenlper/gte-large",
        *,
        embedding_dims: int | None = None,
        cache_dir: str | Path | None = None,
        threads: int | None = None,
        batch_size: int = 32,
    ) -> None:
        super().__init__(embedding_dims)
        self.name = model
        self._options: dict[str, Any] = {
            "cache_dir": None if cache_dir is None else str(cache_dir),
            "threads": threads,
        }
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._model: Any = None

    def __repr__(self) -> str:
        return f"FastEmbedEmbedder({self.name!r})"

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1. The first call loads the model."""
        if not texts:
            return np.zeros((0, self.dims), np.float32)
        with self._lock:
            model = self._load()
            encode = model.query_embed if kind == "query" else model.passage_embed
            options = {} if kind == "query" else {"batch_size": self._batch_size}
            try:
                rows = [list(map(float, row)) for row in encode(list(texts), **options)]
            except Exception as error:  # onnxruntime and the tokenizers raise various errors
                raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
            return self._to_unit_vectors(rows, len(texts))

    def _load(self) -> Any:
        if self._model is None:
            try:
                from fastembed import TextEmbedding
            except ImportError as error:
                raise MissingExtraError("fastembed", packages="fastembed") from error
            try:
                self._model = TextEmbedding(model_name=self.name, **self._options)
            except Exception as error:  # an unknown model, or a failed download
                raise ModelError(f"{self!r} cannot be loaded: {type(error).__name__}: {error}") from error
        return self._model
