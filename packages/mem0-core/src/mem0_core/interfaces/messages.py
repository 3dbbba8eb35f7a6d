"""Conversations: the log of messages and the rolling summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from mem0_core.domain.records import Message, Scope


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a conversation up to one message.

    Attributes:
        last_message_row: row of that message.
        valid_from: ISO 8601 time of that message.
    """

    text: str
    last_message_row: int
    valid_from: str


class MessageLog(Protocol):
    """The messages of each scope, oldest first, and their summaries."""

    def messages(self, scope: Scope, *, limit: int | None = None) -> list[Message]:
        """Return the last `limit` messages of a scope, including those of narrower scopes."""
        ...

    def messages_before(self, scope: Scope, row: int | None, *, limit: int) -> list[Message]:
        """Return the last `limit` messages of exactly this scope before a row, or of all if `row` is None."""
        ...

    def messages_since(self, scope: Scope, row: int, *, limit: int) -> list[Message]:
        """Return the first `limit` messages of exactly this scope after a row."""
        ...

    def count_unsummarized(self, scope: Scope, *, limit: int) -> int:
        """Count the messages of exactly this scope since its last summary, up to `limit`."""
        ...

    def are_stored(self, scope: Scope, messages: Sequence[Message]) -> list[bool]:
        """Return for each message with a key whether exactly this scope has it; False for the others."""
        ...

    def latest_summary(self, scope: Scope, *, as_of: str | None = None) -> Summary | None:
        """Return the last summary of exactly this scope, or the last one valid at `as_of`."""
        ...
