"""Tables of a PostgreSQL store, laid out for many users and many hosts.

The column ``part`` holds the first id of a scope (``user_id=alice``). It is part of every key, and tables are
hash-partitioned by it, or distributed by it on Citus. Statements about one user touch one partition.

The column ``exact`` is a digest of all three ids, for rows of exactly one scope. Ids have any length and index entries
do not, so ids are indexed by their hash. Text is compared by code points (collation "C"), as in Python.

The schema version is the row ``schema`` of `meta`. A migration takes a lock: when many hosts open a new version at
once, one migrates and the others wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from mem0_core._system.records import dataclass
from mem0_core.domain.spaces import SPACE_PREFIX
from mem0_core.errors import StoreError
from mem0_core.stores.sql.schema import (
    TABLES,
    Ddl,
    feed_script,
    feedback_script,
    provenance_script,
    shared_tables_script,
    spaces_script,
)

if TYPE_CHECKING:
    from psycopg import Connection


DEFAULT_PARTITIONS = 4
"""Partitions of each table. The number cannot be changed later.

More pay off from several hundred million rows, on a server with a higher ``max_locks_per_transaction``: planning a
statement locks each partition and each of its indexes."""

Layout = Literal["postgres", "citus"]
"""``postgres``: hash partitions on one server. ``citus``: distributed tables, with shards in place of partitions."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Layout of new tables. Existing tables keep theirs.

    Attributes:
        layout: distribution of the rows.
        partitions: partitions of each table, for the layout ``postgres``.
        halfvec: store vectors in half precision: half the disk, and a cosine that is off by 5e-4 at most.
    """

    layout: Layout = "postgres"
    partitions: int = DEFAULT_PARTITIONS
    halfvec: bool = False


_HASH_KEY = "hashtextextended({}, 0)"
_PARTITION_COLUMN = "part TEXT NOT NULL,"
_EXACT_COLUMNS = f"{_PARTITION_COLUMN}\n    exact BLOB NOT NULL,"
_ROW_NUMBER = "row INTEGER NOT NULL DEFAULT nextval('next_row'),\n    PRIMARY KEY (part, row),"


def _id_indexes(table: str, then: str) -> str:
    """Return the indexes for scopes without a user: their rows are in several parts."""
    return "".join(
        f"CREATE INDEX {table}_{axis} ON {table} ({_HASH_KEY.format(f'{axis}_id')}, {then}) WHERE {axis}_id IS NOT NULL;\n"  # noqa: E501
        for axis in ("agent", "run")
    )


_DDL = Ddl(
    partition="part, ",
    partition_column=_PARTITION_COLUMN,
    row=f"{_PARTITION_COLUMN}\n    {_ROW_NUMBER}",
    exact_row=f"{_EXACT_COLUMNS}\n    {_ROW_NUMBER}",
    exact_columns=_EXACT_COLUMNS,
    exact="part, exact",
    unique_id="id, part",
    by_row=" PARTITIONED",
    by_key=" PARTITIONED",
    hashed=_HASH_KEY.format,
    row_index="CREATE INDEX {0}_row ON {0} (row);\n".format,
    id_indexes=_id_indexes,
    word_keys="keys INTEGER[] NOT NULL,                            -- hashes of its words under its ids: `lexicon`",
    alias_order="place INTEGER NOT NULL DEFAULT nextval('next_row'),",
)

_POSTGRES_TABLES = """
CREATE SEQUENCE next_row;                               -- row numbers of all tables; they are never reused
CREATE SEQUENCE next_seq;                               -- numbers of changes, see `session.safe_read_seq`
SELECT nextval('next_seq');                             -- its last value stays below every number in use

-- epoch: new whenever stored data was rewritten; identity: name of the store; space: name and dims of the embedder.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('epoch', gen_random_uuid()::text), ('identity', gen_random_uuid()::text);

CREATE TABLE history (
    id           TEXT NOT NULL,
    memory_id    TEXT NOT NULL,
    old_memory   TEXT,
    new_memory   TEXT,
    event        TEXT NOT NULL,
    created_at   TEXT,                                  -- missing in some rows of mem0 1.x
    updated_at   TEXT,
    is_deleted   integer NOT NULL,
    actor_id     TEXT,
    role         TEXT,
    part         TEXT NOT NULL,
    place        bigint NOT NULL DEFAULT nextval('next_row'),
    PRIMARY KEY (part, place)
) PARTITIONED;
CREATE INDEX history_memory ON history (memory_id, place);
"""

_POSTGRES_INDEXES = """
CREATE INDEX memories_part ON memories (part, seq);
CREATE INDEX memories_pinned ON memories (part) WHERE pinned;
CREATE INDEX sketches_keys ON sketches USING gin (keys) WITH (fastupdate = off);
CREATE INDEX tombstones_memory ON tombstones (memory_id);
CREATE INDEX past_part ON past (part, valid_to);
CREATE INDEX sources_memory ON sources (memory);
CREATE INDEX nodes_part ON nodes (part, seq);
CREATE INDEX nodes_part_changed ON nodes (part, changed);
CREATE INDEX edges_part ON edges (part, seq);
CREATE INDEX edges_part_changed ON edges (part, changed);
CREATE INDEX evidence_edge ON evidence (edge);
CREATE INDEX node_tombstones_seq ON node_tombstones (seq);
CREATE INDEX edge_tombstones_seq ON edge_tombstones (seq);
CREATE INDEX jobs_waiting ON jobs (part, row) WHERE state = 'waiting';
CREATE INDEX jobs_leased ON jobs (leased_by) WHERE leased_by IS NOT NULL;
"""
_POSTGRES_INDEXES += _id_indexes("merges", "row") + _id_indexes("aliases", "kind")

_TYPES = {"INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea", "BOOLEAN": "boolean", "VECTOR": "vector"}


def _translate_types(script: str) -> str:
    return re.sub(r"\b[A-Z]+\b", lambda word: _TYPES.get(word[0], word[0]), script)


_SHARED_TABLES = _translate_types(shared_tables_script(_DDL))

_TABLES_WITH_IDS = frozenset(
    {
        *("memories", "past", "tombstones", "messages", "nodes", "edges", "node_tombstones", "edge_tombstones"),
        *("jobs", "imports", "summaries", "merges", "aliases", "events"),
        *("spaces", "space_members", "space_writes"),
    }
)

_PARENTS = {
    "vectors": ("row", "memories"),
    "sketches": ("row", "memories"),
    "sources": ("message", "messages"),
    "endings": ("message", "messages"),
    "node_vectors": ("row", "nodes"),
    "edge_vectors": ("row", "edges"),
    "evidence": ("edge", "edges"),
    "edge_messages": ("edge", "edges"),
    "job_messages": ("job", "jobs"),
}
"""For tables without ids: the column that names a row of the table that has them."""

_CREATE_TABLE = re.compile(r"CREATE TABLE (\w+) \(")


def _created_tables(script: str) -> list[str]:
    """Return the tables that a script creates, but `meta`, which holds no data of a scope."""
    return [table for table in _CREATE_TABLE.findall(script) if table != "meta"]


_FIRST_SCOPE = "(SELECT current_setting('mem0.scope', true))"
_FIRST_POLICY = "part = {0} OR {0} = '*'"
_FIRST_IDS = " OR {0} = 'agent_id=' || agent_id OR {0} = 'run_id=' || run_id"
_FIRST_AXES = " OR starts_with({0}, 'agent_id=') OR starts_with({0}, 'run_id=')"

_FIRST_POLICIES = "".join(
    f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n"
    f"CREATE POLICY {table}_scope ON {table} USING"
    f" ({(_FIRST_POLICY + (_FIRST_IDS if table in _TABLES_WITH_IDS else _FIRST_AXES)).format(_FIRST_SCOPE)});\n"
    for table in _created_tables(_POSTGRES_TABLES + _SHARED_TABLES)
)
"""Policies of the first schema version, which the second one replaces."""

# A setting that was local to an earlier transaction of the connection reads as an empty text.
_SETTING = "(SELECT nullif(current_setting('mem0.{}', true), ''))"
_SCOPE, _AGENT, _RUN = (_SETTING.format(name) for name in ("scope", "agent_id", "run_id"))


def _policy_condition(table: str) -> str:
    """Return the condition of the rows of a table that the settings of a transaction let it see and write.

    A row without ids is visible where the row that it belongs to is. The subqueries are scalar: the planner would turn
    EXISTS into a hash of the other table, which reads all of it.
    """
    if table in _TABLES_WITH_IDS:
        return (
            f"{_SCOPE} = '*' OR ((part = {_SCOPE} OR {_SCOPE} = 'agent_id=' || agent_id OR {_SCOPE} = 'run_id=' || run_id)"  # noqa: E501
            f" AND ({_AGENT} IS NULL OR agent_id = {_AGENT}) AND ({_RUN} IS NULL OR run_id = {_RUN}))"
        )
    visible = f"{_SCOPE} = '*' OR (part = {_SCOPE} AND {_AGENT} IS NULL AND {_RUN} IS NULL)"
    if table == "history":
        return (
            f"{visible} OR (SELECT true FROM memories AS m WHERE m.part = history.part AND m.id = history.memory_id)"
            " OR (SELECT true FROM tombstones AS t WHERE t.part = history.part AND t.memory_id = history.memory_id"
            " LIMIT 1)"
        )
    column, parent = _PARENTS[table]
    return f"{visible} OR (SELECT true FROM {parent} AS p WHERE p.part = {table}.part AND p.row = {table}.{column})"


# A partition has no policy of its own: a role that is granted the partition itself sees nothing in it.
_CLOSE_PARTITIONS = """
DO $do$ DECLARE partition regclass; BEGIN
    FOR partition IN
        SELECT i.inhrelid::regclass FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhparent
        WHERE c.relkind = 'p' AND c.relnamespace = quote_ident(current_schema())::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', partition);
    END LOOP;
END $do$;
"""

_POLICIES = (
    "".join(
        f"DROP POLICY {table}_scope ON {table};\n"
        f"CREATE POLICY {table}_scope ON {table} USING ({_policy_condition(table)});\n"
        for table in _created_tables(_POSTGRES_TABLES + _SHARED_TABLES)
    )
    + "ALTER TABLE meta ENABLE ROW LEVEL SECURITY;\nCREATE POLICY meta_shared ON meta USING (true);\n"
    + _CLOSE_PARTITIONS
)
"""Row-level security: a role that does not own the tables sees only the rows that four settings name.

``mem0.scope`` is the first id of a scope (``user_id=alice``), or ``*`` for all. ``mem0.agent_id`` and ``mem0.run_id``
are its further ids, if any. ``mem0.member`` is the user on whose behalf the rows of a space are read or written, or
``*`` for the library itself. Each table of a later version needs a policy of its own.
"""

# Full case folding came with PostgreSQL 18; older servers have lower case only.
_CASEFOLD = """
DO $do$ BEGIN
    IF current_setting('server_version_num')::integer >= 180000 THEN
        CREATE FUNCTION mem0_casefold(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
            RETURN casefold($1 COLLATE "pg_unicode_fast") COLLATE "C";
    ELSE
        CREATE FUNCTION mem0_casefold(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
            RETURN lower($1 COLLATE "und-x-icu") COLLATE "C";
    END IF;
END $do$;
"""

# Advisory locks belong to a whole database, so their numbers include a hash of the schema. Locks of parts are negative.
# Marks are positive: 15 bits of the schema and 48 bits of a sequence number.
_LOCKS = """
CREATE FUNCTION mem0_lock(text) RETURNS bigint LANGUAGE sql STABLE
    RETURN -1 - ((hashtextextended(current_schema() || chr(1) || $1, 0) >> 1) & 4611686018427387903);
CREATE FUNCTION mem0_mark(bigint) RETURNS bigint LANGUAGE sql STABLE
    RETURN ((hashtextextended(current_schema()::text, 0) & 32767) << 48) | ($1 & 281474976710655);
CREATE FUNCTION mem0_under_way() RETURNS bigint LANGUAGE sql VOLATILE
    RETURN (
        SELECT min(((classid::bigint & 65535) << 32) | objid::bigint) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint >> 16 = hashtextextended(current_schema()::text, 0) & 32767
    );
"""

_PROVENANCE = (
    _translate_types(provenance_script(_DDL))
    + "CREATE INDEX endings_target ON endings (target);\n"
    + "ALTER TABLE endings ENABLE ROW LEVEL SECURITY;\n"
    + f"CREATE POLICY endings_scope ON endings USING ({_policy_condition('endings')});\n"
    + _CLOSE_PARTITIONS
)

_EARLIER_EVENTS = """
INSERT INTO events (part, seq, event, memory_id, user_id, agent_id, run_id, actor_id, role, why, at)
SELECT h.part, row_number() OVER (ORDER BY h.place), h.event, h.memory_id, o.user_id, o.agent_id, o.run_id,
    h.actor_id, h.role, 'history', coalesce(h.updated_at, h.created_at, '')
FROM history AS h LEFT JOIN (
    SELECT part, id, max(user_id) AS user_id, max(agent_id) AS agent_id, max(run_id) AS run_id FROM (
        SELECT part, id, user_id, agent_id, run_id FROM memories
        UNION SELECT part, memory_id, user_id, agent_id, run_id FROM tombstones
    ) AS owners GROUP BY part, id
) AS o ON o.part = h.part AND o.id = h.memory_id;
SELECT setval('next_seq', greatest(last_value, (SELECT count(*) FROM history))) FROM next_seq;
"""

_FEED = (
    _translate_types(feed_script(_DDL))
    + "CREATE INDEX events_seq ON events (seq);\n"
    + "ALTER TABLE events ENABLE ROW LEVEL SECURITY;\n"
    + f"CREATE POLICY events_scope ON events USING ({_policy_condition('events')});\n"
    + _CLOSE_PARTITIONS
    + _EARLIER_EVENTS
)

# A user sees their own memberships in all spaces, and the spaces themselves.
_OWN_MEMBERSHIPS = f"{_SCOPE} = 'user_id=' || member"
_OWN_SPACES = (
    f"(SELECT true FROM space_members AS m WHERE m.part = spaces.part AND {_SCOPE} = 'user_id=' || m.member LIMIT 1)"
)

_MEMBER = _SETTING.format("member")
_IN_SPACE = f"starts_with(part, 'user_id={SPACE_PREFIX}')"


def _member_condition(roles: str = "") -> str:
    """Return the condition of rows that are in no space, or in one of which the caller is a member with a role."""
    member = f"SELECT 1 FROM space_members AS m WHERE m.part = {_SCOPE} AND m.member = {_MEMBER}{roles}"
    return f"NOT {_IN_SPACE} OR (SELECT {_MEMBER} = '*' OR EXISTS ({member}))"


def _member_policies(table: str) -> str:
    """Return the statements that let only members read, and only writers and owners write, the rows of a space.

    The condition holds in addition to that of the scope. It is evaluated once in a statement, not for each row.
    """
    writes = _member_condition(" AND m.role <> 'reader'")
    create = f"CREATE POLICY {table}_{{}} ON {table} AS RESTRICTIVE FOR {{}} {{}} ({{}});\n"
    return "".join(
        create.format(name, command, check, condition)
        for name, command, check, condition in (
            ("members", "SELECT", "USING", _member_condition()),
            ("writers_insert", "INSERT", "WITH CHECK", writes),
            ("writers_update", "UPDATE", "USING", writes),
            ("writers_delete", "DELETE", "USING", writes),
        )
    )


_SPACES = (
    _translate_types(spaces_script(_DDL))
    + "".join(
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n"
        f"CREATE POLICY {table}_scope ON {table} USING ({_policy_condition(table)}{further});\n"
        for table, further in (
            ("spaces", f" OR {_OWN_SPACES}"),
            ("space_members", f" OR {_OWN_MEMBERSHIPS}"),
            ("space_writes", ""),
        )
    )
    + "".join(map(_member_policies, _created_tables(_POSTGRES_TABLES + _SHARED_TABLES + _PROVENANCE + _FEED)))
    + _CLOSE_PARTITIONS
)

SCHEMA_VERSIONS: tuple[str, ...] = (
    _POSTGRES_TABLES + _SHARED_TABLES + _POSTGRES_INDEXES + _FIRST_POLICIES + _CASEFOLD + _LOCKS,
    _POLICIES,
    _PROVENANCE,
    _FEED,
    _SPACES,
    _translate_types(feedback_script()),
)
"""Script n takes a store from version n to n + 1, in one transaction. Never edit a released one.

`migration_statements` expands the abbreviations ``TEXT`` and ``PARTITIONED``.
"""

_TABLE = re.compile(r"CREATE TABLE (\w+) \((?:(?!CREATE TABLE).)*?\) PARTITIONED;", re.DOTALL)
_COMMENT = re.compile(r"\s*--[^\n]*")


def migration_statements(shape: TableLayout, *, since: int = 0, until: int | None = None) -> Iterator[str]:
    """Yield the statements that take a store from version `since` to `until` (the newest), for one transaction."""
    for step, migration in enumerate(SCHEMA_VERSIONS[since:until], since + 1):
        yield from _split_statements(_expand_partitions(migration, shape))
        yield (f"INSERT INTO meta VALUES ('schema', '{step}') ON CONFLICT (key) DO UPDATE SET value = excluded.value")


def migrate(db: Connection[Any], schema: str, shape: TableLayout) -> None:
    """Bring a store to the newest version. Concurrent callers wait until it is done.

    Args:
        db: a connection in autocommit mode.
        schema: name of the schema that holds the tables.
        shape: layout of new tables.

    Raises:
        StoreError: a newer version of this package wrote the store; or the tables are missing or older and this role
            may not create or change them.
    """
    import psycopg

    if _version(db, schema) == len(SCHEMA_VERSIONS):
        return
    try:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"mem0 migration {schema}",))
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
            if _version(db, schema) is None:
                db.execute(f"CREATE SCHEMA IF NOT EXISTS {_quote_identifier(schema)}".encode())
            for statement in migration_statements(shape, since=_version(db, schema) or 0):
                db.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the tables in schema {schema!r} are missing or old, and this role may not create them: let their owner"
            f" run the output of `mem0-core schema --store postgres` ({str(error).strip()})"
        ) from error


def _version(db: Connection[Any], schema: str) -> int | None:
    """Return the version of the tables; None without tables."""
    found = db.execute("SELECT to_regclass(quote_ident(%s) || '.meta')::text", (schema,)).fetchone()
    if found is None or found[0] is None:
        return None
    row = db.execute(f"SELECT value FROM {_quote_identifier(schema)}.meta WHERE key = 'schema'".encode()).fetchone()
    version = int(row[0]) if row else 0
    if version > len(SCHEMA_VERSIONS):
        raise StoreError(
            f"schema {schema!r} was written by a newer version of mem0-core (schema version {version}, this one knows"
            f" up to {len(SCHEMA_VERSIONS)}): upgrade mem0-core"
        )
    return version


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def schema_script(schema: str, shape: TableLayout) -> str:
    """Return the complete DDL, for an operator to review and to run with `psql -f`."""
    migrations = ";\n".join(_expand_partitions(migration, shape).strip().rstrip(";") for migration in SCHEMA_VERSIONS)
    return (
        "BEGIN;\n"
        "CREATE EXTENSION IF NOT EXISTS vector;\n"
        f"CREATE SCHEMA IF NOT EXISTS {_quote_identifier(schema)};\n"
        f"SET LOCAL search_path = {_quote_identifier(schema)}, public;\n"
        f"{migrations};\n"
        f"INSERT INTO meta VALUES ('schema', '{len(SCHEMA_VERSIONS)}');\n"
        "COMMIT;\n"
    )


def grant_script(schema: str, role: str) -> str:
    """Return the grants of a role that serves a `Memory` only: it reads and writes rows within `mem0.scope`.

    The partitions are not granted by their own names: policies apply only to access through their table.
    """
    tables = ", ".join(f"{_quote_identifier(schema)}.{table}" for table in ("meta", *TABLES))
    return (
        f"GRANT USAGE ON SCHEMA {_quote_identifier(schema)} TO {_quote_identifier(role)};\n"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {_quote_identifier(role)};\n"
        f"GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA {_quote_identifier(schema)} TO {_quote_identifier(role)};\n"
    )


def _expand_partitions(migration: str, shape: TableLayout) -> str:
    def expand_table(match: re.Match[str]) -> str:
        name, text = match[1], match[0].removesuffix(" PARTITIONED;")
        if shape.layout == "citus":
            colocation = "" if name == "history" else ", colocate_with => 'history'"
            return f"{text};\nSELECT create_distributed_table('{name}', 'part'{colocation});"
        partitions = "".join(
            f"\nCREATE TABLE {name}_{number} PARTITION OF {name} FOR VALUES WITH"
            f" (MODULUS {shape.partitions}, REMAINDER {number});"
            for number in range(shape.partitions)
        )
        return f"{text} PARTITION BY HASH (part);{partitions}"

    expanded = re.sub(r"\bTEXT\b", 'text COLLATE "C"', _TABLE.sub(expand_table, migration))
    if shape.halfvec:
        expanded = expanded.replace("vector vector NOT NULL", "vector halfvec NOT NULL")
    if shape.layout == "citus":
        expanded = expanded.replace("INSERT INTO meta", "SELECT create_reference_table('meta');\nINSERT INTO meta", 1)
    return expanded


def _split_statements(migration: str) -> Iterator[str]:
    """Yield the statements of a migration; a dollar-quoted block is one statement."""
    for block in re.split(r"(DO \$do\$.*?\$do\$;)", _COMMENT.sub("", migration), flags=re.DOTALL):
        statements = [block] if block.startswith("DO $do$") else block.split(";")
        yield from (statement.strip() for statement in statements if statement.strip())
