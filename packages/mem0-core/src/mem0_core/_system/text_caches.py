"""Caches of functions whose arguments are texts of users: words, names, statements, queries and ids."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from mem0_core._system.locks import SignalSafeLock

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

_T = TypeVar("_T")

_MAX_EPOCHS = 1_000  # that are known; an older one is taken for a new one

_caches: WeakSet[_lru_cache_wrapper[Any]] = WeakSet()
_epochs: dict[str, None] = {}  # at which this process has found a store, the last one last
_lock = SignalSafeLock()  # a tokenizer that another thread loads adds a cache


def text_cache(maxsize: int, *, max_chars: int | None = None) -> Callable[[Callable[..., _T]], Callable[..., _T]]:
    """Decorate a function of texts as `functools.lru_cache` does; `clear_text_caches` clears its cache.

    Args:
        max_chars: characters of the first argument from which nothing is cached; None for no limit.
    """

    def decorate(function: Callable[..., _T]) -> Callable[..., _T]:
        cached = lru_cache(maxsize)(function)
        with _lock:
            _caches.add(cached)
        if max_chars is None:
            return cached

        @wraps(function)
        def cached_if_short(text: str, *args: Any, **kwargs: Any) -> _T:
            return (cached if len(text) <= max_chars else function)(text, *args, **kwargs)

        return cached_if_short

    return decorate


def clear_text_caches() -> None:
    """Clear the caches of all functions of texts: after an erasure, no erased text must stay in memory."""
    with _lock:
        caches = list(_caches)
    for cached in caches:
        cached.cache_clear()


def clear_for_epoch(before: str, epoch: str) -> None:
    """Clear all caches unless texts of an earlier epoch of the store were dropped from them before.

    Args:
        before: the epoch at which the caller found the store last; empty for its first look.
        epoch: the present one. After an erasure, perhaps by another process, it is new.
    """
    with _lock:
        is_known = not before and epoch in _epochs  # whatever was added since is of this epoch
        _epochs.pop(epoch, None)
        _epochs[epoch] = None
        for oldest in list(_epochs)[:-_MAX_EPOCHS]:
            del _epochs[oldest]
    if not is_known and before != epoch:
        clear_text_caches()
