"""The doctor: is the truth sound, does every projection agree with it, and what can be mended is.

The log (before the store is opened) -> the truth by itself: the file, its indexes, words, vectors -> relations that
were removed by hand, named again by what is left of them -> each projection against the truth. What is mended in the
truth is mended before projections are compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Event, MemoryItem, RelationChange
from mem0_core.errors import ModelError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest.memory_relations import extract_memory_relations
from mem0_core.interfaces.maintenance import (
    OrphanedRelation,
    ProgressCallback,
    ProjectionMismatch,
    StoreIssue,
    StoreMaintenance,
    VectorTable,
    VerifiableProjection,
)
from mem0_core.recall.embedding import check_embedder, embed_texts
from mem0_core.stores.sqlite.maintenance import find_log_damage

if TYPE_CHECKING:
    from mem0_core.interfaces import Ports

__all__ = ["Diagnosis", "Finding", "diagnose", "find_log_damage", "report_unreadable_store"]

_SAME_TEXT_COSINE = 0.999  # cosine from which a sentence is the one that was embedded
_EMBED_BATCH_ROWS = 256
_RESTORE_ACTION = "restore a backup (mem0-core restore)"
_NO_ACTION = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        where: "log", "truth", "graph", or the projection.
        action: how it was mended, or what can be done.
    """

    where: str
    what: str
    mended: bool = False
    action: str = _NO_ACTION


@dataclass(slots=True)
class Diagnosis:
    """What was checked, and what was found."""

    checked: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong any more."""
        return all(finding.mended for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {
            "healthy": self.is_healthy,
            "checked": self.checked,
            "findings": [asdict(finding) for finding in self.findings],
        }


def report_torn_log(what: str) -> Diagnosis:
    """What is said of a store with a torn log that is only looked at: opening it would mend it."""
    action = "opening the store drops what has no commit; the rest is checked when this is mended"
    return Diagnosis(["log"], [Finding("log", what, action=action)])


def report_unreadable_store(error: StoreError) -> Diagnosis:
    """What is said of a store that cannot be opened."""
    return Diagnosis(["truth"], [Finding("truth", str(error), action=_RESTORE_ACTION)])


def diagnose(
    ports: Ports, *, repair: bool, torn: str | None = None, on_progress: ProgressCallback | None = None
) -> Flow[Diagnosis]:
    """Check everything, and mend what can be mended.

    Of a truth in a server, pages and log are the server's business; what is in its tables is checked all the same.

    Args:
        torn: what `find_log_damage` said before the store was opened.

    Raises:
        ModelError: the embedder failed.
    """
    care = ports.store.maintenance
    found, projections = Diagnosis(), list(_iter_projections(ports))
    tell = on_progress or (lambda done, total: None)
    tell(0, len(projections) + 1)
    if not (yield from _check_store(ports, care, found, repair, torn)):
        return found
    for done, (name, table, projection) in enumerate(projections, 1):
        tell(done, len(projections) + 1)
        found.checked.append(name)
        found.findings += yield from _compare_projection(care, name, table, projection, repair)
    tell(len(projections) + 1, len(projections) + 1)
    return found


def _check_store(ports: Ports, care: StoreMaintenance, found: Diagnosis, repair: bool, torn: str | None) -> Flow[bool]:
    """Check the truth by itself; False where it is too damaged for anything to be compared with it."""
    found.checked += ["truth"] if care.file is None else ["log", "truth"]
    if torn is not None:
        yield from do(care.begin_new_epoch)  # projections may hold what is gone, under numbers that are given again
        action = "dropped what has no commit; projections start anew. What was added last may be missing: add it again"
        found.findings.append(Finding("log", torn, mended=True, action=action))
    flaws: list[StoreIssue] = yield from do(care.find_issues)
    for flaw in flaws:
        found.findings.append((yield from _handle_flaw(ports, care, flaw, repair)))
    if any(flaw.kind == "damaged" for flaw in flaws):
        return False
    found.checked.append("graph")
    found.findings += yield from _check_relations(ports, care, repair)
    return True


# --- the truth ---------------------------------------------------------------------------------------------------


def _handle_flaw(ports: Ports, care: StoreMaintenance, flaw: StoreIssue, repair: bool) -> Flow[Finding]:
    if flaw.kind == "damaged":
        return Finding("truth", flaw.description, action=_RESTORE_ACTION)
    if not repair:
        return Finding("truth", flaw.description)
    if flaw.kind == "vectorless":
        return (yield from _embed_missing(ports, care, flaw))
    try:
        how = yield from do(care.repair, flaw)
        if flaw.kind == "stray":
            yield from do(care.begin_new_epoch)  # projections may hold what is gone, and no tombstone tells them
    except StoreError as error:
        return Finding("truth", flaw.description, action=f"{error}; {_RESTORE_ACTION}")
    return Finding("truth", flaw.description, mended=True, action=how)


def _embed_missing(ports: Ports, care: StoreMaintenance, flaw: StoreIssue) -> Flow[Finding]:
    """Give what has no vector one. (A node or relation without ends is no text, and is left to `_check_relations`.)"""
    yield from check_embedder(ports)
    table: VectorTable = flaw.table  # type: ignore[assignment]
    texts = yield from do(care.embedded_texts, table, flaw.rows)
    for start in range(0, len(texts), _EMBED_BATCH_ROWS):
        batch = texts[start : start + _EMBED_BATCH_ROWS]
        vectors = yield from embed_texts(ports, [text for _, text in batch])
        yield from do(care.set_vectors, table, [(row, vector) for (row, _), vector in zip(batch, vectors, strict=True)])
    return Finding("truth", flaw.description, mended=True, action=f"embedded {len(texts)} anew")


# --- relations removed by hand -----------------------------------------------------------------------------------


def _check_relations(ports: Ports, care: StoreMaintenance, repair: bool) -> Flow[list[Finding]]:
    lost: list[OrphanedRelation] = yield from do(care.orphaned_relations)
    found: list[Finding] = []
    for one in lost:
        found += [(yield from _restore_relation(ports, care, one, repair))]
    if not lost and not (yield from do(care.has_merges)) and (yield from do(care.count_missing_relations)):
        found += yield from _restore_missing_relations(ports, care, repair)
    return found


def _restore_relation(ports: Ports, care: StoreMaintenance, lost: OrphanedRelation, repair: bool) -> Flow[Finding]:
    """A relation of which something is left: its evidence says what it was, and its vector which."""
    named = yield from _find_source_memory(ports, care, lost)
    what = f"relation {lost.row} was removed by hand"
    if named is None and (yield from do(care.has_merges)):
        return Finding("graph", f"{what}, and names were merged since", action=_RESTORE_ACTION)
    if named is None:
        if repair:
            yield from do(care.remove_orphan, lost)
        action = "no memory says any more what it was: removed what was left of it" if repair else _NO_ACTION
        return Finding("graph", what, mended=repair, action=action)
    memory_id, relation = named
    what = f"{what}: {relation.triplet}"
    if repair:
        yield from do(care.restore_relation, lost, memory_id, relation)
    return Finding("graph", what, mended=repair, action=f"put back as memory {memory_id} says it" if repair else "")


def _find_source_memory(
    ports: Ports, care: StoreMaintenance, lost: OrphanedRelation
) -> Flow[tuple[str, RelationChange] | None]:
    """Which memory says it, and what: one of those known to, else any that rules can read."""
    for memory_id in lost.memories:
        item = yield from do(ports.store.get, memory_id)
        if item is not None and (relation := (yield from _find_matching_relation(ports, care, lost, item))) is not None:
            return memory_id, relation
    if lost.vector is not None and _extracts_by_rules(ports):
        for item in (yield from do(ports.store.list_memories, None)):
            if (relation := (yield from _find_matching_relation(ports, care, lost, item))) is not None:
                return item.id, relation
    return None


def _find_matching_relation(
    ports: Ports, care: StoreMaintenance, lost: OrphanedRelation, item: MemoryItem
) -> Flow[RelationChange | None]:
    for relation in (yield from _extract_relations(ports, item)):
        if lost.vector is not None and float(relation.vectors[2] @ lost.vector) >= _SAME_TEXT_COSINE:
            return relation
        if lost.vector is None and not (yield from do(care.has_relation, item.scope, relation)):
            return relation
    return None


def _extracts_by_rules(ports: Ports) -> bool:
    return ports.graph is not None and ports.graph.chat is None


def _restore_missing_relations(ports: Ports, care: StoreMaintenance, repair: bool) -> Flow[list[Finding]]:
    """Relations that are gone without a trace: whatever memories say by the rules, and the graph has never had.

    Only where some are gone, and only by rules: a model would be asked for every memory, and might say something new.
    """
    if not _extracts_by_rules(ports) or ports.on_conflict == "delete":
        return []
    found = []
    for item in (yield from do(ports.store.list_memories, None)):
        for relation in (yield from _extract_relations(ports, item)):
            if not (yield from do(care.has_relation, item.scope, relation)):
                what = f"a relation that memory {item.id} says was removed by hand: {relation.triplet}"
                if repair:
                    yield from do(care.restore_relation, None, item.id, relation)
                found.append(
                    Finding("graph", what, mended=repair, action="read from the memory again" if repair else "")
                )
    return found


def _extract_relations(ports: Ports, item: MemoryItem) -> Flow[list[RelationChange]]:
    """The relations that a memory states; none where no model can be asked."""
    try:
        changes = yield from extract_memory_relations(ports, item)
    except ModelError:
        return []
    return [change for change in changes if change.event is Event.ADD]


# --- projections -------------------------------------------------------------------------------------------------


def _iter_projections(ports: Ports) -> Iterator[tuple[str, VectorTable, Any]]:
    """Each projection there is, with what it is a projection of."""
    yield f"vectors: {type(ports.index).__name__}", "memories", ports.index
    if ports.graph is not None:
        for table, part in getattr(ports.graph.embedded_index, "parts", {}).items():
            yield f"vectors of {table}: {type(part).__name__}", table, part
        if ports.graph.index is not ports.graph.embedded_index:
            yield f"graph: {ports.graph.index.name}", "edges", ports.graph.index


def _compare_projection(
    care: StoreMaintenance, name: str, table: VectorTable, projection: Any, repair: bool
) -> Flow[list[Finding]]:
    if not isinstance(projection, VerifiableProjection):
        return [Finding(name, "it cannot be compared with the truth")]
    partitions, addresses = (yield from do(care.list_partitions, table)), (yield from do(care.list_addresses, table))
    try:
        unsound: list[ProjectionMismatch] = yield from do(projection.find_mismatches, partitions, addresses)
        if unsound:  # others may have been writing between two reads: what is wrong is wrong at the second look too
            first = {(one.address, one.files) for one in unsound}
            again = yield from do(projection.find_mismatches, partitions, addresses)
            unsound = [one for one in again if (one.address, one.files) in first]
    except StoreError as error:
        return [Finding(name, f"cannot be reached: {error}", action="the next search catches up")]
    found = []
    for one in unsound:
        try:
            how = (yield from do(projection.repair_mismatch, one)) if repair else _NO_ACTION
            found.append(Finding(name, one.description, mended=repair, action=how))
        except StoreError as error:
            found.append(Finding(name, one.description, action=f"cannot be mended now: {error}"))
    return found
