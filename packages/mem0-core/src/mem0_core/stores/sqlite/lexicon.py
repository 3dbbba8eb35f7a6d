"""Words of memories in SQLite: the ranking features of each memory, and the index that finds memories by a word.

The table `sketches` holds the features, and with the slots of a memory its statements; the FTS5 table `words` holds the
index. A token of the index is a term under an id of its memory, ``<hash of the id><kind><term>``. So FTS5 keeps the
postings of each id apart, and never reads or counts those of other ids. In an encrypted file, a token is
``<prefix of the tenant><kind><keyed hash of the term>``.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import Axis, MemoryItem, Scope
from mem0_core.interfaces import FeatureChanges, MemoryFeatures, MemoryFeatureSet, ScopeState, WordKind
from mem0_core.language.statements import pack_statements
from mem0_core.language.terms import analyze_text, get_analyzer_version
from mem0_core.stores.sql.rows import index_keys, narrowest_axis, scope_ids, session_number
from mem0_core.stores.sqlite.dialect import SQLITE, tenant_of
from mem0_core.stores.sqlite.encryption.sealed_tables import TENANT_SQL
from mem0_core.stores.sqlite.encryption.vault import Vault
from mem0_core.stores.sqlite.session import Database

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "SQLiteLexicon",
    "clear_word_index",
    "index_memory",
    "index_text",
    "is_word_index_stale",
    "purge_word_index",
    "refresh_words",
    "session_number",
    "unindex_memory",
]

_KIND_PREFIXES: dict[str, str] = {"term": "t", "name": "n", "speaker": "s", "slot": "f"}
_STATEMENTS = "="  # begins the line of `sketches.slots` with the statements of the text
_HAS_MATCH_SQL = "SELECT 1 FROM words WHERE words MATCH ? LIMIT 1"
_POSTINGS_PER_STATEMENT = 100  # postings read in one statement
# Each change takes the next number of one sequence. An event alone: feedback changes no text and no vector.
# Rows of `past` and `jobs` are deleted without a number; new ones have higher rows.
_STATE_SQL = (
    "SELECT (SELECT value FROM meta WHERE key = 'epoch'), (SELECT value FROM meta WHERE key = 'space'),"
    " (SELECT max(seq) FROM memories WHERE {whole}), (SELECT max(seq) FROM tombstones WHERE {whole}),"
    " (SELECT max(seq) FROM events WHERE {whole}),"
    " (SELECT count(*) || ' ' || ifnull(max(row), 0) FROM past WHERE {whole}),"
    " (SELECT count(*) || ' ' || ifnull(max(j.row), 0) FROM jobs AS j JOIN job_messages AS h ON h.job = j.row"
    " WHERE {whole}),"
    " (SELECT max(changed) FROM nodes WHERE {where}), (SELECT max(seq) FROM node_tombstones WHERE {where}),"
    " (SELECT max(changed) FROM edges WHERE {where}), (SELECT max(seq) FROM edge_tombstones WHERE {where})"
)


class SQLiteLexicon:
    """A `VersionedLexicon`, for reading."""

    inline = True  # see `flow`

    def __init__(self, db: Database) -> None:
        self._read, self._vault = db.read, db.vault
        self.version = db.version

    def postings(
        self, scope: Scope, words: Sequence[str], *, kind: WordKind, limit: int
    ) -> dict[str, NDArray[np.int64]]:
        if self._vault is not None:
            with self._read() as db:
                return _sealed_postings(db, self._vault, scope, words, kind, limit)
        import numpy as np

        # The narrowest id has the shortest postings; the others are checked against the memories.
        others = dict(scope.ids)
        axis = narrowest_axis(scope)
        prefix = _prefix(axis, others.pop(axis)) + _KIND_PREFIXES[kind]
        joined = " JOIN memories AS m ON m.row = words.rowid" if others else ""
        checked = "".join(f" AND m.{other.value} = ?" for other in others)
        having = f"SELECT words.rowid AS row FROM words{joined} WHERE words MATCH ?{checked} LIMIT ?"
        one = f"SELECT ?, group_concat(row) FROM ({having})"
        found: dict[str, NDArray[np.int64]] = {}
        distinct = list(dict.fromkeys(words))
        with self._read() as db:
            if kind == "speaker" and not db.execute(_HAS_MATCH_SQL, (f'"{prefix}" *',)).fetchone():
                return {}  # the messages of most users carry no names of speakers
            for start in range(0, len(distinct), _POSTINGS_PER_STATEMENT):
                some = distinct[start : start + _POSTINGS_PER_STATEMENT]
                values = [v for w in some for v in (w, f'"{prefix}{_token(w)}"', *others.values(), limit)]
                for word, rows in db.execute(" UNION ALL ".join([one] * len(some)), values):
                    if rows is not None:
                        found[word] = np.fromstring(rows, dtype=np.int64, sep=",")
        return found

    def memory_features(
        self, scope: Scope, rows: Sequence[int], *, today: str, vector: NDArray[np.float32]
    ) -> MemoryFeatureSet:
        where, _ = SQLITE.in_scope(scope, "m", by_row=True)
        with self._read() as db:
            values = (_to_json_array(rows), *scope.ids.values(), today)
            read = db.execute(f"{_FEATURES_SQL} WHERE {where} AND {_NOT_EXPIRED}", values)
            found = [_to_features(row) for row in read]
            # One set of two columns: a Python loop over the rows would take as long as the statement.
            beside = {*map(_PREVIOUS_ROW, found), *map(_NEXT_ROW, found)} - {None, *map(_ROW, found)}
            return MemoryFeatureSet(
                found, dict(db.execute(_TERMS_SQL, (_to_json_array(beside),)).fetchall()) if beside else {}, {}
            )

    def state(self, scope: Scope) -> ScopeState:
        whole, partition = SQLITE.in_scope(scope.partition_scope)
        where, values = SQLITE.in_scope(scope)
        with self._read(is_short=True) as db:
            row = db.execute(_STATE_SQL.format(whole=whole, where=where), (*partition * 5, *values * 4)).fetchone()
        epoch, space, memories, tombstones, events, past, queued, nodes, gone_nodes, relations, gone_relations = row
        return ScopeState(
            epoch,
            None if space is None else tuple(json.loads(space)),
            max(memories or 0, tombstones or 0, events or 0),
            max(nodes or 0, gone_nodes or 0),
            max(relations or 0, gone_relations or 0),
            tuple(map(int, past.split())),
            tuple(map(int, queued.split())),
        )

    def feature_changes(self, scope: Scope, *, after: int, limit: int) -> FeatureChanges:
        where, values = SQLITE.in_scope(scope, "m")
        changed = (
            f"SELECT m.row FROM memories AS m WHERE {where} AND m.seq > ? UNION SELECT k.row FROM events AS m"
            f" JOIN memories AS k ON k.id = m.memory_id WHERE {where} AND m.seq > ?"
        )
        if after:
            condition, bound = f"{where} AND m.row IN ({changed})", [*values, *values, after, *values, after]
        else:
            condition, bound = where, values
        with self._read(is_short=after > 0) as db:
            found = db.execute(f"{_SCOPE_FEATURES_SQL} WHERE {condition} LIMIT ?", (*bound, limit)).fetchall()
            removed = db.execute(f"SELECT m.row FROM tombstones AS m WHERE {where} AND m.seq > ?", (*values, after))
            rows = [row for (row,) in removed] if after else []
        return FeatureChanges([_to_features(row) for row in found], [row[14] for row in found], rows)


def _to_features(row: Sequence[Any]) -> MemoryFeatures:
    """Return the features in a row of `_FEATURES_SQL` or `_SCOPE_FEATURES_SQL`."""
    slots, statements = _split_slots(row[11])
    return MemoryFeatures._make((*row[:11], slots, row[12], row[13], statements))


def _sealed_postings(
    db: sqlite3.Connection, vault: Vault, scope: Scope, words: Sequence[str], kind: WordKind, limit: int
) -> dict[str, NDArray[np.int64]]:
    """Return the postings of an encrypted file. A scope without a user may contain memories of many tenants."""
    import numpy as np

    others = dict(scope.ids)
    if scope.user_id is not None:
        del others[Axis.USER]
        tenants = [tenant_of(scope)]
    else:
        where, values = SQLITE.in_scope(scope)
        ids = {axis.value: axis.value for axis in Axis}
        distinct = f"SELECT DISTINCT {TENANT_SQL.format(**ids)} FROM memories WHERE {where}"
        tenants = [tenant for (tenant,) in db.execute(distinct, values)]
    prefixes = [prefix for tenant in tenants if (prefix := vault.prefix(tenant))]
    if not prefixes or (kind == "speaker" and not _has_speakers(db, prefixes)):
        return {}
    joined = " JOIN memories AS m ON m.row = words.rowid" if others else ""
    checked = "".join(f" AND m.{other.value} = ?" for other in others)
    matching = f"SELECT words.rowid AS row FROM words{joined} WHERE words MATCH ?{checked} LIMIT ?"
    sql = f"SELECT group_concat(row) FROM ({matching})"
    found: dict[str, NDArray[np.int64]] = {}
    for word in dict.fromkeys(words):
        tokens = " OR ".join(f'"{vault.token(tenant, _KIND_PREFIXES[kind], word)}"' for tenant in tenants)
        ((rows,),) = db.execute(sql, (tokens, *others.values(), limit)).fetchall()
        if rows is not None:
            found[word] = np.fromstring(rows, dtype=np.int64, sep=",")
    return found


def _has_speakers(db: sqlite3.Connection, prefixes: Sequence[str]) -> bool:
    some = " OR ".join(f'"{prefix}{_KIND_PREFIXES["speaker"]}" *' for prefix in prefixes)
    return db.execute(_HAS_MATCH_SQL, (some,)).fetchone() is not None


_PREVIOUS_ROW, _NEXT_ROW, _ROW = attrgetter("previous_row"), attrgetter("next_row"), attrgetter("row")
_FEATURES_SQL = (
    "SELECT s.row, s.session, s.length, s.asks, s.terms, s.names, m.actor_id, m.role, m.created_at,"
    " (SELECT max(row) FROM sketches AS b WHERE b.session = s.session AND b.row < s.row),"
    " (SELECT min(row) FROM sketches AS a WHERE a.session = s.session AND a.row > s.row), s.slots, m.useful, m.useless"
    " FROM json_each(?) AS pool CROSS JOIN sketches AS s ON s.row = pool.value JOIN memories AS m ON m.row = s.row"
)
_SCOPE_FEATURES_SQL = (
    "SELECT s.row, s.session, s.length, s.asks, s.terms, s.names, m.actor_id, m.role, m.created_at, NULL, NULL,"
    " s.slots, m.useful, m.useless, m.expiration_date FROM memories AS m JOIN sketches AS s ON s.row = m.row"
)
_NOT_EXPIRED = "(m.expiration_date IS NULL OR m.expiration_date >= ?)"
_TERMS_SQL = "SELECT s.row, s.terms FROM json_each(?) AS pool CROSS JOIN sketches AS s ON s.row = pool.value"


def _to_json_array(rows: Iterable[int | None]) -> str:
    return f"[{','.join(map(str, rows))}]"


# --- writing -----------------------------------------------------------------------------------------------------


def index_memory(db: sqlite3.Connection, row: int, item: MemoryItem, session: int, vault: Vault | None = None) -> None:
    """Add a memory to the word index."""
    index_text(db, row, item.text, (item.actor_id, item.role), scope_ids(item.scope), session, vault)


def index_text(
    db: sqlite3.Connection,
    row: int,
    text: str,
    speaker: tuple[str | None, str | None],
    ids: Sequence[str | None],
    session: int,
    vault: Vault | None = None,
) -> None:
    """Add a text and its ranking features to the word index.

    Args:
        speaker: name and role of the speaker.
        vault: encryption of an encrypted file.
    """
    words = analyze_text(text, *speaker)
    slots = "\n".join((*words.slots, f"{_STATEMENTS}{pack_statements(text)}")) if words.slots else ""
    joined = " ".join(words.terms), "\n".join(words.names), slots
    db.execute(
        "INSERT INTO sketches VALUES (?, ?, ?, ?, ?, ?, ?)",
        (row, session, words.word_count, words.is_question, *joined),
    )
    keys = _keys(words.terms, words.names, speaker[0], words.slots, ids, vault)
    db.execute("INSERT INTO words (rowid, keys) VALUES (?, ?)", (row, keys))


def unindex_memory(db: sqlite3.Connection, row: int, vault: Vault | None = None) -> int:
    """Remove a memory from the word index and return its session. Call it before the memory is deleted."""
    erased = db.execute(
        "SELECT s.session, s.terms, s.names, s.slots, m.actor_id, m.user_id, m.agent_id, m.run_id"
        " FROM sketches AS s JOIN memories AS m USING (row) WHERE row = ?",
        (row,),
    ).fetchone()
    session, terms, names, slots, actor_id, *ids = erased
    # A contentless FTS5 table deletes a row by its former tokens.
    held = _keys(terms.split(), _split_lines(names), actor_id, _split_lines(_split_slots(slots)[0]), ids, vault)
    db.execute("INSERT INTO words (words, rowid, keys) VALUES ('delete', ?, ?)", (row, held))
    db.execute("DELETE FROM sketches WHERE row = ?", (row,))
    return int(session)


def purge_word_index(db: sqlite3.Connection) -> None:
    """Rewrite the index: deleted entries stay in its older segments until these are merged."""
    db.execute("INSERT INTO words (words) VALUES ('optimize')")


def clear_word_index(db: sqlite3.Connection) -> None:
    """Delete all entries of the word index."""
    db.execute("INSERT INTO words (words) VALUES ('delete-all')")


def _split_slots(stored: str) -> tuple[str, str]:
    """Return the slots in a row of `sketches`, and the statements on its last line; older rows have none."""
    slots, _, statements = stored.partition(f"\n{_STATEMENTS}")
    return slots, statements


def _split_lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _keys(
    terms: Iterable[str],
    names: Iterable[str],
    speaker: str | None,
    slots: Iterable[str],
    ids: Sequence[str | None],
    vault: Vault | None,
) -> str:
    """Return the tokens of a memory: its terms, names, speaker and slots under each of its ids, or under its tenant."""
    if vault is not None:
        tenant, keys = tenant_of(Scope.from_stored(*ids)), index_keys(terms, names, speaker, slots)
        return " ".join(vault.token(tenant, _KIND_PREFIXES[kind], word) for kind, word in keys)
    said = [f"{_KIND_PREFIXES[kind]}{_token(word)}" for kind, word in index_keys(terms, names, speaker, slots)]
    prefixes = [_prefix(axis, value) for axis, value in zip(Axis, ids, strict=True) if value is not None]
    return " ".join(f"{prefix}{word}" for prefix in prefixes for word in said)


@text_cache(4096)
def _prefix(axis: str, value: str) -> str:
    # Ids with equal hashes find rows of each other; the condition of the scope removes them.
    return hashlib.blake2b(f"{axis}\0{value}".encode(), digest_size=6).hexdigest()


def _token(word: str) -> str:
    return word.replace(" ", "_")


def refresh_words(db: sqlite3.Connection, vault: Vault | None = None) -> None:
    """Rebuild the words of all memories if another version of the text analysis wrote them, or none."""
    if not is_word_index_stale(db):
        return
    alone = dict(db.execute("SELECT row, session FROM sketches WHERE session > 0").fetchall())
    clear_word_index(db)
    db.execute("DELETE FROM sketches")
    memories = "SELECT row, user_id, agent_id, run_id, seq, text, actor_id, role FROM memories ORDER BY row"
    for row, *ids, seq, text, actor_id, role in db.execute(memories).fetchall():
        user_id, agent_id, run_id = ids
        session = session_number(user_id, agent_id, run_id, alone.get(row, seq))
        index_text(db, row, text, (actor_id, role), ids, session, vault)
    db.execute("INSERT OR REPLACE INTO meta VALUES ('words', ?)", (get_analyzer_version(),))


def is_word_index_stale(db: sqlite3.Connection) -> bool:
    """Return True if another version of the analyzer wrote the word index."""
    held = db.execute("SELECT value FROM meta WHERE key = 'words'").fetchone()
    return held is None or held[0] != get_analyzer_version()
