"""The word index of memories, and the features that ranking reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import Scope

WordKind = Literal["term", "name", "speaker", "slot"]
"""The kinds of words by which memories are found."""


class MemoryFeatures(NamedTuple):
    """The features of one memory that ranking reads.

    Attributes:
        row: the memory's row in the store; 0 for a candidate without one (an unprocessed message, a past text).
        session: number of the run or the add the memory belongs to; None for a memory without neighbors.
        word_count: number of words, stop words included.
        is_question: True if the text ends with a question.
        terms: the terms of the text (`language.terms.analyze_text`), separated by spaces.
        names: the names in the text, separated by newlines.
        timestamp: ISO 8601 creation time.
        previous_row, next_row: rows of the neighbors in the session.
        slots: the slots of the text (`language.statements.slots_of`), separated by newlines.
        useful, useless: counts of feedback, as in `domain.records.MemoryItem`.
        statements: the statements of the text (`language.statements.pack_statements`); empty if the store keeps none.
    """

    row: int
    session: int | None
    word_count: int
    is_question: bool
    terms: str
    names: str
    actor_id: str | None
    role: str | None
    timestamp: str
    previous_row: int | None = None
    next_row: int | None = None
    slots: str = ""
    useful: int = 0
    useless: int = 0
    statements: str = ""


class MemoryFeatureSet(NamedTuple):
    """Features of several memories.

    Attributes:
        memories: one entry for each memory.
        neighbor_terms: row -> terms of the session neighbors that are not among `memories`.
        cosines: row -> cosine to the query's vector, for all these rows. Empty if the store would have to read all
            the vectors for it; the vector index then computes them.
    """

    memories: list[MemoryFeatures]
    neighbor_terms: dict[int, str]
    cosines: Mapping[int, float]


class Lexicon(Protocol):
    """The words of memories. `mem0_core.language.terms` defines terms, names and slots."""

    def postings(
        self, scope: Scope, words: Sequence[str], *, kind: WordKind, limit: int
    ) -> dict[str, NDArray[np.int64]]:
        """Return the rows of the memories that contain each word, at most `limit` per word.

        Args:
            kind: look the words up as terms of memories, as names in them, as words of a speaker's name, or as keys of
                slots.

        Returns:
            word -> int64 rows; words without a match are left out.
        """
        ...

    def memory_features(
        self, scope: Scope, rows: Sequence[int], *, today: str, vector: NDArray[np.float32]
    ) -> MemoryFeatureSet:
        """Return the features of the memories among `rows` in `scope` that have not expired before `today`.

        Args:
            vector: the query's vector, (dims,).
        """
        ...


class FeatureChanges(NamedTuple):
    """Features that changed in a scope.

    Attributes:
        memories: features of new and changed memories, without neighbors.
        expiration_dates: ``YYYY-MM-DD`` for each of `memories`; None for those that do not expire.
        removed: rows of deleted memories.
    """

    memories: list[MemoryFeatures]
    expiration_dates: list[str | None]
    removed: list[int]


class ScopeState(NamedTuple):
    """Everything that decides what a search of a scope finds; equal states mean that it finds the same.

    Attributes:
        epoch: as of `ChangePosition`.
        space: name and dims of the store's embedder; None before the first vector.
        seq: sequence number of the last change of a memory in the partition of the scope, 0 for none.
        nodes, relations: sequence numbers of the last changes in the graph of the scope, 0 for none.
        past: number of earlier texts of memories, and row of the last.
        queued: number of queued messages, and row of the last job.
    """

    epoch: str
    space: tuple[str, int] | None
    seq: int
    nodes: int
    relations: int
    past: tuple[int, ...]
    queued: tuple[int, ...]


@runtime_checkable
class VersionedLexicon(Protocol):
    """A `Lexicon` whose features a search may keep in memory."""

    def state(self, scope: Scope) -> ScopeState:
        """Return the present state of a scope."""
        ...

    def version(self) -> object:
        """Return a value that changes with every commit to the store, of this process or of another one."""
        ...

    def feature_changes(self, scope: Scope, *, after: int, limit: int) -> FeatureChanges:
        """Return the memories of a scope that changed after a sequence number, expired ones included.

        Args:
            after: 0 for all memories of the scope.
            limit: maximum number of `memories`.
        """
        ...
