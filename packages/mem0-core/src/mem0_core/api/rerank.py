"""`rerank` and `arerank`: the rerank stage for texts outside a memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mem0_core._system.boundary import aconvert_errors, convert_errors
from mem0_core.api.factory import resolve_reranker
from mem0_core.domain.recipes import DEFAULT_RERANKER
from mem0_core.flow import arun, run
from mem0_core.interfaces import Reranker
from mem0_core.recall.rerank import rerank as rerank_flow


@convert_errors
def rerank(
    query: str,
    texts: Sequence[str],
    *,
    reranker: Reranker | Mapping[str, Any] | str | None = DEFAULT_RERANKER,
    scores: Sequence[float] | None = None,
    top_n: int | None = None,
    weight: float | None = None,
) -> list[tuple[int, float]]:
    """Order texts by relevance to `query`; return (position, score in [0, 1]) of each, best first.

    Args:
        reranker: An instance, a name, ``"provider:model"`` or ``{"provider", "config"}``; None uses only `scores`. The
            default is the small cross-encoder of mem0-models. The model that a string names stays loaded for the next
            call with that name.
        scores, top_n, weight: See `mem0_core.recall.rerank.rerank`.

    Raises:
        ConfigError: The provider does not exist.
        QueryError, InputError, ModelError: See `mem0_core.recall.rerank.rerank`.
    """
    return run(rerank_flow(_build_reranker(reranker), query, texts, scores=scores, top_n=top_n, weight=weight))


@aconvert_errors
async def arerank(
    query: str,
    texts: Sequence[str],
    *,
    reranker: Reranker | Mapping[str, Any] | str | None = DEFAULT_RERANKER,
    scores: Sequence[float] | None = None,
    top_n: int | None = None,
    weight: float | None = None,
) -> list[tuple[int, float]]:
    """Async version of `rerank`."""
    return await arun(rerank_flow(_build_reranker(reranker), query, texts, scores=scores, top_n=top_n, weight=weight))


def _build_reranker(reranker: Reranker | Mapping[str, Any] | str | None) -> Reranker | None:
    if isinstance(reranker, str):
        return _load_reranker(reranker)
    return resolve_reranker(None, reranker)


@lru_cache(maxsize=1)  # a model takes seconds to load and gigabytes of memory
def _load_reranker(reranker: str) -> Reranker | None:
    return resolve_reranker(None, reranker)
