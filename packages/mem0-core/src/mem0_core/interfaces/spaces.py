"""Members of spaces, and the writes that wait for an owner's approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from mem0_core.domain.spaces import Member, Membership, PendingWrite, SpaceRole


@dataclass(frozen=True, slots=True)
class ForgottenMember:
    """The result of `SpaceLedger.forget_member`.

    Attributes:
        empty_spaces: spaces without any member.
        has_messages: True if spaces contain messages of the user.
    """

    empty_spaces: Sequence[str] = ()
    has_messages: bool = False


class SpaceLedger(Protocol):
    """The spaces of a store. Each write checks the role of `by` in its own transaction, and raises AccessError."""

    def create(self, space: str, owner: str, *, requires_approval: bool, at: str) -> bool:
        """Create a space with one owner; return False if the name is taken."""
        ...

    def membership(self, space: str, member: str) -> Membership | None:
        """Return the membership of a user in a space, or None."""
        ...

    def memberships(self, member: str) -> list[Membership]:
        """Return all memberships of a user, ordered by the names of the spaces."""
        ...

    def members(self, space: str) -> list[Member]:
        """Return the members of a space, longest-standing first."""
        ...

    def set_member(self, space: str, member: str, role: SpaceRole, *, by: str, at: str) -> bool:
        """Add a member or change a role; return False, and change nothing, if the space would have no owner."""
        ...

    def remove_member(self, space: str, member: str, *, by: str) -> bool:
        """Remove a member with their pending writes; return False, and change nothing, if no owner would remain.

        A member may remove themselves. A user who is no member is removed already.
        """
        ...

    def set_approval(self, space: str, requires_approval: bool, *, by: str) -> None:
        """Set if writes of members who are not owners wait for approval."""
        ...

    def propose(self, write: PendingWrite) -> None:
        """Store a write that waits for approval, and record it in the change feed.

        Raises:
            LimitError: too many writes wait already.
        """
        ...

    def pending_writes(self, space: str, *, author: str | None = None) -> list[PendingWrite]:
        """Return the pending writes of a space (of one author), oldest first."""
        ...

    def pending_write(self, write_id: str) -> PendingWrite | None:
        """Return a pending write, or None."""
        ...

    def settle(self, write: PendingWrite, event: Literal["APPROVE", "REJECT"], *, by: str) -> bool:
        """Remove a pending write and record its outcome; return False if it was settled already.

        An author may reject their own write.
        """
        ...

    def forget_member(self, member: str) -> ForgottenMember:
        """Remove a user from all spaces, with their pending writes and their name in the events of spaces.

        Where no owner remains, the longest-standing writer becomes one, or else the longest-standing reader.
        """
        ...
