"""The tables of the SQLite truth, one migration per step; the step reached is the file's ``user_version``.

A file that holds other tables than these is another program's (`sqlite_foreign`), and is never migrated.
"""

from __future__ import annotations

__all__ = ["HISTORY_COLUMNS", "SCHEMA_VERSIONS"]

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
"""Seed 004's columns, in its order: nothing is added to them, so that mem0's own tools read the table."""

_SCHEMA_1 = """
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

_SCHEMA_2 = """
-- identity: the store's own name, for projections that several stores share.
INSERT INTO meta VALUES ('identity', lower(hex(randomblob(8))));

-- Since when a memory says what it says; created_at is of the memory, this is of its text.
ALTER TABLE memories ADD COLUMN valid_from TEXT NOT NULL DEFAULT '';
UPDATE memories SET valid_from = coalesce(
    (SELECT max(updated_at) FROM history WHERE memory_id = memories.id AND event = 'UPDATE'), created_at);

-- What memories said until they were updated, or deleted by a plan: searches as of a day gone by read it.
CREATE TABLE past (
    row             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL,                      -- the memory's
    memory          INTEGER NOT NULL,                   -- its row, also where that is gone
    user_id         TEXT,
    agent_id        TEXT,
    run_id          TEXT,
    text            TEXT NOT NULL,
    hash            TEXT NOT NULL,
    metadata        TEXT NOT NULL,
    actor_id        TEXT,
    role            TEXT,
    memory_type     TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT,
    expiration_date TEXT,
    seq             INTEGER NOT NULL,
    valid_from      TEXT NOT NULL,
    valid_to        TEXT NOT NULL,                      -- it held from the first until before the second
    vector          BLOB NOT NULL
);
CREATE INDEX past_id ON past (id);
CREATE INDEX past_user ON past (user_id, valid_to) WHERE user_id IS NOT NULL;
CREATE INDEX past_agent ON past (agent_id, valid_to) WHERE agent_id IS NOT NULL;
CREATE INDEX past_run ON past (run_id, valid_to) WHERE run_id IS NOT NULL;

-- Of nodes and edges, seq is when their vector came, changed when anything of them did.
CREATE TABLE nodes (
    row      INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id  TEXT,
    agent_id TEXT,
    run_id   TEXT,
    name     TEXT NOT NULL,
    key      BLOB NOT NULL,                             -- records.entity_key
    type     TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    changed  INTEGER NOT NULL
);
CREATE UNIQUE INDEX nodes_key ON nodes (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), key);
CREATE INDEX nodes_changed ON nodes (changed);
CREATE INDEX nodes_user ON nodes (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX nodes_agent ON nodes (agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX nodes_run ON nodes (run_id, seq) WHERE run_id IS NOT NULL;

CREATE TABLE edges (
    row            INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id        TEXT,
    agent_id       TEXT,
    run_id         TEXT,
    source         INTEGER NOT NULL REFERENCES nodes (row),
    relationship   TEXT NOT NULL,
    destination    INTEGER NOT NULL REFERENCES nodes (row),
    weight         INTEGER NOT NULL,
    valid_from     TEXT NOT NULL,
    valid_to       TEXT,
    invalidated_at TEXT,
    seq            INTEGER NOT NULL,
    changed        INTEGER NOT NULL
);
-- A relation holds once; what held before stays beside it.
CREATE UNIQUE INDEX edges_open ON edges (source, destination, relationship) WHERE valid_to IS NULL;
CREATE INDEX edges_source ON edges (source);
CREATE INDEX edges_destination ON edges (destination);
CREATE INDEX edges_changed ON edges (changed);
CREATE INDEX edges_user ON edges (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX edges_agent ON edges (agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX edges_run ON edges (run_id, seq) WHERE run_id IS NOT NULL;

CREATE TABLE node_vectors (row INTEGER PRIMARY KEY REFERENCES nodes (row) ON DELETE CASCADE, vector BLOB NOT NULL);
CREATE TABLE edge_vectors (row INTEGER PRIMARY KEY REFERENCES edges (row) ON DELETE CASCADE, vector BLOB NOT NULL);

-- Which memories a relation came from. Withdrawn: the memory was updated or deleted, and no longer says it.
CREATE TABLE evidence (
    edge      INTEGER NOT NULL REFERENCES edges (row) ON DELETE CASCADE,
    memory    INTEGER NOT NULL,                         -- a row of memories, also of one that is gone
    withdrawn INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (edge, memory)
) WITHOUT ROWID;
CREATE INDEX evidence_memory ON evidence (memory);
CREATE TABLE edge_messages (
    edge    INTEGER NOT NULL REFERENCES edges (row) ON DELETE CASCADE,
    message INTEGER NOT NULL REFERENCES messages (row) ON DELETE CASCADE,
    PRIMARY KEY (edge, message)
) WITHOUT ROWID;
CREATE INDEX edge_messages_message ON edge_messages (message);

CREATE TABLE node_tombstones (
    seq INTEGER PRIMARY KEY, row INTEGER NOT NULL, user_id TEXT, agent_id TEXT, run_id TEXT
);
CREATE INDEX node_tombstones_user ON node_tombstones (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX node_tombstones_agent ON node_tombstones (agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX node_tombstones_run ON node_tombstones (run_id, seq) WHERE run_id IS NOT NULL;
-- What has ended is not gone, yet leaves the projection of what holds: erased tells the one from the other.
CREATE TABLE edge_tombstones (
    seq INTEGER PRIMARY KEY, row INTEGER NOT NULL, user_id TEXT, agent_id TEXT, run_id TEXT, erased INTEGER NOT NULL
);
CREATE INDEX edge_tombstones_user ON edge_tombstones (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX edge_tombstones_agent ON edge_tombstones (agent_id, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX edge_tombstones_run ON edge_tombstones (run_id, seq) WHERE run_id IS NOT NULL;
"""

_SCHEMA_3 = """
ALTER TABLE memories ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_pinned ON memories (user_id, agent_id, run_id) WHERE pinned;

-- Work put off. In a partition (the first id of the scope) jobs are done in the order of their rows.
CREATE TABLE jobs (
    row          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind         TEXT NOT NULL,                         -- remember, summary
    partition    TEXT NOT NULL,
    user_id      TEXT,
    agent_id     TEXT,
    run_id       TEXT,
    options      TEXT NOT NULL,                         -- a JSON object: what else the add was given
    at           TEXT NOT NULL,
    state        TEXT NOT NULL,                         -- waiting, or parked after too many failures
    attempts     INTEGER NOT NULL,
    ready_at     REAL NOT NULL,                         -- Unix seconds
    leased_by    TEXT,
    leased_until REAL NOT NULL,
    error        TEXT
);
CREATE INDEX jobs_user ON jobs (user_id, row) WHERE user_id IS NOT NULL;
CREATE INDEX jobs_agent ON jobs (agent_id, row) WHERE agent_id IS NOT NULL;
CREATE INDEX jobs_run ON jobs (run_id, row) WHERE run_id IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (partition, row) WHERE state = 'waiting';
CREATE TABLE job_messages (
    job     INTEGER NOT NULL REFERENCES jobs (row) ON DELETE CASCADE,
    place   INTEGER NOT NULL,
    message INTEGER NOT NULL REFERENCES messages (row) ON DELETE CASCADE,
    PRIMARY KEY (job, place)
) WITHOUT ROWID;
CREATE INDEX job_messages_message ON job_messages (message);

-- How many messages of an import are remembered, by the caller's key for it: it goes on from there.
CREATE TABLE imports (
    user_id  TEXT,
    agent_id TEXT,
    run_id   TEXT,
    key      TEXT NOT NULL,
    done     INTEGER NOT NULL
);
CREATE UNIQUE INDEX imports_key ON imports (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), key);

-- What a conversation has been about so far, as it was summed up again and again.
CREATE TABLE summaries (
    row        INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    TEXT,
    agent_id   TEXT,
    run_id     TEXT,
    text       TEXT NOT NULL,
    upto       INTEGER NOT NULL,                        -- the row of the last message in it
    valid_from TEXT NOT NULL                            -- the time of that message
);
CREATE INDEX summaries_scope ON summaries (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), row);
CREATE INDEX messages_scope ON messages (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), row);
"""

_SCHEMA_4 = """
-- What ranking needs of a memory, so that a search reads no text but that of its results.
CREATE TABLE sketches (
    row     INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
    session INTEGER NOT NULL,                           -- sqlite_words.session_of: what was said together
    length  INTEGER NOT NULL,                           -- in words
    asks    INTEGER NOT NULL,
    terms   TEXT NOT NULL,                              -- words.Words.terms, between spaces
    names   TEXT NOT NULL                               -- words.Words.names, between newlines
);
CREATE INDEX sketches_session ON sketches (session, row);

-- Which memories have a term: each term stands under the ids of its memory (sqlite_words.keys), so that what a search
-- reads, and what a word weighs in it, grows with one user's memories and not with everybody's. The ASCII tokenizer
-- splits nothing that `words` has left whole.
CREATE VIRTUAL TABLE words USING fts5 (keys, content = '', detail = none, tokenize = "ascii tokenchars '_'");
-- They are filled when the store opens (sqlite_words.refresh_words), and anew when words are read in another way.
"""

_SCHEMA_5 = """
-- The days that a memory tells of where it says a relation, both inclusive; NULL where it names none, or the span is
-- open at that end.
ALTER TABLE evidence ADD COLUMN day_first TEXT;
ALTER TABLE evidence ADD COLUMN day_last TEXT;
CREATE INDEX evidence_dated ON evidence (edge) WHERE day_first IS NOT NULL OR day_last IS NOT NULL;

-- Entities, or relationships, of one scope that were made one. What they were before is kept, so that it can come back:
-- no text of memories is in it, and what is erased is erased from it too.
CREATE TABLE merges (
    row      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    user_id  TEXT,
    agent_id TEXT,
    run_id   TEXT,
    kind     TEXT NOT NULL,                             -- entity, relationship
    name     TEXT NOT NULL,                             -- what they are called since
    node     INTEGER REFERENCES nodes (row) ON DELETE CASCADE,  -- the entity that stayed; NULL for relationships
    score    REAL,
    reasons  TEXT NOT NULL,                             -- a JSON array
    at       TEXT NOT NULL,
    undone   TEXT,                                      -- when it was taken back
    taken    TEXT NOT NULL                              -- a JSON object: the rows that went
);
CREATE INDEX merges_scope ON merges (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), row);
CREATE INDEX merges_node ON merges (node);

-- The names that went: what is said of them is said of what stayed, while the merge stands.
CREATE TABLE aliases (
    merge    INTEGER NOT NULL REFERENCES merges (row) ON DELETE CASCADE,
    user_id  TEXT,
    agent_id TEXT,
    run_id   TEXT,
    kind     TEXT NOT NULL,
    key      BLOB NOT NULL,                             -- records.entity_key of the name
    name     TEXT NOT NULL,
    standing INTEGER NOT NULL
);
CREATE UNIQUE INDEX aliases_key ON aliases (ifnull(user_id, ''), ifnull(agent_id, ''), ifnull(run_id, ''), kind, key)
    WHERE standing;
CREATE INDEX aliases_merge ON aliases (merge);
"""

SCHEMA_VERSIONS: tuple[str, ...] = (_SCHEMA_1, _SCHEMA_2, _SCHEMA_3, _SCHEMA_4, _SCHEMA_5)
"""Step n takes a file from ``user_version`` n to n + 1, in one transaction. Never edit one that was released."""
