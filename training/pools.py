"""Draw the training and validation pools from the sources: ``python -m training.pools --help``.

A pool is cut to its golds, their neighbors and random other units. The result depends on the options alone.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mem0_core.language.terms import extract_terms
from training.sources import SOURCES, Source, read_source

__all__ = ["ROLES", "Pool", "Question", "Unit", "draw_pools", "main", "read_pools", "remove_names", "write_pools"]

_MAX_GOLDS_KEPT = 10  # of one question in a training pool; a span of a hundred turns would crowd out other units
_MAX_SPEAKERS = 40  # in a busy channel the speakers of the whole pool would remove ordinary words from a question
ROLES = frozenset({"", "user", "assistant"})
_MIN_NAME_CHARS = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """A turn, message or passage, with the texts before and after it in its session."""

    text: str
    speaker: str = ""
    time: str = ""
    previous: str = ""
    following: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a pool.

    Attributes:
        text: the question as asked.
        query: the question without names of speakers, which is embedded.
        gold: indexes of the units that answer it.
        masked: indexes that are neither positive nor negative, golds included.
        before: only units with a smaller index may be retrieved.
    """

    text: str
    query: str
    gold: tuple[int, ...]
    masked: tuple[int, ...] = ()
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Units of one source, and the questions about them."""

    source: str
    name: str
    units: tuple[Unit, ...]
    questions: tuple[Question, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pools of both splits into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sources")
    parser.add_argument("--out", type=Path, required=True, help="folder for train.jsonl and valid.jsonl")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of questions of each source")
    parser.add_argument("--valid", type=int, default=60, help="validation questions per source")
    parser.add_argument("--valid-units", type=int, default=150, help="units kept of a validation pool")
    parser.add_argument("--valid-pools", type=int, default=8, help="validation pools per source")
    parser.add_argument("--share-alike", action="store_true", help="train on sources under share-alike licenses too")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    present = [one for one in SOURCES.values() if one.own or (options.data / f"{one.name}.jsonl.gz").exists()]
    training = [one for one in present if options.share_alike or not one.share_alike]
    drawn = {
        "train": [
            pool
            for source in training
            for pool in draw_pools(options.data, source, "train", round(source.questions * options.scale), options.seed)
        ],
        "valid": [
            pool
            for source in present
            for pool in draw_pools(
                options.data,
                source,
                "valid",
                options.valid,
                options.seed,
                max_units=options.valid_units,
                max_pools=options.valid_pools,
            )
        ],
    }
    for split, pools in drawn.items():
        write_pools(options.out / f"{split}.jsonl", pools)
        print(split, json.dumps(count_questions(pools)), flush=True)


def count_questions(pools: Iterable[Pool]) -> dict[str, tuple[int, int]]:
    """Return the numbers of questions and units of each source."""
    counts: dict[str, tuple[int, int]] = {}
    for pool in pools:
        questions, units = counts.get(pool.source, (0, 0))
        counts[pool.source] = questions + len(pool.questions), units + len(pool.units)
    return counts


def draw_pools(
    data: Path,
    source: Source,
    split: str,
    wanted: int,
    seed: int,
    *,
    max_units: int | None = None,
    max_pools: int | None = None,
) -> Iterator[Pool]:
    """Draw `wanted` questions of a source, spread evenly over its pools.

    Args:
        max_units: units kept of a validation pool, where no gold is left out; None for a training pool.
        max_pools: maximum number of pools.
    """
    rng = random.Random(f"{seed} {split} {source.name}")
    questions, units = read_source(data, source.name, split)
    if source.kind == "passages" and split == "valid":
        questions, units = _merge_pools(questions, units)  # single pools of passages are solved by every model
    by_pool: dict[str, list[dict[str, Any]]] = {}
    for question in questions:
        by_pool.setdefault(question["pool"], []).append(question)
    names = sorted(by_pool)
    rng.shuffle(names)
    names = names[:max_pools]
    for place, name in enumerate(names):
        share = -(-wanted // (len(names) - place))  # of the questions still wanted, rounded up
        chosen = rng.sample(by_pool[name], min(share, len(by_pool[name])))
        if wanted <= 0 or not chosen:
            continue
        wanted -= len(chosen)
        yield _cut_pool(source, name, units[name], chosen, rng, max_units)


def _merge_pools(
    questions: Sequence[dict[str, Any]], pools: dict[str, list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return all pools as one, each as a session of its own, with the questions renumbered."""
    merged: list[dict[str, Any]] = []
    offsets: dict[str, int] = {}
    for name in sorted(pools):
        offsets[name] = len(merged)
        merged += [{**unit, "session": f"{name} {unit.get('session')}"} for unit in pools[name]]
    moved = [
        {
            **question,
            "pool": "all",
            "gold": [offsets[question["pool"]] + index for index in question["gold"]],
            "soft": [offsets[question["pool"]] + index for index in question.get("soft", [])],
            "before": None,
        }
        for question in questions
    ]
    return moved, {"all": merged}


def _cut_pool(
    source: Source,
    name: str,
    units: Sequence[dict[str, Any]],
    questions: Sequence[dict[str, Any]],
    rng: random.Random,
    max_units: int | None,
) -> Pool:
    training = max_units is None
    max_golds = _MAX_GOLDS_KEPT if training else len(units)
    kept = {index for question in questions for index in question["gold"][:max_golds]}
    kept |= {near for index in list(kept) for near in (index - 1, index + 1) if 0 <= near < len(units)}
    others = [index for index in range(len(units)) if index not in kept]
    limit = source.max_units if max_units is None else max_units
    if source.kind == "passages" and not training:
        limit *= 3
    kept |= set(rng.sample(others, min(len(others), max(0, limit - len(kept)))))
    order = sorted(kept)
    places = {index: place for place, index in enumerate(order)}
    names = _speaker_names(units, order)
    asked = [_read_question(question, places, order, names) for question in questions]
    return Pool(
        source=source.name,
        name=name,
        units=tuple(_read_unit(units, index, source.max_words) for index in order),
        questions=tuple(question for question in asked if question.gold),
    )


def _speaker_names(units: Sequence[dict[str, Any]], order: Sequence[int]) -> set[str]:
    names = {unit.get("speaker") or "" for unit in units}
    if len(names) > _MAX_SPEAKERS:
        names = {units[index].get("speaker") or "" for index in order}
    return {name for name in names if name.casefold() not in ROLES}


def _read_question(
    entry: dict[str, Any], places: dict[int, int], order: Sequence[int], names: Iterable[str]
) -> Question:
    before = entry.get("before")
    gold = tuple(places[index] for index in entry["gold"] if index in places)
    soft = tuple(places[index] for index in entry.get("soft", []) if index in places)
    return Question(
        text=entry["question"],
        query=remove_names(entry["question"], names),
        gold=gold,
        masked=tuple(sorted({*gold, *soft})),
        before=None if before is None else sum(index < before for index in order),
    )


def _read_unit(units: Sequence[dict[str, Any]], index: int, max_words: int) -> Unit:
    def neighbor(other: int) -> str:
        same = 0 <= other < len(units) and units[other].get("session") == units[index].get("session")
        return " ".join(units[other]["text"].split()[:max_words]) if same else ""

    unit = units[index]
    return Unit(
        text=" ".join(unit["text"].split()[:max_words]),
        speaker=unit.get("speaker") or "",
        time=str(unit.get("time") or ""),
        previous=neighbor(index - 1),
        following=neighbor(index + 1),
    )


def remove_names(text: str, names: Iterable[str]) -> str:
    """Return a question without the names of speakers, as a search of the product embeds it."""
    parts = {part for name in names for part in (name, *name.split()) if len(part) >= _MIN_NAME_CHARS}
    if not parts:
        return text
    pattern = "|".join(sorted(map(re.escape, parts), key=lambda part: (-len(part), part)))
    cut = re.sub(rf"(?<!\w)(?:{pattern})(?:['’]s)?(?!\w)", "", text, flags=re.IGNORECASE)
    return " ".join(cut.split()) if extract_terms(cut) else text


def write_pools(file: Path, pools: Iterable[Pool]) -> None:
    """Write pools as JSON lines."""
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(asdict(pool), ensure_ascii=False) + "\n" for pool in pools)


def read_pools(file: Path) -> list[Pool]:
    """Read the pools that `write_pools` wrote."""
    with file.open(encoding="utf-8") as lines:
        return [_parse_pool(json.loads(line)) for line in lines]


def _parse_pool(entry: dict[str, Any]) -> Pool:
    questions = (
        Question(one["text"], one["query"], tuple(one["gold"]), tuple(one["masked"]), one["before"])
        for one in entry["questions"]
    )
    return Pool(entry["source"], entry["name"], tuple(Unit(**one) for one in entry["units"]), tuple(questions))


if __name__ == "__main__":
    main()
