"""The prompt: what lines mean, what completes them, and the whole of it in a terminal."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from mem0_core.cli._arguments import build_parser
from mem0_core.cli._prompt import PROMPT_COMMANDS, PromptState
from tests.support import open_memory, restore_interrupts

fcntl = pytest.importorskip("fcntl", reason="terminals of this kind are POSIX's")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

PROMPTS = ("store", "remember", "update", "updateq", "delete", "query", "traverse", "viz", "merge", "rebuild")
"""Seed 003, part 14."""


class MessageLog:
    """A session whose lines are kept, and whose questions are answered as the test says."""

    def __init__(self, folder: Path) -> None:
        self.memory = open_memory(folder)
        self.answers: list[str] = []
        self.lines: list[str] = []
        ids: dict[str, str | None] = {"user": "ann", "agent": None, "run": None}
        self.session = PromptState(
            self.memory, build_parser().parse_args, ids, write_lines=self.lines.extend, ask=self._answer
        )

    def _answer(self, question: str) -> str:
        self.lines.append(question)
        return self.answers.pop(0)

    def __call__(self, line: str) -> str:
        self.lines.clear()
        assert self.session.run(line)
        return "\n".join(self.lines)

    def texts(self) -> list[str]:
        return [entry["memory"] for entry in self.memory.get_all(user_id="ann")["results"]]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[MessageLog]:
    made = MessageLog(tmp_path)
    yield made
    made.memory.close()


def test_every_command_of_the_seed_is_there_and_told_of(talk: MessageLog) -> None:
    assert set(PROMPTS) <= set(PROMPT_COMMANDS)
    told = talk("@help")
    assert all(verb.usage in told for verb in PROMPT_COMMANDS.values())
    assert "A line without @" in told
    assert talk("@help store") == "@store TEXT: add a text to the memory (also @add)"
    assert talk("@help nope") == "! unknown command @nope"


def test_what_is_said_is_stored_and_what_is_asked_is_answered(talk: MessageLog) -> None:
    assert "I live in Rome." in talk("@store I live in Rome.")
    assert "I like tea -- it is warm" in talk("I like tea -- it is warm")
    assert "I live in Rome." in talk("Where do I live?")
    assert "I live in Rome." in talk("@remember Rome")
    assert talk.texts() == ["I live in Rome.", "I like tea -- it is warm"]
    assert talk("") == ""
    assert "-v is a flag" in talk("@store -v is a flag")


def test_the_names_of_the_command_line_work_in_the_prompt_too(talk: MessageLog) -> None:
    talk("@add I live in Rome.")
    assert "I live in Rome." in talk("@search Where do I live?")
    assert "I live in Rome." in talk("@get-all")
    talk.answers = ["n"]
    assert "would UPDATE" in talk("@update-by-query Rome => I live in Oslo.")
    assert talk("@help add") == talk("@help store")


def test_memories_are_named_by_the_numbers_they_were_shown_with(talk: MessageLog) -> None:
    talk("I live in Rome.")
    talk("I like tea")
    assert re.findall(r"^ (\d)  ", talk("@list"), re.MULTILINE) == ["1", "2"]
    assert "updated" in talk("@update 1 I live in Oslo.")
    assert "UPDATE  I live in Rome. -> I live in Oslo." in talk("@history 1")
    talk.answers = ["y"]
    assert "deleted" in talk("@delete 2")
    assert talk.texts() == ["I live in Oslo."]
    assert talk("@delete 9") == "! there is no memory number 9; list or search first"


def test_by_query_is_shown_first_and_done_when_agreed(talk: MessageLog) -> None:
    talk("I like green tea")
    talk.answers = ["n"]
    assert "would UPDATE" in talk("@updateq green tea => I like black tea")
    assert talk.texts() == ["I like green tea"]
    talk.answers = ["y"]
    assert "I like green tea -> I like black tea" in talk("@updateq green tea => I like black tea")
    assert talk.texts() == ["I like black tea"]
    talk.answers = ["yes"]
    assert "would DELETE" in talk("@delete black tea")
    assert talk.texts() == []
    assert talk("@delete black tea") == "no matches"
    assert "@updateq QUERY => NEW TEXT" in talk("@updateq black tea")


def test_the_graph_from_the_prompt(talk: MessageLog, tmp_path: Path) -> None:
    talk("My sister is Anna.")
    talk("Anna likes tea.")
    assert "Anna  (ann -[sister]-> Anna)" in talk("@traverse my sister")
    assert "ann  Anna" in talk("@query MATCH (a)-[:sister]->(b) RETURN a, b")
    assert talk("@query MATCH (a").startswith("! ")
    assert "sister" in talk("@relations")
    page = Path(talk("@viz Anna"))
    assert page.is_file()
    assert "Anna" in page.read_text()
    assert talk("@rebuild") == "2 memories embedded again"
    assert talk("@merge") == "nothing to merge"


def test_whose_memory_it_is(talk: MessageLog) -> None:
    talk("I like tea")
    assert talk("@user bob") == "current memory: user:bob"
    assert talk("@list") == "no memories found"
    assert talk("@user") == "current memory: user:bob"
    assert talk("@user -") == "current memory: no ids"
    assert talk("@list") == "! no memory is named: @user NAME sets its user"
    assert talk("@agent helper") == "current memory: agent:helper"


def test_numbers_are_of_the_memory_they_were_shown_from(talk: MessageLog) -> None:
    talk("I like tea")
    talk("@list")
    talk("@user bob")
    assert talk("@delete 1") == "! there is no memory number 1; list or search first"
    assert talk("@update 1 I like milk") == "! there is no memory number 1; list or search first"
    assert talk("@history 1") == "! there is no memory number 1; list or search first"
    assert talk.texts() == ["I like tea"]


@pytest.mark.parametrize("by", ["number", "id"])
def test_one_memory_is_shown_before_it_is_deleted(talk: MessageLog, by: str) -> None:
    talk("I like tea")
    memory = talk.memory.get_all(user_id="ann")["results"][0]["id"] if by == "id" else "1"
    talk.answers = ["n"]
    told = talk(f"@delete {memory}")
    assert re.search(r"I like tea.*user_id: ann.*do it\? \[y/N\].*not done", told, re.DOTALL)
    assert talk.texts() == ["I like tea"]
    talk.answers = ["y"]
    assert "deleted" in talk(f"@delete {memory}")
    assert talk.texts() == []


def test_a_question_shows_the_answer_and_its_numbered_proof(talk: MessageLog) -> None:
    talk("My sister Anna works at Galp.")
    lines = talk("Where does my sister work?").splitlines()
    assert lines[0].startswith("Galp  (since ")
    assert re.match(r" 1 .*My sister Anna works at Galp\.", lines[1])
    assert "ADD" in talk("@history 1")


def test_an_id_of_another_user_is_unknown_in_the_prompt(talk: MessageLog) -> None:
    talk("I like tea")
    memory_id = talk.memory.get_all(user_id="ann")["results"][0]["id"]
    talk("@user bob")
    for given in (memory_id, memory_id[-8:]):
        for line in (f"@update {given} I like milk", f"@history {given}", f"@get {given}"):
            assert talk(line).startswith(f"! no memory has the id {given!r}")
    assert "tea" not in talk(f"@delete {memory_id}")
    assert talk.texts() == ["I like tea"]


def test_an_empty_list_leaves_no_numbers(talk: MessageLog) -> None:
    talk("I like tea")
    talk("@list")
    talk("@delete nothing like this at all")
    assert talk("@update 1 I like milk") == "! there is no memory number 1; list or search first"


def test_a_part_of_an_id_names_a_memory(talk: MessageLog) -> None:
    talk("I like tea")
    short = talk.memory.get_all(user_id="ann")["results"][0]["id"][-8:]
    talk.answers = ["n"]
    assert "I like tea" in talk(f"@delete {short}")
    assert "updated" in talk(f"@update {short} I like milk")


def test_the_environment_names_no_user_in_the_prompt(talk: MessageLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM0_USER", "ann")
    talk("@user -")
    assert talk("@list") == "! no memory is named: @user NAME sets its user"


def test_help_and_quit_need_no_sign(talk: MessageLog) -> None:
    assert talk("help") == talk("@help")
    assert not talk.session.run("quit")
    assert not talk.session.run("Exit")
    assert not talk.session.run("@exit")
    assert talk.texts() == []
    talk("help with my taxes is on its way")
    assert talk.texts() == ["help with my taxes is on its way"]


def test_statements_are_stored_and_questions_are_searched_with_or_without_a_mark(talk: MessageLog) -> None:
    talk("My sister Anna works at Galp.")
    talk("I moved to Oslo. Any tips?")
    for question in ("what does my sister do", "tell me about my sister", "thanks! and where does she work?"):
        assert "Anna works at Galp" in talk(question)
    for reply in ("ok", "thanks, that helped a lot!", "hi"):
        assert talk(reply) == "nothing to store; @store TEXT stores it anyway"
    assert talk.texts() == ["My sister Anna works at Galp.", "I moved to Oslo. Any tips?"]
    talk("@store ok")
    assert "ok" in talk.texts()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("list", "I live in Rome."),
        ("LIST", "I live in Rome."),
        ("stats", "memories"),
        ("history 1", "ADD"),
        ("query MATCH (a)-[r]->(b) RETURN b.name", "Rome"),
    ],
)
def test_a_command_without_a_sign_is_asked_about(talk: MessageLog, line: str, shown: str) -> None:
    talk("I live in Rome.")
    talk("@list")
    talk.answers = ["y", "n"]
    asked, *result = talk(line).splitlines()
    assert asked == f"run @{line.replace('LIST', 'list')}? [y/N] "
    assert shown in "\n".join(result)
    assert "not stored; @store" in talk(line)
    assert talk.texts() == ["I live in Rome."]


def test_a_sentence_that_begins_like_a_command_is_stored(talk: MessageLog) -> None:
    lines = ["list of my allergies: nuts and penicillin", "update my address, I moved to Porto", "run 10k every day"]
    for line in lines:
        talk(line)
    assert talk.texts() == lines


def test_a_letter_is_not_stored(talk: MessageLog) -> None:
    assert talk("y") == "nothing to store; @store TEXT stores it anyway"
    assert talk.texts() == []


def test_a_misspelled_command_names_the_nearest_one(talk: MessageLog) -> None:
    assert talk("@lsit") == "! unknown command @lsit; did you mean @list? @help lists the commands"


def test_a_command_without_a_sign_fails_if_nobody_can_be_asked(talk: MessageLog) -> None:
    talk.session._ask = None
    assert talk("list") == "! not stored: did you mean @list? Write @store list to store it"
    assert talk.session.failure_count == 1


def test_mistakes_are_told_and_the_session_goes_on(talk: MessageLog, capsys: pytest.CaptureFixture[str]) -> None:
    assert talk("@fly") == "! unknown command @fly; @help lists the commands"
    assert talk("@store") == "! @store needs an argument; write @store TEXT"
    assert talk("@viz 'x") == "! invalid quotes: No closing quotation"
    assert talk("@list --colour").endswith("@help shows the usage")
    assert "unknown option '--colour'" in capsys.readouterr().err
    assert talk("@rel") == "no relations"  # so much of a name that only one begins so
    assert talk.session.failure_count == 4
    assert not talk.session.run("@quit")


def test_files_and_numbers(talk: MessageLog, tmp_path: Path) -> None:
    (tmp_path / "my notes.txt").write_text("I live in Rome.\nI like tea\n")
    assert "2 added" in talk(f"@import '{tmp_path}/my notes.txt'")
    assert "memories: 2" in talk("@stats")
    assert "2 memories" in talk(f"@export {tmp_path}/out.jsonl")
    assert "2 memories" in talk(f"@backup {tmp_path}/copy.db")


def test_commands_and_names_of_the_graph_are_completed(talk: MessageLog) -> None:
    talk("My sister is Anna.")
    talk("Anna works at Acme.")
    assert list(talk.session.completions("@st")) == ["@store", "@stats"]
    assert list(talk.session.completions("@traverse an")) == ["Anna", "ann"]
    assert list(talk.session.completions('@viz "Ac')) == ["Acme"]
    assert list(talk.session.completions("@store An")) == []
    assert list(talk.session.completions("")) == []
    talk("Bert works at Apex.")
    assert list(talk.session.completions("@traverse Ap")) == ["Apex"]
    talk("@user bob")
    assert list(talk.session.completions("@traverse A")) == []


# --- in a terminal -----------------------------------------------------------------------------------------------

WITHOUT_TOOLKIT = "import sys; sys.modules['prompt_toolkit'] = None; from mem0_core.cli import main; sys.exit(main())"
TOOLKIT = pytest.param(
    ["-m", "mem0_core.cli"],
    id="prompt_toolkit",
    marks=pytest.mark.skipif(not importlib.util.find_spec("prompt_toolkit"), reason="prompt_toolkit is not installed"),
)
READLINE = pytest.param(["-c", WITHOUT_TOOLKIT], id="readline")


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        config = folder / "config.json"
        config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))
        self._ours, theirs = pty.openpty()
        arguments = ["--path", str(folder / "data"), "--config", str(config), "--user", "ann"]
        self.process = subprocess.Popen(
            [sys.executable, *command, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        self.shown = ""
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until there is a new prompt: readline misses one that comes just before it begins to wait."""
        for _ in range(10):
            self.type("\x03")
            with suppress(AssertionError):
                self.wait_for(">", seconds=3)
                return
        raise AssertionError("Ctrl-C was never heard")

    def wait_for(self, *texts: str, seconds: float = 30) -> str:
        """Wait until these were shown, one behind the other, since something was typed last."""
        deadline = time.monotonic() + seconds
        wanted = re.compile(".*?".join(map(re.escape, texts)), re.DOTALL)
        while not wanted.search(self.shown):
            left = deadline - time.monotonic()
            assert left > 0, f"{texts} never came: {self.shown[-2000:]!r}"
            if select.select([self._ours], [], [], left)[0]:
                try:
                    data = os.read(self._ours, 65536)
                except OSError:  # the other end is closed
                    data = b""
                assert data, f"ended before {texts}: {self.shown[-2000:]!r}"
                self.shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace"))
        return self.shown

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


def _take_terminal() -> None:
    restore_interrupts()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


Open = Callable[[Sequence[str]], Terminal]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    terminals: list[Terminal] = []

    def begin(command: Sequence[str]) -> Terminal:
        terminals.append(Terminal(command, tmp_path))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize("command", [TOOLKIT, READLINE])
def test_a_conversation_in_a_terminal(tmp_path: Path, opened: Open, command: list[str]) -> None:
    """Stored, asked, completed by Tab, interrupted, asked back, left; and what was typed is there the next time."""
    terminal = opened(command)
    terminal.wait_for("memory of user:ann. @help lists", ">")
    terminal.type("@store My sister is Anna.\r")
    terminal.wait_for("ann -- sister -- Anna", ">")
    terminal.type("half a line")
    terminal.wait_for("half a line")
    terminal.interrupt()  # drops it
    terminal.type("@hel\t\r")
    terminal.wait_for("@remember QUESTION", "reset the numbers.", ">")
    terminal.type("Who is my sister?\r")
    terminal.wait_for("My sister is Anna.", ">")
    terminal.type("@delete my sister is Anna\r")
    terminal.wait_for("do it? [y/N]")
    terminal.type("n\r")
    terminal.wait_for("not done", ">")
    terminal.type("\x04")
    assert terminal.process.wait(30) == 0
    again = opened(command)
    again.wait_for("@help lists", ">")
    again.type("\x1b[A")  # the line typed last
    again.wait_for("@delete my sister is Anna")
    again.interrupt()
    again.type("@list\r")
    assert "half a line" not in again.wait_for("My sister is Anna.", ">")
    again.type("@quit\r")
    assert again.process.wait(30) == 0
    for path in (tmp_path / "data").glob("prompt_history*"):
        assert path.stat().st_mode & 0o077 == 0


def test_lines_from_a_pipe_are_done_without_a_prompt(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))
    command = [sys.executable, "-m", "mem0_core.cli", "prompt", "--user", "ann", "--path", str(tmp_path / "data")]

    def piped(lines: str) -> subprocess.CompletedProcess[str]:
        full = [*command, "--config", str(config)]
        return subprocess.run(full, input=lines, capture_output=True, text=True, check=False)

    done = piped("I like tea\nWhat do I like?\n@delete tea\n@delete 1\n@quit\nI like milk\n")
    assert done.returncode == 1
    assert "> " not in done.stdout
    assert done.stdout.count("! not done: this asks for confirmation") == 2
    assert "I like tea" in piped("@list\n").stdout
    assert "milk" not in done.stdout
    assert piped("@list\n@fly\n").returncode == 1
