"""Tables that SQLite and PostgreSQL share, described once.

The scripts use SQLite's type names, which PostgreSQL replaces. A `Ddl` supplies the SQL that differs:
PostgreSQL puts a column ``part`` in front of every key and finds the rows of exactly one scope by a digest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mem0_core._system.records import dataclass
from mem0_core.interfaces.maintenance import VectorTable

HISTORY_COLUMNS = (
    "id",
    "memory_id",
    "old_memory",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
)
"""Columns of mem0's own history table, in its order. SQLite adds none, so that mem0's tools read the table."""

EVENT_COLUMNS = (
    *("seq", "event", "memory_id", "user_id", "agent_id", "run_id"),
    *("actor_id", "role", "source", "why", "at"),
)
"""Columns of the change feed, as `domain.feed.ChangeEvent` has them."""

TABLES = (
    *("endings", "aliases", "merges", "sources", "job_messages", "edge_messages", "evidence", "sketches", "vectors"),
    *("edge_vectors", "node_vectors", "memories", "past", "tombstones", "history", "edges", "nodes"),
    *("edge_tombstones", "node_tombstones", "jobs", "messages", "summaries", "imports", "events"),
    *("space_writes", "space_members", "spaces"),
)
"""All tables but `meta`; a table comes before those it refers to."""

VECTOR_TABLES: Mapping[VectorTable, str] = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
"""Table with the vectors of the rows of a table."""


@dataclass(frozen=True, slots=True)
class Ddl:
    """SQL that the two databases write differently in the description of a table.

    Attributes:
        partition: columns that begin every key, followed by a comma; empty for none.
        partition_column: definition of these columns.
        row: definition of a row number of the table's own.
        exact_row: definition of a row number, for tables that are also searched by exactly one scope.
        exact_columns: definition of the columns that this search uses.
        exact: columns of an index on exactly one scope.
        unique_id: columns of an index on the public id.
        by_row: text after the columns of a table.
        by_key: text after the columns of a table without row numbers.
        hashed: index expression for a text of any length.
        row_index: index statement for the row number of a table.
        id_indexes: index statements for the ids of a table, each id followed by a column.
        word_keys: definition of the column that finds memories by their words.
        job_partition: definition of the column within which jobs run in order.
        alias_order: definition of the column that keeps the order of aliases.
    """

    partition: str
    partition_column: str
    row: str
    exact_row: str
    exact_columns: str
    exact: str
    unique_id: str
    by_row: str
    by_key: str
    hashed: Callable[[str], str]
    row_index: Callable[[str], str]
    id_indexes: Callable[[str, str], str]
    word_keys: str = ""
    job_partition: str = ""
    alias_order: str = ""


def shared_tables_script(ddl: Ddl) -> str:
    """Return the statements that create all tables but `history` and `meta`, with their indexes."""
    tables = (_memory_tables, _past_tables, _message_tables, _node_tables, _edge_tables, _evidence_tables)
    return "".join(script(ddl) for script in (*tables, _queue_tables, _merge_tables))


_IDS = "user_id TEXT,\n    agent_id TEXT,\n    run_id TEXT"

_CONTENT = f"""id              TEXT NOT NULL,
    {_IDS},
    text            TEXT NOT NULL,
    hash            TEXT NOT NULL,
    metadata        TEXT NOT NULL,                      -- a JSON object
    actor_id        TEXT,
    role            TEXT,
    memory_type     TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT,
    expiration_date TEXT,
    seq             INTEGER NOT NULL,
    valid_from      TEXT NOT NULL,                      -- since when the memory has this text"""


def _memory_tables(ddl: Ddl) -> str:
    return f"""
CREATE TABLE memories (
    {ddl.exact_row}
    {_CONTENT}
    same            BLOB NOT NULL,                      -- records.same_fact_key
    pinned          BOOLEAN NOT NULL DEFAULT false
){ddl.by_row};
-- One memory per scope and fact.
CREATE UNIQUE INDEX memories_same ON memories ({ddl.exact}, same);
CREATE UNIQUE INDEX memories_id ON memories ({ddl.unique_id});
{ddl.row_index("memories")}{ddl.id_indexes("memories", "seq")}
-- A table of their own: reading texts does not load 1.5 kB of vector per row.
CREATE TABLE vectors (
    {ddl.partition_column}
    row    INTEGER NOT NULL,
    vector VECTOR NOT NULL,                             -- L2 norm 1
    PRIMARY KEY ({ddl.partition}row),
    FOREIGN KEY ({ddl.partition}row) REFERENCES memories ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_row};
{ddl.row_index("vectors")}
-- Ranking features of a memory: a search reads no text but that of its results.
CREATE TABLE sketches (
    {ddl.partition_column}
    row     INTEGER NOT NULL,
    session INTEGER NOT NULL,                           -- rows.session_number: memories of one conversation
    length  INTEGER NOT NULL,                           -- in words
    asks    BOOLEAN NOT NULL,
    terms   TEXT NOT NULL,                              -- separated by spaces
    names   TEXT NOT NULL,                              -- separated by newlines
    slots   TEXT NOT NULL,                              -- separated by newlines
    {ddl.word_keys}
    PRIMARY KEY ({ddl.partition}row),
    FOREIGN KEY ({ddl.partition}row) REFERENCES memories ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_row};
CREATE INDEX sketches_session ON sketches ({ddl.partition}session, row);
{ddl.row_index("sketches")}"""


def _past_tables(ddl: Ddl) -> str:
    return f"""
-- Deleted memories, without their text: projections learn of deletions from them, purging finds old history by them.
CREATE TABLE tombstones (
    {ddl.partition_column}
    seq       INTEGER NOT NULL,
    row       INTEGER NOT NULL,
    memory_id TEXT NOT NULL,
    {_IDS},
    PRIMARY KEY ({ddl.partition}seq)
){ddl.by_row};
{ddl.id_indexes("tombstones", "seq")}
-- Earlier texts of memories that were updated, or deleted by a plan: searches as of a past day read them.
CREATE TABLE past (
    {ddl.row}
    memory          INTEGER NOT NULL,                   -- row of the memory, which may be deleted
    {_CONTENT}
    valid_to        TEXT NOT NULL,                      -- first moment at which the text no longer held
    vector          VECTOR NOT NULL
){ddl.by_row};
CREATE INDEX past_id ON past (id);
{ddl.id_indexes("past", "valid_to")}"""


def _message_tables(ddl: Ddl) -> str:
    return f"""
CREATE TABLE messages (
    {ddl.exact_row}
    digest     BLOB NOT NULL,                           -- of the add and the position in it: a retry stores nothing
    {_IDS},
    role       TEXT NOT NULL,
    content    TEXT NOT NULL,
    name       TEXT,
    metadata   TEXT NOT NULL,                           -- a JSON object
    created_at TEXT NOT NULL
){ddl.by_row};
CREATE UNIQUE INDEX messages_digest ON messages ({ddl.partition}digest);
CREATE INDEX messages_exact ON messages ({ddl.exact}, row);
{ddl.row_index("messages")}{ddl.id_indexes("messages", "row")}
-- Messages that a memory was extracted from. Deleting the memory deletes them; purging finds them even later.
CREATE TABLE sources (
    {ddl.partition_column}
    memory  INTEGER NOT NULL,                           -- row of the memory, which may be deleted
    message INTEGER NOT NULL,
    PRIMARY KEY ({ddl.partition}memory, message),
    FOREIGN KEY ({ddl.partition}message) REFERENCES messages ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_key};
CREATE INDEX sources_message ON sources ({ddl.partition}message);
-- Running summaries of conversations; the newest one of a scope is current.
CREATE TABLE summaries (
    {ddl.exact_row}
    {_IDS},
    text       TEXT NOT NULL,
    upto       INTEGER NOT NULL,                        -- row of the last message in it
    valid_from TEXT NOT NULL                            -- time of that message
){ddl.by_row};
CREATE INDEX summaries_exact ON summaries ({ddl.exact}, row);
"""


def _node_tables(ddl: Ddl) -> str:
    return f"""
-- Of nodes and edges, seq is the number of the change that wrote the vector, changed that of the last change.
CREATE TABLE nodes (
    {ddl.exact_row}
    {_IDS},
    name     TEXT NOT NULL,
    key      BLOB NOT NULL,                             -- records.entity_key
    type     TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    changed  INTEGER NOT NULL
){ddl.by_row};
CREATE UNIQUE INDEX nodes_key ON nodes ({ddl.exact}, key);
CREATE INDEX nodes_changed ON nodes (changed);
{ddl.row_index("nodes")}{ddl.id_indexes("nodes", "seq")}{_projected_tables(ddl, "node")}"""


def _edge_tables(ddl: Ddl) -> str:
    return f"""
CREATE TABLE edges (
    {ddl.exact_row}
    {_IDS},
    source         INTEGER NOT NULL,
    relationship   TEXT NOT NULL,
    destination    INTEGER NOT NULL,
    weight         INTEGER NOT NULL,
    valid_from     TEXT NOT NULL,
    valid_to       TEXT,
    invalidated_at TEXT,
    seq            INTEGER NOT NULL,
    changed        INTEGER NOT NULL,
    FOREIGN KEY ({ddl.partition}source) REFERENCES nodes ({ddl.partition}row),
    FOREIGN KEY ({ddl.partition}destination) REFERENCES nodes ({ddl.partition}row)
){ddl.by_row};
-- A relation holds once; its ended versions remain.
CREATE UNIQUE INDEX edges_open ON edges ({ddl.partition}source, destination, {ddl.hashed("relationship")})
    WHERE valid_to IS NULL;
CREATE INDEX edges_source ON edges (source, row);
CREATE INDEX edges_destination ON edges (destination, row);
CREATE INDEX edges_changed ON edges (changed);
{ddl.row_index("edges")}{ddl.id_indexes("edges", "seq")}{_projected_tables(ddl, "edge", _EDGE_TOMBSTONE)}"""


_EDGE_TOMBSTONE = """
    erased BOOLEAN NOT NULL,                            -- false for a relation that ended: it left a projection only"""


def _projected_tables(ddl: Ddl, kind: str, tombstone_column: str = "") -> str:
    """Return the tables that projections of nodes or edges follow: vectors, and tombstones of deleted rows."""
    return f"""
CREATE TABLE {kind}_vectors (
    {ddl.partition_column}
    row    INTEGER NOT NULL,
    vector VECTOR NOT NULL,
    PRIMARY KEY ({ddl.partition}row),
    FOREIGN KEY ({ddl.partition}row) REFERENCES {kind}s ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_row};
{ddl.row_index(f"{kind}_vectors")}
CREATE TABLE {kind}_tombstones (
    {ddl.partition_column}
    seq INTEGER NOT NULL,
    row INTEGER NOT NULL,
    {_IDS},{tombstone_column}
    PRIMARY KEY ({ddl.partition}seq)
){ddl.by_row};
{ddl.id_indexes(f"{kind}_tombstones", "seq")}"""


def _evidence_tables(ddl: Ddl) -> str:
    return f"""
-- Memories that support a relation.
CREATE TABLE evidence (
    {ddl.partition_column}
    edge      INTEGER NOT NULL,
    memory    INTEGER NOT NULL,                         -- row of the memory, which may be deleted
    withdrawn BOOLEAN NOT NULL DEFAULT false,           -- the memory was updated or deleted, and no longer supports it
    day_first TEXT,                                     -- days that the memory names for the relation, both inclusive;
    day_last  TEXT,                                     -- NULL for none, or for a span that is open at this end
    PRIMARY KEY ({ddl.partition}edge, memory),
    FOREIGN KEY ({ddl.partition}edge) REFERENCES edges ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_key};
CREATE INDEX evidence_memory ON evidence (memory);
CREATE INDEX evidence_dated ON evidence (edge) WHERE day_first IS NOT NULL OR day_last IS NOT NULL;
CREATE TABLE edge_messages (
    {ddl.partition_column}
    edge    INTEGER NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY ({ddl.partition}edge, message),
    FOREIGN KEY ({ddl.partition}edge) REFERENCES edges ({ddl.partition}row) ON DELETE CASCADE,
    FOREIGN KEY ({ddl.partition}message) REFERENCES messages ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_key};
CREATE INDEX edge_messages_message ON edge_messages ({ddl.partition}message);
"""


def _queue_tables(ddl: Ddl) -> str:
    return f"""
-- Queued work. The jobs of one part are done in the order of their rows.
CREATE TABLE jobs (
    {ddl.exact_row}
    {_IDS},
    {ddl.job_partition}
    kind         TEXT NOT NULL,                         -- remember, summary
    options      TEXT NOT NULL,                         -- a JSON object: further options of the add
    at           TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'waiting',       -- waiting, or failed too often
    attempts     INTEGER NOT NULL DEFAULT 0,
    ready_at     REAL NOT NULL DEFAULT 0,               -- Unix seconds
    leased_by    TEXT,
    leased_until REAL NOT NULL DEFAULT 0,
    error        TEXT
){ddl.by_row};
{ddl.row_index("jobs")}{ddl.id_indexes("jobs", "row")}
CREATE TABLE job_messages (
    {ddl.partition_column}
    job     INTEGER NOT NULL,
    place   INTEGER NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY ({ddl.partition}job, place),
    FOREIGN KEY ({ddl.partition}job) REFERENCES jobs ({ddl.partition}row) ON DELETE CASCADE,
    FOREIGN KEY ({ddl.partition}message) REFERENCES messages ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_key};
CREATE INDEX job_messages_message ON job_messages ({ddl.partition}message);
-- Progress of imports: number of messages that are stored, by the caller's key.
CREATE TABLE imports (
    {ddl.exact_columns}
    {_IDS},
    key  TEXT NOT NULL,
    done INTEGER NOT NULL
){ddl.by_row};
CREATE UNIQUE INDEX imports_key ON imports ({ddl.exact}, {ddl.hashed("key")});
"""


def _merge_tables(ddl: Ddl) -> str:
    return f"""
-- Merged entities, or relationships, of one scope, with the data to revert the merge. It holds no text of memories, and
-- erasing a memory erases its share of it.
CREATE TABLE merges (
    {ddl.exact_row}
    {_IDS},
    id      TEXT NOT NULL,
    kind    TEXT NOT NULL,                              -- entity, relationship
    name    TEXT NOT NULL,                              -- name that remains
    node    INTEGER,                                    -- entity that remains; NULL for relationships
    score   REAL,
    reasons TEXT NOT NULL,                              -- a JSON array
    at      TEXT NOT NULL,
    undone  TEXT,                                       -- time of the revert
    taken   TEXT NOT NULL,                              -- a JSON object: merge_undo.MergeUndo
    FOREIGN KEY ({ddl.partition}node) REFERENCES nodes ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_row};
CREATE UNIQUE INDEX merges_id ON merges ({ddl.unique_id});
CREATE INDEX merges_exact ON merges ({ddl.exact}, row);
CREATE INDEX merges_node ON merges ({ddl.partition}node);
-- Merged names: they resolve to the name that remains while the merge is in force.
CREATE TABLE aliases (
    {ddl.exact_columns}
    {_IDS},
    merge    INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    key      BLOB NOT NULL,                             -- records.entity_key of the name
    name     TEXT NOT NULL,
    standing BOOLEAN NOT NULL,
    {ddl.alias_order}
    FOREIGN KEY ({ddl.partition}merge) REFERENCES merges ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_row};
CREATE UNIQUE INDEX aliases_key ON aliases ({ddl.exact}, kind, key) WHERE standing;
CREATE INDEX aliases_merge ON aliases ({ddl.partition}merge);
"""


def provenance_script(ddl: Ddl) -> str:
    """Return the statements that add the origin of messages and memories to the tables of the first version."""
    trusted = ("memories", "past", "messages")
    columns = "".join(
        # The class of all data of earlier versions, in which only roles tell origins.
        f"ALTER TABLE {table} ADD COLUMN trust INTEGER NOT NULL DEFAULT 3;\n"
        f"UPDATE {table} SET trust = CASE role WHEN 'assistant' THEN 2 ELSE 1 END WHERE role <> 'user';\n"
        for table in trusted
    )
    return f"""
{columns}
ALTER TABLE messages ADD COLUMN source TEXT;
CREATE INDEX messages_source ON messages ({ddl.hashed("source")}) WHERE source IS NOT NULL;
-- Number of the change that linked the message to the memory, and true if the memory had its text already.
ALTER TABLE sources ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN repeats BOOLEAN NOT NULL DEFAULT false;
-- Messages that ended a relation or deleted a memory.
CREATE TABLE endings (
    {ddl.partition_column}
    kind    TEXT NOT NULL,                              -- memory, relation
    target  INTEGER NOT NULL,                           -- row of the memory or relation
    message INTEGER NOT NULL,
    PRIMARY KEY ({ddl.partition}kind, target, message),
    FOREIGN KEY ({ddl.partition}message) REFERENCES messages ({ddl.partition}row) ON DELETE CASCADE
){ddl.by_key};
CREATE INDEX endings_message ON endings ({ddl.partition}message);
"""


def feed_script(ddl: Ddl) -> str:
    """Return the statements that add the change feed, without the changes that the history contains already."""
    return f"""
-- Change feed: one row for each change of a memory, in the order of seq. It holds no text.
CREATE TABLE events (
    {ddl.partition_column}
    seq       INTEGER NOT NULL,
    event     TEXT NOT NULL,                            -- domain.feed.EventKind
    memory_id TEXT,                                     -- NULL, as the ids, for the erasure of a scope or of everything
    {_IDS},
    actor_id  TEXT,
    role      TEXT,
    source    TEXT,                                     -- source of the messages behind the change
    why       TEXT NOT NULL,                            -- domain.feed.Reason
    at        TEXT NOT NULL,                            -- when the change was written
    PRIMARY KEY ({ddl.partition}seq)
){ddl.by_row};
{ddl.id_indexes("events", "seq")}"""


def spaces_script(ddl: Ddl) -> str:
    """Return the statements that add spaces: memory that several users share."""
    return f"""
-- Spaces, their members, and the writes that wait for an owner. The ids are those of the space's memories.
CREATE TABLE spaces (
    {ddl.exact_row}
    {_IDS},
    requires_approval BOOLEAN NOT NULL,
    created_at        TEXT NOT NULL
){ddl.by_row};
CREATE UNIQUE INDEX spaces_exact ON spaces ({ddl.exact});
CREATE TABLE space_members (
    {ddl.exact_row}
    {_IDS},
    member TEXT NOT NULL,                               -- user id of the member
    role   TEXT NOT NULL,                               -- domain.spaces.SpaceRole
    since  TEXT NOT NULL
){ddl.by_row};
CREATE UNIQUE INDEX space_members_exact ON space_members ({ddl.exact}, member);
CREATE INDEX space_members_member ON space_members ({ddl.hashed("member")});
CREATE TABLE space_writes (
    {ddl.exact_row}
    {_IDS},
    id        TEXT NOT NULL,
    author    TEXT NOT NULL,                            -- user id of the member who wants to write
    kind      TEXT NOT NULL,                            -- domain.spaces.WriteKind
    arguments TEXT NOT NULL,                            -- a JSON object
    at        TEXT NOT NULL
){ddl.by_row};
CREATE UNIQUE INDEX space_writes_id ON space_writes ({ddl.unique_id});
CREATE INDEX space_writes_exact ON space_writes ({ddl.exact}, row);
"""


def feedback_script() -> str:
    """Return the statements that add the counts of feedback to memories."""
    return """
ALTER TABLE memories ADD COLUMN useful INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN useless INTEGER NOT NULL DEFAULT 0;
"""
