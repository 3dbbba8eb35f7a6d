"""Data to revert a merge: the rows that it deleted, with the row numbers of the store and without vectors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Merge
from mem0_core.errors import InputError
from mem0_core.interfaces import MergePlan
from mem0_core.stores.sql.rows import scope_from_ids


@dataclass(slots=True)
class MovedEdge:
    """A relation as it was before the merge.

    Attributes:
        row, source, relationship, destination: columns of the relation.
        weight, valid_from, valid_to, invalidated_at: further columns.
        evidence: (memory, withdrawn, first day, last day), by memory.
        messages: rows of its source messages.
        target: row of the relation that it was moved into; None if it would have joined an entity to itself.
        created_target: True if the merge created that relation.
        target_valid_from: time since when that relation held before the merge.
        target_had_evidence: True if that relation had memories or messages before the merge.
        added_memories: memories that the merge added to its evidence.
        restored_memories: memories with withdrawn evidence that the merge restored.
        added_messages: messages that the merge added to it.
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
    """Rows that a merge deleted or changed.

    Attributes:
        nodes: row, name and type of each deleted node.
        edges: relations that were moved.
        type: former type of the kept node, if the merge changed it.
        redirected_merges: row and former node of each earlier merge into a deleted node.
        relations: number of relations that were moved.
    """

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
    """Return source, relationship and destination after the merge; None if an entity would be joined to itself."""
    if plan.kept_node is None:
        return edge.source, plan.merge.name, edge.destination
    source, destination = (
        plan.kept_node if end in plan.merged_nodes else end for end in (edge.source, edge.destination)
    )
    return (source, edge.relationship, destination) if source != destination else None


def first_type(nodes: Sequence[Sequence[Any]]) -> str:
    """Return the first type among merged nodes (row, name, type); empty if none has one."""
    return next((type for _, _, type in nodes if type), "")


def merge_from_row(row: Sequence[Any], merged_names: Sequence[str], undo: MergeUndo) -> Merge:
    """Return the merge in a row of `merges`: row number, id, ids of the scope, kind, name, score, reasons, times."""
    _, id, user, agent, run, kind, name, score, reasons, at, undone, *_ = row
    return Merge(
        kind=kind,
        scope=scope_from_ids(user, agent, run),
        name=name,
        merged_names=tuple(merged_names),
        score=score,
        reasons=tuple(json.loads(reasons)),
        relations=undo.relations,
        id=id,
        merged_at=at,
        undone_at=undone,
    )


def check_no_later_merge(row: int, merge: Merge, undo: MergeUndo, later: Iterable[MergeUndo]) -> None:
    """Refuse to revert a merge if a later one moved its relations or nodes on (InputError)."""
    targets = {edge.target for edge in undo.edges}
    ends = {end for edge in undo.edges for end in (edge.source, edge.destination)}
    for other in later:
        moved = {edge.row for edge in other.edges} | {edge.target for edge in other.edges}
        deleted = {node[0] for node in other.nodes}
        if row in {pair[0] for pair in other.redirected_merges} or targets & moved or ends & deleted:
            raise InputError(f"a later merge builds on {merge.id!r} ({merge.name}): revert that one first")


def split_from_target(
    edge: MovedEdge, target: tuple[int, str, str | None, str | None], withdrawn: Mapping[int, bool], at: str
) -> tuple[int, str]:
    """Take a relation out of its target. Changes of the target since the merge apply to the relation too.

    Args:
        edge: the relation, which is changed.
        target: weight, valid_from, valid_to and invalidated_at of its target.
        withdrawn: for each memory of the target, True if its evidence was withdrawn.
        at: ISO 8601 time of the revert.

    Returns:
        the remaining weight of the target, 0 or less for none, and the time since when it holds.
    """
    weight, since, until, invalidated_at = target
    was_supported, lost_weight = any(not evidence[1] for evidence in edge.evidence), 0
    for evidence in edge.evidence:
        if withdrawn.get(evidence[0]) and not evidence[1]:
            evidence[1], lost_weight = 1, lost_weight + 1
    if edge.valid_to is None and until is not None:
        edge.valid_to, edge.invalidated_at = max(edge.valid_from, until), invalidated_at
    elif edge.valid_to is None and was_supported and all(evidence[1] for evidence in edge.evidence):
        edge.valid_to, edge.invalidated_at = max(edge.valid_from, at), at
    remaining = weight - max(0, edge.weight - lost_weight)
    edge.weight = max(1, edge.weight - lost_weight)
    before = (
        edge.target_valid_from
        if edge.target_valid_from is not None and since == min(edge.target_valid_from, edge.valid_from)
        else since
    )
    return remaining, before


def remove_memory(edge: MovedEdge, memory: int, messages: set[int]) -> tuple[bool, int]:
    """Remove a memory and its messages from a moved relation.

    Returns:
        True if anything still supports the relation; and the weight that its target loses, in addition to the weight
        that it loses when the memory is erased.
    """
    was_evidence = any(evidence[0] == memory for evidence in edge.evidence)
    was_support = any(evidence[0] == memory and not evidence[1] for evidence in edge.evidence)
    was_source = not messages.isdisjoint(edge.messages)
    edge.evidence = [evidence for evidence in edge.evidence if evidence[0] != memory]
    edge.messages = [message for message in edge.messages if message not in messages]
    if not (was_evidence or was_source):
        return True, 0
    is_supported = bool(edge.evidence) or (not was_evidence and bool(edge.messages))
    erased_weight = 1 if was_support and memory in edge.added_memories else 0
    lost_weight = (1 if was_support else 0) if is_supported else edge.weight
    for memories in (edge.added_memories, edge.restored_memories):
        if memory in memories:
            memories.remove(memory)
    edge.added_messages = [message for message in edge.added_messages if message not in messages]
    edge.weight = max(1, edge.weight - lost_weight)
    return is_supported, lost_weight - erased_weight


def relink_edges(edges: Sequence[MovedEdge], remaining: Sequence[MovedEdge]) -> list[tuple[int, str, str]]:
    """Correct the former state of targets after some of the relations that were moved into them are dropped.

    Returns:
        the targets that hold since another time without the dropped relations: row, former and present valid_from.
    """
    kept = {edge.row for edge in remaining}
    changed: list[tuple[int, str, str]] = []
    for target in dict.fromkeys(edge.target for edge in edges if edge.target is not None and edge.row not in kept):
        chain = [edge for edge in edges if edge.target == target]
        since = chain[0].target_valid_from  # None for a target that the merge created
        expected = min(time for time in (since, *(edge.valid_from for edge in chain)) if time is not None)
        for edge in chain:
            if edge.row in kept:
                edge.created_target, edge.target_valid_from = since is None, since
                since = edge.valid_from if since is None else min(since, edge.valid_from)
        if since is not None and since != expected:
            changed.append((target, expected, since))
    return changed
