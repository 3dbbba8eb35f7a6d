"""Words of memories in PostgreSQL: the ranking features of each memory, and the keys that find memories by a word.

The column ``keys`` of the table `sketches` holds a hash of each word of a memory under each of its ids. So its index
keeps the words of each id apart, and a search never reads or counts those of other ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Axis, MemoryItem, Scope
from mem0_core.interfaces import MemoryFeatures, MemoryFeatureSet, WordKind
from mem0_core.language.terms import analyze_text, get_analyzer_version
from mem0_core.stores.postgres.engine.locks import set_scope
from mem0_core.stores.postgres.engine.rows import scope_sql, to_int_list
from mem0_core.stores.postgres.engine.session import Database
from mem0_core.stores.sql.engine.steps import StepMethods, Steps, execute, execute_many, fetch_rows, read_method
from mem0_core.stores.sql.rows import (
    index_keys,
    narrowest_axis,
    partition_key,
    scope_from_ids,
    scope_ids,
    session_number,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEATURE_COLUMNS = "session, length, asks, terms, names, slots, keys"


# Cosines of the same statement save a second one to the vector index.
_COSINE = "(SELECT -(v.vector <#> q.vector) FROM vectors AS v WHERE v.part = {0} AND v.row = {1}.row)"
# Ordered as an index is: otherwise a memory without neighbors would make the server read all rows.
_NEIGHBOR_TERMS = (
    "SELECT o.session, o.row, o.terms, " + _COSINE.format("{0}", "o") + " AS cosine FROM sketches AS o"
    " WHERE o.part = {0} AND (o.session, o.row) {1} (s.session, s.row)"
    " ORDER BY o.part {2}, o.session {2}, o.row {2} LIMIT 1"
)


class PostgresLexicon(StepMethods):
    """A `Lexicon`, for reading."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @read_method
    def postings(
        self, scope: Scope, words: Sequence[str], *, kind: WordKind, limit: int
    ) -> Steps[dict[str, NDArray[np.int64]]]:
        import numpy as np

        yield from set_scope(scope)
        axis = narrowest_axis(scope)
        wanted = {_key(axis, scope.ids[axis], kind, word): word for word in words}
        others = {other: value for other, value in scope.ids.items() if other is not axis}
        joined = " JOIN memories AS m ON m.part = s.part AND m.row = s.row" if others else ""
        where = "".join(f" AND m.{other.value} = ?" for other in others)
        part = " AND s.part = ?" if scope.user_id is not None else ""
        # One subquery per word, each with its limit: one scan for all words unnests every row, 7 times slower.
        found = yield from fetch_rows(
            f"SELECT k.key, array(SELECT s.row FROM sketches AS s{joined}"
            f" WHERE s.keys @> ARRAY[k.key]{part}{where} LIMIT ?) FROM unnest(?::bigint[]) AS k (key)",
            (*([partition_key(scope)] if part else []), *others.values(), limit, list(wanted)),
        )
        return {wanted[key]: np.array(rows, dtype=np.int64) for key, rows in found if rows}

    @read_method
    def memory_features(
        self, scope: Scope, rows: Sequence[int], *, today: str, vector: NDArray[np.float32]
    ) -> Steps[MemoryFeatureSet]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "m")
        one = scope.user_id is not None  # each table gets the part, so that one partition is read
        where, part = (f"s.part = ? AND {where}", "?") if one else (where, "s.part")
        its = [partition_key(scope)] if one else []
        both = f"{_COSINE.format(part, 's')}, b.session = s.session, b.row, b.terms, b.cosine"
        found = yield from fetch_rows(
            "SELECT s.row, s.session, s.length, s.asks, s.terms, s.names, m.actor_id, m.role, m.created_at,"
            f" s.slots, m.useful, m.useless, {both}, a.session = s.session, a.row, a.terms, a.cosine"
            " FROM (SELECT ?::vector AS vector) AS q CROSS JOIN sketches AS s"
            " JOIN memories AS m ON m.part = s.part AND m.row = s.row"
            f" LEFT JOIN LATERAL ({_NEIGHBOR_TERMS.format(part, '<', 'DESC')}) AS b ON true"
            f" LEFT JOIN LATERAL ({_NEIGHBOR_TERMS.format(part, '>', 'ASC')}) AS a ON true"
            f" WHERE s.row = ANY (?::bigint[]) AND {where} AND (m.expiration_date IS NULL OR m.expiration_date >= ?)",
            (*its, vector, *its * 4, to_int_list(rows), *its, *values, today),
        )
        return _features_from_rows(found)


def _features_from_rows(found: Sequence[Sequence[Any]]) -> MemoryFeatureSet:
    """Return the features in rows of `memory_features`, each with its cosine and both of its neighbors."""
    sketches, beside, cosines = list[MemoryFeatures](), dict[int, str](), dict[int, float]()
    for row in found:
        cosines[row[0]] = row[12]
        ends: list[int | None] = []
        for in_session, other, terms, cosine in (row[13:17], row[17:21]):
            ends.append(other if in_session else None)
            if in_session:
                beside[other], cosines[other] = terms, cosine
        sketches.append(MemoryFeatures(*row[:9], *ends, *row[9:12]))
    for sketch in sketches:
        beside.pop(sketch.row, None)
    return MemoryFeatureSet(sketches, beside, cosines)


def memory_feature_values(item: MemoryItem, session: int) -> tuple[Any, ...]:
    """The values of `FEATURE_COLUMNS`."""
    return feature_values(item.text, (item.actor_id, item.role), item.scope, session)


def feature_values(text: str, speaker: tuple[str | None, str | None], scope: Scope, session: int) -> tuple[Any, ...]:
    """Return the ranking features of a text as column values.

    Args:
        speaker: name and role of the speaker.
    """
    words = analyze_text(text, *speaker)
    keys = _keys(index_keys(words.terms, words.names, speaker[0], words.slots), scope)
    joined = " ".join(words.terms), "\n".join(words.names), "\n".join(words.slots)
    return session, words.word_count, words.is_question, *joined, keys


def _keys(said: Iterable[tuple[str, str]], scope: Scope) -> list[int]:
    pairs = list(said)
    return [_key(axis, value, kind, word) for axis, value in scope.ids.items() for kind, word in pairs]


def _key(axis: Axis, value: str, kind: str, word: str) -> int:
    # Words with equal hashes find rows of each other; ranking compares the terms themselves.
    whole = "\0".join((axis, value, kind, word)).encode()
    return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), signed=True)


def refresh_words() -> Steps[None]:
    """Rebuild the words of all memories if another version of the text analysis wrote them. Lock all parts before."""
    if not (yield from is_word_index_stale()):
        return
    alone = dict((yield from fetch_rows("SELECT row, session FROM sketches WHERE session > 0")))
    yield from execute("DELETE FROM sketches")
    last = 0
    while True:
        memories = yield from fetch_rows(
            "SELECT part, row, user_id, agent_id, run_id, seq, text, actor_id, role FROM memories WHERE row > ?"
            " ORDER BY row LIMIT 1000",
            (last,),
        )
        if not memories:
            break
        last = memories[-1][1]
        yield from execute_many(
            f"INSERT INTO sketches (part, row, {FEATURE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (part, row, *feature_values(text, (actor, role), scope, session))
                for part, row, *ids, seq, text, actor, role in memories
                for scope in (scope_from_ids(*ids),)
                for session in (session_number(*scope_ids(scope), alone.get(row, seq)),)
            ],
        )
    yield from execute(
        "INSERT INTO meta VALUES ('words', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (get_analyzer_version(),),
    )


def is_word_index_stale() -> Steps[bool]:
    """Return True if another version of the analyzer wrote the word index."""
    held = yield from fetch_rows("SELECT value FROM meta WHERE key = 'words'")
    return not held or held[0][0] != get_analyzer_version()
