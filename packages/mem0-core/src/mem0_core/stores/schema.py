"""The tables of the SQLite truth, one migration per step; the step reached is the file's ``user_version``.

A file that mem0 1.x wrote holds a `history` table and nothing else: it opens as step 0 and keeps its rows.
"""

from __future__ import annotations

__all__ = ["HISTORY_COLUMNS", "MIGRATIONS"]

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
"""Seed 004's columns, in its order: nothing is added to them, so that mem0's own tools read the file."""

_FIRST = """
CREATE TABLE IF NOT EXISTS history (
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

-- epoch: new whenever the past was rewritten; seq: number of the last change; space: the embedder's name and dims.
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', lower(hex(randomblob(8)))), ('seq', 0);

CREATE TABLE memories (
    row             INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: projections know a memory by it
    id              TEXT NOT NULL UNIQUE,
    user_id         TEXT,
    agent_id        TEXT,
    run_id          TEXT,
    text            TEXT NOT NULL,
    hash            TEXT NOT NULL,
    same            BLOB NOT NULL,                      -- records.same_fact_key
    metadata        TEXT NOT NULL,                      -- a JSON object
    actor_id        TEXT,
    role            TEXT,
    memory_type     TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT,
    expiration_date TEXT,
    seq             INTEGER NOT NULL
);
-- One memory per scope and fact. Ids are never empty, so '' can stand for "none".
CREATE UNIQUE INDEX memories_same ON memories (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), same);
CREATE INDEX memories_user ON memories (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX memories_agent ON memories (agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX memories_run ON memories (run_id, seq) WHERE run_id IS NOT NULL;

-- Apart from memories, so that reading texts does not drag 1.5 kB of vector per row through the cache.
CREATE TABLE vectors (
    row    INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
    vector BLOB NOT NULL                                -- float32, little-endian, L2 norm 1
);

-- What is gone, without its text: projections learn of deletions from it, purging finds old history by it.
CREATE TABLE tombstones (
    seq       INTEGER PRIMARY KEY,
    row       INTEGER NOT NULL,
    memory_id TEXT NOT NULL,
    user_id   TEXT,
    agent_id  TEXT,
    run_id    TEXT
);
CREATE INDEX tombstones_user ON tombstones (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX tombstones_agent ON tombstones (agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX tombstones_run ON tombstones (run_id, seq) WHERE run_id IS NOT NULL;

CREATE TABLE messages (
    row        INTEGER PRIMARY KEY AUTOINCREMENT,
    digest     BLOB NOT NULL UNIQUE,                    -- of the whole add and the place in it: a retry stores nothing
    user_id    TEXT,
    agent_id   TEXT,
    run_id     TEXT,
    role       TEXT NOT NULL,
    content    TEXT NOT NULL,
    name       TEXT,
    metadata   TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX messages_user ON messages (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX messages_agent ON messages (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX messages_run ON messages (run_id) WHERE run_id IS NOT NULL;

-- Which messages a memory was learnt from: deleting the memory deletes them, purging finds them even later.
CREATE TABLE sources (
    memory  INTEGER NOT NULL,                           -- a row of memories, also of one that is gone
    message INTEGER NOT NULL REFERENCES messages (row) ON DELETE CASCADE,
    PRIMARY KEY (memory, message)
) WITHOUT ROWID;
CREATE INDEX sources_message ON sources (message);
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""Step n takes a file from ``user_version`` n to n + 1, in one transaction. Never edit one that was released."""
