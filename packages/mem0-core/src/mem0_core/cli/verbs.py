"""What each command does: from the options it was called with to what its verb returned."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import os
from contextlib import closing
from pathlib import Path
from typing import Any

from mem0_core import migration
from mem0_core.cli.progress import Bar
from mem0_core.cli.prompt import converse
from mem0_core.config import MemoryConfig
from mem0_core.errors import InputError, StoreError
from mem0_core.interchange import exporting, mem0_v1
from mem0_core.interchange.importing import import_chats, import_export, import_mem0_v1
from mem0_core.memory import Memory
from mem0_core.operations import backup as copies
from mem0_core.operations import doctor as diagnosis
from mem0_core.wiring import open_store

__all__ = [
    "add",
    "backup",
    "delete",
    "doctor",
    "export",
    "flush",
    "get",
    "history",
    "import_file",
    "list_all",
    "merge",
    "merges",
    "migrate",
    "path",
    "pending",
    "pin",
    "prompt",
    "query",
    "rebuild",
    "relations",
    "restore",
    "schema",
    "search",
    "stats",
    "unmerge",
    "update",
    "updateq",
    "viz",
]

Options = argparse.Namespace


def _scope(options: Options) -> dict[str, Any]:
    return {"user_id": options.user, "agent_id": options.agent, "run_id": options.run}


def _bar(label: str, options: Options) -> Bar:
    return Bar(label, shown=options.progress)


def add(memory: Memory, options: Options) -> Any:
    return memory.add(options.text, **_scope(options))


def search(memory: Memory, options: Options) -> Any:
    return memory.search(options.query, limit=options.limit, as_of=options.as_of, **_scope(options))


def list_all(memory: Memory, options: Options) -> Any:
    return memory.get_all(**_scope(options))


def relations(memory: Memory, options: Options) -> Any:
    return memory.relations(as_of=options.as_of, ended=options.ended, **_scope(options))


def path(memory: Memory, options: Options) -> Any:
    limits = {"limit": options.limit, "depth": options.depth}
    return memory.traverse(options.question, as_of=options.as_of, **limits, **_scope(options))


def query(memory: Memory, options: Options) -> Any:
    return memory.query(options.text, as_of=options.as_of, **_scope(options))


def viz(memory: Memory, options: Options) -> Any:
    file = memory.visualize(options.out, entities=options.entities or None, depth=options.depth, **_scope(options))
    return {"message": file}


def get(memory: Memory, options: Options) -> Any:
    return memory.get(options.memory_id)


def history(memory: Memory, options: Options) -> Any:
    return memory.history(options.memory_id)


def update(memory: Memory, options: Options) -> Any:
    return memory.update(options.memory_id, options.text)


def updateq(memory: Memory, options: Options) -> Any:
    limits = {"threshold": options.threshold, "limit": options.limit}
    return memory.update_by_query(options.query, options.text, dry_run=options.dry_run, **limits, **_scope(options))


def delete(memory: Memory, options: Options) -> Any:
    """One memory by its id, or those that a query finds."""
    if (options.memory_id is None) == (options.query is None):
        raise InputError("name a memory by its id, or several by --query")
    if options.query is None:
        if options.dry_run:
            return memory.get(options.memory_id)
        return memory.delete(options.memory_id, purge=options.purge)
    limits = {"threshold": options.threshold, "limit": options.limit}
    return memory.delete_by_query(
        options.query, purge=options.purge, dry_run=options.dry_run, **limits, **_scope(options)
    )


def merge(memory: Memory, options: Options) -> Any:
    named = {"names": options.name, "into": options.into, "threshold": options.threshold}
    return memory.merge(options.what, dry_run=not options.apply, **named, **_scope(options))


def unmerge(memory: Memory, options: Options) -> Any:
    return memory.unmerge(options.merge_id)


def merges(memory: Memory, options: Options) -> Any:
    return memory.merges(**_scope(options))


def pin(memory: Memory, options: Options) -> Any:
    memory.pin(options.memory_id, not options.off)
    return {"message": "let go" if options.off else "pinned"}


def pending(memory: Memory, options: Options) -> Any:
    return memory.pending(**_scope(options))


def flush(memory: Memory, options: Options) -> Any:
    done = memory.flush(options.timeout)
    return {"message": "nothing is left to do" if done else f"not done within {options.timeout} seconds"}


def rebuild(memory: Memory, options: Options) -> Any:
    with _bar("rebuild", options) as bar:
        return {"message": f"{memory.rebuild(on_progress=bar)} memories embedded anew"}


def import_file(memory: Memory, options: Options) -> Any:
    file = Path(options.file)
    with _bar("import", options) as bar:
        if options.format == mem0_v1.FORMAT or (options.format is None and mem0_v1.looks_like_one(file)):
            named = {"history": options.history, "collection": options.collection}
            return import_mem0_v1(memory, file, **named, **_scope(options), on_progress=bar)
        if options.format == exporting.FORMAT or (options.format is None and exporting.is_export(file)):
            return import_export(memory, file, on_progress=bar)
        return import_chats(
            memory,
            file,
            format=options.format,
            user_id=options.user,
            agent_id=options.agent,
            run_id=options.run,
            runs=not options.no_runs,
            infer=options.infer,
            key=options.key,
            chunk=options.chunk,
            on_progress=bar,
        )


def export(memory: Memory, options: Options) -> Any:
    with _bar("export", options) as bar:
        return memory.export(
            options.out, format=options.format, overwrite=options.force, on_progress=bar, **_scope(options)
        )


def backup(memory: Memory, options: Options) -> Any:
    with _bar("backup", options) as bar:
        return memory.backup(options.file, overwrite=options.force, on_progress=bar)


def migrate(config: MemoryConfig, options: Options) -> Any:
    if options.target is None:
        if not options.release:
            raise InputError("say where to with --to, or --release the source")
        with migration.opened(options.source) as source:
            source.thaw()
        return {"message": "the source may be written again"}
    with (
        migration.opened(options.source) as source,
        migration.opened(options.target, make=True) as target,
        _bar("migrate", options) as bar,
    ):
        done = migration.migrate(source, target, release=options.release, watch=lambda section, count: bar(count))
    return dataclasses.asdict(done)


def restore(config: MemoryConfig, options: Options) -> Any:
    file, overwrite = Path(options.file), options.force
    with _bar("restore", options) as bar:
        if config.truth is None:
            return copies.restore(file, config.database, overwrite=overwrite, on_progress=bar)
        with closing(open_store(config, filling=True)) as store:
            return copies.restore_into(file, store, overwrite=overwrite, on_progress=bar)


def schema(config: MemoryConfig, options: Options) -> Any:
    from mem0_core.stores.postgres_schema import Shape, privileges, script

    if options.partitions < 1:
        raise InputError(f"--partitions: at least 1, not {options.partitions}")
    made = script(options.schema, Shape(options.layout, options.partitions, options.halfvec))
    return {"message": made + (privileges(options.schema, options.role) if options.role else "")}


def stats(memory: Memory, options: Options) -> Any:
    return memory.stats(**_scope(options))


def doctor(config: MemoryConfig, options: Options) -> Any:
    """Look at the log before the store is opened, which would mend it without a word; then at everything else."""
    if config.truth is not None:
        with Memory(config) as memory, _bar("doctor", options) as bar:
            return memory.doctor(mend=not options.check, on_progress=bar)
    if not config.database.exists():
        raise InputError(f"there is no store at {config.database}")
    torn = diagnosis.torn_log(config.database)
    if torn is not None and options.check:
        return diagnosis.torn(torn).as_dict()
    try:
        memory = Memory(config)
    except StoreError as error:
        return diagnosis.damaged(error).as_dict()
    with memory, _bar("doctor", options) as bar:
        return memory.doctor(mend=not options.check, torn=torn, on_progress=bar)


def prompt(memory: Memory, options: Options) -> Any:
    """Converse. Whose memory it is, if nobody says so: that of who is logged in."""
    from mem0_core.cli.arguments import parser

    ids = {"user": options.user, "agent": options.agent, "run": options.run}
    if not any(ids.values()):
        ids["user"] = os.environ.get("MEM0_USER") or getpass.getuser()
    common = ["--no-progress"] if options.progress is False else []
    read = parser()
    return converse(
        memory, lambda given: read.parse_args([*common, *given]), ids, history=memory.config.folder / "prompt_history"
    )
