"""Erase everything of a subject, prove it, and sign a receipt.

An erasure is a job in the store of record. It begins with a record of counts and fingerprints, and ends with the
receipt that replaces the record in one transaction. Each step in between can run again, so an erasure that was
interrupted is resumed from its record: by the next call, or by the next process that opens the store.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mem0_core._system.records import dataclass
from mem0_core.admin._fingerprints import FingerprintBuilder, Fingerprints
from mem0_core.admin.copies import COPIES
from mem0_core.admin.replies import count_replies, erase_replies
from mem0_core.domain.erasure import (
    ALGORITHM,
    ERASURE,
    RECEIPT,
    RECEIPT_FORMAT,
    CopyDict,
    ErasureReceipt,
    ProbeDict,
    is_signed,
    sign,
    subject_digest,
)
from mem0_core.domain.records import LaggingProjection, Scope, new_id
from mem0_core.domain.spaces import find_space_name, member_source, space_scope
from mem0_core.domain.suggestions import describe_value
from mem0_core.domain.timestamps import utc_now
from mem0_core.errors import CapabilityError, InputError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest.relations import sync_projections
from mem0_core.interfaces.maintenance import ErasableProjection, RemoteProjection, StoreMaintenance

if TYPE_CHECKING:
    from mem0_core.interfaces import MemoryStore, Ports

_log = logging.getLogger(__name__)

_KEY = "receipts"
_MAX_REASON_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class _Erasure:
    """The record of an erasure that has begun."""

    id: str
    scope: Scope
    reason: str
    started_at: str
    attempts: int
    erased: dict[str, int]
    unsearchable: int
    fingerprints: Fingerprints

    def to_record(self) -> dict[str, Any]:
        return {
            "ids": {axis.value: value for axis, value in self.scope.ids.items()},
            "reason": self.reason,
            "started_at": self.started_at,
            "attempts": self.attempts,
            "erased": self.erased,
            "unsearchable": self.unsearchable,
            "fingerprints": self.fingerprints.to_record(),
        }

    @classmethod
    def from_record(cls, erasure_id: str, record: Mapping[str, Any]) -> _Erasure:
        values = dict(record)
        scope, fingerprints = (
            Scope.from_stored(**values.pop("ids")),
            Fingerprints.from_record(values.pop("fingerprints")),
        )
        return cls(id=erasure_id, scope=scope, fingerprints=fingerprints, **values)


@dataclass(slots=True)
class _Findings:
    """Results of the probes.

    Attributes:
        shared: digests of fingerprints that data of others contains.
    """

    probes: list[ProbeDict] = field(default_factory=list)
    shared: set[bytes] = field(default_factory=set)

    def add(self, where: str, searched: int, found: int) -> None:
        self.probes.append(ProbeDict(where=where, searched=searched, found=found))


# --- the job -----------------------------------------------------------------------------------------------------


def erase_subject(
    ports: Ports, scope: Scope, *, reason: str, folder: Path, files: Iterable[Path]
) -> Flow[ErasureReceipt]:
    """Erase everything in a scope and in all narrower ones, and return the signed receipt.

    An earlier erasure of the same scope that did not finish is resumed.

    Args:
        folder: data folder, in which a server keeps its replies.
        files: files and folders of the store that may contain residue.

    Raises:
        InputError: the reason is not a text, is too long, or quotes the erased data.
        StoreError: the store or a projection failed; the erasure stays on record and is resumed.
    """
    _check_reason(reason)
    maintenance = ports.store.maintenance
    begun = yield from do(_load_erasures, maintenance)
    erasure = next((one for one in begun if one.scope == scope), None)
    if erasure is None:
        erasure = yield from do(_begin, maintenance, scope, reason)
    try:
        return (yield from _finish(ports, erasure, folder, list(files)))
    except StoreError as error:
        raise StoreError(
            f"the erasure was begun, and is not finished: {error.__cause__ or error}; repeat the call to finish it, or"
            " open the store again"
        ) from error


def resume_erasures(ports: Ports, *, folder: Path, files: Iterable[Path]) -> Flow[int]:
    """Finish the erasures that were interrupted; return their number."""
    erasures = yield from do(_load_erasures, ports.store.maintenance)
    listed = list(files)
    for erasure in erasures:
        yield from _finish(ports, erasure, folder, listed)
    return len(erasures)


def resume_rows(store: MemoryStore) -> bool:
    """Erase the rows of interrupted erasures; return True if there are such erasures.

    It runs when a store is opened, before anything is read. `resume_erasures` does the rest.
    """
    erasures = _load_erasures(store.maintenance)
    for erasure in erasures:
        _erase_rows(store, erasure.scope)
    return bool(erasures)


def _erase_rows(store: MemoryStore, scope: Scope) -> None:
    """Erase the rows of a scope; of a user also the memberships, and what they wrote to spaces."""
    store.erase_scope(scope, at=utc_now(), purge=True)
    if scope.user_id is None or len(scope.ids) > 1 or find_space_name(scope) is not None:
        return
    try:
        forgotten = store.spaces.forget_member(scope.user_id)
    except CapabilityError:  # a store without spaces
        return
    if forgotten.has_messages:
        store.retract(member_source(scope.user_id), None, at=utc_now(), purge=True)
    for space in forgotten.empty_spaces:
        store.erase_scope(space_scope(space), at=utc_now(), purge=True)


def _load_erasures(maintenance: StoreMaintenance) -> list[_Erasure]:
    return [_Erasure.from_record(one, record) for one, record in maintenance.registry(ERASURE).items()]


def _begin(maintenance: StoreMaintenance, scope: Scope, reason: str) -> _Erasure:
    """Count and fingerprint the data of a scope, and record the erasure."""
    counts = maintenance.count_scope(scope)
    builder = FingerprintBuilder()
    for table in maintenance.content_tables:
        builder.add_all(maintenance.iter_contents(table, scope))
    fingerprints = builder.build()
    if fingerprints.find(reason.encode(errors="surrogatepass")):
        raise InputError("reason quotes the data to be erased; name a request or a rule instead")
    erased = {table: count for table, count in counts.items() if count}
    erasure = _Erasure(new_id(), scope, reason, utc_now(), 0, erased, builder.unsearchable, fingerprints)
    maintenance.register(ERASURE, erasure.id, erasure.to_record())
    return erasure


def _finish(ports: Ports, erasure: _Erasure, folder: Path, files: list[Path]) -> Flow[ErasureReceipt]:
    """Erase, search, and replace the record by the receipt."""
    yield from do(_erase_rows, ports.store, erasure.scope)
    yield from _erase_projections(ports)
    ports.forget(None)
    replies = yield from do(erase_replies, folder, erasure.scope)
    findings = _Findings()
    findings.add("replies of a server", replies, (yield from do(count_replies, folder, erasure.scope)))
    yield from do(_probe_tables, ports.store.maintenance, erasure, findings)
    yield from _probe_projections(ports, erasure, findings)
    yield from do(_probe_files, _iter_files(ports, files), erasure, findings)
    servers = [one.location for _, one in _projections(ports) if isinstance(one, RemoteProjection)]
    return (yield from do(_close, ports.store, erasure, findings, servers))


def _close(store: MemoryStore, erasure: _Erasure, findings: _Findings, servers: Sequence[str]) -> ErasureReceipt:
    """Sign the receipt and put it in the place of the record."""
    maintenance = store.maintenance
    key = maintenance.secret(_KEY)
    receipt = ErasureReceipt(
        format=RECEIPT_FORMAT,
        id=erasure.id,
        store=store.archive.store_metadata().identity,
        subject={axis.value: subject_digest(axis.value, value, key) for axis, value in erasure.scope.ids.items()},
        reason=erasure.reason,
        started_at=erasure.started_at,
        finished_at=utc_now(),
        attempts=erasure.attempts + 1,
        erased=erasure.erased,
        fingerprints=len(erasure.fingerprints),
        unsearchable=erasure.unsearchable,
        shared=len(findings.shared),
        probes=findings.probes,
        complete=all(not probe["found"] for probe in findings.probes),
        out_of_reach=_list_copies(maintenance, erasure.started_at, servers),
        algorithm=ALGORITHM,
        signature="",
    )
    receipt["signature"] = sign(receipt, key)
    if not maintenance.register(RECEIPT, erasure.id, receipt, replaces=ERASURE):
        return cast(ErasureReceipt, maintenance.registry(RECEIPT)[erasure.id])  # another process was faster
    maintenance.scrub()  # of the record, which names the subject
    if not receipt["complete"]:
        _log.warning("the erasure %s left residue; see the probes of its receipt", erasure.id)
    return receipt


def _list_copies(maintenance: StoreMaintenance, until: str, servers: Sequence[str]) -> list[CopyDict]:
    """Return the registered copies, and the pages and logs of the servers of the store and of its projections."""
    copies = [
        CopyDict(kind=kind, id=entry_id, path=str(entry["path"]), at=str(entry["at"]))
        for kind in COPIES
        for entry_id, entry in maintenance.registry(kind).items()
        if entry["at"] <= until
    ]
    own = [str(maintenance.disk_usage()["path"])] if maintenance.file is None else []
    return copies + [  # free space of pages; the log, its archives and replicas
        CopyDict(kind=kind, id=server, path=server, at=until)
        for server in (*own, *servers)
        for kind in ("server pages", "server log")
    ]


# --- receipts ----------------------------------------------------------------------------------------------------


def list_receipts(maintenance: StoreMaintenance) -> list[ErasureReceipt]:
    """Return all receipts of a store, oldest first."""
    receipts = [cast(ErasureReceipt, receipt) for receipt in maintenance.registry(RECEIPT).values()]
    return sorted(receipts, key=lambda receipt: receipt["finished_at"])


def verify_receipt(maintenance: StoreMaintenance, receipt: Mapping[str, Any], ids: Mapping[str, str]) -> bool:
    """Return True if this store signed a receipt, nothing in it was changed, and it is about the subject `ids`."""
    key = maintenance.secret(_KEY)
    expected = {axis: subject_digest(axis, value, key) for axis, value in ids.items()}
    return is_signed(receipt, key) and (not ids or receipt.get("subject") == expected)


# --- projections -------------------------------------------------------------------------------------------------


def _projections(ports: Ports) -> Iterator[tuple[str, Any]]:
    yield type(ports.index).__name__, ports.index
    if ports.graph is not None:
        yield "embedded graph", ports.graph.embedded_index
        if ports.graph.index is not ports.graph.embedded_index:
            yield ports.graph.index.name, ports.graph.index


def _erase_projections(ports: Ports) -> Flow[None]:
    """Make every projection follow, and drop its data in memory and in files."""
    for name, projection in _projections(ports):
        if isinstance(projection, ErasableProjection):
            yield from do(projection.discard)
        yield from do(projection.purge_deleted, None)
        _log.debug("erased from %s", name)
    pending: tuple[LaggingProjection, ...] = yield from sync_projections(ports)
    if pending:
        reasons = "; ".join(f"{one['store']}: {one['reason']}" for one in pending)
        raise StoreError(f"a projection cannot follow ({reasons}); the erasure will be resumed")


def _probe_projections(ports: Ports, erasure: _Erasure, findings: _Findings) -> Flow[None]:
    """Ask every projection for entries of the subject."""
    import numpy as np

    addresses = [Scope(**{axis.value: value}) for axis, value in erasure.scope.ids.items()]
    queries = np.eye(1, ports.embedder.dims, dtype=np.float32)
    for name, projection in _projections(ports):
        found = 0
        if hasattr(projection, "nearest"):
            nearest = yield from do(projection.nearest, erasure.scope, queries, 1)
            found += sum(map(len, nearest))
        if hasattr(projection, "relations"):
            relations = yield from do(projection.relations, erasure.scope)
            found += len(relations)
        if hasattr(projection, "find_mismatches"):
            mismatches = yield from do(projection.find_mismatches, addresses, addresses)
            found += sum(one.address is None or one.address in addresses for one in mismatches if not one.files)
        findings.add(f"projection {name}", len(addresses), found)


# --- tables and files --------------------------------------------------------------------------------------------


def _probe_tables(maintenance: StoreMaintenance, erasure: _Erasure, findings: _Findings) -> None:
    """Count the rows of the subject, and find the fingerprints that data of others has too."""
    for table, count in maintenance.count_scope(erasure.scope).items():
        findings.add(f"table {table}", erasure.erased.get(table, 0), count)
    for table in maintenance.content_tables:
        for batch in _batches(maintenance.iter_contents(table, None)):
            findings.shared |= erasure.fingerprints.find(batch)


def _batches(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join many short parts: a search has a fixed cost."""
    joined = bytearray()
    for part in parts:
        joined += part + _GAP
        if len(joined) > _BATCH_BYTES:
            yield bytes(joined)
            joined.clear()
    if joined:
        yield bytes(joined)


_GAP = bytes(32)  # longer than a window, and too uniform to be one
_BATCH_BYTES = 1 << 20


def _iter_files(ports: Ports, given: Iterable[Path]) -> list[Path]:
    """Return all files that may contain residue, each once."""
    listed = dict.fromkeys(file for path in given for file in (path.rglob("*") if path.is_dir() else (path,)))
    for _, projection in _projections(ports):
        if isinstance(projection, ErasableProjection):
            listed |= dict.fromkeys(projection.files())
    return sorted({path.resolve() for path in listed if path.is_file()})


def _probe_files(files: Iterable[Path], erasure: _Erasure, findings: _Findings) -> None:
    """Search files for fingerprints of the erased data that no other data has.

    The store's own record of the erasure contains hashes only, so it does not find itself.
    """
    for path in files:
        try:
            found = erasure.fingerprints.find_in_file(path) - findings.shared
            findings.add(f"file {path.name}", path.stat().st_size, len(found))
        except FileNotFoundError:
            continue  # a temporary file of another process
        except OSError as error:
            raise StoreError(f"cannot search {path} for residue: {error}") from error


def _check_reason(reason: object) -> None:
    if not isinstance(reason, str) or not reason.strip():
        raise InputError(
            f"reason must be a non-empty string, not {describe_value(reason)}; pass, for example, reason='request 17'"
        )
    if len(reason) > _MAX_REASON_CHARS:
        raise InputError(f"reason has {len(reason)} characters; at most {_MAX_REASON_CHARS} are accepted")
