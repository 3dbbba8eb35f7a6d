"""What a merge took, as a truth keeps it to give it back: pure, in the numbers of the store and without vectors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mem0_core.domain.records import Merge
from mem0_core.errors import InputError
from mem0_core.interfaces import MergePlan
from mem0_core.stores.sql.rows import scope_from_ids

__all__ = [
    "MergeUndo",
    "MovedEdge",
    "check_no_later_merge",
    "first_type",
    "merge_from_row",
    "merged_ends",
    "relink_edges",
    "remove_memory",
    "split_from_target",
]


@dataclass(slots=True)
class MovedEdge:
    """A relation as it was.

    Attributes:
        evidence: (memory, withdrawn, first day, last day), by memory.
        into: the row that it went into; None for one that would have joined an entity to itself.
        made: whether that row was made for it.
        was: since when that row held before; `said`, whether memories or messages said so.
        lent: memories that became evidence of it by this; `restored_memories`, those that it had, but withdrawn.
        spoken: messages that it was said to come from by this.
    """

    row: int
    source: int
    relationship: str
    destination: int
    weight: int
    valid_from: str
    valid_to: str | None
    invalidated_at: str | None
    evidence: list[list[Any]] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)
    target: int | None = None
    created_target: bool = False
    target_valid_from: str | None = None
    target_had_evidence: bool = False
    added_memories: list[int] = field(default_factory=list)
    restored_memories: list[int] = field(default_factory=list)
    added_messages: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MergeUndo:
    """What a merge took: nodes as (row, name, type), edges, the type that the node which stayed had before where it got
    another, and rows of earlier merges into what went."""

    nodes: list[list[Any]] = field(default_factory=list)
    edges: list[MovedEdge] = field(default_factory=list)
    type: str | None = None
    redirected_merges: list[list[int]] = field(default_factory=list)
    relations: int = 0

    @classmethod
    def from_json(cls, text: str) -> MergeUndo:
        fields = json.loads(text)
        return cls(**{**fields, "edges": [MovedEdge(**edge) for edge in fields.get("edges", ())]})

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, separators=(",", ":"))


def merged_ends(plan: MergePlan, edge: MovedEdge) -> tuple[int, str, int] | None:
    """What a relation becomes; None where it would join an entity to itself."""
    if plan.kept_node is None:
        return edge.source, plan.merge.name, edge.destination
    source, destination = (
        plan.kept_node if end in plan.merged_nodes else end for end in (edge.source, edge.destination)
    )
    return (source, edge.relationship, destination) if source != destination else None


def first_type(nodes: Sequence[Sequence[Any]]) -> str:
    """The type that those which go bring to the one that stays."""
    return next((type for _, _, type in nodes if type), "")


def merge_from_row(row: Sequence[Any], merged: Sequence[str]) -> Merge:
    """The merge in a row; what was `merged`, which each store keeps in its own way, stands at the row's end."""
    _, id, user, agent, run, kind, name, score, reasons, at, undone, undo, _ = row
    return Merge(
        kind=kind,
        scope=scope_from_ids(user, agent, run),
        name=name,
        merged_names=tuple(merged),
        score=score,
        reasons=tuple(json.loads(reasons)),
        relations=json.loads(undo)["relations"],
        id=id,
        merged_at=at,
        undone_at=undone,
    )


def check_no_later_merge(row: int, merge: Merge, undo: MergeUndo, later: Iterable[MergeUndo]) -> None:
    """What a later merge moved on is not there to be brought back."""
    own = {edge.target for edge in undo.edges}
    ends = {end for edge in undo.edges for end in (edge.source, edge.destination)}
    for one in later:
        moved = {edge.row for edge in one.edges} | {edge.target for edge in one.edges}
        gone = {node[0] for node in one.nodes}
        if row in {pair[0] for pair in one.redirected_merges} or own & moved or ends & gone:
            raise InputError(f"a later merge builds on {merge.id!r} ({merge.name}): take that one back first")


def split_from_target(
    edge: MovedEdge, target: tuple[int, str, str | None, str | None], withdrawn: Mapping[int, bool], at: str
) -> tuple[int, str]:
    """Take a relation out of the one that it went into; what became of that meanwhile, became of it as well.

    Args:
        into: weight, valid_from, valid_to and invalidated_at of that one.
        withdrawn: by its memories, whether they withdrew what they said of that one.

    Returns:
        the weight that is left of that one, 0 or below for none; and since when it held.
    """
    weight, since, until, learnt = target
    stood, lost = any(not one[1] for one in edge.evidence), 0
    for one in edge.evidence:
        if withdrawn.get(one[0]) and not one[1]:
            one[1], lost = 1, lost + 1
    if edge.valid_to is None and until is not None:
        edge.valid_to, edge.invalidated_at = max(edge.valid_from, until), learnt
    elif edge.valid_to is None and stood and all(one[1] for one in edge.evidence):
        edge.valid_to, edge.invalidated_at = max(edge.valid_from, at), at
    left = weight - max(0, edge.weight - lost)
    edge.weight = max(1, edge.weight - lost)
    before = (
        edge.target_valid_from
        if edge.target_valid_from is not None and since == min(edge.target_valid_from, edge.valid_from)
        else since
    )
    return left, before


def remove_memory(edge: MovedEdge, memory: int, messages: set[int]) -> tuple[bool, int]:
    """What is left of a relation that went, without a memory and its messages.

    Returns:
        whether something says it still; and the weight that the one it went into loses with it, besides the one that
        erasing the memory takes from it anyway.
    """
    said = any(one[0] == memory for one in edge.evidence)
    standing = any(one[0] == memory and not one[1] for one in edge.evidence)
    heard = not messages.isdisjoint(edge.messages)
    edge.evidence = [one for one in edge.evidence if one[0] != memory]
    edge.messages = [message for message in edge.messages if message not in messages]
    if not (said or heard):
        return True, 0
    stays = bool(edge.evidence) or (not said and bool(edge.messages))
    own = 1 if standing and memory in edge.added_memories else 0
    lost = (1 if standing else 0) if stays else edge.weight
    for kept in (edge.added_memories, edge.restored_memories):
        if memory in kept:
            kept.remove(memory)
    edge.added_messages = [message for message in edge.added_messages if message not in messages]
    edge.weight = max(1, edge.weight - lost)
    return stays, lost - own


def relink_edges(edges: Sequence[MovedEdge], left: Sequence[MovedEdge]) -> list[tuple[int, str, str]]:
    """Of relations that went into one, some are dropped: what the others remember of it is put right.

    Returns:
        the rows that hold since another time without what is dropped: the row, since when it was told, and since when.
    """
    kept = {edge.row for edge in left}
    told: list[tuple[int, str, str]] = []
    for target in dict.fromkeys(edge.target for edge in edges if edge.target is not None and edge.row not in kept):
        chain = [edge for edge in edges if edge.target == target]
        since = chain[0].target_valid_from  # None for a row that was made
        expected = min(one for one in (since, *(edge.valid_from for edge in chain)) if one is not None)
        for edge in chain:
            if edge.row in kept:
                edge.created_target, edge.target_valid_from = since is None, since
                since = edge.valid_from if since is None else min(since, edge.valid_from)
        if since is not None and since != expected:
            told.append((target, expected, since))
    return told
