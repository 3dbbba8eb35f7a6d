"""Check a store and its projections, and repair them where possible.

Checks, in this order: the log (before the store is opened); the store itself (file, indexes, words, vectors); relations
that were removed by hand, restored from their remains; each projection, compared with the repaired store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core._system.files import clear_abandoned, find_abandoned
from mem0_core._system.records import dataclass
from mem0_core.admin.verify import verify
from mem0_core.domain.records import Event, MemoryItem, RelationChange
from mem0_core.errors import ModelError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest.relations import extract_memory_relations
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

__all__ = ["Diagnosis", "Finding", "diagnose", "find_log_damage", "report_torn_log", "report_unreadable_store"]

_SAME_TEXT_COSINE = 0.999  # minimum cosine of two embeddings of one text
_EMBED_BATCH_ROWS = 256
_RESTORE_ACTION = "restore a backup (mem0-core restore)"
_NO_ACTION = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A consistency problem.

    Attributes:
        where: "log", "files", "store", "graph", or the name of a projection.
        what: Description of the problem.
        mended: True if it is repaired.
        action: The repair, or a recommendation.
    """

    where: str
    what: str
    mended: bool = False
    action: str = _NO_ACTION


@dataclass(slots=True)
class Diagnosis:
    """The checked parts and the problems found."""

    checked: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_healthy(self) -> bool:
        """Return True if no problems remain."""
        return all(finding.mended for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {
            "healthy": self.is_healthy,
            "checked": self.checked,
            "findings": [asdict(finding) for finding in self.findings],
        }


def report_torn_log(damage: str) -> Diagnosis:
    """Return the report of a check of a store with a torn log: only opening the store repairs it."""
    action = "opening the store drops uncommitted changes; the other checks follow the repair"
    return Diagnosis(["log"], [Finding("log", damage, action=action)])


def report_unreadable_store(error: StoreError) -> Diagnosis:
    """Return the report of a store that cannot be opened."""
    return Diagnosis(["store"], [Finding("store", str(error), action=_RESTORE_ACTION)])


def diagnose(
    ports: Ports,
    *,
    repair: bool,
    torn: str | None = None,
    folders: Iterable[Path] = (),
    deep: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Flow[Diagnosis]:
    """Check the store and its projections; with `repair`, repair them where possible.

    For a store in a server, only the tables are checked: the server is responsible for pages and log.

    Args:
        torn: Result of `find_log_damage` before the store was opened.
        deep: Also derive all contents again, see `admin.verify`.
        folders: Folders in which killed processes may have left temporary files.

    Raises:
        ModelError: The embedder failed.
    """
    maintenance = ports.store.maintenance
    diagnosis, projections = Diagnosis(), list(_iter_projections(ports))
    report = on_progress or (lambda done, total: None)
    report(0, len(projections) + 1)
    diagnosis.findings += yield from do(_check_temporary_files, list(folders), repair)
    if not (yield from _check_store(ports, diagnosis, repair, torn)):
        return diagnosis
    for done, (name, table, projection) in enumerate(projections, 1):
        report(done, len(projections) + 1)
        diagnosis.checked.append(name)
        diagnosis.findings += yield from _compare_projection(maintenance, name, table, projection, repair)
    if deep:
        diagnosis.checked.append("replay")
        diagnosis.findings += yield from _replay(ports)
    report(len(projections) + 1, len(projections) + 1)
    return diagnosis


def _replay(ports: Ports) -> Flow[list[Finding]]:
    """Report the contents that differ from those derived from history and messages."""
    found = yield from verify(ports)
    return [Finding("replay", f"{one['part']}: {one['item']}: {one['reason']}") for one in found.differences]


def _check_temporary_files(folders: list[Path], repair: bool) -> list[Finding]:
    """Report, and with `repair` remove, unfinished copies of the store that killed processes left."""
    found = clear_abandoned(folders) if repair else find_abandoned(folders)
    problem = "a killed process left temporary files, which may contain a copy of the store"
    return [
        Finding("files", f"{problem}: {folder}", mended=repair, action="removed" if repair else _NO_ACTION)
        for folder in found
    ]


def _check_store(ports: Ports, diagnosis: Diagnosis, repair: bool, torn: str | None) -> Flow[bool]:
    """Check the store itself; return False if it is too damaged for further checks."""
    maintenance = ports.store.maintenance
    diagnosis.checked += ["store"] if maintenance.file is None else ["log", "store"]
    if torn is not None:
        yield from do(maintenance.begin_new_epoch)  # projections may contain lost rows, whose numbers are reused
        action = (
            "dropped uncommitted changes and reset the projections; the latest additions may be missing: add them again"
        )
        diagnosis.findings.append(Finding("log", torn, mended=True, action=action))
    issues: list[StoreIssue] = yield from do(maintenance.find_issues)
    for issue in issues:
        diagnosis.findings.append((yield from _handle_issue(ports, issue, repair)))
    if any(issue.kind == "damaged" for issue in issues):
        return False
    diagnosis.checked.append("graph")
    diagnosis.findings += yield from _check_relations(ports, repair)
    return True


# --- Store -------------------------------------------------------------------------------------------------------


def _handle_issue(ports: Ports, issue: StoreIssue, repair: bool) -> Flow[Finding]:
    maintenance = ports.store.maintenance
    if issue.kind == "damaged":
        return Finding("store", issue.description, action=_RESTORE_ACTION)
    if not repair:
        return Finding("store", issue.description)
    if issue.kind == "vectorless":
        return (yield from _embed_missing(ports, issue))
    try:
        action = yield from do(maintenance.repair, issue)
        if issue.kind == "stray":
            # Projections may contain the lost rows, which have no tombstones.
            yield from do(maintenance.begin_new_epoch)
    except StoreError as error:
        return Finding("store", issue.description, action=f"{error}; {_RESTORE_ACTION}")
    return Finding("store", issue.description, mended=True, action=action)


def _embed_missing(ports: Ports, issue: StoreIssue) -> Flow[Finding]:
    """Embed the rows without a vector, except nodes or relations without ends (see `_check_relations`)."""
    maintenance = ports.store.maintenance
    yield from check_embedder(ports)
    table: VectorTable = issue.table  # type: ignore[assignment]
    texts = yield from do(maintenance.embedded_texts, table, issue.rows)
    for start in range(0, len(texts), _EMBED_BATCH_ROWS):
        batch = texts[start : start + _EMBED_BATCH_ROWS]
        vectors = yield from embed_texts(ports, [text for _, text in batch])
        yield from do(
            maintenance.set_vectors, table, [(row, vector) for (row, _), vector in zip(batch, vectors, strict=True)]
        )
    return Finding("store", issue.description, mended=True, action=f"embedded {len(texts)} again")


# --- Relations removed by hand -----------------------------------------------------------------------------------


def _check_relations(ports: Ports, repair: bool) -> Flow[list[Finding]]:
    maintenance = ports.store.maintenance
    orphans: list[OrphanedRelation] = yield from do(maintenance.orphaned_relations)
    found: list[Finding] = []
    for orphan in orphans:
        found += [(yield from _restore_relation(ports, orphan, repair))]
    if (
        not orphans
        and not (yield from do(maintenance.has_merges))
        and (yield from do(maintenance.count_missing_relations))
    ):
        found += yield from _restore_missing_relations(ports, repair)
    return found


def _restore_relation(ports: Ports, orphan: OrphanedRelation, repair: bool) -> Flow[Finding]:
    """Restore a removed relation from its remains: evidence names its memories, its vector identifies it."""
    maintenance = ports.store.maintenance
    source = yield from _find_source_memory(ports, orphan)
    problem = f"relation {orphan.row} was removed by hand"
    if source is None and (yield from do(maintenance.has_merges)):
        return Finding("graph", f"{problem}, and names were merged since", action=_RESTORE_ACTION)
    if source is None:
        if repair:
            yield from do(maintenance.remove_orphan, orphan)
        action = "no memory states it any more: removed its remains" if repair else _NO_ACTION
        return Finding("graph", problem, mended=repair, action=action)
    memory_id, relation = source
    problem = f"{problem}: {relation.triplet}"
    if repair:
        yield from do(maintenance.restore_relation, orphan, memory_id, relation)
    return Finding("graph", problem, mended=repair, action=f"restored from memory {memory_id}" if repair else "")


def _find_source_memory(ports: Ports, orphan: OrphanedRelation) -> Flow[tuple[str, RelationChange] | None]:
    """Return the id of a memory that states the relation, and the relation; check its known memories first."""
    for memory_id in orphan.memories:
        item = yield from do(ports.store.get, memory_id)
        if item is not None and (relation := (yield from _find_matching_relation(ports, orphan, item))) is not None:
            return memory_id, relation
    if orphan.vector is not None and _extracts_by_rules(ports):
        for item in (yield from do(ports.store.list_memories, None)):
            if (relation := (yield from _find_matching_relation(ports, orphan, item))) is not None:
                return item.id, relation
    return None


def _find_matching_relation(ports: Ports, orphan: OrphanedRelation, item: MemoryItem) -> Flow[RelationChange | None]:
    maintenance = ports.store.maintenance
    for relation in (yield from _extract_relations(ports, item)):
        if orphan.vector is not None and float(relation.vectors[2] @ orphan.vector) >= _SAME_TEXT_COSINE:
            return relation
        if orphan.vector is None and not (yield from do(maintenance.has_relation, item.scope, relation)):
            return relation
    return None


def _extracts_by_rules(ports: Ports) -> bool:
    return ports.graph is not None and ports.graph.chat is None


def _restore_missing_relations(ports: Ports, repair: bool) -> Flow[list[Finding]]:
    """Restore relations without remains: those that rules extract from memories, but the graph does not contain.

    Only rules are used: a model would have to process every memory, and might extract something new.
    """
    maintenance = ports.store.maintenance
    if not _extracts_by_rules(ports) or ports.on_conflict == "delete":
        return []
    found = []
    for item in (yield from do(ports.store.list_memories, None)):
        for relation in (yield from _extract_relations(ports, item)):
            if not (yield from do(maintenance.has_relation, item.scope, relation)):
                problem = f"a relation of memory {item.id} was removed by hand: {relation.triplet}"
                if repair:
                    yield from do(maintenance.restore_relation, None, item.id, relation)
                found.append(
                    Finding("graph", problem, mended=repair, action="extracted again from the memory" if repair else "")
                )
    return found


def _extract_relations(ports: Ports, item: MemoryItem) -> Flow[list[RelationChange]]:
    """Return the relations that a memory states; none if the model fails."""
    try:
        changes = yield from extract_memory_relations(ports, item)
    except ModelError:
        return []
    return [change for change in changes if change.event is Event.ADD]


# --- Projections -------------------------------------------------------------------------------------------------


def _iter_projections(ports: Ports) -> Iterator[tuple[str, VectorTable, Any]]:
    """Yield the name, source table and object of each projection."""
    yield f"vectors: {type(ports.index).__name__}", "memories", ports.index
    if ports.graph is not None:
        for table, part in getattr(ports.graph.embedded_index, "parts", {}).items():
            yield f"vectors of {table}: {type(part).__name__}", table, part
        if ports.graph.index is not ports.graph.embedded_index:
            yield f"graph: {ports.graph.index.name}", "edges", ports.graph.index


def _compare_projection(
    maintenance: StoreMaintenance, name: str, table: VectorTable, projection: Any, repair: bool
) -> Flow[list[Finding]]:
    if not isinstance(projection, VerifiableProjection):
        return [Finding(name, "it cannot be compared with the store")]
    partitions, addresses = (
        (yield from do(maintenance.list_partitions, table)),
        (yield from do(maintenance.list_addresses, table)),
    )
    try:
        mismatches: list[ProjectionMismatch] = yield from do(projection.find_mismatches, partitions, addresses)
        if mismatches:  # concurrent writes look like mismatches; real ones are found twice
            first = {(one.address, one.files) for one in mismatches}
            again = yield from do(projection.find_mismatches, partitions, addresses)
            mismatches = [one for one in again if (one.address, one.files) in first]
    except StoreError as error:
        return [Finding(name, f"cannot be reached: {error}", action="the next search catches up")]
    found = []
    for one in mismatches:
        try:
            action = (yield from do(projection.repair_mismatch, one)) if repair else _NO_ACTION
            found.append(Finding(name, one.description, mended=repair, action=action))
        except StoreError as error:
            found.append(Finding(name, one.description, action=f"cannot be repaired now: {error}"))
    return found
