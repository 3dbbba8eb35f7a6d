"""`NumpyEmbedder`: mem0-minilm and other BERT sentence-transformers folders on numpy alone."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mem0_core.providers._bert import ModelFolder
from mem0_core.providers._local_embedder import EmbeddingRuntime, LocalEmbedder


class NumpyEmbedder(LocalEmbedder):
    """Embeds text in float32 on numpy. Safe to share between threads.

    It needs no extra and loads in a few hundredths of a second. `OnnxEmbedder` computes the same vectors in half to two
    thirds of the time. See `LocalEmbedder` for arguments, the source of the weights, and errors.
    """

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> EmbeddingRuntime:
        from mem0_core.providers._numpy_bert import NumpyBert

        return NumpyBert(folder)


class BriefNumpyEmbedder(NumpyEmbedder):
    """A `NumpyEmbedder` for a process that embeds one short text: it does not keep converted weights."""

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> EmbeddingRuntime:
        from mem0_core.providers._numpy_bert import NumpyBert

        return NumpyBert(folder, keeps_layers=False)


def create_local_embedder(*args: Any, **kwargs: Any) -> LocalEmbedder:
    """Create the default embedder: an `OnnxEmbedder` if onnxruntime is installed, else a `NumpyEmbedder`.

    Both compute the same vectors, so that a store can change from one to the other.
    """
    if find_spec("onnxruntime") is None:
        return NumpyEmbedder(*args, **kwargs)
    from mem0_core.providers.onnx import OnnxEmbedder

    return OnnxEmbedder(*args, **kwargs)
