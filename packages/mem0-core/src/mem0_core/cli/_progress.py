"""Progress bar: one line on standard error that is redrawn in place."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self, TextIO

_REDRAW_SECONDS = 0.1


class ProgressBar:
    """Shows the progress of a task; call it with the number of finished items and the total (None if unknown).

    Args:
        label: Name of the task.
        enabled: Show the bar. Default: only if the stream is a terminal.
    """

    def __init__(self, label: str, *, enabled: bool | None = None, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = self._stream.isatty() if enabled is None else enabled
        self._is_terminal = self._stream.isatty()
        self._label = label
        self._started_at = time.monotonic()
        self._drawn_at = float("-inf")
        self._last_line = ""

    def __call__(self, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if self._enabled and (now - self._drawn_at >= _REDRAW_SECONDS or done == total):
            self._drawn_at = now
            self._draw(self._format_line(done, total, now - self._started_at))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled and self._last_line and self._is_terminal:
            self._stream.write("\n")
            self._stream.flush()

    def _format_line(self, done: int, total: int | None, seconds: float) -> str:
        speed = f"{done / seconds:.0f}/s" if seconds > 0.5 and done else ""
        if not total:
            return f"{self._label}: {done} {speed}".rstrip()
        left = f", {(total - done) * seconds / done:.0f} s left" if speed and done < total else ""
        width = max(10, min(30, shutil.get_terminal_size().columns - len(self._label) - 45))
        filled = width * done // total
        bar = "#" * filled + "." * (width - filled)
        return f"{self._label} [{bar}] {done}/{total} {100 * done // total}% {speed}{left}".rstrip()

    def _draw(self, line: str) -> None:
        if line == self._last_line:
            return
        self._stream.write(f"\r{line.ljust(len(self._last_line))}" if self._is_terminal else f"{line}\n")
        self._stream.flush()
        self._last_line = line
