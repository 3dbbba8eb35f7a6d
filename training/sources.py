"""Training sources: their kind, share of the mix and licence, and the reader of their files.

A source NAME is two gzip files of JSON lines: ``NAME.jsonl.gz`` with questions, and ``NAME.pools.jsonl.gz`` with the
pools of units that they search.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.written import read_written

__all__ = ["SOURCES", "Source", "read_source"]


@dataclass(frozen=True, slots=True)
class Source:
    """One source of questions.

    Attributes:
        kind: ``turns`` of people, ``chats`` with an assistant, ``passages``, or ``statements`` of a user.
        questions: number drawn for training at scale 1.
        share: its part of the questions in a step, relative to the other sources.
        max_units: units kept of a pool.
        max_words: words kept of a unit.
        own: True for questions of `training.written`.
        share_alike: True if the licence asks that derived works carry the same licence.
        excluded_types: question types that have no positive evidence.
    """

    name: str
    kind: str
    questions: int
    share: float
    max_units: int
    max_words: int
    license: str
    share_alike: bool = False
    own: bool = False
    excluded_types: frozenset[str] = frozenset()


_WITHOUT_EVIDENCE = frozenset({"hallucination", "misleading"})

_ALL = (
    Source("persona", "turns", 4300, 6, 260, 60, "CC BY 4.0"),
    Source("friendsqa", "turns", 1800, 6, 400, 60, "Apache-2.0"),
    Source("qmsum", "turns", 1200, 4, 400, 60, "MIT"),
    Source("irc", "turns", 2000, 3, 300, 60, "CC BY 4.0"),
    Source("sgd", "turns", 500, 2, 60, 60, "CC BY-SA 4.0", share_alike=True),
    Source("crd3", "turns", 300, 2, 80, 60, "CC BY-SA 4.0", share_alike=True),
    Source("realmem", "chats", 3000, 6, 1500, 90, "Apache-2.0"),
    Source("rhelm", "chats", 500, 4, 2000, 90, "MIT", excluded_types=_WITHOUT_EVIDENCE),
    Source("lifebench", "chats", 1100, 4, 1500, 60, "Apache-2.0"),
    Source("fairytaleqa", "passages", 3000, 5, 15, 120, "Apache-2.0"),
    Source("selqa", "passages", 2000, 5, 40, 120, "Apache-2.0"),
    Source("xquad", "passages", 500, 2, 40, 120, "CC BY-SA 4.0", share_alike=True),
    Source("own_persona", "turns", 10000, 20, 260, 60, "CC BY 4.0 (texts of persona)", own=True),
    Source("own_scenes", "turns", 10000, 6, 400, 60, "Apache-2.0 and MIT (texts of friendsqa and qmsum)", own=True),
    Source("own_chats", "chats", 10000, 8, 400, 90, "Apache-2.0 and MIT (texts of realmem and rhelm)", own=True),
    Source("own_assistant", "chats", 10000, 10, 400, 90, "Apache-2.0", own=True),
    Source("own_friends", "turns", 10000, 14, 400, 60, "Apache-2.0", own=True),
    Source("own_passages", "passages", 10000, 14, 400, 120, "Apache-2.0", own=True),
    Source("statements", "statements", 10000, 10, 400, 60, "Apache-2.0", own=True),
)
SOURCES: Mapping[str, Source] = {source.name: source for source in _ALL}


def read_source(folder: Path, name: str, split: str) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return the questions of one split, and the units of its pools by pool."""
    if SOURCES[name].own:
        return read_written(name, split, folder)
    excluded = SOURCES[name].excluded_types
    pools = {
        entry["pool"]: entry["units"]
        for entry in _read_lines(folder / f"{name}.pools.jsonl.gz")
        if entry["split"] == split
    }
    questions = [
        entry
        for entry in _read_lines(folder / f"{name}.jsonl.gz")
        if entry["split"] == split and entry["pool"] in pools and entry.get("type") not in excluded
    ]
    return questions, pools


def _read_lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
