"""Ranking features of memories by columns, one array per feature: a search computes over all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.interfaces import MemoryFeatures


class MemoryColumns(NamedTuple):
    """Features of memories, see `interfaces.MemoryFeatures`; each column has one entry per memory, (n,).

    Attributes:
        rows: 0 for a memory that is not in the store in this form.
        sessions: 0 for a memory without neighbors.
        previous_rows, next_rows: 0 for none.
        roles: role of the speaker; None for a person with a name.
        has_slots: False if the text is known to make no statements about slots.
    """

    rows: NDArray[np.int64]
    sessions: NDArray[np.int64]
    word_counts: NDArray[np.int64]
    is_question: NDArray[np.bool_]
    has_slots: NDArray[np.bool_]
    previous_rows: NDArray[np.int64]
    next_rows: NDArray[np.int64]
    useful: NDArray[np.int64]
    useless: NDArray[np.int64]
    roles: NDArray[np.object_]
    names: NDArray[np.object_]
    actor_ids: NDArray[np.object_]
    timestamps: NDArray[np.object_]

    @classmethod
    def of(cls, features: Sequence[MemoryFeatures]) -> MemoryColumns:
        import numpy as np

        def number(values: Iterable[Any]) -> NDArray[np.int64]:
            return np.array([value or 0 for value in values], dtype=np.int64)

        columns: Iterable[tuple[Any, ...]] = zip(*features, strict=True) if features else [()] * 15
        rows, sessions, word_counts, is_question, _, names, actor_ids, roles, timestamps, *others = columns
        previous_rows, next_rows, slots, useful, useless, _ = others
        return cls(
            rows=number(rows),
            sessions=number(sessions),
            word_counts=number(word_counts),
            is_question=number(is_question) != 0,
            has_slots=to_objects(slots) != "",
            previous_rows=number(previous_rows),
            next_rows=number(next_rows),
            useful=number(useful),
            useless=number(useless),
            roles=to_objects(role if name is None else None for role, name in zip(roles, actor_ids, strict=True)),
            names=to_objects(names),
            actor_ids=to_objects(actor_ids),
            timestamps=to_objects(timestamps),
        )

    def take(self, indexes: NDArray[Any] | slice) -> MemoryColumns:
        """Return the memories at these places, or those that a mask or a slice selects."""
        taken: Iterator[NDArray[Any]] = (column[indexes] for column in self)
        return MemoryColumns._make(taken)

    def join(self, other: MemoryColumns) -> MemoryColumns:
        """Return these memories and then the others."""
        import numpy as np

        joined: Iterator[NDArray[Any]] = map(np.concatenate, zip(self, other, strict=True))
        return MemoryColumns._make(joined)


def to_objects(values: Iterable[object]) -> NDArray[np.object_]:
    """Return values as an array of objects, (n,)."""
    import numpy as np

    listed = list(values)
    array = np.empty(len(listed), dtype=np.object_)
    array[:] = listed
    return array
