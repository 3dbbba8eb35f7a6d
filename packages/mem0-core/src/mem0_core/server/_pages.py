"""Pages of a list of memories: a cursor names the last memory of a page, so that pages stay right during writes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.server._problems import HttpError

MAX_CURSOR_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """End of a page.

    Attributes:
        created_at: Time of the last memory on the page.
        memory_id: Its id.
        skipped: Number of memories of the same time before it, and itself.
    """

    created_at: str
    memory_id: str
    skipped: int

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor in a query string.

        Raises:
            HttpError: 400, if no page ended with it.
        """
        try:
            if len(text) > MAX_CURSOR_CHARS:
                raise ValueError(text)
            created_at, memory_id, skipped = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        except (ValueError, TypeError, RecursionError):
            raise HttpError(400, "cursor is not a next_cursor of an earlier response") from None
        if not isinstance(created_at, str) or not isinstance(memory_id, str) or not isinstance(skipped, int):
            raise HttpError(400, "cursor is not a next_cursor of an earlier response")
        return cls(created_at, memory_id, max(0, min(skipped, 2**20)))

    def __str__(self) -> str:
        row = json.dumps([self.created_at, self.memory_id, self.skipped])
        return base64.urlsafe_b64encode(row.encode()).decode("ascii")

    @property
    def filters(self) -> dict[str, Any]:
        """Condition of the memories from its time on."""
        return {"created_at": {"gte": self.created_at}}

    def skip(self, memories: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the memories after it.

        If its memory was deleted, all of its time are returned: a page may repeat memories then, but omits none.
        """
        ids = [memory["id"] for memory in memories]
        return memories[ids.index(self.memory_id) + 1 :] if self.memory_id in ids else memories

    @classmethod
    def after(cls, page: Sequence[Mapping[str, Any]], last: Cursor | None) -> Cursor:
        """Return the cursor of the page that follows a page and, before it, a cursor."""
        end = page[-1]
        same = sum(memory["created_at"] == end["created_at"] for memory in page)
        if last is not None and last.created_at == end["created_at"]:
            same += last.skipped
        return cls(end["created_at"], end["id"], same)
