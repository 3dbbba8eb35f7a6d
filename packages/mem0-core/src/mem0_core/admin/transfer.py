"""Moving everything from one store to another: resumable, and verified by digests taken of both.

The source is frozen first: whoever writes to it is refused, until it is released. So what was read before a crash and
what is read after it are of one moment, and nothing written meanwhile is lost without a word. Records go over in
chunks, each with the mark of how far that is in the same transaction; a migration that was killed goes on behind the
last one. The target cannot be opened before everything in it is compared with the source.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mem0_core._files import DATABASE
from mem0_core.config import POSTGRES_SCHEMES, postgres_config
from mem0_core.errors import StoreError
from mem0_core.interfaces.archive import SECTIONS, Archive, LoadProgress, Record, RecordReader, Section, SectionCursor

if TYPE_CHECKING:
    from mem0_core.stores.postgres.store import PostgresStore
    from mem0_core.stores.sqlite.store import SQLiteStore

__all__ = [
    "Digest",
    "TransferResult",
    "compute_digests",
    "copy_store",
    "describe_differences",
    "migrate",
    "open_archive",
]

_CHUNK_RECORDS = 1_000
_JSON_COLUMNS = frozenset({"metadata", "options", "reasons", "taken"})
_DIGEST_MODULUS = 1 << 128

SectionProgress = Callable[[str, int], object]
"""Told the name of a section and how many records are copied in all; then "verify", and how many are read again."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What some records come to, in whatever order they are read.

    Attributes:
        count: how many there are.
        value: 32 hex digits: the sum of the records' BLAKE2b hashes, modulo 2**128.
    """

    count: int
    value: str


@dataclass(frozen=True, slots=True)
class TransferResult:
    """What a migration did.

    Attributes:
        loaded: records written by this run, by section; a run that was resumed does not count those before it.
        digests: of the target, equal to those of the source: by section, and for "vectors".
        resumed: an earlier run had begun.
        already: an earlier run had come to its end; nothing was compared, for the target may have moved on.
    """

    loaded: Mapping[str, int]
    digests: Mapping[str, Digest]
    resumed: bool = False
    already: bool = False


def migrate(
    source: Archive,
    target: Archive,
    *,
    release: bool = False,
    chunk: int = _CHUNK_RECORDS,
    on_progress: SectionProgress | None = None,
) -> TransferResult:
    """Copy everything `source` holds to `target`, an empty store or one that a migration from here was killed in.

    The source stays as it is, but for this: nothing can be written to it any more, unless with `release`, at the end.
    The target keeps its identity and begins a new epoch, so that projections of it (FAISS, Neo4j, ...) are built anew.

    Args:
        chunk: records of one transaction.

    Raises:
        StoreError: the target holds something else, or half of another migration; it is the source; a database failed;
            the digests differ. The target is then not usable, and what is in the source is untouched.
        InputError: the target's database cannot hold a text of the source's.
    """
    progress_before = _read_progress(source, target)
    seal = source.freeze()
    report = on_progress or (lambda section, count: None)
    if progress_before is not None and progress_before.done:
        if release:
            source.unfreeze()
        return TransferResult({}, {}, already=True)
    if progress_before is not None and progress_before.freeze_token != seal:
        raise StoreError(
            "the source was released after this migration had begun, so what was copied may be outdated; empty the"
            " target and begin again"
        )
    loaded, found = _copy_and_verify(source, target, progress_before or _start_progress(source, seal), chunk, report)
    if release:
        source.unfreeze()
    return TransferResult(loaded, found, resumed=progress_before is not None)


def copy_store(
    source: RecordReader, target: Archive, *, chunk: int = _CHUNK_RECORDS, on_progress: SectionProgress | None = None
) -> TransferResult:
    """`migrate` from what stands still by itself (`Archive.snapshot`, a backup) to an empty store, in one go.

    Raises:
        StoreError: the target is not empty, a database failed, or the digests differ. The target is then not usable.
        InputError: the target's database cannot hold a text of the source's.
    """
    if (held := target.first_nonempty_section()) is not None:
        raise StoreError(f"the target is not empty (it has {held})")
    return TransferResult(
        *_copy_and_verify(
            source, target, _start_progress(source, ""), chunk, on_progress or (lambda section, count: None)
        )
    )


@contextmanager
def open_archive(where: str, *, create: bool = False) -> Iterator[Archive]:
    """The store at a place, to be migrated.

    Args:
        where: a folder of data, a SQLite file, or ``postgresql://...``, whose fragment names the schema
            (``postgresql://host/database#mem0``).
        make: whether a file that is not there is made; else it is a StoreError.
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

    return PostgresStore(**postgres_config(url).config, is_loading=True)


def _open_sqlite(path: Path, create: bool) -> SQLiteStore:
    from mem0_core.stores.sqlite.store import SQLiteStore

    file = path if path.suffix and not path.is_dir() else path / DATABASE
    if not create and not file.is_file():
        raise StoreError(f"there is no store at {path}: {file} is missing")
    return SQLiteStore(file, is_loading=True)


def compute_digests(
    archive: RecordReader, *, chunk: int = _CHUNK_RECORDS, on_progress: Callable[[int], object] | None = None
) -> dict[str, Digest]:
    """What everything in a store comes to, by section; "vectors" are those of all sections, and in no other digest.

    Two stores that hold the same have the same digests, in whatever database. Metadata is compared as JSON, so that
    neither the order of its keys nor spaces in it matter.
    """
    sums: dict[str, _DigestSum] = {section.name: _DigestSum() for section in SECTIONS} | {"vectors": _DigestSum()}
    seen = 0
    for section in SECTIONS:
        for records, _ in _iter_chunks(archive, section, (), chunk):
            for record in records:
                plain, vector = _split_vector(section, record)
                sums[section.name].add(repr(plain).encode())
                if vector is not None:
                    sums["vectors"].add(f"{section.name} {record[0]} ".encode() + vector)
            seen += len(records)
            if on_progress is not None:
                on_progress(seen)
    return {name: Digest(found.count, f"{found.value:032x}") for name, found in sums.items()}


def describe_differences(one: Mapping[str, Digest], other: Mapping[str, Digest]) -> list[str]:
    """In what two stores differ: ``"history (12 and 11)"``, or ``"nodes (content)"`` where only counts are equal."""
    return [
        f"{name} ({one[name].count} and {other[name].count})"
        if one[name].count != other[name].count
        else f"{name} (content)"
        for name in one
        if one[name] != other[name]
    ]


def _read_progress(source: Archive, target: Archive) -> LoadProgress | None:
    """How far an earlier migration from here came, None where the target is empty."""
    identity = source.store_metadata().identity
    if target.store_metadata().identity == identity:
        raise StoreError("source and target are the same store")
    if (unfinished := source.load_progress()) is not None and not unfinished.done:
        raise StoreError("the source is itself half filled by a migration; finish that one first")
    held, progress = target.first_nonempty_section(), target.load_progress()
    if progress is not None and progress.done and held is None:
        progress = None  # it was emptied since
    if progress is None and held is not None:
        raise StoreError(f"the target is not empty (it has {held}); a migration needs a store of its own")
    if progress is not None and progress.source_identity != identity:
        raise StoreError("the target was filled from another store; empty it, or go on from there")
    return progress


def _start_progress(source: RecordReader, seal: str) -> LoadProgress:
    return LoadProgress(source.store_metadata().identity, seal, SECTIONS[0].name)


def _copy_and_verify(
    source: RecordReader, target: Archive, progress: LoadProgress, chunk: int, report: SectionProgress
) -> tuple[dict[str, int], dict[str, Digest]]:
    """Copy what comes behind `progress`, compare all, and let the target serve; how much was loaded, and what is there.

    Raises:
        StoreError: they differ.
    """
    label = source.store_metadata()
    loaded = _copy_sections(source, target, progress, chunk, report)
    found = compute_digests(target, chunk=chunk, on_progress=lambda count: report("verify", count))
    if differing := describe_differences(compute_digests(source, chunk=chunk), found):
        raise StoreError(f"what was copied differs from the source in {', '.join(differing)}; empty the target")
    target.finish_load(label, progress=dataclasses.replace(progress, section=SECTIONS[-1].name, after=(), done=True))
    return loaded, found


def _copy_sections(
    source: RecordReader, target: Archive, progress_before: LoadProgress, chunk: int, report: SectionProgress
) -> dict[str, int]:
    """Copy what comes behind `progress_before`; returns how many records, by section."""
    names = [section.name for section in SECTIONS]
    loaded: dict[str, int] = {}
    if progress_before.section not in names:
        raise StoreError(
            f"the target was being filled by another version, which knew {progress_before.section!r}; empty it"
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
    """The digest of a multiset: it does not depend on the order, and adds up."""

    def __init__(self) -> None:
        self.count = 0
        self.value = 0

    def add(self, content: bytes) -> None:
        self.count += 1
        self.value = (self.value + int.from_bytes(hashlib.blake2b(content, digest_size=16).digest())) % _DIGEST_MODULUS


def _split_vector(section: Section, record: Record) -> tuple[tuple[object, ...], bytes | None]:
    """A record's values as they are compared, and its vector apart."""
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
