"""Export a model to ONNX for runtimes that read no safetensors: ``python -m training.onnx_export --help``.

mem0-core runs an embedder's folder as it is. A cross-encoder has a head, which its graph does not know.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.bert import load_bert
from training.cross_encoder import CrossEncoder, load_cross_encoder

__all__ = ["export", "main"]

_OPSET = 17
_EXAMPLE = ((2, 5, 3), (2, 3, 0))  # two rows of ids, the second one padded


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one ONNX file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the embedder or cross-encoder")
    parser.add_argument("--cross-encoder", action="store_true")
    parser.add_argument("--type", choices=("float32", "int8"), default="int8", help="of the weights")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    export(options.model, options.out, cross_encoder=options.cross_encoder, int8=options.type == "int8")


def export(folder: Path, out: Path, *, cross_encoder: bool, int8: bool) -> None:
    """Write the network of a folder; with `int8` the weights of dense layers are quantized per channel."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    network: Any = _PairNetwork(load_cross_encoder(folder, 512)) if cross_encoder else _TextNetwork(load_bert(folder))
    inputs = ["input_ids", "token_type_ids"] if cross_encoder else ["input_ids"]
    output = "logits" if cross_encoder else "sentence_embedding"
    with tempfile.TemporaryDirectory() as work:
        plain = Path(work) / "model.onnx"
        _write_graph(network.eval(), plain, inputs, output)
        out.parent.mkdir(parents=True, exist_ok=True)
        if int8:
            # Seven bits: processors without VNNI add pairs of products in 16 bits, which eight bits would overflow.
            quantize_dynamic(plain, out, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
        else:
            out.write_bytes(plain.read_bytes())


def _write_graph(network: Any, file: Path, inputs: Sequence[str], output: str) -> None:
    ids = torch.tensor(_EXAMPLE)
    axes = {name: {0: "batch", 1: "tokens"} for name in inputs} | {output: {0: "batch"}}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter without further dependencies announces its end
        torch.onnx.export(
            network,
            tuple([ids, torch.zeros_like(ids)][: len(inputs)]),
            str(file),
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )


class _TextNetwork(nn.Module):
    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, ids: Any) -> Any:
        return self.bert.embed(ids)


class _PairNetwork(nn.Module):
    def __init__(self, model: CrossEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Any, types: Any) -> Any:
        return self.model.head(self.model.bert.pool(self.model.bert(ids, types), ids))[:, 0]


if __name__ == "__main__":
    main()
