"""Tables of an encrypted file: views that open their sealed columns, and writes that seal them.

`SEALED_TABLES` names the sealed columns. Everything else follows from it:

* Each connection has a temporary view of the name of each such table. Statements that read find the view, and so
  contain opened values, filters on metadata included. SQLite merges the view into the statement, so indexes are used
  as before, and columns that a statement does not name are not opened.
* `rewrite` makes a statement that writes such a table seal the values of its sealed columns.
* Triggers in the file refuse a value that is not sealed, from any program. A statement that `rewrite` does not know
  therefore fails; it cannot store plain text.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from mem0_core._system.records import dataclass
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite.encryption.vault import MAGIC

TENANT_SQL = "coalesce('user_id=' || {user_id}, 'agent_id=' || {agent_id}, 'run_id=' || {run_id})"
"""SQL of the tenant of a row with the ids of a scope; each name in braces is replaced by a column."""


@dataclass(frozen=True, slots=True)
class _SealedTable:
    """The sealed columns of one table. In SQL, a name in braces is replaced by the column of the row.

    Attributes:
        sealed: columns with a random nonce.
        locked: columns that are compared: equal values are equal when sealed, and are not bound to their record.
        record: SQL of the name of the record, which its sealed values are bound to.
        tenant: SQL of its tenant.
    """

    sealed: tuple[str, ...]
    record: str
    tenant: str = TENANT_SQL
    locked: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.sealed, *self.locked)

    def name_sql(self, column: str) -> str:
        """Return the SQL of the name that a value of a column is bound to."""
        return f"'{LOCKED_NAMES[column]}'" if column in self.locked else f"({self.record}) || ' {column}'"


def _owner(table: str, condition: str, tail: str = "") -> str:
    ids = {axis: f"o.{axis}" for axis in ("user_id", "agent_id", "run_id")}
    return f"(SELECT {TENANT_SQL.format(**ids)} FROM main.{table} AS o WHERE {condition}{tail})"


def _vectors(table: str, record: str) -> _SealedTable:
    return _SealedTable(("vector",), record, _owner(table, "o.row = {row}"))


LOCKED_NAMES = {"same": "same", "key": "key", "digest": "digest", "relationship": "relationship"}
"""Name that the values of a locked column are bound to."""

_MEMORY = ("text", "hash", "metadata", "actor_id")

SEALED_TABLES: dict[str, _SealedTable] = {
    "memories": _SealedTable(_MEMORY, "'memory ' || {id}", locked=("same",)),
    "past": _SealedTable((*_MEMORY, "vector"), "'memory ' || {id}"),  # a copy of the row in `memories`
    "vectors": _vectors("memories", "'memory ' || (SELECT o.id FROM main.memories AS o WHERE o.row = {row})"),
    "sketches": _SealedTable(("terms", "names", "slots"), "'sketch ' || {row}", _owner("memories", "o.row = {row}")),
    "history": _SealedTable(
        ("old_memory", "new_memory", "actor_id"),
        "'history ' || {id}",
        "coalesce("
        + ", ".join(
            (
                _owner("memories", "o.id = {memory_id}"),
                _owner("past", "o.id = {memory_id}", " LIMIT 1"),
                _owner("tombstones", "o.memory_id = {memory_id}", " ORDER BY o.seq DESC LIMIT 1"),
            )
        )
        + ", 'store')",  # adopted from another program, of a memory that it had deleted
    ),
    "events": _SealedTable(("actor_id",), "'event ' || {seq}"),
    "messages": _SealedTable(("content", "name", "metadata"), "'message ' || hex({digest})", locked=("digest",)),
    "summaries": _SealedTable(("text",), "'summary ' || {valid_from} || ' ' || {upto}"),
    "nodes": _SealedTable(("name",), "'node ' || {row}", locked=("key",)),
    "node_vectors": _vectors("nodes", "'node ' || {row}"),
    "edges": _SealedTable((), "", locked=("relationship",)),
    "edge_vectors": _vectors("edges", "'edge ' || {row}"),
    "jobs": _SealedTable(("options", "error"), "'job ' || {kind} || ' ' || {at}"),
    "merges": _SealedTable(("name", "reasons", "taken"), "'merge ' || {id}"),
    "space_writes": _SealedTable(("arguments",), "'write ' || {id}"),
    "aliases": _SealedTable(("name",), "'alias ' || {merge} || ' ' || hex({key})", locked=("key",)),
}
"""The sealed columns of each table. Ids, times, roles, types, days, weights and row numbers are plain."""


# --- reading -----------------------------------------------------------------------------------------------------


def create_views(db: sqlite3.Connection) -> None:
    """Create the views of one connection. They hide the tables of the same names."""
    for table, spec in SEALED_TABLES.items():
        names = [name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}', 'main')")]
        plain = {name: f"t.{name}" for name in names}
        opened = {name: f"{_open_sql(spec, name, plain)} AS {name}" for name in spec.columns}
        columns = [opened.get(name, f"t.{name}") for name in names]
        columns += [f"t.{name} AS sealed_{name}" for name in spec.locked]
        if "row" not in names or table == "history":
            columns.append("t.rowid AS rowid")
        db.execute(f"CREATE TEMP VIEW {table} AS SELECT {', '.join(columns)} FROM main.{table} AS t")


def _open_sql(spec: _SealedTable, column: str, columns: Mapping[str, str]) -> str:
    """Return the SQL of an opened column. Its tenant is only read if the key is not loaded yet."""
    name = spec.name_sql(column).format(**columns)
    value, tenant = columns[column], spec.tenant.format(**columns)
    return f"coalesce(mem0_open({value}, {name}), mem0_open_as({value}, {tenant}, {name}))"


# --- guards ------------------------------------------------------------------------------------------------------


def guard_statements() -> Iterator[str]:
    """Yield the statements that make the tables of a file refuse values that are not sealed."""
    for table, spec in SEALED_TABLES.items():
        for column in spec.columns:
            for event, when in (("insert", "INSERT"), ("update", f"UPDATE OF {column}")):
                yield (
                    f"CREATE TRIGGER IF NOT EXISTS sealed_{table}_{column}_{event} BEFORE {when} ON {table}"
                    f" WHEN NEW.{column} IS NOT NULL AND substr(NEW.{column}, 1, {len(MAGIC)}) <> x'{MAGIC.hex()}'"
                    f" BEGIN SELECT RAISE(ABORT, 'the store is encrypted: {table}.{column} must be sealed'); END"
                )


# --- writing -----------------------------------------------------------------------------------------------------

_INSERT = re.compile(r"(INSERT(?: OR \w+)? INTO) (\w+)(?: \(([^)]*)\))? (VALUES \(|SELECT )", re.DOTALL)
_UPDATE = re.compile(r"UPDATE (\w+)( AS \w+)? SET (.*?)( WHERE .*)?$", re.DOTALL)
_DELETE = re.compile(r"DELETE FROM (\w+)( WHERE .*?)?( RETURNING .*)?$", re.DOTALL)
_TRIGGER = re.compile(r"CREATE TRIGGER (\w+) (BEFORE \w+ ON \w+ )")
_SOURCE = re.compile(rf"\b(FROM|JOIN) ({'|'.join(SEALED_TABLES)})\b(?: AS (\w+))?")
_WORD = re.compile(r"\w+")


def rewrite(sql: str, columns_of: Callable[[str], Sequence[str]]) -> str:
    """Return the statement to run in place of `sql` in an encrypted file.

    Args:
        sql: the statement; it may contain no question marks but placeholders.
        columns_of: returns the columns of a table.
    """
    if sql.startswith("INSERT"):
        return _rewrite_insert(sql, columns_of)
    if sql.startswith("UPDATE"):
        return _rewrite_update(sql, columns_of)
    if sql.startswith("DELETE"):
        return _rewrite_delete(sql, columns_of)
    if match := _TRIGGER.match(sql):
        return f"CREATE TRIGGER main.{match[1]} {match[2]}{sql[match.end() :]}"
    return sql


def _rewrite_insert(sql: str, columns_of: Callable[[str], Sequence[str]]) -> str:
    match = _INSERT.match(sql)
    if match is None or match[2] not in SEALED_TABLES:
        return sql
    verb, table, listed, kind = match.groups()
    spec = SEALED_TABLES[table]
    columns = [one.strip() for one in listed.split(",")] if listed else list(columns_of(table))
    rest = _number_placeholders(sql[match.end() :])
    if kind == "SELECT ":
        rest = _SOURCE.sub(lambda found: f"{found[1]} main.{found[2]}{f' AS {found[3]}' if found[3] else ''}", rest)
        text, tail = _split_before(rest, " FROM ")
        items = _qualify(_split_commas(text), tail)
    else:
        text, tail = _split_before(rest, ")")
        items = _split_commas(text)
    values = _sealed_values(spec, dict(zip(columns, items, strict=True)))
    return f"{verb} main.{table} ({', '.join(columns)}) {kind}{', '.join(values.values())}{tail}"


def _rewrite_update(sql: str, columns_of: Callable[[str], Sequence[str]]) -> str:
    match = _UPDATE.match(_number_placeholders(sql))
    if match is None or match[1] not in SEALED_TABLES:
        return sql
    table, alias, assigned, where = match[1], match[2] or "", match[3], match[4] or ""
    assignments = dict(_split_assignment(one) for one in _split_commas(assigned))
    stored = {column: f"{alias[4:] or table}.{column}" for column in columns_of(table)}
    spec = SEALED_TABLES[table]
    values = _sealed_values(spec, {**stored, **assignments})
    changes = ", ".join(f"{column} = {values[column]}" for column in assignments)
    return f"UPDATE main.{table}{alias} SET {changes}{_open_condition(spec, where, stored)}"


def _rewrite_delete(sql: str, columns_of: Callable[[str], Sequence[str]]) -> str:
    match = _DELETE.match(sql)
    if match is None or match[1] not in SEALED_TABLES:
        return sql
    table, where, returning = match[1], match[2] or "", match[3] or ""
    stored = {column: f"{table}.{column}" for column in columns_of(table)}
    return f"DELETE FROM main.{table}{_open_condition(SEALED_TABLES[table], where, stored)}{returning}"


def _sealed_values(spec: _SealedTable, values: dict[str, str]) -> dict[str, str]:
    """Return the SQL of the values of a row, with those given as placeholders sealed. Other values are sealed already.

    The name of a record may contain locked columns: it contains their sealed values.
    """
    sealed = dict(values)
    for function, columns in (("mem0_lock", spec.locked), ("mem0_seal", spec.sealed)):
        for column in columns:
            given = values.get(column, "")
            if given.startswith("?"):
                name, tenant = spec.name_sql(column).format(**sealed), spec.tenant.format(**sealed)
                sealed[column] = f"{function}({given}, {tenant}, {name})"
    return sealed


def _open_condition(spec: _SealedTable, where: str, columns: Mapping[str, str]) -> str:
    """Return a condition of a statement that changes the table itself, with its sealed columns opened."""
    for column in spec.columns:
        where = re.sub(rf"(?<![.'\w]){column}\b(?!')", lambda _: _open_sql(spec, column, columns), where)  # noqa: B023
    return where


def _number_placeholders(sql: str) -> str:
    """Return the statement with numbered placeholders, which may be repeated."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"?{next(numbers)}", sql)


def _split_before(text: str, end: str) -> tuple[str, str]:
    at = text.index(end)
    return text[:at], text[at:]


def _split_commas(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _split_assignment(text: str) -> tuple[str, str]:
    column, equals, value = text.partition(" = ")
    if not equals:
        raise StoreError(f"the encrypted store does not know the assignment {text!r}")
    return column, value


def _qualify(items: Sequence[str], tail: str) -> list[str]:
    """Put the table of a SELECT before its columns: the SQL around them reads other tables."""
    source = re.search(r" FROM main\.(\w+)(?: AS (\w+))?", tail)
    table = (source[2] or source[1]) if source else ""
    return [f"{table}.{item}" if table and _WORD.fullmatch(item) else item for item in items]
