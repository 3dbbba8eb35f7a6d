"""`OpenVinoEmbedder`: the models of `OnnxEmbedder` on OpenVINO, several times faster with native bfloat16.

Processors of recent servers (Intel's from Sapphire Rapids on, by AMX) multiply in bfloat16, which has the range of
float32 and 8 bits of precision. onnxruntime computes a BERT in float32 on any CPU.

The first call imports the library and loads the model.
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

from mem0_core._system.extras import import_extra
from mem0_core.errors import ConfigError, Mem0Error, ModelError
from mem0_core.providers._bert import ModelFolder, load_or_build_graph, map_files
from mem0_core.providers._local_embedder import LocalEmbedder
from mem0_core.providers.openvino import disable_telemetry

Precision = Literal["auto", "bf16", "f32"]


class OpenVinoEmbedder(LocalEmbedder):
    """Embeds text on OpenVINO's CPU plugin (extra ``openvino``). Safe to share between threads.

    Its embedding space and name are those of `OnnxEmbedder`, so that both can be used with one store. In float32 their
    vectors of all-MiniLM-L6-v2 have a cosine of 0.999999, in bfloat16 of 0.9998 at least (2,000 texts).

    Each concurrent batch uses its own compiled model, which takes 40 MB for mem0-minilm. The first call compiles
    one; more are compiled when several batches run at the same time.

    A process forked after the first call can hang in the library, which lost its threads: there, each call raises
    `ModelError`. Fork before the first call, or start processes by ``spawn``.

    Args:
        precision: ``"bf16"`` or ``"f32"``; ``"auto"`` is bfloat16 if the processor supports it, else float32.
        model, path, cache_dir, threads, max_tokens, download: see `LocalEmbedder`, also for weights and errors.

    Raises:
        ConfigError: `precision` is invalid.
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
        precision: Precision = "auto",
    ) -> None:
        if precision not in get_args(Precision):
            raise ConfigError(f"precision must be one of {', '.join(get_args(Precision))}, not {precision!r}")
        super().__init__(
            model, path=path, cache_dir=cache_dir, threads=threads, max_tokens=max_tokens, download=download
        )
        self._precision = precision

    def _open_runtime(self, folder: ModelFolder, cache: Path, threads: int) -> _OpenVinoRuntime:
        return _OpenVinoRuntime(folder, cache, threads, self._precision)


class _OpenVinoRuntime:
    """A pool of compiled models of one network, each compiled when it is needed.

    One compiled model with a stream per thread would share the weights, but needs more threads of its own. A model with
    one stream computes on the calling thread.
    """

    def __init__(self, folder: ModelFolder, cache: Path, threads: int, precision: Precision) -> None:
        _require_same_process()
        self._core, _ = _load_core()
        with _translate_errors():
            if precision == "auto":
                precision = "bf16" if "BF16" in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"
            if folder.tensors is None:
                self._network = self._core.read_model(str(folder.weights))
            else:
                self._network = self._core.read_model(load_or_build_graph(folder, cache, "inputs"))
                self._mappings = _map_weights(self._network, folder)
        self._options = {
            "INFERENCE_PRECISION_HINT": precision,
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": 1,
            "ENABLE_CPU_PINNING": False,  # it would pin all to the same processor
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # matrices of int8 are converted, states are not rounded
        }
        self.inputs = {value.get_any_name() for value in self._network.inputs}
        self.outputs = [value.get_any_name() for value in self._network.outputs]
        # Last in, first out: sequential calls use the same model, and no unneeded model is compiled.
        self._idle_requests: LifoQueue[Any] = LifoQueue()
        for _ in range(threads - 1):
            self._idle_requests.put(None)
        self._idle_requests.put(self._compile_request())

    def run(self, output: str, feeds: Mapping[str, NDArray[np.int64]]) -> NDArray[Any]:
        _require_same_process()
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
def _load_core() -> tuple[Any, int]:
    """Load the core, and return it with the id of the process that loaded it.

    It is kept until exit: its destructor waits for threads that a forked process lacks.
    """
    disable_telemetry()
    core = import_extra("openvino", "openvino").Core()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(core))
    return core, os.getpid()


def _require_same_process() -> None:
    """Raise a ModelError in a process that was forked after OpenVINO was loaded, where it can wait forever."""
    _, process = _load_core()
    if process != os.getpid():
        raise ModelError(
            "OpenVINO cannot compute in a process that was forked after its first use: fork earlier, "
            "start the process by spawn, or use the embedder 'onnx'"
        )


def _map_weights(network: Any, folder: ModelFolder) -> Mapping[Path, mmap.mmap]:
    """Replace the network's inputs by the tensors of the same names.

    The tensors stay in their files, mapped into memory: OpenVINO reads no weights outside the folder of a graph, not
    even by a link. The mapping is copy-on-write because OpenVINO requires writable arrays.

    Returns:
        The mappings, which must outlive the network.
    """
    assert folder.tensors is not None
    openvino = import_extra("openvino", "openvino")
    kinds = {"F32": (np.float32, "f32"), "F16": (np.float16, "f16"), "BF16": (np.uint16, "bf16"), "I8": (np.int8, "i8")}
    mappings = map_files(folder, mmap.ACCESS_COPY)
    for parameter in network.get_parameters():
        tensor = folder.tensors.get(parameter.output(0).get_any_name())
        if tensor is None:
            continue  # the tokens or their mask
        stored, kind = kinds[tensor.dtype]
        values = np.frombuffer(mappings[tensor.file], stored, math.prod(tensor.shape), tensor.offset)
        constant = openvino.Tensor(values, openvino.Shape(tensor.shape), getattr(openvino.Type, kind))
        parameter.output(0).replace(openvino.op.Constant(constant).output(0))
        network.remove_parameter(parameter)
    network.validate_nodes_and_infer_types()
    return mappings


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise OpenVINO's errors (RuntimeError and others of its bindings) as ModelError."""
    try:
        yield
    except Mem0Error:
        raise
    except Exception as error:
        raise ModelError(f"OpenVINO failed: {error}") from error
