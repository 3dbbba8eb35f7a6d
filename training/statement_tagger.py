"""Train an encoder as a tagger of statements alone: ``python -m training.statement_tagger --help``."""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from training.bert import load_bert
from training.export import write_changes
from training.runtime import add_device_options, prepare_device, seed_everything
from training.statement_heads import StatementTask

__all__ = ["main"]

_HEAD_RATE = 20  # times the rate of the encoder


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the tagger, and write its weights with a record of the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--statements", type=Path, required=True, help="file of training.statement_heads")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=32, help="messages per step")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--layers", type=int, default=6, help="number of last layers that are trained")
    parser.add_argument("--check-every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    add_device_options(parser)
    options = parser.parse_args(arguments)
    device = prepare_device(options)
    seed_everything(options.seed)
    frozen = load_bert(options.base).to(device)
    model = copy.deepcopy(frozen)
    model.dropout = 0.1
    body = model.train_last(options.layers)
    task = StatementTask(options.statements, frozen.config["hidden_size"], device, options.seed)
    rates = [options.rate, _HEAD_RATE * options.rate]
    parts = [body, list(task.heads.parameters())]
    groups = [{"params": part, "lr": rate} for part, rate in zip(parts, rates, strict=True)]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=options.steps, pct_start=0.15)
    log, started = [], time.monotonic()
    for step in range(1, options.steps + 1):
        model.train()
        loss = task.compute_loss(model, options.batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(body, 1.0)
        optimizer.step()
        schedule.step()
        if step % options.check_every == 0 or step == options.steps:
            seconds = round(time.monotonic() - started)
            log.append({"step": step, "seconds": seconds, **task.evaluate(model)})
            print(json.dumps(log[-1]), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_changes(model.state_dict(), frozen.state_dict(), options.out / "changes.npz")
    task.save(options.out / "heads.npz")
    named = {name: str(value) for name, value in vars(options).items()}
    (options.out / "run.json").write_text(json.dumps({"options": named, "log": log}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
