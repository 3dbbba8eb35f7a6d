"""`SentenceTransformerEmbedder`: any model of the sentence-transformers library, on CPU or GPU.

The first call imports the library and torch.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN, find_base, name_embedding_space, read_json
from mem0_core.providers.adapters import MeasuredEmbedder

DEFAULT_MAX_TOKENS = 8192
"""Token limit of a model without one, by which texts are cut before tokenization."""


class SentenceTransformerEmbedder(MeasuredEmbedder):
    """Embeds text with sentence-transformers. Safe to share between threads: one call runs at a time.

    Args:
        model: a local folder, or a name on the Hugging Face hub, which is downloaded on first use.
        device: ``"cpu"``, ``"cuda"``, ...; default: chosen by the library.
        query_prompt: prefix of each query (``kind="query"``), for instance ``"query: "``. Default: the
            model's own prompt ``query``, if any; ``""`` for none.
        document_prompt: likewise the prefix of each document (``kind="document"``); default: the model's ``document``.
        embedding_dims: length of the vectors, as in mem0's configurations; checked against the result.
        batch_size: texts per step.
        model_kwargs: further arguments of ``SentenceTransformer`` (``trust_remote_code``, ``truncate_dim``, ...).

    Raises (all on first use):
        MissingExtraError: sentence-transformers is not installed.
        ModelError: the model does not exist, or failed.
        ConfigError: the length of the vectors differs from `embedding_dims`.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        device: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        embedding_dims: int | None = None,
        batch_size: int = 32,
        model_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(embedding_dims)
        self._source = os.fspath(model)
        self._device = device
        self._prompts: dict[str, str | None] = {"query": query_prompt, "document": document_prompt}
        self._batch_size = batch_size
        self._model_kwargs = dict(model_kwargs or {})
        self._lock = threading.RLock()
        self._model: Any = None
        self._name: str | None = None

    def __repr__(self) -> str:
        return f"SentenceTransformerEmbedder({self._source!r})"

    @property
    def name(self) -> str:
        """The name on the hub (without ``sentence-transformers/``); a folder's name and a short hash of its weights.

        `OnnxEmbedder` gives the same folder the same name, because it computes the same vectors. A document prompt,
        which that class does not support, adds a hash.
        """
        with self._lock:
            if self._name is None:
                folder = Path(self._source).expanduser()
                if folder.is_dir():
                    self._name = name_embedding_space(folder, folder.resolve().name)
                    prompts = read_json(folder / "config_sentence_transformers.json").get("prompts", {})
                else:
                    self._name = self._source.removeprefix("sentence-transformers/")
                    prompts = {}
                given = self._prompts["document"]
                if prompt := prompts.get("document") if given is None else given:  # it changes every vector
                    self._name += f"-{hashlib.sha256(prompt.encode()).hexdigest()[:8]}"
            return self._name

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1. The first call loads the model."""
        if not texts:
            return np.zeros((0, self.dims), np.float32)
        return self._encode(texts, prompt=self._prompt_for(kind))

    def _prompt_for(self, kind: str) -> str | None:
        given = self._prompts[kind]
        if given is not None:
            return given or None
        prompts: Mapping[str, str] = getattr(self._ensure_loaded(), "prompts", {})
        return prompts.get(kind) or None

    def _encode(self, texts: Sequence[str], *, prompt: str | None) -> NDArray[np.float32]:
        model = self._ensure_loaded()
        # Cut first, since the whole text is tokenized before it is truncated.
        limit = (model.max_seq_length or DEFAULT_MAX_TOKENS) * MAX_CHARS_PER_TOKEN
        truncated = [text[:limit].encode("utf-8", "replace").decode() for text in texts]
        with self._lock:  # a tokenizer cannot be used by two threads while its truncation is set
            try:
                vectors = model.encode(
                    truncated,
                    prompt=prompt,
                    batch_size=self._batch_size,
                    normalize_embeddings=True,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                )
            except Exception as error:  # torch and the models raise various errors
                raise ModelError(f"{self!r} failed: {error}") from error
        result: NDArray[np.float32] = np.asarray(vectors, np.float32)
        if self._dims is None:
            self._dims = result.shape[1]
        if self._dims != result.shape[1]:
            raise ConfigError(f"embedding_dims is {self._dims}, but the vectors of {self!r} have {result.shape[1]}")
        return result

    def _ensure_loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError as error:
            raise MissingExtraError("sentence-transformers", "sentence-transformers") from error
        folder = Path(self._source).expanduser()
        if find_base(folder) is not None:
            raise ConfigError(f"{folder} shares its embeddings with another model: use the embedder 'local' for it")
        source = str(folder) if folder.is_dir() else self._source
        try:
            return SentenceTransformer(source, device=self._device, **self._model_kwargs)
        except Exception as error:  # the hub, the file formats and torch raise different errors
            raise ModelError(f"{self!r} cannot be loaded: {error}") from error


jina = partial(SentenceTransformerEmbedder, model="jinaai/jina-embeddings-v5-text-small-retrieval")
"""Jina embeddings v5 (or a folder with them): 1024 dimensions, no remote code, license CC BY-NC."""
