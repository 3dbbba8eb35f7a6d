"""Encryption of a whole SQLite file: its mark, and the checks when it is opened."""

from __future__ import annotations

import json
import sqlite3

from mem0_core.domain.records import Scope
from mem0_core.errors import EncryptionError
from mem0_core.stores.sqlite.encryption.sealed_tables import guard_statements
from mem0_core.stores.sqlite.encryption.vault import Vault

_MARK = "encryption"
_FORMAT = 1
_OWNED_TABLES = (
    *("memories", "past", "messages", "summaries", "nodes", "edges", "jobs", "merges", "aliases"),
    *("imports", "tombstones", "node_tombstones", "edge_tombstones", "events"),
    *("spaces", "space_members", "space_writes"),
)
_DATA_TABLES = (*_OWNED_TABLES, "history")


def is_encrypted(db: sqlite3.Connection) -> bool:
    """Return True if a file is encrypted."""
    return _read_mark(db) is not None


def check_keys(db: sqlite3.Connection, path: str, vault: Vault | None) -> None:
    """Compare the keys that were passed with those of a file.

    Raises:
        EncryptionError: the file is encrypted and there are no keys, or they are of another store.
    """
    mark = _read_mark(db)
    if mark is None:
        return
    if vault is None:
        raise EncryptionError(f"{path} is encrypted: pass its keys, as Memory(..., keys=...)")
    if mark["format"] != _FORMAT:
        raise EncryptionError(f"{path} was encrypted by a newer version (format {mark['format']}, known {_FORMAT})")
    if mark["keys"] not in (None, vault.provider.identity):
        raise EncryptionError(f"{path} is encrypted with the keys {mark['keys']}: pass those, not others")


def encrypt_file(db: sqlite3.Connection, path: str, vault: Vault) -> None:
    """Mark a file without data as encrypted, and make its tables refuse plain values.

    Of a file that is encrypted, only the tables that a new schema version added are changed.

    Raises:
        EncryptionError: the file contains plain data.
    """
    if is_encrypted(db):
        _refuse_plain_values(db)
        return
    for table in _DATA_TABLES:
        if db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            raise EncryptionError(
                f"{path} contains data that is not encrypted ({table}): encrypt a new store, and copy the data into it"
                " with `mem0-core export` and `mem0-core import`"
            )
    _refuse_plain_values(db)
    mark = json.dumps({"format": _FORMAT, "keys": vault.provider.identity})
    db.execute("INSERT INTO meta VALUES (?, ?)", (_MARK, mark))


def _refuse_plain_values(db: sqlite3.Connection) -> None:
    for statement in guard_statements():
        db.execute(statement)


def has_rows(db: sqlite3.Connection, scope: Scope) -> bool:
    """Return True if a file contains rows of a scope."""
    where = " AND ".join(f"{axis.value} = ?" for axis in scope.ids)
    values = list(scope.ids.values())
    return any(
        db.execute(f"SELECT 1 FROM main.{table} WHERE {where} LIMIT 1", values).fetchone() for table in _OWNED_TABLES
    )


def _read_mark(db: sqlite3.Connection) -> dict[str, object] | None:
    found = db.execute("SELECT value FROM main.meta WHERE key = ?", (_MARK,)).fetchone()
    mark: dict[str, object] | None = json.loads(found[0]) if found else None
    return mark
