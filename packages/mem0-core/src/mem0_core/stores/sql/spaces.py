"""Spaces in SQL tables: their members, and the writes that wait for approval."""

from __future__ import annotations

from typing import Any, Literal, get_args

from mem0_core.domain.records import Scope
from mem0_core.domain.spaces import (
    MAX_PENDING_WRITES,
    Member,
    Membership,
    PendingWrite,
    SpaceRole,
    WriteKind,
    find_space_name,
    member_source,
    refuse_access,
    space_scope,
)
from mem0_core.errors import LimitError, StoreError
from mem0_core.interfaces import ForgottenMember
from mem0_core.stores.sql.engine.dialect import Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    StepMethods,
    Steps,
    execute,
    fetch_rows,
    insert_sql,
    read_method,
    write_method,
)
from mem0_core.stores.sql.feed import insert_space_event
from mem0_core.stores.sql.rows import scope_from_ids, scope_ids

SPACE_TABLES = ("space_writes", "space_members", "spaces")

_IDS = "user_id, agent_id, run_id"
_WRITE_COLUMNS = f"id, {_IDS}, author, kind, arguments, at"


class SqlSpaceLedger(StepMethods):
    """A `SpaceLedger`. The members and the pending writes of a space are in the partition of its memories."""

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect: Dialect = db.dialect

    # --- spaces and members ------------------------------------------------------------------------------------------

    @write_method
    def create(self, space: str, owner: str, *, requires_approval: bool, at: str) -> Steps[bool]:
        dialect, scope = self._dialect, space_scope(space)
        yield from dialect.lock_scope(scope)
        where, values = dialect.in_scope(scope)
        if (yield from fetch_rows(f"SELECT 1 FROM spaces WHERE {where}", values)):
            return False
        yield from execute(
            insert_sql("spaces", f"{dialect.exact}{_IDS}, requires_approval, created_at"),
            (*dialect.exact_values(scope), *scope_ids(scope), requires_approval, at),
        )
        yield from self._insert_member(scope, owner, SpaceRole.OWNER, at)
        return True

    @read_method
    def membership(self, space: str, member: str) -> Steps[Membership | None]:
        scope = space_scope(space)
        yield from self._dialect.set_scope(scope)
        return (yield from self._read_membership(scope, member))

    @read_method
    def memberships(self, member: str) -> Steps[list[Membership]]:
        dialect = self._dialect
        yield from dialect.set_scope(Scope(member))  # a policy lets a user see their own memberships
        where, values = dialect.equals_text("m.member", member)
        rows = yield from fetch_rows(
            "SELECT m.user_id, m.role, s.requires_approval FROM space_members AS m"
            f" JOIN spaces AS s ON {dialect.same_part('s', 'm')}s.user_id = m.user_id WHERE {where} ORDER BY m.user_id",
            values,
        )
        return [Membership(_space_of(user_id), SpaceRole(role), bool(waits)) for user_id, role, waits in rows]

    @read_method
    def members(self, space: str) -> Steps[list[Member]]:
        scope = space_scope(space)
        yield from self._dialect.set_scope(scope)
        return (yield from self._read_members(scope))

    @write_method
    def set_member(self, space: str, member: str, role: SpaceRole, *, by: str, at: str) -> Steps[bool]:
        scope = yield from self._lock(space, by, SpaceRole.OWNER)
        members = {one.user_id: one.role for one in (yield from self._read_members(scope))}
        if not _has_owner({**members, member: role}):
            return False
        if member not in members:
            yield from self._insert_member(scope, member, role, at)
        else:
            where, values = self._among_members(scope, member)
            yield from execute(f"UPDATE space_members SET role = ? WHERE {where}", (role.value, *values))
        return True

    @write_method
    def remove_member(self, space: str, member: str, *, by: str) -> Steps[bool]:
        scope = yield from self._lock(space, by, SpaceRole.READER if by == member else SpaceRole.OWNER)
        rest = {one.user_id: one.role for one in (yield from self._read_members(scope)) if one.user_id != member}
        if not _has_owner(rest):
            return False
        yield from self._delete_member(scope, member)
        return True

    @write_method
    def set_approval(self, space: str, requires_approval: bool, *, by: str) -> Steps[None]:
        scope = yield from self._lock(space, by, SpaceRole.OWNER)
        where, values = self._dialect.in_scope(scope)
        yield from execute(f"UPDATE spaces SET requires_approval = ? WHERE {where}", (requires_approval, *values))

    @write_method
    def forget_member(self, member: str) -> Steps[ForgottenMember]:
        dialect = self._dialect
        yield from dialect.lock_all()
        where, values = dialect.equals_text("member", member)
        joined = yield from fetch_rows(f"SELECT user_id FROM space_members WHERE {where} ORDER BY user_id", values)
        empty: list[str] = []
        for (space,) in joined:
            scope = scope_from_ids(space, None, None)
            yield from self._delete_member(scope, member)
            if (left := (yield from self._read_members(scope))) and not _has_owner({m.user_id: m.role for m in left}):
                heir = max(left, key=lambda one: one.role is SpaceRole.WRITER)  # the first of equal ones
                where, values = self._among_members(scope, heir.user_id)
                yield from execute(f"UPDATE space_members SET role = ? WHERE {where}", (SpaceRole.OWNER.value, *values))
            elif not left:
                empty.append(_space_of(space))
        yield from self._forget_events(member)
        source, sources = dialect.equals_text("source", member_source(member))
        has_messages = yield from fetch_rows(f"SELECT 1 FROM messages WHERE {source} LIMIT 1", sources)
        return ForgottenMember(tuple(empty), bool(has_messages))

    # --- pending writes ----------------------------------------------------------------------------------------------

    @write_method
    def propose(self, write: PendingWrite) -> Steps[None]:
        dialect = self._dialect
        scope = yield from self._lock(write.space, write.author, SpaceRole.WRITER)
        where, values = dialect.in_scope(scope)
        [(count,)] = yield from fetch_rows(f"SELECT count(*) FROM space_writes WHERE {where}", values)
        if count >= MAX_PENDING_WRITES:
            raise LimitError(f"{count} writes of the space {write.space!r} wait for approval; {MAX_PENDING_WRITES} may")
        yield from execute(
            insert_sql("space_writes", f"{dialect.exact}{_WRITE_COLUMNS}"),
            (
                *(*dialect.exact_values(scope), write.id, *scope_ids(scope), write.author, write.kind),
                *(dialect.to_json(write.arguments), write.at),
            ),
        )
        yield from insert_space_event(dialect, scope, "PROPOSE", write.id, write.author)

    @read_method
    def pending_writes(self, space: str, *, author: str | None = None) -> Steps[list[PendingWrite]]:
        scope = space_scope(space)
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope)
        by_author, authors = ("", []) if author is None else (" AND author = ?", [author])
        return (yield from self._read_writes(f"{where}{by_author}", [*values, *authors]))

    @read_method
    def pending_write(self, write_id: str) -> Steps[PendingWrite | None]:
        yield from self._dialect.set_scope(None)
        found = yield from self._read_writes("id = ?", [write_id])
        return found[0] if found else None

    @write_method
    def settle(self, write: PendingWrite, event: Literal["APPROVE", "REJECT"], *, by: str) -> Steps[bool]:
        dialect = self._dialect
        is_withdrawn = event == "REJECT" and by == write.author
        scope = yield from self._lock(write.space, by, SpaceRole.READER if is_withdrawn else SpaceRole.OWNER)
        where, values = dialect.in_scope(scope)
        if not (yield from execute(f"DELETE FROM space_writes WHERE {where} AND id = ?", (*values, write.id))):
            return False
        yield from insert_space_event(dialect, scope, event, write.id, by)
        return True

    # --- rows --------------------------------------------------------------------------------------------------------

    def _lock(self, space: str, by: str, needed: SpaceRole) -> Steps[Scope]:
        """Hold a space until the end of the transaction, and return its scope.

        Raises:
            AccessError: `by` has not the role that is needed.
        """
        scope = space_scope(space)
        yield from self._dialect.lock_scope(scope)
        membership = yield from self._read_membership(scope, by)
        if membership is None:
            raise refuse_access(space, by)
        if not membership.role.covers(needed):
            raise refuse_access(space, by, needed)
        return scope

    def _read_membership(self, scope: Scope, member: str) -> Steps[Membership | None]:
        where, values = self._dialect.in_scope(scope, "m")
        rows = yield from fetch_rows(
            "SELECT m.role, s.requires_approval FROM space_members AS m"
            f" JOIN spaces AS s ON {self._dialect.same_part('s', 'm')}s.user_id = m.user_id"
            f" WHERE {where} AND m.member = ?",
            (*values, member),
        )
        name = find_space_name(scope)
        assert name is not None
        return Membership(name, SpaceRole(rows[0][0]), bool(rows[0][1])) if rows else None

    def _read_members(self, scope: Scope) -> Steps[list[Member]]:
        where, values = self._dialect.in_scope(scope)
        rows = yield from fetch_rows(
            f"SELECT member, role, since FROM space_members WHERE {where} ORDER BY since, row", values
        )
        return [Member(member, SpaceRole(role), since) for member, role, since in rows]

    def _read_writes(self, where: str, values: list[Any]) -> Steps[list[PendingWrite]]:
        rows = yield from fetch_rows(f"SELECT {_WRITE_COLUMNS} FROM space_writes WHERE {where} ORDER BY row", values)
        return [
            PendingWrite(write_id, _space_of(space), author, _read_kind(kind), self._dialect.from_json(given), at)
            for write_id, space, _, _, author, kind, given, at in rows
        ]

    def _among_members(self, scope: Scope, member: str) -> tuple[str, list[Any]]:
        where, values = self._dialect.in_scope(scope)
        return f"{where} AND member = ?", [*values, member]

    def _insert_member(self, scope: Scope, member: str, role: SpaceRole, at: str) -> Steps[None]:
        dialect = self._dialect
        yield from execute(
            insert_sql("space_members", f"{dialect.exact}{_IDS}, member, role, since"),
            (*dialect.exact_values(scope), *scope_ids(scope), member, role.value, at),
        )

    def _delete_member(self, scope: Scope, member: str) -> Steps[None]:
        where, values = self._among_members(scope, member)
        yield from execute(f"DELETE FROM space_members WHERE {where}", values)
        where, values = self._dialect.in_scope(scope)
        yield from execute(f"DELETE FROM space_writes WHERE {where} AND author = ?", (*values, member))

    def _forget_events(self, member: str) -> Steps[None]:
        """Remove the name of a user from the events of spaces."""
        named = "event IN ('PROPOSE', 'APPROVE', 'REJECT') AND actor_id = ?"
        yield from execute(f"UPDATE events SET actor_id = NULL WHERE {named}", (member,))
        yield from execute("UPDATE events SET source = NULL WHERE source = ?", (member_source(member),))


def _space_of(user_id: str) -> str:
    """Return the name of the space with a user id."""
    name = find_space_name(scope_from_ids(user_id, None, None))
    if name is None:
        raise StoreError(f"{user_id!r} is not the id of a space")
    return name


def _read_kind(kind: str) -> WriteKind:
    known: dict[str, WriteKind] = {one: one for one in get_args(WriteKind)}
    return known[kind]


def _has_owner(roles: dict[str, SpaceRole]) -> bool:
    return SpaceRole.OWNER in roles.values()
