"""Recalled contexts that outlive a pause: the memories of a turn may change while it waits for a person."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mem0_core.flow import Flow, do

FRESH_SECONDS = 10  # no check before: a turn without a pause reads nothing, and a check takes under a millisecond


@dataclass(frozen=True, slots=True)
class RecallStamp:
    """The memories that a recalled context depends on.

    Attributes:
        hashes: hash of each memory by id; None if only its existence counts.
        checked_at: time of the recall, or of the last check.
    """

    hashes: Mapping[str, str | None]
    checked_at: float

    @classmethod
    def of(cls, recalled: Mapping[str, Any]) -> Self:
        """Return the stamp of a result of `Memory.context`."""
        hashes: dict[str, str | None] = {id: None for relation in recalled["relations"] for id in relation["memories"]}
        hashes |= {memory["id"]: memory.get("hash") for memory in recalled["memories"] if "id" in memory}
        return cls(hashes, time.monotonic())

    def renew(self) -> Self:
        """Return the stamp of a context that was checked now."""
        return type(self)(self.hashes, time.monotonic())

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self.checked_at < FRESH_SECONDS

    def is_current(self, store: Any) -> Flow[bool]:
        """Return True if none of the memories was deleted or changed."""
        if not self.hashes:
            return True
        found = yield from do(store.get_many, list(self.hashes))
        return all(id in found and known in (None, found[id].hash) for id, known in self.hashes.items())
