"""The tables of the PostgreSQL truth: `schema.py`'s, laid out for many users and many hosts.

What is of a memory lies with it: ``part`` names the first id of its scope (``user_id=alice``), is in every key, and
is what tables are partitioned by (hash), or distributed by where the server is Citus. A user's rows are one partition's
business, whoever else is in the store.

``exact`` is a digest of all three ids, for what is of exactly one scope. Ids have any length, index entries have not:
ids are indexed by their hash. Text is compared by code points (collation "C"), as Python compares it.

The version reached is the row ``schema`` of `meta`. Migrating takes a lock, so that of many hosts that open a new
version at once, one migrates and the others wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mem0_core.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = [
    "DEFAULT_PARTITIONS",
    "SCHEMA_VERSIONS",
    "TABLES",
    "Layout",
    "TableLayout",
    "grant_script",
    "migrate",
    "migration_statements",
    "schema_script",
]

DEFAULT_PARTITIONS = 4
"""Of each table. It cannot be changed later. More are for many hundred million rows, and for a server with more room
for locks (``max_locks_per_transaction``): to plan a statement takes one for each partition and each of its indexes."""

Layout = Literal["postgres", "citus"]
"""``postgres``: hash partitions of one server. ``citus``: distributed tables, whose shards take their place."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How the tables are made, the first time; what is there stays as it is.

    Attributes:
        halfvec: vectors in half precision: half the disk, and a cosine that is off by 5e-4 at most.
    """

    layout: Layout = "postgres"
    partitions: int = DEFAULT_PARTITIONS
    halfvec: bool = False


TABLES = (
    *(
        "aliases",
        "merges",
        "sources",
        "job_messages",
        "edge_messages",
        "evidence",
        "sketches",
        "vectors",
        "edge_vectors",
        "node_vectors",
    ),
    *("memories", "past", "tombstones", "history", "edges", "nodes", "edge_tombstones", "node_tombstones"),
    *("jobs", "messages", "summaries", "imports"),
)
"""All but `meta`, those that refer to others first."""

_HASH_KEY = "hashtextextended({}, 0)"
_ID_COLUMNS_DDL = "user_id TEXT, agent_id TEXT, run_id TEXT"

_CONTENT_COLUMNS_DDL = f"""
    {_ID_COLUMNS_DDL},
    id              TEXT NOT NULL,
    text            TEXT NOT NULL,
    hash            TEXT NOT NULL,
    metadata        TEXT NOT NULL,                      -- a JSON object
    actor_id        TEXT,
    role            TEXT,
    memory_type     TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT,
    expiration_date TEXT,
    seq             bigint NOT NULL,
    valid_from      TEXT NOT NULL"""


def _id_indexes(table: str, then: str) -> str:
    """Indexes for scopes that name no user: their rows lie in several parts."""
    return "".join(
        f"CREATE INDEX {table}_{axis} ON {table} ({_HASH_KEY.format(f'{axis}_id')}, {then}) WHERE {axis}_id IS NOT NULL;\n"  # noqa: E501
        for axis in ("agent", "run")
    )


_SCHEMA = f"""
CREATE SEQUENCE next_row;                               -- rows are numbers that are never reused, in any table
CREATE SEQUENCE next_seq;                               -- every change takes a number; see postgres_session.horizon
SELECT nextval('next_seq');                             -- so that its last value is below every number that is used

-- epoch: new whenever the past was rewritten; identity: the store's own name; space: the embedder's name and dims.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('epoch', gen_random_uuid()::text), ('identity', gen_random_uuid()::text);

CREATE TABLE history (
    id           TEXT NOT NULL,
    memory_id    TEXT NOT NULL,
    old_memory   TEXT,
    new_memory   TEXT,
    event        TEXT NOT NULL,
    created_at   TEXT,                                   -- mem0 1.x knows it of some only
    updated_at   TEXT,
    is_deleted   integer NOT NULL,
    actor_id     TEXT,
    role         TEXT,
    part         TEXT NOT NULL,
    place        bigint NOT NULL DEFAULT nextval('next_row'),
    PRIMARY KEY (part, place)
) PARTITIONED;
CREATE INDEX history_memory ON history (memory_id, place);

CREATE TABLE memories (
    part            TEXT NOT NULL,
    exact           bytea NOT NULL,
    row             bigint NOT NULL DEFAULT nextval('next_row'),
    same            bytea NOT NULL,                     -- records.same_fact_key
    pinned          boolean NOT NULL DEFAULT false,
    {_CONTENT_COLUMNS_DDL.strip()},
    PRIMARY KEY (part, row)
) PARTITIONED;
CREATE UNIQUE INDEX memories_same ON memories (part, exact, same);
CREATE UNIQUE INDEX memories_id ON memories (id, part);
CREATE INDEX memories_row ON memories (row);
CREATE INDEX memories_part ON memories (part, seq);
{_id_indexes("memories", "seq")}
CREATE INDEX memories_pinned ON memories (part) WHERE pinned;

-- Apart from memories, so that reading texts does not drag 1.5 kB of vector per row through the cache.
CREATE TABLE vectors (
    part   TEXT NOT NULL,
    row    bigint NOT NULL,
    vector vector NOT NULL,                             -- L2 norm 1
    PRIMARY KEY (part, row),
    FOREIGN KEY (part, row) REFERENCES memories (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX vectors_row ON vectors (row);

-- What ranking needs of a memory, so that a search reads no text but that of its results.
CREATE TABLE sketches (
    part    TEXT NOT NULL,
    row     bigint NOT NULL,
    session bigint NOT NULL,                            -- truth.session_of: what was said together
    length  integer NOT NULL,                           -- in words
    asks    boolean NOT NULL,
    terms   TEXT NOT NULL,                              -- words.Words.terms, between spaces
    names   TEXT NOT NULL,                              -- words.Words.names, between newlines
    keys    bigint[] NOT NULL,                          -- hashes of its terms, names, and words of its speaker's name,
    PRIMARY KEY (part, row),                            -- each under each of its ids (postgres_words.keys)
    FOREIGN KEY (part, row) REFERENCES memories (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX sketches_row ON sketches (row);
CREATE INDEX sketches_session ON sketches (part, session, row);
CREATE INDEX sketches_keys ON sketches USING gin (keys) WITH (fastupdate = off);

-- What is gone, without its text: projections learn of deletions from it, purging finds old history by it.
CREATE TABLE tombstones (
    part      TEXT NOT NULL,
    seq       bigint NOT NULL,
    row       bigint NOT NULL,
    memory_id TEXT NOT NULL,
    {_ID_COLUMNS_DDL},
    PRIMARY KEY (part, seq)
) PARTITIONED;
CREATE INDEX tombstones_memory ON tombstones (memory_id);
{_id_indexes("tombstones", "seq")}

-- What memories said until they were updated, or deleted by a plan: searches as of a day gone by read it.
CREATE TABLE past (
    part            TEXT NOT NULL,
    row             bigint NOT NULL DEFAULT nextval('next_row'),
    memory          bigint NOT NULL,                    -- the memory's row, also where that is gone
    {_CONTENT_COLUMNS_DDL.strip()},
    valid_to        TEXT NOT NULL,                      -- it held from the first until before the second
    vector          vector NOT NULL,
    PRIMARY KEY (part, row)
) PARTITIONED;
CREATE INDEX past_id ON past (id);
CREATE INDEX past_part ON past (part, valid_to);
{_id_indexes("past", "valid_to")}

CREATE TABLE messages (
    part       TEXT NOT NULL,
    exact      bytea NOT NULL,
    row        bigint NOT NULL DEFAULT nextval('next_row'),
    digest     bytea NOT NULL,                          -- of the whole add and the place in it: a retry stores nothing
    {_ID_COLUMNS_DDL},
    role       TEXT NOT NULL,
    content    TEXT NOT NULL,
    name       TEXT,
    metadata   TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (part, row)
) PARTITIONED;
CREATE UNIQUE INDEX messages_digest ON messages (part, digest);
CREATE INDEX messages_row ON messages (row);
CREATE INDEX messages_exact ON messages (part, exact, row);
{_id_indexes("messages", "row")}

-- Which messages a memory was learnt from: deleting the memory deletes them, purging finds them even later.
CREATE TABLE sources (
    part    TEXT NOT NULL,                              -- of the message
    memory  bigint NOT NULL,                            -- a row of memories, also of one that is gone
    message bigint NOT NULL,
    PRIMARY KEY (part, memory, message),
    FOREIGN KEY (part, message) REFERENCES messages (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX sources_memory ON sources (memory);
CREATE INDEX sources_message ON sources (part, message);

-- Of nodes and edges, seq is when their vector came, changed when anything of them did.
CREATE TABLE nodes (
    part     TEXT NOT NULL,
    exact    bytea NOT NULL,
    row      bigint NOT NULL DEFAULT nextval('next_row'),
    {_ID_COLUMNS_DDL},
    name     TEXT NOT NULL,
    key      bytea NOT NULL,                            -- records.entity_key
    type     TEXT NOT NULL,
    seq      bigint NOT NULL,
    changed  bigint NOT NULL,
    PRIMARY KEY (part, row)
) PARTITIONED;
CREATE UNIQUE INDEX nodes_key ON nodes (part, exact, key);
CREATE INDEX nodes_row ON nodes (row);
CREATE INDEX nodes_changed ON nodes (changed);
CREATE INDEX nodes_part ON nodes (part, seq);
CREATE INDEX nodes_part_changed ON nodes (part, changed);
{_id_indexes("nodes", "seq")}

CREATE TABLE edges (
    part           TEXT NOT NULL,
    exact          bytea NOT NULL,
    row            bigint NOT NULL DEFAULT nextval('next_row'),
    {_ID_COLUMNS_DDL},
    source         bigint NOT NULL,
    relationship   TEXT NOT NULL,
    destination    bigint NOT NULL,
    weight         bigint NOT NULL,
    valid_from     TEXT NOT NULL,
    valid_to       TEXT,
    invalidated_at TEXT,
    seq            bigint NOT NULL,
    changed        bigint NOT NULL,
    PRIMARY KEY (part, row),
    FOREIGN KEY (part, source) REFERENCES nodes (part, row),
    FOREIGN KEY (part, destination) REFERENCES nodes (part, row)
) PARTITIONED;
-- A relation holds once; what held before stays beside it.
CREATE UNIQUE INDEX edges_open ON edges (part, source, destination, {_HASH_KEY.format("relationship")})
    WHERE valid_to IS NULL;
CREATE INDEX edges_row ON edges (row);
CREATE INDEX edges_source ON edges (source, row);
CREATE INDEX edges_destination ON edges (destination, row);
CREATE INDEX edges_changed ON edges (changed);
CREATE INDEX edges_part ON edges (part, seq);
CREATE INDEX edges_part_changed ON edges (part, changed);
{_id_indexes("edges", "seq")}

CREATE TABLE node_vectors (
    part   TEXT NOT NULL,
    row    bigint NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (part, row),
    FOREIGN KEY (part, row) REFERENCES nodes (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX node_vectors_row ON node_vectors (row);
CREATE TABLE edge_vectors (
    part   TEXT NOT NULL,
    row    bigint NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (part, row),
    FOREIGN KEY (part, row) REFERENCES edges (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX edge_vectors_row ON edge_vectors (row);

-- Which memories a relation came from. Withdrawn: the memory was updated or deleted, and no longer says it.
CREATE TABLE evidence (
    part      TEXT NOT NULL,                            -- of the edge
    edge      bigint NOT NULL,
    memory    bigint NOT NULL,                          -- a row of memories, also of one that is gone
    withdrawn boolean NOT NULL DEFAULT false,
    day_first TEXT,                                     -- the days that the memory tells of where it says the relation,
    day_last  TEXT,                                     -- both inclusive; NULL for none, or a span open at that end
    PRIMARY KEY (part, edge, memory),
    FOREIGN KEY (part, edge) REFERENCES edges (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX evidence_edge ON evidence (edge);
CREATE INDEX evidence_memory ON evidence (memory);
CREATE INDEX evidence_dated ON evidence (edge) WHERE day_first IS NOT NULL OR day_last IS NOT NULL;
CREATE TABLE edge_messages (
    part    TEXT NOT NULL,
    edge    bigint NOT NULL,
    message bigint NOT NULL,
    PRIMARY KEY (part, edge, message),
    FOREIGN KEY (part, edge) REFERENCES edges (part, row) ON DELETE CASCADE,
    FOREIGN KEY (part, message) REFERENCES messages (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX edge_messages_message ON edge_messages (part, message);

CREATE TABLE node_tombstones (
    part TEXT NOT NULL, seq bigint NOT NULL, row bigint NOT NULL, {_ID_COLUMNS_DDL}, PRIMARY KEY (part, seq)
) PARTITIONED;
CREATE INDEX node_tombstones_seq ON node_tombstones (seq);
{_id_indexes("node_tombstones", "seq")}
-- What has ended is not gone, yet leaves the projection of what holds: erased tells the one from the other.
CREATE TABLE edge_tombstones (
    part TEXT NOT NULL, seq bigint NOT NULL, row bigint NOT NULL, {_ID_COLUMNS_DDL}, erased boolean NOT NULL,
    PRIMARY KEY (part, seq)
) PARTITIONED;
CREATE INDEX edge_tombstones_seq ON edge_tombstones (seq);
{_id_indexes("edge_tombstones", "seq")}

-- Work put off. In a part jobs are done in the order of their rows.
CREATE TABLE jobs (
    part         TEXT NOT NULL,
    exact        bytea NOT NULL,
    row          bigint NOT NULL DEFAULT nextval('next_row'),
    kind         TEXT NOT NULL,                         -- remember, summary
    {_ID_COLUMNS_DDL},
    options      TEXT NOT NULL,                         -- a JSON object: what else the add was given
    at           TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'waiting',       -- waiting, or parked after too many failures
    attempts     integer NOT NULL DEFAULT 0,
    ready_at     double precision NOT NULL DEFAULT 0,   -- Unix seconds
    leased_by    TEXT,
    leased_until double precision NOT NULL DEFAULT 0,
    error        TEXT,
    PRIMARY KEY (part, row)
) PARTITIONED;
CREATE INDEX jobs_waiting ON jobs (part, row) WHERE state = 'waiting';
CREATE INDEX jobs_row ON jobs (row);
CREATE INDEX jobs_leased ON jobs (leased_by) WHERE leased_by IS NOT NULL;
{_id_indexes("jobs", "row")}
CREATE TABLE job_messages (
    part    TEXT NOT NULL,
    job     bigint NOT NULL,
    place   integer NOT NULL,
    message bigint NOT NULL,
    PRIMARY KEY (part, job, place),
    FOREIGN KEY (part, job) REFERENCES jobs (part, row) ON DELETE CASCADE,
    FOREIGN KEY (part, message) REFERENCES messages (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE INDEX job_messages_message ON job_messages (part, message);

-- How many messages of an import are remembered, by the caller's key for it: it goes on from there.
CREATE TABLE imports (
    part  TEXT NOT NULL,
    exact bytea NOT NULL,
    {_ID_COLUMNS_DDL},
    key   TEXT NOT NULL,
    done  bigint NOT NULL
) PARTITIONED;
CREATE UNIQUE INDEX imports_key ON imports (part, exact, {_HASH_KEY.format("key")});

-- What a conversation has been about so far, as it was summed up again and again.
CREATE TABLE summaries (
    part       TEXT NOT NULL,
    exact      bytea NOT NULL,
    row        bigint NOT NULL DEFAULT nextval('next_row'),
    {_ID_COLUMNS_DDL},
    text       TEXT NOT NULL,
    upto       bigint NOT NULL,                         -- the row of the last message in it
    valid_from TEXT NOT NULL,                           -- the time of that message
    PRIMARY KEY (part, row)
) PARTITIONED;
CREATE INDEX summaries_exact ON summaries (part, exact, row);

-- Entities, or relationships, of one scope that were made one. What they were before is kept, so that it can come back:
-- no text of memories is in it, and what is erased is erased from it too.
CREATE TABLE merges (
    part    TEXT NOT NULL,
    exact   bytea NOT NULL,
    row     bigint NOT NULL DEFAULT nextval('next_row'),
    id      TEXT NOT NULL,
    {_ID_COLUMNS_DDL},
    kind    TEXT NOT NULL,                              -- entity, relationship
    name    TEXT NOT NULL,                              -- what they are called since
    node    bigint,                                     -- the entity that stayed; NULL for relationships
    score   double precision,
    reasons TEXT NOT NULL,                              -- a JSON array
    at      TEXT NOT NULL,
    undone  TEXT,                                       -- when it was taken back
    taken   TEXT NOT NULL,                              -- a JSON object: the rows that went
    PRIMARY KEY (part, row),
    FOREIGN KEY (part, node) REFERENCES nodes (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE UNIQUE INDEX merges_id ON merges (id, part);
CREATE INDEX merges_exact ON merges (part, exact, row);
CREATE INDEX merges_node ON merges (part, node);
{_id_indexes("merges", "row")}

-- The names that went: what is said of them is said of what stayed, while the merge stands.
CREATE TABLE aliases (
    part     TEXT NOT NULL,
    exact    bytea NOT NULL,
    merge    bigint NOT NULL,
    {_ID_COLUMNS_DDL},
    kind     TEXT NOT NULL,
    key      bytea NOT NULL,                            -- records.entity_key of the name
    name     TEXT NOT NULL,
    standing boolean NOT NULL,
    place    bigint NOT NULL DEFAULT nextval('next_row'),
    FOREIGN KEY (part, merge) REFERENCES merges (part, row) ON DELETE CASCADE
) PARTITIONED;
CREATE UNIQUE INDEX aliases_key ON aliases (part, exact, kind, key) WHERE standing;
CREATE INDEX aliases_merge ON aliases (part, merge);
{_id_indexes("aliases", "kind")}
"""

_TABLES_WITH_IDS = (
    *("memories", "past", "tombstones", "messages", "nodes", "edges", "node_tombstones", "edge_tombstones"),
    *("jobs", "imports", "summaries", "merges", "aliases"),
)

_CURRENT_SCOPE = "(SELECT current_setting('mem0.scope', true))"
_POLICY = "part = {0} OR {0} = '*'"
_MATCHES_AGENT_OR_RUN = " OR {0} = 'agent_id=' || agent_id OR {0} = 'run_id=' || run_id"
_MATCHES_ANY_AXIS = " OR starts_with({0}, 'agent_id=') OR starts_with({0}, 'run_id=')"

_POLICIES = "".join(
    f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\n"
    f"CREATE POLICY {table}_scope ON {table} USING"
    f" ({(_POLICY + (_MATCHES_AGENT_OR_RUN if table in _TABLES_WITH_IDS else _MATCHES_ANY_AXIS)).format(_CURRENT_SCOPE)});\n"  # noqa: E501
    for table in TABLES
)
"""The second wall: who is not the owner of the tables sees the rows that ``mem0.scope`` names, and without it none.

Rows that have no ids of their own (vectors, words) are reached through those that have: a scope without a user, whose
rows lie in several parts, is held back by those.
"""

# full case folding came with PostgreSQL 18; what is older has lower case only
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

# Advisory locks are of a whole database: ours bear the name of the schema. Those of parts are negative numbers; marks
# are not, and carry the schema in 15 bits and a sequence number in 48.
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

SCHEMA_VERSIONS: tuple[str, ...] = (_SCHEMA + _POLICIES + _CASEFOLD + _LOCKS,)
"""Step n takes a store from version n to n + 1, in one transaction. Never edit one that was released.

``TEXT`` and ``PARTITIONED`` are short for what `migration_statements` makes of them.
"""

_TABLE = re.compile(r"CREATE TABLE (\w+) \((?:(?!CREATE TABLE).)*?\) PARTITIONED;", re.DOTALL)
_COMMENT = re.compile(r"\s*--[^\n]*")


def migration_statements(shape: TableLayout, *, since: int = 0) -> Iterator[str]:
    """What takes a store of version `since` to the newest, within one transaction."""
    for step, migration in enumerate(SCHEMA_VERSIONS[since:], since + 1):
        yield from _split_statements(_expand_partitions(migration, shape))
        yield (f"INSERT INTO meta VALUES ('schema', '{step}') ON CONFLICT (key) DO UPDATE SET value = excluded.value")


def migrate(db: Connection[Any], schema: str, shape: TableLayout) -> None:
    """Bring a store to the newest version, where it is not; whoever comes at the same time waits, and finds it done.

    Args:
        db: a connection in autocommit mode.

    Raises:
        StoreError: a newer version wrote it; or it is older, or not there, and this role may not change that.
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
            f"the tables in schema {schema!r} are missing or old, and this role may not make them: let their owner run"
            f" what `mem0-core schema --store postgres` prints ({str(error).strip()})"
        ) from error


def _version(db: Connection[Any], schema: str) -> int | None:
    """The version of the tables there are; None for no tables."""
    found = db.execute("SELECT to_regclass(quote_ident(%s) || '.meta')::text", (schema,)).fetchone()
    if found is None or found[0] is None:
        return None
    row = db.execute(f"SELECT value FROM {_quote_identifier(schema)}.meta WHERE key = 'schema'".encode()).fetchone()
    version = int(row[0]) if row else 0
    if version > len(SCHEMA_VERSIONS):
        raise StoreError(
            f"schema {schema!r} was written by a newer version (schema {version}, known {len(SCHEMA_VERSIONS)})"
        )
    return version


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def schema_script(schema: str, shape: TableLayout) -> str:
    """The whole DDL, for an operator to read and to run: `psql -f`."""
    every = ";\n".join(_expand_partitions(migration, shape).strip().rstrip(";") for migration in SCHEMA_VERSIONS)
    return (
        "BEGIN;\n"
        "CREATE EXTENSION IF NOT EXISTS vector;\n"
        f"CREATE SCHEMA IF NOT EXISTS {_quote_identifier(schema)};\n"
        f"SET LOCAL search_path = {_quote_identifier(schema)}, public;\n"
        f"{every};\n"
        f"INSERT INTO meta VALUES ('schema', '{len(SCHEMA_VERSIONS)}');\n"
        "COMMIT;\n"
    )


def grant_script(schema: str, role: str) -> str:
    """What a role may do that serves a `Memory` and nothing else: it reads and writes rows, within `mem0.scope`.

    Not the partitions by their own names: they have no policies, and go by those of their table.
    """
    tables = ", ".join(f"{_quote_identifier(schema)}.{table}" for table in ("meta", *TABLES))
    return (
        f"GRANT USAGE ON SCHEMA {_quote_identifier(schema)} TO {_quote_identifier(role)};\n"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {_quote_identifier(role)};\n"
        f"GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA {_quote_identifier(schema)} TO {_quote_identifier(role)};\n"
    )


def _expand_partitions(migration: str, shape: TableLayout) -> str:
    def table(found: re.Match[str]) -> str:
        name, text = found[1], found[0].removesuffix(" PARTITIONED;")
        if shape.layout == "citus":
            near = "" if name == "history" else ", colocate_with => 'history'"
            return f"{text};\nSELECT create_distributed_table('{name}', 'part'{near});"
        parts = "".join(
            f"\nCREATE TABLE {name}_{place} PARTITION OF {name} FOR VALUES WITH"
            f" (MODULUS {shape.partitions}, REMAINDER {place});"
            for place in range(shape.partitions)
        )
        return f"{text} PARTITION BY HASH (part);{parts}"

    expanded = re.sub(r"\bTEXT\b", 'text COLLATE "C"', _TABLE.sub(table, migration))
    if shape.halfvec:
        expanded = expanded.replace("vector vector NOT NULL", "vector halfvec NOT NULL")
    if shape.layout == "citus":
        expanded = expanded.replace("INSERT INTO meta", "SELECT create_reference_table('meta');\nINSERT INTO meta", 1)
    return expanded


def _split_statements(migration: str) -> Iterator[str]:
    """The statements of a migration, one at a time; a block between dollar signs is one."""
    for block in re.split(r"(DO \$do\$.*?\$do\$;)", _COMMENT.sub("", migration), flags=re.DOTALL):
        each = [block] if block.startswith("DO $do$") else block.split(";")
        yield from (statement.strip() for statement in each if statement.strip())
