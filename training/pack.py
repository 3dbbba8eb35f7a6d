"""Pools as arrays of tokens: ``python -m training.pack --help``.

Training reads one file of NumPy arrays, so that it needs no tokenizer and a GPU does not wait for one. Negatives by
BM25 are looked up here too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.bert import Tokenizer
from training.bm25 import Bm25
from training.pools import Pool, Question, Unit, read_pools

__all__ = ["NONE", "Pack", "Ragged", "main", "pack_pools"]

_MAX_UNIT_TOKENS, _MAX_QUESTION_TOKENS, _MAX_LABEL_TOKENS = 128, 64, 16
_BM25_NEGATIVES = 20
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
NONE = -1
"""No text, no unit or no limit, in an array of numbers of them."""


class Ragged:
    """Rows of integers of different lengths, as one array."""

    def __init__(self, flat: NDArray[Any], ends: NDArray[Any]) -> None:
        self.flat, self.ends = flat, ends

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]], kind: Any = np.int32) -> Ragged:
        kept = [np.asarray(row, kind) for row in rows]
        ends = np.cumsum([len(row) for row in kept]).astype(np.int32)
        return cls(np.concatenate([np.zeros(0, kind), *kept]), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: int) -> NDArray[Any]:
        return self.flat[self.ends[place - 1] if place else 0 : self.ends[place]]


class Pack:
    """Pools of several sources in arrays.

    Attributes:
        sources: name of each source.
        pools: names of the pools.
        markers: ids at the start and the end of a text, and of a colon.
        tokens: ids of each text without the markers at its ends.
        pool_source: number of each pool's source, (pools,).
        pool_units: first unit of each pool, and the one after its last, (pools, 2).
        units: of each unit the texts of it, its speaker, its day, and what was said before and after it, (units, 5).
        asked: of each question its pool, its text, its text without names, and the unit before which it was asked,
            (questions, 4).
        gold: units that answer each question.
        masked: units that are neither positive nor negative, golds included.
        bm25: best other units by BM25.
    """

    _ROWS = ("tokens", "gold", "masked", "bm25")
    _ARRAYS = ("pool_source", "pool_units", "units", "asked")

    def __init__(self, sources: Sequence[str], pools: Sequence[str], markers: Sequence[int], **arrays: Any) -> None:
        self.sources, self.pools, self.markers = list(sources), list(pools), list(markers)
        self.tokens: Ragged = arrays["tokens"]
        self.gold: Ragged = arrays["gold"]
        self.masked: Ragged = arrays["masked"]
        self.bm25: Ragged = arrays["bm25"]
        self.pool_source: NDArray[np.int32] = arrays["pool_source"]
        self.pool_units: NDArray[np.int32] = arrays["pool_units"]
        self.units: NDArray[np.int32] = arrays["units"]
        self.asked: NDArray[np.int32] = arrays["asked"]

    def save(self, file: Path) -> None:
        """Write the arrays, compressed; the file depends on their content alone."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in self._ARRAYS}
        for name in self._ROWS:
            rows: Ragged = getattr(self, name)
            arrays |= {f"{name}_flat": rows.flat, f"{name}_ends": rows.ends}
        names = json.dumps({"sources": self.sources, "pools": self.pools, "markers": self.markers})
        np.savez_compressed(file, names=np.frombuffer(names.encode(), np.uint8), **arrays)

    @classmethod
    def load(cls, file: Path) -> Pack:
        """Read a file of `save`."""
        with np.load(file) as arrays:
            names = json.loads(arrays["names"].tobytes())
            found: dict[str, Any] = {name: arrays[name] for name in cls._ARRAYS}
            found |= {name: Ragged(arrays[f"{name}_flat"], arrays[f"{name}_ends"]) for name in cls._ROWS}
        return cls(**names, **found)

    def source_of(self, question: int) -> str:
        """Return the name of the source of a question."""
        return self.sources[int(self.pool_source[self.asked[question, 0]])]

    def candidates(self, question: int, *, with_gold: bool = True) -> NDArray[np.int64]:
        """Return the units that may be retrieved for a question: those that are no answer, and the golds."""
        pool, _, _, before = self.asked[question]
        first, end = self.pool_units[pool]
        allowed = np.ones(end - first, bool)
        allowed[self.masked[question] - first] = False
        if with_gold:
            allowed[self.gold[question] - first] = True
        if before != NONE:
            allowed[before:] = False
        places: NDArray[np.int64] = first + np.flatnonzero(allowed)
        return places


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pack of a file of pools."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=Path, required=True, help="file of training.pools")
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder whose tokenizer is used")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    pack = pack_pools(read_pools(options.pools), Tokenizer(options.base, max_tokens=512))
    pack.save(options.out)
    digest = hashlib.sha256(options.out.read_bytes()).hexdigest()[:16]
    print(f"{len(pack.asked)} questions, {len(pack.units)} units, {len(pack.tokens.flat)} tokens, sha256 {digest}")


def pack_pools(pools: Sequence[Pool], tokenizer: Tokenizer) -> Pack:
    """Return pools as arrays."""
    texts = _Texts(tokenizer)
    sources = sorted({pool.source for pool in pools})
    units: list[list[int]] = []
    asked: list[list[int]] = []
    bounds: list[tuple[int, int]] = []
    gold: list[list[int]] = []
    masked: list[list[int]] = []
    bm25: list[list[int]] = []
    for number, pool in enumerate(pools):
        first = len(units)
        units += [_pack_unit(unit, texts) for unit in pool.units]
        bounds.append((first, len(units)))
        index = Bm25([f"{unit.speaker} {unit.text}" for unit in pool.units])
        for question in pool.questions:
            ids = (texts.add(text, _MAX_QUESTION_TOKENS) for text in (question.text, question.query))
            asked.append([number, *ids, NONE if question.before is None else question.before])
            gold.append([first + place for place in question.gold])
            masked.append([first + place for place in question.masked])
            bm25.append([first + place for place in _find_negatives(pool, question, index)])
    return Pack(
        sources,
        [f"{pool.source}/{pool.name}" for pool in pools],
        tokenizer.encode([":"], 3)[0][::2] + tokenizer.encode([":"], 3)[0][1:2],
        tokens=Ragged.of(texts.ids, np.uint16),
        gold=Ragged.of(gold),
        masked=Ragged.of(masked),
        bm25=Ragged.of(bm25),
        pool_source=np.array([sources.index(pool.source) for pool in pools], np.int32),
        pool_units=np.array(bounds, np.int32).reshape(-1, 2),
        units=np.array(units, np.int32).reshape(-1, 5),
        asked=np.array(asked, np.int32).reshape(-1, 4),
    )


class _Texts:
    """Different texts, each with its ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._places = tokenizer, dict[tuple[str, int], int]()
        self.ids: list[list[int]] = []

    def add(self, text: str, max_tokens: int) -> int:
        """Return the number of a text; `NONE` if it is empty."""
        if not text:
            return NONE
        place = self._places.setdefault((text, max_tokens), len(self.ids))
        if place == len(self.ids):
            self.ids.append(self._tokenizer.encode([text], max_tokens)[0][1:-1])
        return place


def _pack_unit(unit: Unit, texts: _Texts) -> list[int]:
    day = _DAY.match(unit.time)
    labels = [texts.add(text, _MAX_LABEL_TOKENS) for text in (unit.speaker, day[0] if day else "")]
    around = [texts.add(text, _MAX_UNIT_TOKENS) for text in (unit.previous, unit.following)]
    return [texts.add(unit.text or "-", _MAX_UNIT_TOKENS), *labels, *around]


def _find_negatives(pool: Pool, question: Question, index: Bm25) -> list[int]:
    """Return the best units by BM25 that are not masked and do not repeat the text of a gold."""
    scores = index.scores(question.text)
    end = len(scores) if question.before is None else question.before
    masked = set(question.masked)
    gold_texts = {pool.units[place].text for place in question.gold}
    order = sorted(np.flatnonzero(scores[:end]).tolist(), key=lambda place: (-scores[place], place))
    allowed = (place for place in order if place not in masked and pool.units[place].text not in gold_texts)
    return [place for place, _ in zip(allowed, range(_BM25_NEGATIVES), strict=False)]


if __name__ == "__main__":
    main()
