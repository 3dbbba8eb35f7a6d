"""Implementations of the commands: each takes the parsed options, and returns the result of a method.

Modules that few commands need are imported by these commands, so that a search starts fast.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core._system.files import mem0_home
from mem0_core.cli._errors import NothingToDrawError, UsageError
from mem0_core.cli._ids import resolve_memory_id, resolve_merge_id
from mem0_core.cli._output import pluralize
from mem0_core.cli._progress import ProgressBar
from mem0_core.config import MemoryConfig
from mem0_core.errors import InputError, NotFoundError, ScopeError, StoreError

if TYPE_CHECKING:
    from mem0_core.evaluation import EvaluationPlan
    from mem0_core.memory import Memory

Options = argparse.Namespace


def _given_ids(options: Options) -> dict[str, Any]:
    """Return the ids on the command line, for commands that cover the whole store without any."""
    return {"user_id": options.user, "agent_id": options.agent, "run_id": options.run}


def _scope_ids(options: Options) -> dict[str, Any]:
    """Return the ids on the command line; without any, the user in $MEM0_USER.

    Raises:
        ScopeError: There is none.
    """
    ids = _given_ids(options)
    if any(value is not None for value in ids.values()):
        return ids
    if options.is_prompt:
        raise ScopeError("no memory is named: @user NAME sets its user")
    if not os.environ.get("MEM0_USER"):
        raise ScopeError(
            "no memory is named: add --user NAME (or --agent, --run), or set the environment variable MEM0_USER"
        )
    ids["user_id"] = os.environ["MEM0_USER"]
    return ids


def _build_progress_bar(label: str, options: Options) -> ProgressBar:
    return ProgressBar(label, enabled=options.progress)


def add(memory: Memory, options: Options) -> Any:
    origin = {"source": options.source, "trust": options.trust}
    return memory.add(options.text, timestamp=options.at, **origin, **_scope_ids(options))


def search(memory: Memory, options: Options) -> Any:
    limits = {"limit": options.limit, "min_trust": options.min_trust}
    return memory.search(options.query, as_of=options.as_of, **limits, **_scope_ids(options))


def answer(memory: Memory, options: Options) -> Any:
    return memory.answer(options.question, as_of=options.as_of, min_trust=options.min_trust, **_scope_ids(options))


def context(memory: Memory, options: Options) -> Any:
    ids = {"min_trust": options.min_trust, **_scope_ids(options)}
    return memory.context(options.query, max_tokens=options.max_tokens, as_of=options.as_of, **ids)


def explain_missing(memory: Memory, options: Options) -> Any:
    ids = {"min_trust": options.min_trust, **_scope_ids(options)}
    memory_id = resolve_memory_id(memory, options.memory_id)  # of any scope: `other_scope` is one of the reasons
    return memory.explain_missing(options.query, memory_id, limit=options.limit, as_of=options.as_of, **ids)


def get_all(memory: Memory, options: Options) -> Any:
    return memory.get_all(limit=options.limit, min_trust=options.min_trust, **_scope_ids(options))


def relations(memory: Memory, options: Options) -> Any:
    return memory.relations(as_of=options.as_of, ended=options.ended, **_scope_ids(options))


def traverse(memory: Memory, options: Options) -> Any:
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


def visualize(memory: Memory, options: Options) -> Any:
    ids = _scope_ids(options)
    if not memory.relations(limit=1, ended=True, **ids):
        named = ", ".join(f"{axis.removesuffix('_id')} {value!r}" for axis, value in ids.items() if value is not None)
        raise NothingToDrawError(
            f"there are no relations of {named} to draw; `mem0-core stats` counts those of the store"
        )
    file = memory.visualize(options.out, entities=options.entities or None, depth=options.depth, **ids)
    return {"message": file}


def _resolve(memory: Memory, options: Options) -> tuple[str, dict[str, Any]]:
    """Return the id of the named memory, and the ids that its owner must have."""
    ids = _given_ids(options)
    return resolve_memory_id(memory, options.memory_id, ids), ids


def get(memory: Memory, options: Options) -> Any:
    memory_id, ids = _resolve(memory, options)
    found = memory.get(memory_id, **ids)
    if found is None:
        raise NotFoundError(memory_id)
    return found


def history(memory: Memory, options: Options) -> Any:
    memory_id, ids = _resolve(memory, options)
    rows = memory.history(memory_id, **ids)
    if not rows and memory.get(memory_id, **ids) is None:
        raise NotFoundError(memory_id)
    return rows


def update(memory: Memory, options: Options) -> Any:
    memory_id, ids = _resolve(memory, options)
    return memory.update(memory_id, options.text, **ids)


def update_by_query(memory: Memory, options: Options) -> Any:
    limits = {"threshold": options.threshold, "limit": options.limit}
    return memory.update_by_query(options.query, options.text, dry_run=options.dry_run, **limits, **_scope_ids(options))


def delete(memory: Memory, options: Options) -> Any:
    """Delete one memory, or show the one that would be deleted."""
    if options.dry_run:
        return get(memory, options)
    memory_id, ids = _resolve(memory, options)
    return memory.delete(memory_id, purge=options.purge, **ids)


def delete_by_query(memory: Memory, options: Options) -> Any:
    limits = {"threshold": options.threshold, "limit": options.limit}
    return memory.delete_by_query(
        options.query, purge=options.purge, dry_run=options.dry_run, **limits, **_scope_ids(options)
    )


def delete_all(memory: Memory, options: Options) -> Any:
    ids = _scope_ids(options)
    count = len(memory.get_all(**ids, limit=None, show_expired=True)["results"])
    _confirm(f"delete {pluralize(count, 'memory')} with their messages and relations?", options)
    return memory.delete_all(**ids, purge=options.purge)


def reset(memory: Memory, options: Options) -> Any:
    _confirm("delete everything in the store, of all users?", options)
    memory.reset()
    return {"message": "the store is empty"}


def _confirm(question: str, options: Options) -> None:
    """Ask on the terminal, unless --yes is given.

    Raises:
        UsageError: The answer is no, or input is not interactive.
    """
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was deleted: this asks for confirmation, and input is not interactive; add --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise UsageError("nothing was deleted")


def erase(memory: Memory, options: Options) -> Any:
    return memory.erase(reason=options.reason, **_scope_ids(options))


def retract(memory: Memory, options: Options) -> Any:
    return memory.retract(options.source, purge=options.purge, **_given_ids(options))


def verify(memory: Memory, options: Options) -> Any:
    return memory.verify()


def merge(memory: Memory, options: Options) -> Any:
    named = {"names": options.name, "into": options.into, "threshold": options.threshold}
    return memory.merge(options.what, dry_run=not options.apply, **named, **_scope_ids(options))


def unmerge(memory: Memory, options: Options) -> Any:
    ids = _given_ids(options)
    if any(ids.values()):
        known = [one["id"] for one in memory.merges(**ids) if one["id"] is not None]
        return memory.unmerge(resolve_merge_id(options.merge_id, known), **ids)
    return memory.unmerge(options.merge_id)


def merges(memory: Memory, options: Options) -> Any:
    return memory.merges(**_scope_ids(options))


def pin(memory: Memory, options: Options) -> Any:
    memory_id, ids = _resolve(memory, options)
    memory.pin(memory_id, not options.off, **ids)
    return {"message": "unpinned" if options.off else "pinned"}


def feedback(memory: Memory, options: Options) -> Any:
    memory_id, ids = _resolve(memory, options)
    return memory.feedback(memory_id, {"useful": True, "useless": False, "withdrawn": None}[options.verdict], **ids)


def pending(memory: Memory, options: Options) -> Any:
    return memory.pending(**_given_ids(options))


def flush(memory: Memory, options: Options) -> Any:
    done = memory.flush(options.timeout)
    return {"message": "no queued jobs left" if done else f"not done within {options.timeout} seconds"}


def retry(memory: Memory, options: Options) -> Any:
    memory.retry(options.job_id)
    return {"message": f"job {options.job_id} is queued again; `mem0-core flush` waits for it"}


def rebuild(memory: Memory, options: Options) -> Any:
    with _build_progress_bar("rebuild", options) as bar:
        return {"message": f"{pluralize(memory.rebuild(on_progress=bar), 'memory')} embedded again"}


def adopt(memory: Memory, options: Options) -> Any:
    from mem0_core.interchange import find_mem0_folders, import_mem0_v1

    folders = [Path(options.folder).expanduser()] if options.folder else find_mem0_folders()
    if not folders:
        raise UsageError(
            f"there is no store of mem0 at {mem0_home()}, /tmp/qdrant or /tmp/faiss; name its folder:"
            " mem0-core adopt FOLDER"
        )
    named = {"history": options.history, "collection": options.collection}
    results = []
    for folder in folders:
        with _build_progress_bar("adopt", options) as bar:
            result = import_mem0_v1(memory, folder, **named, **_given_ids(options), on_progress=bar)
        results.append({"folder": str(folder), "embedder": memory._embedder.name, **result})
    return results


def import_file(memory: Memory, options: Options) -> Any:
    from mem0_core.interchange import (
        EXPORT_FORMAT,
        MEM0_V1_FORMAT,
        PORTABLE_FORMATS,
        find_portable_format,
        import_chats,
        import_export,
        import_mem0_v1,
        import_portable,
        is_export_file,
        is_mem0_v1_folder,
    )

    file = Path(options.file)
    with _build_progress_bar("import", options) as bar:
        if options.format == MEM0_V1_FORMAT or (options.format is None and is_mem0_v1_folder(file)):
            named = {"history": options.history, "collection": options.collection}
            return import_mem0_v1(memory, file, **named, **_given_ids(options), on_progress=bar)
        if options.format == EXPORT_FORMAT or (options.format is None and is_export_file(file)):
            return import_export(memory, file, on_progress=bar)
        form = options.format or find_portable_format(file)
        if form in PORTABLE_FORMATS:
            return import_portable(memory, file, format=form, **_given_ids(options), on_progress=bar)
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
            source=options.source,
            trust=options.trust,
            on_progress=bar,
        )


def export(memory: Memory, options: Options) -> Any:
    with _build_progress_bar("export", options) as bar:
        return memory.export(
            options.out, format=options.format, overwrite=options.force, on_progress=bar, **_given_ids(options)
        )


def backup(memory: Memory, options: Options) -> Any:
    with _build_progress_bar("backup", options) as bar:
        return memory.backup(options.file, overwrite=options.force, on_progress=bar)


def migrate(config: MemoryConfig, options: Options) -> Any:
    from dataclasses import asdict

    from mem0_core.admin import transfer

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
    return asdict(done)


def restore(config: MemoryConfig, options: Options) -> Any:
    from contextlib import closing

    from mem0_core.admin import backup as backups
    from mem0_core.api.factory import open_store

    file, overwrite = Path(options.file), options.force
    with _build_progress_bar("restore", options) as bar:
        if config.store_config is None:
            return backups.restore(file, config.database, overwrite=overwrite, on_progress=bar)
        with closing(open_store(config, is_loading=True)) as store:
            return backups.restore_into(file, store, overwrite=overwrite, folder=config.folder, on_progress=bar)


def schema(config: MemoryConfig, options: Options) -> Any:
    from mem0_core.stores.postgres.schema import TableLayout, grant_script, schema_script

    if options.partitions < 1:
        raise InputError(f"--partitions must be at least 1, not {options.partitions}")
    script = schema_script(options.schema, TableLayout(options.layout, options.partitions, options.halfvec))
    return {"message": script + (grant_script(options.schema, options.role) if options.role else "")}


def stats(memory: Memory, options: Options) -> Any:
    return memory.stats(**_given_ids(options))


def evaluate_transcripts(config: MemoryConfig, options: Options) -> Any:
    """Evaluate memory on the given chats, and write the report; the store is neither read nor written."""
    from mem0_core.evaluation import check_page, run_evaluation, write_report

    check_page(Path(options.out))
    plan = _build_evaluation_plan(options)
    with _build_progress_bar("eval", options) as bar:
        result = run_evaluation(plan, config, on_progress=bar)
    page, data = write_report(result, Path(options.out))
    return {**result, "report": str(page), "data": str(data)}


def _build_evaluation_plan(options: Options) -> EvaluationPlan:
    from mem0_core.evaluation import EvaluationPlan, Settings, parse_requirement

    for name in ("max_tokens", "limit", "sample", "tokens_per_answer"):
        if not getattr(options, name) >= 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(options, name)}")
    return EvaluationPlan(
        tuple(Path(file) for file in options.files),
        format=options.format,
        user_id=options.user,
        questions=options.questions,
        recipes=tuple(options.recipe),
        embedders=tuple(options.embedder),
        rerankers=tuple(options.reranker),
        settings=Settings(floor=options.floor, max_tokens=options.max_tokens, limit=options.limit),
        sample=options.sample,
        price=options.price,
        infer=options.infer,
        judge=options.judge,
        requirements=tuple(map(parse_requirement, options.require)),
        compare=None if options.compare is None else Path(options.compare),
        suggest=options.suggest,
        tokens_per_answer=options.tokens_per_answer,
    )


def doctor(config: MemoryConfig, options: Options) -> Any:
    """Check the log before opening the store, which would repair it silently; then check everything else."""
    from mem0_core.admin import doctor as diagnosis
    from mem0_core.memory import Memory

    if config.store_config is not None:
        with Memory(config) as memory, _build_progress_bar("doctor", options) as bar:
            return memory.doctor(repair=not options.check, deep=options.deep, on_progress=bar)
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
        return memory.doctor(repair=not options.check, deep=options.deep, torn=torn, on_progress=bar)


def serve_mcp(memory: Memory, options: Options) -> Any:
    """Serve one client until it disconnects; without ids, for $MEM0_USER or the login name."""
    from mem0_core.server import ServerScope
    from mem0_core.server.mcp import run_stdio

    scope = ServerScope(**own_ids(options), is_read_only=options.read_only, has_spaces=not options.no_spaces)
    run_stdio(memory, scope, source=options.source, trust=options.trust)


def serve_rest(memory: Memory, options: Options) -> Any:
    """Serve until SIGTERM or SIGINT.

    Raises:
        UsageError: There is no key, or callers from other machines would need none.
    """
    from mem0_core.cli import _serve

    return _serve.serve(memory, options)


def open_ui(memory: Memory, options: Options) -> Any:
    """Serve the inspector on this machine until it is interrupted, and open it in a browser."""
    import webbrowser

    from mem0_core.server.inspector import build_inspector_app, listen_on_loopback, run_inspector
    from mem0_core.server.keys import ApiKey

    key = ApiKey("local", "local", "", **_given_ids(options), is_read_only=options.read_only)
    app, path = build_inspector_app(memory, key=key)
    with listen_on_loopback(options.port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
        print(f"mem0-core: open {address} once; Ctrl+C ends it", file=sys.stderr, flush=True)
        if not options.no_browser:
            webbrowser.open(address)
        run_inspector(app, listening)


def keys(config: MemoryConfig, options: Options) -> Any:
    """List the keys, or create or revoke one."""
    from mem0_core.server.keys import KEY_FILE, KeyRing

    ring = KeyRing(config.folder / KEY_FILE)
    if options.create is not None and options.revoke is not None:
        raise UsageError("--create and --revoke do not go together")
    if options.create is not None:
        secret, key = ring.create(
            options.create,
            **_given_ids(options),
            is_read_only=options.read_only,
            requests_per_minute=options.rate,
            max_body_bytes=options.max_body,
        )
        return [{**key.as_dict(), "key": secret}]
    if options.revoke is not None:
        return [ring.revoke(options.revoke).as_dict()]
    return [key.as_dict() for key in ring.keys]


def own_ids(options: Options) -> dict[str, Any]:
    """Return the ids on the command line; without any, the user in $MEM0_USER or the login name."""
    ids = _given_ids(options)
    if not any(ids.values()):
        ids["user_id"] = os.environ.get("MEM0_USER") or getpass.getuser()
    return ids


def prompt(memory: Memory, options: Options) -> Any:
    """Run the interactive prompt; without ids, for $MEM0_USER or the login name."""
    from mem0_core.cli._arguments import build_parser
    from mem0_core.cli._prompt import run_prompt

    ids = {name.removesuffix("_id"): value for name, value in own_ids(options).items()}
    common = ["--no-progress"] if options.progress is False else []
    parser = build_parser()
    return run_prompt(
        memory, lambda given: parser.parse_args([*common, *given]), ids, history=memory.config.folder / "prompt_history"
    )
