"""The doctor: is the truth sound, does every projection agree with it, and what can be mended is.

The log (before the store is opened) -> the truth by itself: the file, its indexes, words, vectors -> relations that
were removed by hand, named again by what is left of them -> each projection against the truth. What is mended in the
truth is mended before projections are compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mem0_core.care import Care, Examined, Flaw, Lost, Progress, Unsound, VectorTable
from mem0_core.errors import ModelError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.pipelines.near import check_embedder, embed_texts
from mem0_core.pipelines.stated import stated
from mem0_core.records import Event, MemoryItem, RelationChange
from mem0_core.stores.sqlite_care import torn_log

if TYPE_CHECKING:
    from mem0_core.ports import Ports

__all__ = ["Diagnosis", "Finding", "damaged", "examine", "torn", "torn_log"]

_SAME = 0.999  # cosine from which a sentence is the one that was embedded
_BATCH = 256
_FROM_BACKUP = "restore a backup (mem0-core restore)"
_NOT_MENDED = ""


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
    action: str = _NOT_MENDED


@dataclass(slots=True)
class Diagnosis:
    """What was checked, and what was found."""

    checked: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong any more."""
        return all(finding.mended for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy,
            "checked": self.checked,
            "findings": [asdict(finding) for finding in self.findings],
        }


def torn(what: str) -> Diagnosis:
    """What is said of a store with a torn log that is only looked at: opening it would mend it."""
    action = "opening the store drops what has no commit; the rest is checked when this is mended"
    return Diagnosis(["log"], [Finding("log", what, action=action)])


def damaged(error: StoreError) -> Diagnosis:
    """What is said of a store that cannot be opened."""
    return Diagnosis(["truth"], [Finding("truth", str(error), action=_FROM_BACKUP)])


def examine(
    ports: Ports, *, mend: bool, torn: str | None = None, on_progress: Progress | None = None
) -> Flow[Diagnosis]:
    """Check everything, and mend what can be mended.

    Of a truth in a server, pages and log are the server's business; what is in its tables is checked all the same.

    Args:
        torn: what `torn_log` said before the store was opened.

    Raises:
        ModelError: the embedder failed.
    """
    care = ports.store.care
    found, projections = Diagnosis(), list(_projections(ports))
    tell = on_progress or (lambda done, total: None)
    tell(0, len(projections) + 1)
    if not (yield from _sound(ports, care, found, mend, torn)):
        return found
    for done, (name, table, projection) in enumerate(projections, 1):
        tell(done, len(projections) + 1)
        found.checked.append(name)
        found.findings += yield from _compared(care, name, table, projection, mend)
    tell(len(projections) + 1, len(projections) + 1)
    return found


def _sound(ports: Ports, care: Care, found: Diagnosis, mend: bool, torn: str | None) -> Flow[bool]:
    """Check the truth by itself; False where it is too damaged for anything to be compared with it."""
    found.checked += ["truth"] if care.file is None else ["log", "truth"]
    if torn is not None:
        yield from do(care.begin_epoch)  # projections may hold what is gone, under numbers that are given again
        action = "dropped what has no commit; projections start anew. What was added last may be missing: add it again"
        found.findings.append(Finding("log", torn, mended=True, action=action))
    flaws: list[Flaw] = yield from do(care.flaws)
    for flaw in flaws:
        found.findings.append((yield from _truth(ports, care, flaw, mend)))
    if any(flaw.kind == "damaged" for flaw in flaws):
        return False
    found.checked.append("graph")
    found.findings += yield from _relations(ports, care, mend)
    return True


# --- the truth ---------------------------------------------------------------------------------------------------


def _truth(ports: Ports, care: Care, flaw: Flaw, mend: bool) -> Flow[Finding]:
    if flaw.kind == "damaged":
        return Finding("truth", flaw.what, action=_FROM_BACKUP)
    if not mend:
        return Finding("truth", flaw.what)
    if flaw.kind == "vectorless":
        return (yield from _embedded(ports, care, flaw))
    try:
        how = yield from do(care.mend, flaw)
        if flaw.kind == "stray":
            yield from do(care.begin_epoch)  # projections may hold what is gone, and no tombstone tells them
    except StoreError as error:
        return Finding("truth", flaw.what, action=f"{error}; {_FROM_BACKUP}")
    return Finding("truth", flaw.what, mended=True, action=how)


def _embedded(ports: Ports, care: Care, flaw: Flaw) -> Flow[Finding]:
    """Give what has no vector one. (A node or relation without ends is no text, and is left to `_relations`.)"""
    yield from check_embedder(ports)
    table: VectorTable = flaw.table  # type: ignore[assignment]
    texts = yield from do(care.texts, table, flaw.rows)
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        vectors = yield from embed_texts(ports, [text for _, text in batch])
        yield from do(care.set_vectors, table, [(row, vector) for (row, _), vector in zip(batch, vectors, strict=True)])
    return Finding("truth", flaw.what, mended=True, action=f"embedded {len(texts)} anew")


# --- relations removed by hand -----------------------------------------------------------------------------------


def _relations(ports: Ports, care: Care, mend: bool) -> Flow[list[Finding]]:
    lost: list[Lost] = yield from do(care.lost)
    found: list[Finding] = []
    for one in lost:
        found += [(yield from _regained(ports, care, one, mend))]
    if not lost and not (yield from do(care.merged)) and (yield from do(care.holes)):
        found += yield from _unsaid(ports, care, mend)
    return found


def _regained(ports: Ports, care: Care, lost: Lost, mend: bool) -> Flow[Finding]:
    """A relation of which something is left: its evidence says what it was, and its vector which."""
    named = yield from _named(ports, care, lost)
    what = f"relation {lost.row} was removed by hand"
    if named is None and (yield from do(care.merged)):
        return Finding("graph", f"{what}, and names were merged since", action=_FROM_BACKUP)
    if named is None:
        if mend:
            yield from do(care.give_up, lost)
        action = "no memory says any more what it was: removed what was left of it" if mend else _NOT_MENDED
        return Finding("graph", what, mended=mend, action=action)
    memory_id, relation = named
    what = f"{what}: {relation.triplet}"
    if mend:
        yield from do(care.regain, lost, memory_id, relation)
    return Finding("graph", what, mended=mend, action=f"put back as memory {memory_id} says it" if mend else "")


def _named(ports: Ports, care: Care, lost: Lost) -> Flow[tuple[str, RelationChange] | None]:
    """Which memory says it, and what: one of those known to, else any that rules can read."""
    for memory_id in lost.memories:
        item = yield from do(ports.store.get, memory_id)
        if item is not None and (relation := (yield from _said_so(ports, care, lost, item))) is not None:
            return memory_id, relation
    if lost.vector is not None and _by_rules(ports):
        for item in (yield from do(ports.store.find, None)):
            if (relation := (yield from _said_so(ports, care, lost, item))) is not None:
                return item.id, relation
    return None


def _said_so(ports: Ports, care: Care, lost: Lost, item: MemoryItem) -> Flow[RelationChange | None]:
    for relation in (yield from _said(ports, item)):
        if lost.vector is not None and float(relation.vectors[2] @ lost.vector) >= _SAME:
            return relation
        if lost.vector is None and not (yield from do(care.has_relation, item.scope, relation)):
            return relation
    return None


def _by_rules(ports: Ports) -> bool:
    return ports.graph is not None and ports.graph.chat is None


def _unsaid(ports: Ports, care: Care, mend: bool) -> Flow[list[Finding]]:
    """Relations that are gone without a trace: whatever memories say by the rules, and the graph has never had.

    Only where some are gone, and only by rules: a model would be asked for every memory, and might say something new.
    """
    if not _by_rules(ports) or ports.on_conflict == "delete":
        return []
    found = []
    for item in (yield from do(ports.store.find, None)):
        for relation in (yield from _said(ports, item)):
            if not (yield from do(care.has_relation, item.scope, relation)):
                what = f"a relation that memory {item.id} says was removed by hand: {relation.triplet}"
                if mend:
                    yield from do(care.regain, None, item.id, relation)
                found.append(Finding("graph", what, mended=mend, action="read from the memory again" if mend else ""))
    return found


def _said(ports: Ports, item: MemoryItem) -> Flow[list[RelationChange]]:
    """The relations that a memory states; none where no model can be asked."""
    try:
        changes = yield from stated(ports, item)
    except ModelError:
        return []
    return [change for change in changes if change.event is Event.ADD]


# --- projections -------------------------------------------------------------------------------------------------


def _projections(ports: Ports) -> Iterator[tuple[str, VectorTable, Any]]:
    """Each projection there is, with what it is a projection of."""
    yield f"vectors: {type(ports.index).__name__}", "memories", ports.index
    if ports.graph is not None:
        for table, part in getattr(ports.graph.embedded, "parts", {}).items():
            yield f"vectors of {table}: {type(part).__name__}", table, part
        if ports.graph.index is not ports.graph.embedded:
            yield f"graph: {ports.graph.index.name}", "edges", ports.graph.index


def _compared(care: Care, name: str, table: VectorTable, projection: Any, mend: bool) -> Flow[list[Finding]]:
    if not isinstance(projection, Examined):
        return [Finding(name, "it cannot be compared with the truth")]
    partitions, addresses = (yield from do(care.partitions, table)), (yield from do(care.addresses, table))
    try:
        unsound: list[Unsound] = yield from do(projection.examine, partitions, addresses)
        if unsound:  # others may have been writing between two reads: what is wrong is wrong at the second look too
            first = {(one.address, one.files) for one in unsound}
            again = yield from do(projection.examine, partitions, addresses)
            unsound = [one for one in again if (one.address, one.files) in first]
    except StoreError as error:
        return [Finding(name, f"cannot be reached: {error}", action="the next search catches up")]
    found = []
    for one in unsound:
        try:
            how = (yield from do(projection.renew, one)) if mend else _NOT_MENDED
            found.append(Finding(name, one.what, mended=mend, action=how))
        except StoreError as error:
            found.append(Finding(name, one.what, action=f"cannot be mended now: {error}"))
    return found
