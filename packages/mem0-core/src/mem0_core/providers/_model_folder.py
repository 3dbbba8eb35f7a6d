"""Metadata of a sentence-transformers folder: files, pooling, and embedding space."""

from __future__ import annotations

import hashlib
import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from mem0_core.errors import ConfigError

MEM0_MINILM = "mem0-minilm"
"""The default embedding model, trained from all-MiniLM-L6-v2."""
MEM0_RERANKER = "mem0-reranker"
"""The cross-encoder of the package mem0-models."""
MEM0_LIST_RERANKER = "mem0-list-reranker"
"""The listwise reranker of the package mem0-models."""
MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of ``model.safetensors`` on the hub."""
MINILM_INT8_SHA256 = "1ded4eacb9ef139a13e5f0088fecb49debd9ab684f9f443955019563d8827430"
"""SHA-256 of the same weights with matrices in int8, in the package mem0-models."""
MEM0_MINILM_SHA256 = "7e65a0c3ba2ab19e27265cfc88cfcc0429eaeb62b5b26999037692fe87334272"
"""SHA-256 of the layers of mem0-minilm in the package mem0-models."""

_KNOWN_WEIGHTS = {
    (MINILM_SHA256,): MINILM,
    (MINILM_INT8_SHA256,): MINILM,
    (MEM0_MINILM_SHA256, MINILM_INT8_SHA256): MEM0_MINILM,
}

MAX_CHARS_PER_TOKEN = 40
"""Texts are cut to this many characters per allowed token before tokenization. English has about 5."""


def read_pooling_mode(path: Path) -> str:
    config = read_json(path / read_modules(path).get("Pooling", "1_Pooling") / "config.json")
    flags = [key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on]
    mode = str(config.get("pooling_mode") or "+".join(flags) or "mean")
    return {"mean_tokens": "mean", "cls_token": "cls"}.get(mode, mode)


def read_modules(path: Path) -> dict[str, str]:
    """Return the folders of a model's modules by kind."""
    modules = read_json(path / "modules.json", list)
    return {str(module.get("type", "")).rpartition(".")[2]: str(module.get("path", "")) for module in modules}


def read_max_tokens(path: Path) -> int:
    """Return the token limit that the folder declares."""
    length = read_json(path / "sentence_bert_config.json").get("max_seq_length")
    length = length or read_json(path / "tokenizer_config.json").get("model_max_length")
    return int(length) if length else sys.maxsize


def find_base(folder: Path) -> Path | None:
    """Return the file that holds the embeddings of a model, if it shares those of another one.

    Raises:
        ConfigError: ``base`` in ``config.json`` names no file.
    """
    base = read_json(folder / "config.json").get("base")
    if base is None:
        return None
    file = (folder / str(base)).resolve()
    if not file.is_file():
        raise ConfigError(f"base in {folder / 'config.json'} names {file}, which does not exist")
    return file


def read_json(path: Path, kind: type[Any] = dict) -> Any:
    """Read a JSON file; return an empty `kind` if it does not exist.

    Raises:
        ConfigError: the file is unreadable, or its content is not of `kind`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return kind()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, kind):
        raise ConfigError(f"{path} does not contain a JSON {kind.__name__}")
    return content


def name_embedding_space(folder: Path, label: str) -> str:
    """Name the embedding space of a sentence-transformers folder: `label` and a short hash of the weights.

    The weights of packaged models are recognized by their hash in any folder. Weights are read once per process.
    """
    files = [*folder.glob("*.safetensors"), *folder.glob("[0-9]*/*.safetensors")]
    if not files:
        files = [*folder.glob("pytorch_model*.bin"), *folder.glob("*.onnx"), *folder.glob("onnx/model.onnx")]
    files = [*sorted(files), *([base] if (base := find_base(folder)) else [])]
    space = [compute_sha256(file) for file in files], read_pooling_mode(folder)
    if space[1] == "mean" and (known := _KNOWN_WEIGHTS.get(tuple(space[0]))):
        return known
    return f"{label}-{hashlib.sha256(repr(space).encode()).hexdigest()[:8]}"


def compute_sha256(path: Path) -> str:
    stat = path.stat()
    return _hash_file(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=32)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    """Return the hex digest of a file, cached until it changes (90 MB take some 0.07 s)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
