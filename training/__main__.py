"""Run all programs in order: ``python -m training --help``. A step whose result exists is skipped."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from training import bi_encoder, card, cross_encoder, evaluate, pack, pools, statement_heads, statement_tagger
from training.bert import load_bert
from training.runtime import add_device_options

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare the data, train all models, evaluate the embedder and write its card, in one folder."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sources")
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--scale", default="1", help="multiplies the questions of each source")
    parser.add_argument("--steps", default="1000", help="of the embedder")
    parser.add_argument("--questions", default="128", help="questions per step of the embedder")
    parser.add_argument("--reranker-steps", default="1000", help="of teacher and student; 0 trains no reranker")
    parser.add_argument("--layers", default="0,2,5", help="layers of the teacher that the reranker begins with")
    parser.add_argument("--tagger-steps", default="3000", help="of the tagger of statements; 0 trains none")
    parser.add_argument("--seed", default="1")
    add_device_options(parser)
    options = parser.parse_args(arguments)
    out, base = options.out, str(options.base)
    seed = ("--seed", options.seed)
    device = ("--device", options.device, "--threads", str(options.threads))
    if not (out / "valid.jsonl").exists():
        pools.main(["--data", str(options.data), "--out", str(out), "--scale", options.scale, *seed])
    for split in ("train", "valid"):
        if not (out / f"{split}.npz").exists():
            files = ("--pools", str(out / f"{split}.jsonl"), "--out", str(out / f"{split}.npz"))
            pack.main([*files, "--base", base])
    data = ("--base", base, "--train", str(out / "train.npz"), "--valid", str(out / "valid.npz"))
    embedder = out / "embedder"
    if not (embedder / "run.json").exists():
        sizes = ("--steps", options.steps, "--questions", options.questions)
        bi_encoder.main([*data, "--out", str(embedder), *sizes, *seed, *device])
    models = ("--models", base, str(embedder / "model"))
    figures = ("--out", str(out / "figures.json"))
    evaluate.main(["--pools", str(out / "valid.jsonl"), *models, *figures, *device])
    card.main(["--run", str(embedder), "--figures", str(out / "figures.json")])
    if options.reranker_steps != "0":
        train_reranker(options, data, (*seed, *device))
    if options.tagger_steps != "0":
        train_tagger(options, (*seed, *device))


def train_reranker(options: argparse.Namespace, data: Sequence[str], common: Sequence[str]) -> None:
    """Train a teacher with all layers of the base, and distill a student for the rankings of the embedder."""
    teacher, student = options.out / "teacher", options.out / "reranker"
    steps = ("--steps", options.reranker_steps)
    if not (teacher / "run.json").exists():
        every = ",".join(map(str, range(len(load_bert(options.base).layers))))
        cross_encoder.main([*data, "--out", str(teacher), "--layers", every, *steps, *common])
    if not (student / "run.json").exists():
        first_stage = ("--first-stage", str(options.out / "embedder" / "changes.npz"))
        distilled = ("--teacher", str(teacher / "changes.npz"), "--layers", options.layers)
        cross_encoder.main([*data, "--out", str(student), *first_stage, *distilled, *steps, *common])


def train_tagger(options: argparse.Namespace, common: Sequence[str]) -> None:
    """Train the tagger of statements."""
    messages, tagger = options.out / "statements.npz", options.out / "tagger"
    base = ("--base", str(options.base))
    if not messages.exists():
        statement_heads.main([*base, "--out", str(messages), *common[:2]])
    if not (tagger / "run.json").exists():
        steps = ("--steps", options.tagger_steps)
        statement_tagger.main([*base, "--statements", str(messages), "--out", str(tagger), *steps, *common])


if __name__ == "__main__":
    main()
