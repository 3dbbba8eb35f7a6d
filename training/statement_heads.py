"""A tagger of statements on top of an encoder, and its data as arrays: ``python -m training.statement_heads --help``.

Three heads on the first piece of each word say tag, slot and effect. They mark in a message the values that it states
of its speaker, also in wordings that no pattern of `mem0_core.language` knows.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from training.bert import Bert, Tokenizer
from training.pack import Ragged
from training.runtime import reduced_precision
from training.statement_data import EFFECTS, FOLDER, Message, Variation, read_messages
from training.written import is_valid

__all__ = ["StatementTask", "main"]

_MAX_PIECES, _MAX_WORDS = 200, 160
_IGNORED = -100
_EFFECTS = tuple(EFFECTS.values())
OUTSIDE, FIRST, LATER, TRIGGER = range(4)  # tags: no value, its first word, a later one, words without a value
_BATCH = 32
_DROPOUT, _SMOOTHING = 0.15, 0.02
_VARIANTS = 8  # of each message in training

Encoded = tuple[list[int], list[int], list[tuple[int, int, int]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write marked messages as arrays: variants of those to train on, and those that are kept aside as they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder whose tokenizer is used")
    parser.add_argument("--messages", type=Path, default=FOLDER, help="folder of marked messages")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    messages = read_messages(options.messages)
    slots = sorted({mark.family for message in messages for mark in message.marks})
    train = [one for one in messages if not is_valid(one.text)]
    variation = Variation(train, random.Random(options.seed))
    encoder = _Encoder(options.base, slots)
    arrays: dict[str, Any] = {"slots": np.array(slots)}
    splits = {
        "train": [variation.vary(one) for one in train for _ in range(_VARIANTS)],
        "valid": [one for one in messages if is_valid(one.text)],
    }
    for split, found in splits.items():
        encoded = [one for one in map(encoder.encode, found) if one is not None]
        ids, firsts, labels = zip(*encoded, strict=True)
        flat = [[value for label in row for value in label] for row in labels]
        for name, rows in (("ids", ids), ("firsts", firsts), ("labels", flat)):
            ragged = Ragged.of(rows)
            arrays |= {f"{split}_{name}": ragged.flat, f"{split}_{name}_ends": ragged.ends}
        print(split, len(encoded), "messages")
    np.savez_compressed(options.out, **arrays)


# --- data --------------------------------------------------------------------------------------------------------


class _Encoder:
    """Turns messages into pieces, the place of each word's first piece, and labels."""

    def __init__(self, folder: Path, slots: Sequence[str]) -> None:
        from mem0_core.language._tokens import tokenize

        self._tokenize = tokenize
        self._tokenizer, self._slots = Tokenizer(folder, 512), list(slots)
        self._known: dict[str, list[int]] = {}

    def encode(self, message: Message) -> Encoded | None:
        """Return a message in numbers; None if a mark cannot be found among its words."""
        text = self._tokenize(message.text, "english")
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

    def _find_labels(self, text: Any, message: Message) -> list[tuple[int, int, int]] | None:
        labels = [(OUTSIDE, _IGNORED, _IGNORED)] * len(text.lows)
        for mark in message.marks:
            place = self._find_words(text, message.text, mark.start, mark.stop)
            if place is None:
                return None
            for index in range(*place):
                tag = TRIGGER if not mark.has_value else FIRST if index == place[0] else LATER
                labels[index] = (tag, self._slots.index(mark.family), _EFFECTS.index(mark.effect))
        return labels

    def _find_words(self, text: Any, whole: str, start: int, stop: int) -> tuple[int, int] | None:
        """Return the words of a text that a span of characters covers; None if its words are cut otherwise there."""
        value = self._tokenize(whole[start:stop], "english").words
        before = sum(whole.startswith(whole[start:stop], at) for at in range(start))
        found = [at for at in range(len(text.words) - len(value) + 1) if text.words[at : at + len(value)] == value]
        if not found:
            return None
        at = found[min(before, len(found) - 1)]
        return at, at + len(value)


class _Messages:
    """Encoded messages of one split."""

    def __init__(self, arrays: Any, split: str) -> None:
        self._rows = [
            Ragged(arrays[f"{split}_{name}"], arrays[f"{split}_{name}_ends"]) for name in ("ids", "firsts", "labels")
        ]

    def __len__(self) -> int:
        return len(self._rows[0])

    def collate(self, places: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return ids (n, pieces), places of first pieces (n, words), and labels (n, words, 3)."""
        ids, firsts, labels = ([rows[place] for place in places] for rows in self._rows)
        words = max(map(len, firsts))
        padded = np.zeros((len(places), max(map(len, ids))), np.int64)
        starts = np.zeros((len(places), words), np.int64)
        wanted = np.full((len(places), words, 3), _IGNORED, np.int64)
        for row in range(len(places)):
            padded[row, : len(ids[row])] = ids[row]
            starts[row, : len(firsts[row])] = firsts[row]
            wanted[row, : len(firsts[row])] = labels[row].reshape(-1, 3)
        return padded, starts, wanted


# --- heads -------------------------------------------------------------------------------------------------------


class _Heads(nn.Module):
    def __init__(self, size: int, slots: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(_DROPOUT)
        self.tags, self.slots, self.effects = (nn.Linear(size, count) for count in (4, slots, len(_EFFECTS)))

    def forward(self, hidden: Any, firsts: Any) -> tuple[Any, ...]:
        """Return the scores of tags, slots and effects, each (messages, words, classes)."""
        words = self.dropout(hidden.gather(1, firsts[:, :, None].expand(-1, -1, hidden.shape[2])))
        return self.tags(words), self.slots(words), self.effects(words)


class StatementTask:
    """The task of tagging statements, for an encoder."""

    def __init__(self, file: Path, size: int, device: Any, seed: int) -> None:
        with np.load(file) as arrays:
            self.slots = arrays["slots"].tolist()
            self._train, self._valid = _Messages(arrays, "train"), _Messages(arrays, "valid")
        self.heads = _Heads(size, len(self.slots)).to(device)
        self._device, self._rng = device, np.random.default_rng(seed)

    def compute_loss(self, model: Bert, count: int = _BATCH) -> Any:
        """Return the sum of the cross entropies of tags, slots and effects of random messages."""
        self.heads.train()
        scores, labels = self._score(model, self._train, self._rng.integers(len(self._train), size=count).tolist())
        total: Any = 0.0
        for head, found in enumerate(scores):
            wanted = labels[:, :, head].flatten()
            total = total + functional.cross_entropy(
                found.flatten(0, 1).float(), wanted, ignore_index=_IGNORED, label_smoothing=_SMOOTHING
            )
        return total

    def _score(self, model: Bert, messages: _Messages, places: Sequence[int]) -> tuple[tuple[Any, ...], Any]:
        ids, firsts, labels = (torch.from_numpy(one).to(self._device) for one in messages.collate(places))
        with reduced_precision(self._device):
            return self.heads(model(ids), firsts), labels

    def evaluate(self, model: Bert) -> dict[str, float]:
        """Return precision, recall and F1 in percent, of first words with their slot and kind of effect."""
        was_training = model.training
        model.eval()
        self.heads.eval()
        right = found = gold = 0
        with torch.inference_mode():
            for start in range(0, len(self._valid), _BATCH):
                places = range(start, min(start + _BATCH, len(self._valid)))
                scores, labels = self._score(model, self._valid, places)
                tags, slots, effects = (one.argmax(dim=2).cpu().numpy() for one in scores)
                tag, slot, effect = np.moveaxis(labels.cpu().numpy(), 2, 0)
                is_gold = np.isin(tag, (FIRST, TRIGGER))
                is_found = np.isin(tags, (FIRST, TRIGGER)) & (tag != _IGNORED)
                is_same = (slots == slot) & ((effects < 2) == (effect < 2))
                right += int((is_gold & is_found & is_same).sum())
                found, gold = found + int(is_found.sum()), gold + int(is_gold.sum())
        model.train(was_training)
        precision, recall = 100 * right / max(1, found), 100 * right / max(1, gold)
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        return {"precision": round(precision, 1), "recall": round(recall, 1), "F1": round(f1, 1)}

    def save(self, file: Path) -> None:
        """Write the weights of the heads and the names of the slots."""
        weights = {name: one.detach().float().cpu().numpy() for name, one in self.heads.state_dict().items()}
        np.savez_compressed(file, names=np.array(self.slots), **weights)


if __name__ == "__main__":
    main()
