"""The change feed of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mem0_core.domain.feed import ChangeEvent
    from mem0_core.domain.records import Scope


class ChangeFeed(Protocol):
    """The changes of memories in one order. Each is written in the transaction of the change itself."""

    def changes(self, scope: Scope | None, *, after: int, limit: int) -> list[ChangeEvent]:
        """Return up to `limit` changes of a scope (None: of all scopes) with numbers above `after`, in their order.

        A change that is committed later has a number above all that were returned.
        """
        ...

    def latest_time(self, scope: Scope) -> str | None:
        """Return the ISO 8601 time of the latest change in the partition of a scope; None without one.

        It never goes back: a change that is written while the clock is behind has the time of the change before it.
        """
        ...

    def changes_of(self, scopes: Sequence[Scope], *, after: int, limit: int) -> list[ChangeEvent]:
        """Return the changes of several scopes as `changes` does of one."""
        ...
