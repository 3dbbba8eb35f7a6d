"""A lock for short sections that a signal handler may interrupt."""

from __future__ import annotations

from threading import RLock
from types import TracebackType

from mem0_core.errors import StoreError


class SignalSafeLock:
    """A mutual-exclusion lock that raises an error where `threading.Lock` would wait for its own thread forever.

    A signal handler runs in the main thread between two instructions of whatever it interrupts. If that is a section
    of this lock, a call of the handler that needs the lock fails instead of hanging.
    """

    __slots__ = ("_inner", "_is_held")

    def __init__(self) -> None:
        self._inner = RLock()
        self._is_held = False

    def __enter__(self) -> None:
        self._inner.acquire()
        if self._is_held:
            self._inner.release()
            raise StoreError(
                "called from a signal handler in the middle of another call of the same thread;"
                " set a flag in the handler, and make the call later"
            )
        self._is_held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_held = False
        self._inner.release()
