"""Copy everything from one store to another: resumable, and verified by digests of both.

The source is frozen first: writes to it fail until it is released. Reads before and after a crash therefore see the
same state, and no later write is lost silently. Records are copied in chunks, each in one transaction with its
progress, so that an interrupted migration resumes after the last chunk. The target cannot be opened before all of its
content is compared with the source.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mem0_core._system.boundary import convert_errors, guard_hook
from mem0_core._system.files import DATABASE
from mem0_core._system.records import dataclass
from mem0_core.config import POSTGRES_SCHEMES, postgres_config
from mem0_core.domain.secrets import reveal
from mem0_core.errors import StoreError
from mem0_core.interfaces.archive import SECTIONS, Archive, LoadProgress, Record, RecordReader, Section, SectionCursor

if TYPE_CHECKING:
    from mem0_core.stores.postgres.store import PostgresStore
    from mem0_core.stores.sqlite.store import SQLiteStore

_CHUNK_RECORDS = 1_000
_JSON_COLUMNS = frozenset({"metadata", "options", "reasons", "taken"})
_DIGEST_MODULUS = 1 << 128

SectionProgress = Callable[[str, int], object]
"""Called with the name of a section and the number of copied records; then with "verify" and the number verified."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Digest of a set of records, independent of their order.

    Attributes:
        count: Number of records.
        value: 32 hex digits: the sum of the records' BLAKE2b hashes, modulo 2**128.
    """

    count: int
    value: str


@dataclass(frozen=True, slots=True)
class TransferResult:
    """Result of a migration.

    Attributes:
        loaded: Number of records that this run wrote, by section.
        digests: Digests of the target, equal to those of the source, by section and for "vectors".
        resumed: True if an earlier run had begun.
        already: True if an earlier run had finished; nothing is compared, since the target may have changed since.
    """

    loaded: Mapping[str, int]
    digests: Mapping[str, Digest]
    resumed: bool = False
    already: bool = False


@convert_errors
def migrate(
    source: Archive,
    target: Archive,
    *,
    release: bool = False,
    chunk: int = _CHUNK_RECORDS,
    on_progress: SectionProgress | None = None,
) -> TransferResult:
    """Copy all records of `source` to `target`, an empty store or the target of an interrupted migration from `source`.

    The source stays frozen afterwards, unless `release` is set. The target keeps its identity and begins a new epoch,
    so that its projections (FAISS, Neo4j, ...) are rebuilt.

    Args:
        chunk: Number of records per transaction.

    Raises:
        StoreError: The target contains other data, or is the source; a database failed; or the digests differ. The
            target is not usable then, and the records of the source are unchanged.
        InputError: The target's database cannot store a text of the source.
    """
    progress_before = _read_progress(source, target)
    seal = source.freeze()
    report = guard_hook("on_progress", on_progress) or (lambda section, count: None)
    if progress_before is not None and progress_before.done:
        if release:
            source.unfreeze()
        return TransferResult({}, {}, already=True)
    if progress_before is not None and progress_before.freeze_token != seal:
        raise StoreError(
            "the source was released after this migration had begun, so the copied records may be outdated; empty the"
            " target and start again"
        )
    loaded, found = _copy_and_verify(source, target, progress_before or _start_progress(source, seal), chunk, report)
    if release:
        source.unfreeze()
    return TransferResult(loaded, found, resumed=progress_before is not None)


def copy_store(
    source: RecordReader, target: Archive, *, chunk: int = _CHUNK_RECORDS, on_progress: SectionProgress | None = None
) -> TransferResult:
    """Copy an unchanging source (`Archive.snapshot`, a backup) to an empty store, without resuming.

    Raises:
        StoreError: The target is not empty, a database failed, or the digests differ. The target is not usable then.
        InputError: The target's database cannot store a text of the source.
    """
    if (section := target.first_nonempty_section()) is not None:
        raise StoreError(f"the target is not empty (it has {section})")
    return TransferResult(
        *_copy_and_verify(
            source, target, _start_progress(source, ""), chunk, on_progress or (lambda section, count: None)
        )
    )


@contextmanager
def open_archive(where: str, *, create: bool = False) -> Iterator[Archive]:
    """Open a store for a migration.

    Args:
        where: Data folder, SQLite file, or ``postgresql://host/database#mem0`` with the schema as fragment.
        create: Create a missing file, instead of raising a StoreError.
    """
    store = (
        _open_postgres(where) if where.startswith(POSTGRES_SCHEMES) else _open_sqlite(Path(where).expanduser(), create)
    )
    try:
        yield store.archive
    finally:
        store.close()


def _open_postgres(url: str) -> PostgresStore:
    from mem0_core.stores.postgres.store import PostgresStore

    return PostgresStore(**reveal(postgres_config(url).config), is_loading=True)


def _open_sqlite(path: Path, create: bool) -> SQLiteStore:
    from mem0_core.stores.sqlite.store import SQLiteStore

    file = path if path.suffix and not path.is_dir() else path / DATABASE
    if not create and not file.is_file():
        raise StoreError(f"there is no store at {path}: {file} is missing")
    return SQLiteStore(file, is_loading=True)


def compute_digests(
    archive: RecordReader, *, chunk: int = _CHUNK_RECORDS, on_progress: Callable[[int], object] | None = None
) -> dict[str, Digest]:
    """Return the digests of a store by section, and of the vectors of all sections as "vectors".

    Stores with equal content have equal digests in any database. Metadata is compared as JSON, so that the order of its
    keys and whitespace do not matter.
    """
    sums: dict[str, _DigestSum] = {section.name: _DigestSum() for section in SECTIONS} | {"vectors": _DigestSum()}
    records_read = 0
    for section in SECTIONS:
        for records, _ in _iter_chunks(archive, section, (), chunk):
            for record in records:
                plain, vector = _split_vector(section, record)
                sums[section.name].add(repr(plain).encode())
                if vector is not None:
                    sums["vectors"].add(f"{section.name} {record[0]} ".encode() + vector)
            records_read += len(records)
            if on_progress is not None:
                on_progress(records_read)
    return {name: Digest(found.count, f"{found.value:032x}") for name, found in sums.items()}


def describe_differences(one: Mapping[str, Digest], other: Mapping[str, Digest]) -> list[str]:
    """Return the differences of two stores: ``"history (12 and 11)"``, or ``"nodes (content)"`` for equal counts."""
    return [
        f"{name} ({one[name].count} and {other[name].count})"
        if one[name].count != other[name].count
        else f"{name} (content)"
        for name in one
        if one[name] != other[name]
    ]


def _read_progress(source: Archive, target: Archive) -> LoadProgress | None:
    """Return the progress of an earlier migration from `source`; None if the target is empty."""
    identity = source.store_metadata().identity
    if target.store_metadata().identity == identity:
        raise StoreError("source and target are the same store")
    if (unfinished := source.load_progress()) is not None and not unfinished.done:
        raise StoreError("the source is the target of an unfinished migration; finish that one first")
    section, progress = target.first_nonempty_section(), target.load_progress()
    if progress is not None and progress.done and section is None:
        progress = None  # it was emptied since
    if progress is None and section is not None:
        raise StoreError(f"the target is not empty (it has {section}); a migration needs an empty store")
    if progress is not None and progress.source_identity != identity:
        raise StoreError("the target was filled from another store; empty it, or migrate from that store")
    return progress


def _start_progress(source: RecordReader, seal: str) -> LoadProgress:
    return LoadProgress(source.store_metadata().identity, seal, SECTIONS[0].name)


def _copy_and_verify(
    source: RecordReader, target: Archive, progress: LoadProgress, chunk: int, report: SectionProgress
) -> tuple[dict[str, int], dict[str, Digest]]:
    """Copy the records after `progress`, compare everything, and open the target for use.

    Returns:
        The number of loaded records by section, and the digests of the target.

    Raises:
        StoreError: The digests differ.
    """
    label = source.store_metadata()
    if (progress.section, progress.after) == (SECTIONS[0].name, ()):
        target.load(SECTIONS[0], [], progress=progress)
    loaded = _copy_sections(source, target, progress, chunk, report)
    found = compute_digests(target, chunk=chunk, on_progress=lambda count: report("verify", count))
    if differing := describe_differences(compute_digests(source, chunk=chunk), found):
        raise StoreError(f"the copy differs from the source in {', '.join(differing)}; empty the target")
    target.finish_load(label, progress=dataclasses.replace(progress, section=SECTIONS[-1].name, after=(), done=True))
    return loaded, found


def _copy_sections(
    source: RecordReader, target: Archive, progress_before: LoadProgress, chunk: int, report: SectionProgress
) -> dict[str, int]:
    """Copy the records after `progress_before`; return their number by section."""
    names = [section.name for section in SECTIONS]
    loaded: dict[str, int] = {}
    if progress_before.section not in names:
        raise StoreError(
            f"another version began this migration (unknown section {progress_before.section!r}); empty the target"
        )
    for section in SECTIONS[names.index(progress_before.section) :]:
        after = progress_before.after if section.name == progress_before.section else ()
        loaded[section.name] = 0
        for records, reached in _iter_chunks(source, section, after, chunk):
            at = dataclasses.replace(progress_before, section=section.name, after=reached)
            target.load(section, records, progress=at)
            loaded[section.name] += len(records)
            report(section.name, sum(loaded.values()))
    return loaded


def _iter_chunks(
    archive: RecordReader, section: Section, after: SectionCursor, limit: int
) -> Iterator[tuple[Sequence[Record], SectionCursor]]:
    while True:
        records, after = archive.records(section, after=after, limit=limit)
        if not records:
            return
        yield records, after


class _DigestSum:
    """Accumulates the digest of a multiset, in any order."""

    def __init__(self) -> None:
        self.count = 0
        self.value = 0

    def add(self, content: bytes) -> None:
        self.count += 1
        self.value = (self.value + int.from_bytes(hashlib.blake2b(content, digest_size=16).digest())) % _DIGEST_MODULUS


def _split_vector(section: Section, record: Record) -> tuple[tuple[object, ...], bytes | None]:
    """Return the comparable values of a record, and its vector separately."""
    vector: bytes | None = None
    values: list[object] = []
    for column, value in zip(section.columns, record, strict=True):
        if column == "vector":
            vector = value
        elif column in _JSON_COLUMNS and isinstance(value, str) and value != "{}":
            values.append(json.dumps(json.loads(value), sort_keys=True, ensure_ascii=False))
        else:
            values.append(value)
    return tuple(values), vector
