"""Implementations of the commands: each takes the parsed options, and returns the result of a method."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

from mem0_core.admin import backup as backups
from mem0_core.admin import doctor as diagnosis
from mem0_core.admin import transfer
from mem0_core.api.factory import open_store
from mem0_core.cli._progress import ProgressBar
from mem0_core.cli._prompt import run_prompt
from mem0_core.config import MemoryConfig
from mem0_core.errors import InputError, StoreError
from mem0_core.interchange import (
    EXPORT_FORMAT,
    MEM0_V1_FORMAT,
    import_chats,
    import_export,
    import_mem0_v1,
    is_export_file,
    is_mem0_v1_folder,
)
from mem0_core.memory import Memory

__all__ = [
    "add",
    "ask",
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


def _scope_ids(options: Options) -> dict[str, Any]:
    return {"user_id": options.user, "agent_id": options.agent, "run_id": options.run}


def _build_progress_bar(label: str, options: Options) -> ProgressBar:
    return ProgressBar(label, enabled=options.progress)


def add(memory: Memory, options: Options) -> Any:
    return memory.add(options.text, **_scope_ids(options))


def search(memory: Memory, options: Options) -> Any:
    return memory.search(options.query, limit=options.limit, as_of=options.as_of, **_scope_ids(options))


def ask(memory: Memory, options: Options) -> Any:
    return memory.answer(options.question, as_of=options.as_of, **_scope_ids(options))


def list_all(memory: Memory, options: Options) -> Any:
    return memory.get_all(**_scope_ids(options))


def relations(memory: Memory, options: Options) -> Any:
    return memory.relations(as_of=options.as_of, ended=options.ended, **_scope_ids(options))


def path(memory: Memory, options: Options) -> Any:
    limits = {"limit": options.limit, "depth": options.depth}
    return memory.traverse(options.question, as_of=options.as_of, **limits, **_scope_ids(options))


def query(memory: Memory, options: Options) -> Any:
    parameters = dict(_parse_parameter(one) for one in options.parameter)
    return memory.query(options.text, as_of=options.as_of, parameters=parameters, **_scope_ids(options))


def _parse_parameter(text: str) -> tuple[str, Any]:
    """Return the name and the value of NAME=VALUE; a value that is not JSON is a text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--parameter takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def viz(memory: Memory, options: Options) -> Any:
    file = memory.visualize(options.out, entities=options.entities or None, depth=options.depth, **_scope_ids(options))
    return {"message": file}


def get(memory: Memory, options: Options) -> Any:
    return memory.get(options.memory_id)


def history(memory: Memory, options: Options) -> Any:
    return memory.history(options.memory_id)


def update(memory: Memory, options: Options) -> Any:
    return memory.update(options.memory_id, options.text)


def updateq(memory: Memory, options: Options) -> Any:
    limits = {"threshold": options.threshold, "limit": options.limit}
    return memory.update_by_query(options.query, options.text, dry_run=options.dry_run, **limits, **_scope_ids(options))


def delete(memory: Memory, options: Options) -> Any:
    """Delete one memory by its id, or the matches of a query."""
    if (options.memory_id is None) == (options.query is None):
        raise InputError("pass either a memory id or --query")
    if options.query is None:
        if options.dry_run:
            return memory.get(options.memory_id)
        return memory.delete(options.memory_id, purge=options.purge)
    limits = {"threshold": options.threshold, "limit": options.limit}
    return memory.delete_by_query(
        options.query, purge=options.purge, dry_run=options.dry_run, **limits, **_scope_ids(options)
    )


def merge(memory: Memory, options: Options) -> Any:
    named = {"names": options.name, "into": options.into, "threshold": options.threshold}
    return memory.merge(options.what, dry_run=not options.apply, **named, **_scope_ids(options))


def unmerge(memory: Memory, options: Options) -> Any:
    return memory.unmerge(options.merge_id)


def merges(memory: Memory, options: Options) -> Any:
    return memory.merges(**_scope_ids(options))


def pin(memory: Memory, options: Options) -> Any:
    memory.pin(options.memory_id, not options.off)
    return {"message": "unpinned" if options.off else "pinned"}


def pending(memory: Memory, options: Options) -> Any:
    return memory.pending(**_scope_ids(options))


def flush(memory: Memory, options: Options) -> Any:
    done = memory.flush(options.timeout)
    return {"message": "no queued jobs left" if done else f"not done within {options.timeout} seconds"}


def rebuild(memory: Memory, options: Options) -> Any:
    with _build_progress_bar("rebuild", options) as bar:
        return {"message": f"{memory.rebuild(on_progress=bar)} memories embedded again"}


def import_file(memory: Memory, options: Options) -> Any:
    file = Path(options.file)
    with _build_progress_bar("import", options) as bar:
        if options.format == MEM0_V1_FORMAT or (options.format is None and is_mem0_v1_folder(file)):
            named = {"history": options.history, "collection": options.collection}
            return import_mem0_v1(memory, file, **named, **_scope_ids(options), on_progress=bar)
        if options.format == EXPORT_FORMAT or (options.format is None and is_export_file(file)):
            return import_export(memory, file, on_progress=bar)
        return import_chats(
            memory,
            file,
            format=options.format,
            user_id=options.user,
            agent_id=options.agent,
            run_id=options.run,
            run_per_conversation=not options.no_runs,
            infer=options.infer,
            key=options.key,
            chunk=options.chunk,
            on_progress=bar,
        )


def export(memory: Memory, options: Options) -> Any:
    with _build_progress_bar("export", options) as bar:
        return memory.export(
            options.out, format=options.format, overwrite=options.force, on_progress=bar, **_scope_ids(options)
        )


def backup(memory: Memory, options: Options) -> Any:
    with _build_progress_bar("backup", options) as bar:
        return memory.backup(options.file, overwrite=options.force, on_progress=bar)


def migrate(config: MemoryConfig, options: Options) -> Any:
    if options.target is None:
        if not options.release:
            raise InputError("pass the target with --to, or --release to unfreeze the source")
        with transfer.open_archive(options.source) as source:
            source.unfreeze()
        return {"message": "the source accepts writes again"}
    with (
        transfer.open_archive(options.source) as source,
        transfer.open_archive(options.target, create=True) as target,
        _build_progress_bar("migrate", options) as bar,
    ):
        done = transfer.migrate(source, target, release=options.release, on_progress=lambda section, count: bar(count))
    return dataclasses.asdict(done)


def restore(config: MemoryConfig, options: Options) -> Any:
    file, overwrite = Path(options.file), options.force
    with _build_progress_bar("restore", options) as bar:
        if config.store_config is None:
            return backups.restore(file, config.database, overwrite=overwrite, on_progress=bar)
        with closing(open_store(config, is_loading=True)) as store:
            return backups.restore_into(file, store, overwrite=overwrite, on_progress=bar)


def schema(config: MemoryConfig, options: Options) -> Any:
    from mem0_core.stores.postgres.schema import TableLayout, grant_script, schema_script

    if options.partitions < 1:
        raise InputError(f"--partitions must be at least 1, not {options.partitions}")
    script = schema_script(options.schema, TableLayout(options.layout, options.partitions, options.halfvec))
    return {"message": script + (grant_script(options.schema, options.role) if options.role else "")}


def stats(memory: Memory, options: Options) -> Any:
    return memory.stats(**_scope_ids(options))


def doctor(config: MemoryConfig, options: Options) -> Any:
    """Check the log before opening the store, which would repair it silently; then check everything else."""
    if config.store_config is not None:
        with Memory(config) as memory, _build_progress_bar("doctor", options) as bar:
            return memory.doctor(repair=not options.check, on_progress=bar)
    if not config.database.exists():
        raise InputError(f"there is no store at {config.database}; pass its folder with --path")
    torn = diagnosis.find_log_damage(config.database)
    if torn is not None and options.check:
        return diagnosis.report_torn_log(torn).as_dict()
    try:
        memory = Memory(config)
    except StoreError as error:
        return diagnosis.report_unreadable_store(error).as_dict()
    with memory, _build_progress_bar("doctor", options) as bar:
        return memory.doctor(repair=not options.check, torn=torn, on_progress=bar)


def prompt(memory: Memory, options: Options) -> Any:
    """Run the interactive prompt; without ids, for $MEM0_USER or the login name."""
    from mem0_core.cli._arguments import build_parser

    ids = {"user": options.user, "agent": options.agent, "run": options.run}
    if not any(ids.values()):
        ids["user"] = os.environ.get("MEM0_USER") or getpass.getuser()
    common = ["--no-progress"] if options.progress is False else []
    parser = build_parser()
    return run_prompt(
        memory, lambda given: parser.parse_args([*common, *given]), ids, history=memory.config.folder / "prompt_history"
    )
