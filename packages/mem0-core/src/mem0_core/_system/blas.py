"""Limit of numpy's matrix products to the calling thread.

numpy's BLAS shares each product between threads that wait for each other in a loop. On a busy machine one product then
takes up to a hundred times as long, and the products of a short text are too small to gain from a second thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["use_one_blas_thread"]

_lock = Lock()
_users = 0
_limit: Any = None


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Compute matrix products on the calling thread.

    The setting belongs to the whole process: the first thread that enters makes it, and the last one restores it.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _find_libraries().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@cache
def _find_libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
