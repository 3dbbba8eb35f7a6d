"""`OpenVinoEmbedder`: the folders of `OnnxEmbedder` on OpenVINO, several times as fast where bfloat16 is native.

Processors of recent servers (Intel's from Sapphire Rapids on, by AMX) multiply in bfloat16, which has the range of
float32 and 8 bits of precision. onnxruntime computes a BERT in float32 on any CPU.

The library is imported, and the model loaded, on the first use.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from queue import LifoQueue
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, Mem0Error, ModelError
from mem0_core.providers.bert import ModelFolder, load_or_build_graph
from mem0_core.providers.local_embedder import LocalEmbedder, import_extra
from mem0_core.providers.model_folder import MINILM
from mem0_core.providers.openvino import disable_telemetry

__all__ = ["OpenVinoEmbedder", "Precision"]

Precision = Literal["auto", "bf16", "f32"]


class OpenVinoEmbedder(LocalEmbedder):
    """Embeds text on OpenVINO's CPU plugin (extras ``onnx`` and ``openvino``). Safe to share between threads.

    Its vector space is that of `OnnxEmbedder` and has the same name, so that the two may take turns over one store: in
    float32 their vectors of all-MiniLM-L6-v2 have a cosine of 0.999999, in bfloat16 of 0.9998 at least (2,000 texts).

    Each thread that embeds has a compiled model to itself, which takes 40 MB for all-MiniLM-L6-v2; the first is there
    from the first call on, the others when so many batches run at once.

    Args:
        precision: ``"bf16"`` or ``"f32"``; ``"auto"`` is bfloat16 where the processor has it, else float32.
        model, path, cache_dir, threads, max_tokens: see `LocalEmbedder`, which tells where the weights come from, and
            the errors.

    Raises:
        ConfigError: `precision` is none of them.
    """

    def __init__(
        self,
        model: str = MINILM,
        *,
        path: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        max_tokens: int = 256,
        precision: Precision = "auto",
    ) -> None:
        if precision not in get_args(Precision):
            raise ConfigError(f"precision must be one of {', '.join(get_args(Precision))}, not {precision!r}")
        super().__init__(model, path=path, cache_dir=cache_dir, threads=threads, max_tokens=max_tokens)
        self._precision = precision

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> _OpenVinoRuntime:
        return _OpenVinoRuntime(folder, cache, threads, self._precision)


class _OpenVinoRuntime:
    """As many compiled models of one network as run at once, each made when it is needed.

    One compiled model with a stream for each thread would share the weights. But it computes on threads of its own:
    they are missing in a forked process, which then waits for them for ever. A model with one stream computes on the
    thread that calls it.
    """

    def __init__(self, folder: ModelFolder, cache: Path, threads: int, precision: Precision) -> None:
        self._core = _load_core()
        with _translate_errors():
            if precision == "auto":
                precision = "bf16" if "BF16" in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"
            if folder.tensors is None:
                self._network = self._core.read_model(str(folder.weights))
            else:
                self._network = self._core.read_model(load_or_build_graph(folder, cache, "inputs"))
                self._mapping = _map_weights(self._network, folder)
        self._options = {
            "INFERENCE_PRECISION_HINT": precision,
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": 1,
            "ENABLE_CPU_PINNING": False,  # all of them to the same processor
        }
        self.inputs = {value.get_any_name() for value in self._network.inputs}
        self.outputs = [value.get_any_name() for value in self._network.outputs]
        # Last in, first out: calls one after another have the same model, and what was not needed is not made.
        self._idle_requests: LifoQueue[Any] = LifoQueue()
        for _ in range(threads - 1):
            self._idle_requests.put(None)
        self._idle_requests.put(self._compile_request())

    def run(self, output: str, feeds: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
        request = self._idle_requests.get()
        try:
            request = request or self._compile_request()
            with _translate_errors():
                request.infer(dict(feeds), share_inputs=True, share_outputs=True)
                result: NDArray[Any] = request.get_tensor(output).data.copy()
        finally:
            self._idle_requests.put(request)
        return result

    def _compile_request(self) -> Any:
        with _translate_errors():
            return self._core.compile_model(self._network, "CPU", self._options).create_infer_request()


@cache
def _load_core() -> Any:
    """The library's core, kept until the process ends: it waits, when let go, for threads that a fork leaves behind."""
    disable_telemetry()
    core = import_extra("openvino", "openvino").Core()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(core))
    return core


def _map_weights(network: Any, folder: ModelFolder) -> mmap.mmap:
    """Put the tensors of `folder` in place of the network's inputs of their names.

    They stay in the file, mapped into memory: OpenVINO reads no weights from outside the folder of a graph, not even
    by a link. The mapping is copy-on-write because it takes no array that cannot be written to.

    Returns:
        The mapping, which has to be kept as long as the network is.
    """
    assert folder.tensors is not None
    openvino = import_extra("openvino", "openvino")
    kinds = {"F32": (np.float32, "f32"), "F16": (np.float16, "f16"), "BF16": (np.uint16, "bf16")}
    with folder.weights.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    for parameter in network.get_parameters():
        tensor = folder.tensors.get(parameter.output(0).get_any_name())
        if tensor is None:
            continue  # the tokens, or their mask
        stored, kind = kinds[tensor.dtype]
        values = np.frombuffer(mapping, stored, math.prod(tensor.shape), tensor.offset)
        constant = openvino.Tensor(values, openvino.Shape(tensor.shape), getattr(openvino.Type, kind))
        parameter.output(0).replace(openvino.op.Constant(constant).output(0))
        network.remove_parameter(parameter)
    network.validate_nodes_and_infer_types()
    return mapping


@contextmanager
def _translate_errors() -> Iterator[None]:
    """OpenVINO's errors are RuntimeErrors, and what else its bindings raise."""
    try:
        yield
    except Mem0Error:
        raise
    except Exception as error:
        raise ModelError(f"OpenVINO failed: {error}") from error
