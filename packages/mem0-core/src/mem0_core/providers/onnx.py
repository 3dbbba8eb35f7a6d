"""`OnnxEmbedder`: mem0-minilm and other BERT sentence-transformers folders on onnxruntime, without torch.

The first call imports the library and loads the model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ModelError
from mem0_core.providers._bert import ModelFolder, load_or_build_graph
from mem0_core.providers._local_embedder import LocalEmbedder, import_extra

__all__ = ["OnnxEmbedder"]


class OnnxEmbedder(LocalEmbedder):
    """Embeds text in float32 on onnxruntime (extra ``onnx``). Safe to share between threads.

    See `LocalEmbedder` for arguments, the source of the weights, and errors.
    """

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> _OnnxRuntime:
        return _OnnxRuntime(folder, None if folder.tensors is None else load_or_build_graph(folder, cache))


class _OnnxRuntime:
    """An onnxruntime session without threads of its own.

    The graph refers to the weights in ``model.safetensors``, which onnxruntime (1.21 or newer) maps into memory.
    """

    def __init__(self, folder: ModelFolder, graph: bytes | None) -> None:
        ort = _import_onnxruntime()
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        option = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(option, str(folder.root))
        source = str(folder.weights) if graph is None else graph
        self._session = _translate_errors(ort.InferenceSession, source, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name for value in self._session.get_inputs()}
        self.outputs = [value.name for value in self._session.get_outputs()]

    def run(self, output: str, feeds: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
        result: NDArray[Any] = _translate_errors(self._session.run, [output], dict(feeds))[0]
        return result


def _import_onnxruntime() -> Any:
    """Import onnxruntime with its telemetry disabled.

    Official builds from version 1.29 upload events as soon as they are imported, keep a device id in the user's cache
    folder, and hang at the end of a forked process. The environment variable prevents this if it is set before the
    import. If the library was imported earlier, the call stops most of it.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    ort = import_extra("onnxruntime", "onnx")
    ort.disable_telemetry_events()
    return ort


def _translate_errors(call: Any, *args: Any, **kwargs: Any) -> Any:
    """Call onnxruntime and raise its errors as ModelError; they share no base class but Exception."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        raise ModelError(f"onnxruntime failed: {error}") from error
