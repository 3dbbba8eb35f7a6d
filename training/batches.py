"""Batches of a pack: padded tensors, draws of questions and negatives, vectors of all units."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from training.bert import Bert
from training.evaluate import Evaluation, rank_places
from training.pack import NONE, Pack
from training.runtime import reduced_precision
from training.sources import SOURCES

__all__ = [
    "Negatives",
    "Questions",
    "TextBatches",
    "compute_by_length",
    "embed_all",
    "evaluate_vectors",
    "mine_negatives",
    "score_pools",
]

_LENGTHS = (16, 32, 64, 96)  # a processor computes a batch in parts of similar length
_EMBED_TEXTS = 2048
_MINED = 20

Rows = NDArray[np.int64]


class TextBatches:
    """Padded rows of ids of the texts of a pack."""

    def __init__(self, pack: Pack) -> None:
        self._first, self._last, _ = pack.markers
        self._flat = pack.tokens.flat.astype(np.int64)
        self._ends = pack.tokens.ends.astype(np.int64)
        self._starts = np.concatenate([[0], self._ends[:-1]]) if len(self._ends) else self._ends

    def rows(self, texts: Sequence[int] | NDArray[Any], limit: int, *, tail: bool = False) -> list[NDArray[np.int64]]:
        """Return the first `limit` ids of each text, or the last ones; none for `NONE`."""
        found = []
        for text in texts:
            ids = self._flat[self._starts[text] : self._ends[text]] if text != NONE else self._flat[:0]
            found.append(ids[-limit:] if tail else ids[:limit])
        return found

    def pad(self, texts: NDArray[Any], limit: int) -> Rows:
        """Return texts as one array, with the markers at both ends and 0 behind them."""
        starts = self._starts[texts]
        lengths = np.minimum(self._ends[texts] - starts, limit - 2)
        places = np.arange(lengths.max(initial=0))
        inside = places < lengths[:, None]
        padded = np.zeros((len(texts), inside.shape[1] + 2), np.int64)
        padded[:, 0] = self._first
        padded[:, 1:-1][inside] = self._flat[(starts[:, None] + places)[inside]]
        padded[np.arange(len(texts)), lengths + 1] = self._last
        return padded


def _split_by_length(rows: Rows, device: Any) -> Iterator[tuple[NDArray[np.int64], Rows]]:
    """Yield places and rows of similar length, without columns that are empty there.

    A GPU gets all rows at once: there the number of calls counts, and not that of the tokens.
    """
    lengths = (rows != 0).sum(axis=1)
    groups = np.searchsorted(_LENGTHS, lengths) if device.type == "cpu" else np.zeros(len(rows), np.int64)
    for group in np.unique(groups):
        places = np.flatnonzero(groups == group)
        yield places, rows[places, : lengths[places].max()]


def compute_by_length(rows: Rows, device: Any, compute: Callable[[NDArray[np.int64], Any], Any]) -> Any:
    """Return, in the order of the rows, what `compute` returns for places and ids of rows of similar length."""
    parts, order = [], []
    with reduced_precision(device):
        for places, part in _split_by_length(rows, device):
            parts.append(compute(places, torch.from_numpy(part).to(device)))
            order.append(places)
    back = np.argsort(np.concatenate(order))
    return torch.cat(parts)[torch.from_numpy(back).to(device)]


def embed_all(model: Bert, texts: TextBatches, which: NDArray[Any], limit: int, device: Any) -> Any:
    """Return unit vectors of texts by number without gradients, (texts, dims)."""
    limit = min(limit, model.config["max_position_embeddings"])
    vectors = torch.zeros((len(which), model.config["hidden_size"]), device=device)
    was_training = model.training
    model.eval()
    order = np.argsort([len(row) for row in texts.rows(which, limit)], kind="stable")
    with torch.inference_mode(), reduced_precision(device):
        for start in range(0, len(order), _EMBED_TEXTS):
            places = order[start : start + _EMBED_TEXTS]
            ids = torch.from_numpy(texts.pad(which[places], limit)).to(device)
            vectors[torch.from_numpy(places).to(device)] = model.embed(ids)
    model.train(was_training)
    return vectors


class Questions:
    """Questions of a pack, drawn by the shares of their sources."""

    def __init__(self, pack: Pack, rng: np.random.Generator) -> None:
        self._rng = rng
        by_source: dict[str, list[int]] = {}
        for question in range(len(pack.asked)):
            by_source.setdefault(pack.source_of(question), []).append(question)
        self._queues = {name: self._cycle(np.array(found)) for name, found in sorted(by_source.items())}
        shares = np.array([SOURCES[name].share for name in self._queues])
        self._shares = shares / shares.sum()

    def draw(self, count: int) -> list[int]:
        """Return the next questions; those of a source repeat only after all of it."""
        names = self._rng.choice(list(self._queues), size=count, p=self._shares)
        return [next(self._queues[name]) for name in names]

    def _cycle(self, questions: NDArray[np.int64]) -> Iterator[int]:
        for _ in itertools.count():
            yield from self._rng.permutation(questions).tolist()


class Negatives:
    """Hard and easy negatives of each question."""

    def __init__(self, pack: Pack, mined: Sequence[NDArray[np.int64]], rng: np.random.Generator) -> None:
        self._pack, self._rng = pack, rng
        self._hard = [np.unique(np.concatenate([pack.bm25[at], mined[at]])) for at in range(len(mined))]

    def draw(self, question: int, hard: int, easy: int) -> list[int]:
        """Return units that do not answer a question; fewer than asked for if its pool has no more."""
        found = self._hard[question]
        chosen = self._rng.choice(found, min(hard, len(found)), replace=False).tolist()
        first, end = self._pack.pool_units[self._pack.asked[question, 0]]
        avoided = {*self._pack.masked[question].tolist(), *chosen}
        before = self._pack.asked[question, 3]
        drawn = self._rng.integers(first, end if before == NONE else max(first + 1, first + before), 3 * easy).tolist()
        return [*chosen, *[unit for unit in dict.fromkeys(drawn) if unit not in avoided][:easy]]


def mine_negatives(pack: Pack, units: Any, queries: Any, margin: float) -> list[NDArray[np.int64]]:
    """Return for each question the units of its pool that are nearest to it and no answer.

    Args:
        units: vectors of all units.
        queries: vectors of all questions.
        margin: a unit nearer than every gold by more than this may be an answer that nobody annotated, and is left out,
            except for questions written for this project, whose pool was read to the end.
    """
    found: list[NDArray[np.int64]] = []
    for question, first, scores in score_pools(pack, units, queries):
        places = pack.candidates(question, with_gold=False)
        own = scores[places - first]
        if not SOURCES[pack.source_of(question)].own:
            limit = scores[pack.gold[question] - first].max() + margin
            places, own = places[own <= limit], own[own <= limit]
        found.append(places[np.argsort(-own, kind="stable")[:_MINED]])
    return found


def score_pools(pack: Pack, units: Any, queries: Any) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
    """Yield each question in order, the first unit of its pool, and the cosines of the units of the pool."""
    counts, question = np.bincount(pack.asked[:, 0], minlength=len(pack.pools)), 0
    for pool, (first, end) in enumerate(pack.pool_units.tolist()):
        last = question + int(counts[pool])
        scores = (queries[question:last] @ units[first:end].T).float().cpu().numpy()
        for row in scores:
            yield question, first, row
            question += 1


def evaluate_vectors(pack: Pack, units: Any, queries: Any) -> Evaluation:
    """Score rankings by cosine."""
    rows = []
    for question, first, scores in score_pools(pack, units, queries):
        places = pack.candidates(question)
        order = places[np.argsort(-scores[places - first], kind="stable")]
        rows.append(rank_places(order.tolist(), set(pack.gold[question].tolist())))
    return Evaluation(tuple(map(pack.source_of, range(len(rows)))), 100 * np.array(rows))
