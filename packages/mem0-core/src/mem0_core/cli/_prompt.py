"""The interactive prompt: the commands under an @, with history, completion and help.

What a line means is read by `PromptState`, which knows nothing of terminals; `run_prompt` reads lines from one, with
prompt_toolkit where it is installed, else with readline.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mem0_core._files import make_file, make_folder
from mem0_core.errors import InputError, Mem0Error
from mem0_core.memory import Memory

__all__ = ["PromptState", "run_prompt"]

ParseArguments = Callable[[Sequence[str]], argparse.Namespace]
AskUser = Callable[[str], str]


class _Quit(Exception):
    """The user is done."""


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """One @command: how it is written, what it does, and the shell's command behind it."""

    usage: str
    help: str
    arguments: Callable[[PromptState, str], list[str] | None]


def _build_text_command(command: str) -> Callable[[PromptState, str], list[str]]:
    """A command whose last argument is the rest of the line, as it stands."""
    return lambda session, rest: [command, *session.scope_arguments, "--", _require_text(rest)]


def _build_shell_command(command: str, *, scoped: bool = False) -> Callable[[PromptState, str], list[str]]:
    """A command that takes a shell's arguments."""
    return lambda session, rest: [command, *(session.scope_arguments if scoped else ()), *_split_words(rest)]


def _build_memory_command(command: str) -> Callable[[PromptState, str], list[str]]:
    return lambda session, rest: [command, "--", session.resolve_memory_id(_require_text(rest))]


def _parse_update(session: PromptState, rest: str) -> list[str]:
    memory, _, text = _require_text(rest).partition(" ")
    return ["update", "--", session.resolve_memory_id(memory), _require_text(text)]


def _parse_updateq(session: PromptState, rest: str) -> list[str] | None:
    query, arrow, text = rest.partition("=>")
    if not arrow:
        raise InputError("say what is meant and what it shall be: @updateq QUERY => NEW TEXT")
    given = ["updateq", *session.scope_arguments]
    behind = ["--", _require_text(query.strip()), _require_text(text.strip())]
    return session.confirm([*given, "--dry-run", *behind], [*given, *behind])


def _parse_delete(session: PromptState, rest: str) -> list[str] | None:
    if session.is_memory_reference(_require_text(rest)):
        memory = session.resolve_memory_id(rest)
        return session.confirm(["get", "--", memory], ["delete", "--", memory])
    given = ["delete", *session.scope_arguments, f"--query={rest}"]
    return session.confirm([*given, "--dry-run"], given)


def _parse_merge(session: PromptState, rest: str) -> list[str] | None:
    given = ["merge", *session.scope_arguments, *_split_words(rest)]
    return session.confirm(given, [*given, "--apply"])


def _parse_viz(session: PromptState, rest: str) -> list[str]:
    return ["viz", *session.scope_arguments, "--", *_split_words(rest)]


def _build_scope_command(axis: str) -> Callable[[PromptState, str], None]:
    def name(session: PromptState, rest: str) -> None:
        if not rest:
            session.write_lines([f"this is the memory of {session.scope_label}"])
        else:
            session.set_scope_id(axis, None if rest == _NONE else rest)

    return name


def _show_help(session: PromptState, rest: str) -> None:
    session.write_lines(session.help(rest.strip().removeprefix("@")))


def _raise_quit(session: PromptState, rest: str) -> None:
    raise _Quit


PROMPT_COMMANDS: dict[str, PromptCommand] = {
    "store": PromptCommand("@store TEXT", "remember a text", _build_text_command("add")),
    "remember": PromptCommand("@remember QUESTION", "recall what answers it", _build_text_command("search")),
    "list": PromptCommand("@list", "list all memories", _build_shell_command("list", scoped=True)),
    "update": PromptCommand("@update MEMORY TEXT", "give a memory a new text", _parse_update),
    "updateq": PromptCommand(
        "@updateq QUERY => TEXT", "the same for the memory that a query means; asks first", _parse_updateq
    ),
    "delete": PromptCommand(
        "@delete MEMORY | QUERY", "erase a memory, or those that a query means; asks first", _parse_delete
    ),
    "history": PromptCommand("@history MEMORY", "show every change of a memory", _build_memory_command("history")),
    "relations": PromptCommand(
        "@relations [--ended]", "list the relations that hold", _build_shell_command("relations", scoped=True)
    ),
    "query": PromptCommand("@query MATCH ... RETURN ...", "ask the graph", _build_text_command("query")),
    "path": PromptCommand("@path QUESTION", "follow a chain: my sister's dog", _build_text_command("path")),
    "viz": PromptCommand("@viz [ENTITY ...]", "draw the graph, or what is near these, as an HTML file", _parse_viz),
    "merge": PromptCommand(
        "@merge [entities|relationships]", "make one of names that mean one thing; asks first", _parse_merge
    ),
    "unmerge": PromptCommand("@unmerge MERGE", "take a merge back", _build_shell_command("unmerge")),
    "rebuild": PromptCommand("@rebuild", "embed everything anew", _build_shell_command("rebuild")),
    "import": PromptCommand(
        "@import FILE [--format F]", "bring chats from a file", _build_shell_command("import", scoped=True)
    ),
    "export": PromptCommand(
        "@export FILE", "write memories and graph out", _build_shell_command("export", scoped=True)
    ),
    "backup": PromptCommand("@backup FILE", "copy the whole store", _build_shell_command("backup")),
    "stats": PromptCommand("@stats", "tell how much there is", _build_shell_command("stats", scoped=True)),
    "user": PromptCommand(
        "@user [NAME]",
        "whose memory it is: change to a user, with - to none",
        _build_scope_command("user"),
    ),
    "agent": PromptCommand("@agent [NAME]", "the same for an agent", _build_scope_command("agent")),
    "run": PromptCommand("@run [NAME]", "the same for a run", _build_scope_command("run")),
    "help": PromptCommand("@help [COMMAND]", "tell of the commands, or of one", _show_help),
    "quit": PromptCommand("@quit", "go (so do @exit and Ctrl-D)", _raise_quit),
    "exit": PromptCommand("@exit", "go", _raise_quit),
}

_HELP_TEXT = """\
A line without @ is remembered as it stands, unless it ends with a question mark: then it is answered from memory.
Without an @, help, quit and exit are commands too where they are the whole line.
MEMORY is an id, or the number in front of one of the memories shown last; @user, @agent and @run forget the numbers."""

_NONE = "-"
"""Typed in place of a name: no id of that kind."""
_BARE = {"help": "@help", "quit": "@quit", "exit": "@quit"}
"""Lines that are commands without an @."""

_ENTITY_COMMANDS = ("path", "viz", "query", "remember")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class PromptState:
    """A conversation with one memory.

    Args:
        parse: reads a command as the shell gives it.
        ids: whose memory it is, to begin with: user, agent, run.
        tell: shows lines. ask: puts a question and returns the answer; None where nobody is there to answer: what asks
            first is then refused.
    """

    def __init__(
        self,
        memory: Memory,
        parse: ParseArguments,
        ids: dict[str, str | None],
        *,
        write_lines: Callable[[Sequence[str]], None],
        ask: AskUser | None,
    ) -> None:
        self.write_lines = write_lines
        self.failure_count = 0
        self._memory = memory
        self._parse = parse
        self._ids = dict(ids)
        self._ask = ask
        self._shown_ids: list[str] = []
        self._cached_entity_names: list[str] | None = None

    @property
    def scope_arguments(self) -> list[str]:
        """Whose memory it is, as arguments of a command."""
        return [f"--{axis}={value}" for axis, value in self._ids.items() if value is not None]

    @property
    def scope_label(self) -> str:
        return " ".join(f"{axis}:{value}" for axis, value in self._ids.items() if value is not None) or "nobody"

    def set_scope_id(self, axis: str, value: str | None) -> None:
        self._ids[axis] = value
        self._shown_ids = []
        self._cached_entity_names = None
        self.write_lines([f"this is the memory of {self.scope_label}"])

    def run(self, line: str) -> bool:
        """Do what a line says; False when the user is done. What goes wrong is told, and the session goes on."""
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
            verb = PROMPT_COMMANDS.get(name)
            return [f"{verb.usage}: {verb.help}"] if verb else [f"! there is no @{name}"]
        width = max(len(verb.usage) for verb in PROMPT_COMMANDS.values())
        return [
            *(f"  {verb.usage:<{width}}  {verb.help}" for verb in PROMPT_COMMANDS.values()),
            "",
            *_HELP_TEXT.splitlines(),
        ]

    def completions(self, line: str) -> Iterator[str]:
        """What the last word of a line may become: a command, or a name of the graph."""
        head, _, word = line.rpartition(" ")
        if not head:
            yield from (f"@{name}" for name in PROMPT_COMMANDS if word and f"@{name}".startswith(word))
            return
        if head.split()[0].removeprefix("@") in _ENTITY_COMMANDS and word:
            folded = word.lstrip("\"'").casefold()
            yield from (name for name in self._entity_names() if name.casefold().startswith(folded))

    # --- what verbs need ---------------------------------------------------------------------------------------------

    def is_memory_reference(self, given: str) -> bool:
        return given.isdecimal() or bool(_UUID.fullmatch(given)) or self._memory.get(given) is not None

    def resolve_memory_id(self, given: str) -> str:
        """The id that a number stands for, or the id itself."""
        if not given.isdecimal():
            return given
        if not 0 < int(given) <= len(self._shown_ids):
            raise InputError(f"no memory was shown with the number {given}")
        return self._shown_ids[int(given) - 1]

    def confirm(self, preview: list[str], action: list[str]) -> list[str] | None:
        """`action`, if the user agrees with what `preview` shows; None if not, or if there is nothing to do."""
        result = self._execute(preview)
        if not result or not any(result.get(key) for key in ("id", "results", "merges")):
            return None
        if self._ask is None:
            raise InputError("not done: this asks first, and nobody is there to answer; use a command of the shell")
        if self._ask("do it? [y/N] ").strip().casefold() in ("y", "yes"):
            return action
        self.write_lines(["not done"])
        return None

    def _run_line(self, line: str) -> None:
        if not line:
            return
        line = _BARE.get(line.casefold(), line)
        if not line.startswith("@"):
            line = f"@remember {line}" if line.endswith("?") else f"@store {line}"
        name, _, rest = line[1:].partition(" ")
        if name not in PROMPT_COMMANDS:
            near = [known for known in PROMPT_COMMANDS if name and known.startswith(name)]
            if len(near) != 1:
                raise InputError(f"there is no @{name}; @help tells what there is")
            name = near[0]
        arguments = PROMPT_COMMANDS[name].arguments(self, rest.strip())
        if arguments is not None:
            self._execute(arguments)

    def _execute(self, arguments: list[str]) -> Any:
        try:
            options = self._parse(arguments)
        except SystemExit as error:  # argparse has said why
            raise InputError("that is not how it is written; @help tells") from error
        if options.takes_config:
            raise InputError("that is done from a shell, while no prompt has the store open")
        result = options.act(self._memory, options)
        self._cached_entity_names = None
        self.write_lines(self._number_lines(result, options.show(result)))
        return result

    def _number_lines(self, result: Any, lines: list[str]) -> list[str]:
        """Lines that show memories with a number in front, by which they can be named."""
        entries = result.get("results") if isinstance(result, dict) else None
        if not entries:
            return lines
        self._shown_ids = [entry["id"] for entry in entries]
        return [*(f"{n:>2}  {line}" for n, line in enumerate(lines[: len(entries)], 1)), *lines[len(entries) :]]

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


def _require_text(rest: str) -> str:
    if not rest.strip():
        raise InputError("something is missing; @help tells what is expected")
    return rest.strip()


def _split_words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise InputError(f"cannot be read: {error}") from error


# --- the terminal ------------------------------------------------------------------------------------------------


def run_prompt(memory: Memory, parse: ParseArguments, ids: dict[str, str | None], *, history: Path) -> dict[str, int]:
    """Read lines until the user is done; returns how many ``lines`` there were.

    Where no person watches (a pipe), they are read without a prompt, what asks first is refused, and ``failure_count``
    says how many went wrong.
    """
    watched = sys.stdin.isatty()
    ask: AskUser | None = input if watched else None
    session = PromptState(memory, parse, ids, write_lines=_print, ask=ask)
    if watched:
        _print([f"mem0-core: the memory of {session.scope_label}. @help tells what can be said, Ctrl-D ends it."])
    count = 0
    for line in _read_lines(session, history) if watched else sys.stdin:
        try:
            count += 1
            if not session.run(line):
                break
        except KeyboardInterrupt:
            _print(["! interrupted; what was committed is kept"])
    return {"lines": count, "failed": 0 if watched else session.failure_count}


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
    """What reads a line: prompt_toolkit where it is installed, else readline, else plain input."""
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
    lines = history.with_name(f"{history.name}.readline")  # of another form than prompt_toolkit's
    _create_private_file(lines)
    readline.read_history_file(lines)

    def read(question: str) -> str:
        line = input(question)
        readline.append_history_file(1, lines)
        return line

    return read


def _create_private_file(file: Path) -> None:
    """Make the file for oneself alone: it holds what was said to be remembered."""
    try:
        make_folder(file.parent)
        make_file(file)
    except OSError as error:
        raise InputError(f"cannot write the prompt's history {file}: {error}") from error
