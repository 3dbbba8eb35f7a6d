"""Train an embedder on a pack: ``python -m training.bi_encoder --help``.

InfoNCE over in-batch and mined negatives. A pull keeps the vectors of plain passages near those of the frozen model,
and the weights are finally blended with the frozen ones (Wortsman et al., 2022). Checkpoints and the share of the blend
are chosen on the validation pools alone.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from training.batches import (
    Negatives,
    Questions,
    TextBatches,
    compute_by_length,
    embed_all,
    evaluate_vectors,
    mine_negatives,
)
from training.bert import Bert, load_bert
from training.evaluate import Evaluation
from training.export import write_changes, write_folder
from training.pack import Pack
from training.runtime import (
    add_data_options,
    add_device_options,
    learning_rate,
    prepare_device,
    seed_everything,
)
from training.sources import SOURCES

__all__ = ["Trainer", "blend_weights", "main"]

_WARMUP_STEPS = 60
_EXCLUDED = -1e4
_EQUAL_SCORES = 0.5  # points within which the smaller share of a blend is chosen, as it forgets less
_QUERY_TOKENS, _UNIT_TOKENS = 66, 130  # of a validation text, with its markers


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, choose by validation, and write the changes of the weights with a record of the run."""
    options = parse_options(arguments)
    device = prepare_device(options)
    seed_everything(options.seed)
    frozen = load_bert(options.base).to(device).eval()
    options.out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(frozen, options, device)
    run = trainer.train()
    chosen = blend_weights(frozen, run.pop("state"), run["share"])
    write_changes(chosen.state_dict(), frozen.state_dict(), options.out / "changes.npz")
    write_folder(chosen, options.base, options.out / "model")
    run["options"] = {name: str(value) for name, value in vars(options).items()}
    (options.out / "run.json").write_text(json.dumps(run, indent=1), encoding="utf-8")


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--questions", type=int, default=96, help="questions per step")
    parser.add_argument("--hard", type=int, default=5, help="hard negatives per question")
    parser.add_argument("--easy", type=int, default=2, help="other negatives of the same pool per question")
    parser.add_argument("--replay", type=int, default=48, help="plain passages per step")
    parser.add_argument("--pull", type=float, default=4.0, help="weight of the pull towards the frozen vectors")
    parser.add_argument("--layers", type=int, default=6, help="number of last layers that are trained")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--scale", type=float, default=20.0, help="inverse temperature of InfoNCE")
    parser.add_argument("--tokens", type=int, default=82, help="of a text in training")
    parser.add_argument("--mine-every", type=int, default=500, help="steps between lookups of negatives")
    parser.add_argument("--check-every", type=int, default=250, help="steps between checkpoints")
    parser.add_argument("--blends", default="0.4,0.6,0.8,1", help="shares of the trained weights that are tried")
    add_data_options(parser)
    add_device_options(parser)
    return parser.parse_args(arguments)


class Trainer:
    """A model in training, its frozen original, and the data of both splits."""

    def __init__(self, frozen: Bert, options: argparse.Namespace, device: Any) -> None:
        self.frozen, self.options, self.device = frozen, options, device
        self.rng = np.random.default_rng(options.seed)
        self.pack, self.valid = Pack.load(options.train), Pack.load(options.valid)
        self.texts, self.valid_texts = TextBatches(self.pack), TextBatches(self.valid)
        self.groups = [_group_of(name) for name in self.pack.pools]
        self.model = copy.deepcopy(frozen)
        self.model.dropout = options.dropout
        self.parameters = self.model.train_last(options.layers)
        self.optimizer = torch.optim.AdamW(self.parameters, lr=options.rate, weight_decay=0.01)

    def train(self) -> dict[str, Any]:
        """Run all steps, and return the chosen state, the share of its blend and the record of the run."""
        options = self.options
        questions = Questions(self.pack, self.rng)
        plain = self._find_plain_texts()
        self.plain_vectors = embed_all(self.frozen, self.texts, plain, options.tokens, self.device).clone()
        base = self.evaluate(self.frozen)
        log = [describe(0, 0.0, base, base)]
        print(json.dumps(log[0]), flush=True)
        best_mean, chosen, state = float("-inf"), 0, None
        started = time.monotonic()
        negatives = None
        for step in range(1, options.steps + 1):
            if (step - 1) % options.mine_every == 0:
                negatives = self._mine()
            assert negatives is not None
            seconds = time.monotonic() - started
            progress = max(step / options.steps, seconds / options.seconds)
            loss = self._step(
                questions.draw(options.questions), negatives, plain, learning_rate(step, _WARMUP_STEPS, progress)
            )
            is_last = step == options.steps or seconds > options.seconds
            if step % options.check_every == 0 or is_last:
                checked = self.evaluate(self.model)
                entry = {**describe(step, seconds, checked, base), "loss": round(float(loss), 4)}
                log.append(entry)
                print(json.dumps(entry), flush=True)
                if checked.mean() > best_mean:
                    best_mean, chosen = checked.mean(), step
                    state = copy.deepcopy(self.model.state_dict())
            if is_last:
                break
        blends = self._try_blends(state, base)
        best = max(one["score"] for one in blends.values())
        share = min(one for one, found in blends.items() if found["score"] >= best - _EQUAL_SCORES)
        run = {"state": state, "step": chosen, "share": share, "blends": blends, "log": log}
        run["seconds"] = round(time.monotonic() - started)
        run["questions"] = Counter(self.pack.source_of(place) for place in range(len(self.pack.asked)))
        return run

    def evaluate(self, model: Bert) -> Evaluation:
        """Score a model on the validation pools."""
        units = embed_all(model, self.valid_texts, self.valid.units[:, 0], _UNIT_TOKENS, self.device)
        queries = embed_all(model, self.valid_texts, self.valid.asked[:, 2], _QUERY_TOKENS, self.device)
        return evaluate_vectors(self.valid, units, queries)

    def _mine(self) -> Negatives:
        units = embed_all(self.model, self.texts, self.pack.units[:, 0], self.options.tokens, self.device)
        queries = embed_all(self.model, self.texts, self.pack.asked[:, 2], _QUERY_TOKENS, self.device)
        return Negatives(self.pack, mine_negatives(self.pack, units, queries, self.options.margin), self.rng)

    def _find_plain_texts(self) -> Any:
        kinds = [SOURCES[self.pack.sources[source]].kind for source in self.pack.pool_source]
        bounds = [self.pack.pool_units[place] for place, kind in enumerate(kinds) if kind == "passages"]
        asked = [place for place, pool in enumerate(self.pack.asked[:, 0]) if kinds[pool] == "passages"]
        texts = [self.pack.units[first:end, 0] for first, end in bounds]
        return np.concatenate([*texts, np.repeat(self.pack.asked[asked, 2], 2)])

    def _step(self, batch: list[int], negatives: Negatives, plain: Any, rate: float) -> Any:
        options, pack = self.options, self.pack
        units: list[int] = []
        owners: list[int] = []
        for place, question in enumerate(batch):
            gold = int(self.rng.choice(pack.gold[question]))
            found = [gold, *negatives.draw(question, options.hard, options.easy)]
            units += found
            owners += [place] * len(found)
        replay = self.rng.choice(len(plain), options.replay)
        self.model.train()
        vectors = self._embed(np.concatenate([pack.asked[batch, 2], pack.units[units, 0], plain[replay]]))
        queries, documents, replayed = vectors.split([len(batch), len(units), len(replay)])
        logits = options.scale * queries @ documents.T
        logits = logits.masked_fill(self._exclude(batch, owners), _EXCLUDED)
        targets = torch.tensor([owners.index(place) for place in range(len(batch))], device=self.device)
        loss = functional.cross_entropy(logits, targets)
        if options.replay:
            original = self.plain_vectors[torch.from_numpy(replay).to(self.device)]
            loss = loss + options.pull * (1 - (replayed * original).sum(1)).mean()
        for group in self.optimizer.param_groups:
            group["lr"] = options.rate * rate
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        return loss.detach()

    def _embed(self, texts: Any) -> Any:
        rows = self.texts.pad(texts, min(self.options.tokens, self.model.config["max_position_embeddings"]))
        return compute_by_length(rows, self.device, lambda _, ids: self.model.embed(ids))

    def _exclude(self, batch: list[int], owners: list[int]) -> Any:
        """Return True for units that may answer a question of another row too: those of the same people."""
        names, codes = dict[str, int](), list[int]()
        for question in batch:
            codes.append(names.setdefault(self.groups[self.pack.asked[question, 0]], len(names)))
        rows, owned = np.array(codes), np.array(owners)
        same = (rows[:, None] == rows[owned]) & (np.arange(len(batch))[:, None] != owned)
        return torch.from_numpy(same).to(self.device)

    def _try_blends(self, state: Any, base: Evaluation) -> dict[float, dict[str, Any]]:
        tried = {}
        for share in map(float, self.options.blends.split(",")):
            model = blend_weights(self.frozen, state, share)
            tried[share] = describe(0, 0.0, self.evaluate(model), base)
            print("blend", share, json.dumps(tried[share]), flush=True)
        return tried


def _group_of(pool: str) -> str:
    """Return what pools of the same people have in common; all pools of statements share their messages."""
    source, _, name = pool.partition("/")
    return source if source == "statements" else name.partition("@")[0]


def describe(step: int, seconds: float, found: Evaluation, base: Evaluation) -> dict[str, Any]:
    """Return one line of the log."""
    kinds = sorted({SOURCES[source].kind for source in found.sources})
    means = {kind: [round(one, 1) for one in found.measures(kind)] for kind in kinds}
    score = round(found.choice_score(base), 2)
    return {"step": step, "seconds": round(seconds), "mean": round(found.mean(), 2), **means, "score": score}


def blend_weights(frozen: Bert, state: Any, share: float) -> Bert:
    """Return a model whose weights are `share` of a trained state and the rest of the frozen model."""
    model = copy.deepcopy(frozen)
    model.load_state_dict({name: (1 - share) * own + share * state[name] for name, own in frozen.state_dict().items()})
    return model


if __name__ == "__main__":
    main()
