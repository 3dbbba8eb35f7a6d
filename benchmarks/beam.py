"""Reader of BEAM's chats of 100K tokens: messages in a few batches, and questions with their source messages."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.collection import Collection, Dataset, Occasion, Question, Unit
from benchmarks.plan import ROOT
from mem0_core.evaluation import parse_beam_day

__all__ = ["PATH", "dataset", "load", "read"]

PATH = ROOT.parent / "shared" / "data" / "beam_100k_dev.json.gz"


def load(path: Path = PATH) -> list[Collection]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [read(chat) for chat in json.load(file)]


def dataset(chats: Sequence[Collection]) -> Dataset:
    return Dataset("BEAM", "message", tuple(chats), unanswerable="abstention")


def read(chat: Mapping[str, Any]) -> Collection:
    """Read one chat. A batch is the messages of one day, which its first message names as ``March-15-2024``."""
    batches = [(number, list(said)) for number, said in groupby(chat["messages"], key=itemgetter("batch"))]
    return Collection(
        chat["id"],
        tuple(
            Occasion(tuple(map(_unit, said)), f"batch {number}", parse_beam_day(said[0]["time_anchor"]))
            for number, said in batches
        ),
        tuple(
            Question(asked["question"], asked["type"].replace("_", " "), tuple(map(str, asked["gold"])))
            for asked in chat["questions"]
        ),
    )


def _unit(message: Mapping[str, Any]) -> Unit:
    return Unit(str(message["id"]), message["content"], message["role"])
