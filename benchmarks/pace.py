"""The current pace of the machine, measured by a fixed piece of work that other load slows down.

On shared machines the same call takes 4 ms now and 7 a minute later. A figure with a bar in milliseconds is therefore
measured in many small parts, each at a quiet moment as far as patience allows, with the pace before and after it. The
figure is that of the quiet parts; the figure of all parts is shown next to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

__all__ = ["Pace", "Part", "quiet"]

T = TypeVar("T")

_STEPS = 30_000  # of the work, about a millisecond
_QUIET = 1.2  # times the best pace; a neighbor on the same core makes it 1.6 to 1.9
_LOOKS, _PAUSE = 20, 0.05  # at first, and seconds between looks
_ENOUGH = 10  # fewest parts that give a figure


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One part of a measurement, and the slower of the paces before and after it, in seconds."""

    took: T
    pace: float


class Pace:
    """Measures the pace and remembers the best.

    Args:
        patience: seconds that one measurement may wait for quiet moments, see `begin`.
    """

    def __init__(self, patience: float) -> None:
        self.best = inf
        self._patience = self._left = patience
        for _ in range(_LOOKS):
            self.look()
            self._wait()

    def begin(self) -> None:
        """Begin a measurement with fresh patience: an earlier one may have used it up."""
        self._left = self._patience

    def look(self) -> float:
        """Return seconds for the fixed piece of work."""
        started, total = time.perf_counter(), 0
        for step in range(_STEPS):
            total += step * step
        took = time.perf_counter() - started
        self.best = min(self.best, took)
        return took

    def settled(self) -> float:
        """Return the pace at the next quiet moment, or when patience runs out."""
        took = self.look()
        while not self._is_calm(took) and self._wait():
            took = self.look()
        return took

    def _wait(self) -> bool:
        if self._left <= 0:
            return False
        time.sleep(_PAUSE)
        self._left -= _PAUSE
        return True

    def is_quiet(self, part: Part[T]) -> bool:
        return self._is_calm(part.pace)

    def _is_calm(self, pace: float) -> bool:
        return pace <= _QUIET * self.best


def quiet(pace: Pace, parts: Sequence[Part[T]], figure: Callable[[list[T]], float], unit: str) -> tuple[float, str]:
    """Return a figure of the quiet parts and a note on them; of all parts if too few were quiet."""
    calm = [part.took for part in parts if pace.is_quiet(part)]
    everything = figure([part.took for part in parts])
    if len(calm) < min(_ENOUGH, len(parts)):
        return everything, f"NOT QUIET but in {len(calm)} of {len(parts)} parts: of all"
    return figure(calm), f"quiet in {len(calm)} of {len(parts)} parts; of all {everything:.2f} {unit}"
