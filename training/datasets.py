"""Sources as collections that a memory can be filled with; see `benchmarks.remembered`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.collection import Collection, Dataset, Occasion, Question, Unit
from training.pools import ROLES
from training.sources import SOURCES, read_source

__all__ = ["read_dataset", "read_stories"]

_DATE_CHARS = len("2024-05-08")


def read_stories(file: Path) -> Dataset:
    """Return the stories of a file of JSON lines, such as ``training/stories/changes.jsonl``.

    A line is ``{id, messages: [[day, text]], questions: [{q, kind, gold: [indexes], stale: [indexes]}]}``.
    """
    stories = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return Dataset(file.stem, "message", tuple(map(_read_story, stories)))


def _read_story(story: Mapping[str, Any]) -> Collection:
    said = [
        Occasion((Unit(str(place), text, "user", None),), None, f"{day}T09:00:00")
        for place, (day, text) in enumerate(story["messages"])
    ]
    asked = [Question(one["q"], one["kind"], tuple(map(str, one["gold"]))) for one in story["questions"]]
    return Collection(story["id"], tuple(said), tuple(asked))


def read_dataset(data: Path, name: str, pools: int, split: str = "valid") -> Dataset:
    """Return the first pools of a source in a folder, each with its questions."""
    questions, units_by_pool = read_source(data, name, split)
    collections = []
    for pool, units in list(units_by_pool.items())[:pools]:
        own = [one for one in questions if one["pool"] == pool]
        occasions = tuple(_split_sessions(units, apart=SOURCES[name].kind == "passages"))
        asked = tuple(Question(one["question"], name, tuple(map(str, one["gold"]))) for one in own)
        collections.append(Collection(pool, occasions, asked))
    return Dataset(name, "turn", tuple(collections))


def _split_sessions(units: Sequence[Mapping[str, Any]], *, apart: bool) -> Iterator[Occasion]:
    start = 0
    for end in range(1, len(units) + 1):
        if end == len(units) or apart or units[end].get("session") != units[start].get("session"):
            day = str(units[start].get("time") or "")[:_DATE_CHARS]
            said = tuple(_read_unit(place, units[place]) for place in range(start, end))
            yield Occasion(said, str(units[start].get("session")), f"{day}T09:00:00" if day[4:5] == "-" else None)
            start = end


def _read_unit(place: int, unit: Mapping[str, Any]) -> Unit:
    speaker = unit.get("speaker") or ""
    is_role = speaker.casefold() in ROLES
    role = "assistant" if speaker.casefold() == "assistant" else "user"
    return Unit(str(place), unit["text"], role, None if is_role else speaker)
