"""`OnnxEmbedder` and `OnnxCrossEncoder`: BERT sentence-transformers folders on onnxruntime, without torch.

The first call imports the library and loads the model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core._system.extras import import_extra
from mem0_core.errors import ModelError
from mem0_core.providers import _onnx_format as onnx
from mem0_core.providers._bert import IR_VERSION, OPSET, Integers, ModelFolder, load_or_build_graph
from mem0_core.providers._local_embedder import LocalEmbedder


class OnnxEmbedder(LocalEmbedder):
    """Embeds text in float32 on onnxruntime (extra ``onnx``). Safe to share between threads.

    See `LocalEmbedder` for arguments, the source of the weights, and errors.
    """

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> _OnnxRuntime:
        return _OnnxRuntime(folder, None if folder.tensors is None else load_or_build_graph(folder, cache))


class OnnxCrossEncoder:
    """The network of a cross-encoder on onnxruntime. Several threads may run it at the same time.

    Matrices of int8 are multiplied as such, which takes half of the time of float32; see `load_or_build_graph`.
    """

    def __init__(self, folder: ModelFolder, cache: Path) -> None:
        self._runtime = _OnnxRuntime(folder, load_or_build_graph(folder, cache, integers=_choose_integers()))

    def average(self, ids: NDArray[np.int64], mask: NDArray[np.int64], kinds: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the mean of the last states of each row's tokens, (batch, dims); `kinds` numbers the segments."""
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        return self._runtime.run("average", feeds)


@cache
def _choose_integers() -> Integers:
    """Choose the type of matrices whose products are exact: instructions for int8 before VNNI cut sums to 16 bits."""
    size = 64
    names = ["left", "right"]
    types = (onnx.UINT8, [1, size]), (onnx.INT8, [size, 1])
    inputs = [onnx.value_info(name, *one) for name, one in zip(names, types, strict=True)]
    nodes = [onnx.node("MatMulInteger", names, ["product"])]
    outputs = [onnx.value_info("product", onnx.INT32, [1, 1])]
    graph = onnx.model(nodes, [], inputs, outputs, opset=OPSET, ir_version=IR_VERSION)
    session = _import_onnxruntime().InferenceSession(graph, providers=["CPUExecutionProvider"])
    largest = np.full((1, size), 255, np.uint8), np.full((size, 1), 127, np.int8)
    (product,) = session.run(None, dict(zip(names, largest, strict=True)))
    return "signed" if product.item() == 255 * 127 * size else "unsigned"


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
