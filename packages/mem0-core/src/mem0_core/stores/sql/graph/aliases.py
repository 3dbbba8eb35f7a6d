"""Names that were merged into others, and the nodes and relationships that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.domain.records import Scope, entity_key
from mem0_core.stores.sql.engine.dialect import Dialect
from mem0_core.stores.sql.engine.steps import Steps, fetch_rows

__all__ = ["alias_condition", "resolve_node_aliases", "resolve_relationship_aliases"]


def alias_condition(dialect: Dialect, scope: Scope, kind: str, keys: Sequence[bytes]) -> tuple[str, list[Any]]:
    """Return the condition of aliases ``a`` of exactly this scope that are in force."""
    where, values = dialect.in_exact_scope(scope, "a")
    among, listed = dialect.equals_key("a.key", keys, scope)
    return f"{where} AND a.kind = '{kind}' AND a.standing AND {among}", values + listed


def resolve_node_aliases(dialect: Dialect, scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, int]]:
    """Return the rows of the nodes that names were merged into, by the keys of the names."""
    if not keys:
        return {}
    where, values = alias_condition(dialect, scope, "entity", keys)
    sql = f"SELECT a.key, m.node FROM aliases AS a JOIN merges AS m ON {dialect.same_part('m', 'a')}m.row = a.merge"
    found = yield from fetch_rows(f"{sql} WHERE {where}", values)
    return {bytes(key): node for key, node in found if node is not None}


def resolve_relationship_aliases(dialect: Dialect, scope: Scope, relationships: Sequence[str]) -> Steps[dict[str, str]]:
    """Return the present name of each relationship, which may have been merged several times."""
    names = {name: name for name in relationships}
    unresolved = set(names)
    sql = f"SELECT a.key, m.name FROM aliases AS a JOIN merges AS m ON {dialect.same_part('m', 'a')}m.row = a.merge"
    while unresolved:
        keys = list({entity_key(names[name]) for name in unresolved})
        where, values = alias_condition(dialect, scope, "relationship", keys)
        merged = {bytes(key): name for key, name in (yield from fetch_rows(f"{sql} WHERE {where}", values))}
        unresolved = {name for name in unresolved if entity_key(names[name]) in merged}
        names |= {name: merged[entity_key(names[name])] for name in unresolved}
    return names
