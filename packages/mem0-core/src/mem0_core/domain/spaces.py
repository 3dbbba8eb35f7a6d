"""Spaces: memory that a team shares. A space has members, and each member has a role.

The memories of a space have a user id of the library's own, so that no caller's id reaches them.
docs/explanation/spaces.md describes the design.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, NotRequired, TypedDict

from mem0_core._system.records import dataclass
from mem0_core.domain.records import (
    RESERVED_PREFIX,
    AddResult,
    InternalId,
    Scope,
    SpaceId,
    is_valid_text,
)
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.errors import AccessError, InputError, ScopeError

SPACE_PREFIX = f"{RESERVED_PREFIX}space/"
MAX_MEMBER_CHARS = 200  # an id up to this length is its own partition key, by which the database checks a member
MAX_PENDING_WRITES = 1_000
"""Writes of one space that may wait for approval."""

_MAX_NAME_CHARS = 100
_MEMBER_PREFIX = f"{RESERVED_PREFIX}member/"

WriteKind = Literal["add", "update", "delete"]


class SpaceRole(StrEnum):
    """Role of a member: a reader recalls, a writer also adds and changes memories, an owner also manages the space."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"

    def covers(self, needed: SpaceRole) -> bool:
        """Return True if this role may do everything that `needed` may."""
        order = tuple(SpaceRole)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Membership:
    """The membership of one user in one space."""

    space: str
    role: SpaceRole
    requires_approval: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a space; `since` is the ISO 8601 time at which the user joined."""

    user_id: str
    role: SpaceRole
    since: str


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write to a space that waits for an owner.

    Attributes:
        arguments: arguments of the write, as JSON values.
    """

    id: str
    space: str
    author: str
    kind: WriteKind
    arguments: dict[str, Any]
    at: str


class SpaceDict(TypedDict):
    """A space, and the caller's role in it."""

    space: str
    role: str
    requires_approval: bool


class MemberDict(TypedDict):
    """A member of a space."""

    user_id: str
    role: str
    since: str


class PendingWriteDict(TypedDict):
    """A write to a space that waits for an owner; `arguments` are those of the write."""

    id: str
    space: str
    author: str
    kind: str
    arguments: dict[str, Any]
    created_at: str


class SpaceAddResult(AddResult):
    """Result of an add of a principal; `pending_write` is the id of a write that waits for approval."""

    pending_write: NotRequired[str]


def check_space_name(name: object) -> str:
    """Return the name of a space.

    Raises:
        InputError: it is not a text of 1 to 100 printable characters, or contains a slash.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or not is_valid_text(name):
        raise InputError(
            f"space must be a non-empty printable text, not {describe_value(name)}; pass, for example, 'team'"
        )
    if "/" in name or name != name.strip() or len(name) > _MAX_NAME_CHARS:
        raise InputError(
            f"space must have at most {_MAX_NAME_CHARS} characters, no slash, and no blanks at its ends, not {name!r}"
        )
    return name


def check_member(user_id: object) -> str:
    """Return the id of a user who is, or becomes, a member.

    Raises:
        ScopeError: it is no valid user id, or is too long.
    """
    if user_id is None:
        raise ScopeError("user_id is missing; pass the id of the user, for example 'alice'")
    name = Scope(user_id).user_id  # type: ignore[arg-type]  # checked by `Scope`
    assert name is not None
    if len(name) > MAX_MEMBER_CHARS or isinstance(name, InternalId):
        raise ScopeError(f"user_id of a member must have at most {MAX_MEMBER_CHARS} characters, not {len(name)}")
    return name


def parse_role(role: object) -> SpaceRole:
    """Return the role that an argument names.

    Raises:
        InputError: there is no such role.
    """
    names = [one.value for one in SpaceRole]
    if role not in names:
        raise InputError(f"unknown role {role!r}{suggest(str(role), names)}; pass one of {', '.join(names)}")
    return SpaceRole(role)


def space_scope(name: str, member: str = "") -> Scope:
    """Return the scope of a space's memories.

    Args:
        member: user on whose behalf the scope is used, which the database checks too; empty for the library itself.
    """
    return Scope(SpaceId(f"{SPACE_PREFIX}{name}", member))


def find_space_name(scope: Scope) -> str | None:
    """Return the name of the space that a scope belongs to; None for any other scope."""
    user_id = scope.user_id
    is_space = isinstance(user_id, InternalId) and user_id.startswith(SPACE_PREFIX)
    return user_id[len(SPACE_PREFIX) :] if user_id is not None and is_space else None


def member_source(member: str) -> InternalId:
    """Return the source of the messages that a member writes to spaces; a caller cannot name it."""
    return InternalId(f"{_MEMBER_PREFIX}{member}")


def refuse_access(space: str, member: str, needed: SpaceRole | None = None) -> AccessError:
    """Return the error of a member without the role `needed`; without a role, of a user who is no member.

    A space that does not exist has the same error as one of others.
    """
    if needed is None:
        return AccessError(f"{member!r} is not a member of a space {space!r}")
    return AccessError(f"{member!r} is not {needed.value} of the space {space!r}; an owner can change the role")
