"""Tables of a SQLite store. The version of a file is its ``user_version``.

A file that holds tables of another program (`_layout`) is never migrated.
"""

from __future__ import annotations

from mem0_core.stores.sql.schema import (
    Ddl,
    feed_script,
    feedback_script,
    provenance_script,
    shared_tables_script,
    spaces_script,
)

_NUMBERED_ROW = "row INTEGER PRIMARY KEY AUTOINCREMENT,"  # never reused: projections identify a memory by it


def _id_indexes(table: str, then: str) -> str:
    return "".join(
        f"CREATE INDEX {table}_{axis} ON {table} ({axis}_id, {then}) WHERE {axis}_id IS NOT NULL;\n"
        for axis in ("user", "agent", "run")
    )


_DDL = Ddl(
    partition="",
    partition_column="",
    row=_NUMBERED_ROW,
    exact_row=_NUMBERED_ROW,
    exact_columns="",
    unique_id="id",
    exact="ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, '')",  # ids are never empty
    by_row="",
    by_key=" WITHOUT ROWID",
    hashed=lambda column: column,
    row_index=lambda table: "",
    id_indexes=_id_indexes,
    job_partition="part TEXT NOT NULL,",
)

_SQLITE_TABLES = """
CREATE TABLE history (
    id           TEXT PRIMARY KEY,
    memory_id    TEXT,
    old_memory   TEXT,
    new_memory   TEXT,
    event        TEXT,
    created_at   DATETIME,
    updated_at   DATETIME,
    is_deleted   INTEGER,
    actor_id     TEXT,
    role         TEXT
);
CREATE INDEX history_memory ON history (memory_id);

-- epoch: new whenever stored data was rewritten; identity: name of the store, for projections of several stores;
-- seq: number of the last change; space: name and dims of the embedder; words: version of the text analysis.
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', lower(hex(randomblob(8)))), ('identity', lower(hex(randomblob(8)))), ('seq', 0);

-- Word index: each term is stored under the ids of its memory (`lexicon`), so that the cost of a search and the weight
-- of a word depend on one user's memories only. The ASCII tokenizer splits nothing that the text analysis kept whole.
CREATE VIRTUAL TABLE words USING fts5 (keys, content = '', detail = none, tokenize = "ascii tokenchars '_'");
"""

_INDEXES = """
CREATE INDEX memories_pinned ON memories (user_id, agent_id, run_id) WHERE pinned;
CREATE INDEX jobs_waiting ON jobs (part, row) WHERE state = 'waiting';
"""


_SHARED_TABLES = shared_tables_script(_DDL).replace(" VECTOR ", " BLOB ")

# A sealed name stays with the history: it is bound to that row. A number above the counter would be given out again.
_EARLIER_EVENTS = """
INSERT INTO events (seq, event, memory_id, user_id, agent_id, run_id, actor_id, role, why, at)
SELECT row_number() OVER (ORDER BY h.rowid), ifnull(h.event, 'UPDATE'), h.memory_id, o.user_id, o.agent_id, o.run_id,
    CASE typeof(h.actor_id) WHEN 'text' THEN h.actor_id END, h.role, 'history', coalesce(h.updated_at, h.created_at, '')
FROM history AS h LEFT JOIN (
    SELECT id, max(user_id) AS user_id, max(agent_id) AS agent_id, max(run_id) AS run_id FROM (
        SELECT id, user_id, agent_id, run_id FROM memories
        UNION SELECT memory_id, user_id, agent_id, run_id FROM tombstones
    ) GROUP BY id
) AS o ON o.id = h.memory_id;
UPDATE meta SET value = max(value, (SELECT count(*) FROM history)) WHERE key = 'seq';
"""

SCHEMA_VERSIONS: tuple[str, ...] = (
    _SQLITE_TABLES + _SHARED_TABLES + _INDEXES,
    provenance_script(_DDL),
    feed_script(_DDL) + _EARLIER_EVENTS,
    spaces_script(_DDL),
    feedback_script(),
)
"""Script n takes a file from ``user_version`` n to n + 1, in one transaction. Never edit a released one."""
