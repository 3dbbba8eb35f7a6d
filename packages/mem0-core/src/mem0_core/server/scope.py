"""Scope of a connection: the owner of the memories that it reads and writes."""

from __future__ import annotations

from typing import TypedDict

from mem0_core._system.records import dataclass
from mem0_core.errors import ScopeError


class ScopeIds(TypedDict):
    """Ids of an owner, as arguments of the methods of `Memory`."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None


@dataclass(frozen=True, slots=True)
class ServerScope:
    """Owner of the memories that one connection can read and write; no request can widen it.

    Attributes:
        user_id, agent_id, run_id: Ids of the owner; at least one is required.
        is_read_only: Refuse all changes.
        has_spaces: Also reach the spaces of the user, if there is a user and no other id.

    Raises:
        ScopeError: There is no id.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    is_read_only: bool = False
    has_spaces: bool = True

    def __post_init__(self) -> None:
        if not any((self.user_id, self.agent_id, self.run_id)):
            raise ScopeError("a connection needs a user_id, an agent_id or a run_id; configure one for the server")

    @property
    def ids(self) -> ScopeIds:
        """The ids as arguments of the methods of `Memory`."""
        return {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}
