"""Test collections: texts to remember, add by add, and questions with the units that answer them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

__all__ = ["Collection", "Dataset", "Occasion", "Question", "Unit", "answered"]


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of retrieval: a turn, a message, or a passage."""

    id: str
    text: str
    role: str = "user"
    speaker: str | None = None

    @property
    def spoken(self) -> str:
        """Return the text after the speaker's name, if known: the embedded part of a memory."""
        return self.text if self.speaker is None else f"{self.speaker}: {self.text}"


@dataclass(frozen=True, slots=True)
class Occasion:
    """The messages of one add and their time (ISO 8601)."""

    units: tuple[Unit, ...]
    run_id: str | None = None
    said_at: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its kind, and the ids of the units that answer it; empty if none does."""

    text: str
    kind: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """The data of one user."""

    name: str
    occasions: tuple[Occasion, ...]
    questions: tuple[Question, ...]

    @property
    def units(self) -> list[Unit]:
        return [unit for occasion in self.occasions for unit in occasion.units]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Collections that are scored together.

    Attributes:
        unit: name of a unit.
        headline: the main measure.
        unanswerable: the kind of questions that the collection does not answer; scored separately, if at all.
    """

    name: str
    unit: str
    collections: tuple[Collection, ...]
    headline: str = "R@10"
    unanswerable: str | None = None

    @property
    def questions(self) -> Iterator[tuple[Collection, Question]]:
        return ((one, question) for one in self.collections for question in one.questions)

    def scored(self, question: Question) -> bool:
        """Return True if a question counts in the dataset's score."""
        return bool(question.gold) and question.kind != self.unanswerable

    def part(self, occasions: int | None, questions: int | None) -> Dataset:
        """The first occasions of each collection and the first questions they answer; None for all."""
        kept = []
        for one in self.collections:
            first = dataclasses.replace(one, occasions=one.occasions[:occasions])
            known = {unit.id for unit in first.units}
            kept.append(dataclasses.replace(first, questions=answered(one.questions, known, questions)))
        return dataclasses.replace(self, collections=tuple(kept))


def answered(questions: Sequence[Question], known: AbstractSet[str], most: int | None) -> tuple[Question, ...]:
    """Return the first questions with known gold units; None for all of them."""
    return tuple(question for question in questions if known >= set(question.gold))[:most]
