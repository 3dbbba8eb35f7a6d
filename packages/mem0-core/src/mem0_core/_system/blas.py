"""Limit of numpy's matrix products to the calling thread.

numpy's BLAS shares each product between threads that wait for each other in a loop. On a busy machine one product then
takes up to a hundred times as long, and the products of a short text are too small to gain from a second thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_has_no_threads = False
_users = 0
_limit: Any = None


def start_no_blas_threads() -> None:
    """Let numpy start no threads for matrix products, unless it is imported already: for processes that end soon.

    Starting them takes a sixth of the processor time of numpy's import. A setting of the user takes precedence.
    """
    global _has_no_threads
    if "numpy" not in sys.modules:
        _has_no_threads = os.environ.setdefault("OPENBLAS_NUM_THREADS", "1") == "1"


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Compute matrix products on the calling thread.

    The setting belongs to the whole process: the first thread that enters makes it, and the last one restores it.
    """
    global _users, _limit
    if _has_no_threads:
        yield
        return
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
