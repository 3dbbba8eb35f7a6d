"""The file of a server's idempotent replies: its table, and the erasure of a subject from it.

A reply is sealed with the secret of an API key, which no erasure knows. So each row has the ids of its
memories, and an erasure drops the replies of every scope that it overlaps.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from mem0_core.domain.records import Axis, Scope
from mem0_core.errors import StoreError

REPLY_FILE = "server-replies.db"

_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    owner TEXT NOT NULL,
    name BLOB NOT NULL,         -- digest of the idempotency key
    request BLOB NOT NULL,      -- digest of the request
    status INTEGER,             -- NULL while the request is in progress
    body BLOB,                  -- NULL also when the reply was erased
    at REAL NOT NULL,           -- end of the lease while in progress, then time of the response
    process TEXT NOT NULL,
    subject TEXT NOT NULL,      -- digests of the ids of the memories in the response, by axis
    erased INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, name)
)
"""

_DIGEST_BYTES = 16


def prepare_reply_file(db: sqlite3.Connection) -> None:
    """Create the table of replies, in the place of one with other columns."""
    db.execute("PRAGMA secure_delete = ON")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        db.execute("DROP TABLE IF EXISTS replies")
        db.execute(f"PRAGMA user_version = {_VERSION}")
    db.execute(_SCHEMA)


def encode_subject(ids: Mapping[str, str | None], name: bytes) -> str:
    """Return the ids of a reply's memories for its row, as digests that are keyed with the name of the row."""
    return json.dumps({axis: _digest(value, name) for axis, value in sorted(ids.items()) if value is not None})


def erase_replies(folder: Path, scope: Scope) -> int:
    """Erase the replies that may contain memories of a scope, and return their number.

    Their requests stay known, so that a repeat of one is not processed again. A request in progress keeps no reply.

    Raises:
        StoreError: The file cannot be written.
    """
    return _visit(folder, scope, is_erasing=True)


def count_replies(folder: Path, scope: Scope) -> int:
    """Return the number of replies that may contain memories of a scope.

    Raises:
        StoreError: The file cannot be read.
    """
    return _visit(folder, scope, is_erasing=False)


def _visit(folder: Path, scope: Scope, *, is_erasing: bool) -> int:
    file = folder / REPLY_FILE
    if not file.exists():
        return 0
    try:
        with closing(sqlite3.connect(file, timeout=30.0, isolation_level=None)) as db:
            prepare_reply_file(db)
            db.execute("BEGIN IMMEDIATE")
            rows = db.execute("SELECT rowid, name, subject, body IS NOT NULL FROM replies WHERE NOT erased").fetchall()
            found = [(row, has_body) for row, name, subject, has_body in rows if _overlaps(scope, subject, name)]
            if is_erasing:
                db.executemany(
                    "UPDATE replies SET body = NULL, subject = '{}', erased = 1 WHERE rowid = ?",
                    [(row,) for row, _ in found],
                )
            db.execute("COMMIT")
            if is_erasing:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreError(f"cannot erase the replies in {file}: {error}; the erasure will be resumed") from error
    return sum(has_body for _, has_body in found)


def _overlaps(scope: Scope, subject: str, name: bytes) -> bool:
    """Return False if an id of a reply differs from that of the erased scope."""
    ids = json.loads(subject)
    return all(ids.get(axis.value, digest) == digest for axis, digest in _scope_digests(scope, name))


def _scope_digests(scope: Scope, name: bytes) -> list[tuple[Axis, str]]:
    return [(axis, _digest(value, name)) for axis, value in scope.ids.items()]


def _digest(value: str, name: bytes) -> str:
    return hashlib.blake2b(value.encode(errors="surrogatepass"), key=name, digest_size=_DIGEST_BYTES).hexdigest()
