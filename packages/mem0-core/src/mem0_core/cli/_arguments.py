"""Argument parser: the options, implementation (`run`) and output format (`show`) of every command.

Importing this module and building the parser loads no other part of the package: a command imports what it needs when
it runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from mem0_core import __version__
from mem0_core.cli import _output as show
from mem0_core.cli._errors import EXIT_UNHEALTHY, EXIT_USAGE
from mem0_core.cli._examples import EPILOG, EXAMPLES, format_examples
from mem0_core.cli._shell_completion import SHELLS, completion_script

# Copies of constants whose modules are slow to import; a test compares them.
TRUST_CLASSES = ("user", "assistant", "tool", "import")
BACKENDS = ("auto", "gguf", "intel", "transformers", "openai", "none")
_CHAT_FORMATS = ("chatgpt", "claude", "openai", "langchain", "llamaindex", "letta", "locomo", "jsonl", "text")
IMPORT_FORMATS = (*_CHAT_FORMATS, "mem0-v1", "mem0-core", "pam", "mif", "zep")


_HELP_PREFIXES = ("-h", "--h")  # options may be abbreviated


class _Commands:
    """The functions of `_commands`; the module is imported when one of them runs."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run_command(*arguments: Any) -> Any:
            return getattr(import_module("mem0_core.cli._commands"), name)(*arguments)

        run_command.__name__ = name
        return run_command


run = _Commands()


class _LeftOut(argparse.ArgumentParser):
    """Parser of a command that a command line does not name."""

    def add_argument(self, *names: Any, **options: Any) -> Any:
        """Ignore the argument."""


class _AddCommand:
    """Adds a command with its help, its implementation, and the options that all commands share.

    Args:
        only: Words of a command line. Commands that they do not name are left out, which takes most of the time.
    """

    def __init__(self, parser: argparse.ArgumentParser, only: frozenset[str] | None) -> None:
        self._commands = parser.add_subparsers(metavar="COMMAND")
        self._only = only
        self._left_out = _LeftOut(add_help=False)

    def __call__(
        self,
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
        if self._only is not None and self._only.isdisjoint((name, *aliases)):
            return self._left_out
        command = self._commands.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            epilog=format_examples(name),
            aliases=list(aliases),
            conflict_handler=conflict_handler,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(act=act, show=show, exit_code=exit_code, takes_config=takes_config, is_standalone=False)
        _add_common_options(command, is_top_level=False)
        return command


class _Parser(argparse.ArgumentParser):
    """Parser whose errors name the nearest accepted option or value and the next step."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from mem0_core.domain.suggestions import suggest

            known = [str(one) for one in action.choices]
            hint = suggest(str(value), known)
            if (ours := _COMMANDS.get(value)) in known:
                hint = f"; did you mean {ours!r}? (accepted: {', '.join(known)})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command line; the parser of its command reports words that it does not know."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._find_command(args).refuse(unknown[0])
        return options

    def refuse(self, word: str) -> NoReturn:
        """Report a word that is no option and no value, and exit."""
        from mem0_core.domain.suggestions import find_nearest

        if not word.startswith("-"):
            self.error(f"unexpected word {word!r}; quote a text of several words, or leave the word out")
        options = {one.removeprefix("--"): one for one in self._option_string_actions if one.startswith("--")}
        name = word.partition("=")[0].lstrip("-")
        near = find_nearest(_OPTIONS.get(name, name), options)
        accepted = f"accepted: {', '.join(options.values())}"
        hint = f"did you mean {options[near]!r}? ({accepted})" if near else accepted
        self.error(f"unknown option {word!r}; {hint}")

    def _find_command(self, words: Sequence[str]) -> _Parser:
        """Return the parser of the command that a command line names, or this one."""
        commands = next(one for one in self._actions if isinstance(one, argparse._SubParsersAction)).choices
        found: _Parser = next((commands[word] for word in words if word in commands), self)
        return found

    def error(self, message: str) -> NoReturn:
        """Print the error, an example and the command that lists all options, and exit."""
        if ": invalid int value" in message or ": invalid float value" in message:
            message += "; a number is required, for example 10"
        lines = [f"{self.prog}: {message}"]
        command = self.prog.rpartition(" ")[2]
        if command in EXAMPLES:
            lines.append(f"example: {EXAMPLES[command][0]}")
        self.exit(EXIT_USAGE, "\n".join([*lines, f"`{self.prog} --help` lists what is accepted", ""]))


class _NotParsedError(Exception):
    """A partial parser does not accept the command line."""


class _PartialParser(_Parser):
    """Parser that leaves errors to the complete one."""

    def error(self, message: str) -> NoReturn:
        raise _NotParsedError


_OPTIONS = {"timestamp": "at", "time": "at", "date": "at", "top": "limit", "k": "limit", "force": "yes"}
"""Names of options elsewhere, each with ours."""

_COMMANDS = {
    **dict.fromkeys(["remove", "rm", "del", "forget"], "delete"),
    **dict.fromkeys(["ls", "all", "show"], "list"),
    **dict.fromkeys(["find", "recall"], "search"),
    **dict.fromkeys(["new", "save"], "add"),
    "graph": "visualize",
}
"""Names of commands elsewhere, each with ours."""


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line, by a parser of the named command alone where that suffices.

    Help and errors come from the complete parser.
    """
    if arguments[:1] in (["help"], ["version"]):
        arguments = [*arguments[1:], f"--{arguments[0]}"]
    if not any(one.startswith(_HELP_PREFIXES) for one in arguments):
        try:
            return build_parser(frozenset(arguments)).parse_args(arguments)
        except _NotParsedError:
            pass
    return build_parser().parse_args(arguments)


def build_parser(only: frozenset[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser of all commands, or of those that a command line with the words `only` may name."""
    parser = (_Parser if only is None else _PartialParser)(
        prog="mem0-core",
        description="Long-term memory for LLM agents, on this machine. Without a command, start a prompt.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mem0-core {__version__}")
    _add_common_options(parser, is_top_level=True)
    _add_scope_options(parser, is_top_level=True)
    parser.set_defaults(act=run.prompt, show=show.format_nothing, exit_code=_prompt_exit_code)
    parser.set_defaults(takes_config=False, is_standalone=False, is_prompt=False)
    add_command = _AddCommand(parser, only)
    prompt = add_command(
        "prompt",
        "start the interactive prompt (the default without a command)",
        run.prompt,
        show.format_nothing,
        exit_code=_prompt_exit_code,
    )
    _add_scope_options(prompt)
    _add_memory_commands(add_command)
    _add_edit_commands(add_command)
    _add_graph_commands(add_command)
    _add_transfer_commands(add_command)
    _add_maintenance_commands(add_command)
    _add_server_commands(add_command)
    _add_completion_command(add_command)
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


def _add_memory_commands(add_command: _AddCommand) -> None:
    add = add_command("add", "add a text to the memory", run.add, show.format_add, aliases=["store"])
    add.add_argument("text")
    add.add_argument("--at", metavar="TIME", help="time at which it was said (ISO 8601; default: now)")
    add.add_argument("--source", metavar="NAME", help="document, tool, agent or chat that the text comes from")
    add.add_argument("--trust", choices=TRUST_CLASSES, help="class of its origin (user)")
    search = add_command(
        "search", "find the memories that best match a text", run.search, show.format_search, aliases=["remember"]
    )
    search.add_argument("query")
    search.add_argument("--limit", type=int, default=10, help="maximum number of memories (10)")
    answer = add_command(
        "answer", "answer a question from the memories, with the proof", run.answer, show.format_answer, aliases=["ask"]
    )
    answer.add_argument("question")
    context = add_command(
        "context", "print the prompt block that an agent would get for a query", run.context, show.format_context
    )
    context.add_argument("query")
    context.add_argument("--max-tokens", type=int, default=2000, metavar="N", help="maximum number of tokens (2000)")
    explain = add_command(
        "explain-missing", "explain why a search does not return a memory", run.explain_missing, show.format_missing
    )
    explain.add_argument("query")
    explain.add_argument("memory_id", metavar="MEMORY")
    explain.add_argument("--limit", type=int, default=10, help="limit of the search (10)")
    for dated in (search, answer, context, explain):
        _add_as_of_option(dated)
    every = add_command("get-all", "list all memories of a scope", run.get_all, show.format_search, aliases=["list"])
    every.add_argument("--limit", type=int, help="maximum number of memories (default: all)")
    for asked in (search, answer, context, explain, every):
        asked.add_argument("--min-trust", choices=TRUST_CLASSES, help="least trusted class of memories (all)")
    for scoped in (add, search, answer, context, explain, every):
        _add_scope_options(scoped)


def _add_edit_commands(add_command: _AddCommand) -> None:
    get = add_command("get", "show one memory", run.get, show.format_memory)
    history = add_command(
        "history", "show every change of a memory, even of a deleted one", run.history, show.format_history
    )
    update = add_command("update", "replace the text of a memory", run.update, show.format_message)
    delete = add_command("delete", "delete a memory and its source messages", run.delete, show.format_matches)
    erase = add_command(
        "erase", "erase everything of a user, agent or run, and show a signed receipt", run.erase, show.format_receipt
    )
    retract = add_command(
        "retract", "withdraw what was learned from one source and nothing else", run.retract, show.format_counts
    )
    retract.add_argument("source", metavar="NAME")
    retract.add_argument("--purge", action="store_true", help="also delete the history of the memories that leave")
    _add_scope_options(retract)
    erase.add_argument("--reason", required=True, help="reason for the receipt, such as the number of a request")
    _add_scope_options(erase)
    pin = add_command("pin", "include a memory in every context", run.pin, show.format_message)
    feedback = add_command(
        "feedback", "mark a memory as useful or useless, or withdraw this", run.feedback, show.format_counts
    )
    for of_one in (get, history, update, delete, pin, feedback):
        of_one.add_argument(
            "memory_id", metavar="MEMORY", help="id of the memory, or at least 4 digits of its end or start"
        )
        _add_scope_options(of_one)
    update.add_argument("text")
    delete.add_argument("--dry-run", action="store_true", help="show the memory without deleting it")
    feedback.add_argument("verdict", choices=("useful", "useless", "withdrawn"))
    pin.add_argument("--off", action="store_true", help="unpin the memory")
    _add_query_edit_commands(add_command, delete)
    _add_scope_options(add_command("pending", "list queued jobs", run.pending, show.format_jobs))
    flush = add_command("flush", "wait for queued jobs", run.flush, show.format_message)
    flush.add_argument("--timeout", type=float, metavar="SECONDS", help="maximum seconds to wait (default: no limit)")
    retry = add_command("retry", "process a failed job again", run.retry, show.format_message)
    retry.add_argument("job_id", metavar="JOB", help="id of the job, from `mem0-core pending`")
    rebuild = add_command(
        "rebuild", "embed every memory again with the configured embedder", run.rebuild, show.format_message
    )
    rebuild.add_argument("--embedder", dest="new_embedder", metavar="NAME", help="embedder of the store from now on")


def _add_query_edit_commands(add_command: _AddCommand, delete: argparse.ArgumentParser) -> None:
    update = add_command(
        "update-by-query",
        "replace the text of the memory that matches a query",
        run.update_by_query,
        show.format_matches,
        aliases=["updateq"],
    )
    update.add_argument("query")
    update.add_argument("text")
    by_query = add_command(
        "delete-by-query", "delete the memories that match a query", run.delete_by_query, show.format_matches
    )
    by_query.add_argument("query")
    for command in (update, by_query):
        command.add_argument("--threshold", type=float, default=0.5, help="minimum similarity of a match (0.5)")
        command.add_argument(
            "--limit", type=int, default=20, help="maximum number of matches; fail if there are more (20)"
        )
        command.add_argument("--dry-run", action="store_true", help="show the changes without writing them")
    everything = add_command(
        "delete-all", "delete everything in a scope, messages and graph included", run.delete_all, show.format_message
    )
    reset = add_command("reset", "empty the whole store", run.reset, show.format_message)
    for command in (everything, reset):
        command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for command in (delete, by_query, everything):
        command.add_argument("--purge", action="store_true", help="delete the history too")
    for scoped in (update, by_query, everything):
        _add_scope_options(scoped)


def _add_graph_commands(add_command: _AddCommand) -> None:
    relations = add_command("relations", "list the relations of a scope", run.relations, show.format_relations)
    relations.add_argument("--ended", action="store_true", help="include ended relations")
    traverse = add_command(
        "traverse",
        'follow a chain such as "my sister\'s dog" through the relations',
        run.traverse,
        show.format_paths,
        aliases=["path"],
    )
    traverse.add_argument("question")
    traverse.add_argument("--limit", type=int, default=5, help="maximum number of paths (5)")
    traverse.add_argument("--depth", type=int, help="maximum number of relations in a path (default: number of terms)")
    query = add_command("query", "query the graph in a subset of Cypher", run.query, show.format_rows)
    query.add_argument("text", metavar="query")
    query.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of $NAME in the query, JSON or plain text; repeat it for several",
    )
    visualize = add_command(
        "visualize", "draw the graph as one HTML file", run.visualize, show.format_message, aliases=["viz"]
    )
    visualize.add_argument("entities", nargs="*", metavar="ENTITY", help="draw only the neighborhood of these entities")
    visualize.add_argument("--depth", type=int, default=2, help="size of the neighborhood in steps (2)")
    visualize.add_argument("--out", metavar="FILE", help="output file (default: a new file in viz/ of the data folder)")
    merge = add_command("merge", "merge duplicate names (dry run unless --apply)", run.merge, show.format_merge_plan)
    merge.add_argument("what", nargs="?", choices=("all", "entities", "relationships"), default="all")
    merge.add_argument("--name", action="append", help="merge exactly these names (at least two) of the given kind")
    merge.add_argument("--into", help="the name that remains")
    merge.add_argument("--threshold", type=float, help="minimum score of a duplicate")
    merge.add_argument("--apply", action="store_true", help="apply the merges; `unmerge` reverts one")
    merges = add_command("merges", "list merges", run.merges, show.format_merges)
    unmerge = add_command("unmerge", "revert a merge", run.unmerge, show.format_merges)
    unmerge.add_argument("merge_id", metavar="MERGE", help="id of the merge, from `mem0-core merges`")
    for dated in (relations, traverse, query):
        _add_as_of_option(dated)
    for scoped in (relations, traverse, query, visualize, merge, merges, unmerge):
        _add_scope_options(scoped)


def _add_transfer_commands(add_command: _AddCommand) -> None:
    _add_import_command(add_command)
    _add_adopt_command(add_command)
    export = add_command("export", "write memories, messages and the graph to files", run.export, show.format_export)
    export.add_argument("out", help="file, or a folder for CSV")
    export.add_argument("--format", choices=("jsonl", "csv", "pam", "mif"), default="jsonl")
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


def _add_import_command(add_command: _AddCommand) -> None:
    importing = add_command(
        "import", "import chats from a file, or a folder of mem0", run.import_file, show.format_import
    )
    importing.add_argument("file")
    importing.add_argument(
        "--format",
        choices=IMPORT_FORMATS,
        metavar="FORMAT",
        help=f"{', '.join(IMPORT_FORMATS)} (default: detected from its content)",
    )
    importing.add_argument("--no-runs", action="store_true", help="do not import each conversation as its own run")
    importing.add_argument("--infer", action="store_true", help="extract facts with the chat model in the background")
    importing.add_argument("--key", help="name for resuming the import (default: a digest of the messages)")
    importing.add_argument("--chunk", type=int, default=256, help="messages per transaction (256)")
    importing.add_argument("--source", metavar="NAME", help="name for retract (default: import:FORMAT:FILENAME)")
    importing.add_argument("--trust", choices=TRUST_CLASSES, default="import", help="class of its origin (import)")
    importing.add_argument("--history", metavar="FILE", help="mem0: history.db, if it is not in the folder")
    importing.add_argument("--collection", metavar="NAME", help="mem0: import only this collection")
    _add_scope_options(importing)


def _add_adopt_command(add_command: _AddCommand) -> None:
    adopting = add_command(
        "adopt",
        "copy the memories and history of mem0 1.x or 2.x, whose files stay unchanged",
        run.adopt,
        show.format_adoption,
    )
    adopting.add_argument("folder", nargs="?", help="folder of mem0 (default: its own place, ~/.mem0 or $MEM0_DIR)")
    adopting.add_argument("--history", metavar="FILE", help="history.db, if it is not in the folder")
    adopting.add_argument("--collection", metavar="NAME", help="copy only this collection")
    _add_scope_options(adopting)


def _add_schema_command(add_command: _AddCommand) -> None:
    ddl = add_command(
        "schema",
        "print the SQL that creates the tables of a store",
        run.schema,
        show.format_script,
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


def _add_maintenance_commands(add_command: _AddCommand) -> None:
    _add_scope_options(add_command("stats", "show statistics", run.stats, show.format_stats))
    _add_evaluation_command(add_command)
    doctor = add_command(
        "doctor",
        "check the store and its projections, and repair them where possible",
        run.doctor,
        show.format_diagnosis,
        takes_config=True,
        exit_code=lambda result: 0 if result["healthy"] else EXIT_UNHEALTHY,
    )
    doctor.add_argument("--deep", action="store_true", help="also derive all contents again, as verify does")
    add_command(
        "verify",
        "derive all contents from history and messages, and compare one digest",
        run.verify,
        show.format_verification,
        exit_code=lambda result: 0 if result["agrees"] else EXIT_UNHEALTHY,
    )
    doctor.add_argument(
        "--check", "--dry-run", action="store_true", help="only report; exit code 3 if there are problems"
    )


def _add_evaluation_command(add_command: _AddCommand) -> None:
    command = add_command(
        "eval",
        "measure on your own chats whether memory helps, and write a report",
        run.evaluate_transcripts,
        show.format_evaluation,
        takes_config=True,
        exit_code=lambda result: 0 if all(check["met"] for check in result["checks"]) else EXIT_UNHEALTHY,
    )
    add = command.add_argument
    add("files", nargs="+", metavar="FILE", help="chats, in the forms of `import`")
    add("--format", choices=_CHAT_FORMATS, metavar="FORMAT", help="form of the chats (default: detected)")
    add(
        "--questions",
        metavar="SOURCE",
        help="a JSON file; rules or model: made from the chats (default: those of a benchmark, else rules)",
    )
    add("--recipe", action="append", default=[], metavar="NAME", help="recipe to evaluate; repeat it for several")
    add("--embedder", action="append", default=[], metavar="NAME", help="embedder to evaluate; repeat it for several")
    add(
        "--reranker",
        action="append",
        default=[],
        metavar="NAME",
        help="reranker to evaluate, or none; repeat it for several (default: the configured one)",
    )
    add("--max-tokens", type=int, default=2000, metavar="N", help="budget of the injected text (2000)")
    add("--limit", type=int, default=20, metavar="N", help="maximum number of injected memories (20)")
    add("--floor", type=float, metavar="SCORE", help="lowest score of an injected memory (default: calibrated)")
    add("--sample", type=int, default=300, metavar="N", help="maximum number of questions (300)")
    add("--price", type=float, metavar="DOLLARS", help="price of a million input tokens, for the cost")
    add("--infer", action="store_true", help="remember facts that the chat model extracts, not whole messages")
    add("--judge", action="store_true", help="answer with the chat model, and let it judge the answers")
    add("--compare", metavar="FILE", help="compare with an earlier result, or with another configuration")
    add("--suggest", action="store_true", help="suggest recipe, floor and budget by cross-validation")
    add("--tokens-per-answer", type=float, default=20_000, metavar="N", help="tokens worth one answer (20000)")
    add(
        "--require",
        action="append",
        default=[],
        metavar="BOUND",
        help="exit with 3 unless a figure meets it, such as hit@5>=0.8; repeat it for several",
    )
    add("--out", default="memory-eval.html", metavar="FILE", help="report; JSON has its name (memory-eval.html)")
    add("--user", metavar="ID", default=argparse.SUPPRESS, help="owner of all chats (default: as the files say)")


def _add_server_commands(add_command: _AddCommand) -> None:
    mcp = add_command(
        "mcp",
        "serve the Model Context Protocol on standard input and output, for the user of --user",
        run.serve_mcp,
        show.format_nothing,
    )
    mcp.add_argument("--read-only", action="store_true", help="refuse all changes")
    mcp.add_argument("--no-spaces", action="store_true", help="keep to the user's own memories, without their spaces")
    mcp.add_argument("--source", metavar="NAME", default="mcp", help="source of the stored texts (mcp)")
    mcp.add_argument(
        "--trust", choices=TRUST_CLASSES, default="assistant", help="class of the stored texts (assistant)"
    )
    _add_scope_options(mcp)
    serve = add_command("serve", "serve the REST interface to callers with a key", run.serve_rest, show.format_nothing)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    serve.add_argument("--port", type=int, default=8765, help="port to listen on (8765)")
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name of this server in requests; repeat it for several (localhost)",
    )
    serve.add_argument(
        "--workers", type=int, metavar="N", help="processes, on PostgreSQL (one per core; else one in all)"
    )
    serve.add_argument("--no-keys", action="store_true", help="serve every caller; only on an address of this machine")
    _add_webhook_options(serve)
    _add_ui_command(add_command)
    keys = add_command("keys", "list, create and revoke the keys of the server", run.keys, show.format_keys)
    keys.add_argument("--create", metavar="NAME", help="create a key with this name for --user, --agent and --run")
    keys.add_argument("--read-only", action="store_true", help="the created key may only read")
    keys.add_argument("--rate", type=int, metavar="N", help="requests per minute of the created key (no limit)")
    keys.add_argument("--max-body", type=int, metavar="BYTES", help="size of a request of the created key (1 MiB)")
    keys.add_argument("--revoke", metavar="KEY", help="revoke the key with this id")
    keys.set_defaults(takes_config=True)
    hook = add_command(
        "hook",
        "recall and capture at the events of a coding assistant",
        _run_hook,
        _show_reply,
    )
    hook.add_argument("--url", help="a running `mem0-core serve` to ask (default: $MEM0_SERVER_URL, else the store)")
    hook.add_argument("--max-tokens", type=int, default=1000, metavar="N", help="maximum number of tokens (1000)")
    hook.set_defaults(is_standalone=True)
    for scoped in (keys, hook):
        _add_scope_options(scoped)


def _add_ui_command(add_command: _AddCommand) -> None:
    ui = add_command(
        "ui", "open the inspector in a browser; without ids, for everything", run.open_ui, show.format_nothing
    )
    ui.add_argument("--port", type=int, default=0, help="port of this machine to listen on (any free one)")
    ui.add_argument("--read-only", action="store_true", help="refuse all changes")
    ui.add_argument("--no-browser", action="store_true", help="only print the address")
    _add_scope_options(ui)


def _add_webhook_options(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--webhook",
        action="append",
        default=[],
        metavar="URL",
        help="send every change to this URL until it acknowledges; repeat it for several",
    )
    serve.add_argument(
        "--webhook-secret-file",
        metavar="FILE",
        help="file with the key of their signatures (default: $MEM0_WEBHOOK_SECRET)",
    )


def _add_scope_options(parser: argparse.ArgumentParser, *, is_top_level: bool = False) -> None:
    for axis in ("user", "agent", "run"):
        default = None if is_top_level else argparse.SUPPRESS
        parser.add_argument(f"--{axis}", metavar="ID", default=default, help=f"{axis} id of the memory")


def _add_as_of_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as-of", metavar="TIME", help="use the state of that time (ISO 8601)")


def _add_completion_command(add_command: _AddCommand) -> None:
    completion = add_command(
        "completion", "print a script that completes commands in your shell", _print_completion, show.format_script
    )
    completion.set_defaults(is_standalone=True)
    completion.add_argument("shell", choices=SHELLS)


def _run_hook(options: argparse.Namespace) -> dict[str, Any]:
    from mem0_core.cli._hook import run_hook  # and nothing else: an assistant waits for it

    return run_hook(options)


def _show_reply(result: dict[str, Any]) -> list[str]:
    return [json.dumps(result)]


def _print_completion(options: argparse.Namespace) -> dict[str, str]:
    return {"message": completion_script(build_parser(), options.shell)}
