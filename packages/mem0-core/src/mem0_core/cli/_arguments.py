"""The arguments of every command: what may be given, what it does (`verbs`), how its result is shown (`show`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from mem0_core import __version__
from mem0_core.cli import _commands as verbs
from mem0_core.cli import _output as show
from mem0_core.interchange import CHAT_FORMATS, EXPORT_FORMAT, MEM0_V1_FORMAT
from mem0_core.providers.local import BACKENDS

__all__ = ["EXIT_UNHEALTHY", "build_parser"]

EXIT_UNHEALTHY = 3
AddCommand = Callable[..., argparse.ArgumentParser]


def build_parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="mem0-core",
        description="Long-term memory for LLM agents, on this machine. Without a command it prompts for some.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the doctor found what is not mended, 130 interrupted.",
    )
    made.add_argument("--version", action="version", version=f"mem0-core {__version__}")
    _add_common_options(made, is_top_level=True)
    commands = made.add_subparsers(metavar="COMMAND")
    made.set_defaults(act=verbs.prompt, show=show.format_nothing, takes_config=False, exit_code=_prompt_exit_code)
    _add_scope_options(made, is_top_level=True)

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
        one = commands.add_parser(
            name, help=help, description=help, aliases=list(aliases), conflict_handler=conflict_handler
        )
        one.set_defaults(act=act, show=show, takes_config=takes_config, exit_code=exit_code)
        _add_common_options(one, is_top_level=False)
        return one

    _add_scope_options(
        add_command(
            "prompt",
            "converse with the memory (so does no command at all)",
            verbs.prompt,
            show.format_nothing,
            exit_code=_prompt_exit_code,
        )
    )
    _add_memory_commands(add_command)
    _add_edit_commands(add_command)
    _add_graph_commands(add_command)
    _add_transfer_commands(add_command)
    _add_maintenance_commands(add_command)
    return made


def _add_common_options(parser: argparse.ArgumentParser, *, is_top_level: bool) -> None:
    """What every command takes, before its name or behind it."""

    def add(*names: str, **more: Any) -> None:
        parser.add_argument(*names, **more, default=None if is_top_level else argparse.SUPPRESS)

    add("--path", help="folder of the data (default: $MEM0_CORE_HOME, else mem0-core in the platform's data folder)")
    add("--config", help="a YAML or JSON file of configuration keys")
    add(
        "--store",
        dest="store_url",
        metavar="URL",
        help="a store in PostgreSQL, postgresql://host/database#schema (default: the configuration's, else a file)",
    )
    add("--llm-backend", choices=BACKENDS, help="the chat model (default: the configuration's; none: without one)")
    add("--json", action="store_true", help="print the result as JSON")
    add("--progress", action=argparse.BooleanOptionalAction, help="show bars (default: where standard error is a tty)")


def _prompt_exit_code(result: Any) -> int:
    return 1 if result["failed"] else 0


def _add_memory_commands(add_command: AddCommand) -> None:
    add = add_command("add", "remember a text", verbs.add, show.format_add, aliases=["store"])
    add.add_argument("text")
    _add_scope_options(add)
    search = add_command(
        "search", "recall the memories nearest to a text", verbs.search, show.format_search, aliases=["remember"]
    )
    search.add_argument("query")
    search.add_argument("--limit", type=int, default=10)
    _add_as_of_option(search)
    _add_scope_options(search)
    _add_scope_options(add_command("list", "list all memories of a scope", verbs.list_all, show.format_search))


def _add_edit_commands(add_command: AddCommand) -> None:
    get = add_command("get", "show one memory", verbs.get, show.format_memory)
    format_history = add_command("history", "show every change of a memory", verbs.history, show.format_history)
    update = add_command("update", "give a memory a new text", verbs.update, show.format_message)
    updateq = add_command(
        "updateq", "give the memory that a query means a new text", verbs.updateq, show.format_matches
    )
    updateq.add_argument("query")
    updateq.add_argument("text")
    delete = add_command("delete", "erase memories and the messages they came from", verbs.delete, show.format_matches)
    delete.add_argument("memory_id", nargs="?", help="the memory; or those that --query means")
    delete.add_argument("--query")
    for by_query in (updateq, delete):
        by_query.add_argument("--threshold", type=float, default=0.5, help="how near a memory must be (0.5)")
        by_query.add_argument("--limit", type=int, default=20, help="refuse if more are meant (20)")
        by_query.add_argument("--dry-run", action="store_true", help="tell what would change")
        _add_scope_options(by_query)
    delete.add_argument("--purge", action="store_true", help="erase its history too")
    pin = add_command("pin", "make a memory part of every context", verbs.pin, show.format_message)
    pin.add_argument("--off", action="store_true", help="no longer")
    for of_one in (get, format_history, update, pin):
        of_one.add_argument("memory_id")
    update.add_argument("text")
    _add_scope_options(add_command("pending", "list what is put off", verbs.pending, show.format_jobs))
    flush = add_command("flush", "wait until nothing is put off", verbs.flush, show.format_message)
    flush.add_argument("--timeout", type=float, help="seconds to wait at most")
    add_command(
        "rebuild", "embed every memory anew, with the embedder configured now", verbs.rebuild, show.format_message
    )


def _add_graph_commands(add_command: AddCommand) -> None:
    relations = add_command("relations", "list the relations of a scope", verbs.relations, show.format_relations)
    relations.add_argument("--ended", action="store_true", help="with those that hold no longer")
    path = add_command(
        "path", 'follow a chain such as "my sister\'s dog" through the relations', verbs.path, show.format_paths
    )
    path.add_argument("question")
    path.add_argument("--limit", type=int, default=5)
    path.add_argument("--depth", type=int, help="relations on a path at most (default: as many as terms)")
    query = add_command("query", "ask the graph: MATCH (a)-[:works_at]->(b) RETURN a, b", verbs.query, show.format_rows)
    query.add_argument("text", metavar="query")
    viz = add_command("viz", "draw the graph as one HTML file", verbs.viz, show.format_message)
    viz.add_argument("entities", nargs="*", metavar="ENTITY", help="draw what is near these only")
    viz.add_argument("--depth", type=int, default=2, help="how many steps from them (2)")
    viz.add_argument("--out", metavar="FILE", help="the file (default: a new one in viz/ beside the data)")
    merge = add_command(
        "merge",
        "make one of names that mean one thing; only tells, without --apply",
        verbs.merge,
        show.format_merge_plan,
    )
    merge.add_argument("what", nargs="?", choices=("all", "entities", "relationships"), default="all")
    merge.add_argument("--name", action="append", help="merge just these (at least two), of the kind named")
    merge.add_argument("--into", help="which of them stays")
    merge.add_argument("--threshold", type=float, help="the score from which two names are one")
    merge.add_argument("--apply", action="store_true", help="do it; `unmerge` takes it back")
    merges = add_command("merges", "list what was merged", verbs.merges, show.format_merges)
    unmerge = add_command("unmerge", "take a merge back", verbs.unmerge, show.format_merges)
    unmerge.add_argument("merge_id")
    for then in (relations, path, query):
        _add_as_of_option(then)
    for scoped in (relations, path, query, viz, merge, merges):
        _add_scope_options(scoped)


def _add_transfer_commands(add_command: AddCommand) -> None:
    importing = add_command(
        "import", "bring chats from a file, or a mem0 1.x folder", verbs.import_file, show.format_import
    )
    importing.add_argument("file")
    importing.add_argument(
        "--format",
        choices=(*CHAT_FORMATS, MEM0_V1_FORMAT, EXPORT_FORMAT),
        help="by default told by what is in the file",
    )
    importing.add_argument("--no-runs", action="store_true", help="do not make each conversation a run of its own")
    importing.add_argument("--infer", action="store_true", help="let the chat model learn from them, in the background")
    importing.add_argument("--key", help="a name to resume the import by (default: told from the messages)")
    importing.add_argument("--chunk", type=int, default=256, help="messages committed at once (256)")
    importing.add_argument("--history", metavar="FILE", help="mem0 1.x: its history.db, where it is not in the folder")
    importing.add_argument("--collection", metavar="NAME", help="mem0 1.x: take over this collection only")
    _add_scope_options(importing)
    export = add_command("export", "write memories, messages and the graph out", verbs.export, show.format_export)
    export.add_argument("out", help="a file of JSON Lines, or for CSV a folder")
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    _add_scope_options(export)
    backup = add_command(
        "backup", "copy the whole store into one file, while others write", verbs.backup, show.format_backup
    )
    backup.add_argument("file")
    restore = add_command(
        "restore", "make the store what a backup is", verbs.restore, show.format_restore, takes_config=True
    )
    restore.add_argument("file")
    migrate = add_command(
        "migrate",
        "copy everything to an empty store, in another database too, verify it, and let nothing more be written here",
        verbs.migrate,
        show.format_migration,
        takes_config=True,
    )
    place = "a folder of data, a SQLite file, or postgresql://host/database#schema"
    migrate.add_argument("--from", dest="source", metavar="STORE", required=True, help=place)
    migrate.add_argument("--to", dest="target", metavar="STORE", help="the same; if it was begun, it goes on")
    migrate.add_argument("--release", action="store_true", help="let the source be written again: at the end, or now")
    ddl = add_command(
        "schema",
        "print the SQL that makes a store's tables",
        verbs.schema,
        show.format_message,
        takes_config=True,
        conflict_handler="resolve",  # its --store is a kind of store, and no place of one
    )
    ddl.add_argument("--store", choices=("postgres",), default="postgres", help="the database it is for (postgres)")
    ddl.add_argument("--schema", default="mem0", metavar="NAME", help="where the tables are to be (mem0)")
    ddl.add_argument(
        "--layout", choices=("postgres", "citus"), default="postgres", help="partition, or distribute them"
    )
    ddl.add_argument("--partitions", type=int, default=4, help="of each table (4)")
    ddl.add_argument("--halfvec", action="store_true", help="vectors in half precision: half the disk")
    ddl.add_argument("--role", metavar="NAME", help="with what this role needs to serve a memory, and no more")
    for writing in (export, backup, restore):
        writing.add_argument("--force", action="store_true", help="overwrite what is there")


def _add_maintenance_commands(add_command: AddCommand) -> None:
    _add_scope_options(add_command("stats", "tell how much there is of what", verbs.stats, show.format_stats))
    doctor = add_command(
        "doctor",
        "check the store and every projection of it, and mend what can be mended",
        verbs.doctor,
        show.format_diagnosis,
        takes_config=True,
        exit_code=lambda result: 0 if result["healthy"] else EXIT_UNHEALTHY,
    )
    doctor.add_argument(
        "--check", "--dry-run", action="store_true", help="only look; exit code 3 if something is wrong"
    )


def _add_scope_options(parser: argparse.ArgumentParser, *, is_top_level: bool = False) -> None:
    for axis in ("user", "agent", "run"):
        default = None if is_top_level else argparse.SUPPRESS
        parser.add_argument(f"--{axis}", metavar="ID", default=default, help=f"the {axis} whose memory it is")


def _add_as_of_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as-of", metavar="TIME", help="answer from what held then (ISO 8601)")
