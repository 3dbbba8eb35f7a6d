"""Row-level security of PostgreSQL: the role of a service sees the rows of one scope, in every table that there is.

The tables, views and functions come from the server's catalog. Owners fill the store one after the other, so a row
belongs to the owner who was the first to have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from mem0_core import Memory
from mem0_core.contracts import AT, SPACE
from mem0_core.domain.records import Message, Scope
from mem0_core.domain.spaces import PendingWrite, SpaceRole, find_space_name, space_scope
from mem0_core.interfaces import Lease, Summary
from mem0_core.stores.postgres.engine.dialect import POSTGRES
from mem0_core.stores.postgres.schema import SCHEMA_VERSIONS, grant_script
from mem0_core.stores.postgres.store import PostgresStore
from mem0_core.stores.sql.rows import partition_key
from mem0_core.testing import HashEmbedder

psycopg = pytest.importorskip("psycopg")

pytestmark = pytest.mark.needs_server

SCHEMA = "mem0_tests_rls"
ROLE = "mem0_reader"

OWNERS = (
    Scope("alice"),
    Scope("alice", "helper"),
    Scope("alice", "other", "monday"),
    Scope("bob", "helper"),
    Scope("bob", None, "monday"),
    Scope(None, "helper"),
    Scope(None, "helper", "monday"),
    Scope(None, None, "monday"),
    Scope("agent_id=helper"),
    Scope("*' OR 'a' = 'a"),
    space_scope("team"),
)
READERS = (
    *OWNERS,
    Scope("bob"),
    Scope("alice", None, "monday"),
    Scope("nobody"),
    Scope(None, "nobody"),
    Scope(None, None, "nobody"),
    Scope("alice", "nobody"),
    Scope("alice", "helper", "nobody"),
    Scope(None, "helper", "nobody"),
    Scope("user_id=alice"),
    Scope("langgraph:memories/alice"),
)
RowId = tuple[str, str]
"""Table of a row, and its physical address."""


def token_of(scope: Scope) -> str:
    """Return a word that only texts of this scope contain."""
    return f"Zz{OWNERS.index(scope)}qx"


def ids_of(scope: Scope) -> dict[str, Any]:
    return {axis.value: value for axis, value in scope.ids.items()}


def fill(store: PostgresStore, memory: Memory, scope: Scope) -> None:
    """Give a scope rows in every table that holds data of a scope."""
    word, ids = token_of(scope), ids_of(scope)
    for text in (f"My sister {word}a works at {word}corp", f"My friend {word}b works at {word}corporation"):
        memory.add(text, **ids)
    changed = memory.add(f"I live in {word}town", **ids)["results"][0]["id"]
    memory.update(changed, f"I live in {word}ville")
    memory.add(f"I moved to {word}city", **ids)
    gone = memory.add(f"My brother {word}c lives in {word}burg", **ids)["results"][0]["id"]
    memory.delete(gone)
    memory.add_many([f"{word} one", f"{word} two"], key=f"{word} import", **ids)
    memory.merge("entities", names=[f"{word}corp", f"{word}corporation"], dry_run=False, **ids)
    store.jobs.enqueue(scope, "summary", at=AT)
    leased = store.jobs.lease("worker", seconds=60)
    store.save_summary(scope, Summary(f"{word} summary", 1, AT), Lease("worker", tuple(job.row for job in leased)))
    store.jobs.enqueue(scope, "remember", at=AT, messages=[Message("user", f"{word} waits")], error="parked")
    if (space := find_space_name(scope)) is not None:
        store.spaces.create(space, "carol", requires_approval=True, at=AT)
        store.spaces.set_member(space, "dora", SpaceRole.READER, by="carol", at=AT)
        store.spaces.propose(PendingWrite("w", space, "carol", "add", {"text": word}, AT))


class Catalog:
    """Relations and functions of one schema, as its owner sees them."""

    def __init__(self, db: Any, schema: str) -> None:
        self.db, self.schema = db, schema

    def relations(self, kinds: str) -> list[str]:
        found = self.db.execute(
            "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = %s::regnamespace AND c.relkind = ANY(%s)"
            " ORDER BY 1",
            (self.schema, list(kinds)),
        )
        return [name for (name,) in found]

    def tables(self) -> list[str]:
        """Return the tables that are no partitions."""
        found = self.db.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')"
            " AND NOT relispartition ORDER BY 1",
            (self.schema,),
        )
        return [name for (name,) in found]

    def unprotected(self) -> list[str]:
        """Return the tables without row security, the views that read as their owner, and such functions."""
        found = self.db.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND ("
            " (relkind IN ('r', 'p') AND NOT relrowsecurity) OR relkind IN ('m', 'f')"
            " OR (relkind = 'v' AND NOT coalesce('security_invoker=true' = ANY (reloptions), false)))"
            " UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace AND prosecdef",
            {"schema": self.schema},
        )
        return [name for (name,) in found]

    def functions(self) -> list[tuple[str, list[str]]]:
        """Return the names of the functions that SQL can call, each with the types of its arguments."""
        found = self.db.execute(
            "SELECT proname, proargtypes::regtype[]::text[] FROM pg_proc WHERE pronamespace = %s::regnamespace"
            " AND prorettype <> 'trigger'::regtype",
            (self.schema,),
        )
        return [(name, list(types)) for name, types in found]

    def row_ids(self) -> set[RowId]:
        return {
            (table, f"{part}{place}")
            for table in self.tables()
            for part, place in self.db.execute(f"SELECT tableoid::regclass::text, ctid::text FROM {table}")
        }


@contextmanager
def reading_as(db: Any, scope: Scope | None, member: str = "*") -> Iterator[None]:
    """Restrict a transaction to a scope, as the store does; None sets nothing.

    Args:
        member: user on whose behalf a space is read or written.
    """
    with db.transaction():
        if scope is not None:
            ids = {axis.value: value for axis, value in scope.ids.items() if axis is not scope.partition[0]}
            db.execute("SELECT set_config('mem0.scope', %s, true)", (partition_key(scope),))
            for name in ("agent_id", "run_id"):
                db.execute(f"SELECT set_config('mem0.{name}', %s, true)", (ids.get(name, ""),))
            if find_space_name(scope) is not None:
                db.execute("SELECT set_config('mem0.member', %s, true)", (member,))
        yield


@pytest.fixture(scope="module")
def owner(postgres_server_url: str) -> Iterator[Any]:
    """A connection of the owner of the tables, to a schema that a migration brought to the newest version."""
    with psycopg.connect(postgres_server_url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        yield db
        db.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


@pytest.fixture(scope="module")
def filled(owner: Any, postgres_server_url: str) -> dict[RowId, Scope]:
    """The owner of each row of a store that every owner has filled."""
    store = PostgresStore(postgres_server_url, schema=SCHEMA, partitions=2)
    memory = Memory(store=store, embedder=HashEmbedder(), graph=True)
    owner.execute(f"SET search_path = {SCHEMA}, public")
    catalog, owners, known = Catalog(owner, SCHEMA), dict[RowId, Scope](), set[RowId]()
    for scope in OWNERS:
        fill(store, memory, scope)
        rows = catalog.row_ids()
        owners.update((row, scope) for row in rows - known)
        known |= rows
    memory.close()
    store.close()
    live = catalog.row_ids()
    return {row: scope for row, scope in owners.items() if row in live and row[0] != "meta"}


@pytest.fixture(scope="module")
def reader(owner: Any, filled: Mapping[RowId, Scope], postgres_server_url: str) -> Iterator[Any]:
    """A connection of the application's role, which may read even what the store does not grant to it."""
    if owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
        owner.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'app'")
    owner.execute(grant_script(SCHEMA, ROLE).encode())
    owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}")
    url = psycopg.conninfo.make_conninfo(postgres_server_url, user=ROLE, password="app")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"SET search_path = {SCHEMA}, public")
        yield db
    owner.execute(f"DROP OWNED BY {ROLE}")


def test_every_table_view_and_function_of_the_catalog_is_protected(owner: Any, filled: Mapping[RowId, Scope]) -> None:
    catalog = Catalog(owner, SCHEMA)
    assert catalog.unprotected() == []
    held = {table for table, _ in filled}
    assert set(catalog.tables()) - held == {"meta"}, "each table has rows, or the other tests prove nothing"
    assert catalog.functions()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CREATE TABLE notes (part text, note text)", "notes"),
        ("CREATE VIEW texts AS SELECT text FROM memories", "texts"),
        ("CREATE MATERIALIZED VIEW copies AS SELECT text FROM memories", "copies"),
        ("CREATE FUNCTION peek() RETURNS text LANGUAGE sql SECURITY DEFINER RETURN 'x'", "peek"),
    ],
)
def test_a_new_relation_without_a_policy_is_noticed(
    owner: Any, filled: Mapping[RowId, Scope], statement: str, name: str
) -> None:
    with owner.transaction(force_rollback=True):
        owner.execute(statement)
        assert Catalog(owner, SCHEMA).unprotected() == [name]


@pytest.mark.parametrize("scope", [*READERS, None], ids=str)
def test_a_scope_sees_its_own_rows_of_every_table_and_no_other(
    owner: Any, reader: Any, filled: Mapping[RowId, Scope], scope: Scope | None
) -> None:
    catalog = Catalog(owner, SCHEMA)
    own = {row for row, other in filled.items() if scope is not None and scope.contains(other)}
    with reading_as(reader, scope):
        seen = Catalog(reader, SCHEMA).row_ids()
        seen = {row for row in seen if row[0] != "meta"}
        assert seen - own == set(), "rows of others"
        assert own - seen == set(), "rows that are missing"
        allowed = {token_of(other) for other in OWNERS if scope is not None and scope.contains(other)}
        foreign = [token_of(other) for other in OWNERS if token_of(other) not in allowed]
        for name in catalog.relations("rpvmf"):
            shown = "\n".join(row for (row,) in reader.execute(f"SELECT r::text FROM {name} AS r"))
            assert [word for word in foreign if word.lower() in shown.lower()] == [], name
        for partition in set(catalog.relations("r")) - set(catalog.tables()):
            assert reader.execute(f"SELECT count(*) FROM {partition}").fetchone() == (0,), "no policy, no rows"


@pytest.mark.parametrize("scope", [Scope("nobody"), None], ids=str)
def test_no_function_or_statistic_shows_the_data_of_others(
    owner: Any, reader: Any, filled: Mapping[RowId, Scope], scope: Scope | None
) -> None:
    owner.execute("ANALYZE memories, history, sketches")
    values: dict[str, list[Any]] = {"text": ["*", "user_id=alice", "Hello"], "bigint": [0, 1, 2**40]}
    with reading_as(reader, scope):
        for name, types in Catalog(owner, SCHEMA).functions():
            for place in range(3):
                arguments = [values[kind][place] for kind in types]
                marks = ", ".join(f"%s::{kind}" for kind in types)
                [(answer,)] = reader.execute(f"SELECT {name}({marks})::text", arguments).fetchall()
                assert "qx" not in str(answer), name
        shown = reader.execute("SELECT s::text FROM pg_stats AS s WHERE schemaname = %s", (SCHEMA,)).fetchall()
        assert [row for row in shown if "qx" in row[0]] == []


@pytest.mark.parametrize("scope", [Scope("nobody"), Scope(None, "nobody"), Scope(None, None, "nobody"), Scope("alice")])
def test_a_scope_can_neither_change_nor_plant_rows_of_others(
    owner: Any, reader: Any, filled: Mapping[RowId, Scope], scope: Scope
) -> None:
    catalog = Catalog(owner, SCHEMA)
    for table in set(catalog.tables()) - {"meta"}:
        foreign = {row for row, other in filled.items() if row[0].startswith(table) and not scope.contains(other)}
        with owner.transaction(force_rollback=True):
            owner.execute(f"SET LOCAL ROLE {ROLE}")
            with reading_as(owner, scope):
                owner.execute(f"UPDATE {table} SET part = part")
                owner.execute(f"DELETE FROM {table}") if table not in ("nodes", "messages", "edges") else None
            owner.execute("RESET ROLE")
            assert foreign <= catalog.row_ids() | {row for row in filled if not row[0].startswith(table)}, table
    columns = "id, memory_id, event, is_deleted, part"
    with pytest.raises(psycopg.errors.InsufficientPrivilege), reading_as(reader, scope):
        reader.execute(f"INSERT INTO history ({columns}) VALUES ('x', 'x', 'ADD', 0, 'user_id=bob')")


@pytest.mark.parametrize(("member", "is_member"), [("carol", True), ("dora", True), ("eve", False), ("", False)])
def test_only_members_see_the_rows_of_a_space(
    owner: Any, reader: Any, filled: Mapping[RowId, Scope], member: str, is_member: bool
) -> None:
    team = space_scope("team")
    own = {row for row, scope in filled.items() if scope == team and not row[0].startswith("space")}
    for scope in (team, Scope("alice")):
        with reading_as(reader, scope, member):
            if scope != team:  # the setting alone opens nothing
                reader.execute("SELECT set_config('mem0.member', %s, true)", (member,))
            seen = Catalog(reader, SCHEMA).row_ids() & own
        assert seen == (own if is_member and scope == team else set())


@pytest.mark.parametrize(("member", "may_write"), [("carol", True), ("dora", False), ("eve", False), ("", False)])
def test_only_writers_and_owners_change_the_rows_of_a_space(
    owner: Any, reader: Any, filled: Mapping[RowId, Scope], member: str, may_write: bool
) -> None:
    team = space_scope("team")
    for table in sorted({table for (table, _), scope in filled.items() if scope == team}):
        if table.startswith("space"):
            continue
        with owner.transaction(force_rollback=True):
            owner.execute(f"SET LOCAL ROLE {ROLE}")
            with reading_as(owner, team, member):
                changed = owner.execute(f"UPDATE {table} SET part = part").rowcount
                assert (changed > 0) is may_write, table
    insert = "INSERT INTO history (id, memory_id, event, is_deleted, part) VALUES ('x', 'x', 'ADD', 0, %s)"
    with reader.transaction(force_rollback=True), reading_as(reader, team, member):
        if may_write:
            reader.execute(insert, (partition_key(team),))
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), reader.transaction():
                reader.execute(insert, (partition_key(team),))


def test_a_memory_serves_every_kind_of_scope_as_the_restricted_role(
    owner: Any, reader: Any, filled: Mapping[RowId, Scope], postgres_server_url: str
) -> None:
    url = psycopg.conninfo.make_conninfo(postgres_server_url, user=ROLE, password="app")
    store = PostgresStore(url, schema=SCHEMA)
    assert store._db.is_row_security_active
    with Memory(store=store, embedder=HashEmbedder(), graph=True) as memory:
        for scope in READERS:
            ids = ids_of(scope)
            own = sorted(token_of(other) for other in OWNERS if scope.contains(other))
            found = memory.get_all(**ids)
            texts = " ".join(one["memory"] for one in found["results"])
            assert [word for word in map(token_of, OWNERS) if word in texts] == own, scope
            listed = " ".join(f"{one['source']} {one['destination']}" for one in found["relations"]).lower()
            assert [word for word in map(token_of, OWNERS) if word.lower() in listed] == own, scope
            hits = memory.search("Where does my sister work?", limit=50, **ids)["results"]
            assert bool(hits) == bool(own)
            assert memory.search("live in town", limit=50, **ids)["results"] != [] or not own
    store.close()


def insert_first_version(owner: Any, schema: str) -> None:
    """Insert a memory into the tables of the first schema version."""
    scope = Scope("alice")
    exact = POSTGRES.exact_values(scope)
    vector = "[" + ",".join(["1"] + ["0"] * (SPACE[1] - 1)) + "]"
    owner.execute(
        f"INSERT INTO {schema}.memories (part, exact, row, id, user_id, text, hash, metadata, created_at, seq,"
        " valid_from, same) VALUES (%s, %s, 1, 'kept-id', 'alice', 'kept', 'h', '{}', %s, 1, %s, 'same')",
        (*exact, AT, AT),
    )
    owner.execute(f"INSERT INTO {schema}.vectors VALUES (%s, 1, %s::public.vector)", (exact[0], vector))
    owner.execute(f"SELECT setval('{schema}.next_row', 1), setval('{schema}.next_seq', 1)")


def test_a_store_of_the_first_version_is_closed_by_the_migration(owner: Any, postgres_server_url: str) -> None:
    from mem0_core.stores.postgres import schema as postgres_schema

    old, versions = f"{SCHEMA}_old", SCHEMA_VERSIONS
    owner.execute(f"DROP SCHEMA IF EXISTS {old} CASCADE")
    try:
        postgres_schema.SCHEMA_VERSIONS = versions[:1]
        store = PostgresStore(postgres_server_url, schema=old, partitions=2)
        store.close()
        insert_first_version(owner, old)
        assert Catalog(owner, old).unprotected() != []
        postgres_schema.SCHEMA_VERSIONS = versions
        store = PostgresStore(postgres_server_url, schema=old)
        assert [item.text for item in store.list_memories(Scope("alice"))] == ["kept"]
        assert np.isfinite(store.memory_vectors.vectors([store.row(store.list_memories(None)[0].id) or 0])[1]).all()
        store.close()
        assert Catalog(owner, old).unprotected() == []
    finally:
        postgres_schema.SCHEMA_VERSIONS = versions
        owner.execute(f"DROP SCHEMA IF EXISTS {old} CASCADE")
