"""Reader of MuSiQue: passages of an encyclopedia, and questions that need two to four of them.

The file lists the passages of a question together, so they are added in another order.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.collection import Collection, Dataset, Occasion, Question, Unit
from benchmarks.plan import ROOT

__all__ = ["PATH", "dataset", "load", "read"]

PATH = ROOT.parent / "shared" / "data" / "musique_train.json.gz"

_CORPUS = "musique_train_corpus.json.gz"
_SEED = 11


def load(path: Path = PATH, questions: int | None = None) -> Collection:
    """Load all passages, or the first `questions` and only their passages."""
    entries = _json(path)[:questions]
    return read(entries, None if questions else _json(path.with_name(_CORPUS)))


def _json(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        entries: list[dict[str, Any]] = json.load(file)
    return entries


def dataset(collection: Collection) -> Dataset:
    return Dataset("MuSiQue", "passage", (collection,), headline="R@5")


def read(entries: Sequence[Mapping[str, Any]], corpus: Iterable[Mapping[str, str]] | None = None) -> Collection:
    """Read questions over a corpus, by default over their own paragraphs. A passage is its title and its text."""
    own = [(part["title"], part["paragraph_text"]) for entry in entries for part in entry["paragraphs"]]
    told = own if corpus is None else [(passage["title"], passage["text"]) for passage in corpus]
    texts = list(dict.fromkeys(map("\n".join, told)))
    ids = {text: f"p{place}" for place, text in enumerate(texts)}
    random.Random(_SEED).shuffle(texts)
    return Collection(
        "MuSiQue",
        tuple(Occasion((Unit(ids[text], text),)) for text in texts),
        tuple(_question(entry, ids) for entry in entries),
    )


def _question(entry: Mapping[str, Any], ids: Mapping[str, str]) -> Question:
    needed = (f"{part['title']}\n{part['paragraph_text']}" for part in entry["paragraphs"] if part["is_supporting"])
    gold = tuple(ids[text] for text in dict.fromkeys(needed))
    return Question(entry["question"], f"{len(gold)} passages", gold)
