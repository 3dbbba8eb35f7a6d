"""The PostgreSQL truth as a whole: the `Archive` that migrations read and fill.

It is for the owner of the tables: freezing makes triggers, and who is held back by row-level security sees a part only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mem0_core.archive import FROZEN, SECTIONS, Label, Position, Progress, Record, Section
from mem0_core.records import Scope, new_id
from mem0_core.stores.postgres_meta import begin_epoch, set_meta
from mem0_core.stores.postgres_rows import exact_of, part_of
from mem0_core.stores.postgres_session import (
    Database,
    Moment,
    Steps,
    ask,
    change,
    every,
    hold_all,
    reads,
    within,
    writes,
)
from mem0_core.stores.postgres_text import from_json, to_json
from mem0_core.stores.postgres_words import SKETCH_COLUMNS, sketch_values
from mem0_core.stores.truth import scope_of, session_of

__all__ = ["PART_OF_MEMORY", "PostgresArchive"]

_FROM = {
    "memories": "memories AS t LEFT JOIN vectors AS v ON v.part = t.part AND v.row = t.row"
    " LEFT JOIN sketches AS s ON s.part = t.part AND s.row = t.row",
    "nodes": "nodes AS t LEFT JOIN node_vectors AS v ON v.part = t.part AND v.row = t.row",
    "edges": "edges AS t LEFT JOIN edge_vectors AS v ON v.part = t.part AND v.row = t.row",
}
_KEYS = {
    "history": ("t.place",),
    "tombstones": ("t.seq",),
    "sources": ("t.memory", "t.message"),
    "evidence": ("t.edge", "t.memory"),
    "edge_messages": ("t.edge", "t.message"),
    "job_messages": ("t.job", "t.place"),
    "aliases": ("t.merge", "t.kind", "encode(t.key, 'hex')"),
    "imports": ("encode(t.exact, 'hex')", "t.key"),
}
"""What sections are read in the order of, within a part, by their indexes; the others in that of their rows."""

_APART = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
"""The table that a section's vectors lie in, where that is one of its own."""

_FLAGS = {
    "memories": {"pinned"},
    "evidence": {"withdrawn"},
    "aliases": {"standing"},
}
"""What is a boolean here, and 0 or 1 in records."""

_JSON = frozenset({"metadata", "options"})
_EXACT = frozenset({"memories", "messages", "nodes", "edges", "merges", "aliases", "jobs", "imports", "summaries"})
_OF = {
    "sources": ("messages", "message"),
    "evidence": ("edges", "edge"),
    "edge_messages": ("edges", "edge"),
    "job_messages": ("jobs", "job"),
}
"""Whose part a record lies in that has no ids of its own: of which section's row, and the column that names it."""

PART_OF_MEMORY = (
    "coalesce((SELECT part FROM memories WHERE id = %s LIMIT 1), (SELECT part FROM past WHERE id = %s LIMIT 1),"
    " (SELECT part FROM tombstones WHERE memory_id = %s LIMIT 1), '')"
)
"""The part of a memory's history; that of a memory nobody knows the scope of (of mem0 1.x) lies in one of its own."""

_TABLES = (*(section.name for section in SECTIONS), "vectors", "node_vectors", "edge_vectors")


class PostgresArchive:
    """An `Archive`. Each method has its ``a<method>`` twin."""

    def __init__(self, db: Database | Moment) -> None:
        self._db = db

    @contextmanager
    def at_one_moment(self) -> Iterator[PostgresArchive]:
        if isinstance(self._db, Moment):
            yield self
            return
        with self._db.at_one_moment() as moment:
            yield PostgresArchive(moment)

    def _label(self) -> Steps[Label]:
        meta = dict((yield from ask("SELECT key, value FROM meta")))
        [(last, seq)] = yield from ask("SELECT r.last_value, q.last_value FROM next_row AS r, next_seq AS q")
        space = tuple(json.loads(meta["space"])) if "space" in meta else None
        given = {section.name: last for section in SECTIONS if section.columns[0] == "row"}
        return Label(meta["identity"], space, seq, given)

    label, alabel = reads(_label)

    def _records(self, section: Section, *, after: Position = (), limit: int) -> Steps[tuple[list[Record], Position]]:
        yield from within(None)
        key = ("t.part", *_KEYS.get(section.name, ("t.row",)))
        where = f"WHERE ({', '.join(key)}) > ({', '.join(['%s'] * len(key))})" if after else ""
        found = yield from ask(
            f"SELECT {', '.join((*_selected(section), *key))} FROM {_FROM.get(section.name, f'{section.name} AS t')}"
            f" {where} ORDER BY {', '.join(key)} LIMIT %s",
            (*after, limit),
        )
        width = len(section.columns)
        return [_record(section, row[:width]) for row in found], tuple(found[-1][width:]) if found else after

    records, arecords = reads(_records)

    def _holds(self) -> Steps[str | None]:
        yield from within(None)
        for section in SECTIONS:
            if (yield from ask(f"SELECT 1 FROM {section.name} LIMIT 1")):
                return section.name
        return None

    holds, aholds = reads(_holds)

    def _freeze(self) -> Steps[str]:
        yield from hold_all()
        held = yield from _meta("seal")
        if held is not None:
            return held
        seal = new_id()
        yield from set_meta("seal", seal)
        yield from change(
            "CREATE OR REPLACE FUNCTION mem0_frozen() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{FROZEN}'; END $$"
        )
        for table in _TABLES:
            yield from change(
                f"CREATE TRIGGER frozen_{table} BEFORE INSERT OR UPDATE OR DELETE ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION mem0_frozen()"
            )
        return seal

    freeze, afreeze = writes(_freeze)

    def _thaw(self) -> Steps[None]:
        yield from hold_all()
        for table in _TABLES:
            yield from change(f"DROP TRIGGER IF EXISTS frozen_{table} ON {table}")
        yield from change("DELETE FROM meta WHERE key = 'seal'")

    thaw, athaw = writes(_thaw)

    def _seal(self) -> Steps[str | None]:
        return (yield from _meta("seal"))

    seal, aseal = reads(_seal)

    def _progress(self) -> Steps[Progress | None]:
        return Progress.from_json((yield from _meta("migration")))

    progress, aprogress = reads(_progress)

    def _load(self, section: Section, records: Sequence[Record], *, progress: Progress) -> Steps[None]:
        yield from within(None)
        yield from hold_all()
        yield from _set_progress(progress)
        yield from _insert(section, records)

    load, aload = writes(_load)

    def _finish(self, label: Label, *, progress: Progress) -> Steps[None]:
        yield from within(None)
        yield from hold_all()
        [(place,)] = yield from ask("SELECT max(place) FROM history")
        yield from _advance("next_row", max([*label.given.values(), place or 0]))
        yield from _advance("next_seq", label.seq)
        yield from begin_epoch()
        if label.space is not None:
            yield from set_meta("space", json.dumps(label.space))
        for table in (*_TABLES, "sketches"):
            yield from change(f"ANALYZE {table}")  # else the planner takes for empty what was loaded at once
        yield from _set_progress(progress)

    finish, afinish = writes(_finish)


# --- reading -----------------------------------------------------------------------------------------------------


def _selected(section: Section) -> list[str]:
    flags = _FLAGS.get(section.name, set())
    apart = {"vector": "v.vector", "session": "s.session"} if section.name in _APART else {}
    return [apart.get(c) or (f"t.{c}::integer" if c in flags else f"t.{c}") for c in section.columns]


def _record(section: Section, row: Sequence[Any]) -> Record:
    return tuple(_plain(column, value) for column, value in zip(section.columns, row, strict=True))


def _plain(column: str, value: Any) -> Any:
    if value is None:
        return None
    if column == "vector":
        return value.to_numpy().astype("<f4").tobytes()
    if column in _JSON and "\\u0010" in value:
        return json.dumps(from_json(value), ensure_ascii=False, separators=(",", ":"))
    return bytes(value) if isinstance(value, memoryview) else value


# --- writing -----------------------------------------------------------------------------------------------------


def _insert(section: Section, records: Sequence[Record]) -> Steps[None]:
    rows = [dict(zip(section.columns, record, strict=True)) for record in records]
    columns = [c for c in section.columns if section.name not in _APART or c not in ("vector", "session")]
    flags = _FLAGS.get(section.name, set())
    values = [[_here(column, row[column], column in flags) for column in columns] for row in rows]
    names, marks = list(columns), ["%s"] * len(columns)
    if section.name in _OF:
        table, column = _OF[section.name]
        yield from every(
            f"INSERT INTO {section.name} (part, {', '.join(names)}) SELECT part, {', '.join(_typed(columns))}"
            f" FROM {table} WHERE row = %s",
            [[*of, row[column]] for of, row in zip(values, rows, strict=True)],
        )
        return
    if section.name == "history":
        part, leading = PART_OF_MEMORY, [[row["memory_id"]] * 3 for row in rows]
    else:
        part, leading = "%s", [[part_of(_scope(row))] for row in rows]
    if section.name in _EXACT:
        part, leading = (
            f"{part}, %s",
            [[*first, exact_of(_scope(row))] for first, row in zip(leading, rows, strict=True)],
        )
        names = ["exact", *names]
    yield from every(
        f"INSERT INTO {section.name} (part, {', '.join(names)}) VALUES ({part}, {', '.join(marks)})",
        [[*first, *of] for first, of in zip(leading, values, strict=True)],
    )
    if section.name in _APART:
        yield from every(
            f"INSERT INTO {_APART[section.name]} (part, row, vector) VALUES (%s, %s, %s)",
            [
                (part_of(_scope(row)), row["row"], _here("vector", row["vector"]))
                for row in rows
                if row["vector"] is not None
            ],
        )
    if section.name == "memories":
        yield from _insert_sketches(rows)


def _insert_sketches(rows: Sequence[dict[str, Any]]) -> Steps[None]:
    """Read the words of memories, as `postgres_words` does when one is written."""
    sketches = []
    for row in rows:
        ids = row["user_id"], row["agent_id"], row["run_id"]
        session = session_of(*ids, row["seq"]) if row["session"] is None else row["session"]
        words = sketch_values(row["text"], row["actor_id"], scope_of(*ids), session)
        sketches.append((part_of(scope_of(*ids)), row["row"], *words))
    marks = ", ".join(["%s"] * 8)
    yield from every(f"INSERT INTO sketches (part, row, {SKETCH_COLUMNS}) VALUES ({marks})", sketches)


def _typed(columns: Sequence[str]) -> list[str]:
    """Placeholders of a SELECT, which PostgreSQL takes for text unless told."""
    types = {"withdrawn": "boolean", "day_first": "text", "day_last": "text"}
    return [f"%s::{types.get(column, 'bigint')}" for column in columns]


def _here(column: str, value: Any, flag: bool = False) -> Any:
    """A record's value as this database takes it."""
    if value is None:
        return None
    if column == "vector":
        import numpy as np

        return np.frombuffer(value, dtype="<f4")
    if column in _JSON:
        return to_json(json.loads(value))
    return bool(value) if flag else value


def _scope(row: dict[str, Any]) -> Scope:
    return scope_of(row["user_id"], row["agent_id"], row["run_id"])


def _advance(sequence: str, last: int) -> Steps[None]:
    """Let no number up to `last` be given again. It stays so even if the transaction fails, which harms nobody."""
    if last:
        yield from ask(f"SELECT setval('{sequence}', greatest(last_value, %s::bigint)) FROM {sequence}", (last,))


def _meta(key: str) -> Steps[str | None]:
    found = yield from ask("SELECT value FROM meta WHERE key = %s", (key,))
    return found[0][0] if found else None


def _set_progress(progress: Progress) -> Steps[None]:
    yield from set_meta("migration", progress.to_json())
