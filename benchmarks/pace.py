"""How fast the machine is just now: whoever else uses its processors shows in a fixed piece of work.

Where others come and go, the same call takes 4 ms now and 7 a minute later. So what is measured against a bar in
milliseconds is measured in many small parts, each at a quiet moment as far as patience goes, with a look at the pace
before and after it; and the figure is that of the parts in which the machine was quiet. What all parts gave stands
beside it.
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
_QUIET = 1.2  # times the best pace there was; what shares a core with us makes it 1.6 to 1.9
_LOOKS, _PAUSE = 20, 0.05  # at first, and seconds between looks
_ENOUGH = 10  # parts, of which there is something to say


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of a measurement, and the slower of the paces before and after it, in seconds."""

    took: T
    pace: float


class Pace:
    """Looks at the pace from time to time, and knows the best there was.

    Args:
        patience: how many seconds it may wait for quiet moments in one measurement, see `begin`.
    """

    def __init__(self, patience: float) -> None:
        self.best = inf
        self._patience = self._left = patience
        for _ in range(_LOOKS):
            self.look()
            self._wait()

    def begin(self) -> None:
        """Begin a measurement, with fresh patience: what came before may have had no quiet moment."""
        self._left = self._patience

    def look(self) -> float:
        """Seconds for the fixed piece of work."""
        started, total = time.perf_counter(), 0
        for step in range(_STEPS):
            total += step * step
        took = time.perf_counter() - started
        self.best = min(self.best, took)
        return took

    def settled(self) -> float:
        """The pace at the next quiet moment, or when there is no patience left."""
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
    """A figure of the parts in which the machine was quiet, and a note on them; of all where that were too few."""
    calm = [part.took for part in parts if pace.is_quiet(part)]
    everything = figure([part.took for part in parts])
    if len(calm) < min(_ENOUGH, len(parts)):
        return everything, f"NOT QUIET but in {len(calm)} of {len(parts)} parts: of all"
    return figure(calm), f"quiet in {len(calm)} of {len(parts)} parts; of all {everything:.2f} {unit}"
