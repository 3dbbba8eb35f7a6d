"""Embedders that measure their own time, to separate it from ours."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mem0_core.interfaces import Embedder

__all__ = ["CachedEmbedder", "Clocks", "RenamedEmbedder", "TimedEmbedder", "clocks"]


class TimedEmbedder:
    """Wraps an embedder and adds up its time since the last `take`."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._spent = Clocks(0.0, 0.0)

    @property
    def dims(self) -> int:
        return self._inner.dims

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def inline(self) -> bool:
        return bool(getattr(self._inner, "inline", False))

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        started = clocks()
        vectors = self._inner.embed(texts, kind=kind)
        ended = clocks()
        self._spent = Clocks(
            self._spent.wall + ended.wall - started.wall,
            self._spent.cpu + ended.cpu - started.cpu,
        )
        return vectors

    def take(self) -> Clocks:
        spent, self._spent = self._spent, Clocks(0.0, 0.0)
        return spent


class Clocks(NamedTuple):
    """Seconds of wall time, and of this process's CPU time."""

    wall: float
    cpu: float


def clocks() -> Clocks:
    """Return both clocks, from an arbitrary start."""
    return Clocks(time.perf_counter(), time.process_time())


class RenamedEmbedder:
    """Wraps an embedder under the name of the one that a store was filled with."""

    def __init__(self, inner: Embedder, name: str) -> None:
        self._inner = inner
        self.name = name
        self.dims = inner.dims

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        return self._inner.embed(texts, kind=kind)


class CachedEmbedder:
    """Wraps an embedder and embeds each text once, so that several runs over the same texts share the work."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[tuple[str, str], NDArray[np.float32]] = {}

    @property
    def dims(self) -> int:
        return self._inner.dims

    @property
    def name(self) -> str:
        return self._inner.name

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if (kind, text) not in self._known]
        if missing:
            fresh = self._inner.embed(missing, kind=kind)
            self._known.update(((kind, text), vector) for text, vector in zip(missing, fresh, strict=True))
        return np.stack([self._known[kind, text] for text in texts])
