"""Differences between the SQL of SQLite and of PostgreSQL, as shared statements need them.

Both databases have the same tables. PostgreSQL partitions them: each has a column ``part`` (the first id of a scope)
that is the first column of every key, and tables of exact scopes have ``exact`` (a digest of all three ids). SQLite has
neither. Conditions and column lists below contain them where the database has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from mem0_core.domain.filters import Filter
from mem0_core.domain.records import Scope
from mem0_core.stores.sql.engine.steps import Steps, TransactionKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

Condition: TypeAlias = tuple[str, list[Any]]
"""SQL of a condition and the values of its placeholders."""

ColumnType = Literal["bigint", "text", "bytea"]


class Dialect(Protocol):
    """One database's form of the SQL that differs.

    Attributes:
        part: prefix of a column list for tables without ids, ``"part, "`` or empty; its value is `part_values`.
        exact: prefix of a column list for tables of exact scopes, ``"part, exact, "`` or empty; see `exact_values`.
        insertion_order: column of the tables `aliases` and `history` that grows with each insertion.
        greatest: name of the scalar function that returns the largest argument.
        least: name of the scalar function that returns the smallest argument.
        now: SQL of the current time in Unix seconds, as a float.
        for_update: clause that locks the rows that a SELECT returns.
        skip_locked: the same for one alias, to be inserted with `str.format`; it skips rows that others have locked.
    """

    part: str
    exact: str
    insertion_order: str
    greatest: str
    least: str
    now: str
    for_update: str
    skip_locked: str

    # --- values ------------------------------------------------------------------------------------------------------

    def part_values(self, scope: Scope) -> tuple[Any, ...]:
        """Return the values of the columns `part`."""
        ...

    def exact_values(self, scope: Scope) -> tuple[Any, ...]:
        """Return the values of the columns `exact`."""
        ...

    def to_json(self, value: Mapping[str, Any] | None) -> str:
        """Return a JSON object as the database stores it; ``{}`` for None."""
        ...

    def from_json(self, text: str) -> dict[str, Any]:
        """Return the object that `to_json` wrote."""
        ...

    def limit(self, limit: int | None) -> Any:
        """Return the value of a LIMIT clause; None sets no limit."""
        ...

    def vector(self, vector: Any, dims: int) -> Any:
        """Return a vector as the database stores it, checked against `dims` (StoreError)."""
        ...

    def stack_vectors(self, vectors: Sequence[Any]) -> NDArray[np.float32]:
        """Return stored vectors as one array (n, dims)."""
        ...

    # --- conditions --------------------------------------------------------------------------------------------------

    def in_scope(self, scope: Scope | None, table: str = "", *, by_row: bool = False) -> Condition:
        """Return the condition of rows in a scope or a narrower one; None for all rows.

        Args:
            scope: the scope.
            table: alias of the table in the statement.
            by_row: the statement also names rows, so it must use their index and not the scope's.
        """
        ...

    def in_exact_scope(self, scope: Scope, table: str = "") -> Condition:
        """Return the condition of rows in exactly this scope."""
        ...

    def in_part(self, scope: Scope, table: str = "") -> Condition:
        """Return a condition that ends in AND and restricts a table to the partition of `scope`; empty without them."""
        ...

    def same_part(self, one: str, other: str) -> str:
        """Return a condition that ends in AND and holds for two aliases in one partition; empty without them."""
        ...

    def among(self, column: str, values: Sequence[Any], type: ColumnType = "bigint") -> Condition:
        """Return the condition that `column` equals one of `values`."""
        ...

    def equals_key(self, column: str, keys: Sequence[bytes], scope: Scope) -> Condition:
        """Return the condition that `column`, a digest of a text, equals one of `keys` in the partition of `scope`."""
        ...

    def equals_text(self, column: str, text: str) -> Condition:
        """Return the condition that `column`, which is indexed by a hash where texts have any length, equals `text`."""
        ...

    def matches(self, filter: Filter) -> Condition:
        """Return the condition of memories that pass a filter, as `filters.matches` defines it."""
        ...

    # --- transactions ------------------------------------------------------------------------------------------------

    def set_scope(self, scope: Scope | None) -> Steps[None]:
        """Restrict the statements that follow to rows of `scope` (None: of all), where row-level security is active."""
        ...

    def lock_scope(self, scope: Scope) -> Steps[None]:
        """Set the scope, and make other writers of its partition wait until this transaction has ended."""
        ...

    def lock_part(self, part: str) -> Steps[None]:
        """Make other writers of a partition wait until this transaction has ended."""
        ...

    def lock_all(self) -> Steps[None]:
        """Make all other writers wait until this transaction has ended."""
        ...

    def reserve_seqs(self, count: int) -> Steps[list[int]]:
        """Reserve `count` ascending sequence numbers. Call it after the partition is locked."""
        ...

    def safe_read_seq(self) -> Steps[int | None]:
        """Return a sequence number up to which later statements see every change; None where they see all changes."""
        ...

    def reserve_rows(self, table: str, count: int) -> Steps[list[int]]:
        """Reserve `count` ascending row numbers. Insert these rows before more numbers of the table are reserved."""
        ...


class Engine(Protocol):
    """Connections to one database that run steps. An engine for event loops also has ``arun``."""

    @property
    def dialect(self) -> Dialect: ...

    def run(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        """Run the steps that `make_steps` returns, and return their value."""
        ...

    def snapshot(self) -> AbstractContextManager[Engine]:
        """Return an engine that reads one state of the database until the context ends."""
        ...
