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

__all__ = ["KINDS", "SOURCES", "Source", "read_source"]

KINDS = ("turns", "chats", "passages")


@dataclass(frozen=True, slots=True)
class Source:
    """One source of questions.

    Attributes:
        kind: ``turns`` of people, ``chats`` with an assistant, or ``passages``.
        questions: number drawn for training at scale 1.
        max_units: units kept of a pool.
        max_words: words kept of a unit.
        share_alike: True if the licence asks that derived works carry the same licence.
        excluded_types: question types that have no positive evidence.
    """

    name: str
    kind: str
    questions: int
    max_units: int
    max_words: int
    license: str
    share_alike: bool = False
    excluded_types: frozenset[str] = frozenset()


_WITHOUT_EVIDENCE = frozenset({"hallucination", "misleading"})

# 60 % turns of people, 20 % chats with an assistant, 20 % passages. Long pools are cut, so that mining can embed them.
_ALL = (
    Source("persona", "turns", 1800, 100, 60, "CC BY 4.0"),
    Source("friendsqa", "turns", 1700, 400, 60, "Apache-2.0"),
    Source("qmsum", "turns", 700, 80, 60, "MIT"),
    Source("irc", "turns", 500, 60, 60, "CC BY 4.0"),
    Source("sgd", "turns", 500, 60, 60, "CC BY-SA 4.0", share_alike=True),
    Source("crd3", "turns", 300, 80, 60, "CC BY-SA 4.0", share_alike=True),
    Source("realmem", "chats", 700, 250, 90, "Apache-2.0"),
    Source("rhelm", "chats", 450, 200, 90, "MIT", excluded_types=_WITHOUT_EVIDENCE),
    Source("lifebench", "chats", 450, 250, 60, "Apache-2.0"),
    Source("fairytaleqa", "passages", 500, 15, 120, "Apache-2.0"),
    Source("selqa", "passages", 1000, 40, 120, "Apache-2.0"),
    Source("xquad", "passages", 500, 40, 120, "CC BY-SA 4.0", share_alike=True),
)
SOURCES: Mapping[str, Source] = {source.name: source for source in _ALL}


def read_source(folder: Path, name: str, split: str) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return the questions of one split, and the units of its pools by pool."""
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
