"""`OnnxEmbedder`: all-MiniLM-L6-v2, and any BERT sentence-transformers folder, on onnxruntime and without torch.

The library is imported, and the model loaded, on the first use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ModelError
from mem0_core.providers.bert import ModelFolder, load_or_build_graph
from mem0_core.providers.local_embedder import LocalEmbedder, import_extra

__all__ = ["OnnxEmbedder"]


class OnnxEmbedder(LocalEmbedder):
    """Embeds text in float32 on onnxruntime (extra ``onnx``). Safe to share between threads.

    `LocalEmbedder` tells its arguments, where the weights come from, and its errors.
    """

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> _OnnxRuntime:
        return _OnnxRuntime(folder, None if folder.tensors is None else load_or_build_graph(folder, cache))


class _OnnxRuntime:
    """onnxruntime's session, with no threads of its own.

    The weights of a graph lie where it says, in ``model.safetensors``, which onnxruntime (1.21 or newer) maps into
    memory.
    """

    def __init__(self, folder: ModelFolder, graph: bytes | None) -> None:
        ort = _import_onnxruntime()
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        place = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(place, str(folder.weights.parent))
        source = str(folder.weights) if graph is None else graph
        self._session = _translate_errors(ort.InferenceSession, source, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name for value in self._session.get_inputs()}
        self.outputs = [value.name for value in self._session.get_outputs()]

    def run(self, output: str, feeds: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
        result: NDArray[Any] = _translate_errors(self._session.run, [output], dict(feeds))[0]
        return result


def _import_onnxruntime() -> Any:
    """The library, with its telemetry off.

    From version 1.29 its official builds upload events from the moment they are imported, keep an id of the device
    in the user's cache folder, and hang at the end of a forked process. The environment variable prevents all of it,
    if it is set before the import; where someone else imported the library first, the call stops most of it.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    ort = import_extra("onnxruntime", "onnx")
    ort.disable_telemetry_events()
    return ort


def _translate_errors(call: Any, *args: Any, **kwargs: Any) -> Any:
    """Call onnxruntime, whose errors share no base but Exception."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        raise ModelError(f"onnxruntime failed: {error}") from error
