"""Run all programs in order: ``python -m training --help``. A step whose result exists is skipped."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from training import bi_encoder, card, cross_encoder, evaluate, mine, onnx_export, pools
from training.bert import load_bert
from training.runtime import add_device_options

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare, mine, train both models, evaluate, export and write the card, in one folder."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sources")
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--scale", default="1", help="multiplies the questions of each source")
    parser.add_argument("--steps", default="700", help="of the embedder")
    parser.add_argument("--questions", default="16", help="questions per step of the embedder")
    parser.add_argument("--reranker-steps", default="2000", help="of teacher and student; 0 trains no reranker")
    parser.add_argument("--layers", default="0,2,5", help="layers of the base that the reranker begins with")
    parser.add_argument("--seed", default="1")
    add_device_options(parser)
    options = parser.parse_args(arguments)
    data, base, out = str(options.data), str(options.base), options.out
    device = ("--device", options.device, "--threads", str(options.threads))
    train, valid, examples = (str(out / name) for name in ("train.jsonl", "valid.jsonl", "examples.jsonl"))
    if not Path(valid).exists():
        pools.main(["--data", data, "--out", str(out), "--scale", options.scale, "--seed", options.seed])
    if not Path(examples).exists():
        mine.main(["--pools", train, "--out", examples, "--model", base, "--seed", options.seed, *device])
    embedder = out / "embedder"
    if not (embedder / "run.json").exists():
        sizes = ("--steps", options.steps, "--questions", options.questions, "--seed", options.seed)
        inputs = ("--base", base, "--examples", examples, "--valid", valid)
        bi_encoder.main([*inputs, "--out", str(embedder), *sizes, *device])
    models = ("--models", base, str(embedder / "model"))
    figures = str(out / "figures.json")
    evaluate.main(["--pools", valid, *models, "--out", figures, *device])
    card.main(["--run", str(embedder), "--examples", examples, "--figures", figures])
    if options.reranker_steps != "0":
        train_reranker(options, examples, valid, device)


def train_reranker(options: argparse.Namespace, examples: str, valid: str, device: Sequence[str]) -> None:
    """Train a teacher with all layers of the base, distill a student, and export it as int8."""
    first_stage = ("--first-stage", str(options.out / "embedder" / "model"))
    inputs = ("--base", str(options.base), "--examples", examples, "--valid", valid, *first_stage)
    sizes = ("--steps", options.reranker_steps, "--seed", options.seed)
    teacher, student = options.out / "teacher", options.out / "reranker"
    if not (teacher / "run.json").exists():
        every_layer = ",".join(str(place) for place in range(count_layers(options.base)))
        cross_encoder.main([*inputs, "--out", str(teacher), "--layers", every_layer, *sizes, *device])
    if not (student / "run.json").exists():
        distilled = ("--teacher", str(teacher / "model"), "--layers", options.layers)
        cross_encoder.main([*inputs, "--out", str(student), *distilled, *sizes, *device])
    onnx_export.main(["--model", str(student / "model"), "--cross-encoder", "--out", str(student / "model.onnx")])


def count_layers(folder: Path) -> int:
    """Return the number of layers of a model folder."""
    return len(load_bert(folder).layers)


if __name__ == "__main__":
    main()
