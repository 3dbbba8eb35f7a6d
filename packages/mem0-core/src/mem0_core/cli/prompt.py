"""The interactive prompt: the commands under an @, with history, completion and help.

What a line means is read by `Session`, which knows nothing of terminals; `converse` reads lines from one, with
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

from mem0_core.errors import InputError, Mem0Error
from mem0_core.files import make_file, make_folder
from mem0_core.memory import Memory

__all__ = ["Session", "converse"]

Parse = Callable[[Sequence[str]], argparse.Namespace]
Ask = Callable[[str], str]


class _Quit(Exception):
    """The user is done."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One @command: how it is written, what it does, and the shell's command behind it."""

    usage: str
    help: str
    arguments: Callable[[Session, str], list[str] | None]


def _text(command: str) -> Callable[[Session, str], list[str]]:
    """A command whose last argument is the rest of the line, as it stands."""
    return lambda session, rest: [command, *session.scope, "--", _needed(rest)]


def _plain(command: str, *, scoped: bool = False) -> Callable[[Session, str], list[str]]:
    """A command that takes a shell's arguments."""
    return lambda session, rest: [command, *(session.scope if scoped else ()), *_words(rest)]


def _of_one(command: str) -> Callable[[Session, str], list[str]]:
    return lambda session, rest: [command, "--", session.memory(_needed(rest))]


def _update(session: Session, rest: str) -> list[str]:
    memory, _, text = _needed(rest).partition(" ")
    return ["update", "--", session.memory(memory), _needed(text)]


def _updateq(session: Session, rest: str) -> list[str] | None:
    query, arrow, text = rest.partition("=>")
    if not arrow:
        raise InputError("say what is meant and what it shall be: @updateq QUERY => NEW TEXT")
    given = ["updateq", *session.scope]
    behind = ["--", _needed(query.strip()), _needed(text.strip())]
    return session.confirmed([*given, "--dry-run", *behind], [*given, *behind])


def _delete(session: Session, rest: str) -> list[str] | None:
    if session.names_memory(_needed(rest)):
        memory = session.memory(rest)
        return session.confirmed(["get", "--", memory], ["delete", "--", memory])
    given = ["delete", *session.scope, f"--query={rest}"]
    return session.confirmed([*given, "--dry-run"], given)


def _merge(session: Session, rest: str) -> list[str] | None:
    given = ["merge", *session.scope, *_words(rest)]
    return session.confirmed(given, [*given, "--apply"])


def _viz(session: Session, rest: str) -> list[str]:
    return ["viz", *session.scope, "--", *_words(rest)]


def _axis(axis: str) -> Callable[[Session, str], None]:
    def name(session: Session, rest: str) -> None:
        if not rest:
            session.tell([f"this is the memory of {session.whose}"])
        else:
            session.name(axis, None if rest == _NONE else rest)

    return name


def _help(session: Session, rest: str) -> None:
    session.tell(session.help(rest.strip().removeprefix("@")))


def _quit(session: Session, rest: str) -> None:
    raise _Quit


VERBS: dict[str, Verb] = {
    "store": Verb("@store TEXT", "remember a text", _text("add")),
    "remember": Verb("@remember QUESTION", "recall what answers it", _text("search")),
    "list": Verb("@list", "list all memories", _plain("list", scoped=True)),
    "update": Verb("@update MEMORY TEXT", "give a memory a new text", _update),
    "updateq": Verb("@updateq QUERY => TEXT", "the same for the memory that a query means; asks first", _updateq),
    "delete": Verb("@delete MEMORY | QUERY", "erase a memory, or those that a query means; asks first", _delete),
    "history": Verb("@history MEMORY", "show every change of a memory", _of_one("history")),
    "relations": Verb("@relations [--ended]", "list the relations that hold", _plain("relations", scoped=True)),
    "query": Verb("@query MATCH ... RETURN ...", "ask the graph", _text("query")),
    "path": Verb("@path QUESTION", "follow a chain: my sister's dog", _text("path")),
    "viz": Verb("@viz [ENTITY ...]", "draw the graph, or what is near these, as an HTML file", _viz),
    "merge": Verb("@merge [entities|relationships]", "make one of names that mean one thing; asks first", _merge),
    "unmerge": Verb("@unmerge MERGE", "take a merge back", _plain("unmerge")),
    "rebuild": Verb("@rebuild", "embed everything anew", _plain("rebuild")),
    "import": Verb("@import FILE [--format F]", "bring chats from a file", _plain("import", scoped=True)),
    "export": Verb("@export FILE", "write memories and graph out", _plain("export", scoped=True)),
    "backup": Verb("@backup FILE", "copy the whole store", _plain("backup")),
    "stats": Verb("@stats", "tell how much there is", _plain("stats", scoped=True)),
    "user": Verb(
        "@user [NAME]",
        "whose memory it is: change to a user, with - to none",
        _axis("user"),
    ),
    "agent": Verb("@agent [NAME]", "the same for an agent", _axis("agent")),
    "run": Verb("@run [NAME]", "the same for a run", _axis("run")),
    "help": Verb("@help [COMMAND]", "tell of the commands, or of one", _help),
    "quit": Verb("@quit", "go (so do @exit and Ctrl-D)", _quit),
    "exit": Verb("@exit", "go", _quit),
}

_ABOUT = """\
A line without @ is remembered as it stands, unless it ends with a question mark: then it is answered from memory.
Without an @, help, quit and exit are commands too where they are the whole line.
MEMORY is an id, or the number in front of one of the memories shown last; @user, @agent and @run forget the numbers."""

_NONE = "-"
"""Typed in place of a name: no id of that kind."""
_BARE = {"help": "@help", "quit": "@quit", "exit": "@quit"}
"""Lines that are commands without an @."""

_ENTITIES = ("path", "viz", "query", "remember")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Session:
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
        parse: Parse,
        ids: dict[str, str | None],
        *,
        tell: Callable[[Sequence[str]], None],
        ask: Ask | None,
    ) -> None:
        self.tell = tell
        self.failed = 0
        self._memory = memory
        self._parse = parse
        self._ids = dict(ids)
        self._ask = ask
        self._shown: list[str] = []
        self._entities: list[str] | None = None

    @property
    def scope(self) -> list[str]:
        """Whose memory it is, as arguments of a command."""
        return [f"--{axis}={value}" for axis, value in self._ids.items() if value is not None]

    @property
    def whose(self) -> str:
        return " ".join(f"{axis}:{value}" for axis, value in self._ids.items() if value is not None) or "nobody"

    def name(self, axis: str, value: str | None) -> None:
        self._ids[axis] = value
        self._shown = []
        self._entities = None
        self.tell([f"this is the memory of {self.whose}"])

    def run(self, line: str) -> bool:
        """Do what a line says; False when the user is done. What goes wrong is told, and the session goes on."""
        try:
            self._do(line.strip())
        except _Quit:
            return False
        except Mem0Error as error:
            self.failed += 1
            self.tell([f"! {error}"])
        return True

    def help(self, name: str = "") -> list[str]:
        if name:
            verb = VERBS.get(name)
            return [f"{verb.usage}: {verb.help}"] if verb else [f"! there is no @{name}"]
        width = max(len(verb.usage) for verb in VERBS.values())
        return [*(f"  {verb.usage:<{width}}  {verb.help}" for verb in VERBS.values()), "", *_ABOUT.splitlines()]

    def completions(self, line: str) -> Iterator[str]:
        """What the last word of a line may become: a command, or a name of the graph."""
        head, _, word = line.rpartition(" ")
        if not head:
            yield from (f"@{name}" for name in VERBS if word and f"@{name}".startswith(word))
            return
        if head.split()[0].removeprefix("@") in _ENTITIES and word:
            folded = word.lstrip("\"'").casefold()
            yield from (name for name in self._names() if name.casefold().startswith(folded))

    # --- what verbs need ---------------------------------------------------------------------------------------------

    def names_memory(self, given: str) -> bool:
        return given.isdecimal() or bool(_ID.fullmatch(given)) or self._memory.get(given) is not None

    def memory(self, given: str) -> str:
        """The id that a number stands for, or the id itself."""
        if not given.isdecimal():
            return given
        if not 0 < int(given) <= len(self._shown):
            raise InputError(f"no memory was shown with the number {given}")
        return self._shown[int(given) - 1]

    def confirmed(self, looking: list[str], doing: list[str]) -> list[str] | None:
        """`doing`, if the user agrees with what `looking` shows; None if not, or if there is nothing to do."""
        result = self._act(looking)
        if not result or not any(result.get(key) for key in ("id", "results", "merges")):
            return None
        if self._ask is None:
            raise InputError("not done: this asks first, and nobody is there to answer; use a command of the shell")
        if self._ask("do it? [y/N] ").strip().casefold() in ("y", "yes"):
            return doing
        self.tell(["not done"])
        return None

    def _do(self, line: str) -> None:
        if not line:
            return
        line = _BARE.get(line.casefold(), line)
        if not line.startswith("@"):
            line = f"@remember {line}" if line.endswith("?") else f"@store {line}"
        name, _, rest = line[1:].partition(" ")
        if name not in VERBS:
            near = [known for known in VERBS if name and known.startswith(name)]
            if len(near) != 1:
                raise InputError(f"there is no @{name}; @help tells what there is")
            name = near[0]
        arguments = VERBS[name].arguments(self, rest.strip())
        if arguments is not None:
            self._act(arguments)

    def _act(self, arguments: list[str]) -> Any:
        try:
            options = self._parse(arguments)
        except SystemExit as error:  # argparse has said why
            raise InputError("that is not how it is written; @help tells") from error
        if options.on_files:
            raise InputError("that is done from a shell, while no prompt has the store open")
        result = options.act(self._memory, options)
        self._entities = None
        self.tell(self._numbered(result, options.show(result)))
        return result

    def _numbered(self, result: Any, lines: list[str]) -> list[str]:
        """Lines that show memories with a number in front, by which they can be named."""
        entries = result.get("results") if isinstance(result, dict) else None
        if not entries:
            return lines
        self._shown = [entry["id"] for entry in entries]
        return [*(f"{n:>2}  {line}" for n, line in enumerate(lines[: len(entries)], 1)), *lines[len(entries) :]]

    def _names(self) -> list[str]:
        if self._entities is None:
            try:
                user, agent, run = (self._ids.get(axis) for axis in ("user", "agent", "run"))
                relations = self._memory.relations(user_id=user, agent_id=agent, run_id=run, limit=2_000)
            except Mem0Error:
                relations = []
            ends = {relation["source"] for relation in relations} | {relation["destination"] for relation in relations}
            self._entities = sorted(ends)
        return self._entities


def _needed(rest: str) -> str:
    if not rest.strip():
        raise InputError("something is missing; @help tells what is expected")
    return rest.strip()


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise InputError(f"cannot be read: {error}") from error


# --- the terminal ------------------------------------------------------------------------------------------------


def converse(memory: Memory, parse: Parse, ids: dict[str, str | None], *, history: Path) -> dict[str, int]:
    """Read lines until the user is done; returns how many ``lines`` there were.

    Where no person watches (a pipe), they are read without a prompt, what asks first is refused, and ``failed`` says
    how many went wrong.
    """
    watched = sys.stdin.isatty()
    ask: Ask | None = input if watched else None
    session = Session(memory, parse, ids, tell=_print, ask=ask)
    if watched:
        _print([f"mem0-core: the memory of {session.whose}. @help tells what can be said, Ctrl-D ends it."])
    count = 0
    for line in _lines(session, history) if watched else sys.stdin:
        try:
            count += 1
            if not session.run(line):
                break
        except KeyboardInterrupt:
            _print(["! interrupted; what was committed is kept"])
    return {"lines": count, "failed": 0 if watched else session.failed}


def _print(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _lines(session: Session, history: Path) -> Iterator[str]:
    read = _reader(session, history)
    while True:
        try:
            yield read("> ")
        except KeyboardInterrupt:
            _print([""])
        except EOFError:
            _print([""])
            return


def _reader(session: Session, history: Path) -> Ask:
    """What reads a line: prompt_toolkit where it is installed, else readline, else plain input."""
    _own(history)
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.history import FileHistory
    except ImportError:
        return _with_readline(session, history)
    from mem0_core.cli.completing import SessionCompleter

    prompt: Any = PromptSession(
        history=FileHistory(str(history)),
        auto_suggest=AutoSuggestFromHistory(),
        completer=SessionCompleter(session),
        complete_while_typing=True,
    )
    return lambda question: str(prompt.prompt(question))


def _with_readline(session: Session, history: Path) -> Ask:
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
    _own(lines)
    readline.read_history_file(lines)

    def read(question: str) -> str:
        line = input(question)
        readline.append_history_file(1, lines)
        return line

    return read


def _own(file: Path) -> None:
    """Make the file for oneself alone: it holds what was said to be remembered."""
    try:
        make_folder(file.parent)
        make_file(file)
    except OSError as error:
        raise InputError(f"cannot write the prompt's history {file}: {error}") from error
