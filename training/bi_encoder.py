"""Train an embedder on mined examples: ``python -m training.bi_encoder --help``.

InfoNCE over in-batch and mined negatives trains the last layers. A pull keeps the vectors of plain passages near those
of the frozen model, and the weights are finally blended with the frozen ones (Wortsman et al., 2022). Checkpoints and
the share of the blend are chosen on the validation pools alone.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional

from training.bert import Bert, Tokenizer, batch_by_length, load_bert, pad_rows
from training.evaluate import Evaluation, evaluate_model
from training.export import write_folder
from training.mine import Example, read_examples
from training.pools import Pool, Unit, read_pools
from training.runtime import add_device_options, prepare_device, reduced_precision, seed_everything

__all__ = ["blend_weights", "compute_loss", "main", "train"]

_WARMUP_STEPS = 20
_FINAL_RATE = 0.05  # of the peak learning rate
_EXCLUDED = -1e4


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, choose by validation, and write the model folder with a record of the run."""
    options = parse_options(arguments)
    device = prepare_device(options)
    rng = seed_everything(options.seed)
    frozen = load_bert(options.base).to(device).eval()
    tokenizer = Tokenizer(options.base)
    examples, valid = read_examples(options.examples), read_pools(options.valid)
    options.out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(frozen, tokenizer, options, device)
    run = train(trainer, examples, valid, rng)
    write_folder(run["model"], options.base, options.out / "model", half=True)
    del run["model"]
    run["options"] = {name: str(value) for name, value in vars(options).items()}
    (options.out / "run.json").write_text(json.dumps(run, indent=1), encoding="utf-8")


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--examples", type=Path, required=True, help="file of training.mine")
    parser.add_argument("--valid", type=Path, required=True, help="valid.jsonl of training.pools")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop early, so that runs are not repeatable"
    )
    parser.add_argument("--questions", type=int, default=16, help="questions per step")
    parser.add_argument("--negatives", type=int, default=3, help="negatives per question; two thirds are hard ones")
    parser.add_argument("--replay", type=int, default=8, help="plain passages per step")
    parser.add_argument("--pull", type=float, default=4.0, help="weight of the pull towards the frozen vectors")
    parser.add_argument("--layers", type=int, default=3, help="number of last layers that are trained")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--scale", type=float, default=20.0, help="inverse temperature of InfoNCE")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--context", type=float, default=0.15, help="share of questions whose units have neighbors")
    parser.add_argument("--query-tokens", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=80, help="of a document")
    parser.add_argument("--check-every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--blends", default="0.3,0.5,0.7,1", help="shares of the trained weights that are tried")
    parser.add_argument("--seed", type=int, default=1)
    add_device_options(parser)
    return parser.parse_args(arguments)


class Trainer:
    """A model in training, its frozen original, and the tokens of texts."""

    def __init__(self, frozen: Bert, tokenizer: Tokenizer, options: argparse.Namespace, device: Any) -> None:
        self.frozen = frozen
        self.tokenizer = tokenizer
        self.options = options
        self.device = device
        self.model = copy.deepcopy(frozen)
        self.model.dropout = options.dropout
        self.model.requires_grad_(False)
        self.first = len(self.model.layers) - min(options.layers, len(self.model.layers))
        for layer in self.model.layers[self.first :]:
            layer.requires_grad_(True)
        self.parameters = [one for one in self.model.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=options.rate, weight_decay=0.01)

    def embed(self, texts: Sequence[str], max_tokens: int, *, with_frozen: bool = False) -> tuple[Any, Any]:
        """Return the vectors of the trained model, and on request of the frozen one, in the order of the texts."""
        rows = self.tokenizer.encode(texts, max_tokens)
        order: list[int] = []
        trained, original = [], []
        for batch in batch_by_length(rows, max_tokens=16 * max_tokens if self.device.type == "cpu" else 1 << 17):
            ids = pad_rows([rows[place] for place in batch], self.device, self.model.config["pad_token_id"])
            with reduced_precision(self.device):
                with torch.no_grad():
                    hidden = self.frozen.begin(ids, layers=self.first)
                    if with_frozen:
                        original.append(self._finish(self.frozen, hidden, ids))
                trained.append(self._finish(self.model, hidden, ids))
            order += batch
        back = torch.tensor(order, device=self.device).argsort()
        return torch.cat(trained)[back], torch.cat(original)[back] if with_frozen else None

    def _finish(self, model: Bert, hidden: Any, ids: Any) -> Any:
        return functional.normalize(model.pool(model.proceed(hidden, ids, self.first), ids).float(), dim=1)

    def step(self, loss: Any, rate: float) -> None:
        """Apply one update at a learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()


def train(trainer: Trainer, examples: Sequence[Example], valid: Sequence[Pool], rng: random.Random) -> dict[str, Any]:
    """Run all steps, and return the chosen model and the record of the run."""
    options = trainer.options
    plain = [unit.text for one in examples if one.kind == "passages" for unit in (*one.gold, *one.hard)]
    batches = iterate_batches(examples, options.questions, rng)
    base = evaluate_model(trainer.frozen, trainer.tokenizer, valid)
    log: list[dict[str, Any]] = [describe(0, 0.0, base, base)]
    print(json.dumps(log[0]), flush=True)
    best, best_state, chosen_step, texts = float("-inf"), None, 0, 0
    started = time.monotonic()
    for step in range(1, options.steps + 1):
        trainer.model.train()
        progress = max(step / options.steps, (time.monotonic() - started) / options.seconds)
        rate = options.rate * learning_rate(step, progress)
        loss, count = compute_loss(trainer, next(batches), plain, rng)
        trainer.step(loss, rate)
        texts += count
        seconds = time.monotonic() - started
        if step % 10 == 0:
            print(step, f"{seconds:.0f} s", f"loss {float(loss.detach()):.3f}", f"{texts / seconds:.1f}/s", flush=True)
        is_last = step == options.steps or seconds > options.seconds
        if step % options.check_every == 0 or is_last:
            checked = evaluate_model(trainer.model, trainer.tokenizer, valid)
            log.append({**describe(step, seconds, checked, base), "loss": float(loss.detach()), "texts": texts})
            print(json.dumps(log[-1]), flush=True)
            torch.save(trainer.model.state_dict(), options.out / f"step-{step}.pt")
            # Blending restores plain passages, so a checkpoint is judged by its gain alone.
            if (score := checked.mean()) > best:
                best, chosen_step = score, step
                best_state = copy.deepcopy(trainer.model.state_dict())
        if is_last:
            break
    assert best_state is not None
    blended = choose_blend(trainer, best_state, valid, base)
    return {**blended, "step": chosen_step, "log": log, "seconds": time.monotonic() - started}


def describe(step: int, seconds: float, found: Evaluation, base: Evaluation) -> dict[str, Any]:
    """Return one line of the log."""
    means = {kind: round(found.mean(kind), 2) for kind in ("turns", "chats", "passages")}
    score = round(found.choice_score(base), 2)
    return {"step": step, "seconds": round(seconds), "mean": round(found.mean(), 2), **means, "score": score}


def learning_rate(step: int, progress: float) -> float:
    """Return the factor of the learning rate: a short warm-up, then a linear fall over the run."""
    return min(1.0, step / _WARMUP_STEPS) * max(_FINAL_RATE, 1 - progress)


def iterate_batches(examples: Sequence[Example], size: int, rng: random.Random) -> Iterator[list[Example]]:
    """Yield batches forever; each pass over the examples is shuffled."""
    order: list[Example] = []
    for _ in itertools.count():
        if len(order) < size:
            order += rng.sample(list(examples), len(examples))
        batch, order = order[:size], order[size:]
        yield batch


def compute_loss(
    trainer: Trainer, batch: Sequence[Example], plain: Sequence[str], rng: random.Random
) -> tuple[Any, int]:
    """Return the loss of one step and the number of texts in it."""
    options = trainer.options
    documents: list[str] = []
    owners: list[int] = []
    for place, example in enumerate(batch):
        units = choose_units(example, options.negatives, rng)
        in_context = rng.random() < options.context
        documents += [with_neighbors(unit) if in_context else unit.text for unit in units]
        owners += [place] * len(units)
    queries, _ = trainer.embed([example.query for example in batch], options.query_tokens)
    vectors, _ = trainer.embed(documents, options.tokens)
    logits = options.scale * queries @ vectors.T
    logits = logits.masked_fill(exclude_shared_pools(batch, owners).to(trainer.device), _EXCLUDED)
    targets = torch.tensor([owners.index(place) for place in range(len(batch))], device=trainer.device)
    loss = functional.cross_entropy(logits, targets)
    if options.replay and plain:
        trained, original = trainer.embed(
            rng.sample(plain, min(options.replay, len(plain))), options.tokens, with_frozen=True
        )
        loss = loss + options.pull * (1 - (trained * original).sum(1)).mean()
    return loss, len(batch) + len(documents) + options.replay


def choose_units(example: Example, negatives: int, rng: random.Random) -> list[Unit]:
    """Return one gold and its negatives: two thirds hard ones where there are as many."""
    hard_count = min(len(example.hard), -(-2 * negatives // 3))
    hard = rng.sample(example.hard, hard_count)
    easy = rng.sample(example.easy, min(len(example.easy), negatives - hard_count))
    return [rng.choice(example.gold), *hard, *easy]


def with_neighbors(unit: Unit) -> str:
    """Return a unit with the units before and after it."""
    return "\n".join(part for part in (unit.previous, unit.text, unit.following) if part)


def exclude_shared_pools(batch: Sequence[Example], owners: Sequence[int]) -> Any:
    """Return True for units of another question of the same pool, which may answer this one too."""
    return torch.tensor(
        [[own != row and batch[own].pool == one.pool for own in owners] for row, one in enumerate(batch)]
    )


def choose_blend(trainer: Trainer, state: Any, valid: Sequence[Pool], base: Evaluation) -> dict[str, Any]:
    """Return the blend with the best validation score, and the scores of all."""
    tried: dict[str, Any] = {}
    best: tuple[float, float, Any] | None = None
    for share in map(float, trainer.options.blends.split(",")):
        model = blend_weights(trainer.frozen, state, share)
        found = evaluate_model(model, trainer.tokenizer, valid)
        tried[str(share)] = describe(0, 0.0, found, base)
        print("blend", share, json.dumps(tried[str(share)]), flush=True)
        if best is None or found.choice_score(base) > best[0]:
            best = found.choice_score(base), share, model
    assert best is not None
    return {"model": best[2], "share": best[1], "blends": tried}


def blend_weights(frozen: Bert, state: Any, share: float) -> Bert:
    """Return a model whose weights are `share` of a trained state and the rest of the frozen model."""
    model = copy.deepcopy(frozen)
    model.load_state_dict({name: (1 - share) * own + share * state[name] for name, own in frozen.state_dict().items()})
    return model


if __name__ == "__main__":
    main()
