"""Times of statements that come without a time: a later statement is never older than an earlier one."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mem0_core.domain.records import Scope

_TICK = timedelta(microseconds=1)


class StatementClock:
    """A clock that does not go back.

    The wall clock of a host can be set back, and the clocks of two hosts differ. A statement then gets the time just
    after the latest one of its partition, so that the order of commits decides which of two statements is the newer
    one. Other partitions are not affected.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = datetime.min.replace(tzinfo=UTC)
        self._ahead: dict[Scope, datetime] = {}

    def now(self, partition: Scope | None = None, latest_change: str | None = None) -> str:
        """Return the time of a statement in ISO 8601, later than the others of its partition.

        Args:
            partition: partition of the statement.
            latest_change: time of the latest change of the partition, which another process may have made.
        """
        with self._lock:
            now = self._latest = max(datetime.now(UTC), self._latest + _TICK)
            if partition is None:
                return now.isoformat()
            latest = self._ahead.get(partition)
            if latest_change is not None:
                changed = datetime.fromisoformat(latest_change)
                latest = changed if latest is None else max(latest, changed)
            if latest is not None and latest >= now:
                now = self._ahead[partition] = latest + _TICK
            else:
                self._ahead.pop(partition, None)
            return now.isoformat()
