"""Base class of the views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mem0_core.api.options import unwrap_memory
from mem0_core.domain.records import Scope
from mem0_core.errors import InputError
from mem0_core.memory import AsyncMemory, Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_ATTEMPTS = 3
"""Attempts of a write while other writers change the same memories."""


class ScopedView:
    """The memories of one scope, seen as something else.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user_id, agent_id, run_id: owner of the view; give at least one.

    Raises:
        ScopeError: no id is given, or an id is invalid.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> None:
        self._memory = unwrap_memory(memory)
        self._scope = Scope(user_id, agent_id, run_id)

    @property
    def memory(self) -> Memory:
        """Memory of the view."""
        return self._memory

    @property
    def scope(self) -> Scope:
        """Owner of the view."""
        return self._scope


def unit_vector(vector: Sequence[float], dims: int) -> NDArray[np.float32]:
    """Return a query vector in unit length.

    Raises:
        InputError: it has not `dims` numbers.
    """
    import numpy as np

    given = np.asarray(vector, np.float32)
    if given.shape != (dims,):
        raise InputError(
            f"the query vector has shape {given.shape}, and the memory's embedder makes vectors of {dims} dimensions;"
            " embed queries with the memory's embedder"
        )
    length = float(np.linalg.norm(given))
    return given / length if length else given
