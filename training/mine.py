"""Mine hard negatives within each pool, by BM25 and by a model: ``python -m training.mine --help``."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.bert import Bert, Tokenizer, encode_texts, load_bert
from training.bm25 import Bm25
from training.pools import Pool, Question, Unit, read_pools
from training.runtime import add_device_options, prepare_device
from training.sources import SOURCES

__all__ = ["Example", "eligible_places", "main", "mine_pool", "read_examples", "write_examples"]

_MAX_DOCUMENT_TOKENS = 128
_MAX_QUERY_TOKENS = 64
_MIN_NEGATIVES = 4


@dataclass(frozen=True, slots=True)
class Example:
    """A question, units that answer it, and units of the same pool that do not, the hard ones first."""

    source: str
    kind: str
    pool: str
    text: str
    query: str
    gold: tuple[Unit, ...]
    hard: tuple[Unit, ...]
    easy: tuple[Unit, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the examples of a file of training pools."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="sentence-transformers folder; default: no negatives of a model")
    parser.add_argument("--model-kinds", default="turns,chats,passages", help="kinds of sources that the model mines")
    parser.add_argument("--per-method", type=int, default=6, help="hard negatives of BM25, and of the model")
    parser.add_argument("--margin", type=float, default=0.1, help="see mine_pool")
    parser.add_argument("--seed", type=int, default=1)
    add_device_options(parser)
    options = parser.parse_args(arguments)
    device = prepare_device(options)
    model, tokenizer = None, None
    if options.model is not None:
        model, tokenizer = load_bert(options.model).to(device), Tokenizer(options.model)
    rng = random.Random(options.seed)
    kinds = set(options.model_kinds.split(","))
    examples: list[Example] = []
    for pool in read_pools(options.pools):
        similarity = None
        if model is not None and tokenizer is not None and SOURCES[pool.source].kind in kinds:
            similarity = compute_similarities(model, tokenizer, pool)
        examples += mine_pool(pool, rng, similarity, per_method=options.per_method, margin=options.margin)
    rng.shuffle(examples)
    write_examples(options.out, examples)
    print(len(examples), "examples", flush=True)


def compute_similarities(model: Bert, tokenizer: Tokenizer, pool: Pool) -> NDArray[np.float32]:
    """Return the cosine of each question to each unit of a pool."""
    units = encode_texts(model, tokenizer, [unit.text for unit in pool.units], _MAX_DOCUMENT_TOKENS)
    queries = encode_texts(model, tokenizer, [question.query for question in pool.questions], _MAX_QUERY_TOKENS)
    similarities: NDArray[np.float32] = queries @ units.T
    return similarities


def eligible_places(pool: Pool, question: Question) -> list[int]:
    """Return the units that may be a negative: before the question, not masked, and with another text than a gold."""
    masked = set(question.masked)
    gold_texts = {pool.units[place].text for place in question.gold}
    end = len(pool.units) if question.before is None else question.before
    return [place for place in range(end) if place not in masked and pool.units[place].text not in gold_texts]


def mine_pool(
    pool: Pool,
    rng: random.Random,
    similarities: NDArray[np.float32] | None,
    *,
    per_method: int,
    margin: float,
) -> Iterator[Example]:
    """Yield an example per question that has enough negatives.

    Args:
        similarities: cosines of each question to each unit; None to mine by BM25 alone.
        margin: a unit whose cosine exceeds that of every gold by more than this may be an answer that is not annotated,
            so it is left out.
    """
    index = Bm25([f"{unit.speaker} {unit.text}" for unit in pool.units])
    for row, question in enumerate(pool.questions):
        allowed = eligible_places(pool, question)
        keyword = index.scores(question.text)
        hard = [place for place in _best(keyword, allowed)[:per_method] if keyword[place] > 0]
        if similarities is not None:
            limit = float(similarities[row, list(question.gold)].max()) + margin
            allowed = [place for place in allowed if similarities[row, place] <= limit]
            hard = [place for place in hard if similarities[row, place] <= limit]
            hard += [place for place in _best(similarities[row], allowed)[:per_method] if place not in hard]
        others = [place for place in allowed if place not in hard]
        easy = rng.sample(others, min(len(others), per_method))
        if len(hard) + len(easy) >= _MIN_NEGATIVES:
            yield _build_example(pool, question, hard, easy)


def _best(scores: NDArray[Any], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: (-float(scores[place]), place))


def _build_example(pool: Pool, question: Question, hard: Sequence[int], easy: Sequence[int]) -> Example:
    gold, far, near = (tuple(pool.units[place] for place in places) for places in (question.gold, easy, hard))
    kind = SOURCES[pool.source].kind
    return Example(pool.source, kind, f"{pool.source}/{pool.name}", question.text, question.query, gold, near, far)


def write_examples(file: Path, examples: Sequence[Example]) -> None:
    """Write examples as JSON lines."""
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(asdict(example), ensure_ascii=False) + "\n" for example in examples)


def read_examples(file: Path) -> list[Example]:
    """Read the examples that `write_examples` wrote."""
    with file.open(encoding="utf-8") as lines:
        return [_parse_example(json.loads(line)) for line in lines]


def _parse_example(entry: Mapping[str, Any]) -> Example:
    units = {name: tuple(Unit(**unit) for unit in entry[name]) for name in ("gold", "hard", "easy")}
    return Example(**{**entry, **units})


if __name__ == "__main__":
    main()
