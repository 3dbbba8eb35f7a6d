"""Receipt of an evaluation: the versions, files and models that its figures depend on."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mem0_core.evaluation.questions import Question

_PACKAGES = ("mem0-core", "mem0-models", "numpy", "onnxruntime", "tokenizers", "faiss-cpu")
_CHUNK_BYTES = 2**20


def make_receipt(files: Iterable[Path], questions: Sequence[Question]) -> dict[str, Any]:
    """Return the time, the versions, and the SHA-256 of the files and of the questions that were asked."""
    asked = hashlib.sha256("\n".join(one.key for one in questions).encode("utf-8", "surrogatepass"))
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "versions": versions,
        "files": {file.name: hash_path(file) for file in files},
        "questions": asked.hexdigest(),
    }


def describe_models(embedder: Any, reranker: Any, named: Sequence[str | None]) -> dict[str, Any]:
    """Return the embedder and the reranker of a memory.

    Args:
        named: their names in the plan; for a folder or a file, its digest is part of the result.
    """
    return {
        "embedder": embedder.name,
        "dims": embedder.dims,
        "reranker": None if reranker is None else getattr(reranker, "name", repr(reranker)),
        "files": {name: digest for name in named if name is not None and (digest := _hash_model(name)) is not None},
    }


def hash_path(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder, that of its files with their names, in order."""
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file()):
        if file != path:
            digest.update(f"{file.relative_to(path).as_posix()}\0".encode("utf-8", "surrogatepass"))
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _hash_model(name: str) -> str | None:
    """Return the digest of a model that is named by its path, with or without a provider before it."""
    for text in (name, name.partition(":")[2]):
        if text and (path := Path(text).expanduser()).exists():
            return hash_path(path)
    return None
