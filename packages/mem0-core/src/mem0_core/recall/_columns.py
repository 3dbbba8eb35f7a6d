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

        numbers = [
            (
                *(one.row, one.session or 0, one.word_count, one.is_question),
                bool(one.slots),
                *(one.previous_row or 0, one.next_row or 0, one.useful, one.useless),
            )
            for one in features
        ]
        columns = np.array(numbers, dtype=np.int64).reshape(-1, 9).T
        return cls(
            rows=columns[0],
            sessions=columns[1],
            word_counts=columns[2],
            is_question=columns[3] != 0,
            has_slots=columns[4] != 0,
            previous_rows=columns[5],
            next_rows=columns[6],
            useful=columns[7],
            useless=columns[8],
            roles=to_objects(one.role if one.actor_id is None else None for one in features),
            names=to_objects(one.names for one in features),
            actor_ids=to_objects(one.actor_id for one in features),
            timestamps=to_objects(one.timestamp for one in features),
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
