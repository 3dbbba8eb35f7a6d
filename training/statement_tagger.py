"""Train a tagger of statements: ``python -m training.statement_tagger --help``.

The sentence encoder gets three heads on the first piece of each word: tag, relation family and effect. It marks in a
message the values which it states of its speaker, also in wordings that no pattern of `mem0_core.language` knows.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mem0_core.language._tokens import TokenizedText, tokenize
from training.bert import Tokenizer, load_bert, pad_rows
from training.runtime import add_device_options, prepare_device, seed_everything
from training.statement_data import EFFECTS, FOLDER, Message, Variation, format_message, read_messages, split_messages

__all__ = ["Tagger", "Trainer", "main"]

_MAX_PIECES, _MAX_WORDS = 200, 160
_IGNORED = -100
_EFFECTS = tuple(EFFECTS.values())
_OUTSIDE, _FIRST, _LATER, _TRIGGER = range(4)  # tags: no value, its first word, a later one, words without a value
_BATCH = 8
_HEAD_RATE = 20  # times the rate of the encoder
_LENGTH_NOISE = 12  # pieces by which messages of a batch may differ in length, beside chance

Encoded = tuple[list[int], list[int], list[tuple[int, int, int]]]


class Tagger(nn.Module):
    """An encoder with heads for tags, families and effects on the first piece of each word."""

    def __init__(self, folder: Path, families: int, dropout: float = 0.15) -> None:
        super().__init__()
        self.bert = load_bert(folder)
        size = self.bert.config["hidden_size"]
        self.dropout = nn.Dropout(dropout)
        self.tags, self.families, self.effects = (nn.Linear(size, count) for count in (4, families, len(_EFFECTS)))

    def forward(self, ids: Any, firsts: Any) -> tuple[Any, ...]:
        """Return the scores of tags, families and effects, each (messages, words, classes)."""
        hidden = self.bert(ids)
        index = firsts.clamp(min=0)[:, :, None].expand(-1, -1, hidden.shape[2])
        words = self.dropout(hidden.gather(1, index))
        return self.tags(words), self.families(words), self.effects(words)


class Encoder:
    """Turns messages into pieces, the place of each word's first piece, and labels."""

    def __init__(self, folder: Path, families: Sequence[str]) -> None:
        self._tokenizer, self._families = Tokenizer(folder, 512), list(families)
        self._known: dict[str, list[int]] = {}

    def encode(self, message: Message) -> Encoded | None:
        """Return a message in numbers; None if a mark cannot be found among its words."""
        text = tokenize(message.text, "english")
        labels = self._find_labels(text, message)
        if labels is None:
            return None
        first, last = self._cut("a")[0], self._cut("a")[-1]
        ids, firsts = [first], list[int]()
        for word, low in zip(text.words, text.lows, strict=True):
            if len(ids) >= _MAX_PIECES or len(firsts) == _MAX_WORDS:
                break
            firsts.append(len(ids))
            ids += self._cut(low or word)[1:-1] or [first]
        return [*ids, last], firsts, labels[: len(firsts)]

    def _cut(self, word: str) -> list[int]:
        if word not in self._known:
            self._known[word] = self._tokenizer.encode([word], 64)[0]
        return self._known[word]

    def _find_labels(self, text: TokenizedText, message: Message) -> list[tuple[int, int, int]] | None:
        labels = [(_OUTSIDE, _IGNORED, _IGNORED)] * len(text.lows)
        for mark in message.marks:
            place = find_words(text, message.text, mark.start, mark.stop)
            if place is None:
                return None
            for index in range(*place):
                tag = _TRIGGER if not mark.has_value else _FIRST if index == place[0] else _LATER
                labels[index] = (tag, self._families.index(mark.family), _EFFECTS.index(mark.effect))
        return labels


def find_words(text: TokenizedText, whole: str, start: int, stop: int) -> tuple[int, int] | None:
    """Return the words of a text that a span of characters covers; None if its words are cut otherwise there."""
    value = tokenize(whole[start:stop], "english").words
    before = sum(whole.startswith(whole[start:stop], at) for at in range(start))
    found = [at for at in range(len(text.words) - len(value) + 1) if text.words[at : at + len(value)] == value]
    if not found:
        return None
    at = found[min(before, len(found) - 1)]
    return at, at + len(value)


def collate(batch: Sequence[Encoded], device: Any) -> tuple[Any, Any, Any]:
    """Return messages as tensors: pieces, places of first pieces, and labels (messages, words, 3)."""
    ids, firsts = pad_rows([one[0] for one in batch], device), pad_rows([one[1] for one in batch], device, -1)
    labels = torch.full((*firsts.shape, 3), _IGNORED, device=device)
    for row, (_, places, marked) in enumerate(batch):
        labels[row, : len(places)] = torch.tensor(marked, device=device)
    return ids, firsts, labels


def compute_loss(outputs: tuple[Any, ...], labels: Any) -> Any:
    """Return the sum of the cross entropies of tags, families and effects."""
    total: Any = 0.0
    for head, scores in enumerate(outputs):
        wanted = labels[:, :, head].flatten()
        if (wanted != _IGNORED).any():  # a batch may have no mark
            total = total + functional.cross_entropy(
                scores.flatten(0, 1), wanted, ignore_index=_IGNORED, label_smoothing=0.02
            )
    return total


class Trainer:
    """Trains a tagger on variants of marked messages."""

    def __init__(self, tagger: Tagger, encoder: Encoder, options: argparse.Namespace, device: Any) -> None:
        self._tagger, self._encoder, self._options, self._device = tagger.to(device), encoder, options, device
        trained = len(tagger.bert.layers) - options.layers
        for name, parameter in tagger.bert.named_parameters():
            parts = name.split(".")
            parameter.requires_grad = parts[0] == "encoder" and int(parts[2]) >= trained

    def train(self, messages: list[Message], valid: list[Message], rng: random.Random) -> dict[str, float]:
        """Train, print the scores after each epoch, and return the last ones."""
        options, tagger = self._options, self._tagger
        variation = Variation(messages, rng)
        heads = [parameter for name, parameter in tagger.named_parameters() if not name.startswith("bert.")]
        body = [parameter for parameter in tagger.bert.parameters() if parameter.requires_grad]
        rates = [options.rate, _HEAD_RATE * options.rate]
        groups = [{"params": part, "lr": rate} for part, rate in zip((body, heads), rates, strict=True)]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        steps = options.epochs * (len(messages) // _BATCH + 1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=steps, pct_start=0.15)
        tagger.bert.dropout, scores = 0.1, {}
        for epoch in range(options.epochs):
            tagger.train()
            for batch in self._make_batches(messages, variation, rng):
                ids, firsts, labels = collate(batch, self._device)
                loss = compute_loss(tagger(ids, firsts), labels)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(tagger.parameters(), 1.0)
                optimizer.step()
                schedule.step()
            scores = self.evaluate(valid)
            print(f"epoch {epoch + 1}: {scores}", flush=True)
        return scores

    def _make_batches(self, messages: list[Message], variation: Variation, rng: random.Random) -> list[list[Encoded]]:
        varied = (self._encoder.encode(variation.vary(message)) for message in messages)
        encoded = [one for one in varied if one is not None]
        encoded.sort(key=lambda one: len(one[0]) + rng.random() * _LENGTH_NOISE)
        batches = [encoded[at : at + _BATCH] for at in range(0, len(encoded), _BATCH)]
        rng.shuffle(batches)
        return batches

    def evaluate(self, messages: Sequence[Message]) -> dict[str, float]:
        """Return precision, recall and F1 in percent, of first words with their family and kind of effect."""
        self._tagger.eval()
        right = found = gold = 0
        with torch.inference_mode():
            for one in filter(None, map(self._encoder.encode, messages)):
                ids, firsts, labels = collate([one], self._device)
                tags, families, effects = (scores[0].argmax(dim=1).tolist() for scores in self._tagger(ids, firsts))
                for place, (tag, family, effect) in enumerate(labels[0].tolist()):
                    is_gold, is_found = tag in (_FIRST, _TRIGGER), tags[place] in (_FIRST, _TRIGGER)
                    is_same = families[place] == family and (effects[place] < 2) == (effect < 2)
                    right, found, gold = right + (is_gold and is_found and is_same), found + is_found, gold + is_gold
        precision, recall = 100 * right / max(1, found), 100 * right / max(1, gold)
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        return {"precision": round(precision, 1), "recall": round(recall, 1), "F1": round(f1, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the tagger, and write its weights, its families and the messages that were kept aside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--messages", type=Path, default=FOLDER, help="folder of marked messages")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--valid", type=float, default=0.06, help="share of the messages that is kept aside")
    parser.add_argument("--layers", type=int, default=6, help="number of last layers that are trained")
    parser.add_argument("--seed", type=int, default=1)
    add_device_options(parser)
    options = parser.parse_args(arguments)
    device, rng = prepare_device(options), seed_everything(options.seed)
    messages = read_messages(options.messages)
    families = sorted({mark.family for message in messages for mark in message.marks})
    train, valid = split_messages(messages, options.valid, rng)
    tagger = Tagger(options.base, len(families))
    scores = Trainer(tagger, Encoder(options.base, families), options, device).train(train, valid, rng)
    options.out.mkdir(parents=True, exist_ok=True)
    torch.save(tagger.state_dict(), options.out / "tagger.pt")
    (options.out / "valid.txt").write_text("\n".join(map(format_message, valid)), encoding="utf-8")
    record = {"families": families, "valid": scores}
    (options.out / "run.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
