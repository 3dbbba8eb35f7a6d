"""Caches of functions whose arguments are texts of users: words, names, statements, queries and ids."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from mem0_core._system.locks import SignalSafeLock

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

__all__ = ["clear_text_caches", "text_cache"]

_T = TypeVar("_T")

_caches: WeakSet[_lru_cache_wrapper[Any]] = WeakSet()
_lock = SignalSafeLock()  # a tokenizer that another thread loads adds a cache


def text_cache(maxsize: int) -> Callable[[Callable[..., _T]], _lru_cache_wrapper[_T]]:
    """Decorate a function of texts as `functools.lru_cache` does; `clear_text_caches` clears its cache."""

    def decorate(function: Callable[..., _T]) -> _lru_cache_wrapper[_T]:
        cached = lru_cache(maxsize)(function)
        with _lock:
            _caches.add(cached)
        return cached

    return decorate


def clear_text_caches() -> None:
    """Clear the caches of all functions of texts: after an erasure, no erased text must stay in memory."""
    with _lock:
        caches = list(_caches)
    for cached in caches:
        cached.cache_clear()
