"""Reader of LoCoMo: conversations turn by turn, and questions with the turns that answer them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.collection import Collection, Dataset, Occasion, Question, Unit
from benchmarks.plan import ROOT
from mem0_core.evaluation import LOCOMO_CATEGORIES, parse_locomo_evidence

__all__ = ["ADVERSARIAL", "PATH", "Conversation", "Turn", "dataset", "load", "read"]

PATH = ROOT.parent / "shared" / "data" / "locomo_dev.json.gz"
ADVERSARIAL = "adversarial"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a speaker, and the time of its session (ISO 8601)."""

    id: str
    speaker: str
    text: str
    caption: str
    said_at: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of two speakers.

    Attributes:
        facts: facts that a model extracted from each turn, by turn id; never searched when turns are scored.
    """

    name: str
    sessions: tuple[tuple[Turn, ...], ...]
    questions: tuple[Question, ...]
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session]


def load(path: Path = PATH) -> list[Conversation]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [read(sample) for sample in json.load(file)]


def dataset(conversations: Sequence[Conversation]) -> Dataset:
    """Return the turns, one session per occasion; the first speaker is the user."""
    return Dataset("LoCoMo", "turn", tuple(map(_collection, conversations)), unanswerable=ADVERSARIAL)


def _collection(one: Conversation) -> Collection:
    first = one.turns[0].speaker

    def unit(turn: Turn) -> Unit:
        return Unit(turn.id, turn.text, "user" if turn.speaker == first else "assistant", turn.speaker)

    spoken = filter(None, one.sessions)
    occasions = tuple(Occasion(tuple(map(unit, turns)), said_at=turns[0].said_at) for turns in spoken)
    return Collection(one.name, occasions, one.questions)


def read(sample: Mapping[str, Any]) -> Conversation:
    """Read one conversation in LoCoMo's format. Evidence that names no turn, and blank turns, are left out."""
    talk = sample["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    sessions = tuple(
        tuple(_turn(turn, _moment(talk[f"session_{number}_date_time"])) for turn in talk[f"session_{number}"])
        for number in numbers
    )
    spoken = tuple(tuple(turn for turn in session if turn.text.strip()) for session in sessions)
    known = {turn.id for session in spoken for turn in session}
    questions = tuple(
        Question(entry["question"], LOCOMO_CATEGORIES[entry["category"]], _gold(entry.get("evidence") or (), known))
        for entry in sample["qa"]
    )
    return Conversation(sample["sample_id"], spoken, questions, _facts(sample.get("observation") or {}, known))


def _facts(observations: Mapping[str, Any], known: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the facts by turn; an observation is a list of ``[fact, turn or turns]`` by session and speaker."""
    listed = [pair for of_session in observations.values() for pairs in of_session.values() for pair in pairs]
    facts: dict[str, tuple[str, ...]] = {}
    for fact, evidence in listed:
        for turn in _gold([evidence] if isinstance(evidence, str) else evidence, known):
            facts[turn] = (*facts.get(turn, ()), fact)
    return facts


def _turn(turn: Mapping[str, Any], said_at: str) -> Turn:
    return Turn(turn["dia_id"], turn["speaker"], turn["text"], turn.get("blip_caption") or "", said_at)


def _moment(text: str) -> str:
    """Parse ``1:56 pm on 8 May, 2023``; LoCoMo names no time zone."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()


def _gold(evidence: Sequence[str], known: set[str]) -> tuple[str, ...]:
    """Return the turns that evidence strings name, as far as they exist."""
    return tuple(turn for turn in parse_locomo_evidence(evidence) if turn in known)
