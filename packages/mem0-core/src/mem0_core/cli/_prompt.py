"""Interactive prompt: commands with an @ prefix, history, completion and help.

`PromptState` interprets lines independently of a terminal. `run_prompt` reads them from one, with prompt_toolkit if it
is installed, else with readline.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mem0_core._system.files import describe_unwritable, make_file, make_folder
from mem0_core._system.records import dataclass
from mem0_core.cli._ids import resolve_memory_id
from mem0_core.cli._render import Renderer, choose_renderer, number_rows, render_plain
from mem0_core.domain.records import list_added
from mem0_core.domain.suggestions import find_nearest
from mem0_core.errors import InputError, Mem0Error, NotFoundError
from mem0_core.language.utterances import is_question, is_statement
from mem0_core.memory import Memory

ParseArguments = Callable[[Sequence[str]], argparse.Namespace]
AskUser = Callable[[str], str]


class _Quit(Exception):  # noqa: N818 - a request, not an error
    """Raised to end the prompt."""


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """An @command: its usage, its help, and a function that returns the arguments of a shell command."""

    usage: str
    help: str
    arguments: Callable[[PromptState, str], list[str] | None]


def _build_text_command(command: str) -> Callable[[PromptState, str], list[str]]:
    """Return a command that takes the unparsed rest of the line as its last argument."""
    return lambda session, rest: [command, *session.scope_arguments, "--", _require_text(rest)]


def _build_shell_command(command: str, *, scoped: bool = False) -> Callable[[PromptState, str], list[str]]:
    """Return a command that splits its arguments as a shell does."""
    return lambda session, rest: [command, *(session.scope_arguments if scoped else ()), *_split_words(rest)]


def _build_memory_command(command: str) -> Callable[[PromptState, str], list[str]]:
    return lambda session, rest: [
        command,
        *session.scope_arguments,
        "--",
        session.resolve_memory_id(_require_text(rest)),
    ]


def _parse_update(session: PromptState, rest: str) -> list[str]:
    memory, _, text = _require_text(rest).partition(" ")
    return ["update", *session.scope_arguments, "--", session.resolve_memory_id(memory), _require_text(text)]


def _parse_updateq(session: PromptState, rest: str) -> list[str] | None:
    query, arrow, text = rest.partition("=>")
    if not arrow:
        raise InputError("expected a query and a new text: @updateq QUERY => NEW TEXT")
    given = ["update-by-query", *session.scope_arguments]
    behind = ["--", _require_text(query.strip()), _require_text(text.strip())]
    return session.confirm([*given, "--dry-run", *behind], [*given, *behind])


def _parse_delete(session: PromptState, rest: str) -> list[str] | None:
    if session.is_memory_reference(_require_text(rest)):
        memory = session.resolve_memory_id(rest)
        of_scope = [*session.scope_arguments, "--", memory]
        return session.confirm(["get", *of_scope], ["delete", *of_scope])
    given = ["delete-by-query", *session.scope_arguments]
    return session.confirm([*given, "--dry-run", "--", rest], [*given, "--", rest])


def _parse_merge(session: PromptState, rest: str) -> list[str] | None:
    given = ["merge", *session.scope_arguments, *_split_words(rest)]
    return session.confirm(given, [*given, "--apply"])


def _parse_viz(session: PromptState, rest: str) -> list[str]:
    return ["visualize", *session.scope_arguments, "--", *_split_words(rest)]


def _build_scope_command(axis: str) -> Callable[[PromptState, str], None]:
    def set_id(session: PromptState, rest: str) -> None:
        if not rest:
            session.write_lines([f"current memory: {session.scope_label}"])
        else:
            session.set_scope_id(axis, None if rest == _NONE else rest)

    return set_id


def _show_help(session: PromptState, rest: str) -> None:
    name = rest.strip().removeprefix("@")
    session.write_lines(session.help(_SHELL_NAMES.get(name, name)))


def _raise_quit(session: PromptState, rest: str) -> None:
    raise _Quit


PROMPT_COMMANDS: dict[str, PromptCommand] = {
    "store": PromptCommand("@store TEXT", "add a text to the memory (also @add)", _build_text_command("add")),
    "remember": PromptCommand(
        "@remember QUESTION", "find the memories that answer it (also @search)", _build_text_command("search")
    ),
    "answer": PromptCommand("@answer QUESTION", "answer a question, with the proof", _build_text_command("answer")),
    "context": PromptCommand("@context QUERY", "show the prompt block for a query", _build_text_command("context")),
    "list": PromptCommand("@list", "list all memories", _build_shell_command("get-all", scoped=True)),
    "get": PromptCommand("@get MEMORY", "show one memory", _build_memory_command("get")),
    "update": PromptCommand("@update MEMORY TEXT", "replace the text of a memory", _parse_update),
    "updateq": PromptCommand("@updateq QUERY => TEXT", "the same for the match of a query; asks first", _parse_updateq),
    "delete": PromptCommand(
        "@delete MEMORY | QUERY", "delete a memory, or the matches of a query; asks first", _parse_delete
    ),
    "history": PromptCommand("@history MEMORY", "show every change of a memory", _build_memory_command("history")),
    "relations": PromptCommand(
        "@relations [--ended]", "list the valid relations", _build_shell_command("relations", scoped=True)
    ),
    "query": PromptCommand("@query MATCH ... RETURN ...", "query the graph", _build_text_command("query")),
    "traverse": PromptCommand(
        "@traverse QUESTION", "follow a chain: my sister's dog (also @path)", _build_text_command("traverse")
    ),
    "path": PromptCommand("@path QUESTION", "the same as @traverse", _build_text_command("traverse")),
    "viz": PromptCommand(
        "@viz [ENTITY ...]", "draw the graph, or the neighborhood of entities, as an HTML file", _parse_viz
    ),
    "merge": PromptCommand("@merge [entities|relationships]", "merge duplicate names; asks first", _parse_merge),
    "merges": PromptCommand("@merges", "list merges", _build_shell_command("merges", scoped=True)),
    "unmerge": PromptCommand("@unmerge MERGE", "revert a merge", _build_shell_command("unmerge", scoped=True)),
    "rebuild": PromptCommand("@rebuild", "embed everything again", _build_shell_command("rebuild")),
    "import": PromptCommand(
        "@import FILE [--format F]", "import chats from a file", _build_shell_command("import", scoped=True)
    ),
    "export": PromptCommand(
        "@export FILE", "write memories and graph to a file", _build_shell_command("export", scoped=True)
    ),
    "backup": PromptCommand("@backup FILE", "copy the whole store", _build_shell_command("backup")),
    "stats": PromptCommand("@stats", "show statistics", _build_shell_command("stats", scoped=True)),
    "user": PromptCommand(
        "@user [NAME]",
        "show the current memory, or change its user (- for none)",
        _build_scope_command("user"),
    ),
    "agent": PromptCommand("@agent [NAME]", "the same for an agent", _build_scope_command("agent")),
    "run": PromptCommand("@run [NAME]", "the same for a run", _build_scope_command("run")),
    "help": PromptCommand("@help [COMMAND]", "describe all commands, or one", _show_help),
    "quit": PromptCommand("@quit", "quit (also @exit or Ctrl-D)", _raise_quit),
    "exit": PromptCommand("@exit", "quit", _raise_quit),
}

_HELP_TEXT = """\
A line without @ is added to the memory if it states something; a question is answered.
@store adds any line. The words help, quit and exit alone on a line are commands even without @;
other commands without @ are asked about.
MEMORY is the number of one of the memories shown last, an id, or at least 4 digits of its end or start;
@user, @agent and @run reset the numbers."""

_NONE = "-"
"""Typed instead of a name: no id of that kind."""
_SHELL_NAMES = {
    "add": "store",
    "search": "remember",
    "ask": "answer",
    "get-all": "list",
    "update-by-query": "updateq",
    "visualize": "viz",
}
"""Names of the command line that the prompt spells differently, each with that of the prompt."""

_BARE = {"help": "@help", "quit": "@quit", "exit": "@quit"}
"""Whole lines that are commands without an @."""

_MEMORY_REFERENCE = re.compile(r"(?:\d+|[0-9a-f]{8}|[0-9a-f]{8}-[0-9a-f-]{27})(?:\s|$)")
_MAX_NUMBER_DIGITS = 3
"""Longer numbers are parts of an id."""
_FILE = re.compile(r"\S*[./]\S+(?:\s+--\S.*)?$")
_NAME = re.compile(r"\S+$")
_ARGUMENTS = {
    **dict.fromkeys(("update", "delete", "history", "get", "unmerge"), _MEMORY_REFERENCE),
    **dict.fromkeys(("import", "export", "backup"), _FILE),
    **dict.fromkeys(("user", "agent", "help"), _NAME),
    "updateq": re.compile(r".*=>"),
    "relations": re.compile(r"--\w+$"),
    "merge": re.compile(r"(?:entities|relationships)$"),
    "query": re.compile(r"(?:EXPLAIN|MATCH)\b", re.IGNORECASE),
}
"""Arguments of a command typed without an @ that show that it is no sentence."""
_ENTITY_COMMANDS = ("traverse", "path", "viz", "query", "remember", "answer", "context")


class PromptState:
    """State of a prompt session on one memory.

    Args:
        parse: Parses the arguments of a shell command.
        ids: Initial ids: user, agent, run.
        write_lines: Displays lines.
        render: Converts lines and tables to the lines that are displayed.
        ask: Displays a question and returns the answer. None if input is not interactive; commands that ask for
            confirmation fail then.
    """

    def __init__(
        self,
        memory: Memory,
        parse: ParseArguments,
        ids: dict[str, str | None],
        *,
        write_lines: Callable[[Sequence[str]], None],
        ask: AskUser | None,
        render: Renderer = render_plain,
    ) -> None:
        self.write_lines = write_lines
        self._render = render
        self.failure_count = 0
        self._memory = memory
        self._parse = parse
        self._ids = dict(ids)
        self._ask = ask
        self._shown_ids: list[str] = []
        self._cached_entity_names: list[str] | None = None

    @property
    def scope_arguments(self) -> list[str]:
        """Current ids as arguments of a command."""
        return [f"--{axis}={value}" for axis, value in self._ids.items() if value is not None]

    @property
    def _scope_ids(self) -> dict[str, str | None]:
        return {f"{axis}_id": value for axis, value in self._ids.items()}

    @property
    def scope_label(self) -> str:
        return " ".join(f"{axis}:{value}" for axis, value in self._ids.items() if value is not None) or "no ids"

    def set_scope_id(self, axis: str, value: str | None) -> None:
        self._ids[axis] = value
        self._shown_ids = []
        self._cached_entity_names = None
        self.write_lines([f"current memory: {self.scope_label}"])

    def run(self, line: str) -> bool:
        """Execute a line; return False to end the session. Errors are displayed, and the session continues."""
        try:
            self._run_line(line.strip())
        except _Quit:
            return False
        except Mem0Error as error:
            self.failure_count += 1
            self.write_lines([f"! {error}"])
        return True

    def help(self, name: str = "") -> list[str]:
        if name:
            command = PROMPT_COMMANDS.get(name)
            return [f"{command.usage}: {command.help}"] if command else [f"! unknown command @{name}"]
        width = max(len(command.usage) for command in PROMPT_COMMANDS.values())
        return [
            *(f"  {command.usage:<{width}}  {command.help}" for command in PROMPT_COMMANDS.values()),
            "",
            *_HELP_TEXT.splitlines(),
        ]

    def completions(self, line: str) -> Iterator[str]:
        """Yield completions of the last word of a line: commands, or names in the graph."""
        head, _, word = line.rpartition(" ")
        if not head:
            yield from (f"@{name}" for name in PROMPT_COMMANDS if word and f"@{name}".startswith(word))
            return
        if head.split()[0].removeprefix("@") in _ENTITY_COMMANDS and word:
            folded = word.lstrip("\"'").casefold()
            yield from (name for name in self._entity_names() if name.casefold().startswith(folded))

    # --- Used by commands --------------------------------------------------------------------------------------------

    def is_memory_reference(self, given: str) -> bool:
        """Return True for a number, and for an id or a part of one (an ambiguous part raises UsageError)."""
        if given.isdecimal():
            return True
        try:
            return " " not in given and bool(self.resolve_memory_id(given))
        except NotFoundError:
            return False

    def resolve_memory_id(self, given: str) -> str:
        """Return the id of the memory for a displayed number, an id or a part of an id."""
        if not given.isdecimal() or len(given) > _MAX_NUMBER_DIGITS:
            return resolve_memory_id(self._memory, given, self._scope_ids)
        if not 0 < int(given) <= len(self._shown_ids):
            raise InputError(f"there is no memory number {given}; list or search first")
        return self._shown_ids[int(given) - 1]

    def confirm(self, preview: list[str], action: list[str]) -> list[str] | None:
        """Run `preview` and ask; return `action` if the user agrees, None if not or if there is nothing to do."""
        result = self._execute(preview)
        if not result or not any(result.get(key) for key in ("id", "results", "merges")):
            return None
        if self._ask is None:
            raise InputError(
                "not done: this asks for confirmation, and input is not interactive; use the shell command"
            )
        if self._ask("do it? [y/N] ").strip().casefold() in ("y", "yes"):
            return action
        self.write_lines(["not done"])
        return None

    def _run_line(self, line: str) -> None:
        if not line:
            return
        line = _BARE.get(line.casefold(), line)
        if not line.startswith("@"):
            command = self._interpret_text(line)
            if command is None:
                return
            line = command
        name, _, rest = line[1:].partition(" ")
        name = _SHELL_NAMES.get(name, name)
        if name not in PROMPT_COMMANDS:
            near = [known for known in PROMPT_COMMANDS if name and known.startswith(name) and known != "path"]
            if len(near) != 1:
                nearest = find_nearest(name, PROMPT_COMMANDS)
                hint = f" did you mean @{nearest}?" if nearest else ""
                raise InputError(f"unknown command @{name};{hint} @help lists the commands")
            name = near[0]
        chosen = PROMPT_COMMANDS[name]
        try:
            arguments = chosen.arguments(self, rest.strip())
        except _MissingArgumentError as error:
            raise InputError(f"@{name} needs an argument; write {chosen.usage}") from error
        if arguments is not None:
            self._execute(arguments)

    def _interpret_text(self, line: str) -> str | None:
        """Return the command for a line without @; None if there is nothing to do."""
        if _looks_like_command(line):
            name, _, rest = line.partition(" ")
            return self._ask_about_command(f"{name.casefold()} {rest}".strip())
        if len(line) > 1 and is_statement(line):  # a letter is a late answer to a question of the prompt
            return f"@store {line}"
        if is_question(line):
            self._answer_question(line)
            return None
        self.write_lines(["nothing to store; @store TEXT stores it anyway"])
        return None

    def _answer_question(self, line: str) -> None:
        """Show the answer with its proof; if it is unknown, the memories that a search finds."""
        given = [*self.scope_arguments, "--", line]
        if self._execute(["answer", *given])["answer"] is None:
            self._execute(["search", *given])

    def _ask_about_command(self, line: str) -> str | None:
        if self._ask is None:
            raise InputError(f"not stored: did you mean @{line}? Write @store {line} to store it")
        if self._ask(f"run @{line}? [y/N] ").strip().casefold() in ("y", "yes"):
            return f"@{line}"
        self.write_lines([f"not stored; @store {line} stores it"])
        return None

    def _execute(self, arguments: list[str]) -> Any:
        try:
            options = self._parse(arguments)
        except SystemExit as error:  # argparse has printed the reason
            raise InputError("invalid arguments; @help shows the usage") from error
        if options.takes_config or options.is_standalone:
            raise InputError("this command needs a closed store: run it from a shell, after @quit")
        options.is_prompt = True
        result = options.act(self._memory, options)
        self._cached_entity_names = None
        shown = _list_memories(result)
        if shown is not None:
            self._shown_ids = [entry["id"] for entry in shown]
        self.write_lines(self._render(number_rows(options.show(result))))
        return result

    def _entity_names(self) -> list[str]:
        if self._cached_entity_names is None:
            try:
                user, agent, run = (self._ids.get(axis) for axis in ("user", "agent", "run"))
                relations = self._memory.relations(user_id=user, agent_id=agent, run_id=run, limit=2_000)
            except Mem0Error:
                relations = []
            ends = {relation["source"] for relation in relations} | {relation["destination"] for relation in relations}
            self._cached_entity_names = sorted(ends)
        return self._cached_entity_names


def _list_memories(result: Any) -> list[dict[str, Any]] | None:
    """Return the memories that the display of a result lists, in its order; None if it is no list of memories."""
    if not isinstance(result, dict):
        return None
    if "answer" in result:
        return [] if result["answer"] is None else list(result["memories"])
    return list_added(result) if "results" in result else None


def _looks_like_command(line: str) -> bool:
    """Return True if a line without @ is a command's name, alone or with arguments that no sentence has."""
    name, _, rest = line.partition(" ")
    name, rest = name.casefold(), rest.strip()
    if name not in PROMPT_COMMANDS:
        return False
    pattern = _ARGUMENTS.get(name)
    return not rest or (pattern is not None and pattern.match(rest) is not None)


class _MissingArgumentError(Exception):
    """A command of the prompt was given without its argument."""


def _require_text(rest: str) -> str:
    if not rest.strip():
        raise _MissingArgumentError
    return rest.strip()


def _split_words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise InputError(f"invalid quotes: {error}") from error


# --- Terminal ----------------------------------------------------------------------------------------------------


def run_prompt(memory: Memory, parse: ParseArguments, ids: dict[str, str | None], *, history: Path) -> dict[str, int]:
    """Read and execute lines until the user quits; return the number of ``lines`` and of ``failed`` ones.

    Input from a pipe is read without a prompt, and commands that ask for confirmation fail.
    """
    is_interactive = sys.stdin.isatty()
    ask: AskUser | None = input if is_interactive else None
    session = PromptState(memory, parse, ids, write_lines=_print, ask=ask, render=choose_renderer(sys.stdout))
    if is_interactive:
        _print([f"mem0-core, memory of {session.scope_label}. @help lists the commands, Ctrl-D quits."])
    count = 0
    for line in _read_lines(session, history) if is_interactive else sys.stdin:
        try:
            count += 1
            if not session.run(line):
                break
        except KeyboardInterrupt:
            _print(["! interrupted; committed changes are kept"])
    return {"lines": count, "failed": 0 if is_interactive else session.failure_count}


def _print(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _read_lines(session: PromptState, history: Path) -> Iterator[str]:
    read = _build_reader(session, history)
    while True:
        try:
            yield read("> ")
        except KeyboardInterrupt:
            _print([""])
        except EOFError:
            _print([""])
            return


def _build_reader(session: PromptState, history: Path) -> AskUser:
    """Return a function that reads a line: with prompt_toolkit if installed, else readline, else plain input."""
    _create_private_file(history)
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.history import FileHistory
    except ImportError:
        return _build_readline_reader(session, history)
    from mem0_core.cli._completion import SessionCompleter

    prompt: Any = PromptSession(
        history=FileHistory(str(history)),
        auto_suggest=AutoSuggestFromHistory(),
        completer=SessionCompleter(session),
        complete_while_typing=True,
    )
    return lambda question: str(prompt.prompt(question))


def _build_readline_reader(session: PromptState, history: Path) -> AskUser:
    try:
        import readline
    except ImportError:
        return input
    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            found[:] = session.completions(readline.get_line_buffer()[: readline.get_endidx()])
        return f"{found[state]} " if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    lines = history.with_name(f"{history.name}.readline")  # in another format than that of prompt_toolkit
    _create_private_file(lines)
    readline.read_history_file(lines)

    def read_line(question: str) -> str:
        line = input(question)
        readline.append_history_file(1, lines)
        return line

    return read_line


def _create_private_file(file: Path) -> None:
    """Create a file that only its owner can read: it contains the input lines."""
    try:
        make_folder(file.parent)
        make_file(file)
    except OSError as error:
        raise InputError(f"the prompt's history {describe_unwritable(file, error)}") from error
