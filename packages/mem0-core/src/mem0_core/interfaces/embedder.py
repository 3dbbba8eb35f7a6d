"""Embedding models and the check that their vectors fit a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from mem0_core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """A model that turns text into vectors. Two embedders with the same `name` are interchangeable."""

    @property
    def dims(self) -> int: ...
    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed a batch of texts. Returns (n, dims) float32; each row has L2 norm 1."""
        ...


def check_embedding_space(held: tuple[str, int] | None, offered: tuple[str, int]) -> None:
    """Refuse an embedder with another vector space than that of a store.

    Args:
        held: (name, dims) of the store's embedder, None for a store without vectors.
        offered: (name, dims) of the embedder at hand.

    Raises:
        ConfigError: the two differ; the message names both and the command that re-embeds the store.
    """
    if held is not None and tuple(held) != tuple(offered):
        raise ConfigError(
            f"embedder: this store was embedded with {held[0]!r} ({held[1]} dims), not {offered[0]!r}"
            f" ({offered[1]} dims); open it with that embedder, or re-embed it with memory.rebuild()"
            " or the command `mem0-core rebuild`"
        )
