"""The end of a relation by rules: the first later message that ends it, whatever else ended it before."""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import date
from typing import Any

from mem0_core.domain.records import Triplet, entity_key
from mem0_core.language import rule_extractor as rules
from mem0_core.stores.sql.engine.dialect import Dialect
from mem0_core.stores.sql.engine.steps import Steps, fetch_rows
from mem0_core.stores.sql.graph.reader import edges_with_nodes
from mem0_core.stores.sql.rows import scope_from_ids

_MAX_MESSAGES = 1_000  # messages about the relation that rules read


def find_later_end(dialect: Dialect, edge: int, withdrawn: Set[int]) -> Steps[tuple[list[int], str] | None]:
    """Return the first message after the statements of a relation that ends it by rules, and its time.

    Messages that state another relation of its source, or that mention its destination, are read.

    Args:
        edge: row of the relation.
        withdrawn: rows of messages that do not count.
    """
    same = dialect.same_part
    found = yield from fetch_rows(
        "SELECT s.name, e.relationship, d.name, e.user_id, e.agent_id, e.run_id,"
        f" (SELECT min(h.message) FROM edge_messages AS h WHERE {same('h', 'e')}h.edge = e.row)"
        f" FROM {edges_with_nodes(dialect)} WHERE e.row = ?",
        (edge,),
    )
    if not found or found[0][-1] is None:  # withdrawn as well, or stated by no message
        return None
    source, relationship, destination, *ids, first = found[0]
    scope = scope_from_ids(*ids)
    where, values = dialect.in_exact_scope(scope, "m")
    states_other = (
        f"EXISTS (SELECT 1 FROM edge_messages AS h JOIN edges AS n ON {same('n', 'h')}n.row = h.edge"
        f" JOIN edges AS o ON {same('o', 'n')}o.source = n.source AND o.relationship = n.relationship"
        f" WHERE {same('h', 'm')}h.message = m.row AND o.row = ? AND n.row <> o.row)"
    )
    messages = yield from fetch_rows(
        f"SELECT m.row, m.created_at, m.content, m.name, {states_other} FROM messages AS m WHERE {where} AND m.row > ?"
        f" AND (lower(m.content) LIKE lower(?) ESCAPE '!' OR {states_other}) ORDER BY m.row LIMIT {_MAX_MESSAGES}",
        [edge, *values, first, f"%{_escape(destination)}%", edge],
    )
    triplet = Triplet(source, relationship, destination)
    for row, at, content, name, is_about_source in messages:
        if row in withdrawn:
            continue
        said_on = date.fromisoformat(at[:10])
        extracted = rules.extract_by_rules(content, speaker=name or scope.partition[1], said_on=said_on)
        if any(_ends(ending, triplet, is_about_source) for ending in _endings_of(extracted)):
            return [row], at
    return None


def _escape(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _endings_of(extracted: rules.RuleExtraction) -> Iterator[rules.EndedRelation]:
    yield from extracted.ended
    yield from (one for one in extracted.of_relatives if isinstance(one, rules.EndedRelation))


def _ends(ending: rules.EndedRelation, triplet: Triplet, is_about_source: Any) -> bool:
    """Return True if an ending ends a relation; a message about its source may give the source another name."""
    if ending.relationship != triplet.relationship:
        return False
    if ending.destination is not None and entity_key(ending.destination) != triplet.key[2]:
        return False
    return bool(is_about_source) or entity_key(ending.source) == triplet.key[0]
