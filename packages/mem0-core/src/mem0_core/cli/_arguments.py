"""Argument parser: the options, implementation (`run`) and output format (`show`) of every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from mem0_core import __version__
from mem0_core.cli import _commands as run
from mem0_core.cli import _output as show
from mem0_core.interchange import CHAT_FORMATS, EXPORT_FORMAT, MEM0_V1_FORMAT
from mem0_core.providers.local import BACKENDS

__all__ = ["EXIT_UNHEALTHY", "build_parser"]

EXIT_UNHEALTHY = 3
AddCommand = Callable[..., argparse.ArgumentParser]


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mem0-core",
        description="Long-term memory for LLM agents, on this machine. Without a command, start a prompt.",
        epilog="Exit codes: 0 success, 1 failure, 2 wrong usage, 3 unrepaired problems (doctor), 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"mem0-core {__version__}")
    _add_common_options(parser, is_top_level=True)
    commands = parser.add_subparsers(metavar="COMMAND")
    parser.set_defaults(act=run.prompt, show=show.format_nothing, takes_config=False, exit_code=_prompt_exit_code)
    _add_scope_options(parser, is_top_level=True)

    def add_command(
        name: str,
        help: str,
        act: Callable[..., Any],
        show: Callable[..., Any],
        *,
        aliases: Sequence[str] = (),
        takes_config: bool = False,
        exit_code: Callable[[Any], int] = lambda result: 0,
        conflict_handler: str = "error",
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name, help=help, description=help, aliases=list(aliases), conflict_handler=conflict_handler
        )
        command.set_defaults(act=act, show=show, takes_config=takes_config, exit_code=exit_code)
        _add_common_options(command, is_top_level=False)
        return command

    _add_scope_options(
        add_command(
            "prompt",
            "start the interactive prompt (the default without a command)",
            run.prompt,
            show.format_nothing,
            exit_code=_prompt_exit_code,
        )
    )
    _add_memory_commands(add_command)
    _add_edit_commands(add_command)
    _add_graph_commands(add_command)
    _add_transfer_commands(add_command)
    _add_maintenance_commands(add_command)
    return parser


def _add_common_options(parser: argparse.ArgumentParser, *, is_top_level: bool) -> None:
    """Add the options that every command accepts before or after its name."""

    def add(*names: str, **more: Any) -> None:
        parser.add_argument(*names, **more, default=None if is_top_level else argparse.SUPPRESS)

    add("--path", help="data folder (default: $MEM0_CORE_HOME, else mem0-core in the platform's data folder)")
    add("--config", help="YAML or JSON configuration file")
    add(
        "--store",
        dest="store_url",
        metavar="URL",
        help="PostgreSQL store, postgresql://host/database#schema (default: the configured store, else a file)",
    )
    add("--llm-backend", choices=BACKENDS, help="chat model (default: the configured one; none: use no model)")
    add("--json", action="store_true", help="print the result as JSON")
    add(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show progress bars (default: if standard error is a terminal)",
    )


def _prompt_exit_code(result: Any) -> int:
    return 1 if result["failed"] else 0


def _add_memory_commands(add_command: AddCommand) -> None:
    add = add_command("add", "add a text to the memory", run.add, show.format_add, aliases=["store"])
    add.add_argument("text")
    _add_scope_options(add)
    search = add_command(
        "search", "find the memories that best match a text", run.search, show.format_search, aliases=["remember"]
    )
    search.add_argument("query")
    search.add_argument("--limit", type=int, default=10)
    _add_as_of_option(search)
    _add_scope_options(search)
    ask = add_command("ask", "answer a question from the memories, with the proof", run.ask, show.format_answer)
    ask.add_argument("question")
    _add_as_of_option(ask)
    _add_scope_options(ask)
    _add_scope_options(add_command("list", "list all memories of a scope", run.list_all, show.format_search))


def _add_edit_commands(add_command: AddCommand) -> None:
    get = add_command("get", "show one memory", run.get, show.format_memory)
    format_history = add_command("history", "show every change of a memory", run.history, show.format_history)
    update = add_command("update", "replace the text of a memory", run.update, show.format_message)
    updateq = add_command(
        "updateq", "replace the text of the memory that matches a query", run.updateq, show.format_matches
    )
    updateq.add_argument("query")
    updateq.add_argument("text")
    delete = add_command("delete", "delete memories and their source messages", run.delete, show.format_matches)
    delete.add_argument("memory_id", nargs="?", help="id of the memory, unless --query is given")
    delete.add_argument("--query", help="delete the memories that match this text")
    for by_query in (updateq, delete):
        by_query.add_argument("--threshold", type=float, default=0.5, help="minimum similarity of a match (0.5)")
        by_query.add_argument(
            "--limit", type=int, default=20, help="maximum number of matches; fail if there are more (20)"
        )
        by_query.add_argument("--dry-run", action="store_true", help="show the changes without writing them")
        _add_scope_options(by_query)
    delete.add_argument("--purge", action="store_true", help="delete the history too")
    pin = add_command("pin", "include a memory in every context", run.pin, show.format_message)
    pin.add_argument("--off", action="store_true", help="unpin the memory")
    for of_one in (get, format_history, update, pin):
        of_one.add_argument("memory_id")
    update.add_argument("text")
    _add_scope_options(add_command("pending", "list queued jobs", run.pending, show.format_jobs))
    flush = add_command("flush", "wait for queued jobs", run.flush, show.format_message)
    flush.add_argument("--timeout", type=float, help="maximum seconds to wait")
    add_command("rebuild", "embed every memory again with the configured embedder", run.rebuild, show.format_message)


def _add_graph_commands(add_command: AddCommand) -> None:
    relations = add_command("relations", "list the relations of a scope", run.relations, show.format_relations)
    relations.add_argument("--ended", action="store_true", help="include ended relations")
    path = add_command(
        "path", 'follow a chain such as "my sister\'s dog" through the relations', run.path, show.format_paths
    )
    path.add_argument("question")
    path.add_argument("--limit", type=int, default=5)
    path.add_argument("--depth", type=int, help="maximum number of relations in a path (default: number of terms)")
    query = add_command("query", "query the graph: MATCH (a)-[:works_at]->(b) RETURN a, b", run.query, show.format_rows)
    query.add_argument("text", metavar="query")
    query.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of $NAME in the query, JSON or plain text; repeat it for several",
    )
    viz = add_command("viz", "draw the graph as one HTML file", run.viz, show.format_message)
    viz.add_argument("entities", nargs="*", metavar="ENTITY", help="draw only the neighborhood of these entities")
    viz.add_argument("--depth", type=int, default=2, help="size of the neighborhood in steps (2)")
    viz.add_argument("--out", metavar="FILE", help="output file (default: a new file in viz/ of the data folder)")
    merge = add_command(
        "merge",
        "merge duplicate names (dry run unless --apply)",
        run.merge,
        show.format_merge_plan,
    )
    merge.add_argument("what", nargs="?", choices=("all", "entities", "relationships"), default="all")
    merge.add_argument("--name", action="append", help="merge exactly these names (at least two) of the given kind")
    merge.add_argument("--into", help="the name that remains")
    merge.add_argument("--threshold", type=float, help="minimum score of a duplicate")
    merge.add_argument("--apply", action="store_true", help="apply the merges; `unmerge` reverts one")
    merges = add_command("merges", "list merges", run.merges, show.format_merges)
    unmerge = add_command("unmerge", "revert a merge", run.unmerge, show.format_merges)
    unmerge.add_argument("merge_id")
    for dated in (relations, path, query):
        _add_as_of_option(dated)
    for scoped in (relations, path, query, viz, merge, merges):
        _add_scope_options(scoped)


def _add_transfer_commands(add_command: AddCommand) -> None:
    _add_import_command(add_command)
    export = add_command("export", "write memories, messages and the graph to files", run.export, show.format_export)
    export.add_argument("out", help="JSON Lines file, or a folder for CSV")
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    _add_scope_options(export)
    backup = add_command(
        "backup", "copy the whole store to one file while others write", run.backup, show.format_backup
    )
    backup.add_argument("file")
    restore = add_command(
        "restore", "restore the store from a backup", run.restore, show.format_restore, takes_config=True
    )
    restore.add_argument("file")
    for writing in (export, backup, restore):
        writing.add_argument("--force", action="store_true", help="overwrite existing data")
    migrate = add_command(
        "migrate",
        "copy everything to an empty store, also in another database, verify the copy, and freeze the source",
        run.migrate,
        show.format_migration,
        takes_config=True,
    )
    store = "data folder, SQLite file, or postgresql://host/database#schema"
    migrate.add_argument("--from", dest="source", metavar="STORE", required=True, help=store)
    migrate.add_argument("--to", dest="target", metavar="STORE", help=f"{store}; resumes an interrupted migration")
    migrate.add_argument("--release", action="store_true", help="unfreeze the source at the end, or now without --to")
    _add_schema_command(add_command)


def _add_import_command(add_command: AddCommand) -> None:
    importing = add_command(
        "import", "import chats from a file, or a mem0 1.x folder", run.import_file, show.format_import
    )
    importing.add_argument("file")
    importing.add_argument(
        "--format",
        choices=(*CHAT_FORMATS, MEM0_V1_FORMAT, EXPORT_FORMAT),
        help="format of the file (default: detected from its content)",
    )
    importing.add_argument("--no-runs", action="store_true", help="do not import each conversation as its own run")
    importing.add_argument("--infer", action="store_true", help="extract facts with the chat model in the background")
    importing.add_argument("--key", help="name for resuming the import (default: a digest of the messages)")
    importing.add_argument("--chunk", type=int, default=256, help="messages per transaction (256)")
    importing.add_argument("--history", metavar="FILE", help="mem0 1.x: history.db, if it is not in the folder")
    importing.add_argument("--collection", metavar="NAME", help="mem0 1.x: import only this collection")
    _add_scope_options(importing)


def _add_schema_command(add_command: AddCommand) -> None:
    ddl = add_command(
        "schema",
        "print the SQL that creates the tables of a store",
        run.schema,
        show.format_message,
        takes_config=True,
        conflict_handler="resolve",  # its --store names a kind of database, not a location
    )
    ddl.add_argument("--store", choices=("postgres",), default="postgres", help="target database (postgres)")
    ddl.add_argument("--schema", default="mem0", metavar="NAME", help="schema of the tables (mem0)")
    ddl.add_argument(
        "--layout", choices=("postgres", "citus"), default="postgres", help="partitioned or distributed tables"
    )
    ddl.add_argument("--partitions", type=int, default=4, help="partitions per table (4)")
    ddl.add_argument("--halfvec", action="store_true", help="store vectors in half precision, with half the disk space")
    ddl.add_argument("--role", metavar="NAME", help="add the minimal grants for this role")


def _add_maintenance_commands(add_command: AddCommand) -> None:
    _add_scope_options(add_command("stats", "show statistics", run.stats, show.format_stats))
    doctor = add_command(
        "doctor",
        "check the store and its projections, and repair them where possible",
        run.doctor,
        show.format_diagnosis,
        takes_config=True,
        exit_code=lambda result: 0 if result["healthy"] else EXIT_UNHEALTHY,
    )
    doctor.add_argument(
        "--check", "--dry-run", action="store_true", help="only report; exit code 3 if there are problems"
    )


def _add_scope_options(parser: argparse.ArgumentParser, *, is_top_level: bool = False) -> None:
    for axis in ("user", "agent", "run"):
        default = None if is_top_level else argparse.SUPPRESS
        parser.add_argument(f"--{axis}", metavar="ID", default=default, help=f"{axis} id of the memory")


def _add_as_of_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as-of", metavar="TIME", help="use the state of that time (ISO 8601)")
