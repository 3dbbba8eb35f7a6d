"""A bar for long work: one line of standard error, drawn over and over."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Bar"]

_EVERY = 0.1  # seconds between two drawings


class Bar:
    """Shows how far some work has come; call it with how much is done, and how much there is (None: nobody knows).

    Args:
        label: what is being done.
        shown: True or False, or None for only where a person watches (standard error is a terminal).
    """

    def __init__(self, label: str, *, shown: bool | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._shown = self._stream.isatty() if shown is None else shown
        self._in_place = self._stream.isatty()
        self._label = label
        self._began = time.monotonic()
        self._drawn_at = float("-inf")
        self._last = ""

    def __call__(self, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if self._shown and (now - self._drawn_at >= _EVERY or done == total):
            self._drawn_at = now
            self._draw(self._line(done, total, now - self._began))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._last and self._in_place:
            self._stream.write("\n")
            self._stream.flush()

    def _line(self, done: int, total: int | None, seconds: float) -> str:
        speed = f"{done / seconds:.0f}/s" if seconds > 0.5 and done else ""
        if not total:
            return f"{self._label}: {done} {speed}".rstrip()
        left = f", {(total - done) * seconds / done:.0f} s left" if speed and done < total else ""
        width = max(10, min(30, shutil.get_terminal_size().columns - len(self._label) - 45))
        filled = width * done // total
        bar = "#" * filled + "." * (width - filled)
        return f"{self._label} [{bar}] {done}/{total} {100 * done // total}% {speed}{left}".rstrip()

    def _draw(self, line: str) -> None:
        if line == self._last:
            return
        self._stream.write(f"\r{line.ljust(len(self._last))}" if self._in_place else f"{line}\n")
        self._stream.flush()
        self._last = line
