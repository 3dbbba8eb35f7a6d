"""A whole store as plain records, which transfers read and load."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from mem0_core.domain.records import Scope, new_id
from mem0_core.interfaces.archive import SECTIONS, LoadProgress, Record, Section, SectionCursor, StoreMetadata
from mem0_core.stores.sql.engine.dialect import Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    StepMethods,
    Steps,
    execute,
    execute_many,
    fetch_rows,
    insert_sql,
    read_method,
    write_method,
)
from mem0_core.stores.sql.meta import begin_epoch, read_meta, set_meta
from mem0_core.stores.sql.rows import placeholders, scope_from_ids
from mem0_core.stores.sql.schema import VECTOR_TABLES

_VECTOR_TABLES: Mapping[str, str] = {str(table): vectors for table, vectors in VECTOR_TABLES.items()}

ARCHIVED_TABLES = (*(section.name for section in SECTIONS), *VECTOR_TABLES.values())

_BOOLEAN_COLUMNS = {
    ("memories", "pinned"),
    ("sources", "repeats"),
    ("evidence", "withdrawn"),
    ("aliases", "standing"),
    ("spaces", "requires_approval"),
}
"""Columns that a record gives as 0 or 1."""

_KEY_COLUMNS = {
    "sources": ("t.memory", "t.message"),
    "endings": ("t.kind", "t.target", "t.message"),
    "evidence": ("t.edge", "t.memory"),
    "edge_messages": ("t.edge", "t.message"),
    "job_messages": ("t.job", "t.place"),
}


class SqlArchive(StepMethods):
    """An `Archive`. Only for the owner of the tables, since row-level security restricts other roles.

    Attributes:
        key_columns: for each section the columns that order it, by an index.
        default_key: the columns that order any other section.
    """

    key_columns: ClassVar[Mapping[str, tuple[str, ...]]] = _KEY_COLUMNS
    default_key: ClassVar[str]

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect: Dialect = db.dialect

    # --- differences between databases -------------------------------------------------------------------------------

    def _read_counters(self) -> Steps[tuple[int, dict[str, int]]]:
        """Return the last sequence number, and the highest row number ever used of each section."""
        raise NotImplementedError

    def _advance_counters(self, metadata: StoreMetadata) -> Steps[None]:
        """Make new numbers higher than those of another store."""
        raise NotImplementedError

    def _create_triggers(self) -> Steps[None]:
        """Make every write to an archived table fail."""
        raise NotImplementedError

    def _drop_triggers(self) -> Steps[None]:
        raise NotImplementedError

    def _insert_rows(
        self, section: Section, columns: Sequence[str], records: Sequence[dict[str, Any]], values: list[list[Any]]
    ) -> Steps[None]:
        """Insert `values` of `columns` into a section's table, with the columns that only this database has."""
        raise NotImplementedError

    def _insert_words(self, records: Sequence[dict[str, Any]]) -> Steps[None]:
        """Analyze and index the words of loaded memories."""
        raise NotImplementedError

    def _analyze(self) -> Steps[None]:
        """Update the statistics of the query planner."""
        yield from ()

    def _to_plain(self, column: str, value: Any) -> Any:
        """Return a stored value as records have it."""
        return value

    def _to_stored(self, section: Section, column: str, value: Any) -> Any:
        """Return a value of a record as this database stores it."""
        return value

    # --- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        with self._db.snapshot() as snapshot:
            yield type(self)(snapshot)

    @read_method
    def store_metadata(self) -> Steps[StoreMetadata]:
        meta: dict[str, Any] = dict((yield from fetch_rows("SELECT key, value FROM meta")))
        seq, max_row_numbers = yield from self._read_counters()
        space = tuple(json.loads(meta["space"])) if "space" in meta else None
        return StoreMetadata(meta["identity"], space, seq, max_row_numbers)

    @read_method
    def records(
        self, section: Section, *, after: SectionCursor = (), limit: int
    ) -> Steps[tuple[list[Record], SectionCursor]]:
        yield from self._dialect.set_scope(None)
        key = list(self.key_columns.get(section.name, (self.default_key,)))
        if self._dialect.part:
            key.insert(0, "t.part")
        where = f"WHERE ({', '.join(key)}) > ({placeholders(key)})" if after else ""
        columns = [self._column(section, column) for column in section.columns]
        found = yield from fetch_rows(
            f"SELECT {', '.join((*columns, *key))} FROM {self._source(section)} {where}"
            f" ORDER BY {', '.join(key)} LIMIT ?",
            (*after, limit),
        )
        width = len(columns)
        records = [
            tuple(self._to_plain(column, value) for column, value in zip(section.columns, row, strict=False))
            for row in found
        ]
        return records, tuple(found[-1][width:]) if found else after

    def _source(self, section: Section) -> str:
        """Return the tables of a section's columns: ``t``, the vectors ``v`` and the features ``s``."""
        source, same = f"{section.name} AS t", self._dialect.same_part
        if section.name in _VECTOR_TABLES:
            source += f" LEFT JOIN {_VECTOR_TABLES[section.name]} AS v ON {same('v', 't')}v.row = t.row"
        if section.name == "memories":
            source += f" LEFT JOIN sketches AS s ON {same('s', 't')}s.row = t.row"
        return source

    def _column(self, section: Section, column: str) -> str:
        if section.name in _VECTOR_TABLES and column in ("vector", "session"):
            return f"{column[0]}.{column}"
        if (section.name, column) == ("history", "place"):
            return f"t.{self._dialect.insertion_order}"
        return f"CAST(t.{column} AS integer)" if (section.name, column) in _BOOLEAN_COLUMNS else f"t.{column}"

    @read_method
    def first_nonempty_section(self) -> Steps[str | None]:
        yield from self._dialect.set_scope(None)
        for section in SECTIONS:
            where = " WHERE memory_id IS NOT NULL" if section.name == "events" else ""  # a reset leaves others
            if (yield from fetch_rows(f"SELECT 1 FROM {section.name}{where} LIMIT 1")):
                return section.name
        return None

    @read_method
    def freeze_token(self) -> Steps[str | None]:
        return read_meta("seal")

    @read_method
    def load_progress(self) -> Steps[LoadProgress | None]:
        return LoadProgress.from_json((yield from read_meta("migration")))

    # --- freezing ----------------------------------------------------------------------------------------------------

    @write_method
    def freeze(self) -> Steps[str]:
        yield from self._dialect.lock_all()
        token = yield from read_meta("seal")
        if token is None:
            token = new_id()
            yield from set_meta("seal", token)
            yield from self._create_triggers()  # so that processes of other versions are refused, too
        return token

    @write_method
    def unfreeze(self) -> Steps[None]:
        yield from self._dialect.lock_all()
        yield from self._drop_triggers()
        yield from execute("DELETE FROM meta WHERE key = 'seal'")

    # --- loading -----------------------------------------------------------------------------------------------------

    @write_method
    def load(self, section: Section, records: Sequence[Record], *, progress: LoadProgress) -> Steps[None]:
        yield from self._dialect.lock_all()
        if section == SECTIONS[0] and not progress.after:
            yield from execute("DELETE FROM events")  # an emptied store has one of that
        yield from set_meta("migration", progress.to_json())
        rows = [dict(zip(section.columns, record, strict=True)) for record in records]
        vectors = _VECTOR_TABLES.get(section.name)
        columns = [c for c in section.columns if vectors is None or c not in ("vector", "session")]
        values = [[self._to_stored(section, column, row[column]) for column in columns] for row in rows]
        yield from self._insert_rows(section, columns, rows, values)
        if vectors is not None:
            yield from execute_many(
                insert_sql(vectors, f"{self._dialect.part}row, vector"),
                [
                    (
                        *self._dialect.part_values(record_scope(row)),
                        *(row["row"], self._to_stored(section, "vector", row["vector"])),
                    )
                    for row in rows
                    if row["vector"] is not None
                ],
            )
        if section.name == "memories":
            yield from self._insert_words(rows)

    @write_method
    def finish_load(self, metadata: StoreMetadata, *, progress: LoadProgress) -> Steps[None]:
        yield from self._dialect.lock_all()
        yield from self._advance_counters(metadata)
        yield from begin_epoch()
        if metadata.space is not None:
            yield from set_meta("space", json.dumps(metadata.space))
        yield from self._analyze()
        yield from set_meta("migration", progress.to_json())


def record_scope(record: Mapping[str, Any]) -> Scope:
    """Return the scope of a record with ids."""
    return scope_from_ids(record["user_id"], record["agent_id"], record["run_id"])
